"""Time per operation of whole workloads: a panel for each source, a row for each contestant."""

import math
from collections.abc import Iterator

from matplotlib.axes import Axes

from reports import formats
from reports.charts.axes import colour_of, described, log_axis, mark_of, row_panels
from reports.charts.pictures import SMALL, Picture
from reports.summary import Cell, Contestant, Summary


def draw(summary: Summary) -> Iterator[Picture]:
    """Median time per operation, with the spread."""
    if not summary.replays:
        return
    columns = {source: summary.replayed(source) for source in summary.replays}
    cells = [(who, cell) for column in columns.values() for who, cell in column.items()]
    figure, found, rows = row_panels(
        summary.contestants,
        [source.short for source in columns],
        "Replays of whole workloads: time per operation",
        tall=[who for who, cell in cells if cell.spread is None],
    )
    levels = [level for _, cell in cells for level in cell.reach]
    for axes, column in zip(found, columns.values(), strict=True):
        log_axis(axes, "x", levels, formats.nanoseconds, most_ticks=3)
        for who, cell in column.items():
            _draw(axes, rows[who], who, cell)
    for axes in found[-2:]:
        axes.set_xlabel("time per operation")
    texts = [
        (source.short, {who: cell.text for who, cell in column.items()})
        for source, column in columns.items()
    ]
    yield Picture(
        "replays",
        "The time of the whole sequence, expiries included, divided by its operations.",
        "Dot charts with a logarithmic axis, one for each source: time per operation. "
        f"{described(texts)}.",
        figure,
    )


def _draw(axes: Axes, row: float, who: Contestant, cell: Cell) -> None:
    if cell.spread:
        axes.hlines(row, *cell.reach, color=colour_of(who), linewidth=1.6, zorder=4)
    axes.plot(cell.level, row, **mark_of(who, 6.5, hollow=cell.spread is None))
    low, high = (math.log(limit) for limit in axes.get_xlim())
    # Far at the right the text would leave the panel.
    at_left = (math.log(cell.level) - low) / (high - low) > 0.6
    axes.annotate(
        cell.text.replace(": ", ",\n"),
        (cell.reach[0 if at_left else 1], row),
        (-8 if at_left else 8, 0),
        textcoords="offset points",
        va="center",
        ha="right" if at_left else "left",
        fontsize=SMALL,
        linespacing=1.1,
    )
