"""Spreads, intervals and ties."""

from itertools import product
from statistics import median

import pytest

from reports.statistics import Spread, fastest


@pytest.mark.parametrize(
    ("number", "left_out"),
    [(5, 0), (7, 0), (8, 1), (10, 1), (11, 2), (12, 2), (13, 3), (20, 5), (1000, 473)],
)
def test_the_interval_leaves_out_few_samples_at_each_end(number, left_out):
    samples = [100.0 + n * n for n in range(number)]
    spread = Spread.of(reversed(samples))
    assert spread.interval == (samples[left_out], samples[-1 - left_out])
    assert spread[:4] == (median(samples), samples[0], samples[-1], number)


@pytest.mark.parametrize("number", [5, 8, 9, 12])
def test_the_interval_misses_the_median_at_most_one_time_in_ten(number):
    """Each sample is above or below the true median, all ways equally likely."""
    missed = 0
    for below in product((-1.0, 1.0), repeat=number):
        low, high = Spread.of(below).interval
        missed += not low < 0 < high
    assert missed <= 0.1 * 2**number


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_with_few_samples_the_interval_is_wider_than_their_range(number):
    samples = [100.0 + n for n in range(number)]
    low, high = Spread.of(samples).interval
    assert (low, high) == pytest.approx((100.0 / 1.1, samples[-1] * 1.1))


def of(level, low, high):
    return Spread.between(level, low, high, 5)


@pytest.mark.parametrize(
    ("first", "other", "tied"),
    [
        (of(10, 9, 11), of(13, 12, 14), False),
        (of(10, 9, 12), of(13, 12, 14), True),  # they touch
        (of(10, 9, 13.5), of(13, 12, 14), True),
        (of(10, 9, 99), of(50, 49, 51), True),  # with so much noise nothing is certain
        (of(10, 5, 20), of(10, 9, 11), True),  # one within the other
    ],
)
def test_ties_are_decided_by_intervals(first, other, tied):
    assert first.tied_with(other) == other.tied_with(first) == tied
    expected = ["one", "other"] if tied else ["one"]
    assert fastest({"other": other, "one": first._replace(level=9.9)}) == expected


def test_ties_are_not_decided_by_ranges():
    few = {"one": Spread.of([10.0, 11.0]), "other": Spread.of([11.5, 12.0])}
    assert fastest(few) == ["one", "other"]
    many = {"one": Spread.of([*[10.0] * 7, 20.0]), "other": Spread.of([15.0] * 8)}
    assert fastest(many) == ["one"]


def test_the_fastest_has_the_least_median():
    """Not the least sample, the least greatest one, or the first."""
    spreads = {"late": of(9, 6, 10), "first": of(8, 7, 30), "low": of(12, 1, 31)}
    assert fastest(spreads) == ["first", "late", "low"]


def test_scatter_is_the_greatest_over_the_least():
    assert of(3, 2, 10).scatter == 5.0
    assert of(0, 0, 10).scatter == 1.0
