"""Counted work against the number of pending timers: a chart for each task."""

from collections.abc import Iterator, Mapping

from compare.bench.task import Task
from reports import formats
from reports.charts.axes import Chart, Point, log_axis, size_axis
from reports.charts.pictures import Picture
from reports.summary import StoredContestant, Summary

Curve = Mapping[int, float]


def draw(summary: Summary) -> Iterator[Picture]:
    """Cost counters per operation against the number of pending timers, one panel for each
    counter.
    """
    for task in summary.cells:
        if summary.counters(task):
            yield _chart(summary, task)


def _chart(summary: Summary, task: Task) -> Picture:
    counters = summary.counters(task)
    curves = {name: _curves(summary, task, name) for name in counters}
    counted = {who for name in counters for who in summary.counts[task][name]}
    shown = [who for who in summary.contestants if any(who in of for of in curves.values())]
    headings = list(map(formats.counter_title, counters))
    chart = Chart(f"{task.title}: work per {task.unit}", shown, headings, 1.4)
    for axes, lines in zip(chart.panels, curves.values(), strict=True):
        for who in sorted(lines, key=lambda who: not who.compiled):  # dashes on top
            points = [
                Point(size, count, f"{formats.size(size)}: {formats.amount(count)}")
                for size, count in lines[who].items()
            ]
            chart.series(axes, who, points)
        size_axis(axes, summary.sizes)
        levels = [count for points in lines.values() for count in points.values()]
        log_axis(axes, "y", levels, formats.amount, most_ticks=5)
    for axes in chart.panels[-2:]:
        axes.set_xlabel("timers pending, N")
    notes = {
        "Zero, so not drawn": [
            who.plain for who in summary.contestants if who in counted.difference(shown)
        ],
        "Zero for all": map(formats.counter_title, summary.counters(task, idle=True)),
        "Not counted": [who.plain for who in summary.contestants if who not in counted],
    }
    told = [f"{note}: {text}." for note, names in notes.items() if (text := formats.listed(names))]
    return chart.picture(f"work-{task.name}", " ".join([task.meaning, *told]))


def _curves(summary: Summary, task: Task, counter: str) -> dict[StoredContestant, Curve]:
    """The counts that a logarithmic axis can show."""
    found = {
        who: {size: count for size, count in curve.items() if count > 0}
        for who, curve in summary.counts[task][counter].items()
    }
    return {who: curve for who, curve in found.items() if curve}
