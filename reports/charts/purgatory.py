"""The enqueue experiment: figures against the rate and the limit, and the compiled work."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from compare.purgatory.figures import COMPILED, LIMIT, PURGING, RATE, Row, mostly_keeps_up, scanned
from reports import formats
from reports.charts.axes import Chart, Point, log_axis, stroke_of
from reports.charts.pictures import Picture
from reports.palette import INK
from reports.summary import Summary
from reports.trials import Cases, by_case

_MICROSECONDS, _MILLISECONDS = 1e3, 1e6  # in nanoseconds

Value = Callable[[Row], float | None]
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


def _picture(drawn: _Chart, cases: Cases) -> Picture:
    chart = Chart(drawn.title, cases, [panel.heading for panel in drawn.panels], 1.75)
    if drawn.kind == RATE:
        asked = sorted({rate for trials in cases.values() for rate in trials})
        chart.panels[0].plot(asked, asked, color=INK, linewidth=0.7, zorder=1)
    for axes, panel in zip(chart.panels, drawn.panels, strict=True):
        across: list[float] = []
        levels: list[float] = []
        for case, trials in cases.items():
            samples = _samples(trials, panel.value)
            levels += [level for values in samples.values() for level in values]
            if drawn.kind == LIMIT and case.design == PURGING:  # it has no such limit
                for values in samples.values():
                    line = axes.axhline(median(values), **stroke_of(case))
                    chart.mark(line, case, panel.heading, panel.form(median(values)))
            else:
                across += samples
                chart.series(axes, case, [*_points(drawn, panel, samples, trials)])
        if across:
            log_axis(axes, "x", across, _short, most_ticks=4)
            log_axis(axes, "y", levels, panel.form, most_ticks=5)
        axes.set_xlabel(f"{drawn.across} (log)")
    first = next(row for trials in cases.values() for rows in trials.values() for row in rows)
    caption = drawn.caption.format(load=first["load"], rate=formats.count(first["rate"]))
    return chart.picture(drawn.name, caption)


def _samples(trials: Trials, value: Value) -> Samples:
    """What was measured at each x. Zero cannot be drawn on a logarithmic axis."""
    samples = {x: [found for row in trials[x] if (found := value(row))] for x in sorted(trials)}
    return {x: values for x, values in samples.items() if values}


def _points(drawn: _Chart, panel: _Panel, samples: Samples, trials: Trials) -> Iterator[Point]:
    """The median at each x, with a bar from the least to the most."""
    for x, values in samples.items():
        failed = drawn.kind != COMPILED and not mostly_keeps_up(trials[x])
        text = f"at {formats.count(x)}: {panel.form(median(values))}"
        yield Point(x, median(values), text, min(values), max(values), failed)
