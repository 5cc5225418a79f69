"""Roundings: closed forms of the moment at which a timer fires.

They depend on the deadline and on the clock when the timer was last armed. The traits of a scheme
map its parameters to a rounding, which the model, the compiled oracle, the tables and the tests
use. The SQL oracle states the closed forms independently.

>>> kafka = Rounding("down", 200)
>>> kafka.due_at(399, 0), kafka.due_at(399, 250), kafka.bounds()
(200, 250, (-199, 0))
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np

from timers.arrays import Int64s
from timers.errors import ParameterError, RoundingError
from timers.limits import LIMIT

Direction = Literal["exact", "down", "up"]

UNKNOWN_BOUNDS = (-LIMIT, LIMIT)
"""The bounds of a closed form that declares none."""


@dataclass(frozen=True)
class Rounding:
    """The rounding of deadlines to ticks of `tick` units.

    "exact" fires at the deadline. "down" fires at the start of the deadline's tick (Kafka's
    TimingWheel.add files by `expiration / tickMs` and expires the bucket at its start). "up" fires
    when the deadline's tick has passed (Netty's HashedWheelTimer.Worker), so never at the deadline
    itself. A timer never fires before it was armed: if it is overdue then, it fires at once.

    Roundings that fire alike are equal: rounding down to ticks of one unit is "exact". Raises
    ParameterError for any other direction, or a tick outside [1, 2**63 - 1].
    """

    direction: Direction = "exact"
    tick: int = 1

    def __post_init__(self) -> None:
        if self.direction not in ("exact", "down", "up"):
            raise ParameterError(f"direction {self.direction!r} is not exact, down or up")
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
        start = deadline - deadline % self.tick
        if self.direction == "down":
            return latest(start, armed_at)
        end = earliest(start, LIMIT - self.tick) + self.tick
        if arrays:
            return np.where(deadline <= armed_at, armed_at, end)
        return armed_at if deadline <= armed_at else end

    def bounds(self) -> tuple[int, int]:
        """The least and greatest lateness, `fired_at - max(deadline, armed_at)`, in units."""
        match self.direction:
            case "exact":
                return 0, 0
            case "down":
                return 1 - self.tick, 0
            case "up":
                return 0, self.tick

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

    def bounds(self) -> tuple[int, int]:
        """The declared bounds of `fired_at - max(deadline, armed_at)`, or UNKNOWN_BOUNDS."""
        return self.least, self.greatest

    @property
    def exact(self) -> bool:
        """Whether the declared bounds are both zero."""
        return self.bounds() == (0, 0)

    def __str__(self) -> str:
        return "by its own closed form"


AnyRounding = Rounding | OwnRounding
