"""The enqueue experiment: figures against the rate and the limit, and the compiled work."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from compare.purgatory.figures import (
    COMPILED,
    DESIGNS,
    LIMIT,
    NONE,
    PURGING,
    RATE,
    SCANNING,
    Row,
    keeps_up,
)
from reports import formats
from reports.charts.axes import log_axis
from reports.charts.pictures import LINE_HEIGHT, WIDTH, Picture
from reports.palette import INK, PAPER, look_of
from reports.summary import Summary

_LOOKS = {PURGING: look_of("hierarchical-wheel"), SCANNING: look_of("delay-queue")}
_DASHES = {"low": "solid", "high": (0, (4, 2))}

_ASKED = "requests/s asked for"
_MICROSECONDS, _MILLISECONDS = 1e3, 1e6  # in nanoseconds

Points = Mapping[float, float]


class _Panel(NamedTuple):
    """A chart among others: its heading, and how a row's value is found and written."""

    heading: str
    value: Callable[[Row], float | None]
    form: Callable[[float], str]


def draw(summary: Summary) -> Iterator[Picture]:
    """The charts of those kinds of trials that were run."""
    rows = summary.trials
    for kind, chart in ((RATE, _rates), (LIMIT, _limits), (COMPILED, _compiled)):
        if found := [row for row in rows if row["kind"] == kind]:
            yield chart(found)


def _scaled(column: str, factor: float = 1.0) -> Callable[[Row], float | None]:
    return lambda row: None if row[column] is None else row[column] * factor


def _short(value: float) -> str:
    return formats.short_count(round(value))


_RATE_PANELS = (
    _Panel("requests/s achieved", _scaled("achieved"), _short),
    _Panel("CPU time per request", _scaled("cpu_us", _MICROSECONDS), formats.nanoseconds),
    _Panel("lateness, 99 % below", _scaled("late_p99_ms", _MILLISECONDS), formats.nanoseconds),
    _Panel("most memory [MiB]", _scaled("peak_bytes", 2.0**-20), formats.amount),
)


def _rates(rows: Sequence[Row]) -> Picture:
    title = "Both designs in real time, at rising rates"
    figure, axes = _grid(title, 2, _cases(rows))
    drawn = [
        _draw(at, panel, rows, "rate", _ASKED) for at, panel in zip(axes, _RATE_PANELS, strict=True)
    ]
    asked = [row["rate"] for row in rows if row["design"] != NONE]
    axes[0].plot(asked, asked, color=INK, linewidth=0.7, zorder=1)
    told = [
        f"{_name(case)} {formats.count(round(max(points.values())))} requests/s"
        for case, points in drawn[0].items()
    ]
    return Picture(
        "purgatory-rates",
        title,
        "All threads of a design share one interpreter lock. Hollow: it did not keep up, in two "
        "trials, of which the median is shown. The thin line is what was asked for.",
        f"Four line charts against the rate of requests. The most achieved: {'; '.join(told)}.",
        figure,
    )


def _limits(rows: Sequence[Row]) -> Picture:
    title = "The limit of the old design's reaper"
    figure, axes = _grid(title, 1, _cases(rows))
    old = [row for row in rows if row["design"] == SCANNING]
    told = []
    for at, panel in zip(axes, (_RATE_PANELS[1], _RATE_PANELS[3]), strict=True):
        new = [value for row in rows if row["design"] == PURGING and (value := panel.value(row))]
        for points in _draw(at, panel, old, "interval", "limit, entries", new).values():
            told.append(f"{panel.heading} {_told(points, panel.form)}")
        for value in new:
            at.axhline(value, color=_LOOKS[PURGING].colour, linewidth=1.8)
    rate = formats.count(rows[0]["rate"])
    return Picture(
        "purgatory-limit",
        title,
        f"Load {rows[0]['load']} at {rate} requests/s. The lower the limit, the more often the "
        "reaper scans; the higher, the more completed requests it holds. The horizontal line is "
        "the new design. Hollow: the old one did not keep up.",
        f"Two line charts against the limit: {'; '.join(told)}.",
        figure,
    )


def _scanned(row: Row) -> float:
    counters = dict(row["counters"])
    return float(counters["entries_scanned"] + counters["queue_scanned"]) / float(row["requests"])


_COMPILED_PANELS = (
    _Panel("time per request", _scaled("cpu_us", _MICROSECONDS), formats.nanoseconds),
    _Panel("entries scanned per request", _scanned, formats.amount),
)


