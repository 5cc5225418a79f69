// An adapter for a timer in Java. Put your timer in the place of the list, and call it in these methods.
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import wheelwork.Peer;

public final class Main implements Peer.Structure<Peer.Timer> {
    // "order": "unspecified" if equal deadlines may come in any order; other members: docs/peers.md.
    static final String DESCRIPTION =
            """
            {"protocol": 1, "name": "my-timer", "language": "Java", "scheme": "list",
             "rounding": {"kind": "exact"}, "order": "fifo"}
            """;

    private final List<Peer.Timer> timers = new ArrayList<>(); // as they were armed

    Main(long start) {} // empty; the clock is at `start`

    @Override
    public Peer.Timer start(long operation, long deadline) {
        Peer.Timer timer = new Peer.Timer(operation, deadline);
        timers.add(timer);
        return timer;
    }

    @Override
    public boolean cancel(Peer.Timer timer) {
        return timers.remove(timer);
    }

    // Override rearm(timer, operation, deadline) if your timer can re-arm in place.

    @Override
    public void advance(long now, Peer.Fired fired) {
        List<Peer.Timer> due = new ArrayList<>(timers.stream().filter(timer -> timer.deadline <= now).toList());
        timers.removeIf(timer -> timer.deadline <= now);
        due.sort(Comparator.comparingLong(timer -> timer.deadline)); // equal ones stay in order
        for (Peer.Timer timer : due) fired.fire(timer.operation, timer.deadline); // when it fires, by your timer
    }

    @Override
    public long nextWakeup() { // something is pending
        return timers.stream().mapToLong(timer -> timer.deadline).min().getAsLong();
    }

    @Override
    public long size() {
        return timers.size();
    }

    public static void main(String[] arguments) throws Exception {
        Peer.main("my-timer", DESCRIPTION, 0, Main::new, arguments);
    }
}
