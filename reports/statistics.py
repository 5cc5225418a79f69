"""The median of samples, its confidence interval, and ties between measurements."""

from collections.abc import Iterable, Mapping
from itertools import accumulate
from math import comb
from statistics import median
from typing import NamedTuple, TypeVar

UNSURE = 0.1
"""The probability that an interval misses the true median is at most this."""

FEW, MARGIN = 5, 1.1
"""With fewer than FEW samples, even their whole range is too narrow: it is widened by MARGIN."""

_Measured = TypeVar("_Measured")


class Spread(NamedTuple):
    """The median, minimum and maximum of samples, and the interval of the true median."""

    level: float  # the median; of shards, the time of all of them together
    low: float
    high: float
    samples: int
    interval: tuple[float, float]

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """The spread of one or more samples. O(n log n).

        The interval is that of the sign test, which assumes no distribution: for 5 to 7 samples,
        from the smallest to the largest; for 8, from the second smallest to the second largest.

        >>> Spread.of([3.0, 1.0, 8.0, 4.0, 2.0])
        Spread(level=3.0, low=1.0, high=8.0, samples=5, interval=(1.0, 8.0))
        """
        ordered = sorted(values)
        cut = _left_out(len(ordered))
        return cls.between(median(ordered), ordered[cut], ordered[-1 - cut], len(ordered))._replace(
            low=ordered[0], high=ordered[-1]
        )

    @classmethod
    def between(cls, level: float, low: float, high: float, samples: int) -> "Spread":
        """The spread of samples that lie between two values.

        >>> Spread.between(22.0, 22.0, 30.0, 1).interval
        (20.0, 33.0)
        """
        margin = MARGIN if samples < FEW else 1.0
        return cls(level, low, high, samples, (low / margin, high * margin))

    def tied_with(self, other: "Spread") -> bool:
        """Whether the intervals overlap, so that the samples do not decide which is smaller.

        >>> a, b, c = (Spread.between(n, n - 1, n + 1, 5) for n in (10, 12, 13))
        >>> a.tied_with(b), a.tied_with(c)
        (True, False)
        """
        (low, high), (other_low, other_high) = self.interval, other.interval
        return low <= other_high and other_low <= high

    @property
    def scatter(self) -> float:
        """The ratio of the largest sample to the smallest."""
        return self.high / self.low if self.low > 0 else 1.0


def fastest(spreads: Mapping[_Measured, Spread]) -> list[_Measured]:
    """The key with the smallest median, followed by those that are tied with it.

    >>> fastest({"a": Spread.of([3, 4]), "b": Spread.of([2.9, 3.8]), "c": Spread.of([9])})
    ['b', 'a']
    """
    if not spreads:
        return []
    first = min(spreads, key=lambda measured: spreads[measured].level)
    ties = [
        measured
        for measured in spreads
        if measured != first and spreads[measured].tied_with(spreads[first])
    ]
    return [first, *ties]


def _left_out(samples: int) -> int:
    """The number of samples outside the interval, at each of its ends.

    The true median is below the k-th smallest of n samples with the probability that fewer than k
    of n coins show heads.

    >>> [_left_out(n) for n in (1, 5, 7, 8, 11, 13)]
    [0, 0, 0, 1, 2, 3]
    """
    ways = accumulate(comb(samples, heads) for heads in range(samples + 1))
    return max(sum(2 * fewer <= UNSURE * 2.0**samples for fewer in ways) - 1, 0)
