"""The errors of the services; times out of range raise the errors of `timers.errors`."""

from collections.abc import Hashable, Iterable

from timers.errors import TimerError
from timers.validation import shown


class ServiceClosedError(TimerError, RuntimeError):
    """A service was used after `close`."""


class ServiceStateError(TimerError, RuntimeError):
    """A service was used from the wrong thread or loop, or in a state that does not allow it."""


class OverloadError(TimerError, RuntimeError):
    """A service has `max_pending` calls and refuses another one."""


class CallbackError(TimerError, TypeError):
    """A callback is not callable, or what it should run in is not a Context."""


class KeyTypeError(TimerError, TypeError):
    """A key is not hashable, or keys are not iterable."""


def check_key(key: object) -> None:
    """Raise KeyTypeError for a key that is not hashable."""
    try:
        hash(key)
    except TypeError:
        raise KeyTypeError(f"a key must be hashable, not {shown(key)}") from None


def key_list(keys: Iterable[Hashable]) -> list[Hashable]:
    """The keys in a list. Raises KeyTypeError for what is not iterable, and for a string."""
    if isinstance(keys, (str, bytes)):
        raise KeyTypeError(f"keys must be an iterable of keys, not {shown(keys)}; use a list")
    try:
        iterator = iter(keys)
    except TypeError:
        raise KeyTypeError(f"keys must be an iterable, not {shown(keys)}") from None
    return list(iterator)
