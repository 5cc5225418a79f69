"""Traits: the declared properties of a scheme, such as rounding, order and cost.

The tables, tests and charts read the traits. These facts are not stated anywhere else.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

from timers.limits import LIMIT
from timers.rounding import AnyRounding
from timers.validation import as_parameter

Parameters = Mapping[str, int]

NO_COUNTER = "no counter"
"""Stands for a counter's name where an operation increments no counter and is O(1). The timers that
a tick delivers count as the cost of an expiry."""

READS = "reads"
"""Stands for a counter's name where the tests count what an operation reads: cells, and rows."""


class Load(StrEnum):
    """The workload for which a cost holds.

    The tests run it to measure the cost: `tests/timers/test_growth.py` has a workload for each
    combination of operation, load and variable that makes sense.
    """

    ANY = "any"
    RANDOM_DEADLINES = "random deadlines, on average"
    FALLING_DEADLINES = "falling deadlines, the worst case"
    RANDOM_CANCELS = "random timers, on average"
    ALL_CANCELLED = "any, amortised over compactions"
    IDLE_TIMEOUTS = "idle timeouts: the earliest timer becomes the latest"
    UNIFORM_DELAYS = "uniform delays"
    EQUAL_DELAYS = "the same delay for all"
    FEW_DELAYS = "a number of distinct delays that is small beside N"
    ONE_ROTATION = "delays within a rotation"
    MANY_ROTATIONS = "delays of many rotations"
    ALL_AT_ONCE = "all due in one advance"
    FULL_SLOT = "the worst tick: all timers in one upper slot"


@dataclass(frozen=True)
class Cost:
    """The growth of an operation's cost: `counter` is O(growth) in `variable` under `load`.

    N timers are pending. The cost of an expiry is all the work of event-driven advances from arming
    to firing, per timer that fires. The cost of a tick is that of one clock-driven `advance` by one
    tick. The cost of next_wakeup is that of one call.

    >>> str(Cost("tick", "wheel_size", "inverse", Load.MANY_ROTATIONS, "timers_touched"))
    'tick: O(1 / wheel_size)'
    """

    operation: Literal["schedule", "cancel", "reschedule", "expiry", "tick", "next_wakeup"]
    variable: Literal["N", "wheel_size", "delay", "delays", "levels"]
    growth: Literal["1", "log", "linear", "inverse"]
    load: Load  #: the workload for which this cost holds
    counter: str  #: of timers.kernels.counters; or READS, or NO_COUNTER except for an expiry

    def __str__(self) -> str:
        shapes = {"1": "O(1)", "log": "O(log {})", "linear": "O({})", "inverse": "O(1 / {})"}
        return f"{self.operation}: {shapes[self.growth].format(self.variable)}"


@dataclass(frozen=True)
class Traffic:
    """The traffic for which parameters are searched, and the precision required; in units."""

    median_delay: int
    longest_delay: int
    max_late: int = 0
    max_early: int = 0


Grid = Callable[[Traffic, Parameters], Iterable[int]]
"""The values of a parameter worth trying, given those of the parameters declared before it."""


def ticks(traffic: Traffic, _: Parameters) -> list[int]:
    """1, 2 and 5 times the powers of ten, up to the median delay, and the longest in the bounds.

    With a longer tick, half of the timers would fire in the wrong place.
    """
    longest = {max(traffic.max_late, 1), traffic.max_early + 1}  # rounding up, rounding down
    limit = max(traffic.median_delay, *longest)
    series = {digit * 10**power for power in range(len(str(limit))) for digit in (1, 2, 5)}
    return sorted({tick for tick in series if tick <= limit} | longest)


def wheel_sizes(traffic: Traffic, chosen: Parameters) -> list[int]:
    """Powers of two from 8 to 65 536, up to the first that covers the longest delay.

    The additional slots of a larger wheel would stay empty.
    """
    slots = traffic.longest_delay // chosen.get("tick", 1)
    return [size for size in (1 << bits for bits in range(3, 17)) if size // 2 <= max(slots, 4)]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a constructor: its default, lowest and highest value.

    `wheelwork advise` tries the values of its grid; without a grid, only the default.
    """

    default: int
    lowest: int = 1
    highest: int = LIMIT
    grid: Grid | None = None

    def check(self, value: object, name: str) -> int:
        """Return `value` as an int in range. Raises TimeTypeError, ParameterError."""
        return as_parameter(value, name, self.lowest, self.highest)

    def values(self, traffic: Traffic, chosen: Parameters) -> list[int]:
        """The values of the grid that are in range, or else the default; see `Grid`."""
        values = self.grid(traffic, chosen) if self.grid else ()
        in_range = [value for value in values if self.lowest <= value <= self.highest]
        return in_range or [self.default]


@dataclass(frozen=True)
class Traits:
    """The declared properties of a scheme."""

    name: str  #: in kebab case, as on the command line
    scheme: str  #: its name in the literature
    summary: str  #: one sentence
    rounding: Callable[[Parameters], AnyRounding]  #: from parameters to when a timer fires
    #: of timers that fire in one unit; fifo: by deadline, then by last arming
    order: Literal["fifo", "unspecified"]
    exact_next_expiry: bool  #: next_expiry() is the next fired_at, not only a bound
    costs: tuple[Cost, ...]  #: growth of the cost of each operation
    jumps: str  #: the way in which advance skips empty time
    suits: str  #: the uses it is good for
    drawback: str  #: the main disadvantage
    source: str  #: paper and section, or the original's file
    parameters: Mapping[str, Parameter] = field(default_factory=dict)  #: of the constructor
    #: the reach of the structure itself, and the place of later timers
    horizon: str = "none: any deadline"
    deviations: tuple[str, ...] = ()  #: from the original
    #: what is seen of equal deadlines where the order is unspecified, to rely on at one's own risk
    ties: str = ""
    #: whether it keeps the contract's rules for interruptions; if not, it refuses any call that a
    #: finalizer or signal handler makes in the middle of another
    interruptible: bool = True

    @property
    def order_text(self) -> str:
        """The order within a unit, in words.

        >>> from timers import DenseWheel
        >>> DenseWheel.traits.order_text
        'newest first'
        """
        return "in arming order" if self.order == "fifo" else self.ties or "in any order"

    @property
    def defaults(self) -> Parameters:
        """The default value of each parameter, read-only."""
        defaults = {name: parameter.default for name, parameter in self.parameters.items()}
        return MappingProxyType(defaults)
