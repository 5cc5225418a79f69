"""Counted work against the number of pending timers: a chart for each task."""

import math
from collections.abc import Iterator, Mapping

from compare.bench.task import Task
from reports import formats
from reports.charts.axes import (
    described,
    draw_points,
    log_axis,
    mark_of,
    panels,
    size_axis,
    stroke_of,
)
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
    title = f"{task.title}: counted work per {task.unit}"
    counters = summary.counters(task)
    curves = {name: _curves(summary, task, name) for name in counters}
    counted = {who for name in counters for who in summary.counts[task][name]}
    shown = [who for who in summary.contestants if any(who in of for of in curves.values())]
    headings = list(map(formats.counter_title, counters))
    figure, found = panels(headings, title, 1.4, y=f"per {task.unit}", legend=shown)
    texts = []
    for axes, heading, lines in zip(found, headings, curves.values(), strict=True):
        drawn = sorted(lines, key=lambda who: not who.compiled)  # dashes on top
        for place, who in enumerate(drawn):
            points = lines[who]
            covering = sum(_coincide(points, lines[other]) for other in drawn[place + 1 :])
            style = mark_of(who, 4.5 + 1.3 * covering) | stroke_of(who)
            style |= {"linewidth": 1.3 + 1.2 * covering}  # so that it is seen below the others
            draw_points(axes, points, style)
        size_axis(axes, summary.sizes)
        levels = [count for points in lines.values() for count in points.values()]
        log_axis(axes, "y", levels, formats.amount, most_ticks=5)
        last = {
            who: formats.amount(points[size])
            for who, points in lines.items()
            if (size := summary.sizes[-1]) in points
        }
        texts.append((heading, last))
    for axes in found[-2:]:
        axes.set_xlabel("timers pending, N")
    notes = {
        "Zero, so not drawn": [
            who.plain for who in summary.contestants if who in counted.difference(shown)
        ],
        "Zero for all": map(formats.counter_title, summary.counters(task, idle=True)),
        "Not counted": [who.plain for who in summary.contestants if who not in counted],
    }
    told = [f"{note}: {text}." for note, names in notes.items() if (text := formats.listed(names))]
    return Picture(
        f"work-{task.name}",
        " ".join([task.meaning, *told]),
        f"Line charts with logarithmic axes: counts per {task.unit} against timers pending. At the "
        f"largest size: {described(texts)}.",
        figure,
    )


def _curves(summary: Summary, task: Task, counter: str) -> dict[StoredContestant, Curve]:
    """The counts that a logarithmic axis can show."""
    found = {
        who: {size: count for size, count in curve.items() if count > 0}
        for who, curve in summary.counts[task][counter].items()
    }
    return {who: curve for who, curve in found.items() if curve}


def _coincide(points: Curve, others: Curve) -> bool:
    """Whether two curves lie on each other somewhere."""
    return any(
        n in others and math.isclose(count, others[n], rel_tol=0.05) for n, count in points.items()
    )
