"""`wheelwork purgatory`: run the enqueue experiment, store it and print a summary."""

import json
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

import click

from compare.cli import options
from compare.cli.text import columns, entry
from compare.purgatory import figures
from compare.purgatory.figures import Row
from compare.purgatory.options import QUICK, Experiment

_DEFAULT = Experiment()


def _setting(
    name: str, kind: options.Parsed, help: str, field: str | None = None
) -> options.Decorator:
    """An option whose default is that of the experiment, which is another with --quick."""
    default = getattr(_DEFAULT, field or name.removeprefix("--"))
    text = ",".join(f"{each:_}" for each in default) if isinstance(default, tuple) else default
    return options.option(
        name, kind, f"{help}  [default: {text}]", field=field, default=None, show_default=False
    )


@options.command("""\b
Examples:
  wheelwork purgatory --quick
  wheelwork purgatory --rates 1e4,2e4,5e4 --seconds 5
  wheelwork report --run runs        (the newest run as a page)""")
@options.flag("--quick", "Fewer and shorter trials, other defaults: 10 to 15 seconds.")
@_setting(
    "--rates", options.COUNTS, "Requests in a second; a design that cannot keep up stops there."
)
@_setting("--seconds", options.SECONDS, "Seconds of arrivals in each trial.")
@_setting(
    "--refinements", options.INTEGER, "Rates tried between the last that worked and the next."
)
@_setting("--limits", options.COUNTS, "Limits of the old design's reaper, for the sweep.")
@_setting(
    "--memory", options.COUNT, "MiB that the trials with little memory have.", field="memory_mib"
)
@_setting("--requests", options.COUNT, "Requests of a compiled trial.")
@_setting("--repeats", options.COUNT, "How often each trial is run; the medians are shown.")
@_setting("--timer", options.TIMER, "Timer of the new design.")
@_setting("--seed", options.INTEGER, "Seed of the requests.")
@options.runs("--out", _DEFAULT.runs)
@options.json
def purgatory(quick: bool, as_json: bool, **asked: Any) -> None:
    """Compare two designs of a purgatory, in which requests wait for an answer.

    Requests arrive at rising rates; each waits for 200 ms and watches 3 keys. With
    the load "low" 7.87 % of them time out, with "high" half. The new design takes
    an answered request out of its timer at once. The old one leaves it in a delay
    queue, which a reaper scans. Both run in real time, with threads, and compiled,
    in simulated time. All takes about ten minutes.
    """
    from dataclasses import replace

    from compare.bench.store import read_run
    from compare.purgatory.experiment import run_experiment

    given = {name: value for name, value in asked.items() if value is not None}
    chosen = replace(QUICK if quick else _DEFAULT, **given, command=click.get_current_context().obj)
    path = run_experiment(chosen)
    rows = read_run(path).purgatory.to_pylist(maps_as_pydicts="strict")
    if as_json:
        click.echo(json.dumps({"run": str(path), "trials": rows}, indent=1))
    else:
        click.echo(f"{text_of(rows)}\n\nstored in {path}")


# ---- text

NO_RATE = "none of the rates tried"

_LEGEND = """\
CPU: microseconds of processor time for a request, and the range of the trials;
GC: of these in the garbage collector; MiB: the most memory beyond that at the
start; late: ms that timeouts are late, p50/p99/max; out: the share of the
requests that timed out; scanned: entries of lists and queue that were looked at
for a request"""


def text_of(rows: Sequence[Row]) -> str:
    """The figures of all trials in 80 columns."""
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        kinds.setdefault(row["kind"], []).append(row)
    parts = []
    if found := kinds.get(figures.RATE):
        title = "In real time, at rising rates; three threads of one process; medians"
        parts += [[title, *_trials(found, "rate")], _saturation(found), _totals(found)]
    for kind, title in (
        (figures.LIMIT, "The limit of the reaper"),
        (figures.MEMORY, "Little memory"),
    ):
        if found := kinds.get(kind):
            memory = found[0]["memory_bytes"]
            room = f" and {memory >> 20} MiB more than at the start" if memory else ""
            title = f"{title}: load {found[0]['load']} at {found[0]['rate']:,}/s{room}"
            parts.append([title, *_trials(found, "interval")])
    if found := kinds.get(figures.COMPILED):
        parts.append(["Compiled, in simulated time, on one core", *_compiled(found)])
    return "\n\n".join(["\n".join(lines) for lines in parts] + [_LEGEND])


