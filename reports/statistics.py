"""The median and the spread of samples, and which of several measurements are tied."""

from collections.abc import Iterable, Mapping
from statistics import median
from typing import NamedTuple, TypeVar

LARGEST_TIE = 1.25
"""Medians that differ by a greater factor are never tied: with so much noise they are only
uncertain.
"""

_Measured = TypeVar("_Measured")


class Spread(NamedTuple):
    """The median, least and greatest of some samples."""

    median: float
    low: float
    high: float
    samples: int

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """Of one or more samples.

        >>> Spread.of([3.0, 1.0, 8.0])
        Spread(median=3.0, low=1.0, high=8.0, samples=3)
        """
        ordered = sorted(values)
        return cls(median(ordered), ordered[0], ordered[-1], len(ordered))

    def tied_with(self, other: "Spread") -> bool:
        """Whether the two are about the same: the median of one lies within the other's samples.

        Medians that differ by more than LARGEST_TIE are not tied, however much the samples scatter.

        >>> Spread(10.0, 9.0, 12.0, 5).tied_with(Spread(11.5, 11.0, 13.0, 5))
        True
        >>> Spread(10.0, 9.0, 99.0, 5).tied_with(Spread(50.0, 50.0, 50.0, 5))
        False
        """
        if max(self.median, other.median) > LARGEST_TIE * min(self.median, other.median):
            return False
        return self.low <= other.median <= self.high or other.low <= self.median <= other.high

    @property
    def scatter(self) -> float:
        """The greatest sample over the least."""
        return self.high / self.low if self.low > 0 else 1.0


def fastest(spreads: Mapping[_Measured, Spread]) -> list[_Measured]:
    """The one with the least median, followed by those that are tied with it.

    >>> fastest({"a": Spread.of([3, 4]), "b": Spread.of([2.9, 3.8]), "c": Spread.of([9])})
    ['b', 'a']
    """
    if not spreads:
        return []
    first = min(spreads, key=lambda who: spreads[who].median)
    ties = [who for who in spreads if who != first and spreads[who].tied_with(spreads[first])]
    return [first, *ties]
