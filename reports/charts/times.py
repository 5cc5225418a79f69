"""Time against the number of pending timers: a chart for each task."""

from collections.abc import Iterator, Mapping

from matplotlib.axes import Axes

from compare.bench.task import Task
from reports import formats
from reports.charts.axes import (
    colour_of,
    draw_points,
    end_labels,
    labelled_axes,
    log_axis,
    mark_of,
    nudge_factors,
    size_axis,
    stroke_of,
)
from reports.charts.pictures import Picture
from reports.summary import Cell, StoredContestant, Summary


def draw(summary: Summary) -> Iterator[Picture]:
    """Median time of one operation against the number of pending timers, with the spread."""
    for task, series in summary.cells.items():
        if series:
            yield _chart(summary, task)


def _chart(summary: Summary, task: Task) -> Picture:
    title = f"{task.title}: time per {task.unit}"
    series = summary.cells[task]
    figure, axes = labelled_axes(len(series), title)
    nudges = nudge_factors(len(series), summary.sizes, 0.1)
    ends = {}
    for nudge, (who, cells) in zip(nudges, series.items(), strict=True):
        _draw(axes, who, {size * nudge: cell for size, cell in cells.items()})
        size, last = max(cells.items())
        at = "" if size == summary.sizes[-1] else f" at {formats.size(size)}"
        ends[who] = size * nudge, last.level, last.text + at
    size_axis(axes, summary.sizes)
    levels = [level for cells in series.values() for cell in cells.values() for level in cell.reach]
    log_axis(axes, "y", levels, formats.nanoseconds)
    axes.set_xlabel("timers pending, N (log scale)")
    axes.set_ylabel(f"time per {task.unit} (log scale)")
    end_labels(figure, axes, ends)
    described = [
        f"{who.full} {text}" for who, (_, _, text) in sorted(ends.items(), key=lambda e: e[1][1])
    ]
    return Picture(
        f"time-{task.name}",
        task.meaning,
        f"Line chart with logarithmic axes: {title.lower()} against timers pending. At the largest "
        f"size: {'; '.join(described)}.",
        figure,
    )


def _draw(axes: Axes, who: StoredContestant, cells: Mapping[float, Cell]) -> None:
    levels = {x: cell.level for x, cell in cells.items()}
    draw_points(axes, levels, stroke_of(who))
    for x, cell in cells.items():
        axes.vlines(x, *cell.reach, color=colour_of(who), linewidth=1.4, zorder=4)
    draw_points(axes, levels, mark_of(who, 5.5))
