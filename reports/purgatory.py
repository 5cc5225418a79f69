"""The enqueue experiment: two designs of a purgatory under the same requests."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from compare.base import formats
from compare.trial.purgatory.figures import (
    LIMIT,
    MEMORY,
    PURGING,
    RATE,
    SCANNING,
    Row,
    median_row,
    mostly_keeps_up,
    saturation,
)
from reports.plots import CURVES, Panel, Plot, Plots, Point
from reports.statistics import Estimate
from reports.summary import Subject, Summary
from reports.tables import Entry, Table, figures, plain_row
from reports.trials import Cases, by_case

LEAD = (
    "A purgatory holds requests until they are answered or time out, here after 200 ms. Each "
    "request watches 3 of 100 keys. The new design takes an answered request out of its timing "
    "wheel at once, and purges the lists of watchers by an estimate. The old one leaves it in a "
    "delay queue, and a reaper scans queue and lists when they are too long. The loads “low” and "
    "“high” are those of the workloads lognormal-low and lognormal-high."
)
_RATES = (
    *("cpu_us", "gc_us", "peak_bytes", "late_p50_ms", "late_p99_ms", "late_max_ms"),
    *("share_expired", "estimated_total", "exact_total", "estimate_error"),
)
_MEMORY = ("interval", "requests", "peak_bytes", "failed")


def of_rates(summary: Summary) -> Table:
    """Both designs in real time at the highest rate that they kept up with."""
    highest, shown = saturation(summary.trials), {}
    for case, rates in by_case(summary.trials, RATE).items():
        rate, failed = highest[case.load, case.design]
        row = median_row(rates.get(rate) or next(iter(rates.values())))
        reached = Entry(formats.count(rate), "" if failed else "or more", value=rate)
        shown[case] = plain_row({"requests/s": reached, **figures(row, _RATES)})
    return Table(
        "purgatory-rates",
        "In real time, at the highest rate that each kept up with",
        ("figure",),
        shown,
        "A rate counts as sustained if most trials reach 95% of it with a p99 lateness below 200 "
        "ms. Figures are medians of the trials. The estimated total is the number of requests in "
        "the lists as the new design estimates it, on average. All threads of a design share one "
        "interpreter lock, so they have one core together, and the processor time includes the two "
        "threads of the experiment. In other languages both designs reach other rates.",
        of="design",
    )


def of_memory(summary: Summary) -> Table:
    """The trials with little memory."""
    medians = {
        case: median_row(same)
        for case, trials in by_case(summary.trials, MEMORY).items()
        for same in trials.values()
    }
    room, rate = next(((row["memory_bytes"], row["rate"]) for row in medians.values()), (0, 0))
    return Table(
        "purgatory-memory",
        f"With {formats.data_size(room)} more memory than at the start, at {formats.count(rate)} "
        "requests/s",
        ("figure",),
        {case: plain_row(figures(row, _MEMORY)) for case, row in medians.items()},
        "The limit is the purge interval of the new design, and the number of entries above which "
        "the old one scans: at the highest limit it scans least.",
        of="design",
    )


def headline(summary: Summary) -> str:
    """The two designs where half of the requests time out."""
    highest = saturation(summary.trials)
    texts = []
    for design in (PURGING, SCANNING):
        rate, failed = highest.get(("high", design), (0, False))
        if not rate:
            return ""
        texts.append(f"{'' if failed else 'at least '}{formats.count(rate)}")
    return (
        "Where half of the requests time out, the new design keeps up with {} requests/s, the old "
        "one with {}.".format(*texts)
    )


# ---- charts

_Form = Callable[[float], str]
_Figure = tuple[Callable[[Row], float | None], _Form]
"""Functions that compute and format a figure of a row. Zero and None are not drawn."""


class _Chart(NamedTuple):
    """The figures of one kind of trials by their headings, and the column that is varied."""

    kind: str
    name: str
    title: str
    caption: str
    figures: Mapping[str, _Figure]
    varied: str = "rate"
    across: str = "requests/s asked"


def _scaled(column: str, factor: float, form: _Form) -> _Figure:
    return lambda row: row[column] and row[column] * factor, form


_CPU = _scaled("cpu_us", 1e3, formats.nanoseconds)
_MIB = {"most memory [MiB]": _scaled("peak_bytes", 2.0**-20, formats.amount)}
_CHARTS = (
    _Chart(
        RATE,
        "purgatory-rates",
        "Both designs in real time, at rising rates",
        "All threads of a design share one interpreter lock. Medians of the trials, and bars from "
        "the least to the most. Dashed: load high. Hollow: it did not keep up in most of them. The "
        "thin line is what was asked for.",
        {
            "requests/s achieved": _scaled("achieved", 1.0, formats.short_count),
            "CPU per request": _CPU,
            "lateness, 99% below": _scaled("late_p99_ms", 1e6, formats.nanoseconds),
            **_MIB,
        },
    ),
    _Chart(
        LIMIT,
        "purgatory-limit",
        "The limit of the old design's reaper",
        "Load {load} at {rate} requests/s. The lower the limit, the more often the reaper scans; "
        "the higher, the more completed requests it holds. The horizontal line is the new design. "
        "Hollow: the old one did not keep up.",
        {"CPU per request": _CPU, **_MIB},
        "interval",
        "limit, entries",
    ),
)


def plots(summary: Summary) -> Plots:
    """The charts of those kinds of trials that were run."""
    for chart in _CHARTS:
        if cases := by_case(summary.trials, chart.kind, chart.varied):
            yield _plot(chart, cases)


def _plot(drawn: _Chart, cases: Cases) -> Plot:
    panels = {heading: _panel(drawn, cases, *figure) for heading, figure in drawn.figures.items()}
    if drawn.kind == RATE:
        asked = sorted({rate for trials in cases.values() for rate in trials})
        first = next(iter(panels))
        panels[first] = replace(panels[first], diagonal=asked)
    row = next(row for trials in cases.values() for rows in trials.values() for row in rows)
    caption = drawn.caption.format(load=row["load"], rate=formats.count(row["rate"]))
    return Plot(CURVES, drawn.name, drawn.title, caption, [*cases], panels, 1.75)


def _panel(drawn: _Chart, cases: Cases, value: Callable[[Row], float | None], form: _Form) -> Panel:
    series: dict[Subject, list[Point]] = {}
    levels: dict[Subject, list[Estimate]] = {}
    for case, trials in cases.items():
        points = [
            Point(x, Estimate.of(values), f"at {formats.count(x)}", not mostly_keeps_up(rows))
            for x, rows in sorted(trials.items())
            if (values := [figure for row in rows if (figure := value(row))])
        ]
        if drawn.kind == LIMIT and case.design == PURGING:  # it has no such limit
            levels[case] = [point.value for point in points]
        else:
            series[case] = points
    return Panel(series, form, f"{drawn.across} (log)", levels=levels)
