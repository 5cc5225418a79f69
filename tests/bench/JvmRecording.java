// Nanoseconds of the caller's CPU for setting and cancelling a call, beside 1 000 others: a line for each round.
import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import java.lang.management.ManagementFactory;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.timer.SystemTimer;
import org.apache.kafka.server.util.timer.TimerTask;

public final class JvmRecording {
    static final int PENDING = 1_000, PAIRS = 100_000, WARM_UP = 10;

    public static void main(String[] arguments) throws Exception {
        int rounds = WARM_UP + Integer.parseInt(arguments[0]);
        HashedWheelTimer netty = new HashedWheelTimer();
        measure("netty", rounds, () -> netty.newTimeout(timeout -> {}, 60, TimeUnit.SECONDS), Timeout::cancel);
        netty.stop();
        ScheduledThreadPoolExecutor executor = new ScheduledThreadPoolExecutor(1);
        executor.setRemoveOnCancelPolicy(true);
        measure("executor", rounds, () -> executor.schedule(() -> {}, 60, TimeUnit.SECONDS), (ScheduledFuture<?> f) -> f.cancel(false));
        executor.shutdownNow();
        SystemTimer kafka = new SystemTimer("kafka", 1, 20, Time.SYSTEM.hiResClockMs());
        Supplier<TimerTask> add = () -> {
            TimerTask task = new TimerTask(60_000) {
                @Override
                public void run() {}
            };
            kafka.add(task);
            return task;
        };
        measure("kafka", rounds, add, TimerTask::cancel);
        System.exit(0);
    }

    static <T> void measure(String name, int rounds, Supplier<T> start, Consumer<T> cancel) {
        var threads = ManagementFactory.getThreadMXBean();
        Queue<T> pending = new ArrayDeque<>();
        for (int i = 0; i < PENDING; i++) pending.add(start.get());
        for (int round = 0; round < rounds; round++) {
            long before = threads.getCurrentThreadCpuTime();
            for (int i = 0; i < PAIRS; i++) {
                cancel.accept(pending.remove());
                pending.add(start.get());
            }
            double spent = threads.getCurrentThreadCpuTime() - before;
            if (round >= WARM_UP) System.out.println(name + " " + spent / (2 * PAIRS));
        }
    }
}
