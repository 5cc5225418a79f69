"""Axes, lines and marks that the charts share. Sizes are in inches, of text in points."""

import math
from collections.abc import Callable, Sequence
from textwrap import fill
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from compare.base import formats
from reports.charts.pictures import LINE_HEIGHT, WIDTH, Mark, Picture
from reports.palette import PAPER, look_of
from reports.plots import Plot, Point
from reports.summary import Subject

HEADING = 19  # characters that fit above one of two panels
LABEL = 42  # characters of a line of the legend
FINE = 40  # a smaller range has ticks at 1, 2 and 5 times a power of ten


def stroke_of(subject: Subject) -> dict[str, Any]:
    """Line style for a contestant or case."""
    style = (0, (4, 2)) if subject.dashed else "solid"
    return {"color": look_of(subject.timer).colour, "linewidth": 1.8, "linestyle": style}


def mark_of(subject: Subject, size: float = 5.5, *, hollow: bool = False) -> dict[str, Any]:
    """Marker style for a contestant or case, with an edge that separates it from what it covers.

    Further contestants of the same timer get half-filled markers.
    """
    look = look_of(subject.timer)
    filling: dict[str, Any] = {"markeredgecolor": PAPER, "markeredgewidth": 0.5}
    if hollow:
        filling = {"markerfacecolor": PAPER, "markeredgewidth": 1.2}
    elif subject.variant:  # half filled, so that it needs an edge to be seen whole
        style = ("full", "left", "bottom", "right", "top")[subject.variant % 5]
        filling = {"markerfacecoloralt": PAPER, "markeredgewidth": 0.9, "fillstyle": style}
    # Crosses and triangles have less area than the other markers of their size.
    scale = {"P": 1.25, "X": 1.25, "^": 1.15, "v": 1.15}.get(look.marker, 1.0)
    return {"color": look.colour, "marker": look.marker, "markersize": size * scale, **filling}


class Chart:
    """A figure with panels in up to two columns above a legend."""

    def __init__(self, plot: Plot) -> None:
        self._plot, shown, height = plot, plot.panels, plot.height
        subjects = [who for who in plot.order if any(who in p.subjects for p in shown.values())]
        labels = [fill(subject.full, LABEL) for subject in subjects]
        rows = sum(1 + label.count("\n") for label in labels)
        self.marks: dict[str, Mark] = {}
        columns, lines = min(len(shown), 2), math.ceil(len(shown) / 2)
        whole = 0.45 + lines * (height + 0.72) + rows * LINE_HEIGHT * 1.25
        layout = ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.05, hspace=0.02, wspace=0.03)
        self.figure = Figure(figsize=(WIDTH, whole), layout=layout)
        self.figure.suptitle(plot.title, x=0.1 / WIDTH, ha="left")
        grid = self.figure.subplots(lines, columns, squeeze=False).flatten().tolist()
        for empty in grid[len(shown) :]:
            empty.remove()
        self.panels: list[Axes] = grid[: len(shown)]
        for axes, heading in zip(self.panels, shown, strict=True):
            axes.set_title(formats.cut(heading, HEADING))
        self.figure.legend(
            handles=[
                Line2D([], [], **(mark_of(timer, 6.0) | stroke_of(timer))) for timer in subjects
            ],
            labels=labels,
            loc="outside lower left",
            borderaxespad=0.2,
            handlelength=2.6,
            labelspacing=0.3,
        )

    def mark(self, artist: Artist, subject: Subject, panel: str, text: str = "") -> None:
        """Give a drawn element an id, and record what it shows."""
        name = f"{self._plot.name}-mark-{len(self.marks)}"
        artist.set_gid(name)
        self.marks[name] = Mark(subject, panel, text)

    def series(
        self,
        axes: Axes,
        subject: Subject,
        points: Sequence[Point],
        form: Callable[[float], str] = formats.nanoseconds,
        *,
        line: bool = True,
    ) -> None:
        """Draw points, each with the range of its samples, and a line through them.

        `form` formats the values.
        """
        panel = axes.get_title("left")
        if line:
            levels = [p.value.value for p in points]
            [drawn] = axes.plot([p.x for p in points], levels, **stroke_of(subject))
            self.mark(drawn, subject, panel)
        for p in points:
            level, low, high = p.value.value, p.value.least, p.value.greatest
            text = f"{p.where}: {form(level)}"
            if low < high:
                text += f" ({formats.span(low, high, form)})"
                colour = look_of(subject.timer).colour
                bar = axes.vlines(p.x, low, high, color=colour, linewidth=1.4, zorder=4)
                self.mark(bar, subject, panel)
            style = mark_of(subject, hollow=p.hollow)
            [dot] = axes.plot([p.x], [level], linestyle="none", zorder=3, **style)
            self.mark(dot, subject, panel, text)

    def picture(self) -> Picture:
        """The finished chart."""
        return Picture(self._plot.name, self._plot.caption, self.figure, self.marks)


# ---- axes


def size_axis(axes: Axes, sizes: Sequence[int]) -> None:
    """A logarithmic x axis with a tick at each number of pending timers."""
    axes.set_xscale("log")
    axes.set_xlim(sizes[0] / 10**0.12, sizes[-1] * 10**0.12)
    axes.xaxis.set_major_locator(FixedLocator(list(sizes)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: formats.short_count(size)))
    axes.xaxis.set_minor_locator(NullLocator())


def log_axis(axes: Axes, which: str, form: Callable[[float], str], *, most_ticks: int = 6) -> None:
    """A logarithmic axis over everything drawn, with at most `most_ticks` labelled ticks."""
    low, high = getattr(axes.dataLim, f"interval{which}")
    margin = 10 ** max(0.06 * math.log10(high / low), 0.12)
    low, high = low / margin, high * margin
    if high / low < 10:  # at least a decade, so that noise does not look like a difference
        middle = math.sqrt(low * high)
        low, high = middle / math.sqrt(10), middle * math.sqrt(10)
    axes.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    axis = axes.yaxis if which == "y" else axes.xaxis
    steps = (1.0, 2.0, 5.0) if high / low < FINE else (1.0,)
    axis.set_major_locator(LogLocator(10, steps, numticks=most_ticks))
    axis.set_minor_locator(LogLocator(10, numticks=99))  # a mark at every power of ten
    axis.set_major_formatter(FuncFormatter(lambda value, _: formats.tick(value, form)))
    axis.set_minor_formatter(NullFormatter())
