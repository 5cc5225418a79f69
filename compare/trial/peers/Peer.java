// The part that all peers written in Java share: arguments, tapes, clocks and JSON (docs/peers.md).
package wheelwork;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongFunction;
import java.util.function.Supplier;

public final class Peer {
    // from shared.py: begin
    // A tape begins with it and a zero byte.
    private static final String MAGIC = "WHLTAPE";
    // Of a tape; in bytes.
    private static final int VERSION = 1, HEADER = 64, ALIGNMENT = 8;
    // Where the int64s of the header are.
    private static final int VERSION_AT = 8, OPERATIONS_AT = 24, ID_SPACE_AT = 32, FIRST_TIME_AT = 40, PHASES_AT = 48;
    // Operations.
    private static final int START = 0, CANCEL = 1, REARM = 2, ARM = 3;
    // The bins of a histogram: enough for 2^63 ns.
    private static final int BINS = 496;
    // Defaults of options.
    private static final int ROUNDS = 7, WARM_UP = 5, THREADS_ROUNDS = 1, PRODUCERS = 2;
    // What a row of `threads` says.
    private static final int REFUSED = 0, DONE = 1, RAN = 2;
    // A unit of `threads`; how long it waits for a call, and then for one that is too many.
    private static final int UNIT_NS = 1000000, GRACE_MS = 5000, SETTLE_MS = 50;
    // The exit code for a bad command or tape.
    private static final int BAD_INPUT = 2;
    // Problems of a tape, after its path.
    private static final String NO_TAPE = "is not a tape", CUT = "is cut short";
    // The usage.
    private static final String COMMANDS = "describe | check TAPE OUT | time TAPE";
    // The members of a line of `time` and `threads`.
    private static final String COMMON = "{\"round\": %d, \"phase\": %d, \"operations\": %d, \"expired\": %d, \"wall_ns\": %d, \"process_ns\": %d";
    // And those that `threads` may leave out.
    private static final String OWN = ", \"thread_ns\": %d, \"memory_bytes\": %d";
    // from shared.py: end

    /** A timer that is pending until it fires or is cancelled; structures may extend it. */
    public static class Timer {
        public long operation, deadline; // the operation that last armed it
        public boolean isPending = true;

        public Timer(long operation, long deadline) {
            this.operation = operation;
            this.deadline = deadline;
        }
    }

    /** Receives what fires, in order. */
    public interface Fired {
        void fire(long operation, long firedAt);
    }

    /** A timer structure; H is what the caller keeps of a timer. */
    public interface Structure<H> {
        H start(long operation, long deadline);

        /** Cancel a timer; false if it is not pending. */
        boolean cancel(H handle);

        /** Re-arm a timer and return its new handle; null if it is not pending. */
        default H rearm(H handle, long operation, long deadline) {
            return cancel(handle) ? start(operation, deadline) : null;
        }

        void advance(long now, Fired fired);

        /** When to advance next; something is pending. */
        long nextWakeup();

        /** The number of pending timers. */
        long size();

        /** What the structure has counted so far, by name. */
        default Map<String, Long> counts() {
            return Map.of();
        }
    }

    /** A timer for several threads, in real time; H is what the caller keeps of a call. */
    public interface Service<H> {
        /** Make a call in `delay` ms. */
        H start(long delay, Runnable call);

        /** Cancel a call; false if it is not pending. */
        boolean cancel(H handle);

        /** End its threads; nothing is pending. */
        void close();
    }

    /** A parameter of the structure: from the environment, or else the default. */
    public static int parameter(String name, int otherwise) {
        String given = System.getenv("WHEELWORK_" + name.toUpperCase());
        return given == null ? otherwise : Integer.parseInt(given);
    }

    private static final class BadTape extends Exception {
        BadTape(String message) {
            super(message);
        }
    }

    private static final class Tape {
        final long firstTime;
        final int operations, idSpace;
        final long[] first, time, deadline;
        final byte[] op;
        final int[] id;

