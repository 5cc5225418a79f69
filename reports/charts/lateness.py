"""How late timers fired: a panel for each source, a row for each contestant."""

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from reports import formats
from reports.charts.axes import colour_of, described, mark_of, row_panels
from reports.charts.pictures import SMALL, Picture
from reports.palette import INK
from reports.summary import Replayed, StoredContestant, Summary

MOST_BARS = 110  # of a histogram, in the room of a panel


def draw(summary: Summary) -> Iterator[Picture]:
    """The distribution of lateness."""
    if not any(replayed.bins for of in summary.replays.values() for replayed in of.values()):
        return
    title = "Lateness: how long after its deadline a timer fired"
    headings = [source.short for source in summary.replays]
    figure, found, rows = row_panels(summary.contestants, headings, title)
    texts = []
    for axes, (source, replays) in zip(found, summary.replays.items(), strict=True):
        axes.axvline(0, color=INK, linewidth=0.8)
        drawn = {
            who: _draw(axes, rows[who], who, replays.get(who))
            for who in summary.taking_part(source)
        }
        texts.append((f"{source.short}, in {formats.unit_name(source.unit)}", drawn))
        axes.set_xlabel(f"lateness [{formats.unit_symbol(source.unit)}]")
        axes.margins(x=0.06)
        axes.xaxis.set_major_locator(MaxNLocator(3, integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda late, _: formats.count(round(late))))
        if axes.get_xlim()[1] - axes.get_xlim()[0] < 1:  # all of them at zero
            axes.set_xlim(-1.0, 1.0)
    yield Picture(
        "lateness",
        "Negative is early. A marker at 0: every timer fired exactly then. Bars: the share of the "
        "timers with each lateness; the tallest bar fills the row.",
        f"Histograms, one panel for each source and one row for each timer. {described(texts)}.",
        figure,
    )


def _draw(axes: Axes, row: float, who: StoredContestant, replayed: Replayed | None) -> str:
    """Draw a row, and say what it shows."""
    if not replayed or not replayed.bins:
        why = "nothing fired" if replayed else "over budget"
        axes.annotate(
            why, (0, row), (6, 0), textcoords="offset points", va="center", fontsize=SMALL
        )
        return why
    first, last = replayed.bins[0], replayed.bins[-1]
    low, high = first.lateness, last.lateness + last.width - 1
    if low == high == 0:
        axes.plot(0, row, zorder=3, **mark_of(who, 6.5))
        return "0"
    # Bars of equal width, at least as wide as the bins.
    width = max(last.width, -(-(high + 1 - low) // MOST_BARS))
    edges = np.arange(low, high + 1 + width, width) - 0.5
    lefts, _, timers = zip(*replayed.bins, strict=True)
    bars, _ = np.histogram(lefts, edges, weights=timers)
    # The y axis points downwards, in lines of text: bars stand a little above the row's lower edge.
    foot = row + 1.0
    axes.stairs(
        foot - 1.8 * bars / bars.max(), edges, baseline=foot, fill=True, color=colour_of(who)
    )
    return f"{low} to {high}" if high > low else f"{low}"
