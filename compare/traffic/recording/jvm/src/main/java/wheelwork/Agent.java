package wheelwork;

import static net.bytebuddy.matcher.ElementMatchers.declaresField;
import static net.bytebuddy.matcher.ElementMatchers.isConstructor;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.nameEndsWith;
import static net.bytebuddy.matcher.ElementMatchers.none;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.instrument.Instrumentation;
import java.util.concurrent.TimeUnit;
import java.util.jar.JarFile;
import java.util.jar.JarOutputStream;
import java.util.zip.ZipEntry;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.modifier.FieldManifestation;
import net.bytebuddy.description.modifier.Visibility;
import net.bytebuddy.dynamic.DynamicType;
import net.bytebuddy.implementation.FieldAccessor;
import net.bytebuddy.matcher.ElementMatcher;
import net.bytebuddy.utility.JavaModule;

/**
 * Records the timers of a JVM: java -javaagent:wheelwork-agent.jar=DIRECTORY ...
 *
 * <p>The advice below is copied into the methods of the timers. Every class loader sees the Recorder, which is added to
 * the bootstrap class path; so the advice names nothing else of ours. No failure of it reaches the program.
 *
 * <p>As in the recorder of Python programs, the clock is read before a call is set, so that none fires before its
 * recorded deadline.
 */
public final class Agent {
    private static final String CALL = "wheelworkCall", KAFKA = "org.apache.kafka.server.util.timer.";
    private static final String[] SHARED = {"Recorder", "Recorder$Call", "Recorder$Delay", "Recorder$Entry"};

    public static void premain(String directory, Instrumentation instrumentation) {
        try {
            if (directory == null) throw new IllegalStateException("name a directory: -javaagent:JAR=DIRECTORY");
            instrumentation.appendToBootstrapClassLoaderSearch(sharedClasses());
            Recorder.open(directory);
            install(instrumentation);
            System.err.println("wheelwork: recording timers in " + directory);
        } catch (IllegalStateException error) {
            System.err.println("wheelwork: timers are not recorded: " + error.getMessage());
        } catch (Throwable error) {
            System.err.println("wheelwork: timers are not recorded: " + error);
        }
    }

    private static JarFile sharedClasses() throws IOException {
        File jar = File.createTempFile("wheelwork", ".jar");
        jar.deleteOnExit();
        try (JarOutputStream out = new JarOutputStream(new FileOutputStream(jar))) {
            for (String name : SHARED) {
                out.putNextEntry(new ZipEntry("wheelwork/" + name + ".class"));
                try (InputStream bytes = Agent.class.getResourceAsStream(name + ".class")) {
                    bytes.transferTo(out);
                }
            }
        }
        return new JarFile(jar);
    }

    private static void install(Instrumentation instrumentation) {
        // The JDK's class may be loaded already, so it gets no new members.
        new AgentBuilder.Default()
                .disableClassFormatChanges()
                .with(AgentBuilder.RedefinitionStrategy.RETRANSFORMATION)
                .with(new Failures())
                .ignore(none())
                .type(named("java.util.concurrent.ScheduledThreadPoolExecutor$ScheduledFutureTask"))
                .transform((type, d, l, m, p) -> with(with(with(type, ExecutorStart.class, isConstructor()),
                        ExecutorRepeat.class, named("setNextRunTime")),
                        ExecutorCancel.class, named("cancel")))
                .installOn(instrumentation);
        new AgentBuilder.Default()
                .with(new Failures())
                // Netty's, and the copies of it in other packages.
                .type(nameEndsWith(".HashedWheelTimer"))
                .transform((type, d, l, m, p) ->
                        with(type, NettyStart.class, named("newTimeout").and(takesArguments(3))))
                .type(nameEndsWith(".HashedWheelTimer$HashedWheelTimeout").and(declaresField(named("timer"))))
                .transform((type, d, l, m, p) ->
                        with(numbered(type), NettyCancel.class, named("cancel").and(takesArguments(0))))
                .type(named(KAFKA + "SystemTimer"))
                .transform((type, d, l, m, p) -> with(type, KafkaStart.class, named("add")))
                .type(named(KAFKA + "TimerTask"))
                .transform((type, d, l, m, p) -> with(numbered(type), KafkaCancel.class, named("cancel"))
                        .implement(Recorder.Delay.class).intercept(FieldAccessor.ofField("delayMs")))
                .type(named(KAFKA + "TimerTaskEntry"))
                .transform((type, d, l, m, p) ->
                        type.implement(Recorder.Entry.class).intercept(FieldAccessor.ofField("timerTask")))
                .type(named(KAFKA + "TimingWheel"))
                .transform((type, d, l, m, p) -> with(type, KafkaExpiry.class, named("add")))
                .installOn(instrumentation);
    }

