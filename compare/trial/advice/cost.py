"""The cost of a timer for traffic that is described by a few numbers.

A reader knows how many timers start in a second, how long their timeouts are, which share is
cancelled, and after how long. The number pending follows, by Little's law (1961): rate times the
mean time for which a timer is pending.

In a second, a caller pays for a start and a cancel of each timer that is cancelled, for a start and
an expiry of each of the others, and for the steps of its clock. A service or event loop moves its
clock only when it wakes up, because something fires. These three were measured against the number
of pending timers (`compare.trial.bench.callers`). Between the numbers, the logarithm of a cost is
interpolated.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from compare.trial.bench.callers import Costs

STEPS = 1_000
"""Units of the clock in a second: it moves to each in which something happens."""

CORE = 1e9
"""Nanoseconds of a core in a second."""

BEYOND = 1.1
"""A timer is not offered for more pending timers than this many times its largest size."""


@dataclass(frozen=True)
class Setting:
    """Traffic in a few numbers. Times are means, in milliseconds."""

    rate: float  #: timers started per second
    timeout: float
    cancelled: float  #: the share of the timers that is cancelled before the timeout
    answer: float  #: from the start of a timer to its cancellation

    @property
    def pending(self) -> float:
        """The mean number of pending timers."""
        time = self.cancelled * self.answer + (1 - self.cancelled) * self.timeout
        return self.rate * time / 1_000

    @property
    def steps(self) -> float:
        """The steps of the clock in a second: each timer has a start and an end, at random."""
        return _met(2 * self.rate)

    @property
    def wakeups(self) -> float:
        """The steps in a second in which a timer fires."""
        return _met(self.rate * (1 - self.cancelled))


def _met(events: float) -> float:
    """The units of the clock in a second in which at least one of these random events is."""
    return STEPS * -math.expm1(-events / STEPS)


def at(pending: float, costs: Mapping[int, Costs]) -> Costs:
    """The costs with this number of pending timers, from those at two or more sizes.

    Below the smallest size, only the cost of a step shrinks further; above the largest, none grows.
    """
    sizes = sorted(costs)
    above = next((k for k in range(1, len(sizes)) if sizes[k] >= pending), len(sizes) - 1)
    left, right = sizes[above - 1], sizes[above]
    share = math.log(min(max(pending, 1.0), right) / left) / math.log(right / left)
    parts = []
    for name, low, high in zip(Costs._fields, costs[left], costs[right], strict=True):
        exponent = share if name == "step" else max(share, 0.0)
        parts.append(low * (high / low) ** exponent if low > 0 and high > 0 else max(low, high))
    return Costs(*parts)


def cost(setting: Setting, costs: Mapping[int, Costs], *, own_clock: bool = False) -> float:
    """Nanoseconds of CPU in a second of the traffic; with `own_clock`, for one of OWN_CLOCK."""
    cancels = setting.rate * setting.cancelled
    steps = setting.wakeups if own_clock else setting.steps
    return spent(at(setting.pending, costs), Costs(cancels, setting.rate - cancels, steps))


def spent(costs: Costs, rates: Costs) -> float:
    """Nanoseconds of CPU in a second with this rate of each."""
    return sum(cost * rate for cost, rate in zip(costs, rates, strict=True))


def highest_rate(setting: Setting, costs: Mapping[int, Costs]) -> float:
    """The rate at which a caller with one core can do nothing else, as for the setting's timers."""
    return setting.rate * CORE / cost(setting, costs)
