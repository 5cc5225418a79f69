// The JDK's PriorityQueue without an adapter: with N timers pending, cancel one and start another; a step
// of the clock for every 100 pairs. Prints the CPU time of a pair in ns, the garbage collector's included.
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.PriorityQueue;
import java.util.Random;

final class Bare {
    static final class Timer {
        final long deadline, number;
        final int id;
        boolean isPending = true;

        Timer(long deadline, long number, int id) {
            this.deadline = deadline;
            this.number = number;
            this.id = id;
        }
    }

    private final PriorityQueue<Timer> queue = new PriorityQueue<>((one, other) -> one.deadline != other.deadline
            ? Long.compare(one.deadline, other.deadline)
            : Long.compare(one.number, other.number));
    private final Timer[] pending;
    private long now, number;

    Bare(int n) {
        pending = new Timer[n];
    }

    void start(int id, long deadline) {
        queue.add(pending[id] = new Timer(deadline, number++, id));
    }

    void advance(long moment) {
        now = moment;
        for (Timer timer; (timer = queue.peek()) != null && timer.deadline <= now; ) {
            queue.poll();
            if (timer.isPending) pending[timer.id] = null;
            timer.isPending = false;
        }
    }

    void pairs(int[] victims, long[] delays) {
        for (int pair = 0; pair < victims.length; pair++) {
            if (pair % 100 == 0) advance(200 + pair / 100);
            int id = victims[pair];
            if (pending[id] != null) pending[id].isPending = false;
            start(id, now + delays[pair]);
        }
    }

    static double round(int n, int pairs) throws IOException {
        System.gc(); // as the peers do
        Random random = new Random(n);
        Bare bare = new Bare(n);
        int[] victims = new int[pairs];
        long[] delays = new long[pairs];
        for (int pair = 0; pair < pairs; pair++) {
            victims[pair] = random.nextInt(n);
            delays[pair] = 1 + random.nextInt(60_000);
        }
        for (int id = 0; id < n; id++) bare.start(id, 1 + random.nextInt(60_000));
        bare.advance(200);
        long began = cpu();
        bare.pairs(victims, delays);
        return (double) (cpu() - began) / pairs;
    }

    static long cpu() throws IOException {
        String own = Path.of("/proc/thread-self").toRealPath().getFileName().toString();
        long sum = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        try (var tasks = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
            for (Path task : tasks)
                if (!task.endsWith(own)) sum += Long.parseLong(Files.readString(task.resolve("schedstat")).split(" ")[0]);
        }
        return sum;
    }

    public static void main(String[] words) throws IOException {
        int n = Integer.parseInt(words[0]), pairs = Integer.parseInt(words[1]), warmUp = Integer.parseInt(words[2]);
        double ns = 0;
        for (int round = 0; round <= warmUp; round++) ns = round(n, pairs);
        System.out.println(ns);
    }
}