    private static DynamicType.Builder<?> with(
            DynamicType.Builder<?> type, Class<?> advice, ElementMatcher.Junction<? super MethodDescription> methods) {
        return type.visit(Advice.to(advice).on(methods));
    }

    private static DynamicType.Builder<?> numbered(DynamicType.Builder<?> type) {
        return type.defineField(CALL, long.class, Visibility.PRIVATE, FieldManifestation.VOLATILE)
                .implement(Recorder.Call.class)
                .intercept(FieldAccessor.ofField(CALL));
    }

    /** Says that a class cannot be recorded; it stays as it is. */
    private static final class Failures extends AgentBuilder.Listener.Adapter {
        @Override
        public void onError(String type, ClassLoader loader, JavaModule module, boolean loaded, Throwable error) {
            System.err.println("wheelwork: " + type + " is not recorded: " + error);
        }
    }

    // The JDK's executor: its calls have numbers, which are unique in the JVM.

    static final class ExecutorStart {
        @Advice.OnMethodExit(suppress = Throwable.class)
        static void exit(
                @Advice.FieldValue("this$0") Object timer,
                @Advice.FieldValue("sequenceNumber") long number,
                @Advice.FieldValue("time") long time) {
            long now = System.nanoTime();
            Recorder.note(Recorder.STARTED, Recorder.call(timer, number), now, time - now);
        }
    }

    static final class ExecutorRepeat {
        @Advice.OnMethodExit(suppress = Throwable.class)
        static void exit(
                @Advice.FieldValue("this$0") Object timer,
                @Advice.FieldValue("sequenceNumber") long number,
                @Advice.FieldValue("time") long time) {
            long now = System.nanoTime();
            Recorder.note(Recorder.MOVED, Recorder.call(timer, number), now, time - now);
        }
    }

    static final class ExecutorCancel {
        @Advice.OnMethodExit(suppress = Throwable.class)
        static void exit(
                @Advice.FieldValue("this$0") Object timer,
                @Advice.FieldValue("sequenceNumber") long number,
                @Advice.Return boolean cancelled) {
            if (cancelled) Recorder.note(Recorder.CANCELLED, Recorder.call(timer, number), System.nanoTime(), 0);
        }
    }

    // Netty

    static final class NettyStart {
        @Advice.OnMethodEnter(suppress = Throwable.class)
        static long enter() {
            return System.nanoTime();
        }

        @Advice.OnMethodExit(suppress = Throwable.class)
        static void exit(
                @Advice.Enter long now,
                @Advice.This Object timer,
                @Advice.Argument(1) long delay,
                @Advice.Argument(2) TimeUnit unit,
                @Advice.Return Object timeout) {
            if (timeout instanceof Recorder.Call) {
                long call = Recorder.newCall(timer);
                ((Recorder.Call) timeout).setWheelworkCall(call);
                Recorder.note(Recorder.STARTED, call, now, unit.toNanos(delay));
            }
        }
    }

    static final class NettyCancel {
        @Advice.OnMethodExit(suppress = Throwable.class)
        static void exit(@Advice.This Object timeout, @Advice.Return boolean cancelled) {
            long call = ((Recorder.Call) timeout).getWheelworkCall();
            if (cancelled && call != 0) Recorder.note(Recorder.CANCELLED, call, System.nanoTime(), 0);
        }
    }

    // Kafka: adding a task that is pending moves it, and a wheel says by `false` that a task is due.

    static final class KafkaStart {
        @Advice.OnMethodEnter(suppress = Throwable.class)
        static void enter(@Advice.This Object timer, @Advice.Argument(0) Object task) {
            Recorder.Call known = (Recorder.Call) task;
            long now = System.nanoTime(), call = known.getWheelworkCall();
            int kind = call == 0 ? Recorder.STARTED : Recorder.MOVED;
            if (call == 0) known.setWheelworkCall(call = Recorder.newCall(timer));
            long delay = ((Recorder.Delay) task).getWheelworkDelayMs();
            Recorder.note(kind, call, now, TimeUnit.MILLISECONDS.toNanos(delay));
        }
    }

    static final class KafkaCancel {
        @Advice.OnMethodExit(suppress = Throwable.class)
        static void exit(@Advice.This Object task) {
            Recorder.Call known = (Recorder.Call) task;
            long call = known.getWheelworkCall();
            if (call == 0) return;
            known.setWheelworkCall(0);
            Recorder.note(Recorder.CANCELLED, call, System.nanoTime(), 0);
        }
    }

    static final class KafkaExpiry {
        @Advice.OnMethodExit(suppress = Throwable.class)
        static void exit(@Advice.Argument(0) Object entry, @Advice.Return boolean isPending) {
            if (!isPending) ((Recorder.Call) ((Recorder.Entry) entry).getWheelworkTask()).setWheelworkCall(0);
        }
    }
}
