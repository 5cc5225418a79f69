"""Estimates from samples, their statistics, and ties between measurements."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import comb
from statistics import median
from typing import NamedTuple, TypeVar

from compare.base import quantiles

UNSURE = 0.1
"""The probability that an interval misses the true median is at most this."""

FEW, MARGIN = 5, 1.1
"""With fewer than FEW samples, even their whole range is too narrow: it is widened by MARGIN."""

_Measured = TypeVar("_Measured")


@dataclass(frozen=True)
class Estimate:
    """The median of samples, the interval in which the true median lies, and the samples."""

    value: float  #: the median; of shards, the value of all of them together
    low: float
    high: float
    n: int  #: number of samples
    samples: tuple[float, ...]  #: ascending

    @classmethod
    def of(cls, values: Iterable[float], whole: float | None = None) -> "Estimate":
        """Estimate from one or more samples. O(n log n).

        The interval is that of the sign test, which assumes no distribution: for 5 to 7 samples,
        from the smallest to the largest; for 8, from the second smallest to the second largest.
        With `whole`, the value of all samples together, it has all of them.

        >>> estimate = Estimate.of([3.0, 1.0, 8.0, 4.0, 2.0])
        >>> estimate.value, estimate.low, estimate.high, estimate.n
        (3.0, 1.0, 8.0, 5)
        >>> estimate = Estimate.of([22.0, 30.0], 25.0)
        >>> estimate.value, estimate.low, estimate.high
        (25.0, 20.0, 33.0)
        """
        ordered = tuple(sorted(values))
        cut = _left_out(len(ordered)) if whole is None else 0
        margin = MARGIN if len(ordered) < FEW else 1.0
        low, high = ordered[cut] / margin, ordered[-1 - cut] * margin
        value = median(ordered) if whole is None else whole
        return cls(value, low, high, len(ordered), ordered)

    def __mul__(self, factor: float) -> "Estimate":
        """The estimate in another unit."""
        samples = tuple(factor * sample for sample in self.samples)
        return Estimate(self.value * factor, self.low * factor, self.high * factor, self.n, samples)

    @property
    def least(self) -> float:
        """The smallest sample."""
        return self.samples[0]

    @property
    def greatest(self) -> float:
        """The largest sample."""
        return self.samples[-1]

    def quantile(self, share: float) -> float:
        """The smallest sample that this share of the samples does not exceed.

        >>> Estimate.of([1.0, 2.0, 3.0, 4.0]).quantile(0.5)
        2.0
        """
        return self.samples[max(math.ceil(share * self.n), 1) - 1]

    def tied_with(self, other: "Estimate") -> bool:
        """Whether the intervals overlap, so that the samples do not decide which is smaller.

        >>> a, b, c = (Estimate.of([n - 1, n, n, n, n + 1]) for n in (10, 12, 13))
        >>> a.tied_with(b), a.tied_with(c)
        (True, False)
        """
        return self.low <= other.high and other.low <= self.high

    @property
    def scatter(self) -> float:
        """The ratio of the largest sample to the smallest."""
        return self.greatest / self.least if self.least > 0 else 1.0


class Statistic(NamedTuple):
    """A number that is computed from an estimate."""

    title: str
    value: Callable[[Estimate], float]
    ends: Callable[[Estimate], tuple[float, float]] | None = None  # shown beside the value


RATIO = "ratio"
"""The name of the statistic that needs a second estimate: the ratio to it."""

_STATISTICS = {
    "median": Statistic("median", lambda estimate: estimate.value),
    "least": Statistic("least", lambda estimate: estimate.least),
    "greatest": Statistic("greatest", lambda estimate: estimate.greatest),
    # the median, with the range of the samples or its interval
    "range": Statistic(
        "", lambda estimate: estimate.value, lambda estimate: (estimate.least, estimate.greatest)
    ),
    "interval": Statistic(
        "", lambda estimate: estimate.value, lambda estimate: (estimate.low, estimate.high)
    ),
}


def statistic(name: str) -> Statistic:
    """Return a statistic of `compare.trial.results.metrics.Metric`, such as "median" or "p90".

    Others than those above are quantiles.

    >>> statistic("p90").value(Estimate.of(range(1, 21)))
    18
    """
    if name in _STATISTICS:
        return _STATISTICS[name]
    share = quantiles.QUANTILES[name]
    return Statistic(quantiles.title(name), lambda estimate: estimate.quantile(share))


def fastest(estimates: Mapping[_Measured, Estimate]) -> list[_Measured]:
    """The key with the smallest median, followed by those that are tied with it.

    >>> fastest({"a": Estimate.of([3, 4]), "b": Estimate.of([2.9, 3.8]), "c": Estimate.of([9])})
    ['b', 'a']
    """
    if not estimates:
        return []
    first = min(estimates, key=lambda measured: estimates[measured].value)
    ties = [
        measured
        for measured in estimates
        if measured != first and estimates[measured].tied_with(estimates[first])
    ]
    return [first, *ties]


def _left_out(samples: int) -> int:
    """The number of samples outside the interval, at each of its ends.

    The true median is below the k-th smallest of n samples with the probability that fewer than k
    of n coins show heads.

    >>> [_left_out(n) for n in (1, 5, 7, 8, 11, 13, 2000)]
    [0, 0, 0, 1, 2, 3, 962]
    """
    ways = accumulate(comb(samples, heads) for heads in range(samples + 1))
    # Of integers, because a float ends at 2**1024.
    return max(sum(2 * fewer / (1 << samples) <= UNSURE for fewer in ways) - 1, 0)
