"""Contestants: timers with their parameters, of which each tape gets a new instance.

A contestant is written `NAME` or `NAME/tick=1/wheel-size=64`. NAME is a registered timer, or the
`module:Class` of your own, which follows `timers.protocol`. A tick is a number of units or a
duration, `NAME/tick=100ms`, which becomes a number of the unit of each trace.
"""

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compare.replay.engine import has_kernel
from compare.tapes.units import TAPE_UNITS, DurationError, duration_text, parse_duration
from timers.errors import ParameterError, TimerError, UnknownTimerError
from timers.registry import timer_class
from timers.rounding import UNKNOWN_BOUNDS, AnyRounding
from timers.schemes.base import DEFAULT_CAPACITY
from timers.traits import Traits

COMPILED, PYTHON_LOOP = "compiled", "python loop"

_NEEDED = (
    "now",
    "traits",
    "parameters",
    "nbytes",
    "schedule",
    "cancel",
    "reschedule",
    "advance",
    "next_expiry",
    "next_wakeup",
    "__len__",
)
"""The members of a timer that a replay uses."""


class ContestantError(TimerError, TypeError):
    """A class is not a timer: it lacks something that the protocol demands."""


@dataclass(frozen=True)
class Contestant:
    """A timer class with all its parameters; `new` makes an instance."""

    name: str  # as given on the command line, without parameters
    timer_class: Any
    parameters: Mapping[str, int]
    traits: Traits
    engine: str  # COMPILED, or PYTHON_LOOP for a timer without a kernel
    #: The tick for the label, where the parameter does not say it: a duration such as "100ms", or
    #: a number of units that was given although it is the default.
    tick: str | None = None

    @property
    def label(self) -> str:
        """The name, with the parameters that are not the defaults, and the duration of a tick.

        This is how a contestant is written on a command line and shown everywhere.
        """
        own: dict[str, int | str] = {
            name: value
            for name, value in self.parameters.items()
            if value != self.traits.defaults.get(name)
        }
        if self.tick is not None:
            own[TICK] = self.tick
        return "/".join(
            [self.name, *(f"{name.replace('_', '-')}={value}" for name, value in own.items())]
        )

    def in_unit(self, unit: str) -> "Contestant":
        """The same contestant for a trace of this unit. Raises ParameterError."""
        if self.tick is None or _is_integer(self.tick):
            return self
        ticks = _ticks(self.tick, unit)
        return contestant(self.name, {**self.parameters, TICK: ticks}, self.tick)

    def in_finest(self, units: Collection[str]) -> tuple["Contestant", str]:
        """The same contestant in the finest of its own unit and these, and that unit.

        It may fire early or late in a fine unit only. The unit is "" where its tick is a number.
        """
        if self.tick is None or _is_integer(self.tick):
            return self, ""
        each = ((self.in_unit(unit), unit) for unit in TAPE_UNITS)
        return next(
            (found, unit)
            for found, unit in each
            if unit in units or found.parameters == self.parameters
        )

    @property
    def rounding(self) -> AnyRounding:
        """When it fires. Contestants that fire at the same moments have equal ones."""
        return self.traits.rounding(self.parameters)

    def new(
        self, start: int = 0, capacity: int = DEFAULT_CAPACITY, *, counting: bool = False
    ) -> Any:
        """A timer whose clock stands at `start`.

        Only timers with a kernel use the capacity, and can count their work.
        """
        if self.engine == COMPILED:
            return self.timer_class(
                **self.parameters, start=start, capacity=max(capacity, 1), counting=counting
            )
        return self.timer_class(**self.parameters, start=start)


def lateness_text(traits: Mapping[str, Any]) -> str:
    """When a contestant of a stored run may fire: "exact", "up to 100ms late",
    "up to 9 units early".

    The bounds are durations where its tick was given as one.
    """
    low, high = traits["lateness_low"], traits["lateness_high"]
    if (low, high) == UNKNOWN_BOUNDS:
        return "lateness undeclared"

    def text(bound: int) -> str:
        if not traits["unit"]:
            return f"{bound} unit{'s' * (bound != 1)}"
        return duration_text(bound, traits["unit"])

    found = [f"up to {text(-low)} early"] * (low < 0) + [f"up to {text(high)} late"] * (high > 0)
    return " and ".join(found) or "exact"


