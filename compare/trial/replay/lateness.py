"""The distribution of lateness: how long after their deadlines timers fired.

Lateness is `fired_at - max(deadline, armed_at)` in units, negative for a timer that fired early.
Adding distributions adds their counts, so the order of the parts does not matter.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from compare.traffic.tapes.units import duration_text
from timers.arrays import Int64s
from timers.rounding import SHARE, SHARE_BOUNDS, UNKNOWN_BOUNDS

DIGITS = 11
"""The leading binary digits of a value that a coarse distribution keeps."""

_BINS_PER_VALUE = 4
"""The range of values, relative to their number, up to which counting is faster than sorting."""


@dataclass(frozen=True, eq=False)
class Lateness:
    """The number of timers for each lateness.

    `values` (int64, ascending) are the values that occur, and `counts` (int64) their frequencies.
    """

    values: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    counts: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    min: int | None = None  # in units; None if nothing fired
    max: int | None = None

    @classmethod
    def of(cls, late: Int64s) -> "Lateness":
        """The distribution of an int64 array. O(n), or O(n log n) if the values are scattered."""
        if not late.size:
            return cls()
        low, high = int(late.min()), int(late.max())
        if low == high:  # an exact timer
            values, counts = late[:1].copy(), np.array([late.size])
        elif high - low <= _BINS_PER_VALUE * late.size:
            counts = np.bincount(late - low)
            values = np.flatnonzero(counts) + low
            counts = counts[counts > 0]
        else:
            values, counts = np.unique(late, return_counts=True)
        return cls(values, counts, low, high)

    def __add__(self, other: "Lateness") -> "Lateness":
        """The distribution of both together. O(n log n) in the number of different values."""
        if self.min is None or self.max is None:
            return other
        if other.min is None or other.max is None:
            return self
        low, high = min(self.min, other.min), max(self.max, other.max)
        if np.array_equal(self.values, other.values):
            return Lateness(self.values, self.counts + other.counts, low, high)
        values = np.concatenate([self.values, other.values])
        counts = np.concatenate([self.counts, other.counts])
        return Lateness(*_merged(values, counts), low, high)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Lateness):
            return NotImplemented
        return all(map(np.array_equal, vars(self).values(), vars(other).values()))

    def coarse(self) -> "Lateness":
        """Round the values towards zero, to DIGITS binary digits.

        For each further digit there are at most 2**DIGITS values, however many timers are late.
        Values below 2**DIGITS stay exact, as do `min` and `max`; the error of the others is below
        0.1 %. All machines round alike, so a sum of coarse distributions is the coarse distribution
        of the sum.
        """
        if np.abs(self.values).max(initial=0) < 1 << DIGITS:
            return self
        return Lateness(*_merged(_rounded(self.values), self.counts), self.min, self.max)

    @property
    def median(self) -> float | None:
        """The middle value, or the mean of the two middle values; None if nothing fired."""
        timers = int(self.counts.sum())
        if not timers:
            return None
        low, high = self._of_ranks([(timers - 1) // 2, timers // 2])
        return (low + high) / 2

    def quantiles(self, shares: Iterable[float]) -> list[int] | list[None]:
        """For each share in (0, 1], the lowest value that this share of timers does not exceed.

        All are None if nothing fired.
        """
        timers = int(self.counts.sum())
        if not timers:
            return [None for _ in shares]
        return self._of_ranks([max(int(np.ceil(share * timers)), 1) - 1 for share in shares])

    def _of_ranks(self, ranks: Sequence[int]) -> list[int]:
        """The values of the timers with these ranks, from 0, clipped to `min` and `max`."""
        values = self.values[np.searchsorted(np.cumsum(self.counts), ranks, side="right")]
        return list(np.clip(values, self.min, self.max).tolist())


def lateness_text(low: int, high: int, unit: str = "") -> str:
    """A range of lateness in words; negative is early. Values are durations if there is a unit.

    >>> lateness_text(0, 0), lateness_text(0, 100, "ms"), lateness_text(-9, -2)
    ('exact', 'up to 100ms late', '2 to 9 early')
    >>> lateness_text(2, 100_000, "us"), lateness_text(-3, 3), lateness_text(7, 7)
    ('2us to 100ms late', '3 early to 3 late', '7 late')
    >>> lateness_text(-1_999_999, 0, "us")  # a tick of 2 s
    'up to 2s early'
    """
    if (low, high) == UNKNOWN_BOUNDS:
        return "lateness undeclared"
    if (low, high) == SHARE_BOUNDS:
        return f"up to {SHARE} late"
    if low == high == 0:
        return "exact"
    if low < 0 < high:
        return f"{duration_text(-low, unit)} early to {duration_text(high, unit)} late"
    near, far = sorted((abs(low), abs(high)))
    direction = "early" if low < 0 else "late"
    most = duration_text(far, unit)
    if near:
        return (
            f"{duration_text(near, unit)} to {most} {direction}"
            if near != far
            else f"{most} {direction}"
        )
    above = duration_text(far + 1, unit)  # of a tick that rounds down, by a unit less than it
    return f"up to {above if len(above) + 1 < len(most) else most} {direction}"


def _merged(values: Int64s, counts: Int64s) -> tuple[Int64s, Int64s]:
    """The distinct values in ascending order, and the sum of the counts of each."""
    distinct, index = np.unique(values, return_inverse=True)
    sums = np.zeros(distinct.size, np.int64)
    np.add.at(sums, index, counts)
    return distinct, sums


def _rounded(values: Int64s) -> Int64s:
    magnitude = np.abs(values)
    # The exponent of a double is the number of digits. Above 2**53 it may be rounded up, on every
    # machine alike.
    digits = np.frexp(magnitude.astype(np.float64))[1].astype(np.int64)
    shift = np.maximum(digits - DIGITS, 0)
    return np.asarray(np.sign(values) * (magnitude >> shift << shift))