        Tape(String path) throws IOException, BadTape {
            ByteBuffer data = ByteBuffer.wrap(Files.readAllBytes(Path.of(path)));
            data.order(ByteOrder.LITTLE_ENDIAN);
            byte[] magic = (MAGIC + "\0").getBytes(StandardCharsets.US_ASCII);
            if (data.capacity() < HEADER || !data.slice(0, magic.length).equals(ByteBuffer.wrap(magic)))
                throw new BadTape(path + " " + NO_TAPE);
            if (data.getLong(VERSION_AT) != VERSION)
                throw new BadTape(
                        path + " is a tape of version " + data.getLong(VERSION_AT) + "; this peer reads " + VERSION);
            operations = Math.toIntExact(data.getLong(OPERATIONS_AT));
            idSpace = Math.toIntExact(data.getLong(ID_SPACE_AT));
            firstTime = data.getLong(FIRST_TIME_AT);
            int phases = Math.toIntExact(data.getLong(PHASES_AT)), n = operations;
            long size = HEADER + 8L * phases + 16L * n + up(n) + up(4L * n);
            if (data.capacity() < size) throw new BadTape(path + " " + CUT);
            first = new long[phases];
            time = new long[n];
            deadline = new long[n];
            op = new byte[n];
            id = new int[n];
            data.position(HEADER).slice().order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(first);
            int at = HEADER + 8 * phases;
            data.position(at).slice().order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(time);
            data.position(at += 8 * n).slice().get(op);
            data.position(at += (int) up(n)).slice().order(ByteOrder.LITTLE_ENDIAN).asIntBuffer().get(id);
            data.position(at += (int) up(4L * n)).slice().order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(deadline);
        }

        static long up(long bytes) {
            return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        }
    }

    /** A structure that does a tape, phase by phase. `rows` has four numbers for each expiry. */
    private static final class Run<H> implements Fired {
        final Tape tape;
        final Structure<H> structure;
        final H[] handles;
        final long early;
        long[] rows;
        long now, before, wakeUps;
        int count;
        boolean mayBeDue;

        @SuppressWarnings("unchecked")
        Run(LongFunction<Structure<H>> make, Tape tape, long early, long[] rows) {
            this.tape = tape;
            this.early = early;
            this.rows = rows;
            structure = make.apply(tape.firstTime);
            handles = (H[]) new Object[tape.idSpace];
            now = tape.firstTime;
        }

        @Override
        public void fire(long operation, long firedAt) {
            int at = 4 * count++;
            if (at == rows.length) rows = Arrays.copyOf(rows, 2 * at);
            rows[at] = operation;
            rows[at + 1] = before;
            rows[at + 2] = now;
            rows[at + 3] = firedAt;
        }

        void advance(long moment, long before) {
            this.before = before;
            now = moment;
            structure.advance(moment, this);
        }

        void operations(int from, int to) {
            for (int k = from; k < to; k++) {
                if (tape.time[k] > now || mayBeDue) advance(tape.time[k], k);
                mayBeDue = false;
                int id = tape.id[k];
                byte op = tape.op[k];
                long deadline = tape.deadline[k];
                H handle = op == START ? null : handles[id];
                if (op == CANCEL) {
                    if (handle != null) structure.cancel(handle);
                    handles[id] = null;
                    continue;
                }
                if (handle != null) handle = structure.rearm(handle, k, deadline);
                if (handle == null && op != REARM) handle = structure.start(k, deadline);
                handles[id] = handle;
                mayBeDue = handle != null && deadline - now <= early;
            }
        }

        void advanceOnce() {
            advance(Math.max(structure.nextWakeup(), now), tape.operations);
        }

        void drain() {
            for (; structure.size() > 0; wakeUps++) advanceOnce();
        }

        String counts() {
            Map<String, Long> counts = new TreeMap<>(structure.counts());
            counts.put("wake_ups", wakeUps);
            return counts.toString().replaceAll("(\\w+)=", "\"$1\": ");
        }

        /**
         * Time each operation, or each advance of the drain, on its own. The bins are powers of two of
         * ns, eight in each; the counts end with one that is not 0.
         */
        String singly(int from, int to, boolean drains) {
            int[] counts = new int[BINS];
            int last = -1;
            for (int k = from; drains ? structure.size() > 0 : k < to; k++) {
                long started = System.nanoTime();
                if (drains) advanceOnce();
                else operations(k, k + 1);
                long ns = System.nanoTime() - started;
                int exponent = Math.max(60 - Long.numberOfLeadingZeros(ns), 0);
                int bin = 8 * exponent + (int) (ns >> exponent);
                counts[bin]++;
                last = Math.max(last, bin);
            }
            return ", \"histogram\": " + Arrays.toString(Arrays.copyOf(counts, last + 1));
        }
    }

    /** Threads that divide a tape of starts and cancels by id. `rows` has room if they are recorded. */
    private static final class Producers<H> {
        final Service<H> service;
        final Tape tape;
        final int threads;
        final long[] rows; // operation, what, begin, end: a call each, and then expiries
        final H[] handles;
        final AtomicInteger expired = new AtomicInteger(), cancelled = new AtomicInteger();

