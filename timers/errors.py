"""The errors that this project raises on purpose: each a TimerError and the nearest builtin."""

import re
from collections.abc import Iterable
from difflib import get_close_matches


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
    """A custom `due_at` that does not return a legal moment."""


class CapacityError(TimerError, MemoryError):
    """More pending timers than fit, or no memory for the answer; nothing is lost."""


class CopyError(TimerError, TypeError):
    """An attempt to copy or pickle a timer."""


class NestedCallError(TimerError, RuntimeError):
    """A call in the middle of another one, to a timer whose traits say that it refuses these."""


class InvariantError(TimerError, RuntimeError):
    """A structural invariant does not hold: a bug. The message has a dump of the state."""


class UnknownTimerError(TimerError, LookupError):
    """A name that is not in the registry."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """The message for a name that does not exist: the nearest one that does, or all of them.

    >>> unknown_name("timer", "HashedWheel", ["delay-queue", "hashed-wheel"])
    "no timer is called 'HashedWheel'; did you mean 'hashed-wheel'?"
    """
    known = list(known)
    kebab = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).replace("_", "-").lower()
    close = get_close_matches(kebab, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
    return f"no {kind} is called {name[:40]!r}; {hint}"
