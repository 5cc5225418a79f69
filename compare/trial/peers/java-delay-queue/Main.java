// The JDK's DelayQueue, whose elements compute their delays from the clock of the tape.
import java.util.concurrent.DelayQueue;
import java.util.concurrent.Delayed;
import java.util.concurrent.TimeUnit;
import wheelwork.Peer;

public final class Main implements Peer.Structure<Main.Element> {
    static final String DESCRIPTION =
            """
            {"protocol": 1, "name": "java-delay-queue", "language": "Java", "library": "JDK",
             "version": "%s", "scheme": "binary heap under a lock (DelayQueue)", "rearm": "cancel and start", "order": "fifo",
             "notes": {"cancel": "DelayQueue.remove searches, O(n)"}}
            """;

    private final DelayQueue<Element> queue = new DelayQueue<>();
    private long now;

    Main(long start) {
        now = start;
    }

    final class Element extends Peer.Timer implements Delayed {
        Element(long operation, long deadline) {
            super(operation, deadline);
        }

        @Override
        public long getDelay(TimeUnit unit) {
            return deadline - now; // the sign is all that matters
        }

        @Override
        public int compareTo(Delayed other) {
            Element element = (Element) other;
            int order = Long.compare(deadline, element.deadline);
            return order != 0 ? order : Long.compare(operation, element.operation);
        }
    }

    @Override
    public Element start(long operation, long deadline) {
        Element element = new Element(operation, deadline);
        queue.add(element);
        return element;
    }

    @Override
    public boolean cancel(Element element) {
        return queue.remove(element);
    }

    @Override
    public void advance(long moment, Peer.Fired fired) {
        now = moment;
        for (Element element; (element = queue.poll()) != null; ) fired.fire(element.operation, element.deadline);
    }

    @Override
    public long nextWakeup() {
        return queue.peek().deadline;
    }

    @Override
    public long size() {
        return queue.size();
    }

    public static void main(String[] arguments) throws Exception {
        String description = DESCRIPTION.formatted(Runtime.version());
        Peer.main("java-delay-queue", description, 0, Main::new, arguments);
    }
}
