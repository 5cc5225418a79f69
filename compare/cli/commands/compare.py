"""`wheelwork compare`: measure timers, store the run and print a summary."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import click

from compare.bench.task import BY_CLOCK, BY_EVENT, CANCEL_ALL, HOLD, INSERT
from compare.cli.options import (
    Command,
    comparison_from,
    comparison_options,
    json_option,
    traces_argument,
)
from compare.cli.text import table

if TYPE_CHECKING:
    import pyarrow as pa

    from compare.bench.store import Run

Row = dict[str, Any]


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  wheelwork compare
  wheelwork compare requests.trace --workload keepalive --sizes 1e4,1e5
  wheelwork compare --timers delay-queue,hashed-wheel,hashed-wheel/tick=1ms""",
)
@traces_argument
@comparison_options("--out")
@json_option
def compare(traces: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Measure timers side by side, store the run and print a summary.

    Insert, cancel, hold and expiry are measured against the number of pending
    timers, then workloads or TRACEs are replayed. Every timer must first fire
    what the oracle expects.
    """
    from compare.bench.run import run_comparison
    from compare.bench.store import read_run

    path = run_comparison(comparison_from(options, traces))
    run = read_run(path)
    if as_json:
        click.echo(json.dumps(medians(run), indent=1))
    else:
        click.echo(f"{summary(run)}\n\nstored in {path}")


def medians(run: "Run") -> dict[str, Any]:
    """A run as plain values: the median of the samples in place of each sample."""
    return {
        "run": str(run.path),
        "traits": run.manifest["traits"],
        "measurements": list(_without_samples(run.samples.to_pylist())),
        "replays": list(_without_samples(run.replays.to_pylist(maps_as_pydicts="strict"))),
        "memory": run.memory.to_pylist(),
    }


def _without_samples(rows: Iterable[Row]) -> Iterable[Row]:
    samples: dict[str, list[Row]] = {}
    for row in rows:
        key = {name: value for name, value in row.items() if name not in _SAMPLE}
        samples.setdefault(json.dumps(key), []).append(row)
    for what, found in samples.items():
        times = [row["ns_per_operation"] for row in found if row["ns_per_operation"] is not None]
        row = json.loads(what)
        yield row | {
            "parameters": json.loads(row["parameters"]),
            "samples": len(times),
            "ns_per_operation": median(times) if times else None,
        }


_SAMPLE = ("repeat", "seconds", "ns_per_operation")

# ---- text

_SOURCES_ABREAST = 4
_SHORT = 14  # columns of a source: with a name of 20, four of them fit in 80
_TASKS = (INSERT, CANCEL_ALL, HOLD, BY_EVENT, BY_CLOCK)


def summary(run: "Run") -> str:
    """Medians of a run in 80 columns: the measurements of the largest size, and the replays."""
    sources = list(dict.fromkeys(run.replays.column("source").to_pylist()))
    parts = [_measurements(run)] if run.samples.num_rows else []
    for first in range(0, len(sources), _SOURCES_ABREAST):
        parts.append(_replays(run, sources[first : first + _SOURCES_ABREAST]))
    return "\n\n".join("\n".join(lines) for lines in [*parts, _footnotes(run)] if lines)


def _measurements(run: "Run") -> list[str]:
    size = max(run.samples.column("size").to_pylist())
    samples = _grouped(run.samples, "size", "operation", "driver")
    memory = _grouped(run.memory, "capacity")
    rows = [
        ["", *(task.operation for task in _TASKS), "bytes"],
        ["", *("" if task.driver == "none" else f"by {task.driver}" for task in _TASKS)],
    ]
    rows[1].append("per timer")
    for c in run.manifest["traits"]:
        figures = [_figure(samples.get((*_key(c), size, *task), [])) for task in _TASKS]
        held = [row["nbytes_per_timer"] for row in memory.get((*_key(c), size), [])]
        rows.append([_label(c), *figures, f"{held[0]:,.1f}" if held else "-"])
    return [f"ns per operation with {size:,} timers pending", *table(rows)]


def _replays(run: "Run", sources: Sequence[str]) -> list[str]:
    replays = _grouped(run.replays, "source")
    rows = [["", *(_short(source) for source in sources)]]
    for c in run.manifest["traits"]:
        rows.append([_label(c), *(_figure(replays.get((*_key(c), name), [])) for name in sources)])
    return ["ns per operation of a tape, expiries included", *table(rows)]


def _grouped(rows: "pa.Table", *columns: str) -> dict[tuple[Any, ...], list[Row]]:
    """The rows by contestant and these columns."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows.to_pylist():
        found.setdefault(tuple(row[name] for name in ("timer", "parameters", *columns)), []).append(
            row
        )
    return found


def _key(contestant: Row) -> tuple[str, str]:
    from compare.bench.store import parameters_json

    return contestant["timer"], parameters_json(contestant["parameters"])


def _figure(rows: Sequence[Row]) -> str:
    if not rows:
        return "-"
    predicted = rows[0]["predicted_seconds"]
    if predicted is not None:
        return f"~{predicted:,.0f} s" if predicted >= 9.95 else f"~{predicted:.1f} s"
    ns = median(row["ns_per_operation"] for row in rows)
    return f"{ns:,.1f}" if ns < 999.95 else f"{ns:,.0f}"


def _footnotes(run: "Run") -> list[str]:
    from compare.bench.contestant import lateness_text

    contestants = run.manifest["traits"]
    lines = []
    if any(c["engine"] != "compiled" for c in contestants):
        lines.append("*  plain Python loop: not comparable with compiled figures")
    for c in contestants:
        if not c["exact"]:
            lines.append(f"+  {c['label']} fires {lateness_text(c)}")
    statuses = {
        *run.samples.column("status").to_pylist(),
        *run.replays.column("status").to_pylist(),
    }
    if "too long" in statuses:
        budget = run.manifest["parameters"]["budget"]
        lines.append(f"~  predicted time of one run, not run: over the budget of {budget:g} s")
    return lines


def _label(contestant: Row) -> str:
    compiled, exact = contestant["engine"] == "compiled", contestant["exact"]
    return str(contestant["label"]) + ("" if compiled else " *") + ("" if exact else " +")


def _short(source: str) -> str:
    """The name of a workload, or the last part of a trace's path."""
    name = Path(source).name or source
    return name if len(name) <= _SHORT else f"{name[: _SHORT - 1]}~"
