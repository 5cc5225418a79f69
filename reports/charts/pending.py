"""Figures against the number of pending timers: times, counted work and memory."""

from collections.abc import Callable, Iterator, Mapping

from reports import formats
from reports.charts.axes import Chart, Point, log_axis, size_axis
from reports.charts.pictures import Picture
from reports.statistics import Spread
from reports.summary import StoredContestant, Summary

Curves = Mapping[StoredContestant, Mapping[int, Spread]]
"""Contestant -> number of pending timers -> value."""


def times(summary: Summary) -> Iterator[Picture]:
    """Draw the time of one operation: a chart for each task."""
    for task, curves in summary.cells.items():
        if curves:
            title = f"{task.title}: time per {task.unit}"
            yield _chart(summary, f"time-{task.name}", title, {"": curves}, task.meaning)


def work(summary: Summary) -> Iterator[Picture]:
    """Draw cost counters per operation: a chart for each task, with a panel for each counter."""
    for task, by_counter in summary.counts.items():
        shown = {
            formats.counter_title(name): {
                timer: points
                for timer, curve in by_counter[name].items()
                if (points := {n: Spread.of([count]) for n, count in curve.items() if count})
            }
            for name in summary.counters(task)
        }
        if not shown:
            continue
        counted = {timer for curves in by_counter.values() for timer in curves}
        drawn = {timer for curves in shown.values() for timer in curves}
        others = [timer for timer in summary.contestants if timer not in drawn]
        notes = {
            "Zero, so not drawn": [timer.plain for timer in others if timer in counted],
            "Not counted": [timer.plain for timer in others if timer not in counted],
        }
        remarks = [
            f"{note}: {text}." for note, names in notes.items() if (text := ", ".join(names))
        ]
        title, caption = f"{task.title}: work per {task.unit}", " ".join([task.meaning, *remarks])
        yield _chart(summary, f"work-{task.name}", title, shown, caption, formats.amount, 1.4)


def memory(summary: Summary) -> Iterator[Picture]:
    """Draw the bytes per pending timer at full capacity."""
    if summary.memory:
        curves = {
            timer: {size: Spread.of([footprint.at_rest]) for size, footprint in footprints.items()}
            for timer, footprints in summary.memory.items()
        }
        caption = (
            "All that the timer holds, bookkeeping included, divided by the number of pending "
            "timers when its capacity is used up."
        )
        title = "Memory per pending timer"
        yield _chart(summary, "memory", title, {"": curves}, caption, formats.data_size)


def _chart(
    summary: Summary,
    name: str,
    title: str,
    shown: Mapping[str, Curves],
    caption: str,
    form: Callable[[float], str] = formats.nanoseconds,
    height: float = 2.1,
) -> Picture:
    """Draw a chart with a panel for each heading; points are moved apart sideways."""
    chart = Chart(title, summary.contestants, shown, height)
    sizes = sorted({n for curves in shown.values() for curve in curves.values() for n in curve})
    # Within a tenth of a decade in total.
    last = max(len(summary.contestants) - 1, 1)
    nudges = {timer: 10 ** (0.1 * (n / last - 0.5)) for n, timer in enumerate(summary.contestants)}
    for axes, curves in zip(chart.panels, shown.values(), strict=True):
        for timer in sorted(curves, key=lambda series: series.dashed):  # dashes on top
            points = [
                Point(size * nudges[timer], value, formats.size(size))
                for size, value in curves[timer].items()
            ]
            chart.series(axes, timer, points, form)
        size_axis(axes, sizes)
        log_axis(axes, "y", form)
    for axes in chart.panels[-2:]:
        axes.set_xlabel("timers pending, N" + " (log scale)" * (len(shown) == 1))
    return chart.picture(name, caption)
