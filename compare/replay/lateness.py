"""The distribution of lateness: how long after its deadline each timer fired.

Lateness is `fired_at - max(deadline, armed_at)` in units, negative for a timer that fired early.
Distributions are added by adding their counts, so the order of the parts does not matter.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from compare.tapes.units import duration_text
from timers.arrays import Int64s
from timers.rounding import UNKNOWN_BOUNDS

MOST_BINS = 4096
"""Values that a chart shows one by one; more than that are put into bins of equal width."""

DIGITS = 11
"""Binary digits of a value that a coarse distribution keeps."""

_BINS_PER_VALUE = 4
"""Counting by index is faster than sorting while the range is at most so many times the number."""


@dataclass(frozen=True, eq=False)
class Lateness:
    """How many timers fired how late.

    `values` (int64, ascending) are the values that occur and `counts` (int64) how often each does.
    """

    values: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    counts: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    min: int | None = None  # in units; None where nothing fired
    max: int | None = None

    @classmethod
    def of(cls, late: Int64s) -> "Lateness":
        """The distribution of the values in an int64 array. O(n), or O(n log n) if they scatter."""
        if not late.size:
            return cls()
        least, greatest = int(late.min()), int(late.max())
        if least == greatest:  # as from a timer that is never early or late
            values, counts = late[:1].copy(), np.array([late.size])
        elif greatest - least <= _BINS_PER_VALUE * late.size:
            counts = np.bincount(late - least)
            values = np.flatnonzero(counts) + least
            counts = counts[counts > 0]
        else:
            values, counts = np.unique(late, return_counts=True)
        return cls(values, counts, least, greatest)

    def __add__(self, other: "Lateness") -> "Lateness":
        """The distribution of both together. O(n log n) in the number of different values."""
        if self.min is None or self.max is None:
            return other
        if other.min is None or other.max is None:
            return self
        least, greatest = min(self.min, other.min), max(self.max, other.max)
        if np.array_equal(self.values, other.values):
            return Lateness(self.values, self.counts + other.counts, least, greatest)
        values = np.concatenate([self.values, other.values])
        counts = np.concatenate([self.counts, other.counts])
        return Lateness(*_merged(values, counts), least, greatest)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Lateness):
            return NotImplemented
        return all(map(np.array_equal, vars(self).values(), vars(other).values()))

    def coarse(self) -> "Lateness":
        """The same with values rounded towards zero to DIGITS binary digits.

        It holds at most 2**DIGITS values for each digit more, however many timers are late. Values
        below 2**DIGITS stay exact, as do the least and the greatest; others are off by less than
        0.1 %. All shards and machines round alike, so a sum of coarse distributions is the coarse
        distribution of the sum.
        """
        if np.abs(self.values).max(initial=0) < 1 << DIGITS:
            return self
        return Lateness(*_merged(_rounded(self.values), self.counts), self.min, self.max)

    @property
    def median(self) -> float | None:
        """The middle value, or the mean of the two around the middle; None where nothing fired."""
        timers = int(self.counts.sum())
        if not timers:
            return None
        low, high = self._of_ranks([(timers - 1) // 2, timers // 2])
        return (low + high) / 2

    def quantiles(self, shares: Iterable[float]) -> list[int] | list[None]:
        """For each share in (0, 1]: the least value that at least this share is not above.

        None for each where nothing fired.
        """
        timers = int(self.counts.sum())
        if not timers:
            return [None for _ in shares]
        return self._of_ranks([max(int(np.ceil(share * timers)), 1) - 1 for share in shares])

    def bins(self) -> Iterator[tuple[int, int, int]]:
        """(least value, width, timers) of each bin that is not empty, ascending.

        The width is 1 for up to MOST_BINS different values.
        """
        values, counts, width = self.values, self.counts, 1
        if values.size > MOST_BINS:
            width = (int(values[-1]) - int(values[0])) // MOST_BINS + 1
            first = int(values[0])
            values, counts = _merged((values - first) // width, counts)
            values = first + values * width
        yield from zip(values.tolist(), [width] * values.size, counts.tolist(), strict=True)

    def _of_ranks(self, ranks: Sequence[int]) -> list[int]:
        """The values of the timers of these ranks, from 0 up, by lateness.

        One that was rounded is kept between the least and the greatest.
        """
        values = self.values[np.searchsorted(np.cumsum(self.counts), ranks, side="right")]
        return list(np.clip(values, self.min, self.max).tolist())


def lateness_text(low: int, high: int, unit: str = "") -> str:
    """A range of lateness in words; negative is early. Moments are durations if there is a unit.

    >>> lateness_text(0, 0), lateness_text(0, 100, "ms"), lateness_text(-9, 0)
    ('exact', '0 to 100ms late', '0 to 9 early')
    >>> lateness_text(2, 100_000, "us"), lateness_text(-3, 3), lateness_text(7, 7)
    ('2us to 100ms late', '3 early to 3 late', '7 late')
    """
    if (low, high) == UNKNOWN_BOUNDS:
        return "lateness undeclared"
    if low == high == 0:
        return "exact"
    if low < 0 < high:
        return f"{duration_text(-low, unit)} early to {duration_text(high, unit)} late"
    least, most = sorted((abs(low), abs(high)))
    start = f"{duration_text(least, unit) if least else 0} to " if least != most else ""
    return f"{start}{duration_text(most, unit)} {'early' if low < 0 else 'late'}"


def _merged(values: Int64s, counts: Int64s) -> tuple[Int64s, Int64s]:
    """Values in ascending order, each once, with the sum of its counts."""
    distinct, where = np.unique(values, return_inverse=True)
    sums = np.zeros(distinct.size, np.int64)
    np.add.at(sums, where, counts)
    return distinct, sums


def _rounded(values: Int64s) -> Int64s:
    magnitude = np.abs(values)
    # The exponent of a double is the number of digits. Beyond 2**53 it may be rounded up, on every
    # machine alike.
    digits = np.frexp(magnitude.astype(np.float64))[1].astype(np.int64)
    shift = np.maximum(digits - DIGITS, 0)
    return np.asarray(np.sign(values) * (magnitude >> shift << shift))
