"""`DelayedOperation`: a request that waits for a condition or for its timeout."""

import os
import threading
from contextlib import AbstractContextManager
from math import floor
from typing import Any

from timers.kernels.handles import PLACE_MASK
from timers.services.clock import QUICK_DURATION, delay_ns
from timers.services.pending import (
    BATCH,
    CANCELLED,
    DUE,
    FINISHED,
    PENDING,
    STARTED,
    UNFILED,
    Entry,
    release,
)

UNWATCHED = threading.RLock()
"""In place of the service's lock, for operations that no purgatory watches yet."""

if hasattr(os, "register_at_fork"):  # no thread holds it at a fork, which a child would not have
    os.register_at_fork(
        before=UNWATCHED.acquire,
        after_in_parent=UNWATCHED.release,
        after_in_child=UNWATCHED.release,
    )

_latest: tuple[float, int] = (0.0, 0)
"""The number of seconds that was converted last, as most operations share one; in nanoseconds."""


class DelayedOperation(Entry):
    """A request that is completed by progress or by its timeout, exactly once.

    Subclasses say what it waits for. `delay` is the timeout in seconds (or a timedelta); it counts
    from the moment at which a purgatory watches the operation, and a negative one has passed then.

    A purgatory never runs `try_complete` of an operation that it watches in two threads at once:
    the second has the first try again. `lock`, for operations that share state, is held while it
    runs; it has to be reentrant if this can lead to another operation with the same lock.
    `Purgatory` has an example.

    Raises:
        TimeTypeError, TimeRangeError: for a delay that is not a finite duration.
    """

    # Few attributes, as each makes the purgatory slower: by its memory, and by what the garbage
    # collector has to look at. `_moment` is the delay, until a purgatory watches the operation.
    __slots__ = ("_asked", "_lock", "_purgatory", "_tried_by")

    _lock: AbstractContextManager[Any] | None
    _purgatory: Any  # the Purgatory that watches the operation, None before
    _tried_by: list[None] | None  # not empty while a thread runs `try_complete`
    _asked: bool  # whether that thread has to do so again

    # What `Pending` and the services know of a call.
    _args = ()
    _context = None

    def __init__(self, delay: Any, lock: AbstractContextManager[Any] | None = None) -> None:
        global _latest
        known, duration = _latest
        if delay is not known:
            if (type(delay) is float or type(delay) is int) and 0.0 <= delay <= QUICK_DURATION:
                duration = floor(delay * 1e9 + 0.5)
                _latest = delay, duration
            else:
                duration = delay_ns(delay)
        self._moment, self._lock = duration, lock
        self._purgatory = self._tried_by = None
        self._state, self._handle = PENDING, UNFILED

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

        True if and only if this call, of all threads, completed it; `on_complete` has then run on
        the caller's thread. False if it was completed, had timed out or was cancelled.
        """
        if not self._end():
            return False
        self.on_complete()
        return True

    def cancel(self) -> bool:
        """Withdraw the operation. O(1).

        True if and only if it will neither complete nor time out.
        """
        return self._end()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'completed' if self.is_completed else 'pending'}>"

    def _end(self, state: int = CANCELLED) -> bool:
        """Give the operation another state, if it is pending, and return whether it was."""
        purgatory = self._purgatory
        if purgatory is None:
            with UNWATCHED:
                if self._purgatory is None:  # and no purgatory begins to watch it now
                    was_pending, self._state = self._state == PENDING, CANCELLED
                    return was_pending
            purgatory = self._purgatory
        pending = purgatory._pending
        lock = pending.lock
        try:
            lock.acquire()
            if purgatory._left >= purgatory._purge_above:
                purgatory._request_purge()  # first, as it may fail
            ended = self._state == PENDING
            if ended:  # `Pending.leave` in line
                handle = self._handle
                # Nothing that can fail comes in between: it counts until here.
                self._state = state
                purgatory._left += 1
                if handle:
                    pending.filed -= 1
                    if handle > 0:
                        pending.calls[handle & PLACE_MASK] = None
                        pending.gone.append(handle)
                        if len(pending.gone) >= BATCH and not pending.failed:
                            pending.apply()
                if pending.ending:
                    pending.alarm = pending.wake(pending.latest)
        except BaseException:
            release(lock)
            raise
        lock.release()
        return ended

    # What a service does with a call that is due

    @property
    def _callback(self) -> Any:
        return self._time_out

    def _begin(self) -> bool:
        return self._handle == DUE and self._end(STARTED)

    def _time_out(self) -> None:
        self.on_complete()
        self.on_expiration()

    def _finish(self) -> None:
        self._state = FINISHED
