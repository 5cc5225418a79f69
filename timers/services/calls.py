"""Scheduled calls, and the mailbox through which they reach the timer of a service.

Callers never touch the timer. They append to one of two lists, which is atomic and takes no lock:
`_arrivals` holds new calls, `_changes` calls that were cancelled or re-armed after they had been
filed. Whoever holds `_lock` applies both in batches. A call that was cancelled before that is
dropped without touching the timer.

The *token* of an entry is its attribute `_callback`. `del entry._callback` is one C function under
the GIL: of all threads that try, exactly one succeeds, and the others get an AttributeError. A
cancellation and an expiry take the token for good. A re-arm takes it, changes the moment and puts
it back, so that the moment never changes under an expiry that holds the token.

The timer holds no callbacks: `_calls` and `_armed` hold, by the place of the handle, the call and
the deadline for which it was filed.

Applying can be interrupted anywhere, by a signal or a failed allocation. The entries leave the
lists last, and applying one of them again does no harm.

Applying does not give up the GIL on its own, except where the timer needs more memory. Where
threads compete for the GIL, getting it back takes 5 ms; meanwhile nobody else can apply the lists,
and they grow by thousands of entries. NumPy gives it up in most operations on more than 500
elements, so what they would do is done by compiled functions and by loops over lists.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from itertools import compress, repeat
from math import floor
from operator import attrgetter, itemgetter
from typing import Any, Literal, Self

import numpy as np

from timers.arrays import Int64s
from timers.errors import ParameterError, TimeRangeError
from timers.kernels.handles import PLACE_MASK
from timers.limits import LIMIT
from timers.protocol import Timer
from timers.schemes.base import load_code
from timers.services.errors import CallbackError, ServiceClosedError
from timers.services.moments import (
    NS_PER_S,
    QUICK_DURATION,
    Clock,
    duration_ns,
    moment_ns,
    to_units,
)
from timers.validation import as_integer, shown

Callback = Callable[..., object]
Args = tuple[Any, ...]
Finish = Callable[[], None] | None
Missed = Literal["skip", "burst", "delay"]

_NO_LIMIT = 1 << 62
_FEW = 4  # so many entries are applied one by one: a batch has fixed costs
_LARGEST_UNIT = 10**18  # nanoseconds

AWAKE = -1
"""The alarm of a service that will look into its mailbox anyway."""

CLOSED = 1 << 64
"""The alarm of a closed service: above every moment, so that every caller attends to it."""

MAILBOX_LIMIT = 4096
"""Entries above which callers apply the mailbox themselves, if nobody else does."""

LIST_LIMIT = MAILBOX_LIMIT // 2
"""Entries of each of the mailbox's two lists above which that happens."""

NO_HANDLE = 0
"""The handle of a call that has not been filed in the timer yet; timers never return 0."""

# In place of an entry's arguments, once it is done.
CANCELLED: Args = ("cancelled",)
FIRED: Args = ("fired",)


def no_callback() -> None:
    """The token of an entry that has no callback; never called."""


class Entry:
    """The base of scheduled calls and delayed operations. Any thread may call any method."""

    __slots__ = ("_args", "_callback", "_handle", "_moment")

    _callback: Callback  # the token: unset once the entry is done
    _args: Args  # or CANCELLED or FIRED
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
    _service: "CallTimer"

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
        if service._closed:  # a periodic call does not go on
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


