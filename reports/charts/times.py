"""Time against the number of pending timers: a chart for each task."""

from collections.abc import Iterator

from compare.bench.task import Task
from reports import formats
from reports.charts.axes import Chart, log_axis, nudge_factors, point, size_axis
from reports.charts.pictures import Picture
from reports.summary import Summary


def draw(summary: Summary) -> Iterator[Picture]:
    """Median time of one operation against the number of pending timers, with the spread."""
    for task, series in summary.cells.items():
        if series:
            yield _chart(summary, task)


def _chart(summary: Summary, task: Task) -> Picture:
    series = summary.cells[task]
    chart = Chart(f"{task.title}: time per {task.unit}", series)
    [axes] = chart.panels
    nudges = nudge_factors(len(series), summary.sizes, 0.1)
    for nudge, (who, cells) in zip(nudges, series.items(), strict=True):
        points = [point(size * nudge, cell, formats.size(size)) for size, cell in cells.items()]
        chart.series(axes, who, points)
    size_axis(axes, summary.sizes)
    levels = [level for cells in series.values() for cell in cells.values() for level in cell.reach]
    log_axis(axes, "y", levels, formats.nanoseconds, most_ticks=6)
    axes.set_xlabel("timers pending, N (log scale)")
    return chart.picture(f"time-{task.name}", task.meaning)
