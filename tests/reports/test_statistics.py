"""Estimates, intervals and ties."""

from dataclasses import replace
from itertools import product
from statistics import median

import pytest

from compare.trial.results.schema import Row
from reports.select import estimates
from reports.statistics import Estimate, fastest, statistic


@pytest.mark.parametrize(
    ("number", "left_out"),
    [(5, 0), (7, 0), (8, 1), (10, 1), (11, 2), (12, 2), (13, 3), (20, 5), (1000, 473)],
)
def test_the_interval_leaves_out_few_samples_at_each_end(number, left_out):
    samples = [100.0 + n * n for n in range(number)]
    estimate = Estimate.of(reversed(samples))
    assert (estimate.low, estimate.high) == (samples[left_out], samples[-1 - left_out])
    assert (estimate.value, estimate.n) == (median(samples), number)
    assert estimate.samples == tuple(samples)
    assert (estimate.least, estimate.greatest) == (samples[0], samples[-1])


@pytest.mark.parametrize("number", [5, 8, 9, 12])
def test_the_interval_misses_the_median_at_most_one_time_in_ten(number):
    """Each sample is above or below the true median, all ways equally likely."""
    missed = 0
    for below in product((-1.0, 1.0), repeat=number):
        estimate = Estimate.of(below)
        missed += not estimate.low < 0 < estimate.high
    assert missed <= 0.1 * 2**number


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_with_few_samples_the_interval_is_wider_than_their_range(number):
    samples = [100.0 + n for n in range(number)]
    estimate = Estimate.of(samples)
    assert (estimate.low, estimate.high) == pytest.approx((100.0 / 1.1, samples[-1] * 1.1))


def of(value, low, high):
    return Estimate.of([low, low, value, high, high], value)


def test_shards_have_the_value_of_all_and_their_whole_range():
    shards = Estimate.of(range(10, 30), 12.5)
    assert (shards.value, shards.low, shards.high, shards.n) == (12.5, 10, 29, 20)
    few = Estimate.of([10.0, 20.0], 12.5)
    assert (few.low, few.high) == (pytest.approx(10 / 1.1), 22)


def test_another_unit_changes_all_but_the_number():
    estimate = Estimate.of([3.0, 1.0, 2.0]) * 1000
    assert estimate == Estimate.of([3000.0, 1000.0, 2000.0])


@pytest.mark.parametrize(
    ("name", "value"),
    [("median", 6.5), ("least", 1), ("greatest", 12), ("p50", 6), ("p90", 11)],
)
def test_a_statistic_has_its_name(name, value):
    found = statistic(name)
    assert (found.title, found.value(Estimate.of(range(1, 13)))) == (name, value)
    assert found.ends is None


def test_a_value_may_stand_with_its_ends():
    estimate = Estimate.of(range(1, 13))
    assert statistic("range").ends(estimate) == (1, 12)
    assert statistic("interval").ends(estimate) == (estimate.low, estimate.high) == (3, 10)


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
    assert fastest({"other": other, "one": replace(first, value=9.9)}) == expected


def test_ties_are_not_decided_by_ranges():
    few = {"one": Estimate.of([10.0, 11.0]), "other": Estimate.of([11.5, 12.0])}
    assert fastest(few) == ["one", "other"]
    many = {"one": Estimate.of([*[10.0] * 7, 20.0]), "other": Estimate.of([15.0] * 8)}
    assert fastest(many) == ["one"]


def test_the_fastest_has_the_least_median():
    """Not the least sample, the least greatest one, or the first."""
    spreads = {"late": of(9, 6, 10), "first": of(8, 7, 30), "low": of(12, 1, 31)}
    assert fastest(spreads) == ["first", "late", "low"]


def test_scatter_is_the_greatest_over_the_least():
    assert of(3, 2, 10).scatter == 5.0
    assert of(0, 0, 10).scatter == 1.0


def test_a_quantile_is_a_sample():
    estimate = Estimate.of([1.0, 2.0, 3.0, 4.0])
    shares = (0.0, 0.25, 0.26, 0.5, 0.99, 1.0)
    assert [estimate.quantile(share) for share in shares] == [1.0, 1.0, 2.0, 2.0, 4.0, 4.0]


def test_values_of_all_repeats_together_keep_the_order_of_the_rows():
    """Legends have it, so two pages of one run are alike."""
    names = [f"timer {place:x}" for place in range(30, 0, -1)]
    rows = [Row(name, "hold", 10, "time", None, 1.0) for name in names]
    assert [key.contestant for key in estimates(rows)] == names
