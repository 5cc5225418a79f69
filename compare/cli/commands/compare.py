"""`wheelwork compare`: measure timers, store the run and print a summary."""

import json
from typing import TYPE_CHECKING, Any

import click

from compare.cli import options
from compare.trial.bench.comparison import ALL_TAILS, NO_TAILS, Comparison

if TYPE_CHECKING:
    from compare.cli.text import Sheet
    from reports.summary import Summary
    from reports.tables import Table

_DEFAULT = Comparison()


@options.command("""\b
Examples:
  wheelwork compare
  wheelwork compare requests.trace --workload keepalive --sizes 1e4,1e5
  wheelwork compare --timers delay-queue,hashed-wheel,hashed-wheel/tick=1ms
  wheelwork compare --tails --sizes 1e5 --workload hold,markov,server""")
@options.traces_argument
@options.workload
@options.option(
    "--timers",
    options.TIMERS,
    "Timers to compare, e.g. hashed-wheel/tick=5ms or module:Class. "
    "Default: all registered timers.",
    default=_DEFAULT.timers,
)
@options.peers()
@options.flag(
    "--threads",
    "With --peers: also let 1, 2 and 4 threads start and cancel timers at once, in SystemTimer and "
    "in the peers that are made for it.",
)
@options.option(
    "--timeout",
    options.SECONDS,
    "Time limit for a command of a peer, in seconds; a slower peer is left out.",
    default=_DEFAULT.timeout,
)
@options.option("--sizes", options.COUNTS, "Numbers of pending timers.", default=_DEFAULT.sizes)
@options.flag(
    "--tails",
    "Also measure the latency of each operation, wake-ups, the growth of processes, and lateness "
    "under load.",
)
@options.option(
    "--operations", options.COUNT, "Operations per workload.", default=_DEFAULT.operations
)
@options.option("--repeats", options.COUNT, "Maximum number of samples.", default=_DEFAULT.repeats)
@options.option(
    "--budget",
    options.SECONDS,
    "Time limit per timer and size, in seconds; a slower task is skipped at larger sizes.",
    default=_DEFAULT.budget,
)
@options.all_delays
@options.option("--seed", options.INTEGER, "Seed of the workloads.", default=_DEFAULT.seed)
@options.runs(_DEFAULT.runs)
@options.formats
def compare(
    traces: tuple[str, ...],
    workloads: tuple[str, ...],
    as_json: bool,
    as_markdown: bool,
    tails: bool,
    **given: Any,
) -> None:
    """Measure timers side by side, store the run and print a summary.

    Insert, cancel, hold and expiry are measured against the number of pending
    timers, and what services and event loops pay beside asyncio, uvloop and
    threading.Timer; then workloads or TRACEs are replayed. Every expiry is first checked
    against the oracle. If the command is interrupted, what was finished stays in the
    run, which `report --run` shows.
    """
    options.refuse_both({"--json": as_json, "--markdown": as_markdown})
    from compare.cli import printing
    from compare.cli.text import Sheet, shown
    from compare.trial.bench.run import run_comparison
    from compare.trial.results.store import read_run
    from reports.summary import figures_of

    command = click.get_current_context().obj
    path = run_comparison(
        Comparison(
            traces=traces,
            workloads=workloads or None,
            tails=ALL_TAILS if tails else NO_TAILS,
            command=command,
            **given,
        )
    )
    run = read_run(path)
    summary = figures_of(run)
    if as_json:
        click.echo(json.dumps(printing.values(summary, run), indent=1))
    else:
        stored = Sheet(notes=[f"stored in {path}"])
        parts = [*sheets_of(summary, whole=as_markdown), stored]
        click.echo(shown(parts, as_markdown=as_markdown))


def sheets_of(summary: "Summary", *, whole: bool = False) -> "list[Sheet]":
    """The tables of a run at the largest size, with medians; with `whole`, all statistics."""
    from compare.cli import printing
    from reports import overload
    from reports.catalogue import (
        MEDIAN,
        constants,
        idle,
        memory,
        peer_singles,
        peer_times,
        peers,
        services,
        tails,
        threads,
        times,
        workloads,
    )

    figure = {} if whole else {"figure": f"time per operation, {MEDIAN}"}
    parts: list[tuple[Table, dict[str, str | None]]] = [
        (times(summary), {"statistic": None} if whole else {}),
        (tails(summary), {"operation": None}),
        (idle(summary), {"figure": None}),
        (overload.table(summary), {"figure": None}),
        (constants(summary), {}),
        (services(summary), {}),
        (peers(summary), {}),
        (peer_times(summary), {}),
        (peer_singles(summary), {}),
        (threads(summary), {"threads": None}),
        (workloads(summary), {"source": None, **figure}),
        (memory(summary), {}),
    ]
    shown = [
        sheet
        for table, chosen in parts
        if table.rows
        for sheet in printing.sheets(table, whole=whole, **chosen)
    ]
    remarks = printing.remarks(summary)
    return [*printing.noise_sheets(summary.noise), *shown, *([remarks] if remarks.notes else [])]
