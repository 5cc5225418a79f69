"""The enqueue experiment: figures against the rate and the limit."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from compare.trial.purgatory.figures import LIMIT, PURGING, RATE, Row, mostly_keeps_up
from reports import formats
from reports.charts.axes import Chart, Point, log_axis, stroke_of
from reports.charts.pictures import Picture
from reports.palette import INK
from reports.statistics import Spread
from reports.summary import Summary
from reports.trials import Cases, by_case

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
_MEMORY = {"most memory [MiB]": _scaled("peak_bytes", 2.0**-20, formats.amount)}
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
            **_MEMORY,
        },
    ),
    _Chart(
        LIMIT,
        "purgatory-limit",
        "The limit of the old design's reaper",
        "Load {load} at {rate} requests/s. The lower the limit, the more often the reaper scans; "
        "the higher, the more completed requests it holds. The horizontal line is the new design. "
        "Hollow: the old one did not keep up.",
        {"CPU per request": _CPU, **_MEMORY},
        "interval",
        "limit, entries",
    ),
)


def draw(summary: Summary) -> Iterator[Picture]:
    """The charts of those kinds of trials that were run."""
    for chart in _CHARTS:
        if cases := by_case(summary.trials, chart.kind, chart.varied):
            yield _picture(chart, cases)


def _picture(drawn: _Chart, cases: Cases) -> Picture:
    shown = {
        heading: {
            case: {
                x: Spread.of(values)
                for x, rows in sorted(trials.items())
                if (values := [figure for row in rows if (figure := value(row))])
            }
            for case, trials in cases.items()
        }
        for heading, (value, _) in drawn.figures.items()
    }
    chart = Chart(drawn.title, cases, shown, 1.75)
    if drawn.kind == RATE:
        asked = sorted({rate for trials in cases.values() for rate in trials})
        chart.panels[0].plot(asked, asked, color=INK, linewidth=0.7, zorder=1)
    for axes, (heading, curves) in zip(chart.panels, shown.items(), strict=True):
        _, form = drawn.figures[heading]
        for case, curve in curves.items():
            if drawn.kind == LIMIT and case.design == PURGING:  # it has no such limit
                for spread in curve.values():
                    line = axes.axhline(spread.level, **stroke_of(case))
                    chart.mark(line, case, heading, form(spread.level))
                continue
            points = []
            for x, spread in curve.items():
                failed = not mostly_keeps_up(cases[case][x])
                points.append(Point(x, spread, f"at {formats.count(x)}", failed))
            chart.series(axes, case, points, form)
        if any(curves.values()):
            log_axis(axes, "x", formats.short_count, most_ticks=4)
            log_axis(axes, "y", form)
        axes.set_xlabel(f"{drawn.across} (log)")
    first = next(row for trials in cases.values() for rows in trials.values() for row in rows)
    caption = drawn.caption.format(load=first["load"], rate=formats.count(first["rate"]))
    return chart.picture(drawn.name, caption)
