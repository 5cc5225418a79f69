"""The enqueue experiment: figures against the rate and the limit, and the compiled work."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from matplotlib.axes import Axes

from compare.purgatory.figures import COMPILED, LIMIT, PURGING, RATE, Row, mostly_keeps_up, scanned
from reports import formats
from reports.charts.axes import described, draw_points, log_axis, mark_of, panels, stroke_of
from reports.charts.pictures import Picture
from reports.palette import INK
from reports.summary import Summary
from reports.trials import Case, Cases, by_case

_MICROSECONDS, _MILLISECONDS = 1e3, 1e6  # in nanoseconds

Value = Callable[[Row], float | None]
Points = dict[int, float]
Samples = dict[int, list[float]]
Trials = Mapping[int, Sequence[Row]]


class _Panel(NamedTuple):
    """A chart among others: its heading, and how a row's value is found and written."""

    heading: str
    value: Value
    form: Callable[[float], str]


class _Chart(NamedTuple):
    """The panels for one kind of trials, and the column that is varied in these."""

    kind: str
    name: str
    title: str
    caption: str
    panels: Sequence[_Panel]
    varied: str = "rate"
    across: str = "requests/s asked for"


def _scaled(column: str, factor: float = 1.0) -> Value:
    return lambda row: None if row[column] is None else row[column] * factor


def _short(value: float) -> str:
    return formats.short_count(round(value))


_CPU = _Panel("CPU time per request", _scaled("cpu_us", _MICROSECONDS), formats.nanoseconds)
_MEMORY = _Panel("most memory [MiB]", _scaled("peak_bytes", 2.0**-20), formats.amount)
_CHARTS = (
    _Chart(
        RATE,
        "purgatory-rates",
        "Both designs in real time, at rising rates",
        "All threads of a design share one interpreter lock. Medians of the trials, and bars from "
        "the least to the most. Hollow: it did not keep up in most of them. The thin line is what "
        "was asked for.",
        (
            _Panel("requests/s achieved", _scaled("achieved"), _short),
            _CPU,
            _Panel("lateness, 99% below", _scaled("late_p99_ms", _MILLISECONDS), _CPU.form),
            _MEMORY,
        ),
    ),
    _Chart(
        LIMIT,
        "purgatory-limit",
        "The limit of the old design's reaper",
        "Load {load} at {rate} requests/s. The lower the limit, the more often the reaper scans; "
        "the higher, the more completed requests it holds. The horizontal line is the new design. "
        "Hollow: the old one did not keep up.",
        (_CPU, _MEMORY),
        "interval",
        "limit, entries",
    ),
    _Chart(
        COMPILED,
        "purgatory-compiled",
        "Both designs compiled, in simulated time",
        "The bookkeeping alone, on one core: watcher lists, timer, purges and scans. The counted "
        "work is the same on every machine.",
        (
            _CPU._replace(heading="time per request"),
            _Panel("entries scanned per request", scanned, formats.amount),
        ),
    ),
)


def draw(summary: Summary) -> Iterator[Picture]:
    """The charts of those kinds of trials that were run."""
    for chart in _CHARTS:
        if cases := by_case(summary.trials, chart.kind, chart.varied):
            yield _picture(chart, cases)


def _picture(chart: _Chart, cases: Cases) -> Picture:
    figure, found = panels(
        [panel.heading for panel in chart.panels], chart.title, 1.75, legend=list(cases)
    )
    if chart.kind == RATE:
        asked = sorted({rate for trials in cases.values() for rate in trials})
        found[0].plot(asked, asked, color=INK, linewidth=0.7, zorder=1)
    texts = []
    for axes, panel in zip(found, chart.panels, strict=True):
        samples = {case: _samples(trials, panel.value) for case, trials in cases.items()}
        lines = {case: _medians(found) for case, found in samples.items()}
        across: list[float] = []
        levels: list[float] = []
        for case, points in lines.items():
            if chart.kind == LIMIT and case.design == PURGING:  # it has no such limit
                levels += points.values()
                for level in points.values():
                    axes.axhline(level, **stroke_of(case))
            else:
                across += points
                levels += [level for values in samples[case].values() for level in values]
                _draw(axes, case, samples[case], cases[case])
        if across:
            log_axis(axes, "x", across, _short, most_ticks=4)
            log_axis(axes, "y", levels, panel.form, most_ticks=5)
        axes.set_xlabel(f"{chart.across} (log)")
        told = {case: _told(points, panel.form) for case, points in lines.items()}
        texts.append((panel.heading, told))
    first = next(row for trials in cases.values() for rows in trials.values() for row in rows)
    return Picture(
        chart.name,
        chart.caption.format(load=first["load"], rate=formats.count(first["rate"])),
        f"Line charts against {chart.across}. {described(texts)}.",
        figure,
    )


def _samples(trials: Trials, value: Value) -> Samples:
    """What was measured at each x. Zero cannot be drawn on a logarithmic axis."""
    samples = {x: [found for row in trials[x] if (found := value(row))] for x in sorted(trials)}
    return {x: values for x, values in samples.items() if values}


def _medians(samples: Samples) -> Points:
    return {x: median(values) for x, values in samples.items()}


def _draw(axes: Axes, case: Case, samples: Samples, trials: Trials) -> None:
    """A line through the medians, and a bar from the least to the most at each x."""
    points, stroke = _medians(samples), stroke_of(case)
    draw_points(axes, points, stroke)
    for x, level in points.items():
        failed = trials[x][0]["kind"] != COMPILED and not mostly_keeps_up(trials[x])
        axes.vlines(x, min(samples[x]), max(samples[x]), stroke["color"], linewidth=1.2)
        draw_points(axes, {x: level}, mark_of(case, 5.5, hollow=failed))


def _told(points: Points, form: Callable[[float], str]) -> str:
    """The first and the last point, or the level alone."""
    ends = [*points.items()]
    if len(ends) < 2:
        return ", ".join(map(form, points.values())) or "not measured"
    return " to ".join(f"{form(level)} at {formats.count(x)}" for x, level in (ends[0], ends[-1]))
