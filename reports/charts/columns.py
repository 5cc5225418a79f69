"""A column of points for each source."""

from reports.charts.axes import Chart, log_axis
from reports.plots import Plot


def draw(chart: Chart, plot: Plot) -> None:
    """Draw the points of a column beside each other, in the order of the legend."""
    for axes, panel in zip(chart.panels, plot.panels.values(), strict=True):
        for place, (subject, points) in enumerate(panel.series.items()):
            aside = 0.6 * ((place + 0.5) / len(panel.series) - 0.5)
            moved = [point._replace(x=point.x + aside) for point in points]
            chart.series(axes, subject, moved, panel.form, line=False)
        log_axis(axes, "y", panel.form)
        axes.set_xlim(-0.5, len(panel.names) - 0.5)
        axes.set_xticks(range(len(panel.names)), panel.names, rotation=25, ha="right")
        axes.tick_params("x", length=0)
