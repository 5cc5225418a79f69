"""Time per operation of whole workloads: a panel for each source, a row for each contestant."""

import math
from collections.abc import Iterator

from matplotlib.axes import Axes

from reports import formats
from reports.charts.axes import colour_of, described, log_axis, mark_of, row_panels
from reports.charts.pictures import SMALL, Picture
from reports.summary import Cell, StoredContestant, Summary


def draw(summary: Summary) -> Iterator[Picture]:
    """Median time per operation, with the spread."""
    columns = {source: summary.replayed(source) for source, of in summary.replays.items() if of}
    if not columns:
        return
    cells = [(who, cell) for column in columns.values() for who, cell in column.items()]
    figure, found, rows = row_panels(
        summary.contestants,
        [source.short for source in columns],
        "Replays of whole workloads: time per operation",
    )
    levels = [level for _, cell in cells for level in cell.reach]
    for axes, (source, column) in zip(found, columns.items(), strict=True):
        log_axis(axes, "x", levels, formats.nanoseconds, most_ticks=3)
        for who, cell in column.items():
            _draw(axes, rows[who], who, cell)
        for who in summary.taking_part(source):
            if who not in column:
                _annotate(axes, "over budget", axes.get_xlim()[0], rows[who], 8)
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


def _draw(axes: Axes, row: float, who: StoredContestant, cell: Cell) -> None:
    axes.hlines(row, *cell.reach, color=colour_of(who), linewidth=1.6, zorder=4)
    axes.plot(cell.level, row, **mark_of(who, 6.5))
    low, high = (math.log(limit) for limit in axes.get_xlim())
    # Far at the right the text would leave the panel.
    at_left = (math.log(cell.level) - low) / (high - low) > 0.6
    _annotate(axes, cell.text, cell.reach[0 if at_left else 1], row, -8 if at_left else 8)


def _annotate(axes: Axes, text: str, x: float, row: float, offset: int) -> None:
    """Write a text in a row, so many points beside x."""
    axes.annotate(
        text,
        (x, row),
        (offset, 0),
        textcoords="offset points",
        va="center",
        ha="right" if offset < 0 else "left",
        fontsize=SMALL,
    )
