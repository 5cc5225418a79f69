"""The cost of a timer for traffic that is described by a few numbers.

A reader knows how many timers start in a second, how long their timeouts are, which share is
cancelled and after how long, and the step of the caller's clock. The number pending follows, by
Little's law (1961): rate times the mean time for which a timer is pending; but a timer holds at
least as many as start in a step of the clock. The numbers of steps and calls follow, too: of n
random events in a second, at least one is in slots * (1 - exp(-n / slots)) of its slots. They are
multiplied with the seven constants of `compare.trial.bench.constants`, which are measured at a few
numbers of pending timers. A pair counts at the number of those that will be cancelled, which have
started last, and the others at the number of all. Between the numbers that were measured, the
logarithm of a constant is linear in that of the number. Above the largest it grows as in the last
interval, and below the smallest it stays.

A cost is stated with an interval that holds 9 of 10 replays: a factor above and below, which is
that of the fit, wider where nothing was measured. It is one factor for the whole cost, so that the
median is always inside.
"""

import math
from collections.abc import Mapping

from compare.trial.bench.callers import Costs
from compare.trial.bench.constants import Constants, Fit
from compare.trial.bench.steady import FEW, KEEPALIVE, ONE, PERIODIC, TIMEOUTS, Traffic

UNITS = 1_000
"""Units of time in a second."""

CORE = 1e9
"""Nanoseconds of a core in a second."""

BEYOND = 40
"""A timer is not offered for more pending timers than this many times the largest size."""

NEAR = 1.1
"""The same of a timer that was too slow at a larger size, and its own largest."""

FLOOR = 0.07
"""The least relative error of a stated cost: traffic is random, and replays differ by as much."""

NINE_OF_TEN = 1.645
"""Standard deviations on each side of the middle that hold 9 of 10 normal values."""

WIDER = 0.1
"""What is added to the relative error for each factor of e beyond the sizes that were measured."""

ROUGH = 0.6
"""The relative error of costs that were measured with one number of timers in a call: 10 of
21 settings were within a factor of 1.5 of a replay.
"""


def rates(traffic: Traffic) -> Constants:
    """How many of each the traffic has in a second."""
    rate, share, clock = traffic.rate, traffic.cancelled, UNITS / traffic.step
    ends, lost = rate * share, rate * (1 - share)
    again = traffic.kind in (KEEPALIVE, PERIODIC)  # what ends a timer starts it, too
    starts = lost if traffic.kind == KEEPALIVE else rate
    steps = _met(rate if again else rate + ends, clock)
    calls = _met(starts, clock) + _met(ends, clock)
    firing = steps if traffic.kind == PERIODIC else _firing(lost, steps, clock)
    return Constants(ends, lost, steps, calls, firing, _moments(traffic, lost), float(UNITS))


def _met(events: float, slots: float) -> float:
    """The slots of a second in which at least one of these random events is."""
    return slots * -math.expm1(-events / slots)


def _firing(lost: float, steps: float, clock: float) -> float:
    """The steps at which something has become due since the last one: gaps are geometric."""
    met, none = steps / clock, math.exp(-lost / clock)
    left_out = 1 - (1 - met) * none
    return steps * (1 - met * none / left_out) if left_out > 0 else 0.0


def _moments(traffic: Traffic, lost: float) -> float:
    """The units of time at which timers are due: those that start in a step have few timeouts."""
    most = _met(lost, float(UNITS))
    timeouts = {ONE: 1, KEEPALIVE: 1, FEW: len(TIMEOUTS)}.get(traffic.kind)
    if timeouts is None:
        return most
    return min(timeouts * _met(lost / timeouts, UNITS / traffic.step), most)


def rough(costs: Costs, paid: str = "step") -> Fit:
    """The constants that follow from pairs, fires and steps, which peers and event loops have in
    real time.

    `paid` names the constant of a step: "firing" where the clock is the caller's own and a step is
    a wake-up in which something fires, "unit" where the timer wakes up in each tick.
    """
    zeros = Constants(*(0.0,) * len(Constants._fields))
    return Fit(zeros._replace(**{"pair": costs.pair, "fire": costs.fire, paid: costs.step}), ROUGH)


def is_known(traffic: Traffic, fits: Mapping[int, Fit], largest: int) -> bool:
    """Whether a timer may be offered; `largest` is the largest size that was measured of any."""
    if not fits:
        return False
    own = max(fits)
    return traffic.held <= own * (BEYOND if own >= largest else NEAR)


def around(pending: float, fits: Mapping[int, Fit]) -> tuple[int, int]:
    """The sizes whose constants count with this number of pending timers; twice the only one."""
    sizes = sorted(fits)
    above = next((k for k in range(1, len(sizes)) if sizes[k] >= pending), len(sizes) - 1)
    return sizes[max(above - 1, 0)], sizes[above]


def at(pending: float, fits: Mapping[int, Fit]) -> Fit:
    """The constants and their relative error with this number of pending timers."""
    left, right = around(pending, fits)
    if left == right:
        return fits[left]
    share = max(math.log(max(pending, 1e-9) / left) / math.log(right / left), 0.0)
    parts = [
        _between(low, high, share, (pending - left) / (right - left))
        for low, high in zip(fits[left].constants, fits[right].constants, strict=True)
    ]
    outside = max(
        math.log(max(pending, 1e-9) / right), math.log(min(fits) / max(pending, 1.0)), 0.0
    )
    error = max(fits[left].error, fits[right].error) + WIDER * outside
    return Fit(Constants(*parts), error)


def _between(low: float, high: float, share: float, part: float) -> float:
    """A constant between two sizes, or beyond the larger.

    Where it is 0 at one of them, it is linear in the number of timers: `part` is the way to the
    larger size.
    """
    if low > 0.0 and high > 0.0:
        return float(low * (high / low) ** (share if share <= 1.0 or high > low else 1.0))
    if high > 0.0:
        return high * min(max(part, 0.0), 1.0)
    return low * max(1.0 - max(part, 0.0), 0.0)


def cost(traffic: Traffic, fits: Mapping[int, Fit]) -> tuple[float, float, float]:
    """Nanoseconds of CPU in a second of the traffic: the cost, and the interval around it."""
    found = at(traffic.held, fits)
    # The timers that are cancelled are those that have started last, and the others lie still.
    pair = at(traffic.answered, fits).constants.pair
    of_each = zip(found.constants._replace(pair=pair), rates(traffic), strict=True)
    middle = sum(constant * rate for constant, rate in of_each)
    factor = math.exp(NINE_OF_TEN * math.hypot(found.error, FLOOR))
    return middle, middle / factor, middle * factor


def by_round(traffic: Traffic, fits: Mapping[int, Fit]) -> list[float]:
    """The cost by the constants of each round of samples alone; of all if there are no rounds."""
    near = {
        size: fits[size]
        for pending in (traffic.held, traffic.answered)
        for size in around(pending, fits)
    }
    return [
        cost(traffic, {size: Fit(fit.rounds[k], fit.error) for size, fit in near.items()})[0]
        for k in range(min(len(fit.rounds) for fit in near.values()))
    ] or [cost(traffic, fits)[0]]
