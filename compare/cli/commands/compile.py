"""`wheelwork compile`: compile everything ahead of time."""

import tempfile
from pathlib import Path

import click

from compare.cli import options


@options.command("""\b
Example, in the Dockerfile of a container image after the installation:
  wheelwork compile""")
def compile() -> None:  # the name of the command
    """Compile the timers and the commands, so that no later run has to.

    The compiled code is kept beside the package, or in NUMBA_CACHE_DIR. It is an
    error if it cannot be written there.
    Without this command, code is compiled when it is first used.
    """
    from compare.traffic.logs.ingest import ingest_requests, ingest_touches
    from compare.traffic.logs.options import LogOptions
    from compare.trial.bench.comparison import ALL_TAILS, Comparison
    from compare.trial.bench.run import run_comparison
    from compare.trial.oracle.deliveries import compile_first_fault
    from compare.trial.pipeline.generate import generate
    from compare.trial.pipeline.replay import replay_trace
    from compare.trial.pipeline.verify import verify
    from compare.trial.replay.contestant import contestant
    from timers import CascadingWheel
    from timers.errors import ParameterError
    from timers.kernels import jit
    from timers.registry import names
    from timers.schemes.base import load_code
    from timers.services import SystemTimer

    if not jit.can_cache():
        raise ParameterError("nothing was compiled, as it could not be kept")
    for name in names():
        timer = contestant(name)
        load_code(timer.new("unit"))
        load_code(timer.new("unit", counting=True), "move_all")
    SystemTimer(CascadingWheel(), start=False)
    compile_first_fault()
    # Small runs of the commands compile what these use.
    with tempfile.TemporaryDirectory(prefix="wheelwork-") as folder:
        run_comparison(
            Comparison(
                sizes=(64,), tails=ALL_TAILS, operations=1000, repeats=1, runs=f"{folder}/runs"
            )
        )
        trace = generate("keepalive", f"{folder}/trace", operations=1000)
        verify(replay_trace(trace, names(), f"{folder}/results").path)
        replay_trace(trace, names(), f"{folder}/counted", counting=True)
        table, lines = Path(folder, "log.csv"), Path(folder, "log.json")
        options_ = LogOptions("time")
        table.write_text("time,duration\n1,0.5\n")
        lines.write_text('{"time":1,"key":"a"}\n' * 10_000)  # few are read by Python
        ingest_requests(table, f"{folder}/requests", options_, duration="duration", timeout="5s")
        ingest_touches(lines, f"{folder}/touches", options_, key="key", idle="5s")
    click.echo("compiled")
