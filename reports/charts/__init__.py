"""The charts: one file for each kind, with shared axes and settings."""

from collections.abc import Iterable, Mapping
from types import ModuleType

import matplotlib as mpl

from reports.charts import columns, curves, scatter
from reports.charts.axes import Chart
from reports.charts.pictures import SETTINGS, Picture
from reports.plots import COLUMNS, CURVES, SCATTER, Plot

KINDS: Mapping[str, ModuleType] = {CURVES: curves, COLUMNS: columns, SCATTER: scatter}


def drawn(plot: Plot) -> Picture:
    """Draw a chart."""
    with mpl.rc_context(SETTINGS):
        chart = Chart(plot)
        KINDS[plot.kind].draw(chart, plot)
        picture = chart.picture()
        # Lay it out once, so that its files do not depend on which is written first.
        picture.figure.draw_without_rendering()
        picture.figure.set_layout_engine("none")
    return picture


def pictures(plots: Mapping[str, Iterable[Plot]]) -> dict[str, list[Picture]]:
    """Draw the charts of each section."""
    return {section: [*map(drawn, each)] for section, each in plots.items()}
