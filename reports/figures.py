"""The charts of a run, drawn with Matplotlib's objects alone: no pyplot, no global state, no display.

Every chart names its units on its axes and labels each series with its precision and engine, so that a coarse
tick is never mistaken for a fast timer. Text stays text in the SVG files, legible and searchable.
"""
import io
import math
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import accumulate, pairwise
from pathlib import Path
from textwrap import wrap
from typing import Any, ParamSpec

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from matplotlib.transforms import Affine2D, Transform

from reports import style
from reports.style import FAINT, INK, PAPER, look_of
from reports.summary import Bin, Cell, Contestant, Spread, Summary, Task
from reports.words import counter_title, list_of, unit_symbol, unit_words

WIDTH = 5.7  # inches; narrow, so that a phone need not shrink the letters much
PNG_DPI = 180
TEXT = 9.5  # points, of nearly everything
SMALL = 8.5  # ... of remarks
HEADING = 11.0
LINE_HEIGHT = TEXT * 1.3 / 72  # inches

_SETTINGS: dict[Any, Any] = {
    "font.family": ["DejaVu Sans", "sans-serif"],  # comes with Matplotlib: the same picture everywhere
    "font.size": TEXT,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": FAINT,
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "escapement",  # equal charts give equal files
    "path.simplify": False,
}


@dataclass(frozen=True)
class Picture:
    """A chart with its words: `title` stands in the chart, `caption` below it, `alt` takes its place."""

    name: str  # stem of its files
    title: str
    caption: str
    alt: str
    figure: Figure

    def png(self) -> bytes:
        """The chart as a PNG file."""
        with mpl.rc_context(_SETTINGS):
            buffer = io.BytesIO()
            FigureCanvasAgg(self.figure)
            self.figure.savefig(buffer, format="png", dpi=PNG_DPI, metadata={"Software": None, "Title": self.title})
            return buffer.getvalue()

    def svg(self) -> str:
        """The chart as an SVG file."""
        with mpl.rc_context(_SETTINGS):
            buffer = io.StringIO()
            self.figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Title": self.title})
            return buffer.getvalue()


def save(picture: Picture, directory: Path) -> str:
    """Write `<name>.svg` and `<name>.png` into a directory and return the SVG's text."""
    text = picture.svg()
    (directory / f"{picture.name}.svg").write_text(text, encoding="utf-8")
    (directory / f"{picture.name}.png").write_bytes(picture.png())
    return text


def inline(svg: str, prefix: str) -> str:
    """The <svg> element for use inside a page: without prolog, ids made unique, colours left to the page.

    >>> inline('<?xml version="1.0"?><svg width="9pt"><g id="a" style="fill: #1f2328"/><use href="#a"/></svg>', "p")
    '<svg><g id="p-a" style="fill: currentColor"/><use href="#p-a"/></svg>'
    """
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r"<title>.*?</title>\s*", "", body, flags=re.DOTALL)
    opening, end, rest = body.partition(">")
    opening = re.sub(r' (?:width|height|version|xmlns(?::\w+)?)="[^"]*"', "", opening)
    rest = rest.replace("xlink:href", "href")
    rest = re.sub(r'\bid="', f'id="{prefix}-', rest)
    rest = re.sub(r'href="#', f'href="#{prefix}-', rest)
    rest = re.sub(r"url\(#", f"url(#{prefix}-", rest)
    for colour, ours in ((INK, "currentColor"), (FAINT, "var(--grid)"), (PAPER, "var(--card)")):
        rest = rest.replace(colour, ours)
    return (opening + end + rest).strip()


_Arguments = ParamSpec("_Arguments")


