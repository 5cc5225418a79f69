"""`wheelwork purgatory`: run the enqueue experiment, store it and print a summary."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import click
from click.core import ParameterSource

from compare.cli import options
from compare.cli.text import Sheet, figure, shown
from compare.trial.purgatory import figures
from compare.trial.purgatory.figures import Row
from compare.trial.purgatory.options import QUICK, Experiment

_DEFAULT = Experiment()


def _setting(
    name: str, kind: options.Parsed, help: str, field: str | None = None
) -> options.Decorator:
    """Declare an option with the default of the experiment."""
    default = getattr(_DEFAULT, field or name.removeprefix("--"))
    return options.option(name, kind, help, field=field, default=default)


@options.command("""\b
Examples:
  wheelwork purgatory --quick
  wheelwork purgatory --rates 1e4,2e4,5e4 --seconds 5
  wheelwork report --run runs        (the newest run as a page)""")
@options.flag("--quick", "Use the defaults of a short run: 10 to 15 seconds.")
@_setting(
    "--rates",
    options.COUNTS,
    "Requests per second to try; a design stops at the first rate it cannot sustain.",
)
@_setting("--seconds", options.SECONDS, "Duration of the arrivals in each trial.")
@_setting(
    "--refinements",
    options.INTEGER,
    "Rates to try between the last sustained and the next.",
)
@_setting("--limits", options.COUNTS, "Reaper limits of the old design to try.")
@_setting("--memory", options.COUNT, "MiB available in the low-memory trials.", "memory_mib")
@_setting("--repeats", options.COUNT, "Runs of each trial; medians are shown.")
@_setting("--timer", options.TIMER, "Timer of the new design.")
@_setting("--seed", options.INTEGER, "Seed of the requests.")
@options.runs(_DEFAULT.runs)
@options.formats
def purgatory(quick: bool, as_json: bool, as_markdown: bool, **values: Any) -> None:
    """Compare two designs of a purgatory, in which requests wait for an answer.

    Requests arrive at rising rates. Each watches 3 keys and waits for 200 ms. The
    loads "low" and "high" are those of the workloads lognormal-low and
    lognormal-high. The new design removes an answered request from its timer at
    once. The old one leaves it in a delay queue, which a reaper scans. Both run in
    real time, each trial in a process of its own. The whole run takes about ten
    minutes.
    """
    options.refuse_both({"--json": as_json, "--markdown": as_markdown})
    from compare.cli import printing
    from compare.trial.purgatory.experiment import run_experiment
    from compare.trial.results.store import read_run
    from reports.summary import figures_of

    ctx = click.get_current_context()
    for name in list(values):
        if ctx.get_parameter_source(name) is ParameterSource.DEFAULT:
            del values[name]  # --quick has other defaults
    path = run_experiment(replace(QUICK if quick else _DEFAULT, **values, command=ctx.obj))
    summary = figures_of(read_run(path))
    rows, noise = summary.trials, summary.noise
    if as_json:
        plain = {"run": str(path), "noise": noise.plain(), "trials": rows}
        click.echo(json.dumps(plain, indent=1))
    else:
        stored = Sheet(notes=[f"stored in {path}"])
        sheets = [*printing.noise_sheets(noise), *sheets_of(rows), stored]
        click.echo(shown(sheets, as_markdown=as_markdown))


# ---- text

_LEGEND = """\
CPU: microseconds of processor time per request, and the range of the trials;
GC: the part of that spent in garbage collection; MiB: peak memory above that at
the start; late: lateness of timeouts in ms, p50/p99/max; out: share of requests
that timed out"""


def sheets_of(rows: Sequence[Row]) -> Iterator[Sheet]:
    """The figures of all trials."""
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        kinds.setdefault(row["kind"], []).append(row)
    if trials := kinds.get(figures.RATE):
        title = "Real time, rising rates, three threads of one process; medians"
        yield _trials(title, trials, "rate", "rate")
        yield Sheet(notes=_saturation(trials))
        yield from _totals(trials)
    for kind, title in ((figures.LIMIT, "Reaper limits"), (figures.MEMORY, "Little memory")):
        if trials := kinds.get(kind):
            memory = trials[0]["memory_bytes"]
            room = f", {memory >> 20} MiB more than at the start" if memory else ""
            title = f"{title}: load {trials[0]['load']} at {trials[0]['rate']:,}/s{room}"
            yield _trials(title, trials, "interval", "limit")
    yield Sheet(notes=_LEGEND.splitlines())


def _trials(title: str, rows: Sequence[Row], varied: str, heading: str) -> Sheet:
    """The table of trials that differ in the column `varied`."""
    shown = []
    for trials in _grouped(rows, varied):
        row, cpu = figures.median_row(trials), figures.values_of(trials, "cpu_us")
        peak = row["peak_bytes"]
        late = [row[f"late_{quantile}_ms"] for quantile in ("p50", "p99", "max")]
        shown.append(
            {
                "": _name(row) + "*" * bool(row["failed"]),
                heading: figure(row[varied], ","),
                "achieved": figure(row["achieved"], ",.0f"),
                "CPU": figure(row["cpu_us"], ".1f"),
                " ": f"{_short(cpu[0])}..{_short(cpu[-1])}" if len(cpu) > 1 else "",
                "GC": figure(row["gc_us"], ".1f"),
                "MiB": "-" if peak is None else f"{peak / 2**20:.1f}",
                "late": "-" if None in late else "/".join(f"{ms:.0f}" for ms in late),
                "out": figure(row["share_expired"], ".1%"),
            }
        )
    failures = dict.fromkeys(f"*  failed: {row['failed']}" for row in rows if row["failed"])
    return Sheet.of(title, shown, [*failures])


def _short(us: float) -> str:
    return format(us, ".0f" if us >= 10 else ".1f")


def _name(row: Row) -> str:
    return f"{row['load']:4} {figures.DESIGNS[row['design']]}"


def _grouped(rows: Iterable[Row], varied: str = "rate") -> Iterable[list[Row]]:
    """The repeats of each trial."""
    cases: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        cases.setdefault((row["load"], row["design"], row[varied]), []).append(row)
    return cases.values()


def _saturation(rows: Iterable[Row]) -> list[str]:
    designs: dict[str, list[str]] = {}
    for (load, design), (highest, failed) in figures.saturation(rows).items():
        rate = f"{highest:,}/s" + ("" if failed else " or more")
        text = rate if highest else "none of the rates tried"
        designs.setdefault(load, []).append(f"{figures.DESIGNS[design]} {text}")
    return [f"Sustained rate, load {load}: {', '.join(texts)}" for load, texts in designs.items()]


def _totals(rows: Iterable[Row]) -> Iterator[Sheet]:
    shown = [
        {
            "": _name(row),
            "rate": figure(row["rate"], ","),
            "estimated total": figure(row["estimated_total"], ",.0f"),
            "exact": figure(row["exact_total"], ",.0f"),
            "largest difference": figure(row["estimate_error"], ",.0f"),
        }
        for row in map(figures.median_row, _grouped(rows))
        if row["estimated_total"] is not None
    ]
    if shown:
        yield Sheet.of("Requests in the lists", shown)
