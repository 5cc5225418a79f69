// Netty's HashedWheelTimer, whose worker is stepped by hand: no thread is started, and each tick does
// what Worker.run does after waitForNextTick. A unit is a millisecond, the shortest tick. Timeouts
// are made by the constructor that newTimeout calls, because newTimeout reads the system's clock.
import io.netty.util.HashedWheelTimer;
import io.netty.util.ResourceLeakDetector;
import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Queue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import wheelwork.Peer;

public final class Main implements Peer.Structure<Timeout> {
    static final int TICK = Peer.parameter("tick", 1), WHEEL_SIZE = Peer.parameter("wheel_size", 4096);
    static final long UNIT = 1_000_000; // nanoseconds
    static final String DESCRIPTION =
            """
            {"protocol": 1, "name": "java-netty", "language": "Java", "library": "netty-common",
             "version": "%s", "scheme": "hashed wheel with rounds (HashedWheelTimer)", "rearm": "cancel and start",
             "rounding": {"kind": "up", "tick": %d}, "drain": "unit", "threads": "once",
             "parameters": {"tick": %d, "wheel_size": %d},
             "limits": {"time": 4398046511104, "step": 2000000},
             "notes": {"clock": "the worker is stepped by hand",
                       "inserts": "go through a queue, 100 000 in a tick at most"}}
            """;

    // Private members; as constants, so that the compiler can inline the calls.
    static final MethodHandle NEW_TIMEOUT, TRANSFER, CANCELLED, EXPIRE, GET_TICK, SET_TICK;

    static {
        ResourceLeakDetector.setLevel(ResourceLeakDetector.Level.DISABLED); // no timer is ever stopped
        try {
            MethodHandles.Lookup mine = MethodHandles.lookup();
            Class<?> worker = Class.forName("io.netty.util.HashedWheelTimer$Worker");
            Class<?> bucket = Class.forName("io.netty.util.HashedWheelTimer$HashedWheelBucket");
            Class<?> timeout = Class.forName("io.netty.util.HashedWheelTimer$HashedWheelTimeout");
            MethodHandles.Lookup inside = MethodHandles.privateLookupIn(worker, mine);
            MethodType nothing = MethodType.methodType(void.class);
            MethodType plain = MethodType.methodType(void.class, Object.class);
            NEW_TIMEOUT = MethodHandles.privateLookupIn(timeout, mine)
                    .findConstructor(timeout, MethodType.methodType(
                            void.class, HashedWheelTimer.class, TimerTask.class, long.class))
                    .asType(MethodType.methodType(Timeout.class, HashedWheelTimer.class, TimerTask.class, long.class));
            TRANSFER = inside.findVirtual(worker, "transferTimeoutsToBuckets", nothing).asType(plain);
            CANCELLED = inside.findVirtual(worker, "processCancelledTasks", nothing).asType(plain);
            EXPIRE = MethodHandles.privateLookupIn(bucket, mine)
                    .findVirtual(bucket, "expireTimeouts", MethodType.methodType(void.class, long.class))
                    .asType(MethodType.methodType(void.class, Object.class, long.class));
            GET_TICK = inside.findGetter(worker, "tick", long.class)
                    .asType(MethodType.methodType(long.class, Object.class));
            SET_TICK = inside.findSetter(worker, "tick", long.class)
                    .asType(MethodType.methodType(void.class, Object.class, long.class));
        } catch (ReflectiveOperationException error) {
            throw new ExceptionInInitializerError(error);
        }
    }

    private final HashedWheelTimer timer = new HashedWheelTimer(TICK, TimeUnit.MILLISECONDS, WHEEL_SIZE);
    private final Object worker = field("worker");
    private final Object[] wheel = (Object[]) field("wheel");
    @SuppressWarnings("unchecked")
    private final Queue<Object> timeouts = (Queue<Object>) field("timeouts");
    private final AtomicLong pendingTimeouts = (AtomicLong) field("pendingTimeouts");
    private final long start;
    private long now, pending;
    private Peer.Fired fired;

    Main(long start) {
        this.start = now = start;
    }

    private Object field(String name) {
        try {
            var field = HashedWheelTimer.class.getDeclaredField(name);
            field.setAccessible(true);
            return field.get(timer);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    @Override
    public Timeout start(long operation, long deadline) {
        TimerTask task = timeout -> {
            pending--;
            fired.fire(operation, now);
        };
        try {
            Timeout timeout = (Timeout) NEW_TIMEOUT.invokeExact(timer, task, (deadline - start) * UNIT);
            pendingTimeouts.incrementAndGet();
            timeouts.add(timeout);
            pending++;
            return timeout;
        } catch (Throwable error) {
            throw new IllegalStateException(error);
        }
    }

    @Override
    public boolean cancel(Timeout timeout) {
        boolean cancelled = timeout.cancel();
        if (cancelled) pending--;
        return cancelled;
    }

    @Override
    public void advance(long moment, Peer.Fired fired) {
        this.fired = fired;
        try {
            for (; now < moment; now++) {
                if ((now + 1 - start) % TICK != 0) continue; // a tick is over when its last unit is
                long tick = (long) GET_TICK.invokeExact(worker);
                CANCELLED.invokeExact(worker);
                TRANSFER.invokeExact(worker);
                EXPIRE.invokeExact(wheel[(int) (tick & wheel.length - 1)], (tick + 1) * TICK * UNIT);
                SET_TICK.invokeExact(worker, tick + 1);
            }
        } catch (Throwable error) {
            throw new IllegalStateException(error);
        }
    }

    @Override
    public long nextWakeup() {
        return now + 1;
    }

    @Override
    public long size() {
        return pending;
    }

    /** The timer itself, with its own thread; starts and cancels go through MPSC queues. */
    static final class Service implements Peer.Service<Timeout> {
        private final HashedWheelTimer timer = new HashedWheelTimer(TICK, TimeUnit.MILLISECONDS, WHEEL_SIZE);

        @Override
        public Timeout start(long delay, Runnable call) {
            return timer.newTimeout(timeout -> call.run(), delay, TimeUnit.MILLISECONDS);
        }

        @Override
        public boolean cancel(Timeout timeout) {
            return timeout.cancel();
        }

        @Override
        public void close() {
            timer.stop();
        }
    }

    public static void main(String[] arguments) throws Exception {
        String version = HashedWheelTimer.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        version = version.replaceAll(".*netty-common-(.*)\\.jar", "$1");
        Peer.main("java-netty", DESCRIPTION.formatted(version, TICK, TICK, WHEEL_SIZE), 0, Main::new, Service::new, arguments);
    }
}
