// The JDK's ScheduledThreadPoolExecutor, which removes cancelled tasks. It runs in real time, so tasks
// are due an hour later than the tape says, and the tape must cancel them all.
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import wheelwork.Peer;

public final class Main implements Peer.Structure<Future<?>> {
    static final long FAR = 3_600_000;
    static final String DESCRIPTION =
            """
            {"protocol": 1, "name": "java-executor", "language": "Java", "library": "JDK", "version": "%s",
             "scheme": "binary heap with positions under a lock (ScheduledThreadPoolExecutor)", "rearm": "cancel and start",
             "real_time": true, "threads": "may overlap", "notes": {"cancel": "setRemoveOnCancelPolicy(true)"}}
            """;

    private final ScheduledThreadPoolExecutor executor = new ScheduledThreadPoolExecutor(1);
    private long pending;

    Main() {
        executor.setRemoveOnCancelPolicy(true);
    }

    @Override
    public Future<?> start(long operation, long deadline) {
        pending++;
        return executor.schedule(() -> {}, FAR + deadline, TimeUnit.MILLISECONDS);
    }

    @Override
    public boolean cancel(Future<?> task) {
        boolean cancelled = task.cancel(false);
        if (cancelled) pending--;
        return cancelled;
    }

    @Override
    public void advance(long now, Peer.Fired fired) {}

    @Override
    public long nextWakeup() {
        throw new IllegalStateException(pending + " tasks are pending, and due in an hour of real time");
    }

    @Override
    public long size() {
        return pending;
    }

    /** As its users call it. A cancel succeeds while the call runs, as that of every FutureTask. */
    static final class Service implements Peer.Service<Future<?>> {
        private final ScheduledThreadPoolExecutor executor = new ScheduledThreadPoolExecutor(1);

        Service() {
            executor.setRemoveOnCancelPolicy(true);
        }

        @Override
        public Future<?> start(long delay, Runnable call) {
            return executor.schedule(call, delay, TimeUnit.MILLISECONDS);
        }

        @Override
        public boolean cancel(Future<?> task) {
            return task.cancel(false);
        }

        @Override
        public void close() {
            executor.shutdownNow();
        }
    }

    public static void main(String[] arguments) throws Exception {
        String description = DESCRIPTION.formatted(Runtime.version());
        Peer.main("java-executor", description, 0, start -> new Main(), Service::new, arguments);
    }
}
