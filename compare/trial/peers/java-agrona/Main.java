// Agrona's DeadlineTimerWheel, polled tick by tick: a poll looks at one tick.
import java.util.concurrent.TimeUnit;
import org.agrona.DeadlineTimerWheel;
import org.agrona.collections.Long2LongHashMap;
import wheelwork.Peer;

public final class Main implements Peer.Structure<Long>, DeadlineTimerWheel.TimerHandler {
    static final int TICK = 1, WHEEL_SIZE = 512;
    static final String DESCRIPTION =
            """
            {"protocol": 1, "name": "java-agrona", "language": "Java", "library": "agrona",
             "version": "%s", "scheme": "hashed wheel of arrays (DeadlineTimerWheel)", "drain": "unit",
             "parameters": {"tick": 1, "wheel_size": 512},
             "limits": {"time": 4611686018427387904, "step": 2000000, "equal": 100000},
             "notes": {"handles": "timer ids without generations; a hash map finds the operation",
                       "re-arm": "cancel and schedule", "poll": "one tick"}}
            """;

    private final DeadlineTimerWheel wheel;
    private final Long2LongHashMap operations = new Long2LongHashMap(-1); // by timer id
    // A handle is the operation that armed the timer: the timer's id is used again.
    private final Long2LongHashMap ids = new Long2LongHashMap(-1);
    private Peer.Fired fired;
    private long now;
    private boolean mayBeDue; // a timer was scheduled since the last poll

    Main(long start) {
        wheel = new DeadlineTimerWheel(TimeUnit.MILLISECONDS, start, TICK, WHEEL_SIZE);
        now = start;
    }

    @Override
    public Long start(long operation, long deadline) {
        long id = wheel.scheduleTimer(deadline);
        operations.put(id, operation);
        ids.put(operation, id);
        mayBeDue = true;
        return operation;
    }

    @Override
    public boolean cancel(Long operation) {
        long id = ids.remove(operation.longValue());
        return id != -1 && wheel.cancelTimer(id);
    }

    @Override
    public boolean onTimerExpiry(TimeUnit unit, long now, long id) {
        long operation = operations.get(id);
        ids.remove(operation);
        fired.fire(operation, now);
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
        Peer.main("java-agrona", DESCRIPTION.formatted(version), 0, Main::new, arguments);
    }
}
