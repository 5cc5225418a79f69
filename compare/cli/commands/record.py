"""`wheelwork record`: run a program and record its timers as a trace."""

import signal

import click

from compare.cli import options
from compare.cli.text import plural


@options.command("""\b
Examples:
  wheelwork record --out app.trace -- python app.py --port 8080
  wheelwork record --out app.trace -- uvicorn app:app
  java $(wheelwork record --jvm --out app.trace) -jar app.jar
  wheelwork replay app.trace --timers hierarchical-wheel,delay-queue
  wheelwork report app.trace""")
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="-- PROGRAM [ARGUMENT]...")
@options.new_trace()
@options.flag("--jvm", "Print the option with which a JVM records its timers.")
def record(program: tuple[str, ...], out: str, force: bool, jvm: bool) -> int:
    """Run a Python program, and record every timer that it sets.

    Timers of asyncio, uvloop, rloop, trio, threading.Timer, sched and this
    project's services are recorded, with real deadlines, starts, cancels and
    re-arms, in microseconds. The program runs as it would without the recorder. Its exit code
    is passed on, with a warning if no timer was seen. Only the first Python
    process is recorded, with all its threads; its child processes are not.

    If the program is killed, the next `replay` or `report` completes the trace;
    at most the last second is missing.

    With --jvm, no program is run. The command builds an agent with Maven, and
    prints the option with which `java` loads it. The JVM then records the timers
    of Netty, the JDK's scheduled executors and Kafka, a shard for each timer. The
    first `replay` or `report` after its end completes the trace.
    """
    if jvm:
        return _jvm(program, out, force)
    if not program:
        raise click.UsageError("name the program to run, after --: -- python app.py")

    from compare.traffic.recording import record_program

    code, trace = record_program(program, out, force=force)
    line = f"recorded {plural(trace.totals['starts'], 'timer')} in {out}"
    if code < 0 and code != -signal.SIGINT:  # Python ends in order, and then by this signal
        line += f" (killed by signal {-code}: its last second may be missing)"
    if not trace.totals["starts"]:
        line += (
            "; warning: only timers of asyncio, uvloop, rloop, trio, threading.Timer, sched and"
            " wheelwork are seen, not those of another event loop such as gevent's"
        )
    click.echo(f"wheelwork: {line}", err=True)
    return code if code >= 0 else 128 - code  # as shells do


def _jvm(program: tuple[str, ...], out: str, force: bool) -> int:
    if program:
        raise click.UsageError("--jvm runs no program: start the JVM with the option it prints")
    if force:
        raise click.UsageError("--jvm replaces no trace: leave out --force, and choose a new --out")

    from compare.traffic.recording import jvm_option

    click.echo(jvm_option(out))
    click.echo(
        "wheelwork: start the JVM with this option, as in java OPTION -jar app.jar; when it has"
        f" ended: wheelwork report {out}",
        err=True,
    )
    return 0
