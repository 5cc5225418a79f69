package wheelwork;

import java.io.FileOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Appends what timers do to the file of events, whose format is in compare/traffic/recording/recorder.py.
 *
 * <p>The file is mapped, so what was noted stays if the JVM is killed. Its end is zeros. A call is known by one number:
 * that of its timer's shard, times CALLS, plus its own.
 */
public final class Recorder {
    public static final int STARTED = 1, CANCELLED = 2, MOVED = 3;
    private static final int KINDS = 8; // a kind, plus this times the shard
    private static final int EVENT = 4 * Double.BYTES;
    private static final int PAGE = 1 << 20;
    private static final long CALLS = 1L << 40;
    private static final int LAST_SHARD = 999; // has the calls of all further timers

    /** A class of calls that gets a field for their number; 0 if the call is not pending or was not seen. */
    public interface Call {
        long getWheelworkCall();

        void setWheelworkCall(long call);
    }

    /** Kafka's TimerTask. */
    public interface Delay {
        long getWheelworkDelayMs();
    }

    /** Kafka's TimerTaskEntry. */
    public interface Entry {
        Object getWheelworkTask();
    }

    private static final Map<Object, Integer> shards = new WeakHashMap<>();
    private static int nextShard;
    private static long nextCall = CALLS / 2; // the JDK's executors count from 0
    private static RandomAccessFile file; // not a channel, which an interrupted thread would close
    private static FileOutputStream timers;
    private static ByteBuffer page = ByteBuffer.allocate(0); // of the file, from `end` - its capacity
    private static long end;
    private static boolean failed;

    private Recorder() {}

    /** Begin a recording in a new or empty directory. */
    public static void open(String directory) throws IOException {
        Path folder = Path.of(directory);
        Files.createDirectories(folder);
        try (Stream<Path> entries = Files.list(folder)) {
            if (entries.findAny().isPresent()) throw new IllegalStateException(directory + " exists and is not empty");
        }
        timers = new FileOutputStream(folder.resolve("timers").toFile());
        file = new RandomAccessFile(folder.resolve("events").toFile(), "rw");
        file.getChannel().tryLock(); // held as long as this JVM runs
        ProcessHandle.Info process = ProcessHandle.current().info();
        Stream<String> command = Stream.concat(
                Stream.of(process.command().orElse("java")), Arrays.stream(process.arguments().orElse(new String[0])));
        String header = String.format(
                "{\"format\": \"wheelwork-events\", \"version\": 3, \"origin\": %s, \"source\": {\"kind\": \"recording\","
                        + " \"command\": [%s], \"java\": %s, \"began\": \"%s\"}}%n",
                System.nanoTime() / 1e9,
                command.map(Recorder::json).collect(Collectors.joining(", ")),
                json(System.getProperty("java.version")),
                Instant.now().truncatedTo(ChronoUnit.SECONDS));
        file.write(header.getBytes(StandardCharsets.UTF_8));
        end = file.length();
    }

    /** The number of a call of this timer that has one of its own, below CALLS. */
    public static synchronized long call(Object timer, long number) {
        Integer shard = shards.get(timer);
        if (shard == null) {
            shards.put(timer, shard = nextShard);
            if (nextShard < LAST_SHARD) nextShard++;
            describe(timer);
        }
        return shard * CALLS + number;
    }

    /** A new number for a call of this timer. */
    public static synchronized long newCall(Object timer) {
        return call(timer, nextCall++);
    }

    /** Append an event: times in nanoseconds, `delay` from `now` to the deadline. */
    public static synchronized void note(int kind, long call, long now, long delay) {
        if (!page.hasRemaining() && !turnPage()) return;
        int at = page.position();
        page.putDouble(at + 8, now / 1e9).putDouble(at + 16, call % CALLS).putDouble(at + 24, delay / 1e9);
        VarHandle.releaseFence(); // the kind comes last: without it, there is no event
        page.putDouble(at, kind + KINDS * (call / CALLS));
        page.position(at + EVENT);
    }

    private static boolean turnPage() {
        if (failed) return false;
        boolean interrupted = Thread.interrupted(); // to map a page is refused to an interrupted thread
        try {
            // Zeros first: a full disk is an error here, and would be a fault in a page of a sparse file.
            file.seek(end);
            file.write(new byte[PAGE]);
            page = file.getChannel().map(FileChannel.MapMode.READ_WRITE, end, PAGE).order(ByteOrder.LITTLE_ENDIAN);
            end += PAGE;
        } catch (IOException error) {
            failed = true;
            System.err.println("wheelwork: events were lost: " + error.getMessage());
        } finally {
            if (interrupted) Thread.currentThread().interrupt();
        }
        return !failed;
    }

    /** Append a line about a timer: its class, and who set its first call. */
    private static void describe(Object timer) {
        String type = timer.getClass().getName(), own = timer.getClass().getPackageName() + ".";
        String setBy = StackWalker.getInstance().walk(frames -> frames
                .filter(frame -> Stream.of("wheelwork.", "java.", "jdk.", own).noneMatch(frame.getClassName()::startsWith))
                .findFirst()
                .map(frame -> frame.getClassName() + "." + frame.getMethodName() + ":" + frame.getLineNumber())
                .orElse("?"));
        String line = String.format("{\"class\": %s, \"set_by\": %s}%n", json(type), json(setBy));
        try {
            timers.write(line.getBytes(StandardCharsets.UTF_8));
        } catch (IOException error) {
            // The timer is recorded without it.
        }
    }

    private static String json(String text) {
        return text.chars()
                .mapToObj(c -> c < ' ' || c > '~' || c == '"' || c == '\\' ? String.format("\\u%04x", c) : "" + (char) c)
                .collect(Collectors.joining("", "\"", "\""));
    }
}
