"""Reads from a Matplotlib figure what it shows."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.text import Annotation

from reports.palette import look_of
from reports.summary import StoredContestant

NO_MARKER = ("None", "", None)


class Points(NamedTuple):
    """A series with markers."""

    x: list[float]
    y: list[float]
    fill: str


def colour(who: StoredContestant) -> str:
    return look_of(who.timer).colour.lower()


def in_data(line: Line2D, axes: Axes) -> bool:
    """Whether it is drawn where the axes say, and not beside them."""
    return line.get_transform().contains_branch(axes.transData)


def lines_of(axes: Axes, who: StoredContestant) -> list[Line2D]:
    """What is drawn in a contestant's colour, in the axes' coordinates."""
    return [
        line
        for line in axes.get_lines()
        if to_hex(line.get_color()) == colour(who) and in_data(line, axes)
    ]


def strokes(axes: Axes, who: StoredContestant) -> list[Line2D]:
    return [line for line in lines_of(axes, who) if line.get_linestyle() != "None"]


def marks(axes: Axes, who: StoredContestant) -> list[Points]:
    """Its series with markers, which must be its own."""
    found = []
    for line in lines_of(axes, who):
        if line.get_marker() in NO_MARKER:
            continue
        assert line.get_marker() == look_of(who.timer).marker
        x, y = (list(map(float, values)) for values in line.get_data())
        found.append(Points(x, y, line.get_fillstyle()))
    return found


def spans(
    axes: Axes, who: StoredContestant
) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Ends of the bars in a contestant's colour."""
    return [
        (tuple(map(float, segment[0])), tuple(map(float, segment[1])))
        for collection in axes.collections
        if isinstance(collection, LineCollection)
        and to_hex(collection.get_colors()[0]) == colour(who)
        for segment in collection.get_segments()
    ]


def fitted(low: float, high: float) -> object:
    """The limits of a logarithmic axis over more than a decade, with a little room at its ends."""
    margin = 10 ** max(0.06 * math.log10(high / low), 0.12)
    return pytest.approx((low / margin, high * margin))


def notes(axes: Axes) -> list[Annotation]:
    """Texts that annotate something."""
    return [text for text in axes.texts if isinstance(text, Annotation) and text.get_text()]


def tick_labels(axes: Axes, which: str, values: Iterable[float]) -> list[str]:
    axis = axes.xaxis if which == "x" else axes.yaxis
    return [axis.get_major_formatter()(value, 0) for value in values]


def named_rows(axes: Axes) -> dict[str, float]:
    """The names at the left of panels with rows, and where the rows are."""
    names = [label.get_text() for label in axes.figure.axes[0].get_yticklabels()]
    return dict(zip(names, map(float, axes.get_yticks()), strict=True))
