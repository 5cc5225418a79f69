"""The cost of traffic, from constants at a few numbers of pending timers."""

import math

import pytest

from compare.trial.advice.model import BEYOND, NEAR, at, by_round, cost, is_known, rates
from compare.trial.bench.constants import Constants, Fit, counted
from compare.trial.bench.steady import KINDS, PERIODIC, Traffic, steady

FITS = {
    1_000: Fit(Constants(10, 20, 100, 0, 5, 0, 1), 0.05),
    100_000: Fit(Constants(40, 20, 10_000, 7, 5, 0, 0), 0.1),
}


@pytest.mark.parametrize(
    ("traffic", "pending"),
    [
        (Traffic(1_000, 5_000, 0.0), 5_000),
        (Traffic(1_000, 5_000, 1.0, 100.0), 100),
        (Traffic(2_000, 5_000, 0.9, 100.0), 2 * (0.9 * 100 + 0.1 * 5_000)),
    ],
)
def test_the_number_pending_is_the_rate_times_the_time_in_the_timer(traffic, pending):
    assert traffic.pending == pytest.approx(pending)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rate", [30, 1_000, 40_000])
@pytest.mark.parametrize("step", [1, 100])
@pytest.mark.parametrize("cancelled", [0.0, 0.9])
def test_rates_are_those_of_a_tape(kind, rate, step, cancelled):
    if kind == PERIODIC and cancelled:
        pytest.skip("periodic timers are not cancelled")
    traffic = Traffic(rate, 2_130, cancelled, 40, kind, step)
    made = steady(traffic, max(6_000, rate * step // 20), 1)
    of_tape = counted(made)
    for name, stated, found in zip(Constants._fields, rates(traffic), of_tape, strict=True):
        assert stated * made.seconds == pytest.approx(found, rel=0.15, abs=30), name


def test_logarithms_are_interpolated():
    assert list(at(1_000, FITS).constants) == pytest.approx(list(FITS[1_000].constants))
    middle = at(10_000, FITS)
    assert list(middle.constants) == pytest.approx([20, 20, 1_000, 7 / 11, 5, 0, 10 / 11])
    assert middle.error == 0.1  # the greater


def test_beyond_the_sizes_the_interval_widens_and_the_median_stays_in_it():
    inside, above, below = at(100_000, FITS), at(1_000_000, FITS), at(10, FITS)
    assert above.constants.pair == pytest.approx(80) and above.constants.step == pytest.approx(1e5)
    assert list(below.constants) == pytest.approx(list(FITS[1_000].constants))
    assert above.error > inside.error and below.error > at(1_000, FITS).error
    assert above.constants.call == 7  # nothing is known of its growth
    for pending in (1, 10, 1_000, 30_000, 10**6, 10**8):
        traffic = Traffic(pending, 1_000, 0.0)
        middle, low, high = cost(traffic, FITS)
        assert low < middle < high


def test_cost_is_the_sum_of_all_parts():
    traffic = Traffic(2_000, 50, 0.75, 1e-9)
    pair, fire, step, call, firing, moment, unit = FITS[1_000].constants
    steps = 1_000 * -math.expm1(-3.5)
    expected = 1_500 * pair + 500 * fire + steps * step + 1_000 * unit
    middle = cost(traffic, FITS)[0]
    assert expected < middle < expected + 500 * firing


def test_a_timer_that_was_too_slow_at_a_larger_size_is_not_offered_there():
    at_most = Traffic(1_000, 100_000, 0.0)
    assert is_known(at_most, FITS, 100_000)
    assert is_known(Traffic(BEYOND * 1_000, 100_000, 0.0), FITS, 100_000)
    assert not is_known(Traffic(2 * BEYOND * 1_000, 100_000, 0.0), FITS, 100_000)
    assert not is_known(Traffic(2 * NEAR * 1_000, 100_000, 0.0), FITS, 10**6)
    assert not is_known(at_most, {}, 100_000)


def test_a_round_has_a_cost_of_its_own():
    rounds = Constants(10, 0, 0, 0, 0, 0, 0), Constants(30, 0, 0, 0, 0, 0, 0)
    traffic = Traffic(1_000, 1_000, 1.0, 100.0)
    fits = {10: Fit(rounds[0], 0.1, rounds), 1_000: Fit(rounds[0], 0.1, rounds)}
    assert by_round(traffic, fits) == pytest.approx([10_000, 30_000])
    assert by_round(traffic, FITS) == [cost(traffic, FITS)[0]]
    # Rounds of a size that is far away do not count.
    fits[100_000] = Fit(rounds[0], 0.1)
    assert by_round(traffic, fits) == pytest.approx([10_000, 30_000])


def test_a_timer_holds_what_starts_in_a_step_even_if_all_is_cancelled_in_it():
    few = Traffic(2_000, 50, 1.0, 1.0)
    many = Traffic(200_000, 50, 1.0, 0.01, step=50.0)
    assert few.pending == few.held == pytest.approx(2)
    assert many.pending == pytest.approx(2) and many.held == 10_000
    pair = at(10_000, FITS).constants.pair
    assert cost(many, FITS)[0] > 200_000 * pair  # and not the pair of 2 pending timers
    assert not is_known(many, {1_000: FITS[1_000]}, 100_000)


def test_a_pair_is_paid_by_the_number_of_those_that_are_answered():
    """What has started last is in the caches, however many others are pending."""
    traffic = Traffic(1_000, 1_000_000, 0.9, 1_111)
    assert traffic.answered == pytest.approx(1_000, rel=0.001)
    assert traffic.held == pytest.approx(101_000, rel=0.001)
    without = {size: Fit(fit.constants._replace(pair=0.0), fit.error) for size, fit in FITS.items()}
    pairs = cost(traffic, FITS)[0] - cost(traffic, without)[0]
    assert pairs == pytest.approx(900 * FITS[1_000].constants.pair, rel=0.01)
    assert cost(traffic, FITS)[1] > pairs  # the others are paid by the number of all
