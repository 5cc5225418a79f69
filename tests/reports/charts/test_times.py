"""The charts of time show the figures of the run."""

import math
from statistics import median

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from compare.bench.task import TASKS
from reports import formats
from reports.charts import times
from reports.charts.axes import log_axis, nudge_factors, spread_out
from reports.palette import look_of
from tests.reports.charts.drawn import (
    colour,
    fitted,
    in_data,
    marks,
    notes,
    spans,
    strokes,
    tick_labels,
)
from tests.reports.primes import LABELS, OVER, SIZES, only, who_of


@pytest.mark.parametrize("which", ["x", "y"])
def test_an_axis_of_less_than_a_decade_is_widened_around_its_middle(which):
    axes = Figure().subplots()
    log_axis(axes, which, [100.0, 144.0], formats.nanoseconds)
    low, high = getattr(axes, f"get_{which}lim")()
    assert (high / low, low * high) == pytest.approx((10.0, 120.0**2))


@pytest.fixture(scope="module")
def drawn(distinct):
    return dict(zip(distinct.cells, times.draw(distinct), strict=True))


@pytest.fixture(scope="module", params=TASKS, ids=lambda task: task.name)
def chart(request, drawn):
    task = request.param
    (axes,) = drawn[task].figure.axes
    return task, drawn[task], axes


def variants(distinct, label):
    """All contestants of the same timer, which share a colour."""
    who = who_of(distinct, label)
    return [other for other in distinct.contestants if other.timer == who.timer]


def test_each_series_is_the_median_of_its_samples(chart, primes, distinct):
    task, _, axes = chart
    for label in LABELS:
        who = who_of(distinct, label)
        sizes = [size for size in SIZES if (label, task, size) in primes.samples]
        expected = [median(primes.samples[label, task, size]) for size in sizes]
        own = [line for line in strokes(axes, who) if list(line.get_ydata()) == expected]
        assert len(own) == 1, label
        for x, size in zip(own[0].get_xdata(), sizes, strict=True):
            assert abs(math.log10(x / size)) < 0.07  # moved aside by no more than that
        assert own[0].is_dashed() == (label == "heapq-delay-queue")
        shown = [points for points in marks(axes, who) if points.y == expected]
        assert shown[0].fill == ("full" if who.variant == 0 else "left")
        assert shown[0].x == list(own[0].get_xdata())


def test_each_bar_goes_from_the_least_to_the_greatest_sample(chart, primes, distinct):
    task, _, axes = chart
    for label in LABELS:
        expected = {
            (min(samples), max(samples))
            for (of, where, _), samples in primes.samples.items()
            if where == task and of in [other.label for other in variants(distinct, label)]
        }
        found = spans(axes, who_of(distinct, label))
        assert {(low[1], high[1]) for low, high in found} == expected
        assert all(low[0] == high[0] for low, high in found)
        points = {
            (x, y)
            for other in variants(distinct, label)
            for points in marks(axes, other)
            for x, y in zip(points.x, points.y, strict=True)
        }
        for low, high in found:  # it runs through its own marker
            assert any(x == low[0] and low[1] < y < high[1] for x, y in points)


def test_a_line_ends_before_the_size_that_was_over_budget(drawn, distinct):
    label, task, size = OVER
    (axes,) = drawn[task].figure.axes
    (points,) = marks(axes, who_of(distinct, label))
    assert len(points.x) == SIZES.index(size)
    assert max(points.x) < size / 2


