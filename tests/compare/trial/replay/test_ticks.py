"""The calibration of clocks, with made clocks, and the clocks of this machine."""

import time

import numpy as np
import pytest

from compare.trial.replay import timed_loops
from compare.trial.replay.ticks import (
    READINGS,
    Ticks,
    TicksError,
    calibrated,
    compiled_ticks,
    python_ticks,
)
from tests.words import one_line
from timers.kernels.jit import long_entry


class Made:
    """A clock in ns, and one whose tick is `ns` long, with steps of `step` ticks.

    A reading of either takes 10 ns.
    """

    def __init__(self, ns=0.5, step=1, faster_from=None):
        self.now, self.ns, self.step, self.faster_from = 0, ns, step, faster_from

    def clock(self):
        self.now += 10
        return self.now

    def read(self):
        self.now += 10
        ticks = self.now / self.ns
        if self.faster_from is not None and self.now > self.faster_from:
            ticks += (self.now - self.faster_from) / self.ns
        return int(ticks // self.step * self.step)

    def fill(self, gaps):
        readings = [self.read() for _ in range(gaps.size + 1)]
        gaps[:] = np.diff(readings)

    def calibrate(self):
        return calibrated("made clock", self.read, self.fill, self.clock)


def test_a_clock_is_calibrated_against_another():
    found = Made(ns=0.4).calibrate()
    assert found.ns == pytest.approx(0.4, rel=1e-5)
    assert found.cost == pytest.approx(10)
    assert found.step == pytest.approx(10)  # all gaps are alike


def test_the_step_is_the_least_difference_between_gaps():
    found = Made(ns=0.5, step=14).calibrate()  # a reading takes 20 ticks: gaps of 14 and 28
    assert (found.cost, found.step) == pytest.approx((7, 7), rel=1e-3)


def test_the_cost_of_a_reading_is_subtracted_but_no_time_is_negative():
    clock = Ticks("made", ns=0.5, cost=10.0, step=1.0)
    assert clock.nanoseconds(np.array([0, 20, 30, 2020])).tolist() == [0, 0, 5, 1000]
    assert "10 ns" in clock.text and "1 ns" in clock.text


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (Made(ns=1.0, step=1_000_000), "steps of more than 1,000 ns"),
        (Made(ns=1e12), "stands still"),
        (Made(faster_from=12_000_000), "not steady"),
    ],
)
def test_a_clock_that_cannot_measure_is_refused_in_a_line(made, problem):
    with one_line(TicksError, problem):
        made.calibrate()


def test_the_clocks_of_this_machine_measure_operations():
    for clock in (compiled_ticks(), python_ticks()):
        assert 0 < clock.ns <= 100 and 0 <= clock.cost < 1_000 and 0 < clock.step <= 1_000


@long_entry
def monotonic():
    return timed_loops._monotonic()


def test_clock_gettime_is_the_monotonic_clock():
    before, reading, after = time.monotonic_ns(), monotonic(), time.monotonic_ns()
    assert before <= reading <= after


def test_an_array_stands_in_for_the_clock():
    fake = np.array([3, 4])
    assert timed_loops.read(fake) == timed_loops.ticks(fake) == 7
    assert READINGS > 0
