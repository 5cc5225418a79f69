"""How late timers fired: a panel for each source, a row for each contestant."""

from collections import Counter
from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from reports import formats
from reports.charts.axes import colour_of, mark_of, row_panels
from reports.charts.pictures import SMALL, Picture
from reports.palette import INK
from reports.summary import Bin, Contestant, Replayed, Summary

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
        told = (
            f"{who.full} {_draw(axes, rows[who], who, replayed)}"
            for who, replayed in replays.items()
        )
        texts.append(f"{source.short}, in {formats.unit_name(source.unit)}: {', '.join(told)}")
        axes.set_xlabel(f"lateness [{formats.unit_symbol(source.unit)}]")
        axes.margins(x=0.06)
        axes.xaxis.set_major_locator(MaxNLocator(3, integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda late, _: formats.count(round(late))))
        if axes.get_xlim()[1] - axes.get_xlim()[0] < 1:  # all of them at zero
            axes.set_xlim(-1.0, 1.0)
    yield Picture(
        "lateness",
        title,
        "Lateness is the moment of firing minus the deadline, or minus the moment of scheduling if "
        "the deadline had already passed. Negative is early. A marker at 0: every timer fired "
        "exactly then. Bars: the share of the timers with each lateness; the tallest bar fills the "
        "row.",
        f"Histograms, one panel for each source and one row for each timer. {'; '.join(texts)}.",
        figure,
    )


def _draw(axes: Axes, row: float, who: Contestant, replayed: Replayed) -> str:
    """Draw a row, and say what it shows."""
    if not replayed.bins:
        why = "nothing fired" if replayed.cell.spread else "too long, not run"
        axes.annotate(
            why, (0, row), (6, 0), textcoords="offset points", va="center", fontsize=SMALL
        )
        return why
    first, last = replayed.bins[0], replayed.bins[-1]
    low, high = first.lateness, last.lateness + last.width - 1
    if low == high == 0:
        axes.plot(0, row, zorder=3, **mark_of(who, 6.5))
        return "0"
    bins = _coarser(replayed.bins)
    peak = max(found.timers / found.width for found in bins)
    # The y axis points downwards, in lines of text: bars stand a little above the row's lower edge.
    axes.bar(
        [found.lateness - 0.5 for found in bins],
        [-1.8 * found.timers / found.width / peak for found in bins],
        [found.width for found in bins],
        bottom=row + 1.0,
        align="edge",
        color=colour_of(who),
        edgecolor=colour_of(who),
        linewidth=0.8,
    )
    return f"{low} to {high}" if high > low else f"{low}"


def _coarser(bins: Sequence[Bin]) -> Sequence[Bin]:
    """The same histogram in at most MOST_BARS bins of equal width."""
    first = bins[0].lateness
    width = -(-(bins[-1].lateness + bins[-1].width - first) // MOST_BARS)
    if width <= bins[0].width:
        return bins
    timers: Counter[int] = Counter()
    for found in bins:
        timers[(found.lateness - first) // width] += found.timers
    return [Bin(first + number * width, width, many) for number, many in timers.items()]
