"""`DelayedOperation`: a request that waits for a condition or for its timeout."""

import threading
from contextlib import AbstractContextManager
from typing import Any, Protocol

from timers.services.calls import FIRED, NO_HANDLE, Entry
from timers.services.moments import duration_ns


class _Watcher(Protocol):
    """The purgatory of an operation."""

    def _one_left(self) -> None: ...


class DelayedOperation(Entry):
    """A request that is completed by progress or by its timeout, exactly once.

    Subclasses say what it waits for. `delay` is the timeout in seconds (or a timedelta); it counts
    from the moment at which a purgatory watches the operation. No two threads run `try_complete`
    at the same time, because the purgatory holds `lock` meanwhile. Pass one lock to several
    operations that share state; it must be reentrant (an RLock, which is also the default). Where
    `try_complete` of one operation leads to another, give both the same lock, or two threads that
    take their locks in opposite orders wait for each other.

    >>> from timers import HierarchicalWheel
    >>> from timers.services import ManualClock, Purgatory, SystemTimer
    >>> class Answer(DelayedOperation):
    ...     text = None
    ...     def try_complete(self):
    ...         return self.text is not None and self.force_complete()
    ...     def on_complete(self):
    ...         print(self.text)
    >>> clock = ManualClock()
    >>> purgatory = Purgatory("answers", SystemTimer(HierarchicalWheel(), clock=clock))
    >>> first, second = Answer(0.2), Answer(0.2)
    >>> purgatory.try_complete_else_watch(first, ["first"])
    False
    >>> purgatory.try_complete_else_watch(second, ["second"])
    False
    >>> first.text = "hello"
    >>> purgatory.check_and_complete("first")
    hello
    1
    >>> clock.advance(0.2)
    None
    >>> second.is_completed, purgatory.delayed
    (True, 0)

    Raises:
        TimeTypeError, TimeRangeError: for a delay that is not a duration of at least 0.
    """

    __slots__ = ("_delay", "_lock", "_purgatory")

    _delay: int  # nanoseconds
    _lock: AbstractContextManager[Any]
    _purgatory: _Watcher | None  # None until one watches the operation

    def __init__(self, delay: Any, lock: AbstractContextManager[Any] | None = None) -> None:
        self._delay = duration_ns(delay, "delay")
        self._lock = threading.RLock() if lock is None else lock
        self._purgatory = None
        self._callback = _pending
        self._args = ()
        self._context = None
        self._handle = NO_HANDLE

    def try_complete(self) -> bool:
        """Complete the operation by `force_complete` if its condition holds; for subclasses.

        Return what `force_complete` returned, or False if the condition does not hold. The
        purgatory calls this when it gets the operation, and for each `check_and_complete`.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define try_complete")

    def on_complete(self) -> None:
        """Called exactly once, when the operation completes, also by its timeout."""

    def on_expiration(self) -> None:
        """Called after `on_complete` if the operation completed by its timeout."""

    @property
    def is_completed(self) -> bool:
        """Whether nothing more will happen: completed, timed out or cancelled."""
        return not hasattr(self, "_callback")

    def force_complete(self) -> bool:
        """Complete the operation now, from any thread, and take it from the timer. O(1).

        True exactly for the one caller, of all threads, that completed it; `on_complete` has then
        run on the caller's thread. False if it was completed, had timed out or was cancelled.
        """
        if not self.cancel():
            return False
        self.on_complete()
        return True

    def cancel(self) -> bool:
        """Withdraw the operation: True exactly if it will neither complete nor time out. O(1)."""
        if not Entry.cancel(self):
            return False
        if self._purgatory is not None:
            self._purgatory._one_left()
        return True

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'completed' if self.is_completed else 'pending'}>"

    def _fire(self, armed: int) -> None:
        try:
            del self._callback
        except AttributeError:
            return
        self._args = FIRED
        if self._purgatory is not None:
            self._purgatory._one_left()
        self._service._start(self._time_out, (), None)

    def _time_out(self) -> None:
        self.on_complete()
        self.on_expiration()


def _pending() -> None:
    """The token of an operation; never called."""
