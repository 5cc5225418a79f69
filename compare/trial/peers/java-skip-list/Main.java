// The JDK's ConcurrentSkipListMap, from (deadline, operation) to the timer.
import java.util.concurrent.ConcurrentSkipListMap;
import wheelwork.Peer;

public final class Main implements Peer.Structure<Peer.Timer> {
    static final String DESCRIPTION =
            """
            {"protocol": 1, "name": "java-skip-list", "language": "Java", "library": "JDK",
             "version": "%s", "scheme": "skip list (ConcurrentSkipListMap)", "rearm": "cancel and start", "order": "fifo"}
            """;

    private final ConcurrentSkipListMap<Peer.Timer, Peer.Timer> map =
            new ConcurrentSkipListMap<>((one, other) -> one.deadline != other.deadline
                    ? Long.compare(one.deadline, other.deadline)
                    : Long.compare(one.operation, other.operation));
    private long pending; // the size of the map is counted by visiting it

    @Override
    public Peer.Timer start(long operation, long deadline) {
        Peer.Timer timer = new Peer.Timer(operation, deadline);
        map.put(timer, timer);
        pending++;
        return timer;
    }

    @Override
    public boolean cancel(Peer.Timer timer) {
        boolean removed = map.remove(timer) != null;
        if (removed) pending--;
        return removed;
    }

    @Override
    public void advance(long now, Peer.Fired fired) {
        for (var first = map.firstEntry(); first != null && first.getKey().deadline <= now; first = map.firstEntry()) {
            cancel(first.getKey());
            fired.fire(first.getKey().operation, first.getKey().deadline);
        }
    }

    @Override
    public long nextWakeup() {
        return map.firstKey().deadline;
    }

    @Override
    public long size() {
        return pending;
    }

    public static void main(String[] arguments) throws Exception {
        String description = DESCRIPTION.formatted(Runtime.version());
        Peer.main("java-skip-list", description, 0, start -> new Main(), arguments);
    }
}
