"""Time per operation of whole workloads: a column for each source."""

from collections.abc import Iterator

from reports import formats
from reports.charts.axes import Chart, Point, log_axis
from reports.charts.pictures import Picture
from reports.summary import Summary

NAME = 16  # characters of a source below its column


def draw(summary: Summary) -> Iterator[Picture]:
    """Draw the median time per operation, with the spread."""
    columns = {
        source: summary.replayed(source) for source, replays in summary.replays.items() if replays
    }
    if not columns:
        return
    shown = [
        timer
        for timer in summary.contestants
        if any(timer in column for column in columns.values())
    ]
    chart = Chart("Replays of whole workloads: time per operation", shown, {"": {*shown}})
    [axes] = chart.panels
    for place, timer in enumerate(shown):
        aside = 0.6 * ((place + 0.5) / len(shown) - 0.5)
        replayed = [(x, source) for x, source in enumerate(columns) if timer in columns[source]]
        points = [Point(x + aside, columns[source][timer], source.short) for x, source in replayed]
        chart.series(axes, timer, points, line=False)
    log_axis(axes, "y", formats.nanoseconds)
    axes.set_xlim(-0.5, len(columns) - 0.5)
    names = [formats.cut(source.short, NAME) for source in columns]
    axes.set_xticks(range(len(columns)), names, rotation=25, ha="right")
    axes.tick_params("x", length=0)
    caption = "The time of the whole sequence, expiries included, divided by its operations."
    yield chart.picture("replays", caption)
