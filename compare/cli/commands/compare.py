"""`wheelwork compare`: measure timers, store the run and print a summary."""

import json
from collections.abc import Iterable, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

import click

from compare.cli import options
from compare.cli.text import table
from compare.trial.bench.calls import SERVICE
from compare.trial.bench.comparison import Comparison
from compare.trial.bench.task import BY_CLOCK, BY_EVENT, CANCEL_ALL, HOLD, INSERT

if TYPE_CHECKING:
    from compare.trial.bench.store import Run
    from reports.statistics import Spread
    from reports.summary import StoredContestant, StoredSource, Summary

Row = dict[str, Any]

_DEFAULT = Comparison()


@options.command("""\b
Examples:
  wheelwork compare
  wheelwork compare requests.trace --workload keepalive --sizes 1e4,1e5
  wheelwork compare --timers delay-queue,hashed-wheel,hashed-wheel/tick=1ms""")
@options.traces_argument
@options.workload
@options.option(
    "--timers",
    options.TIMERS,
    "Timers to compare, e.g. hashed-wheel/tick=5ms or module:Class. "
    "Default: all registered timers.",
    default=_DEFAULT.timers,
)
@options.option("--sizes", options.COUNTS, "Numbers of pending timers.", default=_DEFAULT.sizes)
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
@options.option("--seed", options.INTEGER, "Seed of the workloads.", default=_DEFAULT.seed)
@options.runs(_DEFAULT.runs)
@options.json
def compare(
    traces: tuple[str, ...], workloads: tuple[str, ...], as_json: bool, **given: Any
) -> None:
    """Measure timers side by side, store the run and print a summary.

    Insert, cancel, hold and expiry are measured against the number of pending
    timers; then workloads or TRACEs are replayed. Every expiry is first checked
    against the oracle.
    """
    from compare.trial.bench.run import run_comparison
    from compare.trial.bench.store import read_run
    from reports.summary import figures_of

    command = click.get_current_context().obj
    path = run_comparison(
        Comparison(traces=traces, workloads=workloads or None, command=command, **given)
    )
    run = read_run(path)
    if as_json:
        click.echo(json.dumps(medians(run), indent=1))
    else:
        summary = figures_of(run)
        parts = [text_of(summary), *calls_text(summary), f"stored in {path}"]
        click.echo("\n\n".join(parts))


def medians(run: "Run") -> dict[str, Any]:
    """The run as plain values, with the median of the samples of each measurement."""
    return {
        "run": str(run.path),
        "traits": run.manifest["traits"],
        "measurements": list(_without_samples(run.samples.to_pylist())),
        "calls": list(_without_samples(run.calls.to_pylist())),
        "replays": list(_without_samples(run.replays.to_pylist(maps_as_pydicts="strict"))),
        "memory": run.memory.to_pylist(),
    }


def _without_samples(rows: Iterable[Row]) -> Iterable[Row]:
    samples: dict[str, list[float]] = {}
    for row in rows:
        key = {name: value for name, value in row.items() if name not in _SAMPLE}
        times = samples.setdefault(json.dumps(key), [])
        if row["ns_per_operation"] is not None:
            times.append(row["ns_per_operation"])
    for key_text, times in samples.items():
        ns = median(times) if times else None
        yield json.loads(key_text) | {"samples": len(times), "ns_per_operation": ns}


_SAMPLE = ("repeat", "seconds", "ns_per_operation")

# ---- text

_SOURCES_ABREAST = 4
_SHORT = 14  # columns of a source: with a name of 20, four of them fit in 80
_TASKS = (INSERT, CANCEL_ALL, HOLD, BY_EVENT, BY_CLOCK)


def text_of(summary: "Summary") -> str:
    """Format medians of a run in 80 columns: measurements of the largest size, and replays."""
    sources = list(summary.replays)
    parts = [_measurements(summary)] if summary.cells else []
    for first in range(0, len(sources), _SOURCES_ABREAST):
        parts.append(_replays(summary, sources[first : first + _SOURCES_ABREAST]))
    return "\n\n".join("\n".join(lines) for lines in [*parts, _footnotes(summary)] if lines)


def _measurements(summary: "Summary") -> list[str]:
    size = summary.sizes[-1]
    drivers = ("" if task.driver == "none" else f"by {task.driver}" for task in _TASKS)
    rows = [["", *(task.operation for task in _TASKS), "bytes"], ["", *drivers, "per timer"]]
    for contestant in summary.contestants:
        memory = summary.memory.get(contestant, {}).get(size)
        figures = (
            _figure(summary.cells.get(task, {}).get(contestant, {}).get(size)) for task in _TASKS
        )
        rows.append([_label(contestant), *figures, f"{memory.at_rest:,.1f}" if memory else "-"])
    return [f"ns per operation with {size:,} timers pending", *table(rows)]


def _replays(summary: "Summary", sources: Sequence["StoredSource"]) -> list[str]:
    columns = [summary.replayed(source) for source in sources]
    rows = [["", *(_short(summary.called(source)) for source in sources)]]
    for contestant in summary.contestants:
        rows.append([_label(contestant), *(_figure(cells.get(contestant)) for cells in columns)])
    return ["ns per replayed operation, expiries included", *table(rows)]


def calls_text(summary: "Summary") -> list[str]:
    """Format the median costs of single calls and of batches from Python, if they were measured."""
    ways = sorted(summary.calls, key=lambda way: (way[0] == SERVICE, way[1]))
    if not ways:
        return []
    headings = ("SystemTimer" if name == SERVICE else f"{batch:,}" for name, batch in ways)
    rows = [["", *headings]]
    for contestant in summary.contestants:
        cells = [summary.calls[way].get(contestant) for way in ways]
        if any(cells):
            rows.append([contestant.label, *map(_figure, cells)])
    for loop, cell in summary.loops.items():  # one timer per call, as in the first column
        rows.append([f"{loop} call_later", _figure(cell), *["-"] * (len(ways) - 1)])
    title = "ns of CPU per schedule + cancel from Python, by timers per call"
    return ["\n".join([title, *table(rows)])]


def _figure(cell: "Spread | None") -> str:
    if cell is None:
        return "-"
    return f"{cell.level:,.1f}" if cell.level < 999.95 else f"{cell.level:,.0f}"


def _footnotes(summary: "Summary") -> list[str]:
    lines = []
    if not all(contestant.compiled for contestant in summary.contestants):
        lines.append("*  plain Python loop: not comparable with compiled figures")
    for contestant in summary.contestants:
        if not contestant.exact:
            lines.append(f"+  {contestant.label} fires {contestant.precision}")
    lines += [f"-  {text}" for text in summary.stopped("{:,}".format)]
    return lines


def _label(contestant: "StoredContestant") -> str:
    return contestant.label + " *" * (not contestant.compiled) + " +" * (not contestant.exact)


def _short(name: str) -> str:
    if len(name) <= _SHORT:
        return name
    # Of a path, the end: several traces may have one name.
    return f"~{name[1 - _SHORT :]}" if "/" in name else f"{name[: _SHORT - 1]}~"
