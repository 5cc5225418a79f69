// Kafka's TimingWheel, driven as SystemTimer.advanceClock drives it. SystemTimer itself waits in a
// DelayQueue that reads the system's clock, so its queue of buckets is replaced by a PriorityQueue
// that is ordered by their expirations. In Kafka's package, because the constructor is not public.
package org.apache.kafka.server.util.timer;

import java.util.ArrayDeque;
import java.util.Comparator;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.concurrent.DelayQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.common.utils.Time;
import wheelwork.Peer;

public final class Main implements Peer.Structure<Main.Task> {
    static final int TICK = Peer.parameter("tick", 1); // as in Kafka's purgatories
    static final int WHEEL_SIZE = Peer.parameter("wheel_size", 20);
    static final String DESCRIPTION =
            """
            {"protocol": 1, "name": "java-kafka", "language": "Java", "library": "kafka-server-common",
             "version": "%s", "scheme": "hierarchical wheel with a queue of buckets (TimingWheel)", "rearm": "cancel and start",
             "threads": "once",
             "rounding": {"kind": "%s", "tick": %d},
             "parameters": {"tick": %d, "wheel_size": %d}, "limits": {"time": 1152921504606846976},
             "notes": {"queue": "a PriorityQueue instead of the DelayQueue, which reads the clock",
                       "locks": "each bucket is locked, as in Kafka"}}
            """;

    /** The queue that a wheel offers its buckets to. */
    static final class Buckets extends DelayQueue<TimerTaskList> {
        final PriorityQueue<TimerTaskList> queue =
                new PriorityQueue<>(Comparator.comparingLong(TimerTaskList::getExpiration));
        long most;

        @Override
        public boolean offer(TimerTaskList bucket) {
            boolean offered = queue.offer(bucket);
            most = Math.max(most, queue.size());
            return offered;
        }
    }

    static final class Task extends TimerTask {
        final long operation;
        boolean isPending = true;

        Task(long operation) {
            super(0);
            this.operation = operation;
        }

        @Override
        public void run() {}
    }

    private final Buckets buckets = new Buckets();
    private final ArrayDeque<TimerTaskEntry> expired = new ArrayDeque<>(); // when they were added
    private final TimingWheel wheel;
    private long pending, now, polls, idlePolls, emptyPolls, entries, refiled;
    private Peer.Fired fired;

    Main(long start) {
        wheel = new TimingWheel(TICK, WHEEL_SIZE, start, new AtomicInteger(), buckets);
        now = start;
    }

    @Override
    public Task start(long operation, long deadline) {
        Task task = new Task(operation);
        TimerTaskEntry entry = new TimerTaskEntry(task, deadline);
        pending++;
        // The wheel's clock lags behind in idle times, so what is due may be filed in a bucket.
        if (!wheel.add(entry)) expired.add(entry);
        return task;
    }

    @Override
    public boolean cancel(Task task) {
        if (!task.isPending) return false;
        task.isPending = false;
        task.cancel();
        pending--;
        return true;
    }

    @Override
    public void advance(long moment, Peer.Fired fired) {
        this.fired = fired;
        for (TimerTaskEntry entry; (entry = expired.poll()) != null; ) expire(entry, now);
        for (TimerTaskList bucket; (bucket = buckets.queue.peek()) != null && bucket.getExpiration() <= moment; ) {
            buckets.queue.poll();
            long expiration = bucket.getExpiration();
            wheel.advanceClock(expiration);
            long before = entries, waiting = pending;
            bucket.flush(entry -> {
                entries++;
                if (!wheel.add(entry)) expire(entry, expiration);
                else refiled++;
            });
            polls++;
            if (entries == before) emptyPolls++;
            if (pending == waiting) idlePolls++;
        }
        now = moment;
    }

    private void expire(TimerTaskEntry entry, long firedAt) {
        Task task = (Task) entry.timerTask;
        if (!task.isPending) return;
        task.isPending = false;
        pending--;
        fired.fire(task.operation, firedAt);
    }

    @Override
    public long nextWakeup() {
        return expired.isEmpty() ? buckets.queue.peek().getExpiration() : now;
    }

    @Override
    public long size() {
        return pending;
    }

    @Override
    public Map<String, Long> counts() {
        return Map.of(
                "queue_polls", polls, "idle_polls", idlePolls, "empty_polls", emptyPolls,
                "refiled", refiled, "most_queued", buckets.most);
    }

    /**
     * SystemTimer, with the thread that drives it as Kafka's purgatory does. As in DelayedOperation, a
     * flag says whether the call or the cancel comes first.
     */
    static final class Service implements Peer.Service<Service.Call> {
        static final class Call extends TimerTask {
            final AtomicBoolean completed = new AtomicBoolean();
            final Runnable call;

            Call(long delay, Runnable call) {
                super(delay);
                this.call = call;
            }

            @Override
            public void run() {
                if (completed.compareAndSet(false, true)) call.run();
            }
        }

        private final SystemTimer timer = new SystemTimer("peer", TICK, WHEEL_SIZE, Time.SYSTEM.hiResClockMs());
        private volatile boolean ends;

        Service() {
            Thread reaper = new Thread(() -> {
                try {
                    while (!ends) timer.advanceClock(200);
                } catch (InterruptedException ended) {
                    return;
                }
            });
            reaper.setDaemon(true);
            reaper.start();
        }

        @Override
        public Call start(long delay, Runnable call) {
            Call task = new Call(delay, call);
            timer.add(task);
            return task;
        }

        @Override
        public boolean cancel(Call task) {
            task.cancel();
            return task.completed.compareAndSet(false, true);
        }

        @Override
        public void close() {
            ends = true;
        }
    }

    public static void main(String[] arguments) throws Exception {
        String path = TimingWheel.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        String version = path.replaceAll(".*kafka-server-common-(.*)\\.jar", "$1");
        String kind = TICK == 1 ? "exact" : "down";
        String description = DESCRIPTION.formatted(version, kind, TICK, TICK, WHEEL_SIZE);
        Peer.main("java-kafka", description, TICK - 1, Main::new, Service::new, arguments);
    }
}
