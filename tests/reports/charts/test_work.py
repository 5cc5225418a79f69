"""The charts of counted work and of memory show the figures of the run."""

import pytest
from matplotlib.colors import to_hex

from compare.bench.task import TASKS
from reports import formats
from reports.charts import memory, work
from tests.reports.charts.drawn import colour, marks, named_rows, notes, strokes, tick_labels
from tests.reports.primes import (
    CAPACITIES,
    COUNTERS,
    LABELS,
    ONE_AT_ZERO,
    SIZES,
    SMALL,
    WHO,
    only,
    who_of,
)

TITLES = dict(
    zip(COUNTERS, ("comparisons of deadlines", "timers re-filed", "slots visited"), strict=True)
)


@pytest.fixture(scope="module")
def drawn(distinct):
    return dict(zip(distinct.cells, work.draw(distinct), strict=True))


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_each_panel_shows_its_counter_per_operation(drawn, primes, distinct, task):
    picture = drawn[task]
    assert (picture.name, picture.title) == (
        f"work-{task.name}",
        f"{task.title}: counted work per {task.unit}",
    )
    assert picture.figure.get_suptitle() == picture.title
    panels = dict(zip(COUNTERS, picture.figure.axes, strict=True))
    told = picture.alt.partition("At the largest size: ")[2].rstrip(".").split("; ")
    for part, (counter, axes) in zip(told, panels.items(), strict=True):
        assert axes.get_title() == TITLES[counter]
        assert part.startswith(f"{TITLES[counter]}: ")
        ends = axes.get_ylim()
        for label in LABELS:
            who = who_of(distinct, label)
            points = {
                size: count / operations
                for size in SIZES
                if (label, task, counter, size) in primes.counts
                for count, operations in [primes.counts[label, task, counter, size]]
            }
            own = [
                line for line in strokes(axes, who) if list(line.get_ydata()) == [*points.values()]
            ]
            if (label == ONE_AT_ZERO and counter == COUNTERS[1]) or WHO[label][0] != "compiled":
                assert not strokes(axes, who)
                assert f"{who.full} " not in part
                continue
            assert [list(line.get_xdata()) for line in own] == [list(SIZES)], label
            fills = [mark.fill for mark in marks(axes, who) if mark.y == [*points.values()]]
            assert fills == ["left" if who.variant else "full"]
            assert ends[0] < min(points.values()) < max(points.values()) < ends[1]
            assert f"{who.full} {formats.amount(points[SIZES[-1]])}" in part
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        assert tick_labels(axes, "x", SIZES) == ["1k", "20k", "500k"]
        assert tick_labels(axes, "y", [0.05, 20.0]) == ["0.05", "20"]
    assert [axes.get_xlabel() for axes in panels.values()] == ["", *["timers pending, N"] * 2]
    per = f"per {task.unit}"
    assert [axes.get_ylabel() for axes in panels.values()] == [per, "", per]


def test_what_is_not_drawn_is_told(distinct, drawn):
    task = TASKS[2]
    assert drawn[task].caption == (
        f"{task.meaning} Zero for all: empty buckets polled. Not counted: heapq-delay-queue."
    )
    nothing = {
        counter: {
            who: dict.fromkeys(curve, 0.0) if who.label == "delay-queue" else curve
            for who, curve in curves.items()
        }
        for counter, curves in distinct.counts[task].items()
    }
    (picture,) = work.draw(
        only(distinct, cells={task: distinct.cells[task]}, counts={task: nothing})
    )
    assert "Zero, so not drawn: delay-queue. Zero for all" in picture.caption
    (legend,) = picture.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        who.full
        for who in distinct.contestants
        if who.label in WHO and who.compiled and who.label != "delay-queue"
    ]
    for text, line in zip(legend.get_texts(), legend.get_lines(), strict=True):
        (who,) = [who for who in distinct.contestants if who.full == text.get_text()]
        assert to_hex(line.get_color()) == colour(who)


def test_what_lies_below_is_wider(distinct):
    """Of two lines that coincide the first is wider, of three the first of all widest."""
    task, (first, second, third, *_) = TASKS[0], distinct.contestants
    curves = {first: {1000: 7.0, 20_000: 7.0}, second: {1000: 7.2}, third: {1000: 17.0}}
    counts = {task: {"comparisons": curves}}
    (picture,) = work.draw(only(distinct, cells={task: distinct.cells[task]}, counts=counts))
    (axes,) = picture.figure.axes
    widths = [strokes(axes, who)[0].get_linewidth() for who in (first, second, third)]
    assert widths[0] > widths[1] == widths[2]


# ---- memory


@pytest.fixture(scope="module")
def bars(distinct):
    (picture,) = memory.draw(distinct)
    return picture


def test_each_bar_is_the_memory_at_the_largest_capacity(bars, primes, distinct):
    (axes,) = bars.figure.axes
    joined = {"".join(name.split()): at for name, at in named_rows(axes).items()}
    told = bars.alt.partition("pending: ")[2].rstrip(".").split(", ")
    assert bars.alt.startswith(f"Bar chart, bytes per timer with {CAPACITIES[-1]:,} pending")
    for label in LABELS:
        who = who_of(distinct, label)
        row = joined["".join(f"{who.short} {who.remark}".split())]
        capacity = CAPACITIES[-2 if label == SMALL else -1]
        value = primes.memory[label, capacity]
        (bar,) = [bar for bar in axes.patches if bar.get_y() + bar.get_height() / 2 == row]
        assert (bar.get_x(), bar.get_width()) == (0, value)
        assert bar.get_height() == 1.0  # a line of text
        assert to_hex(bar.get_facecolor()) == colour(who)
        assert bool(bar.get_hatch()) == (label == "heapq-delay-queue")
        (text,) = [text for text in notes(axes) if text.xy == (value, row)]
        expected = formats.data_size(value) + (" at N = 9k" if label == SMALL else "")
        assert text.get_text() == expected
        assert f"{who.full} {expected}".split(", ")[-1] in told
        assert bar.get_width() < axes.get_xlim()[1]
    assert axes.get_xlim()[0] == 0
    assert axes.get_xlabel() == f"bytes per timer, with N = 60{formats.NO_BREAK}000 pending"
    assert bars.title == bars.figure.get_suptitle() == "Memory per pending timer"
    assert "Hatched: Python objects." in bars.caption


def test_without_python_objects_none_are_explained(distinct):
    compiled = {who: sizes for who, sizes in distinct.memory.items() if who.compiled}
    (picture,) = memory.draw(only(distinct, memory=compiled))
    assert "Hatched" not in picture.caption
    assert list(memory.draw(only(distinct, memory={}))) == []
