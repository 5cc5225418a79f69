// The JDK's java.util.Timer. It runs in real time, so tasks are due an hour later than the tape says,
// and the tape must cancel them all. A cancelled task stays until `purge`, which an advance calls.
import java.util.Timer;
import java.util.TimerTask;
import wheelwork.Peer;

public final class Main implements Peer.Structure<TimerTask> {
    static final long FAR = 3_600_000;
    static final String DESCRIPTION =
            """
            {"protocol": 1, "name": "java-timer", "language": "Java", "library": "JDK", "version": "%s",
             "scheme": "binary heap under a lock (java.util.Timer)", "rearm": "cancel and start", "real_time": true,
             "threads": "once",
             "notes": {"cancel": "marks the task; an advance purges, O(n)"}}
            """;

    private final Timer timer = new Timer(true);
    private long pending;

    @Override
    public TimerTask start(long operation, long deadline) {
        TimerTask task = new TimerTask() {
            @Override
            public void run() {}
        };
        timer.schedule(task, FAR + deadline);
        pending++;
        return task;
    }

    @Override
    public boolean cancel(TimerTask task) {
        boolean cancelled = task.cancel();
        if (cancelled) pending--;
        return cancelled;
    }

    @Override
    public void advance(long now, Peer.Fired fired) {
        timer.purge();
    }

    @Override
    public long nextWakeup() {
        throw new IllegalStateException(pending + " tasks are pending, and due in an hour of real time");
    }

    @Override
    public long size() {
        return pending;
    }

    /** As its users call it: a cancelled task stays in the heap until its deadline. */
    static final class Service implements Peer.Service<TimerTask> {
        private final Timer timer = new Timer(true);

        @Override
        public TimerTask start(long delay, Runnable call) {
            TimerTask task = new TimerTask() {
                @Override
                public void run() {
                    call.run();
                }
            };
            timer.schedule(task, delay);
            return task;
        }

        @Override
        public boolean cancel(TimerTask task) {
            return task.cancel();
        }

        @Override
        public void close() {
            timer.cancel();
        }
    }

    public static void main(String[] arguments) throws Exception {
        String description = DESCRIPTION.formatted(Runtime.version());
        Peer.main("java-timer", description, 0, start -> new Main(), Service::new, arguments);
    }
}
