"""The charts of a run.

Every chart names its units on its axes and labels each series with its precision and engine, so
that a coarse tick is never mistaken for a fast timer.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Polygon
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from compare.bench.task import Task
from reports import style
from reports.charts.axes import (
    TALL_ROW,
    Rows,
    coincide,
    cut_heading,
    end_labels,
    hollow_mark_of,
    inches_from,
    labelled_axes,
    log_axis,
    log_ticks,
    mark_of,
    nudge_factors,
    panels_above_legend,
    row_panels,
    size_axis,
    stroke_of,
)
from reports.charts.pictures import SMALL, TEXT, Picture, styled
from reports.style import INK, PAPER, look_of
from reports.summary import Bin, Cell, Contestant, Spread, Summary
from reports.words import counter_title, list_of, unit_symbol, unit_words

FEW_PRECISIONS = 2
"""Up to so many the charts of time and lateness tell enough by themselves."""


def pictures(summary: Summary) -> Iterator[Picture]:
    """All charts that the run has figures for, in the order of the page."""
    for task in summary.tasks:
        yield times(summary, task)
        if summary.counters(task):
            yield work(summary, task)
    if summary.replays:
        yield replays(summary)
    if len({who.lateness for who in summary.contestants}) > FEW_PRECISIONS:
        yield trade_off(summary)
    if summary.lateness:
        yield lateness(summary)
    if summary.memory:
        yield memory(summary)


# --- Time against N
# -------------------------------------------------------------------------------------------------


@styled
def times(summary: Summary, task: Task) -> Picture:
    """Median time of one operation against the number of pending timers, with the spread of the
    samples.
    """
    title = f"{task.title}: time per {task.unit}"
    series = {who: cells for who in summary.contestants if (cells := summary.by_size(task, who))}
    figure, axes = labelled_axes(len(series), title)
    nudges = nudge_factors(len(series), summary.sizes, 0.1)
    ends = []
    for nudge, (who, cells) in zip(nudges, series.items(), strict=True):
        _draw_times(axes, who, {size * nudge: cell for size, cell in cells.items()})
        size, last = max(cells.items())
        value = (
            style.nanoseconds(last.level)
            if last.spread
            else f"too long: predicted {_predicted(last)}"
        )
        if size != summary.sizes[-1]:
            value += f" at N = {style.count(size)}"
        ends.append((size * nudge, last.level, who, value))
    size_axis(axes, summary.sizes)
    shown = [cell for cells in series.values() for cell in cells.values()]
    log_axis(axes, "y", [level for cell in shown for level in _reach(cell)], style.nanoseconds)
    axes.set_ylabel(f"time per {task.unit} (log scale)")
    end_labels(figure, axes, ends)
    return Picture(
        f"time-{task.name}",
        title,
        task.meaning,
        f"Line chart, logarithmic axes: {title.lower()} against timers pending. At the largest size: "
        + "; ".join(
            f"{who.label} {value}" for _, _, who, value in sorted(ends, key=lambda end: end[1])
        )
        + ".",
        figure,
    )


def _draw_times(axes: Axes, who: Contestant, cells: Mapping[float, Cell]) -> None:
    look = look_of(who.timer)
    measured = {x: cell.spread for x, cell in cells.items() if cell.spread is not None}
    stroke = stroke_of(who)
    axes.plot(
        list(measured), [spread.median for spread in measured.values()], color=look.colour, **stroke
    )
    for x, spread in measured.items():
        axes.plot([x, x], [spread.low, spread.high], color=look.colour, linewidth=1.4, zorder=4)
    axes.plot(
        list(measured),
        [spread.median for spread in measured.values()],
        linestyle="none",
        zorder=3,
        **mark_of(who, 5.5),
    )
    guesses = {x: cell.level for x, cell in cells.items() if cell.spread is None}
    if guesses:
        joined = [*list(measured.items())[-1:]]
        path = [(x, spread.median) for x, spread in joined] + list(guesses.items())
        axes.plot(*zip(*path, strict=True), color=look.colour, linewidth=1.0, linestyle=(0, (1, 2)))
        axes.plot(
            list(guesses),
            list(guesses.values()),
            linestyle="none",
            zorder=3,
            **hollow_mark_of(who, 6.5),
        )


# --- Work against N
# -------------------------------------------------------------------------------------------------


@styled
def work(summary: Summary, task: Task) -> Picture:
    """Cost counters per operation against the number of pending timers, one panel for each
    counter.
    """
    title = f"{task.title}: work per {task.unit}, counted"
    counters = summary.counters(task)
    totals = {
        who: [
            summary.counts[cell]
            for name in counters
            for n in summary.sizes
            if (cell := (task, name, who.key, n)) in summary.counts
        ]
        for who in summary.contestants
    }
    shown = [who for who, counts in totals.items() if any(counts)]
    zero = [who.plain for who, counts in totals.items() if counts and not any(counts)]
    without = [who.plain for who, counts in totals.items() if not counts]
    figure, panels = panels_above_legend(
        len(counters), title, panel_height=1.4, left=0.85, legend=shown
    )
    texts = []
    for axes, name in zip(panels, counters, strict=True):
        curves: dict[Contestant, dict[int, float]] = {}
        for who in sorted(shown, key=lambda who: not who.compiled):  # dashes on top
            counts = {n: summary.counts.get((task, name, who.key, n), 0.0) for n in summary.sizes}
            if any(counts.values()):
                curves[who] = {n: count for n, count in counts.items() if count > 0}
        for i, (who, points) in enumerate(curves.items()):
            hidden_by = sum(coincide(points, other) for other in list(curves.values())[i + 1 :])
            stroke = stroke_of(who) | {"linewidth": 1.3 + 1.2 * hidden_by}
            axes.plot(
                list(points),
                list(points.values()),
                **mark_of(who, 4.5 + 1.3 * hidden_by, 0.4),
                **stroke,
            )
        axes.set_title(counter_title(name), loc="left", fontsize=TEXT, fontweight="bold")
        size_axis(axes, summary.sizes, label=False)
        log_axis(
            axes,
            "y",
            [count for points in curves.values() for count in points.values()],
            style.amount,
            most_ticks=5,
        )
        last = summary.sizes[-1]
        texts.append(
            f"{counter_title(name)}: "
            + ", ".join(
                f"{who.label} {style.amount(value)}"
                for who in shown
                if (value := summary.counts.get((task, name, who.key, last), 0.0)) > 0
            )
        )
    for axes in panels[-2:]:
        axes.set_xlabel("timers pending, N")
    for axes in panels[::2]:
        axes.set_ylabel(f"per {task.unit}")
        axes.yaxis.set_label_coords(-0.66, 0.5, transform=inches_from(figure, axes))
    idle = summary.idle_counters(task)
    return Picture(
        f"work-{task.name}",
        title,
        task.meaning
        + (f" Zero, so not drawn: {list_of(zero)}." if zero else "")
        + (f" Zero for all: {list_of(map(counter_title, idle))}." if idle else "")
        + (f" Not counted: {list_of(without)}." if without else ""),
        f"Small line charts, logarithmic axes: counts per {task.unit} against timers pending. At the largest size: "
        + "; ".join(texts)
        + ".",
        figure,
    )


# --- Whole tapes
# ----------------------------------------------------------------------------------------------------


@styled
def replays(summary: Summary) -> Picture:
    """Median time per operation of each source for each contestant, with the spread of the
    samples.
    """
    title = "Replays of whole workloads: time per operation"
    shown = [replayed.cell for replayed in summary.replays.values()]
    skipped = {
        key for (_, key), replayed in summary.replays.items() if replayed.cell.spread is None
    }
    rows = Rows.of(
        summary.contestants, tall=[who for who in summary.contestants if who.key in skipped]
    )
    figure, panels = row_panels(rows, [source.short for source in summary.sources], title)
    levels = [level for cell in shown for level in _reach(cell)]
    texts = []
    for axes, source in zip(panels, summary.sources, strict=True):
        log_axis(axes, "x", levels, style.nanoseconds, most_ticks=3)
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
        "Dot charts, one for each source, logarithmic axis: nanoseconds per operation. "
        + "; ".join(texts)
        + ".",
        figure,
    )


def _draw_replay(axes: Axes, row: float, who: Contestant, cell: Cell) -> str:
    look = look_of(who.timer)
    if cell.spread is not None:
        axes.plot(
            [cell.spread.low, cell.spread.high],
            [row, row],
            color=look.colour,
            linewidth=1.6,
            zorder=4,
        )
        mark = mark_of(who, 6.5)
        value = style.nanoseconds(cell.level)
    else:
        mark = hollow_mark_of(who, 6.5)
        value = f"too long,\npredicted {_predicted(cell)}"
    axes.plot(cell.level, row, **mark)
    low, high = (math.log(limit) for limit in axes.get_xlim())
    at_left = (math.log(cell.level) - low) / (
        high - low
    ) > 0.6  # beyond that the text would leave the panel
    reach = _reach(cell)
    axes.annotate(
        value,
        (reach[0] if at_left else reach[-1], row),
        (-8 if at_left else 8, 0),
        textcoords="offset points",
        va="center",
        ha="right" if at_left else "left",
        fontsize=SMALL,
        linespacing=1.1,
    )
    return value.replace("\n", " ")


@styled
def trade_off(summary: Summary) -> Picture:
    """Time per operation against the worst lateness seen, one panel for each source."""
    title = "Time against precision"
    found = [
        {
            who: replayed
            for who in summary.contestants
            if (replayed := summary.replays.get((source.name, who.key)))
            and replayed.row["lateness_max"] is not None
        }
        for source in summary.sources
    ]
    shown = [who for who in summary.contestants if any(who in points for points in found)]
    figure, panels = panels_above_legend(
        len(found), title, panel_height=2.3, left=0.85, legend=shown, gap_y=0.85
    )
    levels = [
        level for points in found for replayed in points.values() for level in _reach(replayed.cell)
    ]
    texts = []
    for axes, source, points in zip(panels, summary.sources, found, strict=True):
        deviations = {who: _deviation(replayed.row) for who, replayed in points.items()}
        at = _apart(deviations)
        _deviation_axis(axes, max(deviations.values(), default=0))
        log_axis(axes, "y", levels, style.nanoseconds, most_ticks=6)
        for timer in dict.fromkeys(who.timer for who in points):
            path = sorted((at[who], points[who].cell.level) for who in points if who.timer == timer)
            axes.plot(*zip(*path, strict=True), color=look_of(timer).colour, linewidth=0.8)
        for who, replayed in points.items():
            reach = _reach(replayed.cell)
            axes.plot([at[who]] * len(reach), reach, color=look_of(who.timer).colour, linewidth=1.4)
            axes.plot(at[who], replayed.cell.level, **mark_of(who, 6.5), linestyle="none", zorder=3)
        axes.set_title(cut_heading(source.short), loc="left", fontsize=TEXT, fontweight="bold")
        axes.set_xlabel(f"worst deviation [{unit_symbol(source.unit)}]")
        told = ", ".join(
            f"{who.label} {style.nanoseconds(points[who].cell.level)} at {late}"
            for who, late in deviations.items()
        )
        texts.append(f"{source.short}, in {unit_words(source.unit)}: {told}")
    for axes in panels[::2]:
        axes.set_ylabel("time per operation (log scale)")
    return Picture(
        "trade-off",
        title,
        "Across: how far from its deadline the worst timer fired, late or early; 0 is exact. Upwards: the time per "
        "operation. What is further to the left and lower is better at both; a line joins the settings of one timer.",
        "Scatter charts, logarithmic axes: nanoseconds per operation against the worst deviation from the deadline. "
        + "; ".join(texts)
        + ".",
        figure,
    )


def _deviation(row: Mapping[str, Any]) -> int:
    return max(int(row["lateness_max"]), -int(row["lateness_min"]))


def _apart(deviations: Mapping[Contestant, int]) -> dict[Contestant, float]:
    """Where each stands on the axis: those at 0 beside each other."""
    exact = [who for who, late in deviations.items() if late == 0]
    middle = (len(exact) - 1) / 2
    return {
        who: (exact.index(who) - middle) * min(0.7 / max(middle, 1), 0.3) if late == 0 else late
        for who, late in deviations.items()
    }


def _deviation_axis(axes: Axes, most: int) -> None:
    """Logarithmic from 1 on, with room for several at 0."""
    most = max(most, 10)
    axes.set_xscale("symlog", linthresh=1, linscale=1.0)
    axes.set_xlim(-0.9, most * 2.5)
    axes.xaxis.set_major_locator(FixedLocator([0.0, *log_ticks(1.0, most * 2.5, 4)]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda late, _: style.short_count(round(late))))


@styled
def lateness(summary: Summary) -> Picture:
    """How late timers fired, one panel for each source and one row for each contestant."""
    title = "Lateness: how long after its deadline a timer fired"
    rows = Rows.of(summary.contestants)
    headings = [source.short for source in summary.sources]
    figure, panels = row_panels(rows, headings, title)
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
                axes.annotate(
                    why, (0, row), (6, 0), textcoords="offset points", va="center", fontsize=SMALL
                )
                found.append(f"{who.label} {why}")
        texts.append(
            f"{source.short}, in {unit_words(source.unit)}: {', '.join(found) or 'nothing fired'}"
        )
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
        "Histograms, one row for each timer and one panel for each source. "
        + "; ".join(texts)
        + ".",
        figure,
    )


def _draw_lateness(axes: Axes, row: float, who: Contestant, bins: Sequence[Bin]) -> None:
    look = look_of(who.timer)
    if all(found.lateness == 0 and found.width == 1 for found in bins):
        axes.plot(0, row, zorder=3, **mark_of(who, 6.5))
        return
    bins = _coarser(bins)
    peak = max(found.timers / found.width for found in bins)
    # The y axis points downwards, in lines of text: bars stand a little above the lower edge of the
    # row.
    foot, tallest = row + 0.42 * TALL_ROW, 0.75 * TALL_ROW
    outline = []
    for found in bins:
        left, top = found.lateness - 0.5, foot - tallest * found.timers / found.width / peak
        outline += [
            (left, foot),
            (left, top),
            (left + found.width, top),
            (left + found.width, foot),
        ]
    axes.add_patch(
        Polygon(outline, closed=True, facecolor=look.colour, edgecolor=look.colour, linewidth=0.8)
    )


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


@styled
def memory(summary: Summary) -> Picture:
    """Bytes per pending timer when all of the capacity is used, at the largest capacity
    measured.
    """
    title = "Memory per pending timer"
    found = {who: footprint for who in summary.contestants if (footprint := summary.footprint(who))}
    most = max(capacity for capacity, _ in found.values())
    rows = Rows.of(list(found))
    figure, [axes] = row_panels(rows, [""], title, values=1.2)
    texts = []
    for who, row in zip(rows.contestants, rows.centres, strict=True):
        capacity, value = found[who]
        words = style.data_size(value) + (
            "" if capacity == most else f" at N = {style.short_count(capacity)}"
        )
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


# --- Words
# ----------------------------------------------------------------------------------------------------------


def how_to_read_times(summary: Summary) -> str:
    """What holds for all charts of times against N."""
    shown = list(summary.cells.values())
    notes = [_spread_words(shown, summary.sample)]
    notes.append(
        "Both axes are logarithmic; points are nudged sideways so that none hides another."
    )
    if _uncompiled(summary):
        notes.append("Dashed: a plain Python loop, whose times include the interpreter's.")
    return " ".join(notes + _notes(summary, shown))


def how_to_read_work(summary: Summary) -> str:
    """What holds for all charts of counts."""
    notes = [
        "Both axes are logarithmic, so a zero is not drawn; lines that coincide lie one inside the other."
    ]
    if _uncompiled(summary):
        notes.append("Timers without a compiled kernel count only how often the clock moved.")
    return " ".join(notes)


def how_to_read_replays(summary: Summary) -> str:
    """What holds for the chart of whole workloads."""
    shown = [replayed.cell for replayed in summary.replays.values()]
    notes = [_spread_words(shown, summary.sample), "The axis of times is logarithmic."]
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


def _spread_words(cells: Sequence[Cell], sample: str) -> str:
    numbers = sorted({cell.spread.samples for cell in cells if cell.spread})
    if not numbers:
        return "All of it predicted."
    if numbers == [1]:
        return f"One {sample} each, so no spread."
    of = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    return f"Median of {of} {sample}s; bars from the least to the greatest."


def _predicted(cell: Cell) -> str:
    return style.span(cell.predicted_seconds or 0.0)


def _reach(cell: Cell) -> list[float]:
    spread: Spread | None = cell.spread
    return [cell.level] if spread is None else [spread.low, spread.high]
