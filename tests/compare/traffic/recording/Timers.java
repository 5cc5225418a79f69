// Sets timers of each kind, whose numbers are known, says so and waits to be killed.
import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.timer.SystemTimer;
import org.apache.kafka.server.util.timer.TimerTask;

public final class Timers {
    static final class Task extends TimerTask {
        final CountDownLatch ran = new CountDownLatch(1);

        Task(long delay) {
            super(delay);
        }

        @Override
        public void run() {
            ran.countDown();
        }
    }

    public static void main(String[] arguments) throws Exception {
        netty(100, 40, 7_000);
        netty(3, 0, 8_000);
        executor();
        kafka(1, 50, 20, 30);
        kafka(400, 5, 0, 700); // of this tick, it runs early
        threads(2, 40_000);
        System.out.println("ready");
        System.in.read();
        System.exit(0); // the timers' own threads go on
    }

    /** Sets calls that never run and cancels some, and sets one that runs. */
    static void netty(int calls, int cancels, int seconds) throws Exception {
        HashedWheelTimer timer = new HashedWheelTimer(1, TimeUnit.MILLISECONDS);
        List<Timeout> timeouts = new ArrayList<>();
        for (int i = 0; i < calls; i++) timeouts.add(timer.newTimeout(timeout -> {}, seconds, TimeUnit.SECONDS));
        for (int i = 0; i < cancels; i++) {
            if (!timeouts.get(i).cancel() || timeouts.get(i).cancel()) throw new IllegalStateException();
        }
        CountDownLatch ran = new CountDownLatch(1);
        Timeout runs = timer.newTimeout(timeout -> ran.countDown(), 20, TimeUnit.MILLISECONDS);
        ran.await();
        if (runs.cancel()) throw new IllegalStateException();
    }

    /** Sets calls in several threads and cancels each; the events fill several pages of the file. */
    static void threads(int count, int calls) throws Exception {
        HashedWheelTimer timer = new HashedWheelTimer();
        Thread[] threads = new Thread[count];
        for (int i = 0; i < count; i++) {
            threads[i] = new Thread(() -> {
                for (int j = 0; j < calls; j++) {
                    Thread.currentThread().interrupt(); // as of a thread that is asked to stop
                    timer.newTimeout(timeout -> {}, 1, TimeUnit.HOURS).cancel();
                }
            });
            threads[i].start();
        }
        for (Thread thread : threads) thread.join();
    }

    static void executor() throws Exception {
        ScheduledThreadPoolExecutor executor = new ScheduledThreadPoolExecutor(1);
        List<ScheduledFuture<?>> futures = new ArrayList<>();
        for (int i = 0; i < 60; i++) futures.add(executor.schedule(() -> {}, 9_000, TimeUnit.SECONDS));
        for (int i = 0; i < 25; i++) {
            if (!futures.get(i).cancel(false) || futures.get(i).cancel(false)) throw new IllegalStateException();
        }
        CountDownLatch ran = new CountDownLatch(3);
        CompletableFuture<ScheduledFuture<?>> periodic = new CompletableFuture<>();
        Runnable run = () -> {
            ran.countDown();
            if (ran.getCount() == 0) periodic.join().cancel(false);
        };
        periodic.complete(executor.scheduleAtFixedRate(run, 10, 10, TimeUnit.MILLISECONDS));
        ran.await();
    }

    static void kafka(long tick, int calls, int cancels, long delay) throws Exception {
        SystemTimer timer = new SystemTimer("test", tick, 20, Time.SYSTEM.hiResClockMs());
        List<Task> tasks = new ArrayList<>();
        for (int i = 0; i < calls; i++) tasks.add(new Task(10_000_000));
        tasks.forEach(timer::add);
        for (int i = 0; i < cancels; i++) {
            tasks.get(i).cancel();
            tasks.get(i).cancel();
        }
        Task runs = new Task(delay);
        timer.add(runs);
        while (runs.ran.getCount() > 0) timer.advanceClock(20);
        runs.cancel();
        new Task(5).cancel(); // was never added
    }
}
