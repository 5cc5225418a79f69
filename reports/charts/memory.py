"""Memory per pending timer: a bar for each contestant."""

from collections.abc import Iterator
from typing import Any

from reports import formats
from reports.charts.axes import colour_of, row_panels
from reports.charts.pictures import Picture
from reports.palette import PAPER
from reports.summary import Summary


def draw(summary: Summary) -> Iterator[Picture]:
    """Bytes per pending timer at full capacity, at the largest capacity measured."""
    found = {who: at for who in summary.contestants if (at := summary.footprint(who))}
    if not found:
        return
    most = max(capacity for capacity, _ in found.values())
    figure, [axes], rows = row_panels(list(found), [""], "Memory per pending timer")
    texts = []
    for who, (capacity, value) in found.items():
        text = formats.data_size(value)
        text += "" if capacity == most else f" at N = {formats.short_count(capacity)}"
        hatching: dict[str, Any] = {} if who.compiled else {"hatch": "///", "edgecolor": PAPER}
        axes.barh(rows[who], value, height=1.0, color=colour_of(who), **hatching)
        axes.annotate(text, (value, rows[who]), (4, 0), textcoords="offset points", va="center")
        texts.append(f"{who.full} {text}")
    axes.set_xlim(0, 1.15 * max(value for _, value in found.values()))  # with room for the text
    axes.set_xlabel(f"bytes per timer, with N = {formats.count(most)} pending")
    yield Picture(
        "memory",
        "All that the timer holds, bookkeeping included, divided by the number of pending timers "
        "when its capacity is used up."
        + (" Hatched: Python objects." if any(not who.compiled for who in found) else ""),
        f"Bar chart, bytes per timer with {most:,} pending: {', '.join(texts)}.",
        figure,
    )
