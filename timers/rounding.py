"""Roundings: closed forms of the moment at which a timer fires.

They depend on the deadline and on the clock when the timer was last armed. The traits of a scheme
map its parameters to a rounding, which the model, the compiled oracle, the tables and the tests
use. The SQL oracle states the closed forms independently.

>>> kafka = Rounding("down", 200)
>>> kafka.due_at(399, 0), kafka.due_at(399, 250), kafka.bounds()
(200, 250, (-199, 0))
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np

from timers.arrays import Int64s
from timers.errors import ParameterError, RoundingError
from timers.limits import LIMIT

Direction = Literal["exact", "down", "up", "levels"]

LEVEL_TICKS = tuple(8**level for level in range(9))
"""The ticks of "levels" in units."""
LEVEL_REACHES = tuple(63 * tick for tick in LEVEL_TICKS)
"""Delays from which on the next level is used; from the last on, the delay counts as LATEST."""
LATEST = 62 * LEVEL_TICKS[-1]
SHARE = "8/63"
"""The largest lateness of "levels", as a share of the delay, unless that is below a unit."""

UNKNOWN_BOUNDS = (-LIMIT, LIMIT)
"""The bounds of a closed form that declares none."""


@dataclass(frozen=True)
class Rounding:
    """The rounding of deadlines to ticks of `tick` units.

    "exact" fires at the deadline. "down" fires at the start of the deadline's tick (Kafka's
    TimingWheel.add files by `expiration / tickMs` and expires the bucket at its start). "up" fires
    when the deadline's tick has passed (Netty's HashedWheelTimer.Worker), so never at the deadline
    itself. "levels" does the same with a tick that grows with the delay: 1 unit for delays below
    63, 8 below 504, and so on up to 8**8 (calc_wheel_index in Linux's kernel/time/timer.c). It is
    late by at most a unit or 8/63 of the delay. Delays of 63 * 8**8 units and more are cut to
    62 * 8**8, so these timers are early. A timer never fires before it was armed: if it is overdue
    then, it fires at once.

    Roundings that fire alike are equal: rounding down to ticks of one unit is "exact". Raises
    ParameterError for any other direction, or a tick outside [1, 2**63 - 1].
    """

    direction: Direction = "exact"
    tick: int = 1

    def __post_init__(self) -> None:
        if self.direction not in ("exact", "down", "up", "levels"):
            raise ParameterError(f"direction {self.direction!r} is not exact, down, up or levels")
        if not 1 <= self.tick <= LIMIT:
            raise ParameterError(f"tick {self.tick} is outside [1, 2**63 - 1]")
        if self.direction == "exact" or (self.direction == "down" and self.tick == 1):
            object.__setattr__(self, "direction", "exact")
            object.__setattr__(self, "tick", 1)

    @overload
    def due_at(self, deadline: int, armed_at: int) -> int: ...
    @overload
    def due_at(self, deadline: Int64s, armed_at: Int64s) -> Int64s: ...
    def due_at(self, deadline: Any, armed_at: Any) -> Any:
        """The moment at which a timer fires, for ints or for int64 arrays of the same shape.

        The calculation stays in [0, 2**63 - 1]: the last tick ends at the last moment.
        """
        arrays = isinstance(deadline, np.ndarray)
        latest, earliest = (np.maximum, np.minimum) if arrays else (max, min)
        if self.direction == "exact":
            return latest(deadline, armed_at)
        overdue, tick = deadline <= armed_at, self.tick
        if self.direction == "levels":
            deadline, tick = _on_level(deadline, deadline - armed_at)
        start = deadline - deadline % tick
        if self.direction == "down":
            return latest(start, armed_at)
        end = earliest(start, LIMIT - tick) + tick
        if arrays:
            return np.where(overdue, armed_at, end)
        return armed_at if overdue else end

    def bounds(self, longest: int = LEVEL_REACHES[-1] - 1) -> tuple[int, int]:
        """The least and greatest lateness, `fired_at - max(deadline, armed_at)`, in units.

        They hold for delays up to `longest`: by default, those that "levels" does not cut.
        """
        match self.direction:
            case "exact":
                return 0, 0
            case "down":
                return 1 - self.tick, 0
            case "up":
                return 0, self.tick
            case "levels":
                least = LATEST + 1 - longest if longest >= LEVEL_REACHES[-1] else 0
                return least, LEVEL_TICKS[_level_of(longest)]

    @property
    def at_once(self) -> int:
        """The longest delay of a timer that may be due when it is armed."""
        return self.tick - 1 if self.direction == "down" else 0

    @property
    def exact(self) -> bool:
        """Whether every timer fires exactly at its deadline, or at once if that has passed."""
        return self.direction == "exact"

    def __str__(self) -> str:
        match self.direction:
            case "exact":
                return "at the deadline"
            case "down":
                return "at the start of the deadline's tick"
            case "up":
                return "at the end of the deadline's tick"
            case "levels":
                return f"at the end of the deadline's tick, which is at most {SHARE} of the delay"


def _level_of(delay: int) -> int:
    """The level of a delay, from 0."""
    return min(bisect_right(LEVEL_REACHES, delay), len(LEVEL_TICKS) - 1)


def _on_level(deadline: Any, delay: Any) -> Any:
    """The deadline, or that of the longest delay; and the tick of its level."""
    if not isinstance(deadline, np.ndarray):
        return deadline - (delay - LATEST if delay >= LEVEL_REACHES[-1] else 0), LEVEL_TICKS[
            _level_of(delay)
        ]
    cut = np.where(delay >= LEVEL_REACHES[-1], delay - LATEST, 0)
    levels = np.searchsorted(LEVEL_REACHES[:-1], delay, "right")
    return deadline - cut, np.array(LEVEL_TICKS)[levels]


@dataclass(frozen=True)
class OwnRounding:
    """The closed form of a timer from outside this package.

    `function(deadline, armed_at)` takes two ints and returns the moment. `least` and `greatest` are
    the bounds of `fired_at - max(deadline, armed_at)`; by default, the timer may be early or late
    by any amount.

    >>> halves = OwnRounding(lambda deadline, armed_at: max(deadline // 2, armed_at))
    >>> halves.due_at(10, 0), halves.exact, halves.bounds() == UNKNOWN_BOUNDS
    (5, False, True)
    """

    function: Callable[[int, int], int]
    least: int = UNKNOWN_BOUNDS[0]
    greatest: int = UNKNOWN_BOUNDS[1]

    @overload
    def due_at(self, deadline: int, armed_at: int) -> int: ...
    @overload
    def due_at(self, deadline: Int64s, armed_at: Int64s) -> Int64s: ...
    def due_at(self, deadline: Any, armed_at: Any) -> Any:
        """The moment at which a timer fires, for ints or for int64 arrays (one call per element).

        Raises RoundingError if the function does not return an int in [`armed_at`, 2**63 - 1].
        """
        if isinstance(deadline, np.ndarray):
            pairs = zip(deadline.tolist(), armed_at.tolist(), strict=True)
            return np.array([self.due_at(*pair) for pair in pairs], np.int64)
        moment = self.function(deadline, armed_at)
        if type(moment) is not int or not armed_at <= moment <= LIMIT:
            raise RoundingError(
                f"due_at({deadline}, {armed_at}) is {moment!r:.40}; it must be an integer in"
                f" [{armed_at}, 2**63 - 1]"
            )
        return moment

    def bounds(self, longest: int = LIMIT) -> tuple[int, int]:
        """The declared bounds of `fired_at - max(deadline, armed_at)`, or UNKNOWN_BOUNDS."""
        return self.least, self.greatest

    @property
    def at_once(self) -> int:
        """The longest delay of a timer that may be due when it is armed."""
        return -self.least

    @property
    def exact(self) -> bool:
        """Whether the declared bounds are both zero."""
        return self.bounds() == (0, 0)

    def __str__(self) -> str:
        return "by its own closed form"


SHARE_BOUNDS = Rounding("levels").bounds()
"""The bounds of a timer that is late by up to SHARE of the delay, for any delay."""

AnyRounding = Rounding | OwnRounding