def test_each_label_stands_by_the_mark_and_the_end_of_its_series(chart, primes, distinct):
    task, _, axes = chart
    beside = [line for line in axes.get_lines() if not in_data(line, axes)]
    assert len(beside) == len(LABELS)
    arrows = [text for text in axes.texts if text.arrow_patch is not None]
    heights = []
    for label in LABELS:
        who = who_of(distinct, label)
        last = max(size for size in SIZES if (label, task, size) in primes.samples)
        level = median(primes.samples[label, task, last])
        value = formats.nanoseconds(level)
        (arrow,) = [text for text in arrows if text.xy[1] == pytest.approx(level)]
        at = arrow.get_position()[1]
        assert to_hex(arrow.arrow_patch.get_edgecolor()) == colour(who)
        (mark,) = [line for line in beside if line.get_ydata()[0] == at]
        assert mark.get_marker() == look_of(who.timer).marker
        assert to_hex(mark.get_color()) == colour(who)
        name, below = (text for text in notes(axes) if text.xy[1] == at)
        assert (name.get_text(), name.get_fontweight()) == (who.short, "bold")
        assert (name.get_va(), below.get_va()) == ("bottom", "top")
        assert below.get_text().replace("\n", " · ").startswith(value)
        assert who.remark in below.get_text().replace("\n", " ")
        heights.append((level, at))
    assert sorted(heights) == sorted(heights, key=lambda end: end[1])  # in the order of levels


def test_axes_and_texts(chart, primes, distinct):
    task, picture, axes = chart
    assert picture.title == f"{task.title}: time per {task.unit}"
    assert picture.figure.get_suptitle() == picture.title
    assert (picture.name, picture.caption) == (f"time-{task.name}", task.meaning)
    assert axes.get_xlabel() == "timers pending, N (log scale)"
    assert axes.get_ylabel() == f"time per {task.unit} (log scale)"
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert list(axes.get_xticks()) == list(SIZES)
    assert tick_labels(axes, "x", SIZES) == ["1k", "20k", "500k"]
    assert tick_labels(axes, "y", [20.0, 1e5]) == [f"20{formats.SPACE}ns", f"100{formats.SPACE}µs"]
    low, high = axes.get_xlim()
    assert low < SIZES[0] / 1.2 and high > SIZES[-1] * 1.2
    samples = [
        v for (_, where, _), values in primes.samples.items() if where == task for v in values
    ]
    assert axes.get_ylim() == fitted(min(samples), max(samples))
    last = {
        label: median(primes.samples[label, task, SIZES[-1]])
        for label in LABELS
        if (label, task, SIZES[-1]) in primes.samples
    }
    told = picture.alt.partition("At the largest size: ")[2].rstrip(".").split("; ")
    expected = [
        f"{who_of(distinct, label).full} {formats.nanoseconds(last[label])}"
        for label in sorted(last, key=last.__getitem__)
    ]
    assert [text for text in told if " at N = " not in text.replace("\xa0", " ")] == expected
    assert f"{picture.title.lower()} against timers pending" in picture.alt


def test_a_series_that_ends_earlier_says_where(distinct):
    task = TASKS[0]
    who = distinct.contestants[1]
    cells = dict(distinct.cells[task])
    cells[who] = {size: cells[who][size] for size in SIZES[:2]}
    (picture,) = times.draw(only(distinct, cells={task: cells}))
    assert f"{who.full} {cells[who][SIZES[1]].text} at {formats.size(SIZES[1])}" in picture.alt


def test_points_are_moved_apart_evenly_around_their_place():
    assert nudge_factors(1, SIZES, 0.1) == [1.0]
    found = nudge_factors(3, (10, 1000), 0.1)
    assert found == pytest.approx([10**-0.05, 1.0, 10**0.05])  # of a decade at most
    assert nudge_factors(2, (10, 20), 0.1) == pytest.approx([2**-0.05, 2**0.05])


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([3.0], [3.0]),
        ([9.0], [4.5]),
        ([-9.0], [0.5]),
        ([5.0, 4.9, 1.0], [4.5, 3.5, 1.0]),
        ([0.2, 0.1], [1.5, 0.5]),
    ],
)
def test_labels_are_moved_no_further_than_needed(wanted, expected):
    assert spread_out(wanted, [1.0] * len(wanted), 0.0, 5.0) == expected
