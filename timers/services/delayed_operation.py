"""`DelayedOperation`: a request that waits for a condition or for its timeout."""

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from math import floor
from operator import length_hint
from typing import Any

from timers.services.clock import QUICK_DURATION, duration_ns
from timers.services.mailbox import (
    CANCELLED,
    MAILBOX_LIMIT,
    NO_HANDLE,
    PENDING,
    STARTED,
    Entry,
    Work,
)

UNWATCHED = threading.RLock()
"""In place of the mailbox's lock, for operations that no purgatory watches yet."""

if hasattr(os, "register_at_fork"):  # no thread holds it at a fork, which a child would not have
    os.register_at_fork(
        before=UNWATCHED.acquire,
        after_in_parent=UNWATCHED.release,
        after_in_child=UNWATCHED.release,
    )


class DelayedOperation(Entry):
    """A request that is completed by progress or by its timeout, exactly once.

    Subclasses say what it waits for. `delay` is the timeout in seconds (or a timedelta); it counts
    from the moment at which a purgatory watches the operation.

    A purgatory never runs `try_complete` of one operation in two threads at once: the second has
    the first try again. `lock`, for operations that share state, is held while it runs; it has
    to be reentrant if this can lead to another operation with the same lock. `Purgatory` has an
    example.

    Raises:
        TimeTypeError, TimeRangeError: for a delay that is not a duration of at least 0.
    """

    # Few attributes, as each makes the purgatory slower: by its memory, and by what the garbage
    # collector has to look at. `_moment` is the delay, until a purgatory watches the operation.
    __slots__ = ("_asked", "_idle", "_lock", "_purgatory", "_token")

    _lock: AbstractContextManager[Any] | None
    _purgatory: Any  # the Purgatory that watches the operation, None before
    _token: None  # unset when the operation ends while a purgatory watches it
    _idle: None  # unset while a thread runs `try_complete`
    _asked: bool  # whether it has to do so again; unset before the first time

    def __init__(self, delay: Any, lock: AbstractContextManager[Any] | None = None) -> None:
        if (type(delay) is float or type(delay) is int) and 0.0 <= delay <= QUICK_DURATION:
            self._moment = floor(delay * 1e9 + 0.5)
        else:
            self._moment = duration_ns(delay, "delay")
        self._lock = lock
        self._purgatory = None
        self._token = self._idle = None
        self._state, self._handle = PENDING, NO_HANDLE

    def try_complete(self) -> bool:
        """Complete the operation by `force_complete` if its condition holds; for subclasses.

        Return what `force_complete` returned, or False if the condition does not hold. The
        purgatory calls this when it gets the operation, and for each `check_and_complete`. It must
        not check a key of the operation itself, which would then be tried again, for ever.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define try_complete")

    def on_complete(self) -> None:
        """Called exactly once, when the operation completes, also by its timeout."""

    def on_expiration(self) -> None:
        """Called after `on_complete`, unless that raised, if the operation timed out."""

    @property
    def is_completed(self) -> bool:
        """Whether nothing more will happen: completed, timed out or cancelled."""
        return self._state != PENDING

    def force_complete(self) -> bool:
        """Complete the operation now, from any thread, and take it from the timer. O(1).

        True exactly for the one caller, of all threads, that completed it; `on_complete` has then
        run on the caller's thread. False if it was completed, had timed out or was cancelled.
        """
        if not self._end(CANCELLED):
            return False
        self.on_complete()
        return True

    def cancel(self) -> bool:
        """Withdraw the operation: True exactly if it will neither complete nor time out. O(1)."""
        return self._end(CANCELLED)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'completed' if self.is_completed else 'pending'}>"

    def _begin(self, moment: int) -> bool:
        return self._end(STARTED)

    def _end(self, state: int) -> bool:
        """End the operation, and say whether it was pending."""
        if self._purgatory is None:
            with UNWATCHED:
                if self._purgatory is None:  # and no purgatory begins to watch it now
                    pending, self._state = self._state == PENDING, state
                    return pending
        purgatory = self._purgatory
        mailbox = purgatory._mailbox
        if len(mailbox.entries) >= MAILBOX_LIMIT:
            mailbox.make_room()
        if length_hint(purgatory._ends) <= purgatory._purge_below:
            purgatory._request_purge()
        try:
            del self._token
        except AttributeError:
            return False
        self._state = state  # no call, so no exception, comes before the next line
        try:
            next(purgatory._ends)
        finally:  # also if a signal handler raises
            if state == CANCELLED and self._handle:
                try:
                    mailbox.entries.append(self)
                except MemoryError:
                    mailbox.unsettled = True  # the next `apply` finds it
        return True

    def _work(self) -> Work:
        return self._time_out, (), None

    def _time_out(self) -> None:
        self.on_complete()
        self.on_expiration()


def try_each(
    operations: Sequence[DelayedOperation],
    on_error: Callable[[DelayedOperation, Exception], object] | None = None,
) -> int:
    """Run `try_complete` of the pending operations; return how many that completed.

    Only one thread runs it for an operation: the one that took its attribute `_idle`, by `del`,
    which is one step. Another thread, or an inner frame, asks that one to try once more: it may
    have looked before the condition became true. Whoever asks does so before it tries to take the
    attribute; whoever has it puts it back before it looks whether somebody has asked. Exceptions go
    to `on_error`, if it is given, and the rest of the operations go on. KeyboardInterrupt and the
    like always propagate.
    """
    completed = 0
    for operation in operations:
        operation._asked = True
        while operation._asked and operation._state == PENDING:
            try:
                del operation._idle
            except AttributeError:
                break
            operation._asked = False
            try:
                lock = operation._lock
                if lock is None:
                    if operation.try_complete():
                        completed += 1
                else:
                    with lock:
                        if operation.try_complete():
                            completed += 1
            except Exception as error:
                if on_error is None:
                    raise
                on_error(operation, error)
            finally:
                operation._idle = None
    return completed