def contestant(
    name: str, parameters: Mapping[str, int] | None = None, tick: str | None = None
) -> Contestant:
    """The contestant of a registered timer's name, or of a `module:Class`.

    Parameters that are left out have the defaults of the class. `tick` is the duration that their
    tick stands for, as the label says it.

    Raises:
        UnknownTimerError: no timer has this name.
        ParameterError: the timer has no such parameter, or it is out of range.
        ContestantError: the class is not a timer.
    """
    given = dict(parameters or {})
    found = _import(name)
    traits = getattr(found, "traits", None)
    if isinstance(traits, Traits):
        _check_parameters(name, traits, given)
    timer = _made(name, found, {**given, "start": 0})
    if has_kernel(timer):
        timer = _made(name, found, {**given, "start": 0, "capacity": 1, "counting": True})
    missing = [member for member in _NEEDED if not hasattr(timer, member)]
    if missing:
        raise ContestantError(
            f"{name} is not a timer: it lacks {', '.join(missing)} (see timers.protocol)"
        )
    if not isinstance(timer.traits, Traits):
        raise ContestantError(
            f"{name} is not a timer: its traits are {timer.traits!r:.40}, not timers.traits.Traits"
        )
    engine = COMPILED if has_kernel(timer) else PYTHON_LOOP
    return Contestant(name, found, dict(timer.parameters), timer.traits, engine, tick)


TICK = "tick"


def parse_contestant(text: str, units: Sequence[str] = ("ms",)) -> Contestant:
    """The contestant written as `NAME/parameter=value/...`, with hyphens for underscores.

    A tick may be a duration, which must be a whole number of each of the `units`. A default of more
    than one unit is taken for milliseconds where that is a whole number of each unit, and is else
    one unit. The contestant is that for the first unit. Raises ParameterError, and what
    `contestant` does.
    """
    name, *settings = text.split("/")
    traits = getattr(_import(name), "traits", None)
    given, tick = {}, None
    for setting in settings:
        word, equals, value = setting.partition("=")
        if word.strip() == TICK and equals and not _is_integer(value):
            tick = value
            given[TICK] = 1  # until it is known that the timer has one
        else:
            if isinstance(traits, Traits) and equals and word.strip():
                _check_parameters(name, traits, [word.strip().replace("-", "_")])
            given.update([parse_setting(setting)])
    found = contestant(name, given)
    default = found.traits.defaults.get(TICK, 1)
    if tick is None and default > 1:
        if given.get(TICK) == default:
            return replace(found, tick=str(default))
        if TICK not in given:
            tick = f"{default}ms"
    if tick is None:
        return found
    try:
        ticks = [_ticks(tick, unit) for unit in units]
    except ParameterError:
        if TICK in given:
            raise
        return contestant(name, {**given, TICK: 1})
    return contestant(name, {**given, TICK: ticks[0]}, duration_text(ticks[0], units[0]))


def _ticks(tick: str, unit: str) -> int:
    """The units of a tick. Raises ParameterError."""
    if unit not in TAPE_UNITS:
        raise ParameterError(
            f"tick {tick!r:.40} needs a trace whose unit is a duration; give a number of units"
        )
    try:
        return parse_duration(tick, unit)
    except DurationError as error:
        raise ParameterError(f"tick must be a number of units or a duration: {error}") from None


def _is_integer(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True


def parse_setting(text: str) -> tuple[str, int]:
    """`tick=5` as ("tick", 5). Raises ParameterError."""
    name, equals, value = text.partition("=")
    try:
        if not (name and equals):
            raise ValueError
        return name.strip().replace("-", "_"), int(value)
    except ValueError:
        problem = "is not a parameter and an integer, such as tick=5"
        raise ParameterError(f"{text!r} {problem}") from None


def _import(name: str) -> Any:
    if ":" not in name:
        return timer_class(name)
    # As with `python -m`: the module may be in the directory where the command is run.
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return timer_class(name)
    except SyntaxError as error:
        where = f"{error.filename}, line {error.lineno}"
        raise UnknownTimerError(f"cannot import {name!r}: {error.msg} ({where})") from None


def _check_parameters(name: str, traits: Traits, given: Iterable[str]) -> None:
    for parameter in given:
        if parameter not in traits.parameters:
            options = ", ".join(option.replace("_", "-") for option in traits.parameters) or "none"
            unknown = parameter.replace("_", "-")
            raise ParameterError(f"{name} has no parameter {unknown!r:.40}; it has {options}")


def _made(name: str, found: Any, keywords: Mapping[str, int]) -> Any:
    try:
        return found(**keywords)
    except TimerError:
        raise
    except TypeError as error:
        call = ", ".join(f"{keyword}={value}" for keyword, value in keywords.items())
        raise ContestantError(f"{name} cannot be called with ({call}): {error}") from None
