"""Entries: what the mailbox of a service holds; and scheduled calls, the entries it returns.

The *token* of an entry is its attribute `_callback`. `del entry._callback` is one C function under
the GIL: of all threads that try, exactly one succeeds, and the others get an AttributeError. A
cancellation and an expiry take the token for good. A re-arm takes it, changes the moment and puts
it back, so that the moment never changes under an expiry that holds the token.
"""

from collections.abc import Callable
from contextvars import Context
from typing import Any, Literal, Protocol

from timers.services.moments import NS_PER_S

Missed = Literal["skip", "burst", "delay"]

MAILBOX_LIMIT = 4096
"""Entries above which callers apply the mailbox themselves, if nobody else does."""

LIST_LIMIT = MAILBOX_LIMIT // 2
"""Entries of each of the mailbox's two lists above which that happens."""

NO_HANDLE = 0
"""The handle of a call that has not been filed in the timer yet; timers never return 0."""

# In place of an entry's arguments, once it is done.
CANCELLED: tuple[Any, ...] = ("cancelled",)
FIRED: tuple[Any, ...] = ("fired",)


def no_callback() -> None:
    """The token of an entry that has no callback; never called."""


class Service(Protocol):
    """What an entry uses of its service; `CallTimer` describes the members."""

    _changes: "list[Entry]"
    _limit: int
    _now: Callable[[], int]

    def _moment_at(self, moment: Any) -> int: ...

    def _moment_after(self, delay: Any) -> int: ...

    def _relieve(self) -> None: ...

    def _rearmed(self, call: "Entry") -> None: ...

    def _accepts_more(self) -> bool: ...

    def _start(
        self,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
        finish: Callable[[], None] | None = None,
    ) -> None: ...


class Entry:
    """The base of scheduled calls and delayed operations. Any thread may call any method."""

    __slots__ = ("_args", "_callback", "_handle", "_moment")

    _callback: Callable[..., object]  # the token: unset once the entry is done
    _args: tuple[Any, ...]  # or CANCELLED or FIRED
    _moment: int  # the deadline in nanoseconds of the clock
    _handle: int  # in the timer; may be stale

    def cancel(self) -> bool:
        """Take the token for good, mark the entry as CANCELLED, and tell the service of one that it
        has filed. True exactly if this call took the token.

        The mark comes before the look at the handle. The thread that files an arrival first sets
        the handle and then looks for the mark: one of the two always sees the other.
        """
        raise NotImplementedError

    def _waits_for(self, armed: int) -> bool:
        """Whether the entry still waits to run for the deadline `armed`."""
        return self._moment is armed and hasattr(self, "_callback")

    def _fire(self, armed: int) -> None:
        """Run the entry if it is still pending for the deadline `armed`.

        Deadlines are compared by identity: a re-arm makes a new int.
        """
        raise NotImplementedError


class BoundEntry(Entry):
    """An entry that refers to its service itself."""

    __slots__ = ("_context", "_service")

    _context: Context | None  # None for an empty one
    _service: Service

    def cancel(self) -> bool:
        """Cancel the call and drop its callback and arguments at once.

        True exactly if the call will not run: False if it has started, was cancelled already, or
        is being re-armed by another thread at this very moment. For a periodic call, True exactly
        if it will not start again. O(1).
        """
        try:
            del self._callback
        except AttributeError:
            return False
        self._args = CANCELLED
        self._context = None
        if self._handle:
            service = self._service
            changes = service._changes
            changes.append(self)
            if len(changes) > service._limit:
                service._relieve()
        return True


class ScheduledCall(BoundEntry):
    """A call that waits for its deadline; made by the `schedule_` methods of a service.

    Dropping it does not cancel the call. All methods may be called from any thread.

    >>> from timers import HierarchicalWheel
    >>> from timers.services import ManualClock, SystemTimer
    >>> timer = SystemTimer(HierarchicalWheel(), clock=ManualClock())
    >>> call = timer.schedule_after(2.0, print, "late")
    >>> call.reschedule_after(5.0), call.when(), call.cancel(), call.cancel()
    (True, 5.0, True, False)
    """

    __slots__ = ()

    def reschedule(self, moment: Any) -> bool:
        """Give the call a new deadline: the clock's seconds or an aware datetime.

        True exactly if the former deadline will not fire. False if the call has started or was
        cancelled; it is not revived. A periodic call goes on from the new deadline.

        Raises:
            TimeTypeError, TimeRangeError: for what is not a moment.
        """
        return self._rearm(self._service._moment_at(moment))

    def reschedule_after(self, delay: Any) -> bool:
        """Give the call a new deadline `delay` seconds (or a timedelta) from now; see `reschedule`.

        Raises:
            TimeTypeError, TimeRangeError: for what is not a duration of at least 0.
        """
        return self._rearm(self._service._moment_after(delay))

    def when(self) -> float:
        """The deadline in the clock's seconds."""
        return self._moment / NS_PER_S

    def done(self) -> bool:
        """Whether the call has started or was cancelled; a periodic call is done when cancelled."""
        return not hasattr(self, "_callback")

    def cancelled(self) -> bool:
        """Whether the call was cancelled."""
        return self._args is CANCELLED

    def __repr__(self) -> str:
        state = "cancelled" if self.cancelled() else "done" if self.done() else "pending"
        return f"<{type(self).__name__} {state} at {self.when():.9g} s>"

    def _rearm(self, moment: int) -> bool:
        try:
            callback = self._callback
            # No thread switch, signal handler or finalizer can come between these three
            # statements: CPython looks for them only at calls and jumps.
            del self._callback
        except AttributeError:
            return False
        self._moment = moment
        self._callback = callback
        self._service._rearmed(self)
        return True

    def _fire(self, armed: int) -> None:
        if self._moment is not armed:
            return
        try:
            callback = self._callback
            del self._callback
        except AttributeError:
            return
        if self._moment is not armed:  # re-armed by another thread since the look above
            self._callback = callback
            return
        args, context = self._args, self._context
        self._args = FIRED
        self._context = None
        self._service._start(callback, args, context)


class PeriodicCall(ScheduledCall):
    """A call that runs once per period, made by `schedule_every`; it never overlaps itself."""

    __slots__ = ("_missed", "_period", "_running")

    _period: int  # nanoseconds
    _missed: Missed
    _running: bool

    def _waits_for(self, armed: int) -> bool:
        return super()._waits_for(armed) and not self._running

    def _fire(self, armed: int) -> None:
        # The token stays: the occurrence has begun when the callback is read, and a cancellation
        # from then on counts for those that follow. A call that is re-armed while it runs is filed
        # again at the end.
        if self._moment is not armed or self._running:
            return
        try:
            callback = self._callback
        except AttributeError:
            return
        args, context = self._args, self._context
        self._running = True
        self._service._start(callback, args, context, lambda: self._finish(armed))

    def _finish(self, armed: int) -> None:
        """Arm the call for its next deadline, unless it was cancelled or re-armed while it ran."""
        service = self._service
        self._running = False
        if not service._accepts_more():
            self.cancel()
            return
        following = self._following(armed, service._now())
        if self._moment is armed:  # no thread switch comes between the look and the assignment
            self._moment = following
        service._rearmed(self)

    def _following(self, armed: int, now: int) -> int:
        match self._missed:
            case "burst":
                return armed + self._period
            case "delay":
                # After an early run, on a timer that rounds down, `now + period` may be due at
                # once, again and again.
                return max(armed, now) + self._period
            case _:
                return armed + self._period * max((now - armed) // self._period + 1, 1)
