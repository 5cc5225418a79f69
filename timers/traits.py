"""What is declared about each scheme: when it fires, in which order, at what cost, within which
limits.

The tables, tests, charts and advice read the traits; nothing else states these facts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

_LIMIT = 2**63 - 1  # the last moment of the contract; protocol.LIMIT, which imports this module

Parameters = Mapping[str, int]
DueAt = Callable[[int, int, Parameters], int]


def exact_due_at(deadline: int, armed_at: int, parameters: Parameters) -> int:
    """Exact schemes: the deadline, or the moment of arming if it has passed."""
    return max(deadline, armed_at)


def round_down_due_at(deadline: int, armed_at: int, parameters: Parameters) -> int:
    """Kafka's hierarchical wheel: the start of the deadline's tick, so up to tick - 1 early.

    Source: TimingWheel.add, which files by `expiration / tickMs` and fires the bucket at its start.
    """
    tick = parameters["tick"]
    return max(deadline // tick * tick, armed_at)


def round_up_due_at(deadline: int, armed_at: int, parameters: Parameters) -> int:
    """Netty's hashed wheel: the end of the deadline's tick, so 1 .. tick late (none beyond the last
    moment).

    Source: HashedWheelTimer.Worker, which expires a tick's bucket when the tick has passed.
    """
    if deadline <= armed_at:
        return armed_at
    tick = parameters["tick"]
    return min((deadline // tick + 1) * tick, _LIMIT)


ALL_COUNTERS = "all counters"
"""In place of a counter's name: the sum of all."""


@dataclass(frozen=True)
class Cost:
    """How the cost of one operation grows: `counter` per operation is O(growth) in `variable` on
    `workload`.

    Operations run beside N pending timers. An expiry's cost is all the work of `advance`,
    event-driven, per timer that fires, from its arming on; a tick's is that of one clock-driven
    `advance` by one tick.
    """

    operation: Literal["schedule", "cancel", "reschedule", "expiry", "tick"]
    variable: Literal["N", "wheel_size", "delay", "levels"]
    growth: Literal["1", "log", "linear", "inverse"]
    workload: str  # what the statement holds for, in words
    counter: str  # the cost counter that shows it (timers.kernels.counters), or ALL_COUNTERS

    def __str__(self) -> str:
        shape = {"1": "O(1)", "log": "O(log {})", "linear": "O({})", "inverse": "O(1 / {})"}[
            self.growth
        ]
        return f"{self.operation}: {shape.format(self.variable)}"


@dataclass(frozen=True)
class Traits:
    """All that is declared about one scheme."""

    name: str  # in kebab case, as on the command line
    scheme: str  # what the literature calls it
    summary: str  # one sentence
    due_at: DueAt  # the closed form of `fired_at`
    order: Literal["fifo", "unspecified"]  # of timers with equal deadlines that fire in one unit
    defaults: Parameters  # the constructor's parameters and their default values
    exact_next_expiry: bool  # next_expiry() is the next fired_at, not only a bound
    costs: tuple[Cost, ...]
    horizon: str  # how far the structure proper reaches, and what holds timers beyond
    jumps: str  # how advance passes over empty time
    suits: str  # what it is good for
    drawback: str
    source: str  # paper and section, or the original's file
    deviations: tuple[str, ...] = ()  # from the original

    def exact(self, parameters: Parameters) -> bool:
        """Whether each timer fires exactly at its deadline with these parameters."""
        if self.due_at is round_down_due_at:
            return parameters["tick"] == 1
        return self.due_at is exact_due_at

    def lateness(self, parameters: Parameters) -> tuple[int, int]:
        """The least and the greatest possible `fired_at - max(deadline, armed_at)`; (0, 0) when
        exact.
        """
        if self.due_at is round_down_due_at:
            return 1 - parameters["tick"], 0
        if self.due_at is round_up_due_at:
            return 0, parameters["tick"]
        return 0, 0
