"""Contestants: a timer class and its parameters; each tape is replayed on a new instance.

A contestant is written `NAME` or `NAME/tick=5ms/wheel-size=64`. NAME is a registered timer, or
`module:Class` for your own, which follows `timers.protocol`. A tick is a number of units or a
duration. If the unit is a duration, the default tick is 100 ms for schemes whose own default is
more than one unit.
"""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from compare.base.arguments import integer
from compare.traffic.tapes.units import TAPE_UNITS, duration_text, parse_duration
from timers.errors import ParameterError, TimerError, UnknownTimerError
from timers.registry import timer_class
from timers.rounding import AnyRounding
from timers.schemes.base import DEFAULT_CAPACITY, KernelTimer
from timers.traits import Traits

COMPILED, PYTHON_LOOP = "compiled", "python loop"

TICK = "tick"
DEFAULT_TICK = "100ms"

_NEEDED = (
    *("now", "parameters", "nbytes", "schedule", "cancel", "reschedule", "advance"),
    *("next_expiry", "next_wakeup", "__len__"),
)
"""The members of a timer that a replay uses."""


class ContestantError(TimerError, TypeError):
    """A class is not a timer: it lacks something that the protocol requires."""


@dataclass(frozen=True)
class Contestant:
    """A timer with its parameters; `contestant` parses one."""

    name: str  #: of a registered timer, or `module:Class`
    #: the parameters that differ from the defaults; a tick is a duration such as "5ms", or an int
    settings: Mapping[str, int | str] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, settings: Mapping[str, int | str]) -> "Contestant":
        """The timer with valid parameters, of which those that equal the defaults are dropped."""
        plain = cls(name)
        defaults = {**plain.traits.defaults, TICK: plain.tick}
        return cls(name, {key: value for key, value in settings.items() if value != defaults[key]})

    @property
    def label(self) -> str:
        """The text on a command line, in tables and in files."""
        words = (f"{name.replace('_', '-')}={value}" for name, value in self.settings.items())
        return "/".join([self.name, *words])

    @property
    def timer_class(self) -> Any:
        """The class of its timers."""
        return _imported(self.name)

    @property
    def traits(self) -> Traits:
        """The traits of its class."""
        traits: Traits = self.timer_class.traits
        return traits

    @property
    def engine(self) -> str:
        """COMPILED, or PYTHON_LOOP for a timer without a kernel."""
        return COMPILED if issubclass(self.timer_class, KernelTimer) else PYTHON_LOOP

    @property
    def tick(self) -> int | str | None:
        """The tick as it was given, or the default; None for a timer without one."""
        default = self.traits.defaults.get(TICK)
        return self.settings.get(TICK, DEFAULT_TICK if (default or 0) > 1 else default)

    def parameters(self, unit: str) -> dict[str, int]:
        """All parameters for a trace of this unit ("ns", "us", "ms", "s" or "unit").

        Raises ParameterError for a tick that is not a whole number of units.
        """
        parameters = {**self.traits.defaults, **self.settings}
        tick = self.tick
        if isinstance(tick, str) and (unit in TAPE_UNITS or TICK in self.settings):
            parameters[TICK] = self._tick_in_units(tick, unit)
        return parameters  # type: ignore[return-value]  # the tick is an int now

    def _tick_in_units(self, tick: str, unit: str) -> int:
        try:
            if unit in TAPE_UNITS:
                return parse_duration(tick, unit)
            problem = "needs a trace whose unit is a duration; give a number of units"
        except ValueError:
            problem = f"is not a whole number of {unit}; give another one, such as {TICK}=1{unit}"
        default = "" if TICK in self.settings else "the default "
        raise ParameterError(f"{self.label}: {default}tick {tick} {problem}")

    def rounding(self, unit: str) -> AnyRounding:
        """The rounding of its scheme in a trace of this unit."""
        return self.traits.rounding(self.parameters(unit))

    def bounds(self, units: Iterable[str]) -> tuple[int, int, str]:
        """The lowest and highest lateness in traces of these units, and the unit of both.

        The unit is the finest of these units if the tick is a duration; otherwise it is "".
        """
        durations = [unit for unit in TAPE_UNITS if unit in units]
        if isinstance(self.tick, str) and durations:
            return (*self.rounding(durations[0]).bounds(), durations[0])
        return (*self.rounding("unit").bounds(), "")

    def new(
        self,
        unit: str,
        start: int = 0,
        capacity: int = DEFAULT_CAPACITY,
        *,
        counting: bool = False,
    ) -> Any:
        """Create a timer whose clock is at `start`.

        Only timers with a kernel use the capacity and can count their work. Raises ContestantError
        if the class is not a timer.
        """
        keywords: dict[str, Any] = {**self.parameters(unit), "start": start}
        if self.engine == COMPILED:
            keywords |= {"capacity": max(capacity, 1), "counting": counting}
        try:
            timer = self.timer_class(**keywords)
        except TypeError as error:
            if isinstance(error, TimerError):
                raise
            call = ", ".join(f"{keyword}={value}" for keyword, value in keywords.items())
            raise ContestantError(f"{self.name} cannot be called with ({call}): {error}") from None
        missing = [member for member in _NEEDED if not hasattr(timer, member)]
        if missing:
            raise ContestantError(
                f"{self.name} is not a timer: it lacks {', '.join(missing)} (see timers.protocol)"
            )
        return timer


def contestant(text: str) -> Contestant:
    """Parse a contestant: `NAME/parameter=value/...`, with hyphens for underscores.

    >>> contestant("hashed-wheel/wheel-size=512/tick=0.1s").label
    'hashed-wheel'
    >>> contestant("hashed-wheel/tick=5ms").parameters("us")
    {'tick': 5000, 'wheel_size': 512}

    Raises:
        UnknownTimerError: no timer has this name.
        ParameterError: a parameter is unknown, given twice or out of range.
        ContestantError: the class is not a timer.
    """
    name, *words = text.split("/")
    traits = getattr(_imported(name), "traits", None)
    if not isinstance(traits, Traits):
        raise ContestantError(
            f"{name} is not a timer: its traits are {traits!r:.40}, not timers.traits.Traits"
        )
    settings: dict[str, int | str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        parameter = key.strip().replace("-", "_")
        if not (equals and parameter):
            raise ParameterError(f"{word!r:.40} is not a parameter and its value, such as tick=5")
        if parameter not in traits.parameters:
            options = ", ".join(option.replace("_", "-") for option in traits.parameters) or "none"
            raise ParameterError(f"{name} has no parameter {key.strip()!r:.40}; it has {options}")
        if parameter in settings:
            raise ParameterError(f"{name}: {key.strip()} is given twice")
        settings[parameter] = _value(parameter, value.strip(), traits)
    return Contestant.of(name, settings)


def _value(parameter: str, text: str, traits: Traits) -> int | str:
    try:
        number = integer(text)
    except ParameterError:
        if parameter != TICK:
            option = parameter.replace("_", "-")
            raise ParameterError(f"{option}: {text!r:.40} is not an integer") from None
    else:
        return traits.parameters[parameter].check(number, parameter)
    try:
        return duration_text(parse_duration(text, "ns"), "ns")
    except ValueError as error:
        raise ParameterError(f"tick must be a number of units or a duration: {error}") from None


def _imported(name: str) -> Any:
    if ":" not in name:
        return timer_class(name)
    # As with `python -m`, the module may be in the current directory.
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return timer_class(name)
    except SyntaxError as error:
        place = f"{error.filename}, line {error.lineno}"
        raise UnknownTimerError(f"cannot import {name!r}: {error.msg} ({place})") from None
