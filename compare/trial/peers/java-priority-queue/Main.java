// The JDK's PriorityQueue. The entry of a timer that was cancelled or armed again stays, a tombstone.
import java.util.Comparator;
import java.util.PriorityQueue;
import wheelwork.Peer;

public final class Main implements Peer.Structure<Peer.Timer> {
    static final String DESCRIPTION =
            """
            {"protocol": 1, "name": "java-priority-queue", "language": "Java", "library": "JDK",
             "version": "%s", "scheme": "binary heap with tombstones (PriorityQueue)", "rearm": "cancel and start", "order": "fifo",
             "notes": {"cancel": "leaves a tombstone until its deadline"}}
            """;
    static final Comparator<Peer.Timer> ORDER = (one, other) -> one.deadline != other.deadline
            ? Long.compare(one.deadline, other.deadline)
            : Long.compare(one.operation, other.operation);

    private final PriorityQueue<Peer.Timer> queue = new PriorityQueue<>(ORDER);
    private long pending;

    @Override
    public Peer.Timer start(long operation, long deadline) {
        Peer.Timer timer = new Peer.Timer(operation, deadline);
        queue.add(timer);
        pending++;
        return timer;
    }

    @Override
    public boolean cancel(Peer.Timer timer) {
        if (!timer.isPending) return false;
        timer.isPending = false;
        pending--;
        return true;
    }

    @Override
    public void advance(long now, Peer.Fired fired) {
        for (Peer.Timer timer; (timer = queue.peek()) != null && timer.deadline <= now; ) {
            queue.poll();
            if (cancel(timer)) fired.fire(timer.operation, timer.deadline);
        }
    }

    @Override
    public long nextWakeup() {
        while (!queue.peek().isPending) queue.poll();
        return queue.peek().deadline;
    }

    @Override
    public long size() {
        return pending;
    }

    public static void main(String[] arguments) throws Exception {
        String description = DESCRIPTION.formatted(Runtime.version());
        Peer.main("java-priority-queue", description, 0, start -> new Main(), arguments);
    }
}
