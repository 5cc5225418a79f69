"""Lines over a number, such as timers pending or a rate, or over named places."""

from reports.charts.axes import Chart, log_axis, size_axis, stroke_of
from reports.palette import INK
from reports.plots import Plot


def draw(chart: Chart, plot: Plot) -> None:
    """Draw a line for each series; those over numbers of timers are moved apart sideways."""
    # Within a tenth of a decade in total.
    last = max(len(plot.order) - 1, 1)
    nudges = {timer: 10 ** (0.1 * (n / last - 0.5)) for n, timer in enumerate(plot.order)}
    for axes, (heading, panel) in zip(chart.panels, plot.panels.items(), strict=True):
        if panel.diagonal:
            axes.plot(panel.diagonal, panel.diagonal, color=INK, linewidth=0.7, zorder=1)
        for subject, levels in panel.levels.items():
            for estimate in levels:
                line = axes.axhline(estimate.value, **stroke_of(subject))
                chart.mark(line, subject, heading, panel.form(estimate.value))
        drawn = panel.series
        if panel.ticks:  # dashes on top
            drawn = {
                subject: [point._replace(x=point.x * nudges[subject]) for point in drawn[subject]]
                for subject in sorted(drawn, key=lambda subject: subject.dashed)
            }
        for subject, points in drawn.items():
            chart.series(axes, subject, points, panel.form)
        if any(panel.series.values()) or any(panel.levels.values()):
            if panel.ticks:
                size_axis(axes, panel.ticks)
            elif panel.names:
                axes.set_xticks(range(len(panel.names)), panel.names, rotation=40, ha="right")
            else:
                log_axis(axes, "x", panel.form_across, most_ticks=panel.most_ticks)
            log_axis(axes, "y", panel.form)
        axes.set_xlabel(panel.across)
