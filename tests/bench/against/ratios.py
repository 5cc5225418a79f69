"""From the turns of two sides to a ratio, an interval and a verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import comb
from statistics import median
from typing import NamedTuple

CONFIDENCE = 0.95
LEAST = 6  # turns of each side; with fewer, no interval has that confidence
ABSENT, NO_TIME = "absent", "no time was left"


class Interval(NamedTuple):
    """Where a median lies."""

    low: float
    middle: float
    high: float


def interval(ratios: Sequence[float]) -> Interval:
    """The median, and the order statistics that enclose that of all turns with 95 % confidence.

    It needs no assumption about how the ratios are distributed. With less than LEAST turns there
    are no such order statistics; then it reaches from the least to the greatest.
    """
    ordered, count = sorted(ratios), len(ratios)
    outside, place = 0.0, -1
    while 2 * (outside + comb(count, place + 1) / 2**count) <= 1 - CONFIDENCE:
        place += 1
        outside += comb(count, place) / 2**count
    place = max(place, 0)
    return Interval(ordered[place], median(ordered), ordered[-1 - place])


class Turns(NamedTuple):
    """CPU time of an operation, in seconds, in turns of two processes: there and here."""

    there: list[float]
    here: list[float]

    def ratios(self) -> list[float]:
        """New by old, of neighbouring turns."""
        return [new / old for old, new in zip(self.there, self.here, strict=True)]


@dataclass
class Result:
    """What was measured of a row at one size, by one or several pairs of processes."""

    name: str
    size: int
    unit: str
    pairs: list[Turns] = field(default_factory=list)
    there: str = ""  # why there is no figure of the other commit
    here: str = ""  # why there is none of this one

    @property
    def measured(self) -> bool:
        """Whether both sides were, each time."""
        return bool(self.pairs) and not (self.there or self.here)

    @property
    def ratio(self) -> Interval:
        """CPU time here by that there, of all turns.

        Processes differ by where their memory lies, so the interval has the median of each pair.
        """
        low, middle, high = interval([ratio for pair in self.pairs for ratio in pair.ratios()])
        middles = [median(pair.ratios()) for pair in self.pairs]
        return Interval(min(low, *middles), middle, max(high, *middles))

    @property
    def seconds(self) -> tuple[float, float]:
        """The median CPU time of an operation there and here, in seconds."""
        there = median(time for pair in self.pairs for time in pair.there)
        return there, median(time for pair in self.pairs for time in pair.here)

    @property
    def has_few_turns(self) -> bool:
        """Whether there were too few turns for a verdict."""
        return self.measured and sum(len(pair.here) for pair in self.pairs) < LEAST

    def is_slower(self, limit: float) -> bool:
        """Whether the whole interval lies beyond the limit."""
        return self.measured and not self.has_few_turns and self.ratio.low > limit

    def is_faster(self, limit: float) -> bool:
        """Whether the other commit lies beyond the limit."""
        return self.measured and not self.has_few_turns and self.ratio.high < 1 / limit

    def is_open(self, limit: float) -> bool:
        """Whether it seems slower, so that another pair of processes can change the verdict."""
        return self.measured and all(median(pair.ratios()) > limit for pair in self.pairs)

    def fails(self, limit: float) -> bool:
        """Whether the gate is closed: too slow, or no figure of this commit, or one that seems too
        slow and has too few turns to tell.
        """
        doubtful = self.has_few_turns and self.is_open(limit)
        return self.is_slower(limit) or doubtful or bool(self.here)
