"""Advice for traffic that is described by a few numbers instead of a trace.

The constants of every timer are measured for the caller, with a number of timers pending below and
above that of the traffic; see `compare.trial.advice.model`. The rule is that of
`compare.trial.advice.choice`.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from compare.traffic.tapes.trace import Trace
from compare.traffic.tapes.units import EXPONENTS
from compare.trial.advice.choice import (
    ENOUGH,
    MODELLED,
    USUAL,
    WORSE,
    Choice,
    Offer,
    choose,
    is_decided,
)
from compare.trial.advice.model import CORE, by_round, cost, is_known
from compare.trial.bench.constants import Fit, fits, sizes_of
from compare.trial.bench.costs import rivals
from compare.trial.bench.replays import HOSTS, REPLAYS
from compare.trial.bench.steady import Traffic
from compare.trial.bench.work import UNIT
from compare.trial.replay.contestant import Contestant, contestant
from timers.registry import names

CALLERS = tuple(REPLAYS)
"""The ways of calling a timer."""

SAMPLES, MOST_SAMPLES = 2, 8
"""The samples of each replay, and how many there are at most where the noise would decide."""


class Cost(NamedTuple):
    """What a timer costs, in shares of a core, and the interval that holds 9 of 10 replays."""

    label: str
    share: float
    low: float
    high: float
    rounds: Sequence[float]  #: the cost by each round of samples alone
    nbytes: int  #: 0 for a host
    lateness: tuple[int, int]

    @property
    def noise(self) -> tuple[float, float]:
        """The least and the greatest cost of a round; the interval if there are not several."""
        if len(self.rounds) > 1:
            return min(self.rounds), max(self.rounds)
        return self.low, self.high


@dataclass(frozen=True)
class Described:
    """The advice: the costs in ascending order, and the choice among them."""

    caller: str
    traffic: Traffic
    costs: list[Cost]
    largest: int  #: the most timers pending that were measured

    @cached_property
    def choice(self) -> Choice:
        """The choice among the costs."""
        own = HOSTS.get(self.caller, ())
        offers = [
            Offer(
                each.share,
                low=each.noise[0],
                high=each.noise[1],
                exact=each.lateness == (0, 0),
                nbytes=each.nbytes,
                default=True,
                usual=each.label == USUAL,
                host=each.label in own,
            )
            for each in self.costs
        ]
        return choose(offers, 1.0, MODELLED)

    @property
    def best(self) -> Cost:
        """The timer to use."""
        return self.costs[self.choice.number]

    @property
    def near(self) -> list[Cost]:
        """The timer to use, and those that were cheaper in some round, or nearly."""
        return [
            each
            for each in self.costs
            if each is self.best
            or any(WORSE * a > b for a, b in zip(self.best.rounds, each.rounds, strict=False))
        ]

    @property
    def decided(self) -> bool:
        """Whether not only the noise decides."""
        rounds = [*zip(*(each.rounds for each in self.near), strict=False)]
        enough = ENOUGH if self.best.label in HOSTS.get(self.caller, ()) else MODELLED
        return is_decided(rounds, self.near.index(self.best), 1.0, enough)


def bracket(caller: str, traffic: Traffic) -> list[int]:
    """The sizes at which to measure: those around the numbers of timers that decide the cost."""
    sizes, found = sizes_of(caller), set[int]()
    for pending in (traffic.held, traffic.answered or traffic.held):
        above = next((k for k, size in enumerate(sizes) if size >= pending), len(sizes) - 1)
        found.update(sizes[max(above - 1, 0) : max(above, 1) + 1])
    return sorted(found)


def precise(caller: str, max_early: int, max_late: int) -> dict[str, Contestant | None]:
    """The timers that are precise enough, by label, with None for a host; bounds in ms."""
    timers = []
    for each in map(contestant, names()):
        early, late = each.rounding(UNIT).bounds()
        if -early <= max_early and late <= max_late:
            timers.append(each)
    return rivals(caller, timers)


def traffic_in(trace: Trace) -> Traffic | None:
    """The traffic of a trace in a few numbers; None if its time is not in seconds.

    As many timers are pending in it as in the trace.
    """
    about, span = trace.description, trace.span
    if trace.unit not in EXPONENTS or not span or not about.armed:
        return None
    ms = 10 ** EXPONENTS[trace.unit] / 1_000  # units
    share = about.answered / about.armed
    timeout = max(about.delay["p50"] / ms, 1.0)
    answered = about.waited / about.armed / ms - (1 - share) * timeout
    answer = min(max(answered / share, 0.0), timeout) if share else 0.0
    return Traffic(1_000 * ms * about.armed / span, timeout, share, answer)


def advice_of(
    caller: str,
    traffic: Traffic,
    known: Mapping[str, Mapping[int, Fit]],
    everyone: Mapping[str, Contestant | None],
    largest: int,
) -> Described | None:
    """Choose by stored constants; None if they do not cover so many pending timers."""
    costs = [
        _cost(label, everyone[label], traffic, each)
        for label, each in known.items()
        if label in everyone and is_known(traffic, each, largest)
    ]
    costs.sort(key=lambda each: each.share)
    return Described(caller, traffic, costs, largest) if costs else None


def described(
    caller: str,
    traffic: Traffic,
    *,
    max_early: int = 0,
    max_late: int = 0,
    progress: Callable[[str], object] = lambda step: None,
) -> Described | None:
    """Measure and choose; None if no timer could be measured with so many pending.

    Where noise would decide, the timers that matter are measured again, with more samples.
    """
    everyone, sizes = precise(caller, max_early, max_late), bracket(caller, traffic)
    known = defaultdict[str, dict[int, Fit]](dict)
    left, samples = everyone, SAMPLES
    while True:
        for size in sizes:
            progress(f"measuring {len(left)} timers with {size:,} pending")
            for (_, label), fit in fits(
                {caller: left}, size, traffic.kind, samples, more=1
            ).items():
                known[label][size] = fit
            left = {label: each for label, each in left.items() if size in known[label]}
        advice = advice_of(caller, traffic, known, everyone, sizes[-1])
        if advice is None:
            return None
        if advice.decided or samples >= MOST_SAMPLES:
            return advice
        samples *= 2
        left = {each.label: everyone[each.label] for each in advice.near}


def _cost(label: str, each: Contestant | None, traffic: Traffic, known: Mapping[int, Fit]) -> Cost:
    share, low, high = (ns / CORE for ns in cost(traffic, known))
    rounds = [ns / CORE for ns in by_round(traffic, known)]
    if each is None:
        return Cost(label, share, low, high, rounds, 0, (0, 0))
    nbytes = int(each.new(UNIT, 0, max(round(traffic.pending), 1)).nbytes)
    return Cost(label, share, low, high, rounds, nbytes, each.rounding(UNIT).bounds())
