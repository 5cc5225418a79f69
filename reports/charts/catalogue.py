"""All charts, by the section that shows them. A new chart is a file and a line here."""

from collections.abc import Callable, Iterator, Mapping

import matplotlib as mpl

from reports.charts import pending, purgatory, replays, trade_off
from reports.charts.pictures import SETTINGS, Picture
from reports.summary import Summary

CHARTS: tuple[tuple[str, Callable[[Summary], Iterator[Picture]]], ...] = (
    ("times", pending.times),
    ("work", pending.work),
    ("workloads", replays.draw),
    ("workloads", trade_off.draw),
    ("memory", pending.memory),
    ("purgatory", purgatory.draw),
)
"""Section, and a function that draws its charts; without figures it draws none."""


def pictures(summary: Summary) -> Mapping[str, list[Picture]]:
    """The charts for which the run has figures, by section, in the order of the page."""
    by_section: dict[str, list[Picture]] = {}
    with mpl.rc_context(SETTINGS):
        for section, draw in CHARTS:
            for picture in draw(summary):
                # Lay it out once, so that its files do not depend on which is written first.
                picture.figure.draw_without_rendering()
                picture.figure.set_layout_engine("none")
                by_section.setdefault(section, []).append(picture)
    return by_section
