"""Calibrated clocks for single operations.

Compiled code reads that of `timed_loops`, Python loops `perf_counter_ns`. Both are calibrated
against `perf_counter_ns`, and the time of a reading is measured, so that it can be subtracted.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from compare.trial.replay.timed_loops import HAS_CYCLES, differences, read, ticks
from timers.arrays import Int64s
from timers.errors import TimerError

READINGS = 4096  # in a row, to measure the time of one
INTERVAL = 10_000_000  # ns between the readings of a calibration
PAIRS = 16  # readings of both clocks; the closest pair counts
COARSEST = 1_000  # ns; most operations take 5 to 1 000
DRIFT = 0.02  # two calibrations may differ by this much


class TicksError(TimerError, RuntimeError):
    """The clock cannot measure single operations. The message says why."""


def interpreted_differences(out: Int64s) -> None:
    """`differences` of `perf_counter_ns`, called from Python."""
    for k in range(out.size):
        before = ticks(None)
        out[k] = ticks(None) - before


@dataclass(frozen=True)
class Ticks:
    """A calibrated clock."""

    name: str
    ns: float  #: nanoseconds of a tick
    cost: float  #: nanoseconds of a reading, the least of many, which is subtracted
    step: float  #: nanoseconds between the closest readings that differ

    def nanoseconds(self, spent: Int64s) -> Int64s:
        """Convert ticks between two readings to nanoseconds, less the time of a reading."""
        exact = np.maximum(spent * self.ns - self.cost, 0.0)
        return np.asarray(np.rint(exact).astype(np.int64))

    @property
    def text(self) -> str:
        """The clock in words, with the time of a reading."""
        return (
            f"{self.name}, in steps of {self.step:.3g} ns; a reading takes {self.cost:.3g} ns,"
            " which is subtracted"
        )


@cache
def compiled_ticks() -> Ticks:
    """The calibrated clock of compiled code. Raises TicksError."""
    if not HAS_CYCLES and not hasattr(time, "CLOCK_MONOTONIC"):
        raise TicksError(
            "latencies cannot be measured here: the system has neither a cycle counter of x86-64"
            " nor clock_gettime"
        )
    name = "the processor's cycle counter" if HAS_CYCLES else "clock_gettime"
    return calibrated(name, lambda: int(read(None)), differences)


@cache
def python_ticks() -> Ticks:
    """The calibrated clock of Python loops. Raises TicksError."""
    return calibrated("perf_counter_ns", time.perf_counter_ns, interpreted_differences)


def calibrated(
    name: str,
    read_ticks: Callable[[], int],
    fill: Callable[[Int64s], None],
    clock: Callable[[], int] = time.perf_counter_ns,
) -> Ticks:
    """Calibrate a clock against another one, in nanoseconds.

    Raises TicksError if it is too coarse or not steady.
    """

    def pair() -> tuple[float, int]:
        """A moment of `clock` and the reading at that moment."""
        found = []
        for _ in range(PAIRS):
            before, reading, after = clock(), read_ticks(), clock()
            found.append((after - before, (before + after) / 2, reading))
        _, moment, reading = min(found)
        return moment, reading

    pairs = [pair()]
    for _ in range(2):
        while clock() < pairs[-1][0] + INTERVAL:
            pass
        pairs.append(pair())
    (first, start), (middle, between), (last, end) = pairs
    if between <= start or end <= between:
        raise TicksError(f"latencies cannot be measured: {name} stands still")
    halves = (middle - first) / (between - start), (last - middle) / (end - between)
    if max(halves) > min(halves) * (1 + DRIFT):
        raise TicksError(
            f"latencies cannot be measured: {name} is not steady, {min(halves):.4g} to"
            f" {max(halves):.4g} ns a tick; the machine may be too busy, or change its frequency"
        )
    ns = (last - first) / (end - start)
    gaps = np.zeros(READINGS, np.int64)
    fill(gaps)
    steps = np.diff(np.unique(np.append(gaps, 0)))
    step = ns * float(steps.min()) if steps.size else math.inf
    if step > COARSEST:
        raise TicksError(
            f"latencies cannot be measured: {name} has steps of more than {COARSEST:,} ns, and"
            " most operations take less"
        )
    return Ticks(name, ns, ns * float(gaps.min()), step)