def _trials(rows: Iterable[Row], varied: str) -> list[str]:
    """A table of trials in which `varied` (a column) is varied."""
    layout = {
        "": ("name", ""),
        {"rate": "rate", "interval": "limit"}[varied]: (varied, ","),
        "achieved": ("achieved", ",.0f"),
        "CPU": ("cpu_us", ".1f"),
        " ": ("range", ""),
        "GC": ("gc_us", ".1f"),
        "MiB": ("mib", ".1f"),
        "late": ("late", ""),
        "out": ("share_expired", ".1%"),
    }
    shown = []
    for trials in _same(rows, varied):
        row, cpu = figures.middle(trials), figures.values_of(trials, "cpu_us")
        name, peak = _name(row) + "*" * bool(row["failed"]), row["peak_bytes"]
        late = [row[f"late_{which}_ms"] for which in ("p50", "p99", "max")]
        shown.append(
            {
                **row,
                "name": name,
                "range": "..".join(map(_short, (cpu[0], cpu[-1]))) if len(cpu) > 1 else "",
                "mib": None if peak is None else peak / 2**20,
                "late": "-" if None in late else "/".join(f"{each:.0f}" for each in late),
            }
        )
    failures = dict.fromkeys(f"*  failed: {row['failed']}" for row in shown if row["failed"])
    return [*columns(shown, layout), *failures]


def _short(us: float) -> str:
    return format(us, ".0f" if us >= 10 else ".1f")


def _name(row: Row) -> str:
    return f"{row['load']:4} {figures.DESIGNS[row['design']]}"


def _same(rows: Iterable[Row], varied: str = "rate") -> Iterable[list[Row]]:
    """The trials of the same thing together."""
    cases: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        cases.setdefault((row["load"], row["design"], row[varied]), []).append(row)
    return cases.values()


def _saturation(rows: Sequence[Row]) -> list[str]:
    lines = []
    found = figures.saturation(rows)
    for load in dict.fromkeys(load for load, _ in found):
        designs = [
            f"{figures.DESIGNS[design]} "
            + (f"{highest:,}/s{'' if failed else ' or more'}" if highest else NO_RATE)
            for (of, design), (highest, failed) in found.items()
            if of == load
        ]
        start = f"Keeps up with, load {load}:"
        lines.append(entry(start, ", ".join(designs), width=len(start) + 1))
    return lines


def _totals(rows: Iterable[Row]) -> list[str]:
    layout = {
        "": ("name", ""),
        "rate": ("rate", ","),
        "estimated total": ("estimated_total", ",.0f"),
        "exact": ("exact_total", ",.0f"),
        "largest difference": ("estimate_error", ",.0f"),
    }
    shown = [
        {**row, "name": _name(row)}
        for row in map(figures.middle, _same(rows))
        if row["estimated_total"] is not None
    ]
    return ["Requests in the lists", *columns(shown, layout)]


def _compiled(rows: Iterable[Row]) -> list[str]:
    layout = {
        "": ("name", ""),
        "rate": ("rate", ","),
        "ns each": ("ns", ",.0f"),
        "M/s": ("throughput", ",.2f"),
        "scanned each": ("scanned", ",.1f"),
        "most queued": ("most_queued", ","),
        "out": ("share_expired", ".1%"),
    }
    shown = []
    for samples in _same(rows):
        us = median(figures.values_of(samples, "cpu_us"))
        first = samples[0]
        found: dict[str, float | None] = {"scanned": figures.scanned(first), "ns": us * 1000}
        found["throughput"] = 1 / us if us else None  # too few requests for the clock
        shown.append({**first, **first["counters"], **found, "name": _name(first)})
    return columns(shown, layout)
