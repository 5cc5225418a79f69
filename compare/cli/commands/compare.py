"""`wheelwork compare`: measure timers, store the run and print a summary."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import click

from compare.cli.options import (
    Command,
    comparison_from,
    comparison_options,
    json_option,
    traces_argument,
)

if TYPE_CHECKING:
    from compare.bench.store import Run

Row = dict[str, Any]


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  wheelwork compare
  wheelwork compare requests.trace --workload keepalive --sizes 1e4,1e5
  wheelwork compare --timers delay-queue,hashed-wheel,hashed-wheel/tick=1""",
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
        yield json.loads(what) | {
            "samples": len(times),
            "ns_per_operation": median(times) if times else None,
        }


_SAMPLE = ("repeat", "seconds", "ns_per_operation")

# ---- text

_FIGURE = 10  # columns of a figure
_LEAST_NAME = 20  # columns of a timer's name; with six figures, 80
_SOURCES_ABREAST = 4
_TASKS = (
    ("insert", "none", "insert"),
    ("cancel", "none", "cancel"),
    ("hold", "none", "hold"),
    ("expiry", "event", "expiry|by event"),
    ("expiry", "clock", "expiry|by clock"),
)


def summary(run: "Run") -> str:
    """Medians of a run in tables of 80 columns: the cells of the largest size, and the replays."""
    contestants: list[Row] = run.manifest["traits"]
    width = max(_LEAST_NAME, *(len(_label(c)) for c in contestants))
    sources: list[str] = list(dict.fromkeys(run.replays.column("source").to_pylist()))
    parts = [_cells(run, contestants, width)] if run.samples.num_rows else []
    for first in range(0, len(sources), _SOURCES_ABREAST):
        parts.append(_replays(run, contestants, sources[first : first + _SOURCES_ABREAST], width))
    return "\n\n".join(
        "\n".join(lines) for lines in [*parts, _footnotes(run, contestants)] if lines
    )


def _cells(run: "Run", contestants: Sequence[Row], width: int) -> list[str]:
    rows: list[Row] = run.samples.to_pylist()
    size = max(row["size"] for row in rows)
    bytes_of = {
        _key(row): row["nbytes_per_timer"]
        for row in run.memory.to_pylist()
        if row["capacity"] == size
    }
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row["size"] == size:
            found.setdefault((*_key(row), row["operation"], row["driver"]), []).append(row)
    headings = [*(heading for _, _, heading in _TASKS), "bytes|per timer"]
    lines = [f"ns per operation with {size:,} timers pending", *_headings(width, headings)]
    for c in contestants:
        figures = [
            _figure(found.get((*_key(c), operation, driver), [])) for operation, driver, _ in _TASKS
        ]
        held = bytes_of.get(_key(c))
        lines.append(_line(_label(c), width, [*figures, "-" if held is None else f"{held:,.1f}"]))
    return lines


def _replays(
    run: "Run", contestants: Sequence[Row], sources: Sequence[str], width: int
) -> list[str]:
    space = 6 * _FIGURE // _SOURCES_ABREAST
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in run.replays.to_pylist():
        found.setdefault((*_key(row), row["source"]), []).append(row)
    lines = ["ns per operation of a tape, expiries included"]
    lines.append(_line("", width, [_short(source, space - 1) for source in sources], space))
    for c in contestants:
        figures = [_figure(found.get((*_key(c), source), [])) for source in sources]
        lines.append(_line(_label(c), width, figures, space))
    return lines


def _figure(rows: Sequence[Row]) -> str:
    if not rows:
        return "-"
    predicted = rows[0]["predicted_seconds"]
    if predicted is not None:
        return f"~{predicted:,.0f} s" if predicted >= 10 else f"~{predicted:.1f} s"
    ns = median(row["ns_per_operation"] for row in rows)
    return f"{ns:,.1f}" if ns < 1000 else f"{ns:,.0f}"


def _headings(width: int, headings: Sequence[str]) -> list[str]:
    parts = [heading.partition("|") for heading in headings]
    return [_line("", width, [part[k] for part in parts]) for k in (0, 2)]


def _line(name: str, width: int, figures: Sequence[str], space: int = _FIGURE) -> str:
    return (f"{name:<{width}}" + "".join(f"{figure:>{space}}" for figure in figures)).rstrip()


def _footnotes(run: "Run", contestants: Sequence[Row]) -> list[str]:
    lines = []
    if any(c["engine"] != "compiled" for c in contestants):
        lines.append("*  plain Python loop: not comparable with compiled figures")
    for c in contestants:
        if not c["exact"]:
            lines.append(
                f"+  {_name(c)} fires {c['lateness_low']} to {c['lateness_high']} units late"
            )
    statuses = {
        *run.samples.column("status").to_pylist(),
        *run.replays.column("status").to_pylist(),
    }
    if "too long" in statuses:
        budget = run.manifest["parameters"]["budget"]
        lines.append(f"~  predicted time of one run, not run: over the budget of {budget:g} s")
    return lines


def _name(contestant: Row) -> str:
    """As on the command line: parameters that are not the defaults, if any."""
    own = [
        f"{name.replace('_', '-')}={value}"
        for name, value in contestant["parameters"].items()
        if value != contestant["defaults"].get(name)
    ]
    return "/".join([contestant["timer"], *own])


def _label(contestant: Row) -> str:
    marks = ("" if contestant["engine"] == "compiled" else " *") + (
        "" if contestant["exact"] else " +"
    )
    return _name(contestant) + marks


def _key(row: Row) -> tuple[str, str]:
    parameters = row["parameters"]
    return row["timer"], parameters if isinstance(parameters, str) else json.dumps(
        parameters, sort_keys=True
    )


def _short(source: str, width: int) -> str:
    """A workload's name, or the last part of a trace's path, cut to the width."""
    name = Path(source).name or source
    return name if len(name) <= width else f"{name[: width - 1]}~"
