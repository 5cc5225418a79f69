"""`DelayedOperation`: a request that waits for a condition or for its timeout."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import floor
from typing import Any, Protocol

from timers.services.calls import CANCELLED, FIRED, NO_HANDLE, CallTimer, Entry, no_callback
from timers.services.moments import QUICK_DURATION, duration_ns

# In place of the lock of an operation while a thread runs its `try_complete`: whether that thread
# has to do so again.
_TRYING, _ASKED = nullcontext("trying"), nullcontext("asked")

# The latest delay that was converted, and its nanoseconds; see QUICK_DURATION.
_latest_delay, _latest_duration = 0.0, 0


class _Watcher(Protocol):
    """What an operation uses of its purgatory."""

    _left: int
    _purge_above: float

    @property
    def _timer(self) -> CallTimer: ...

    def _request_purge(self) -> None: ...


class DelayedOperation(Entry):
    """A request that is completed by progress or by its timeout, exactly once.

    Subclasses say what it waits for. `delay` is the timeout in seconds (or a timedelta); it counts
    from the moment at which a purgatory watches the operation.

    A purgatory never runs `try_complete` of one operation in two threads at once: the thread that
    is at it does it again for the other, and nobody waits. Where operations share state, give them
    a `lock`; it is held while `try_complete` runs. It has to be reentrant if `try_complete` or
    `on_complete` can lead to another operation with the same lock.

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

    # Few attributes, as each makes the purgatory slower: by its memory, and by what the garbage
    # collector has to look at.
    __slots__ = ("_lock", "_purgatory")

    # `_moment` is the delay, until a purgatory watches the operation.
    _lock: AbstractContextManager[Any] | None  # or _TRYING or _ASKED
    _purgatory: _Watcher | None  # None until one watches the operation

    def __init__(self, delay: Any, lock: AbstractContextManager[Any] | None = None) -> None:
        global _latest_delay, _latest_duration
        known, duration = _latest_delay, _latest_duration
        if delay is known:
            self._moment = duration
        elif (type(delay) is float or type(delay) is int) and 0.0 <= delay <= QUICK_DURATION:
            self._moment = duration = floor(delay * 1e9 + 0.5)
            _latest_delay, _latest_duration = delay, duration
        else:
            self._moment = duration_ns(delay, "delay")
        self._lock = lock
        self._purgatory = None
        self._callback = no_callback
        self._args = ()
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
        if not DelayedOperation.cancel(self):
            return False
        self.on_complete()
        return True

    def cancel(self) -> bool:
        """Withdraw the operation: True exactly if it will neither complete nor time out. O(1)."""
        try:
            del self._callback
        except AttributeError:
            return False
        self._args = CANCELLED
        purgatory = self._purgatory
        if purgatory is not None:
            if self._handle:
                timer = purgatory._timer
                changes = timer._changes
                changes.append(self)
                if len(changes) > timer._limit:
                    timer._relieve()
            purgatory._left = left = purgatory._left + 1
            if left > purgatory._purge_above:
                purgatory._request_purge()
        return True

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'completed' if self.is_completed else 'pending'}>"

    def _fire(self, armed: int) -> None:
        try:
            del self._callback
        except AttributeError:
            return
        self._args = FIRED
        purgatory = self._purgatory
        if purgatory is not None:
            purgatory._left = left = purgatory._left + 1
            if left > purgatory._purge_above:
                purgatory._request_purge()
            purgatory._timer._start(self._time_out, (), None)

    def _time_out(self) -> None:
        self.on_complete()
        self.on_expiration()


def try_each(
    operations: Sequence[DelayedOperation],
    on_error: Callable[[DelayedOperation, Exception], object] | None = None,
) -> int:
    """Run `try_complete` of the pending operations; return how many that completed.

    Where another thread or a frame below is at it, that one tries once more: it may have looked
    before the condition became true. Exceptions go to `on_error`, if it is given, and the rest of
    the operations go on. KeyboardInterrupt and the like always propagate.
    """
    completed = 0
    failure: BaseException | None = None
    for operation in operations:
        if operation._args:
            continue
        # CPython switches threads, and runs signal handlers, only at calls and backward jumps:
        # nothing comes between a look at `_lock` and the assignment after it.
        lock = operation._lock
        if lock is not None and (lock is _TRYING or lock is _ASKED):
            operation._lock = _ASKED
            continue
        operation._lock = _TRYING
        try:
            while True:
                try:
                    if lock is None:
                        if operation.try_complete():
                            completed += 1
                            break
                    else:
                        with lock:
                            if operation.try_complete():
                                completed += 1
                                break
                except BaseException as error:
                    if failure is None or not isinstance(error, Exception):
                        failure = error
                if operation._lock is _TRYING or operation._args:
                    break
                operation._lock = _TRYING
        finally:  # also after a signal at the backward jump
            operation._lock = lock
        if failure is not None:
            try:
                raise failure
            except Exception as error:  # KeyboardInterrupt and the like propagate
                if on_error is None:
                    raise
                on_error(operation, error)
            finally:
                failure = None  # its traceback holds this frame
    return completed