def _compiled(rows: Sequence[Row]) -> Picture:
    title = "Both designs compiled, in simulated time"
    figure, axes = _grid(title, 1, _cases(rows))
    times, _ = (
        _draw(at, panel, rows, "rate", _ASKED)
        for at, panel in zip(axes, _COMPILED_PANELS, strict=True)
    )
    told = [f"{_name(case)} {_told(points, formats.nanoseconds)}" for case, points in times.items()]
    return Picture(
        "purgatory-compiled",
        title,
        "The bookkeeping alone, on one core: watcher lists, timer, purges and scans. The counted "
        "work is the same on every machine.",
        f"Two line charts against the rate of requests. Time per request: {'; '.join(told)}.",
        figure,
    )


# ---- shared

Case = tuple[str, str]  # load and design


def _cases(rows: Iterable[Row]) -> list[Case]:
    return list(
        dict.fromkeys((row["load"], row["design"]) for row in rows if row["design"] != NONE)
    )


def _name(case: Case) -> str:
    load, design = case
    return f"{DESIGNS[design]}, load {load}"


def _told(points: Points, form: Callable[[float], str]) -> str:
    (first, low), *_, (last, high) = [*points.items()] * 2
    return f"from {form(low)} at {formats.amount(first)} to {form(high)} at {formats.amount(last)}"


def _series(
    rows: Iterable[Row], x: str, value: Callable[[Row], float | None]
) -> Iterator[tuple[Case, Points, set[float]]]:
    """The points of each case, medians of samples, and the x at which it did not keep up."""
    rows = list(rows)
    for case in _cases(rows):
        own = [row for row in rows if (row["load"], row["design"]) == case]
        samples: dict[float, list[float]] = {}
        for row in own:
            if found := value(row):  # zero cannot be drawn on a logarithmic axis
                samples.setdefault(row[x], []).append(found)
        kept_up = {row[x] for row in own if row["kind"] == COMPILED or keeps_up(row)}
        failed = {row[x] for row in own} - kept_up
        if samples:
            yield case, {at: median(samples[at]) for at in sorted(samples)}, failed


def _mark(case: Case, *, hollow: bool = False) -> dict[str, Any]:
    look = _LOOKS[case[1]]
    filling: dict[str, Any] = {"markeredgecolor": PAPER, "markeredgewidth": 0.5}
    if hollow:
        filling = {"markerfacecolor": PAPER, "markeredgewidth": 1.2}
    return {"color": look.colour, "marker": look.marker, "markersize": 5.5, **filling}


def _stroke(case: Case) -> dict[str, Any]:
    return {"color": _LOOKS[case[1]].colour, "linewidth": 1.8, "linestyle": _DASHES[case[0]]}


def _draw(
    axes: Axes, panel: _Panel, rows: Iterable[Row], x: str, across: str, more: Iterable[float] = ()
) -> dict[Case, Points]:
    """Draw a line for each case, with room for `more` levels; returns their points."""
    found: dict[Case, Points] = {}
    for case, points, failed in _series(rows, x, panel.value):
        axes.plot(list(points), list(points.values()), **_stroke(case))
        for at, level in points.items():
            axes.plot(at, level, ls="none", zorder=3, **_mark(case, hollow=at in failed))
        found[case] = points
    axes.set_title(panel.heading)
    axes.set_xlabel(f"{across} (log)")
    levels = [level for points in found.values() for level in points.values()]
    if levels:
        log_axis(
            axes, "x", [at for points in found.values() for at in points], _short, most_ticks=4
        )
        log_axis(axes, "y", [*levels, *more], panel.form, most_ticks=5)
    return found


def _grid(title: str, lines: int, cases: Sequence[Case]) -> tuple[Figure, list[Axes]]:
    """Charts in two columns, above a legend."""
    height = 0.5 + 2.5 * lines + -(-len(cases) // 2) * LINE_HEIGHT * 1.25
    layout = ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.05, hspace=0.03, wspace=0.03)
    figure = Figure(figsize=(WIDTH, height), layout=layout)
    figure.suptitle(title, x=0.1 / WIDTH, ha="left")
    axes = figure.subplots(lines, 2, squeeze=False).flatten().tolist()
    figure.legend(
        handles=[axes[0].plot([], [], **(_mark(case) | _stroke(case)))[0] for case in cases],
        labels=[_name(case) for case in cases],
        loc="outside lower left",
        ncols=2,
        borderaxespad=0.2,
        columnspacing=1.5,
        handlelength=2.6,
        labelspacing=0.3,
    )
    return figure, axes
