"""The errors that this project raises: each is a TimerError and the nearest builtin error."""

import re
from collections.abc import Iterable
from difflib import get_close_matches


class TimerError(Exception):
    """Base of all errors that this project raises itself."""


class TimeTypeError(TimerError, TypeError):
    """A time or handle of the wrong type (bool, float, NaN, str, None, ...)."""


class TimeRangeError(TimerError, ValueError):
    """A time outside [0, 2**63 - 1]."""


class ClockError(TimerError, ValueError):
    """An attempt to move a timer's clock backwards."""


class ParameterError(TimerError, ValueError):
    """A constructor's or command's parameter outside its range."""


class RoundingError(TimerError, ValueError):
    """A custom `due_at` that returns an illegal moment."""


class CapacityError(TimerError, MemoryError):
    """More pending timers than fit, or no memory for the result; nothing is lost."""


class CopyError(TimerError, TypeError):
    """An attempt to copy or pickle a timer."""


class NestedCallError(TimerError, RuntimeError):
    """A nested call that a timer refuses, made by a finalizer or signal handler."""


class InvariantError(TimerError, RuntimeError):
    """A structural invariant does not hold: a bug. The message includes a dump of the state."""


class UnknownTimerError(TimerError, LookupError):
    """A name that is not in the registry."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Return an error message that suggests the nearest known name, or lists all of them.

    >>> unknown_name("timer", "HashedWheel", ["delay-queue", "hashed-wheel"])
    "no timer is called 'HashedWheel'; did you mean 'hashed-wheel'?"
    """
    known = list(known)
    kebab = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).replace("_", "-").lower()
    matches = get_close_matches(kebab, known, n=1)
    hint = f"did you mean {matches[0]!r}?" if matches else f"there are {', '.join(known)}"
    return f"no {kind} is called {name[:40]!r}; {hint}"
