"""Every error that this project raises on purpose: a TimerError and the nearest builtin, with one
clear line.
"""


class TimerError(Exception):
    """Base of all errors raised on purpose."""


class TimeTypeError(TimerError, TypeError):
    """A time or handle of the wrong type (bool, float, NaN, str, None, ...)."""


class TimeRangeError(TimerError, ValueError):
    """A time outside [0, 2**63 - 1]."""


class ClockError(TimerError, ValueError):
    """An attempt to move a timer's clock backwards."""


class ParameterError(TimerError, ValueError):
    """A constructor's or command's parameter outside its range."""


class RoundingError(TimerError, ValueError):
    """A closed form of somebody's own that gives something else than a legal moment."""


class CapacityError(TimerError, MemoryError):
    """More pending timers than fit; none was scheduled."""


class InvariantError(TimerError, RuntimeError):
    """A structural invariant does not hold: a bug in a timer. The message carries a dump of the
    state.
    """


class UnknownTimerError(TimerError, LookupError):
    """A name that is not in the registry."""
