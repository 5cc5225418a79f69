"""Choose one of several timers by one rule, which `advise` and the page share.

Differences in time that are noise, or that hardly cost anything, decide nothing. Of the candidates
within the noise of the cheapest, or within ENOUGH of a core of it, the rule prefers

1. what the program has already: the timers of its host, such as asyncio's heap;
2. those that fire exactly at the deadline;
3. those that take at most NEAR times the memory of the smallest;
4. those with default parameters;
5. the USUAL one;
6. the cheapest.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

ENOUGH = 0.01
"""The share of a core below which a difference in CPU time does not decide."""

MODELLED = 0.005
"""The same where the cost is of a model, which may be wrong by as much again. A host is kept within
ENOUGH all the same: to leave it is work.
"""

NEAR = 1.1
"""Two sizes of memory within this factor are equal, and so are two costs on a Pareto front."""


WORSE = 1.15
"""A timer is right if it takes at most this many times as long as the cheapest, or ENOUGH more."""

MOSTLY = 0.75
"""The share of the rounds in which the chosen timer is right, at least; else nothing is decided."""

USUAL = "delay-queue"
"""The usual choice without wheels. Its cost grows slowly, whatever the traffic becomes."""


class Offer(NamedTuple):
    """What a timer costs and what it is."""

    cost: float  # CPU time, in any unit that all offers share
    low: float  # the noise: the true cost is from low to high
    high: float
    exact: bool  # fires each timer at its deadline
    nbytes: int
    default: bool  # has the default parameters
    usual: bool  # is of the USUAL scheme
    host: bool = False  # what the program has, if it changes nothing


@dataclass(frozen=True)
class Choice:
    """The chosen offer, and how it was chosen."""

    number: int  #: the index of the chosen offer
    cheapest: int  #: the index of the cheapest
    near: int  #: offers that are about as cheap, the cheapest included
    reasons: tuple[str, ...]  #: what decided among those, in order; empty if nothing but the cost

    @property
    def text(self) -> str:
        """The reasons in words; empty if nothing but the cost decided."""
        if not self.reasons:
            return ""
        why = " and ".join(self.reasons)
        return f"of {self.near} candidates about as cheap as the cheapest, it {why}"


_PREFERENCES: Mapping[str, Callable[[Offer, Sequence[Offer]], bool]] = {
    "is what the program has": lambda offer, near: offer.host,
    "is exact": lambda offer, near: offer.exact,
    "takes the least memory": lambda offer, near: (
        offer.nbytes <= NEAR * min(other.nbytes for other in near)
    ),
    "has default parameters": lambda offer, near: offer.default,
    "is the usual choice": lambda offer, near: offer.usual,
}
"""Reason -> whether it speaks for an offer among others; in order."""


def choose(offers: Sequence[Offer], core: float | None = None, enough: float = ENOUGH) -> Choice:
    """Choose one of the offers; `core` is the CPU time of a whole core in the unit of the costs.

    Without it, only the noise makes offers equal. Raises ValueError without an offer.
    """
    numbers = range(len(offers))
    cheapest = min(numbers, key=lambda number: offers[number].cost)
    noise, least = offers[cheapest].high, offers[cheapest].cost

    def is_near(offer: Offer) -> bool:
        share = ENOUGH if offer.host else enough
        return offer.low <= noise or offer.cost - least <= share * (core or 0.0)

    left = [number for number in numbers if is_near(offers[number])]
    near, reasons = len(left), []
    for reason, speaks_for in _PREFERENCES.items():
        among = [offers[number] for number in left]
        preferred = [number for number in left if speaks_for(offers[number], among)]
        if preferred and len(preferred) < len(left):
            left = preferred
            if cheapest not in left:
                reasons.append(reason)
    number = min(left, key=lambda number: offers[number].cost)
    return Choice(number, cheapest, near, tuple(reasons))


def is_decided(
    rounds: Sequence[Sequence[float]],
    chosen: int,
    core: float | None = None,
    enough: float = ENOUGH,
) -> bool:
    """Whether the chosen timer was right in MOSTLY all rounds.

    A round has the cost of each offer, measured in turns. What one round finds right and another
    wrong is noise: the machine is too busy, or the timers were measured for too short a time.

    >>> is_decided([[10.0, 11.0], [11.0, 10.0]], chosen=0)
    True
    >>> is_decided([[10.0, 11.0], [14.0, 10.0]], chosen=0)
    False
    """

    def is_right(costs: Sequence[float]) -> bool:
        more, least = costs[chosen], min(costs)
        return more <= WORSE * least or more - least <= enough * (core or 0.0)

    return sum(map(is_right, rounds)) >= MOSTLY * len(rounds)
