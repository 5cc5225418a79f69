"""Time against precision: a panel for each source."""

from collections.abc import Iterator

from matplotlib.ticker import FuncFormatter

from reports import formats
from reports.charts.axes import Chart, Point, log_axis
from reports.charts.pictures import Picture
from reports.summary import Summary

FEW_PRECISIONS = 2
"""Up to this number of precisions, the charts of time and lateness suffice."""


def draw(summary: Summary) -> Iterator[Picture]:
    """Draw the time per operation against the worst lateness seen."""
    if (
        len({timer.lateness for timer in summary.contestants}) <= FEW_PRECISIONS
        or not summary.replays
    ):
        return
    fired = {
        source: {
            timer: (replay.time, max(map(abs, replay.late)))
            for timer, replay in replays.items()
            if replay.late
        }
        for source, replays in summary.replays.items()
    }
    headings = {summary.called(source): measured for source, measured in fired.items()}
    chart = Chart("Time per operation against precision", summary.contestants, headings)
    for axes, (source, measured) in zip(chart.panels, fired.items(), strict=True):
        exact = [timer for timer, (_, deviation) in measured.items() if deviation == 0]
        for timer, (time, deviation) in measured.items():
            # Those at 0 stand beside each other.
            x = deviation or 0.8 * exact.index(timer) / len(exact) - 0.4
            where = f"at most {formats.count(deviation)} {source.unit} off"
            chart.series(axes, timer, [Point(x, time, where)], line=False)
        axes.set_xscale("symlog", linthresh=1)
        axes.set_xlim(-0.9, 2.5 * max([10, *(deviation for _, deviation in measured.values())]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: formats.short_count(x)))
        axes.set_xlabel(f"worst deviation [{source.unit}]")
        log_axis(axes, "y", formats.nanoseconds)
    yield chart.picture(
        "trade-off",
        "Across: how far from its deadline the worst timer fired, late or early; 0 is exact. Up: "
        "the time per operation. Lower left is better in both.",
    )
