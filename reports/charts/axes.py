"""Axes, marks, rows and labels: what the charts are put together from. Sizes are in inches, of text
in points.
"""

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from textwrap import wrap
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator
from matplotlib.transforms import Affine2D, Transform

from reports import style
from reports.charts.pictures import HEADING, LINE_HEIGHT, SMALL, TEXT, WIDTH
from reports.style import FAINT, PAPER, look_of
from reports.summary import Contestant


def stroke_of(who: Contestant) -> dict[str, Any]:
    """The line of a contestant: dashed for a plain Python loop."""
    return {"linewidth": 1.8, "linestyle": "solid" if who.compiled else (0, (4, 2))}


def coincide(points: Mapping[int, float], others: Mapping[int, float]) -> bool:
    """Whether two curves lie on each other somewhere, so that the first must be drawn wider to be
    seen.
    """
    return any(
        n in others and math.isclose(count, others[n], rel_tol=0.05) for n, count in points.items()
    )


def nudge_factors(number: int, sizes: Sequence[int], width: float) -> list[float]:
    """Factors that move the points of several series apart on a logarithmic axis.

    All within `width` of the distance between two neighbouring sizes.
    """
    if number == 1:
        return [1.0]
    closest = min((math.log(b / a) for a, b in pairwise(sizes)), default=math.log(10))
    return [math.exp(width * closest * (i / (number - 1) - 0.5)) for i in range(number)]


FILLINGS = (
    "full",
    "left",
    "bottom",
    "right",
    "top",
)  # of the markers of one timer with several parameters


def mark_of(who: Contestant, size: float, edge: float = 0.5) -> dict[str, Any]:
    """The marker of a contestant, with an edge that keeps it apart from what it lies on."""
    look = look_of(who.timer)
    filling: dict[str, Any] = {"markeredgecolor": PAPER, "markeredgewidth": edge}
    if who.variant:  # half filled, so that it needs an edge to be seen whole
        filling = {
            "markerfacecoloralt": PAPER,
            "markeredgewidth": 0.9,
            "fillstyle": FILLINGS[who.variant % len(FILLINGS)],
        }
    return {
        "color": look.colour,
        "marker": look.marker,
        "markersize": size * _scale(look.marker),
        **filling,
    }


def hollow_mark_of(who: Contestant, size: float) -> dict[str, Any]:
    """The same for what was not measured, but predicted."""
    look = look_of(who.timer)
    return {
        "color": look.colour,
        "marker": look.marker,
        "markersize": size * _scale(look.marker),
        "markerfacecolor": PAPER,
        "markeredgewidth": 1.2,
    }


def _scale(marker: str) -> float:
    """Crosses and triangles have less area than the other markers of their size."""
    return {"P": 1.25, "X": 1.25, "^": 1.15, "v": 1.15}.get(marker, 1.0)


def _figure(height: float, title: str) -> Figure:
    figure = Figure(figsize=(WIDTH, height))
    figure.text(
        0.1 / WIDTH, 1 - 0.08 / height, title, fontsize=HEADING, fontweight="bold", va="top"
    )
    return figure


def labelled_axes(series: int, title: str) -> tuple[Figure, Axes]:
    """One chart with room at its right for a label of two lines for each series."""
    height = max(4.1, 1.2 + series * 2.2 * LINE_HEIGHT + 0.3)
    figure = _figure(height, title)
    left, right, bottom, top = 0.85, 2.35, 0.52, 0.5
    axes = figure.add_axes(
        (left / WIDTH, bottom / height, 1 - (left + right) / WIDTH, 1 - (bottom + top) / height)
    )
    return figure, axes


