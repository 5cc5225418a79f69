"""Advice for traffic that is described by a few numbers instead of a trace.

The constants of every timer are measured for the caller, with a number of timers pending below and
above that of the traffic; see `compare.trial.advice.model`. The rule is that of
`compare.trial.advice.choice`.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from compare.trial.advice.choice import MODELLED, USUAL, Choice, Offer, choose
from compare.trial.advice.model import CORE, cost, is_known
from compare.trial.bench.constants import Fit, fits, sizes_of
from compare.trial.bench.costs import rivals
from compare.trial.bench.replays import HOSTS, REPLAYS
from compare.trial.bench.steady import Traffic
from compare.trial.bench.work import UNIT
from compare.trial.replay.contestant import Contestant, contestant
from timers.registry import names

CALLERS = tuple(REPLAYS)
"""The ways of calling a timer."""

SAMPLES = 2


class Cost(NamedTuple):
    """What a timer costs, in shares of a core, and the interval that holds 9 of 10 replays."""

    label: str
    share: float
    low: float
    high: float
    nbytes: int  #: 0 for a host
    lateness: tuple[int, int]


@dataclass(frozen=True)
class Described:
    """The advice: the costs in ascending order, and the choice among them."""

    caller: str
    traffic: Traffic
    costs: list[Cost]
    choice: Choice
    largest: int  #: the most timers pending that were measured

    @property
    def best(self) -> Cost:
        """The timer to use."""
        return self.costs[self.choice.number]


def bracket(caller: str, pending: float) -> list[int]:
    """The sizes at which to measure: those around the number pending, or the last two."""
    sizes = sizes_of(caller)
    above = next((k for k, size in enumerate(sizes) if size >= pending), len(sizes) - 1)
    return list(sizes[max(above - 1, 0) : max(above, 1) + 1])


def precise(caller: str, max_early: int, max_late: int) -> dict[str, Contestant | None]:
    """The timers that are precise enough, by label, with None for a host; bounds in ms."""
    timers = []
    for each in map(contestant, names()):
        early, late = each.rounding(UNIT).bounds()
        if -early <= max_early and late <= max_late:
            timers.append(each)
    return rivals(caller, timers)


def described(
    caller: str,
    traffic: Traffic,
    *,
    max_early: int = 0,
    max_late: int = 0,
    progress: Callable[[str], object] = lambda step: None,
) -> Described | None:
    """Measure and choose; None if no timer is known with so many pending."""
    everyone, sizes = precise(caller, max_early, max_late), bracket(caller, traffic.pending)
    known = defaultdict[str, dict[int, Fit]](dict)
    left: Mapping[str, Contestant | None] = everyone
    for size in sizes:
        progress(f"measuring {len(left)} timers with {size:,} pending")
        for (_, label), fit in fits({caller: left}, size, traffic.kind, SAMPLES).items():
            known[label][size] = fit
        left = {label: each for label, each in left.items() if size in known[label]}
    costs = [
        _cost(label, everyone[label], traffic, each)
        for label, each in known.items()
        if is_known(traffic, each, sizes[-1])
    ]
    if not costs:
        return None
    costs.sort(key=lambda each: each.share)
    offers = [
        Offer(
            each.share,
            low=each.share,
            high=each.share,
            exact=each.lateness == (0, 0),
            nbytes=each.nbytes,
            default=True,
            usual=each.label == USUAL,
            host=each.label in HOSTS.get(caller, ()),
        )
        for each in costs
    ]
    return Described(caller, traffic, costs, choose(offers, 1.0, MODELLED), sizes[-1])


def _cost(label: str, each: Contestant | None, traffic: Traffic, known: Mapping[int, Fit]) -> Cost:
    share, low, high = (ns / CORE for ns in cost(traffic, known))
    if each is None:
        return Cost(label, share, low, high, 0, (0, 0))
    nbytes = int(each.new(UNIT, 0, max(round(traffic.pending), 1)).nbytes)
    return Cost(label, share, low, high, nbytes, each.rounding(UNIT).bounds())
