"""Contestants: timers with their parameters, of which each tape gets a new instance.

A contestant is written `NAME` or `NAME/tick=1/wheel-size=64`. NAME is a registered timer, or the
`module:Class` of your own, which follows `timers.protocol`.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compare.replay.engine import has_kernel
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

    @property
    def label(self) -> str:
        """The name, with the parameters that are not the defaults."""
        own = {
            name: value
            for name, value in self.parameters.items()
            if value != self.traits.defaults.get(name)
        }
        return "/".join(
            [self.name, *(f"{name.replace('_', '-')}={value}" for name, value in own.items())]
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

    def precision(self) -> str:
        """When it fires, as text: "exact", or the bounds of its lateness in units."""
        bounds = self.rounding.bounds()
        if bounds == UNKNOWN_BOUNDS:
            return "lateness undeclared"
        return "exact" if bounds == (0, 0) else f"lateness {bounds[0]} to {bounds[1]}"


def contestant(name: str, parameters: Mapping[str, int] | None = None) -> Contestant:
    """The contestant of a registered timer's name, or of a `module:Class`.

    Parameters that are left out have their defaults.

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
    return Contestant(name, found, dict(timer.parameters), timer.traits, engine)


def parse_contestant(text: str) -> Contestant:
    """The contestant written as `NAME/parameter=value/...`, with hyphens for underscores."""
    name, *settings = text.split("/")
    return contestant(name, dict(parse_setting(setting) for setting in settings))


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


def _check_parameters(name: str, traits: Traits, given: Mapping[str, int]) -> None:
    for parameter in given:
        if parameter not in traits.defaults:
            options = (
                ", ".join(option.replace("_", "-") for option in traits.defaults) or "no parameter"
            )
            raise ParameterError(f"{name} has no {parameter.replace('_', '-')}; it has {options}")


def _made(name: str, found: Any, keywords: Mapping[str, int]) -> Any:
    try:
        return found(**keywords)
    except TimerError:
        raise
    except TypeError as error:
        call = ", ".join(f"{keyword}={value}" for keyword, value in keywords.items())
        raise ContestantError(f"{name} cannot be called with ({call}): {error}") from None
