"""The candidates of a search: every timer with a kernel, with a grid of ticks and wheel sizes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from compare.traffic.tapes.units import duration_text
from compare.trial.replay.contestant import COMPILED, TICK, Contestant, contestant
from timers.errors import TimerError
from timers.registry import names

WHEEL_SIZE = "wheel_size"
WHEEL_SIZES = tuple(1 << bits for bits in range(3, 17))
COARSE = 3  # a coarse grid has every third tick and wheel size


class AdviceError(TimerError, ValueError):
    """No advice can be given: the trace is empty, or no timer keeps the bounds."""


@dataclass(frozen=True)
class Bounds:
    """Limits that a timer must keep for any traffic: in units of the trace, and in bytes."""

    max_late: int = 0
    max_early: int = 0
    memory: int | None = None


@dataclass(frozen=True)
class Grid:
    """All candidates for a trace of this unit; no tick is longer than `longest_tick`.

    No wheel has more than twice the slots that `longest_delay` takes up. More of them stay empty,
    cost memory and are skipped.
    """

    unit: str
    bounds: Bounds
    longest_tick: int
    longest_delay: int

    @property
    def _longest_ticks(self) -> set[int]:
        """The longest within the bounds, of a scheme that rounds up and of one that rounds down."""
        return {max(self.bounds.max_late, 1), self.bounds.max_early + 1}

    @cached_property
    def ticks(self) -> list[int]:
        """1, 2 and 5 times the powers of ten, and the longest that the bounds allow; ascending."""
        limit = max(self.longest_tick, self.bounds.max_late, self.bounds.max_early + 1)
        powers = (10**digits for digits in range(len(str(limit))))
        series = {digit * power for power in powers for digit in (1, 2, 5)}
        return sorted({tick for tick in series if tick <= limit} | self._longest_ticks)

    def coarse(self) -> Iterator[Contestant]:
        """Each timer with every third tick and wheel size, and the longest ticks in the bounds."""
        ticks = sorted({*self.ticks[::-COARSE]} | self._longest_ticks)
        yield from self._product(_compiled(), ticks, WHEEL_SIZES[::COARSE])

    def all(self) -> Iterator[Contestant]:
        """The whole grid within the bounds, memory aside."""
        yield from filter(self.precise, self._product(_compiled(), self.ticks, WHEEL_SIZES))

    def around(self, centre: Contestant) -> Iterator[Contestant]:
        """The candidates with the next shorter and longer ticks and wheel sizes, within the bounds.

        Wheels are also tried at twice the distance, because their cost has steps.
        """
        parameters = centre.parameters(self.unit)
        ticks = _near(self.ticks, parameters.get(TICK, 1))
        sizes = _near(WHEEL_SIZES, parameters.get(WHEEL_SIZE, 1))
        yield from filter(self.precise, self._product([centre.name], ticks, sizes))

    def precise(self, candidate: Contestant) -> bool:
        """Whether the candidate's scheme is as precise as the bounds ask."""
        low, high = candidate.rounding(self.unit).bounds()
        return -self.bounds.max_early <= low and high <= self.bounds.max_late

    def _product(
        self, timers: Iterable[str], ticks: Sequence[int], sizes: Sequence[int]
    ) -> Iterator[Contestant]:
        """Each timer with each value of the parameters that it has."""
        for name in timers:
            own = contestant(name).traits.parameters
            own_ticks = ticks if TICK in own else [1]
            own_sizes = sizes if WHEEL_SIZE in own else [WHEEL_SIZES[0]]
            for tick, size in product(own_ticks, own_sizes):
                if size == WHEEL_SIZES[0] or size // 2 * tick <= self.longest_delay:
                    settings = {TICK: duration_text(tick, self.unit), WHEEL_SIZE: size}
                    words = (f"{key}={value}" for key, value in settings.items() if key in own)
                    yield contestant("/".join([name, *words]))


def _compiled() -> list[str]:
    """The timers whose work is counted; the time of others is that of the interpreter."""
    return [name for name in names() if contestant(name).engine == COMPILED]


def _near(values: Sequence[int], value: int) -> Sequence[int]:
    place = min(range(len(values)), key=lambda k: abs(values[k] - value))
    return values[max(place - 2, 0) : place + 3]