        @SuppressWarnings("unchecked")
        Producers(Service<H> service, Tape tape, int threads, boolean records) {
            this.service = service;
            this.tape = tape;
            this.threads = threads;
            rows = new long[records ? 4 * (2 * tape.operations + 1000) : 0];
            handles = (H[]) new Object[tape.idSpace];
        }

        void record(int row, long operation, long what, long begin) {
            if (4 * row >= rows.length) return;
            rows[4 * row] = operation;
            rows[4 * row + 1] = what;
            rows[4 * row + 2] = begin;
            rows[4 * row + 3] = System.nanoTime();
        }

        void produce(int number, int from, int to) {
            int took = 0;
            for (int k = from; k < to; k++) {
                int id = tape.id[k], operation = k;
                if (id % threads != number) continue;
                long begin = rows.length > 0 ? System.nanoTime() : 0, done = DONE;
                if (tape.op[k] == CANCEL) {
                    done = service.cancel(handles[id]) ? DONE : REFUSED;
                    took += (int) done;
                } else {
                    handles[id] = service.start(tape.deadline[k] - tape.time[k], () -> run(operation));
                }
                record(k, k, done, begin);
            }
            cancelled.addAndGet(took);
        }

        void run(int operation) {
            record(tape.operations + expired.getAndIncrement(), operation, RAN, rows.length > 0 ? System.nanoTime() : 0);
        }

        /** Wait for all that was not cancelled, at most for the grace, and then for what is too many. */
        void settle() throws InterruptedException {
            int starts = 0;
            for (byte op : tape.op) if (op == START) starts++;
            for (int turn = 0; turn < GRACE_MS && expired.get() + cancelled.get() < starts; turn++) Thread.sleep(1);
            Thread.sleep(SETTLE_MS);
            service.close();
        }
    }

    /** Let producers do a tape in real time. The CPU time is that of the process, the collector's too. */
    private static <H> void threads(Tape tape, Supplier<Service<H>> serve, List<String> words) throws Exception {
        int count = option(words, "--threads", PRODUCERS), rounds = option(words, "--rounds", THREADS_ROUNDS);
        int out = words.indexOf("--out"), phases = tape.first.length;
        for (int round = -option(words, "--warm-up", 0); round < rounds; round++) {
            Producers<H> run = new Producers<>(serve.get(), tape, count, out >= 0);
            CyclicBarrier gate = new CyclicBarrier(count + 1);
            int[] spans = new int[phases + 2];
            Arrays.fill(spans, tape.operations);
            for (int phase = 0; phase < phases; phase++) spans[phase] = (int) tape.first[phase];
            for (int each = 0; each < count; each++) {
                int number = each;
                Thread producer = new Thread(() -> {
                    try {
                        for (int phase = 0; phase < phases; phase++) {
                            gate.await();
                            run.produce(number, spans[phase], spans[phase + 1]);
                            gate.await();
                        }
                    } catch (Throwable error) {
                        System.err.println(error);
                        System.exit(1);
                    }
                });
                producer.setDaemon(true);
                producer.start();
            }
            for (int phase = 0; phase <= phases; phase++) {
                int expired = run.expired.get();
                long process = processCpuTime(), wall = System.nanoTime();
                if (phase == phases) {
                    run.settle();
                } else {
                    gate.await();
                    gate.await();
                }
                wall = System.nanoTime() - wall;
                process = Math.max(processCpuTime() - process, 0);
                if (round >= 0)
                    System.out.printf(
                            COMMON + "}%n",
                            round, phase, spans[phase + 1] - spans[phase], run.expired.get() - expired, wall, process);
            }
            if (out >= 0 && round + 1 == rounds) {
                int most = Math.min(4 * (tape.operations + run.expired.get()), run.rows.length);
                write(words.get(out + 1), run.rows, most);
            }
        }
    }

    private static long processCpuTime() throws IOException {
        return othersCpuTime() + ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    private static void write(String path, long[] numbers, int count) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(8 * count).order(ByteOrder.LITTLE_ENDIAN);
        bytes.asLongBuffer().put(numbers, 0, count);
        Files.write(Path.of(path), bytes.array());
    }

    private Peer() {}

    /** Run one of the protocol's commands. `early`: units by which a timer may fire too early. */
    public static <H> void main(
            String name, String description, long early, LongFunction<Structure<H>> make, String[] arguments)
            throws IOException {
        main(name, description, early, make, null, arguments);
    }

