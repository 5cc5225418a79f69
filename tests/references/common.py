"""What all references have in common: timers as objects, places as lists, counters by name."""

from collections.abc import Mapping
from typing import Any

from timers.kernels.counters import COUNTERS

WALK = 2_000
"""Units or ticks that a wheel's clock walks one by one, as the originals do; further than that it
jumps from one moment at which something can happen to the next."""


class Armed:
    """One pending timer: what its owner keeps in order to cancel or re-arm it."""

    def __init__(self, deadline: int) -> None:
        self.deadline = deadline

    def __repr__(self) -> str:
        return f"Armed({self.__dict__})"


Fired = tuple[Armed, int]
"""A timer, and the moment at which it fired."""


class Reference:
    """A timer in plain objects. `arm`, `run` and `filed` are the scheme's own.

    `due` holds the timers that are delivered by the next advance; what was overdue when it was
    armed goes there. That list is ours: Netty and Linux keep such a timer in the slot that comes
    next, Kafka runs it at once.
    """

    def __init__(self, parameters: Mapping[str, int], start: int) -> None:
        self.now = start
        self.due: list[Armed] = []
        self.fired: list[Fired] = []
        self.counters = dict.fromkeys(COUNTERS, 0)

    def schedule(self, deadline: int) -> Armed:
        timer = Armed(deadline)
        self.arm(timer)
        return timer

    def cancel(self, timer: Armed) -> None:
        """Take a pending timer out of the list that it is in, by identity."""
        del timer.within[next(k for k, other in enumerate(timer.within) if other is timer)]

    def reschedule(self, timer: Armed, deadline: int) -> None:
        self.cancel(timer)
        timer.deadline = deadline
        self.arm(timer)

    def advance(self, now: int) -> list[Fired]:
        """Move the clock; what fired, in order."""
        self.fired = []
        self.run(now)
        self.now = now
        return self.fired

    def has_due(self) -> bool:
        """Whether an advance to the same moment delivers something."""
        return bool(self.due)

    def deliver(self, timers: list[Armed]) -> None:
        """Fire all timers of a list now, and empty it."""
        self.fired += [(timer, self.now) for timer in timers]
        self.count("timers_touched", len(timers))
        timers.clear()

    def insert_from_the_rear(self, timer: Armed) -> None:
        """Put a timer into its list, which is sorted by deadline, behind those of its deadline."""
        k = len(timer.within)
        while k > 0:
            self.count("comparisons")
            if timer.within[k - 1].deadline <= timer.deadline:
                break
            k -= 1
        timer.within.insert(k, timer)

    def count(self, counter: str, by: int = 1) -> None:
        self.counters[counter] += by

    def arm(self, timer: Armed) -> None:
        raise NotImplementedError

    def run(self, until: int) -> None:
        """Move the clock to `until` and deliver all that is due by then."""
        raise NotImplementedError

    def place(self, timer: Armed) -> dict[str, Any]:
        """Where the structure holds a pending timer, in the form of the kernels' `locate`."""
        return {"bucket": "due"} if timer.within is self.due else self.filed(timer)

    def filed(self, timer: Armed) -> dict[str, Any]:
        """The place of a timer that is not in `due`."""
        raise NotImplementedError
