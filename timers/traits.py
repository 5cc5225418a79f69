"""What is declared about each scheme: when it fires, in which order, at what cost.

The tables, tests and charts read the traits; nothing else states these facts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from timers.rounding import AnyRounding

Parameters = Mapping[str, int]

ALL_COUNTERS = "all counters"
"""In place of a counter's name: the sum of all."""


@dataclass(frozen=True)
class Cost:
    """How the cost of one operation grows: `counter` is O(growth) in `variable` on `workload`.

    Operations run beside N pending timers. An expiry's cost is all the work of `advance`,
    event-driven, per timer that fires, from its arming on; a tick's is that of one clock-driven
    `advance` by one tick.
    """

    operation: Literal["schedule", "cancel", "reschedule", "expiry", "tick"]
    variable: Literal["N", "wheel_size", "delay", "levels"]
    growth: Literal["1", "log", "linear", "inverse"]
    workload: str  #: what the statement holds for
    counter: str  #: the cost counter that shows it (timers.kernels.counters), or ALL_COUNTERS

    def __str__(self) -> str:
        shapes = {"1": "O(1)", "log": "O(log {})", "linear": "O({})", "inverse": "O(1 / {})"}
        return f"{self.operation}: {shapes[self.growth].format(self.variable)}"


@dataclass(frozen=True)
class Traits:
    """All that is declared about one scheme."""

    name: str  #: in kebab case, as on the command line
    scheme: str  #: what the literature calls it
    summary: str  #: one sentence
    rounding: Callable[[Parameters], AnyRounding]  #: when a timer fires, with these parameters
    order: Literal["fifo", "unspecified"]  #: of timers with equal deadlines that fire in one unit
    defaults: Parameters  #: the constructor's parameters and their default values
    exact_next_expiry: bool  #: next_expiry() is the next fired_at, not only a bound
    costs: tuple[Cost, ...]  #: how the cost of each operation grows
    horizon: str  #: how far ahead the structure itself reaches, and what keeps later timers
    jumps: str  #: how advance skips empty time
    suits: str  #: what it is good for
    drawback: str  #: what it is bad at
    source: str  #: paper and section, or the original's file
    deviations: tuple[str, ...] = ()  #: from the original
