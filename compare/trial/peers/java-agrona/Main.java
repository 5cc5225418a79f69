// Agrona's DeadlineTimerWheel, polled tick by tick: a poll looks at one tick.
import java.util.concurrent.TimeUnit;
import org.agrona.DeadlineTimerWheel;
import org.agrona.collections.Long2ObjectHashMap;
import wheelwork.Peer;

public final class Main implements Peer.Structure<Main.Timer>, DeadlineTimerWheel.TimerHandler {
    static final int WHEEL_SIZE = Peer.parameter("wheel_size", 4096);
    static final String DESCRIPTION =
            """
            {"protocol": 1, "name": "java-agrona", "language": "Java", "library": "agrona",
             "version": "%s", "scheme": "hashed wheel of arrays (DeadlineTimerWheel)", "rearm": "cancel and start", "drain": "unit",
             "parameters": {"tick": 1, "wheel_size": %d},
             "limits": {"time": 4611686018427387904, "step": 2000000, "equal": 10000},
             "notes": {"handles": "timer ids without generations; a hash map has the timer of each id",
                       "poll": "one tick"}}
            """;

    /** A timer with its id in the wheel, which uses ids again. */
    static final class Timer extends Peer.Timer {
        final long id;

        Timer(long operation, long deadline, long id) {
            super(operation, deadline);
            this.id = id;
        }
    }

    private final DeadlineTimerWheel wheel;
    private final Long2ObjectHashMap<Timer> pending = new Long2ObjectHashMap<>(); // by id
    private Peer.Fired fired;
    private long now;
    private boolean mayBeDue; // a timer was scheduled since the last poll

    Main(long start) {
        wheel = new DeadlineTimerWheel(TimeUnit.MILLISECONDS, start, 1, WHEEL_SIZE);
        now = start;
    }

    @Override
    public Timer start(long operation, long deadline) {
        Timer timer = new Timer(operation, deadline, wheel.scheduleTimer(deadline));
        pending.put(timer.id, timer);
        mayBeDue = true;
        return timer;
    }

    @Override
    public boolean cancel(Timer timer) {
        if (!timer.isPending) return false;
        timer.isPending = false;
        pending.remove(timer.id);
        return wheel.cancelTimer(timer.id);
    }

    @Override
    public boolean onTimerExpiry(TimeUnit unit, long now, long id) {
        Timer timer = pending.remove(id);
        timer.isPending = false;
        fired.fire(timer.operation, now);
        return true;
    }

    @Override
    public void advance(long now, Peer.Fired fired) {
        this.fired = fired;
        this.now = now;
        mayBeDue = false;
        if (wheel.timerCount() == 0) wheel.currentTickTime(now);
        boolean isLast;
        do {
            isLast = wheel.currentTickTime() > now; // the end of the tick
            wheel.poll(Math.min(now, wheel.currentTickTime()), this, Integer.MAX_VALUE);
        } while (!isLast);
    }

    @Override
    public long nextWakeup() {
        return mayBeDue ? now : wheel.currentTickTime();
    }

    @Override
    public long size() {
        return wheel.timerCount();
    }

    public static void main(String[] arguments) throws Exception {
        String version = DeadlineTimerWheel.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        version = version.replaceAll(".*agrona-(.*)\\.jar", "$1");
        Peer.main("java-agrona", DESCRIPTION.formatted(version, WHEEL_SIZE), 0, Main::new, arguments);
    }
}
