"""Memory per pending timer against the capacity."""

from collections.abc import Iterator

from reports import formats
from reports.charts.axes import Chart, Point, log_axis, nudge_factors, size_axis
from reports.charts.pictures import Picture
from reports.summary import Summary


def draw(summary: Summary) -> Iterator[Picture]:
    """Bytes per pending timer at full capacity."""
    if not summary.memory:
        return
    sizes = sorted({size for of in summary.memory.values() for size in of})
    chart = Chart("Memory per pending timer", summary.memory)
    [axes] = chart.panels
    nudges = nudge_factors(len(summary.memory), sizes, 0.1)
    for nudge, (who, of) in zip(nudges, summary.memory.items(), strict=True):
        points = [
            Point(size * nudge, nbytes, f"{formats.size(size)}: {formats.data_size(nbytes)}")
            for size, (nbytes, *_) in of.items()
        ]
        chart.series(axes, who, points)
    size_axis(axes, sizes)
    levels = [found.at_rest for of in summary.memory.values() for found in of.values()]
    log_axis(axes, "y", levels, formats.data_size, most_ticks=6)
    axes.set_xlabel("timers pending, N (log scale)")
    yield chart.picture(
        "memory",
        "All that the timer holds, bookkeeping included, divided by the number of pending timers "
        "when its capacity is used up.",
    )
