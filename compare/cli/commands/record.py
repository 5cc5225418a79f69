"""`wheelwork record`: run a program and record its timers as a trace."""

import signal

import click

from compare.cli import options
from compare.cli.text import plural


@options.command("""\b
Examples:
  wheelwork record --out app.trace -- python app.py --port 8080
  wheelwork record --out app.trace -- uvicorn app:app
  wheelwork replay app.trace --timers hierarchical-wheel,delay-queue
  wheelwork report app.trace""")
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="-- PROGRAM [ARGUMENT]...")
@options.new_trace()
def record(program: tuple[str, ...], out: str, force: bool) -> int:
    """Run a Python program, and record every timer that it sets.

    Timers of asyncio, uvloop, threading.Timer, sched and this project's services
    are recorded, with real deadlines, starts, cancels and re-arms, in
    microseconds. The program runs as it would without the recorder. Its exit code
    is passed on, with a warning if no timer was seen. Only the first Python
    process is recorded, with all its threads; its child processes are not.

    If the program is killed, the next `replay` or `report` completes the trace;
    at most the last second is missing.
    """
    if not program:
        raise click.UsageError("name the program to run, after --: -- python app.py")

    from compare.traffic.recording import record_program

    code, trace = record_program(program, out, force=force)
    line = f"recorded {plural(trace.totals['starts'], 'timer')} in {out}"
    if code < 0 and code != -signal.SIGINT:  # Python ends in order, and then by this signal
        line += f" (killed by signal {-code}: its last second may be missing)"
    if not trace.totals["starts"]:
        line += (
            "; warning: only timers of asyncio, uvloop, threading.Timer, sched and wheelwork are"
            " seen, not those of another event loop such as rloop"
        )
    click.echo(f"wheelwork: {line}", err=True)
    return code if code >= 0 else 128 - code  # as shells do
