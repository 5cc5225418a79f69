"""Axes, marks, rows and labels that the charts share. Sizes are in inches, of text in points."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from textwrap import wrap
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from reports import formats
from reports.charts.pictures import LINE_HEIGHT, SMALL, WIDTH
from reports.palette import FAINT, PAPER, look_of
from reports.summary import StoredContestant, Subject

# Characters that fit:
_LEGEND = 58  # two labels side by side
HEADING = 20  # above one of two panels
_ROW = 25  # the small font, at the left of a row
_LABEL = 30  # the small font, at the right of a line


# ---- marks


def colour_of(who: Subject) -> str:
    """The colour of what a line, bar or row is about."""
    return look_of(who.timer).colour


def stroke_of(who: Subject) -> dict[str, Any]:
    """Its line."""
    style = (0, (4, 2)) if who.dashed else "solid"
    return {"color": colour_of(who), "linewidth": 1.8, "linestyle": style}


def mark_of(who: Subject, size: float, *, hollow: bool = False) -> dict[str, Any]:
    """Its marker, with an edge that keeps it apart from what it lies on.

    It is half filled for further contestants of the same timer.
    """
    look = look_of(who.timer)
    filling: dict[str, Any] = {"markeredgecolor": PAPER, "markeredgewidth": 0.5}
    if hollow:
        filling = {"markerfacecolor": PAPER, "markeredgewidth": 1.2}
    elif who.variant:  # half filled, so that it needs an edge to be seen whole
        style = ("full", "left", "bottom", "right", "top")[who.variant % 5]
        filling = {"markerfacecoloralt": PAPER, "markeredgewidth": 0.9, "fillstyle": style}
    # Crosses and triangles have less area than the other markers of their size.
    scale = {"P": 1.25, "X": 1.25, "^": 1.15, "v": 1.15}.get(look.marker, 1.0)
    return {"color": look.colour, "marker": look.marker, "markersize": size * scale, **filling}


def draw_points(axes: Axes, points: Mapping[Any, float], style: Mapping[str, Any]) -> None:
    """A line through points, or their markers alone."""
    if "linestyle" not in style:
        style = {"linestyle": "none", "zorder": 3, **style}
    axes.plot(list(points), list(points.values()), **style)


def nudge_factors(number: int, sizes: Sequence[int], width: float) -> list[float]:
    """Factors that move the points of several series apart on a logarithmic axis.

    All lie within `width` of the distance between two neighbouring sizes, or of a decade.
    """
    if number == 1:
        return [1.0]
    closest = min([math.log(10), *(math.log(b / a) for a, b in pairwise(sizes))])
    return [math.exp(width * closest * (i / (number - 1) - 0.5)) for i in range(number)]


# ---- figures


def labelled_axes(series: int, title: str) -> tuple[Figure, Axes]:
    """One chart with room at its right for a label of two lines for each series."""
    height = max(4.1, 1.2 + series * 2.2 * LINE_HEIGHT + 0.3)
    figure = Figure(figsize=(WIDTH, height))
    figure.suptitle(title, x=0.1 / WIDTH, y=1 - 0.08 / height, ha="left", va="top")
    left, right, bottom, top = 0.85, 2.35, 0.52, 0.5
    return figure, figure.add_axes(
        (left / WIDTH, bottom / height, 1 - (left + right) / WIDTH, 1 - (bottom + top) / height)
    )


def panels(
    headings: Sequence[str],
    title: str,
    panel_height: float,
    *,
    y: str = "",
    legend: Sequence[Subject] = (),
    sharey: bool = False,
) -> tuple[Figure, list[Axes]]:
    """Charts in two columns, with `y` at the left, above a legend if there is one."""
    half = math.ceil(len(legend) / 2)
    widths = [
        max((len(who.full) for who in part), default=0) for part in (legend[:half], legend[half:])
    ]
    abreast = 2 if sum(widths) <= _LEGEND else 1
    columns, lines = min(len(headings), 2), math.ceil(len(headings) / 2)
    height = 0.45 + lines * (panel_height + 0.72)
    height += math.ceil(len(legend) / abreast) * LINE_HEIGHT * 1.25
    layout = ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.05, hspace=0.02, wspace=0.03)
    figure = Figure(figsize=(WIDTH, height), layout=layout)
    figure.suptitle(title, x=0.1 / WIDTH, ha="left")
    found = figure.subplots(lines, columns, squeeze=False, sharey=sharey).flatten().tolist()
    for empty in found[len(headings) :]:
        empty.remove()
    for axes, heading in zip(found, headings, strict=False):
        axes.set_title(heading)
    for axes in found[::2]:
        axes.set_ylabel(y)
    figure.align_ylabels()
    if legend:
        figure.legend(
            handles=[Line2D([], [], **(mark_of(who, 6.0) | stroke_of(who))) for who in legend],
            labels=[who.full for who in legend],
            loc="outside lower left",
            ncols=abreast,
            borderaxespad=0.2,
            columnspacing=1.5,
            handlelength=2.6,
            labelspacing=0.3,
        )
    return figure, found[: len(headings)]


def row_panels(
    contestants: Sequence[StoredContestant],
    headings: Sequence[str],
    title: str,
) -> tuple[Figure, list[Axes], dict[StoredContestant, float]]:
    """Charts with one row for each contestant, named at the left, and where each row is.

    Heights and places are in lines of text from the top.
    """
    names = ["\n".join([who.short, *wrap(who.remark, _ROW)]) for who in contestants]
    heights = [1.6 + 0.9 * name.count("\n") for name in names]
    edges = [0.0, *accumulate(heights)]
    centres = [(above + below) / 2 for above, below in pairwise(edges)]
    headings = [formats.cut(heading, HEADING) for heading in headings]
    figure, found = panels(headings, title, edges[-1] * LINE_HEIGHT, sharey=True)
    for axes in found:
        axes.set_ylim(edges[-1], 0)
        axes.set_yticks(centres, names, fontsize=SMALL)
        axes.tick_params("y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(visible=False, axis="y")
        for edge in edges[1:-1]:
            axes.axhline(edge, color=FAINT, linewidth=0.6)
    return figure, found, dict(zip(contestants, centres, strict=True))


# ---- axes


def size_axis(axes: Axes, sizes: Sequence[int]) -> None:
    """A logarithmic x axis with a tick at each number of pending timers."""
    axes.set_xscale("log")
    axes.set_xlim(sizes[0] / 10**0.12, sizes[-1] * 10**0.12)
    axes.xaxis.set_major_locator(FixedLocator(list(sizes)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: formats.short_count(round(size))))
    axes.xaxis.set_minor_locator(NullLocator())


def log_axis(
    axes: Axes,
    which: str,
    levels: Sequence[float],
    form: Callable[[float], str],
    *,
    most_ticks: int = 8,
) -> None:
    """A logarithmic axis over the levels, with at most `most_ticks` labelled ticks."""
    low, high = min(levels), max(levels)
    margin = 10 ** max(0.06 * math.log10(high / low), 0.12)
    low, high = low / margin, high * margin
    if high / low < 10:  # at least a decade, so that noise does not look like a difference
        middle = math.sqrt(low * high)
        low, high = middle / math.sqrt(10), middle * math.sqrt(10)
    axes.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    axis = axes.yaxis if which == "y" else axes.xaxis
    axis.set_major_locator(FixedLocator(log_ticks(low, high, most_ticks)))
    axis.set_minor_locator(LogLocator(10, numticks=99))  # a mark at every power of ten
    axis.set_major_formatter(FuncFormatter(lambda value, _: formats.tick(value, form)))
    axis.set_minor_formatter(NullFormatter())


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers within [low, high], evenly dense on a logarithmic axis.

    At most so many, but two if they exist.

    >>> log_ticks(3.0, 40.0, 5), log_ticks(3.0, 4e4, 4), log_ticks(0.5, 5e6, 4)
    ([5.0, 10.0, 20.0], [10.0, 100.0, 1000.0, 10000.0], [1.0, 100.0, 10000.0, 1000000.0])
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for digits, stride in (((1, 2, 5), 1), ((1, 3), 1), ((1,), 1), ((1,), 2), ((1,), 3), ((1,), 4)):
        ticks = [
            float(f"{digit}e{exponent}")
            for exponent in range(first, last + 1)
            if exponent % stride == 0
            for digit in digits
        ]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) <= most:
            break
    return ticks


# ---- labels


def described(panels: Iterable[tuple[str, Mapping[Any, str]]]) -> str:
    """What panels show, as text: for each its heading, and who stands where."""
    return "; ".join(
        f"{heading}: {', '.join(f'{who.full} {text}' for who, text in texts.items())}"
        for heading, texts in panels
    )


def end_labels(
    figure: Figure, axes: Axes, ends: Mapping[StoredContestant, tuple[float, float, str]]
) -> None:
    """Name each series at the right of the chart, beside its last point: (x, y, text).

    Labels are moved apart where they would overlap.
    """
    height = figure.get_figheight() * axes.get_position().height
    low, high = (math.log10(limit) for limit in axes.get_ylim())
    # From the top down, in inches above the bottom of the axes.
    ordered = sorted(ends.items(), key=lambda end: -end[1][1])
    wanted = [(math.log10(level) - low) / (high - low) * height for _, (_, level, _) in ordered]
    texts = [_label(who, value) for who, (_, _, value) in ordered]
    heights = [(2 + text.count("\n")) * LINE_HEIGHT + 0.04 for text in texts]
    placed = spread_out(wanted, heights, -0.25, height + 0.15)
    for (who, (x, level, _)), text, at in zip(ordered, texts, placed, strict=True):
        y = at / height
        arrow = {"arrowstyle": "-", "color": colour_of(who), "linewidth": 0.7}
        axes.annotate(
            "",
            (x, level),
            (1.05, y),
            textcoords="axes fraction",
            annotation_clip=False,
            arrowprops=arrow | {"shrinkA": 0, "shrinkB": 3},
        )
        axes.plot(1.07, y, transform=axes.transAxes, clip_on=False, **mark_of(who, 6.5))
        # The block of lines is centred on the marker.
        rise = text.count("\n") * LINE_HEIGHT / 2 * 72
        place: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
        axes.annotate(who.short, (1.07, y), (8, rise), va="bottom", fontweight="bold", **place)
        axes.annotate(text, (1.07, y), (8, rise), va="top", fontsize=SMALL, **place)


def _label(who: StoredContestant, value: str) -> str:
    """What stands below a series' name: its value and the remark, on one line if they fit."""
    joined = f"{value} · {who.remark}" if who.remark else value
    return joined if len(joined) <= _LABEL else "\n".join([value, *wrap(who.remark, _LABEL)])


def spread_out(
    wanted: Sequence[float], heights: Sequence[float], lowest: float, highest: float
) -> list[float]:
    """Centres near the wanted ones (descending) of blocks that do not overlap.

    They lie within [lowest, highest] if they fit.

    >>> spread_out([5.0, 4.9, 1.0], [1.0, 1.0, 1.0], 0.0, 5.0)
    [4.5, 3.5, 1.0]
    """
    placed: list[float] = []
    ceiling = highest
    for i, (place, height) in enumerate(zip(wanted, heights, strict=True)):
        floor = lowest + sum(heights[i + 1 :])  # room for those below
        placed.append(min(max(place, floor + height / 2), ceiling - height / 2))
        ceiling = placed[-1] - height / 2
    return placed
