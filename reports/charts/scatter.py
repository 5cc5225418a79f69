"""Points of two values; the x axis begins at 0."""

from matplotlib.ticker import FuncFormatter, SymmetricalLogLocator

from compare.base import formats
from reports.charts.axes import Chart, log_axis
from reports.plots import Plot


def draw(chart: Chart, plot: Plot) -> None:
    """Draw the points of each series. Those at 0 stand beside each other."""
    for axes, panel in zip(chart.panels, plot.panels.values(), strict=True):
        at_zero = [subject for subject, [point] in panel.series.items() if point.x == 0]
        for subject, [point] in panel.series.items():
            x = point.x or 0.8 * at_zero.index(subject) / len(at_zero) - 0.4
            chart.series(axes, subject, [point._replace(x=x)], panel.form, line=False)
        greatest = max([10, *(point.x for [point] in panel.series.values())])
        axes.set_xscale("symlog", linthresh=1)
        locator = SymmetricalLogLocator(linthresh=1, base=10)
        locator.set_params(numticks=4)  # as many labels as have room
        axes.xaxis.set_major_locator(locator)
        axes.set_xlim(-0.9, 2.5 * greatest)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: formats.short_count(x)))
        axes.set_xlabel(panel.across)
        log_axis(axes, "y", panel.form)
