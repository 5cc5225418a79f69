"""The candidates of a search: every timer with a kernel, with the values of its grids."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compare.traffic.tapes.units import TAPE_UNITS, duration_text
from compare.trial.advice.choice import USUAL, Offer
from compare.trial.replay.contestant import COMPILED, TICK, Contestant
from compare.trial.replay.outcome import Outcome
from timers.errors import TimerError
from timers.limits import LIMIT
from timers.registry import names
from timers.rounding import AnyRounding
from timers.traits import Parameter, Parameters, Traffic


class AdviceError(TimerError, ValueError):
    """No advice can be given: the trace is empty, or no timer keeps the bounds."""


@dataclass(frozen=True)
class Bounds:
    """Limits that a timer must keep for any traffic: in units of the trace, and in bytes."""

    max_late: int = 0
    max_early: int = 0
    memory: int | None = None

    def allow(self, rounding: AnyRounding, longest: int = LIMIT) -> bool:
        """Whether a scheme with this rounding is precise enough for delays up to `longest`."""
        low, high = rounding.bounds(longest)
        return -self.max_early <= low and high <= self.max_late


@dataclass(frozen=True)
class Candidate:
    """A contestant and the results of its last round."""

    contestant: Contestant
    outcome: Outcome
    times: Sequence[float]  #: ns of CPU per operation, in each turn
    pending: int  #: the most timers that were pending at once
    nbytes: int  #: of a timer with room for these
    deviation: int  #: how far from a deadline its scheme may fire, late or early, in units
    precise: bool  #: whether it keeps the bounds of lateness
    allowed: bool  #: whether it keeps all bounds

    @property
    def label(self) -> str:
        """The text on a command line."""
        return self.contestant.label

    @property
    def cost(self) -> float:
        """The time in the fastest turn: noise only ever adds time."""
        return min(self.times)

    @property
    def noise(self) -> float:
        """The relative difference of the time between the odd and the even turns."""
        first, second = min(self.times[::2]), min(self.times[1::2])
        return max(first, second) / min(first, second) - 1

    @property
    def offer(self) -> Offer:
        """The candidate as an offer, with its cost in ns of CPU per operation."""
        return Offer(
            self.cost,
            low=self.cost,  # noise only ever adds time
            high=self.cost * (1 + self.noise),
            exact=self.deviation == 0,
            nbytes=self.nbytes,
            default=not self.contestant.settings,
            usual=self.contestant.name == USUAL,
        )


def contestants(traffic: Traffic, unit: str) -> Iterator[Contestant]:
    """Every timer with a kernel, with each combination of the values of its grids.

    The time of a timer without a kernel would be that of the interpreter.
    """
    for name in names():
        timer = Contestant(name)
        if timer.engine == COMPILED:
            for values in _combinations(timer.traits.parameters, traffic):
                settings: dict[str, int | str] = {**values}
                if TICK in values and unit in TAPE_UNITS:
                    settings[TICK] = duration_text(values[TICK], unit)
                yield Contestant.of(name, settings)


def _combinations(declared: Mapping[str, Parameter], traffic: Traffic) -> list[Parameters]:
    combinations: list[Parameters] = [{}]
    for name, parameter in declared.items():
        combinations = [
            {**chosen, name: value}
            for chosen in combinations
            for value in parameter.values(traffic, chosen)
        ]
    return combinations