def panels_above_legend(
    number: int,
    title: str,
    *,
    panel_height: float,
    left: float,
    legend: Sequence[Contestant],
    gap_y: float = 0.52,
) -> tuple[Figure, list[Axes]]:
    """Small charts in two columns above a legend; sizes in inches."""
    columns, rows = min(number, 2), math.ceil(number / 2)
    gap_x, right, top, axis = 0.68, 0.1, 0.7, 0.5
    abreast = _legend_columns([len(who.label) for who in legend])
    lines = math.ceil(len(legend) / abreast)
    bottom = axis + lines * LINE_HEIGHT * 1.25 + 0.1
    height = top + rows * panel_height + (rows - 1) * gap_y + bottom
    figure = _figure(height, title)
    width = (WIDTH - left - right - gap_x) / 2 if columns == 2 else WIDTH * 0.6
    panels = [
        figure.add_axes(
            (
                (left + (i % 2) * (width + gap_x)) / WIDTH,
                (height - top - panel_height - i // 2 * (panel_height + gap_y)) / height,
                width / WIDTH,
                panel_height / height,
            )
        )
        for i in range(number)
    ]
    figure.legend(
        handles=[_handle(who) for who in legend],
        labels=[who.label for who in legend],
        loc="lower left",
        bbox_to_anchor=(0.1 / WIDTH, 0.04 / height),
        ncols=abreast,
        frameon=False,
        borderaxespad=0,
        columnspacing=1.5,
        handlelength=2.6,
        fontsize=TEXT,
        labelspacing=0.3,
    )
    return figure, panels


LEGEND_CHARACTERS = 58  # of two labels side by side


def _legend_columns(lengths: Sequence[int]) -> int:
    """Two where the longest labels of both fit beside each other, else one."""
    half = math.ceil(len(lengths) / 2)
    return 2 if max(lengths[:half]) + max(lengths[half:], default=0) <= LEGEND_CHARACTERS else 1


def inches_from(figure: Figure, axes: Axes) -> Transform:
    """x in inches from the left edge of the axes, y as a share of their height."""
    box = axes.get_position()
    return Affine2D().scale(1 / WIDTH, box.height).translate(box.x0, box.y0) + figure.transFigure


def _handle(who: Contestant) -> Line2D:
    return Line2D([], [], **mark_of(who, 6.0), **stroke_of(who))


HEADING_CHARACTERS = 20  # above one of two panels


def cut_heading(heading: str) -> str:
    """A heading that is no broader than its panel."""
    return (
        heading if len(heading) <= HEADING_CHARACTERS else heading[: HEADING_CHARACTERS - 1] + "…"
    )


TALL_ROW = 2.4  # lines of text
LOW_ROW = 1.6


@dataclass(frozen=True)
class Rows:
    """One row for each contestant, from the top; heights and places in lines of text."""

    contestants: Sequence[Contestant]
    heights: Sequence[float]

    @classmethod
    def of(cls, contestants: Sequence[Contestant], tall: Container[Contestant] = ()) -> "Rows":
        """Rows with room for each contestant's remark; those of `tall` have room for two lines of
        figures.
        """
        return cls(
            contestants,
            [
                max(LOW_ROW + 0.8 * len(_remark_lines(who)), TALL_ROW if who in tall else 0.0)
                for who in contestants
            ],
        )

    @property
    def height(self) -> float:
        """Of all rows together."""
        return sum(self.heights)

    @property
    def edges(self) -> list[float]:
        """Where a row begins, the first left out."""
        return list(accumulate(self.heights[:-1]))

    @property
    def centres(self) -> list[float]:
        """Where a row's marks stand."""
        return [
            edge + height / 2 for edge, height in zip([0.0, *self.edges], self.heights, strict=True)
        ]


def row_panels(
    rows: Rows, headings: Sequence[str], title: str, *, values: float = 0.0
) -> tuple[Figure, list[Axes]]:
    """Charts in up to two columns with one row for each contestant, named at the left; `values`:
    room at the right.
    """
    number = len(headings)
    columns, lines = min(number, 2), math.ceil(number / 2)
    left, right, gap_x, gap_y, bottom = 1.75, 0.12 + values, 0.2, 0.75, 0.5
    top = 0.68 if any(headings) else 0.42
    panel_height = rows.height * LINE_HEIGHT
    height = top + lines * panel_height + (lines - 1) * gap_y + bottom
    figure = _figure(height, title)
    width = (WIDTH - left - right - (columns - 1) * gap_x) / columns
    panels = []
    for i, heading in enumerate(headings):
        axes = figure.add_axes(
            (
                (left + i % 2 * (width + gap_x)) / WIDTH,
                (height - top - panel_height - i // 2 * (panel_height + gap_y)) / height,
                width / WIDTH,
                panel_height / height,
            )
        )
        axes.set_title(cut_heading(heading), loc="left", fontsize=TEXT, fontweight="bold")
        axes.set_ylim(rows.height, 0)
        axes.yaxis.set_major_locator(NullLocator())
        axes.spines["left"].set_visible(False)
        axes.grid(visible=True, axis="x")
        for edge in rows.edges:
            axes.axhline(edge, color=FAINT, linewidth=0.6)
        if i % 2 == 0:
            for who, row in zip(rows.contestants, rows.centres, strict=True):
                _row_name(axes, row, who)
        panels.append(axes)
    return figure, panels


def _row_name(axes: Axes, row: float, who: Contestant) -> None:
    place: dict[str, Any] = {
        "xycoords": axes.get_yaxis_transform(),
        "textcoords": "offset points",
        "ha": "right",
    }
    lines = _remark_lines(who)
    rise = len(lines) * SMALL * 1.25 / 2  # the block of lines is centred on the row
    axes.annotate(who.short, (0, row), (-8, rise), va="center", **place)
    for i, line in enumerate(lines):
        below = rise - TEXT * 0.65 - SMALL * (0.65 + 1.25 * i)
        axes.annotate(line, (0, row), (-8, below), va="center", fontsize=SMALL, **place)


ROW_CHARACTERS = 25  # of the small font, at the left of a row


def _remark_lines(who: Contestant) -> list[str]:
    return wrap(who.remark, ROW_CHARACTERS)


def size_axis(axes: Axes, sizes: Sequence[int], *, label: bool = True) -> None:
    """A logarithmic x axis with a tick at each number of pending timers."""
    axes.set_xscale("log")
    axes.set_xlim(sizes[0] / 10**0.12, sizes[-1] * 10**0.12)
    axes.xaxis.set_major_locator(FixedLocator(list(sizes)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: style.short_count(round(size))))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(visible=True)
    if label:
        axes.set_xlabel("timers pending, N (log scale)")


def log_axis(
    axes: Axes,
    which: str,
    levels: Sequence[float],
    words: Callable[[float], str],
    *,
    most_ticks: int = 8,
) -> None:
    """A logarithmic axis over the levels, with at most `most_ticks` labelled ticks."""
    scale, limits, axis = (
        (axes.set_yscale, axes.set_ylim, axes.yaxis)
        if which == "y"
        else (axes.set_xscale, axes.set_xlim, axes.xaxis)
    )
    scale("log")
    low, high = min(levels), max(levels)
    decades = math.log10(high / low)
    margin = 10 ** max(0.06 * decades, 0.12)
    low, high = low / margin, high * margin
    if (
        math.log10(high / low) < 1
    ):  # at least a decade, so that noise does not look like a difference
        middle = math.sqrt(low * high)
        low, high = middle / math.sqrt(10), middle * math.sqrt(10)
    limits(low, high)
    axis.set_major_locator(FixedLocator(log_ticks(low, high, most_ticks)))
    axis.set_minor_locator(LogLocator(10, numticks=99))  # a mark at every power of ten
    axis.set_major_formatter(FuncFormatter(lambda value, _: style.tick(value, words)))
    axis.set_minor_formatter(NullFormatter())
    axes.grid(visible=True)


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers within [low, high], evenly dense on a logarithmic axis, at most so many (but
    two if they exist).

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


def end_labels(
    figure: Figure, axes: Axes, ends: Sequence[tuple[float, float, Contestant, str]]
) -> None:
    """Name each series at the right of the chart, beside its last point, moved apart where they
    would overlap.
    """
    box = axes.get_position()
    height = figure.get_figheight() * box.height
    low, high = (math.log10(limit) for limit in axes.get_ylim())
    # From the top down, in inches above the bottom of the axes.
    ordered = sorted(ends, key=lambda end: -end[1])
    wanted = [(math.log10(level) - low) / (high - low) * height for _, level, _, _ in ordered]
    texts = [_label_lines(who, value) for _, _, who, value in ordered]
    heights = [(1 + len(lines)) * LINE_HEIGHT + 0.04 for lines in texts]
    placed = spread_out(wanted, heights, -0.25, height + 0.15)
    for (x, level, who, _), lines, at in zip(ordered, texts, placed, strict=True):
        look, y = look_of(who.timer), at / height
        axes.annotate(
            "",
            (x, level),
            (1.05, y),
            xycoords="data",
            textcoords="axes fraction",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": look.colour,
                "linewidth": 0.7,
                "shrinkA": 0,
                "shrinkB": 3,
            },
        )
        axes.plot(1.07, y, transform=axes.transAxes, clip_on=False, **mark_of(who, 6.5))
        place: dict[str, Any] = {
            "xycoords": "axes fraction",
            "textcoords": "offset points",
            "annotation_clip": False,
        }
        # The block of lines is centred on the marker.
        rise = (len(lines) - 1) * LINE_HEIGHT / 2 * 72
        axes.annotate(who.short, (1.07, y), (8, rise), va="bottom", fontweight="bold", **place)
        for i, line in enumerate(lines):
            axes.annotate(
                line, (1.07, y), (8, rise - 1 - i * SMALL * 1.25), va="top", fontsize=SMALL, **place
            )


LABEL_CHARACTERS = 30  # of the small font, in the room for labels


def _label_lines(who: Contestant, value: str) -> list[str]:
    """What stands below a series' name: its value and the remark, on one line if they fit."""
    joined = f"{value} · {who.remark}" if who.remark else value
    return (
        [joined]
        if len(joined) <= LABEL_CHARACTERS
        else [value, *wrap(who.remark, LABEL_CHARACTERS)]
    )


def spread_out(
    wanted: Sequence[float], heights: Sequence[float], lowest: float, highest: float
) -> list[float]:
    """Centres near the wanted ones (falling) of blocks that do not overlap, within [lowest,
    highest] if they fit.

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