    /** The same for a library that is for several threads: `serve` starts it in real time. */
    public static <H, S> void main(
            String name, String description, long early, LongFunction<Structure<H>> make,
            Supplier<Service<S>> serve, String[] arguments)
            throws IOException {
        List<String> words = List.of(arguments);
        String command = words.isEmpty() ? "" : words.get(0);
        try {
            if (command.equals("describe")) {
                System.out.println(description);
            } else if (command.equals("check") && words.size() == 3) {
                Run<H> run = new Run<>(make, new Tape(words.get(1)), early, new long[1 << 10]);
                run.operations(0, run.tape.operations);
                run.drain();
                write(words.get(2), run.rows, 4 * run.count);
            } else if (command.equals("threads") && words.size() >= 2 && serve != null) {
                threads(new Tape(words.get(1)), serve, words);
            } else if (command.equals("time") && words.size() >= 2) {
                time(
                        new Tape(words.get(1)), early, make,
                        option(words, "--rounds", ROUNDS), option(words, "--warm-up", WARM_UP),
                        option(words, "--histogram", 0) > 0);
            } else {
                throw new BadTape("usage: " + COMMANDS);
            }
        } catch (BadTape | IOException error) {
            System.err.println(name + ": " + error.getMessage());
            System.exit(BAD_INPUT);
        } catch (Throwable error) { // a library's; in one line
            System.err.println(name + ": " + error + " at " + error.getStackTrace()[0]);
            System.exit(1);
        }
        System.exit(0); // whatever threads a library has started
    }

    private static int option(List<String> words, String name, int otherwise) {
        int at = words.indexOf(name);
        return at < 0 ? otherwise : Integer.parseInt(words.get(at + 1));
    }

    private static <H> void time(
            Tape tape, long early, LongFunction<Structure<H>> make, int rounds, int warmUp, boolean withHistogram)
            throws IOException {
        var threads = ManagementFactory.getThreadMXBean();
        long[] rows = new long[4 * (tape.operations + 1)];
        Arrays.fill(rows, 1);
        long before = resident("VmRSS:"), memory = -1;
        for (int round = -warmUp; round < rounds; round++) {
            System.gc(); // a round pays for collections that its own garbage causes
            Run<H> run = new Run<>(make, tape, early, rows);
            for (int phase = 0; phase <= tape.first.length; phase++) {
                boolean drains = phase == tape.first.length;
                int from = drains ? 0 : (int) tape.first[phase];
                int to = drains ? 0 : phase + 1 < tape.first.length ? (int) tape.first[phase + 1] : tape.operations;
                int expired = run.count;
                String histogram = "";
                long others = othersCpuTime(), wall = System.nanoTime();
                long thread = threads.getCurrentThreadCpuTime();
                if (withHistogram) histogram = run.singly(from, to, drains);
                else if (drains) run.drain();
                else run.operations(from, to);
                thread = threads.getCurrentThreadCpuTime() - thread;
                wall = System.nanoTime() - wall;
                others = othersCpuTime() - others;
                if (drains && memory < 0) memory = Math.max(resident("VmHWM:") - before, 0);
                if (round >= 0)
                    System.out.printf(
                            COMMON + OWN + ", \"counts\": %s%s}%n",
                            round, phase, to - from, run.count - expired, wall, thread + Math.max(others, 0),
                            thread, memory, run.counts(), histogram);
            }
        }
    }

    /**
     * The CPU time of the other threads, such as the garbage collector's, in ns. The time of the whole
     * process has a resolution of 10 ms in Java, which is too coarse.
     */
    private static long othersCpuTime() throws IOException {
        Path tasks = Path.of("/proc/self/task");
        if (!Files.exists(tasks)) return 0;
        String own = Path.of("/proc/thread-self").toRealPath().getFileName().toString();
        long sum = 0;
        try (var folders = Files.newDirectoryStream(tasks)) {
            for (Path task : folders)
                if (!task.endsWith(own)) sum += cpuTime(task);
        }
        return sum;
    }

    private static long cpuTime(Path task) {
        try {
            return Long.parseLong(Files.readString(task.resolve("schedstat")).split(" ")[0]);
        } catch (IOException ended) { // while its folder was read
            return 0;
        }
    }

    private static long resident(String field) throws IOException {
        Path status = Path.of("/proc/self/status");
        if (!Files.exists(status)) return 0;
        for (String line : Files.readAllLines(status))
            if (line.startsWith(field)) return 1024 * Long.parseLong(line.replaceAll("\\D", ""));
        return 0;
    }
}
