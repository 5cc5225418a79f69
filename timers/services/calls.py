"""Calls that wait for their deadline, and the methods by which services make and run them."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from math import floor
from typing import Any, Literal, TypeVarTuple, Unpack

from timers.errors import ParameterError, TimeRangeError
from timers.limits import LIMIT
from timers.services.call_runner import CallRunner
from timers.services.clock import NS_PER_S, QUICK_DURATION, delay_ns, duration_ns, moment_ns
from timers.services.errors import CallbackError
from timers.services.pending import (
    BATCH,
    CANCELLED,
    FINISHED,
    PENDING,
    STARTED,
    UNFILED,
    Entry,
    Pending,
    release,
    wait_for,
)
from timers.validation import shown

Missed = Literal["skip", "burst", "delay"]
Callback = Callable[..., object]
Args = tuple[Any, ...]
Ts = TypeVarTuple("Ts")

ROOM_S = 0.001  # between two looks of a caller that waits


class ScheduledCall(Entry):
    """A call that waits for its deadline; made by the `schedule_` methods of a service.

    Dropping it does not cancel the call. All methods may be called wherever those of the service
    may.
    """

    __slots__ = ("_args", "_callback", "_context", "_pending")

    _pending: Pending
    _callback: Callback | None  # None once the call is done
    _args: Args
    _context: Context | None  # None for an empty one, which is made when the call starts

    def cancel(self) -> bool:
        """Cancel the call and drop its callback and arguments at once.

        True if and only if the call will not run: False if it has started or was cancelled already.
        For a periodic call, True if and only if it will not start again. O(1).
        """
        pending = self._pending
        # `pending.leave(self, CANCELLED)` in line: the call would take a tenth of the time.
        if pending.shared:
            lock = pending.lock
            try:
                lock.acquire()
                cancelled = self._state == PENDING
                if cancelled:
                    self._state, handle = CANCELLED, self._handle
                    if handle:
                        pending.filed -= 1
                        if handle > 0:
                            pending.remove(handle)
                    if pending.ending:
                        pending.alarm = pending.wake(pending.latest)
            except BaseException:
                release(lock)
                raise
            lock.release()
        elif cancelled := self._state == PENDING:
            self._state, handle = CANCELLED, self._handle
            if handle:
                pending.filed -= 1
                if handle > 0:
                    pending.remove(handle)
        if cancelled:
            # Without the lock: finalizers may run.
            self._callback, self._args, self._context = None, (), None
        return cancelled

    def reschedule(self, moment: Any) -> bool:
        """Give the call a new deadline: the clock's seconds or an aware datetime.

        True if and only if the former deadline will not fire. False if the call has started or was
        cancelled; it is not revived. A periodic call goes on from the new deadline, also if it is
        running.

        Raises:
            TimeTypeError, TimeRangeError: for what is not a moment.
        """
        return self._move(moment_ns(moment, self._pending.clock))

    def reschedule_after(self, delay: Any) -> bool:
        """Give the call a new deadline `delay` seconds (or a timedelta) from now; see `reschedule`.

        Raises:
            TimeTypeError, TimeRangeError: for what is not a finite duration.
        """
        return self._move(min(self._pending.now() + delay_ns(delay), LIMIT))

    def when(self) -> float:
        """The deadline in the clock's seconds.

        While a periodic call runs, the one for which it runs, or the next one if it was moved.
        """
        return self._moment / NS_PER_S

    def done(self) -> bool:
        """Whether the call has started or was cancelled; a periodic call is done when cancelled."""
        return self._state != PENDING

    def cancelled(self) -> bool:
        """Whether the call was cancelled."""
        return self._state == CANCELLED

    def __repr__(self) -> str:
        state = "cancelled" if self.cancelled() else "done" if self.done() else "pending"
        return f"<{type(self).__name__} {state} at {self.when():.9g} s>"

    def _drop(self) -> None:
        """Drop what only a run needs, without the lock: finalizers may run."""
        self._callback, self._args, self._context = None, (), None

    def _move(self, moment: int) -> bool:
        pending = self._pending
        with pending.lock:
            if self._state != PENDING or not pending.move(self, moment):
                return False
            if len(pending.new) >= BATCH:
                pending.apply()
        return True

    def _begin(self) -> bool:
        """With the lock held, start the call; False if it was cancelled or moved."""
        return self._pending.begin(self)

    def _finish(self) -> None:
        """Follow the end of a run."""
        self._state = FINISHED
        self._drop()


class PeriodicCall(ScheduledCall):
    """A call that runs once per period, made by `schedule_every`; it never overlaps itself."""

    __slots__ = ("_missed", "_moved", "_period")

    _period: int  # nanoseconds
    _missed: Missed
    _moved: bool  # whether it was given its next deadline while it ran

    def cancel(self) -> bool:
        """Cancel the call: True if and only if it will not start again. O(1)."""
        with self._pending.lock:
            if self._state == CANCELLED:
                return False
            if self._state != PENDING:
                self._state = CANCELLED  # the end of the run drops the callback
                return True
            self._pending.leave(self, CANCELLED)
        self._drop()
        return True

    def done(self) -> bool:
        """Whether the call was cancelled."""
        return self._state == CANCELLED

    def _move(self, moment: int) -> bool:
        with self._pending.lock:
            if self._state == STARTED:
                self._moment, self._moved = moment, True
                return True
            if self._state == FINISHED:  # a handler interrupts the end of its run
                return self._pending.move(self, moment, FINISHED)
            return super()._move(moment)

    def _finish(self) -> None:
        """Set the next deadline, unless the call was cancelled or the service is closed."""
        pending, now = self._pending, self._moment
        try:
            now = pending.now()
        finally:  # a clock that fails does not end the series
            with pending.lock:
                if self._state in (STARTED, FINISHED):  # FINISHED after an interruption
                    self._state = FINISHED
                    moment, self._moved = self._following(now), False
                    pending.move(self, moment, FINISHED)
                    if pending.closed and self._state == PENDING:
                        pending.leave(self, CANCELLED)
            if self._state == CANCELLED:
                self._drop()

    def _following(self, now: int) -> int:
        moment, period = self._moment, self._period
        if self._moved:
            return moment
        match self._missed:
            case "burst":
                return moment + period
            case "delay":
                # After an early run, on a timer that rounds down, `now + period` may be due at
                # once, again and again.
                return max(moment, now) + period
            case _:
                return moment + period * max((now - moment) // period + 1, 1)


class CallScheduler:
    """Base class of the services that run calls."""

    _pending: Pending
    _runner: CallRunner
    _waits = False  # whether callers wait for room, instead of an error

    def schedule_after(
        self,
        delay: Any,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> ScheduledCall:
        """Run `callback(*args)` after `delay` seconds (or a timedelta) and return the call.

        A negative delay is due at once. The deadline is rounded up to a unit. The callback runs in
        `context`, or in a copy of the current one. O(1).

        Raises:
            TimeTypeError, TimeRangeError: for what is not a finite duration.
            CallbackError: if the callback is not callable, or `context` is not a Context.
            ServiceClosedError: after `close`.
            OverloadError: if `max_pending` calls are pending and the service refuses more.
        """
        if (type(delay) is float or type(delay) is int) and 0.0 <= delay <= QUICK_DURATION:
            duration = floor(delay * 1e9 + 0.5)
        else:
            duration = delay_ns(delay)
        pending = self._pending
        moment = pending.now() + duration
        if context is not None or not callable(callback):
            return self._post(ScheduledCall(), moment, callback, args, context)
        # The rest of `_post`, in line: each call of a function would take a tenth of the time.
        call = ScheduledCall()
        call._pending, call._callback, call._args = pending, callback, args
        # An empty context is made when it is needed: it would take memory.
        call._context = copy_context() or None
        call._moment, call._handle, call._state = moment, UNFILED, PENDING
        new = pending.new
        if len(new) >= BATCH:
            self._relieve()  # before this call is added, which may be cancelled next
        if pending.shared:
            lock = pending.lock
            try:
                if not lock.acquire(False):
                    wait_for(lock)
                special = moment < pending.alarm or pending.guarded
                if not special:
                    new.append(call)
            except BaseException:
                release(lock)
                raise
            lock.release()
        else:
            special = moment < pending.alarm or pending.guarded
            if not special:
                new.append(call)
        if special:
            self._admit((call,))
        return call

    def schedule_at(
        self,
        moment: Any,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> ScheduledCall:
        """Run `callback(*args)` at `moment`: the clock's seconds (see `time`) or an aware datetime.

        A moment that has passed is due at once. A datetime is converted once; later changes of the
        wall clock do not move the call.

        Raises:
            TimeTypeError, TimeRangeError: for what is not a moment, and for a naive datetime.
            CallbackError, ServiceClosedError, OverloadError: as `schedule_after`.
        """
        when = moment_ns(moment, self._pending.clock)
        return self._post(ScheduledCall(), when, callback, args, context)

    def schedule_every(
        self,
        period: Any,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        first: Any = None,
        missed: Missed = "skip",
        context: Context | None = None,
    ) -> ScheduledCall:
        """Run `callback(*args)` once per `period` seconds (or timedelta).

        The first run is after `first` seconds (or a timedelta), by default after one period. The
        phase is kept without drift and the call never overlaps itself. When a run ends after the
        next deadline, `missed` says what follows: "skip" goes on at the first deadline that has not
        passed, "burst" makes up for each one missed, "delay" waits a whole period from the end of
        the run. An exception does not end the series; `cancel` does. All runs share one context.

        Raises:
            TimeTypeError, TimeRangeError: for what is not a duration above 0.
            ParameterError: for another `missed`.
            CallbackError, ServiceClosedError, OverloadError: as `schedule_after`.
        """
        period_ns = duration_ns(period, "period")
        if not period_ns:
            raise TimeRangeError(f"period must be at least a nanosecond, not {shown(period)}")
        if missed not in ("skip", "burst", "delay"):
            raise ParameterError(f"missed must be skip, burst or delay, not {shown(missed)}")
        delay = period_ns if first is None else delay_ns(first, "first")
        call = PeriodicCall()
        call._period, call._missed, call._moved = period_ns, missed, False
        # One context for all runs, even if it is empty: what a run sets, the next one sees.
        kept = copy_context() if context is None else context
        return self._post(call, self._pending.now() + delay, callback, args, kept)

    def time(self) -> float:
        """The clock's present time in seconds: what `schedule_at` and `when` count in."""
        return self._pending.now() / NS_PER_S

    @property
    def size(self) -> int:
        """The number of pending calls.

        Calls that are due but have not started count; a periodic call does not count while it runs.
        Operations of purgatories count, too.
        """
        with self._pending.lock:
            self._pending.apply()
            return len(self._pending)

    def calls(self) -> list[ScheduledCall]:
        """The pending calls, soonest first. O(n log n) for n pending calls."""
        calls = [each for each in self._pending.entries() if isinstance(each, ScheduledCall)]
        return sorted(calls, key=ScheduledCall.when)

    def cancel_all(self) -> int:
        """Cancel all pending calls, and return how many; a periodic call that runs goes on.

        Operations of purgatories are not calls. O(pending).
        """
        return sum([call.cancel() for call in self.calls()])

    # New calls

    def _post(
        self, call: ScheduledCall, due: int, callback: Callback, args: Args, context: Context | None
    ) -> ScheduledCall:
        if not callable(callback):
            raise CallbackError(f"the callback must be callable, not {shown(callback)}")
        if context is not None and not isinstance(context, Context):
            raise CallbackError(f"context must be a Context, not {shown(context)}")
        call._pending, call._callback, call._args = self._pending, callback, args
        call._context = (copy_context() or None) if context is None else context
        call._moment, call._handle, call._state = due, UNFILED, PENDING
        self._admit((call,))
        return call

    def _admit(self, entries: Sequence[Entry]) -> None:
        """Make entries pending, if there is room, except those that are not pending any more.

        Raises ServiceClosedError, OverloadError.
        """
        pending = self._pending
        if pending.max_pending is None:
            lock = pending.lock
            try:
                lock.acquire()
                pending.add(entries)
            except BaseException:
                release(lock)
                raise
            lock.release()
        else:
            passes = self._waits and not self._may_wait()
            for entry in entries:
                while not self._add_one(entry, passes):
                    time.sleep(ROOM_S)
        if len(pending.new) >= BATCH:
            self._relieve()

    def _add_one(self, entry: Entry, passes: bool) -> bool:
        """Add an entry if there is room, or if it `passes` without; False if it has to wait."""
        pending = self._pending
        with pending.lock:
            if passes or entry._state != PENDING or not pending.is_full():
                pending.add((entry,))
                return True
        if not self._waits:
            pending.refuse_more()
        return False

    def _may_wait(self) -> bool:
        """Whether this thread may wait for the driver."""
        raise NotImplementedError

    def _relieve(self) -> None:
        """Apply what was gathered. If that fails, the driver tries again, and reports it."""
        pending = self._pending
        with pending.lock, suppress(MemoryError):
            if not pending.failed:
                pending.apply()