def _styled(draw: Callable[_Arguments, Picture]) -> Callable[_Arguments, Picture]:
    """Draw with our settings, and leave Matplotlib's as they were."""

    @wraps(draw)
    def styled(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Picture:
        with mpl.rc_context(_SETTINGS):
            return draw(*args, **kwargs)

    return styled


def pictures(summary: Summary) -> Iterator[Picture]:
    """All charts that the run has figures for, in the order of the page."""
    for task in summary.tasks:
        yield times(summary, task)
        if summary.counters(task):
            yield work(summary, task)
    if summary.replays:
        yield replays(summary)
    if summary.lateness:
        yield lateness(summary)
    if summary.memory:
        yield memory(summary)


# --- Time against N -------------------------------------------------------------------------------------------------


@_styled
def times(summary: Summary, task: Task) -> Picture:
    """Median time of one operation against the number of pending timers, with the spread of the samples."""
    title = f"{task.title}: time per {task.unit}"
    series = {who: cells for who in summary.contestants if (cells := summary.by_size(task, who))}
    figure, axes = _labelled_axes(len(series), title)
    nudges = _nudges(len(series), summary.sizes, 0.1)
    ends = []
    for nudge, (who, cells) in zip(nudges, series.items(), strict=True):
        _draw_times(axes, who, {size * nudge: cell for size, cell in cells.items()})
        size, last = max(cells.items())
        value = style.nanoseconds(last.level) if last.spread else f"too long: predicted {_predicted(last)}"
        if size != summary.sizes[-1]:
            value += f" at N = {style.count(size)}"
        ends.append((size * nudge, last.level, who, value))
    _size_axis(axes, summary.sizes)
    shown = [cell for cells in series.values() for cell in cells.values()]
    _log_axis(axes, "y", [level for cell in shown for level in _reach(cell)], style.nanoseconds)
    axes.set_ylabel(f"time per {task.unit} (log scale)")
    _end_labels(figure, axes, ends)
    return Picture(
        f"time-{task.name}",
        title,
        task.meaning,
        f"Line chart, logarithmic axes: {title.lower()} against timers pending. At the largest size: "
        + "; ".join(f"{who.label} {value}" for _, _, who, value in sorted(ends, key=lambda end: end[1])) + ".",
        figure,
    )  # fmt: skip


def _draw_times(axes: Axes, who: Contestant, cells: Mapping[float, Cell]) -> None:
    look = look_of(who.timer)
    measured = {x: cell.spread for x, cell in cells.items() if cell.spread is not None}
    stroke = _stroke(who)
    axes.plot(list(measured), [spread.median for spread in measured.values()], color=look.colour, **stroke)
    for x, spread in measured.items():
        axes.plot([x, x], [spread.low, spread.high], color=look.colour, linewidth=1.4, zorder=4)
    axes.plot(
        list(measured), [spread.median for spread in measured.values()],
        linestyle="none", zorder=3, **_mark(who, 5.5),
    )  # fmt: skip
    guesses = {x: cell.level for x, cell in cells.items() if cell.spread is None}
    if guesses:
        joined = [*list(measured.items())[-1:]]
        path = [(x, spread.median) for x, spread in joined] + list(guesses.items())
        axes.plot(*zip(*path, strict=True), color=look.colour, linewidth=1.0, linestyle=(0, (1, 2)))
        axes.plot(list(guesses), list(guesses.values()), linestyle="none", zorder=3, **_hollow(who, 6.5))


# --- Work against N -------------------------------------------------------------------------------------------------

@_styled
def work(summary: Summary, task: Task) -> Picture:
    """Cost counters per operation against the number of pending timers, one panel for each counter."""
    title = f"{task.title}: work per {task.unit}, counted"
    counters = summary.counters(task)
    totals = {
        who: [summary.counts[cell] for name in counters for n in summary.sizes
              if (cell := (task, name, who.key, n)) in summary.counts]
        for who in summary.contestants
    }  # fmt: skip
    shown = [who for who, counts in totals.items() if any(counts)]
    zero = [who.plain for who, counts in totals.items() if counts and not any(counts)]
    without = [who.plain for who, counts in totals.items() if not counts]
    figure, panels = _panels(len(counters), title, panel_height=1.4, left=0.85, legend=shown)
    texts = []
    for axes, name in zip(panels, counters, strict=True):
        curves: dict[Contestant, dict[int, float]] = {}
        for who in sorted(shown, key=lambda who: not who.compiled):  # dashes on top
            counts = {n: summary.counts.get((task, name, who.key, n), 0.0) for n in summary.sizes}
            if any(counts.values()):
                curves[who] = {n: count for n, count in counts.items() if count > 0}
        for i, (who, points) in enumerate(curves.items()):
            hidden_by = sum(_coincide(points, other) for other in list(curves.values())[i + 1 :])
            stroke = _stroke(who) | {"linewidth": 1.3 + 1.2 * hidden_by}
            axes.plot(list(points), list(points.values()), **_mark(who, 4.5 + 1.3 * hidden_by, 0.4), **stroke)
        axes.set_title(counter_title(name), loc="left", fontsize=TEXT, fontweight="bold")
        _size_axis(axes, summary.sizes, label=False)
        _log_axis(axes, "y", [count for points in curves.values() for count in points.values()], style.amount,
                  most_ticks=5)  # fmt: skip
        last = summary.sizes[-1]
        texts.append(
            f"{counter_title(name)}: "
            + ", ".join(
                f"{who.label} {style.amount(value)}" for who in shown
                if (value := summary.counts.get((task, name, who.key, last), 0.0)) > 0
            )
        )  # fmt: skip
    for axes in panels[-2:]:
        axes.set_xlabel("timers pending, N")
    for axes in panels[::2]:
        axes.set_ylabel(f"per {task.unit}")
        axes.yaxis.set_label_coords(-0.66, 0.5, transform=_inches_from(figure, axes))
    idle = summary.idle_counters(task)
    return Picture(
        f"work-{task.name}",
        title,
        task.meaning
        + (f" Zero, so not drawn: {list_of(zero)}." if zero else "")
        + (f" Zero for all: {list_of(map(counter_title, idle))}." if idle else "")
        + (f" Not counted: {list_of(without)}." if without else ""),
        f"Small line charts, logarithmic axes: counts per {task.unit} against timers pending. At the largest size: "
        + "; ".join(texts) + ".",
        figure,
    )  # fmt: skip


# --- Whole tapes ----------------------------------------------------------------------------------------------------


@_styled
def replays(summary: Summary) -> Picture:
    """Median time per operation of each source for each contestant, with the spread of the samples."""
    title = "Replays of whole workloads: time per operation"
    shown = [replayed.cell for replayed in summary.replays.values()]
    skipped = {key for (_, key), replayed in summary.replays.items() if replayed.cell.spread is None}
    rows = _Rows.of(summary.contestants, tall=[who for who in summary.contestants if who.key in skipped])
    figure, panels = _row_panels(rows, [source.short for source in summary.sources], title)
    levels = [level for cell in shown for level in _reach(cell)]
    texts = []
    for axes, source in zip(panels, summary.sources, strict=True):
        _log_axis(axes, "x", levels, style.nanoseconds, most_ticks=4)
        axes.grid(axis="y", visible=False)
        found = []
        for who, row in zip(rows.contestants, rows.centres, strict=True):
            replayed = summary.replays.get((source.name, who.key))
            if replayed is not None:
                value = _draw_replay(axes, row, who, replayed.cell)
                found.append(f"{who.label} {value}")
        texts.append(f"{source.short}: {', '.join(found)}")
    for axes in panels[-2:]:
        axes.set_xlabel("time per operation")
    return Picture(
        "replays",
        title,
        "The time of the whole sequence, expiries included, divided by its operations.",
        "Dot charts, one for each source, logarithmic axis: nanoseconds per operation. " + "; ".join(texts) + ".",
        figure,
    )


def _draw_replay(axes: Axes, row: float, who: Contestant, cell: Cell) -> str:
    look = look_of(who.timer)
    if cell.spread is not None:
        axes.plot([cell.spread.low, cell.spread.high], [row, row], color=look.colour, linewidth=1.6, zorder=4)
        mark = _mark(who, 6.5)
        value = style.nanoseconds(cell.level)
    else:
        mark = _hollow(who, 6.5)
        value = f"too long,\npredicted {_predicted(cell)}"
    axes.plot(cell.level, row, **mark)
    low, high = (math.log(limit) for limit in axes.get_xlim())
    at_left = (math.log(cell.level) - low) / (high - low) > 0.6  # beyond that the text would leave the panel
    reach = _reach(cell)
    axes.annotate(
        value, (reach[0] if at_left else reach[-1], row), (-8 if at_left else 8, 0), textcoords="offset points",
        va="center", ha="right" if at_left else "left", fontsize=SMALL, linespacing=1.1,
    )  # fmt: skip
    return value.replace("\n", " ")


@_styled
def lateness(summary: Summary) -> Picture:
    """How late timers fired, one panel for each source and one row for each contestant."""
    title = "Lateness: how long after its deadline a timer fired"
    rows = _Rows.of(summary.contestants)
    headings = [source.short for source in summary.sources]
    figure, panels = _row_panels(rows, headings, title)
    texts = []
    for axes, source in zip(panels, summary.sources, strict=True):
        found = []
        axes.axvline(0, color=INK, linewidth=0.8)
        for who, row in zip(rows.contestants, rows.centres, strict=True):
            bins = summary.lateness.get((source.name, who.key), ())
            if bins:
                _draw_lateness(axes, row, who, bins)
                low, high = bins[0].lateness, bins[-1].lateness + bins[-1].width - 1
                found.append(f"{who.label} {low}" + (f" to {high}" if high > low else ""))
            elif (replayed := summary.replays.get((source.name, who.key))) is not None:
                why = "nothing fired" if replayed.cell.spread else "too long, not run"
                axes.annotate(why, (0, row), (6, 0), textcoords="offset points", va="center", fontsize=SMALL)
                found.append(f"{who.label} {why}")
        texts.append(f"{source.short}, in {unit_words(source.unit)}: {', '.join(found) or 'nothing fired'}")
        axes.set_xlabel(f"lateness [{unit_symbol(source.unit)}]")
        axes.grid(axis="y", visible=False)
        axes.margins(x=0.06)
        axes.xaxis.set_major_locator(MaxNLocator(3, integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda late, _: style.count(round(late))))
        if axes.get_xlim()[1] - axes.get_xlim()[0] < 1:  # all of them at zero
            axes.set_xlim(-1.0, 1.0)
    return Picture(
        "lateness",
        title,
        "Lateness is the moment of firing less the deadline (or less the moment of arming, if the deadline had "
        "passed); negative is early. A marker at 0: every timer fired exactly then. Bars: share of the timers for each "
        "lateness, the tallest bar of a row filling it.",
        "Histograms, one row for each timer and one panel for each source. " + "; ".join(texts) + ".",
        figure,
    )


def _draw_lateness(axes: Axes, row: float, who: Contestant, bins: Sequence[Bin]) -> None:
    look = look_of(who.timer)
    if all(found.lateness == 0 and found.width == 1 for found in bins):
        axes.plot(0, row, zorder=3, **_mark(who, 6.5))
        return
    bins = _coarser(bins)
    peak = max(found.timers / found.width for found in bins)
    # The y axis points downwards, in lines of text: bars stand a little above the lower edge of the row.
    foot, tallest = row + 0.42 * TALL_ROW, 0.75 * TALL_ROW
    outline = []
    for found in bins:
        left, top = found.lateness - 0.5, foot - tallest * found.timers / found.width / peak
        outline += [(left, foot), (left, top), (left + found.width, top), (left + found.width, foot)]
    axes.add_patch(Polygon(outline, closed=True, facecolor=look.colour, edgecolor=look.colour, linewidth=0.8))


MOST_BARS = 110  # of a histogram, in the room of a panel


def _coarser(bins: Sequence[Bin]) -> Sequence[Bin]:
    """The same histogram in at most MOST_BARS bins of equal width."""
    first = bins[0].lateness
    span = bins[-1].lateness + bins[-1].width - first
    width = -(-span // MOST_BARS)
    if width <= bins[0].width:
        return bins
    timers: dict[int, int] = {}
    for found in bins:
        number = (found.lateness - first) // width
        timers[number] = timers.get(number, 0) + found.timers
    return [Bin(first + number * width, width, many) for number, many in timers.items()]


@_styled
def memory(summary: Summary) -> Picture:
    """Bytes per pending timer when all of the capacity is used, at the largest capacity measured."""
    title = "Memory per pending timer"
    found = {who: footprint for who in summary.contestants if (footprint := summary.footprint(who))}
    most = max(capacity for capacity, _ in found.values())
    rows = _Rows.of(list(found))
    figure, [axes] = _row_panels(rows, [""], title, values=1.2)
    texts = []
    for who, row in zip(rows.contestants, rows.centres, strict=True):
        capacity, value = found[who]
        words = style.data_size(value) + ("" if capacity == most else f" at N = {style.short_count(capacity)}")
        hatching: dict[str, Any] = {} if who.compiled else {"hatch": "///", "edgecolor": PAPER}
        axes.barh(row, value, height=1.0, color=look_of(who.timer).colour, **hatching)
        axes.annotate(words, (value, row), (4, 0), textcoords="offset points", va="center")
        texts.append(f"{who.label} {words}")
    axes.set_xlim(0, None)
    axes.margins(x=0.02)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(f"bytes per timer, with N = {style.count(most)} pending")
    return Picture(
        "memory",
        title,
        "All that the timer holds, bookkeeping and geometry included, divided by the timers pending when its capacity "
        "is used up; just after a doubling it is up to twice as much."
        + (" Hatched: Python objects." if any(not who.compiled for who in found) else ""),
        f"Bar chart, bytes per timer with {most:,} pending: {', '.join(texts)}.",
        figure,
    )


# --- Words ----------------------------------------------------------------------------------------------------------


def how_to_read_times(summary: Summary) -> str:
    """What holds for all charts of times against N."""
    shown = list(summary.cells.values())
    notes = [_spread_words(shown), "Both axes are logarithmic; points are nudged sideways so that none hides another."]
    if _uncompiled(summary):
        notes.append("Dashed: a plain Python loop, whose times include the interpreter's.")
    return " ".join(notes + _notes(summary, shown))


def how_to_read_work(summary: Summary) -> str:
    """What holds for all charts of counts."""
    notes = ["Both axes are logarithmic, so a zero is not drawn; lines that coincide lie one inside the other."]
    if _uncompiled(summary):
        notes.append("Timers without a compiled kernel count only how often the clock moved.")
    return " ".join(notes)


def how_to_read_replays(summary: Summary) -> str:
    """What holds for the chart of whole workloads."""
    shown = [replayed.cell for replayed in summary.replays.values()]
    notes = [_spread_words(shown), "The axis of times is logarithmic."]
    if _uncompiled(summary):
        notes.append("“Python loop”: its times include the interpreter's.")
    return " ".join(notes + _notes(summary, shown))


def _notes(summary: Summary, cells: Sequence[Cell]) -> list[str]:
    notes = []
    if not all(who.exact for who in summary.contestants):
        notes.append("Timers that may fire late or early are labelled so, in units of the clock.")
    if any(cell.spread is None for cell in cells):
        notes.append("Hollow: too long to run, predicted from the work counted at smaller N.")
    return notes


def _uncompiled(summary: Summary) -> bool:
    return any(not who.compiled for who in summary.contestants)


def _spread_words(cells: Sequence[Cell]) -> str:
    numbers = sorted({cell.spread.samples for cell in cells if cell.spread})
    if not numbers:
        return "All of it predicted."
    if numbers == [1]:
        return "One sample each, so no spread."
    of = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    return f"Median of {of} samples; bars from the least to the greatest."


def _predicted(cell: Cell) -> str:
    return style.span(cell.predicted_seconds or 0.0)


# --- Axes -----------------------------------------------------------------------------------------------------------


def _stroke(who: Contestant) -> dict[str, Any]:
    return {"linewidth": 1.8, "linestyle": "solid" if who.compiled else (0, (4, 2))}


def _coincide(points: Mapping[int, float], others: Mapping[int, float]) -> bool:
    """Whether two curves lie on each other somewhere, so that the first must be drawn wider to be seen."""
    return any(n in others and math.isclose(count, others[n], rel_tol=0.05) for n, count in points.items())


def _reach(cell: Cell) -> list[float]:
    spread: Spread | None = cell.spread
    return [cell.level] if spread is None else [spread.low, spread.high]


def _nudges(number: int, sizes: Sequence[int], width: float) -> list[float]:
    """Factors that move the points of several series apart on a logarithmic axis.

    All within `width` of the distance between two neighbouring sizes.
    """
    if number == 1:
        return [1.0]
    closest = min((math.log(b / a) for a, b in pairwise(sizes)), default=math.log(10))
    return [math.exp(width * closest * (i / (number - 1) - 0.5)) for i in range(number)]


FILLINGS = ("full", "left", "bottom", "right", "top")  # of the markers of one timer with several parameters


def _mark(who: Contestant, size: float, edge: float = 0.5) -> dict[str, Any]:
    """The marker of a contestant, with an edge that keeps it apart from what it lies on."""
    look = look_of(who.timer)
    filling: dict[str, Any] = {"markeredgecolor": PAPER, "markeredgewidth": edge}
    if who.variant:  # half filled, so that it needs an edge to be seen whole
        filling = {"markerfacecoloralt": PAPER, "markeredgewidth": 0.9,
                   "fillstyle": FILLINGS[who.variant % len(FILLINGS)]}  # fmt: skip
    return {"color": look.colour, "marker": look.marker, "markersize": size * _scale(look.marker), **filling}


def _hollow(who: Contestant, size: float) -> dict[str, Any]:
    """The same for what was not measured, but predicted."""
    look = look_of(who.timer)
    return {"color": look.colour, "marker": look.marker, "markersize": size * _scale(look.marker),
            "markerfacecolor": PAPER, "markeredgewidth": 1.2}  # fmt: skip


def _scale(marker: str) -> float:
    """Crosses and triangles have less area than the other markers of their size."""
    return {"P": 1.25, "X": 1.25, "^": 1.15, "v": 1.15}.get(marker, 1.0)


def _figure(height: float, title: str) -> Figure:
    figure = Figure(figsize=(WIDTH, height))
    figure.text(0.1 / WIDTH, 1 - 0.08 / height, title, fontsize=HEADING, fontweight="bold", va="top")
    return figure


def _labelled_axes(series: int, title: str) -> tuple[Figure, Axes]:
    """One chart with room at its right for a label of two lines for each series."""
    height = max(4.1, 1.2 + series * 2.2 * LINE_HEIGHT + 0.3)
    figure = _figure(height, title)
    left, right, bottom, top = 0.85, 2.35, 0.52, 0.5
    axes = figure.add_axes(
        (left / WIDTH, bottom / height, 1 - (left + right) / WIDTH, 1 - (bottom + top) / height)
    )
    return figure, axes


def _panels(
    number: int, title: str, *, panel_height: float, left: float, legend: Sequence[Contestant]
) -> tuple[Figure, list[Axes]]:
    """Small charts in two columns above a legend; sizes in inches."""
    columns, rows = min(number, 2), math.ceil(number / 2)
    gap_x, gap_y, right, top, axis = 0.68, 0.52, 0.1, 0.7, 0.5
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
        handles=[_handle(who) for who in legend], labels=[who.label for who in legend],
        loc="lower left", bbox_to_anchor=(0.1 / WIDTH, 0.04 / height), ncols=abreast, frameon=False, borderaxespad=0,
        columnspacing=1.5, handlelength=2.6, fontsize=TEXT, labelspacing=0.3,
    )  # fmt: skip
    return figure, panels


LEGEND_CHARACTERS = 58  # of two labels side by side


def _legend_columns(lengths: Sequence[int]) -> int:
    """Two where the longest labels of both fit beside each other, else one."""
    half = math.ceil(len(lengths) / 2)
    return 2 if max(lengths[:half]) + max(lengths[half:], default=0) <= LEGEND_CHARACTERS else 1


def _inches_from(figure: Figure, axes: Axes) -> Transform:
    """x in inches from the left edge of the axes, y as a share of their height."""
    box = axes.get_position()
    return Affine2D().scale(1 / WIDTH, box.height).translate(box.x0, box.y0) + figure.transFigure


def _handle(who: Contestant) -> Line2D:
    return Line2D([], [], **_mark(who, 6.0), **_stroke(who))


HEADING_CHARACTERS = 20  # above one of two panels


def _cut(heading: str) -> str:
    return heading if len(heading) <= HEADING_CHARACTERS else heading[: HEADING_CHARACTERS - 1] + "…"


TALL_ROW = 2.4  # lines of text
LOW_ROW = 1.6


@dataclass(frozen=True)
class _Rows:
    """One row for each contestant, from the top; heights and places in lines of text."""

    contestants: Sequence[Contestant]
    heights: Sequence[float]

    @classmethod
    def of(cls, contestants: Sequence[Contestant], tall: Container[Contestant] = ()) -> "_Rows":
        return cls(contestants, [
            max(LOW_ROW + 0.8 * len(_remark_lines(who)), TALL_ROW if who in tall else 0.0) for who in contestants
        ])  # fmt: skip

    @property
    def height(self) -> float:
        return sum(self.heights)

    @property
    def edges(self) -> list[float]:
        """Where a row begins, the first left out."""
        return list(accumulate(self.heights[:-1]))

    @property
    def centres(self) -> list[float]:
        return [edge + height / 2 for edge, height in zip([0.0, *self.edges], self.heights, strict=True)]


def _row_panels(
    rows: _Rows, headings: Sequence[str], title: str, *, values: float = 0.0
) -> tuple[Figure, list[Axes]]:
    """Charts in up to two columns with one row for each contestant, named at the left; `values`: room at the right."""
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
        axes.set_title(_cut(heading), loc="left", fontsize=TEXT, fontweight="bold")
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
    place: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points", "ha": "right"}
    lines = _remark_lines(who)
    rise = len(lines) * SMALL * 1.25 / 2  # the block of lines is centred on the row
    axes.annotate(who.short, (0, row), (-8, rise), va="center", **place)
    for i, line in enumerate(lines):
        below = rise - TEXT * 0.65 - SMALL * (0.65 + 1.25 * i)
        axes.annotate(line, (0, row), (-8, below), va="center", fontsize=SMALL, **place)


ROW_CHARACTERS = 25  # of the small font, at the left of a row


def _remark_lines(who: Contestant) -> list[str]:
    return wrap(who.remark, ROW_CHARACTERS)


def _size_axis(axes: Axes, sizes: Sequence[int], *, label: bool = True) -> None:
    axes.set_xscale("log")
    axes.set_xlim(sizes[0] / 10**0.12, sizes[-1] * 10**0.12)
    axes.xaxis.set_major_locator(FixedLocator(list(sizes)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: style.short_count(round(size))))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(visible=True)
    if label:
        axes.set_xlabel("timers pending, N (log scale)")


def _log_axis(
    axes: Axes, which: str, levels: Sequence[float], words: Callable[[float], str], *, most_ticks: int = 8
) -> None:
    """A logarithmic axis over the levels, with at most `most_ticks` labelled ticks."""
    scale, limits, axis = (
        (axes.set_yscale, axes.set_ylim, axes.yaxis) if which == "y" else (axes.set_xscale, axes.set_xlim, axes.xaxis)
    )
    scale("log")
    low, high = min(levels), max(levels)
    decades = math.log10(high / low)
    margin = 10 ** max(0.06 * decades, 0.12)
    low, high = low / margin, high * margin
    if math.log10(high / low) < 1:  # at least a decade, so that noise does not look like a difference
        middle = math.sqrt(low * high)
        low, high = middle / math.sqrt(10), middle * math.sqrt(10)
    limits(low, high)
    axis.set_major_locator(FixedLocator(log_ticks(low, high, most_ticks)))
    axis.set_minor_locator(LogLocator(10, numticks=99))  # a mark at every power of ten
    axis.set_major_formatter(FuncFormatter(lambda value, _: style.tick(value, words)))
    axis.set_minor_formatter(NullFormatter())
    axes.grid(visible=True)


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers within [low, high], evenly dense on a logarithmic axis, at most so many (but two if they exist).

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


def _end_labels(figure: Figure, axes: Axes, ends: Sequence[tuple[float, float, Contestant, str]]) -> None:
    """Name each series at the right of the chart, beside its last point, moved apart where they would overlap."""
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
            "", (x, level), (1.05, y), xycoords="data", textcoords="axes fraction", annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": look.colour, "linewidth": 0.7, "shrinkA": 0, "shrinkB": 3},
        )  # fmt: skip
        axes.plot(1.07, y, transform=axes.transAxes, clip_on=False, **_mark(who, 6.5))
        place: dict[str, Any] = {
            "xycoords": "axes fraction", "textcoords": "offset points", "annotation_clip": False,
        }  # fmt: skip
        # The block of lines is centred on the marker.
        rise = (len(lines) - 1) * LINE_HEIGHT / 2 * 72
        axes.annotate(who.short, (1.07, y), (8, rise), va="bottom", fontweight="bold", **place)
        for i, line in enumerate(lines):
            axes.annotate(line, (1.07, y), (8, rise - 1 - i * SMALL * 1.25), va="top", fontsize=SMALL, **place)


LABEL_CHARACTERS = 30  # of the small font, in the room for labels


def _label_lines(who: Contestant, value: str) -> list[str]:
    """What stands below a series' name: its value and the remark, on one line if they fit."""
    joined = f"{value} · {who.remark}" if who.remark else value
    return [joined] if len(joined) <= LABEL_CHARACTERS else [value, *wrap(who.remark, LABEL_CHARACTERS)]


def spread_out(wanted: Sequence[float], heights: Sequence[float], lowest: float, highest: float) -> list[float]:
    """Centres near the wanted ones (falling) of blocks that do not overlap, within [lowest, highest] if they fit.

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