class CallTimer:
    """The base of the services: calls in a timer, without anything that drives it."""

    def __init__(self, timer: Timer, unit_ns: int, clock: Clock) -> None:
        unit_ns = as_integer(unit_ns, "unit_ns")
        if not 1 <= unit_ns <= _LARGEST_UNIT:
            raise ParameterError(f"unit_ns must lie in [1, 10**18], not {shown(unit_ns)}")
        if len(timer):
            raise ParameterError(f"the timer must be empty; it has {len(timer)} pending")
        # Later it would happen with the lock held, for seconds where other threads keep the GIL
        # busy, and the mailbox would grow by millions of entries.
        load_code(timer)
        to_units(np.empty(0, np.int64), 0, 1, 0)
        self._timer = timer
        self._unit_ns = unit_ns
        self._start_unit = timer.now
        self._clock = clock
        self._now = clock.now
        self._origin = self._latest = clock.now()
        # Callers with an earlier moment than this must wake the driver. Written with the lock held.
        self._alarm = AWAKE
        self._closed = False
        self._limit = LIST_LIMIT  # above which callers apply the mailbox
        self._arrivals: list[Entry] = []
        self._changes: list[Entry] = []
        self._ready: deque[tuple[Entry, int]] = deque()  # due, in order; with its deadline
        self._calls: list[Entry | None] = []
        self._armed: list[int] = []
        # Held to touch the timer, never while a callback runs. It is re-entrant only so that it
        # knows its owner from the very step that takes it: nobody takes it twice.
        self._lock = threading.RLock()
        # The latest delay that was converted, and its nanoseconds; see QUICK_DURATION.
        self._latest_delay, self._latest_duration = 0.0, 0
        self._torn = False  # an interruption may have lost what the timer returned

    # What users call

    def schedule_after(
        self, delay: Any, callback: Callback, *args: Any, context: Context | None = None
    ) -> ScheduledCall:
        """Run `callback(*args)` after `delay` seconds (or a timedelta) and return the call.

        The deadline is rounded up to a unit. The callback runs in `context`, or in a copy of the
        current one. O(1), and without a lock.

        Raises:
            TimeTypeError, TimeRangeError: for what is not a duration of at least 0.
            CallbackError: if the callback is not callable, or `context` is not a Context.
            ServiceClosedError: after `close`.
        """
        known, duration = self._latest_delay, self._latest_duration
        now = self._now  # CPython 3.11 looks for `self._now()` among the methods first
        if delay is known:
            moment = now() + duration
        elif (type(delay) is float or type(delay) is int) and 0.0 <= delay <= QUICK_DURATION:
            duration = floor(delay * 1e9 + 0.5)
            self._latest_delay, self._latest_duration = delay, duration
            moment = now() + duration
        else:
            moment = self._moment_after(delay)
        if not callable(callback):
            raise CallbackError(f"the callback must be callable, not {shown(callback)}")
        call = ScheduledCall()
        call._service = self
        call._callback = callback
        call._args = args
        # An empty context, the common case, is made when it is needed: it would cost memory.
        call._context = (copy_context() or None) if context is None else _checked(context)
        call._moment = moment
        call._handle = NO_HANDLE
        arrivals = self._arrivals
        arrivals.append(call)
        if moment < self._alarm or len(arrivals) > self._limit:
            self._attend(call)
        return call

    def schedule_at(
        self, moment: Any, callback: Callback, *args: Any, context: Context | None = None
    ) -> ScheduledCall:
        """Run `callback(*args)` at `moment`: the clock's seconds (see `time`) or an aware datetime.

        A moment that has passed is due at once. A datetime is converted once; later changes of the
        wall clock do not move the call.

        Raises:
            TimeTypeError, TimeRangeError: for what is not a moment, and for a naive datetime.
            CallbackError: if the callback is not callable, or `context` is not a Context.
            ServiceClosedError: after `close`.
        """
        call = ScheduledCall()
        return self._enter(call, self._moment_at(moment), callback, args, context)

    def schedule_every(
        self,
        period: Any,
        callback: Callback,
        *args: Any,
        missed: Missed = "skip",
        context: Context | None = None,
    ) -> ScheduledCall:
        """Run `callback(*args)` once per `period` seconds (or timedelta), first after one period.

        The phase is kept without drift and the call never overlaps itself. When a run ends after
        the next deadline, `missed` says what follows: "skip" goes on at the first deadline that has
        not passed, "burst" makes up for each one missed, "delay" waits a whole period from the end
        of the run. An exception does not end the series; `cancel` does. All runs share one context.

        Raises:
            TimeTypeError, TimeRangeError: for what is not a duration above 0.
            ParameterError: for another `missed`.
            CallbackError: if the callback is not callable, or `context` is not a Context.
            ServiceClosedError: after `close`.
        """
        period_ns = duration_ns(period, "period")
        if not period_ns:
            raise TimeRangeError(f"period must be at least a nanosecond, not {shown(period)}")
        if missed not in ("skip", "burst", "delay"):
            raise ParameterError(f"missed must be skip, burst or delay, not {shown(missed)}")
        call = PeriodicCall()
        call._period, call._missed, call._running = period_ns, missed, False
        # One context for all runs, even if it is empty: what a run sets, the next one sees.
        kept = copy_context() if context is None else context
        return self._enter(call, self._now() + period_ns, callback, args, kept)

    def time(self) -> float:
        """The clock's present time in seconds: what `schedule_at` and `when` count in."""
        return self._now() / 1e9

    @property
    def size(self) -> int:
        """The number of pending calls, exact whenever no method call is in progress.

        Calls that are due but have not started count; a periodic call does not count while it runs.
        """
        if self._is_filing():
            return len(self._timer)
        with self._lock:
            self._apply()
            waiting = sum(call._waits_for(armed) for call, armed in list(self._ready))
            return len(self._timer) + waiting

    def close(self) -> object:
        """Refuse new calls, and cancel those that are pending."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Close the service and cancel what is pending."""
        self.close()

    # What calls and drivers use

    def _moment_after(self, delay: Any) -> int:
        return min(self._now() + duration_ns(delay, "delay"), LIMIT)

    def _moment_at(self, moment: Any) -> int:
        return moment_ns(moment, self._clock)

    def _enter(
        self,
        call: ScheduledCall,
        moment: int,
        callback: Callback,
        args: Args,
        context: Context | None,
    ) -> ScheduledCall:
        if not callable(callback):
            raise CallbackError(f"the callback must be callable, not {shown(callback)}")
        call._service, call._callback, call._args = self, callback, args
        call._context = (copy_context() or None) if context is None else _checked(context)
        call._moment, call._handle = min(moment, LIMIT), NO_HANDLE
        self._arrivals.append(call)
        if moment < self._alarm or len(self._arrivals) > self._limit:
            self._attend(call)
        return call

    def _attend(self, call: Entry) -> None:
        """Do what a new call asks for: refuse it, apply a full mailbox, or wake the driver."""
        if self._closed:
            call.cancel()
            raise ServiceClosedError(f"{type(self).__name__} is closed")
        if len(self._arrivals) > self._limit:
            self._relieve()
        if call._moment < self._alarm:
            self._wake()

    def _post(self, entries: Sequence[Entry], first: int) -> None:
        """Put new entries into the mailbox; `first` is the earliest of their moments."""
        self._arrivals.extend(entries)
        if len(self._arrivals) > self._limit or first < self._alarm:
            self._attend(min(entries, key=attrgetter("_moment")))

    def _rearmed(self, call: Entry) -> None:
        """Take note that a call has another deadline."""
        changes = self._changes
        changes.append(call)
        if len(changes) > self._limit:
            self._relieve()
        if call._moment < self._alarm:
            self._wake()

    def _relieve(self) -> None:
        """Apply the mailbox, unless another thread, or a frame below this one, is at it."""
        if self._is_filing():
            return
        try:
            if not self._lock.acquire(blocking=False):
                return
            self._limit = _NO_LIMIT  # the others need not try meanwhile
            with suppress(MemoryError):  # the entries stay; the driver tries and reports it
                self._apply()
        except BaseException:
            # A signal handler may raise just after the attempt to take the lock. Whether it was
            # taken, `release` itself says: another handler could raise after any other question.
            self._limit = LIST_LIMIT
            try:  # noqa: SIM105  # a call of `suppress` would be such a point
                self._lock.release()
            except RuntimeError:
                pass
            raise
        # No handler can run between the end of the `try` and the release.
        self._limit = LIST_LIMIT
        self._lock.release()

    def _is_filing(self) -> bool:
        """Whether a frame below this one holds the lock.

        So it is in a finalizer or a signal handler that runs within our own filing, which must not
        be entered again.
        """
        return self._lock._is_owned()  # type: ignore[attr-defined, no-any-return]  # as Condition does

    def _wake(self) -> None:
        """Make the driver look into the mailbox."""
        raise NotImplementedError

    def _start(
        self, callback: Callback, args: Args, context: Context | None, finish: Finish = None
    ) -> None:
        """Run a callback whose deadline has come; `finish` is called at its end."""
        self._run(callback, args, context, finish, propagate=True)

    def _run(
        self,
        callback: Callback,
        args: Args,
        context: Context | None,
        finish: Finish = None,
        propagate: bool = False,
    ) -> None:
        """Run a callback; exceptions are reported, except that exits may `propagate`."""
        try:
            (Context() if context is None else context).run(callback, *args)
        except BaseException as error:
            if propagate and isinstance(error, (SystemExit, KeyboardInterrupt)):
                raise
            self._report(callback, error)
        finally:
            if finish is not None:
                finish()

    def _run_ready(self) -> None:
        ready = self._ready
        while ready:
            call, armed = ready[0]
            call._fire(armed)
            ready.popleft()  # last: an exception in between leaves it here, with its token gone

    def _report(self, callback: Callback | None, error: BaseException) -> None:
        """Pass on an exception of a callback, or of the timer itself."""
        raise NotImplementedError

    # The rest runs with the lock held

    def _collect(self) -> None:
        """Apply the mailbox, advance the timer, and append what is due to `_ready`."""
        self._apply()
        now = self._latest = max(self._now(), self._latest)
        unit = min((now - self._origin) // self._unit_ns, LIMIT - self._start_unit)
        try:
            handles = self._timer.advance(self._start_unit + unit).handles
            if not handles.size:
                return
            places = [handle & PLACE_MASK for handle in handles.tolist()]
            calls, armed = self._calls, self._armed
            due = [(call, armed[place]) for place in places if (call := calls[place]) is not None]
            due.sort(key=itemgetter(1))  # within one unit, by nanoseconds
            self._ready.extend(due)
            for place in places:
                calls[place] = None
        except BaseException:
            self._torn = True
            raise

    def _next_expiry(self) -> int | None:
        """The moment at which the timer wants to be advanced next; None if nothing is pending."""
        expiry = self._timer.next_expiry()
        if expiry is None:
            return None
        return self._origin + (expiry - self._start_unit) * self._unit_ns

    def _apply(self) -> None:
        """File the arrivals in the timer, then the changes."""
        if self._torn:
            self._repair()
        if self._arrivals:
            entries = self._arrivals.copy()
            new = [call for call in entries if call._args is not CANCELLED and not call._handle]
            if new:
                self._file(new)
            del self._arrivals[: len(entries)]
        if self._changes:
            entries = self._changes.copy()
            # Calls without a handle are still among the arrivals.
            cancelled = [
                call._handle for call in entries if call._args is CANCELLED and call._handle
            ]
            if cancelled:
                self._remove(cancelled)
            if len(cancelled) < len(entries):
                rest = dict.fromkeys(entries)
                self._refile([call for call in rest if call._handle and not _is_done(call)])
            del self._changes[: len(entries)]

    def _file(self, calls: list[Entry]) -> None:
        """Schedule calls that are not in the timer."""
        moments = [call._moment for call in calls]
        if len(calls) <= _FEW:
            handles = [self._timer.schedule(self._unit_of(moment)) for moment in moments]
        else:
            handles = self._timer.schedule_many(self._units_of(moments)).tolist()
        places = [handle & PLACE_MASK for handle in handles]
        needed = max(places) + 1
        # Each by itself: an earlier attempt may have been interrupted between the two.
        self._calls.extend(repeat(None, needed - len(self._calls)))
        self._armed.extend(repeat(0, needed - len(self._armed)))
        table, armed = self._calls, self._armed
        late: list[int] = []
        for call, moment, handle, place in zip(calls, moments, handles, places, strict=True):
            table[place] = call
            armed[place] = moment
            call._handle = handle
            if call._args is CANCELLED:
                late.append(handle)
        if late:
            self._remove(late)

    def _refile(self, calls: list[Entry]) -> None:
        """Give re-armed calls their new deadline; those that left the timer are filed anew."""
        if not calls:
            return
        handles = [call._handle for call in calls]
        moments = [call._moment for call in calls]
        if len(calls) <= _FEW:
            pairs = zip(handles, moments, strict=True)
            found = [self._timer.reschedule(h, self._unit_of(moment)) for h, moment in pairs]
        else:
            found = self._timer.reschedule_many(
                np.array(handles, np.int64), self._units_of(moments)
            ).tolist()
        left = []
        for call, moment, handle, there in zip(calls, moments, handles, found, strict=True):
            if there:
                self._armed[handle & PLACE_MASK] = moment
            else:
                left.append(call)
        if left:
            self._file(left)

    def _remove(self, handles: list[int]) -> None:
        """Cancel calls in the timer; those that left it by themselves are passed over."""
        if len(handles) <= _FEW:
            found = [self._timer.cancel(handle) for handle in handles]
        else:
            found = self._timer.cancel_many(np.fromiter(handles, np.int64, len(handles))).tolist()
        table = self._calls
        for handle in compress(handles, found):
            table[handle & PLACE_MASK] = None

    def _repair(self) -> None:
        """File again what an interruption lost between the timer and `_ready`."""
        calls = [call for call in self._calls if call is not None]
        self._refile([call for call in calls if not _is_done(call)])
        self._torn = False

    def _cancel_all(self) -> None:
        """Cancel every pending call, and leave the timer and the mailbox empty."""
        waiting = [call for call, _ in self._ready]
        for call in [*self._arrivals, *self._calls, *self._changes, *waiting]:
            if call is not None:
                call.cancel()
        self._apply()

    def _unit_of(self, moment: int) -> int:
        """The first unit that does not begin before `moment`."""
        unit = -((self._origin - moment) // self._unit_ns)
        return self._start_unit + min(max(unit, 0), LIMIT - self._start_unit)

    def _units_of(self, moments: list[int]) -> Int64s:
        """`_unit_of` for each moment."""
        try:
            array = np.fromiter(moments, np.int64, len(moments))
        except OverflowError:  # the clock has nearly reached its end
            array = np.array([min(moment, LIMIT) for moment in moments], np.int64)
        to_units(array, self._origin, self._unit_ns, self._start_unit)
        return array


def _checked(context: Any) -> Context:
    if not isinstance(context, Context):
        raise CallbackError(f"context must be a Context, not {shown(context)}")
    return context


def _is_done(call: Entry) -> bool:
    return call._args is CANCELLED or call._args is FIRED
