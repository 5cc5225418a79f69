"""Calls that wait for their deadline, and the methods by which services make them."""

from contextvars import Context, copy_context
from math import floor
from types import CoroutineType
from typing import Any, Literal

from timers.errors import ParameterError, TimeRangeError
from timers.limits import LIMIT
from timers.services.clock import NS_PER_S, QUICK_DURATION, duration_ns, moment_ns
from timers.services.errors import CallbackError
from timers.services.mailbox import (
    CANCELLED,
    MAILBOX_LIMIT,
    NO_HANDLE,
    PENDING,
    STARTED,
    Args,
    Callback,
    Entry,
    Mailbox,
    Work,
)
from timers.validation import shown

Missed = Literal["skip", "burst", "delay"]


class ScheduledCall(Entry):
    """A call that waits for its deadline; made by the `schedule_` methods of a service.

    Dropping it does not cancel the call. All methods may be called from any thread.
    """

    __slots__ = ("_args", "_callback", "_context", "_mailbox")

    _mailbox: Mailbox
    _callback: Callback  # the token: unset once the call is done
    _args: Args
    _context: Context | None  # None for an empty one, which is made when the call starts

    def cancel(self) -> bool:
        """Cancel the call and drop its callback and arguments at once.

        True exactly if the call will not run: False if it has started or was cancelled already. For
        a periodic call, True exactly if it will not start again. O(1).
        """
        mailbox = self._mailbox
        if self._handle and len(mailbox.entries) >= MAILBOX_LIMIT:
            mailbox.make_room()
        try:
            del self._callback  # the token
        except AttributeError:
            return False
        self._state, self._args, self._context = CANCELLED, (), None
        if self._handle:
            try:
                mailbox.entries.append(self)
            except MemoryError:
                mailbox.unsettled = True  # the next `apply` finds it
        return True

    def reschedule(self, moment: Any) -> bool:
        """Give the call a new deadline: the clock's seconds or an aware datetime.

        True exactly if the former deadline will not fire. False if the call has started or was
        cancelled; it is not revived. A periodic call goes on from the new deadline, also if it is
        running.

        Raises:
            TimeTypeError, TimeRangeError: for what is not a moment.
        """
        return self._move(moment_ns(moment, self._mailbox.clock))

    def reschedule_after(self, delay: Any) -> bool:
        """Give the call a new deadline `delay` seconds (or a timedelta) from now; see `reschedule`.

        Raises:
            TimeTypeError, TimeRangeError: for what is not a duration of at least 0.
        """
        return self._move(min(self._mailbox.now() + duration_ns(delay, "delay"), LIMIT))

    def when(self) -> float:
        """The deadline in the clock's seconds.

        While a periodic call runs, the one for which it runs, or the next one if it was moved.
        """
        return self._moment / NS_PER_S

    def done(self) -> bool:
        """Whether the call has started or was cancelled; a periodic call is done when cancelled."""
        return not hasattr(self, "_callback")

    def cancelled(self) -> bool:
        """Whether the call was cancelled."""
        return self._state == CANCELLED

    def __repr__(self) -> str:
        state = "cancelled" if self.cancelled() else "done" if self.done() else "pending"
        return f"<{type(self).__name__} {state} at {self.when():.9g} s>"

    def _move(self, moment: int) -> bool:
        mailbox = self._mailbox
        if len(mailbox.entries) >= MAILBOX_LIMIT:
            mailbox.make_room()
        with mailbox.lock:
            if self._handle and self._state == PENDING:
                mailbox.entries.append(self)
            if moment < mailbox.alarm[0]:
                mailbox.hurry()
            if self._state != PENDING:
                return False
            self._moment = moment
        return True

    def _begin(self, moment: int) -> bool:
        if self._moment != moment:  # no call, so no handler that moves it, comes before the `del`
            return False
        try:
            work = self._callback, self._args, self._context
            del self._callback  # the token
        except AttributeError:
            return False
        self._state, self._args, self._context = STARTED, work, None
        return True

    def _work(self) -> Work | None:
        work, self._args = self._args, ()
        return work


class PeriodicCall(ScheduledCall):
    """A call that runs once per period, made by `schedule_every`; it never overlaps itself."""

    __slots__ = ("_missed", "_moved", "_period")

    _period: int  # nanoseconds
    _missed: Missed
    _moved: bool  # whether it was given its next deadline while it ran

    def cancelled(self) -> bool:
        """Whether the call was cancelled."""
        return self.done()

    def _move(self, moment: int) -> bool:
        if super()._move(moment):
            return True
        with self._mailbox.lock:
            if self._state != STARTED or self.done():
                return False
            self._moment, self._moved = moment, True
        return True

    def _begin(self, moment: int) -> bool:
        # The token stays: a cancellation from now on counts for the runs that follow.
        if self.done() or self._state != PENDING or self._moment != moment:
            return False
        self._state = STARTED
        return True

    def _work(self) -> Work | None:
        args = self._args  # before the token: whoever cancels drops them after it
        try:
            return self._callback, args, self._context
        except AttributeError:
            return None

    def _finish(self) -> None:
        """File the call for its next deadline, unless it was cancelled or the service is closed."""
        mailbox, now = self._mailbox, self._mailbox.now()
        with mailbox.lock:
            if self._state != STARTED:
                return
            moment = self._moment if self._moved else self._following(now)
            if moment < mailbox.alarm[0]:
                mailbox.hurry()
            mailbox.entries.append(self)
            self._moment, self._moved, self._state = moment, False, PENDING
            if self.done():  # whoever cancelled it may have seen another state
                self._state = CANCELLED
        if mailbox.closed:
            self.cancel()

    def _following(self, now: int) -> int:
        moment, period = self._moment, self._period
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
    """What the services that run calls have in common."""

    _mailbox: Mailbox

    def schedule_after(
        self, delay: Any, callback: Callback, *args: Any, context: Context | None = None
    ) -> ScheduledCall:
        """Run `callback(*args)` after `delay` seconds (or a timedelta) and return the call.

        The deadline is rounded up to a unit. The callback runs in `context`, or in a copy of the
        current one. O(1).

        Raises:
            TimeTypeError, TimeRangeError: for what is not a duration of at least 0.
            CallbackError: if the callback is not callable, or `context` is not a Context.
            ServiceClosedError: after `close`.
        """
        if (type(delay) is float or type(delay) is int) and 0.0 <= delay <= QUICK_DURATION:
            duration = floor(delay * 1e9 + 0.5)
        else:
            duration = duration_ns(delay, "delay")
        mailbox = self._mailbox
        moment = mailbox.now() + duration
        if context is not None or not callable(callback):
            return self._post(ScheduledCall(), moment, callback, args, context)
        # The rest of `_post`, in line: each call of a function would take a tenth of the time.
        call = ScheduledCall()
        call._mailbox, call._callback, call._args = mailbox, callback, args
        # An empty context is made when it is needed: it would take memory.
        call._context = copy_context() or None
        call._moment, call._handle, call._state = moment, NO_HANDLE, PENDING
        entries = mailbox.entries
        if len(entries) >= MAILBOX_LIMIT:
            mailbox.make_room()
        entries.append(call)
        if mailbox.closed:
            mailbox.refuse(call)
        if moment < mailbox.alarm[0]:
            mailbox.hurry()
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
        when = moment_ns(moment, self._mailbox.clock)
        return self._post(ScheduledCall(), when, callback, args, context)

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
        call._period, call._missed, call._moved = period_ns, missed, False
        # One context for all runs, even if it is empty: what a run sets, the next one sees.
        kept = copy_context() if context is None else context
        return self._post(call, self._mailbox.now() + period_ns, callback, args, kept)

    def time(self) -> float:
        """The clock's present time in seconds: what `schedule_at` and `when` count in."""
        return self._mailbox.now() / NS_PER_S

    @property
    def size(self) -> int:
        """The number of pending calls, exact whenever no method call is in progress.

        Calls that are due but have not started count; a periodic call does not count while it runs.
        """
        return self._mailbox.size()

    def _report(self, callback: Any, error: BaseException) -> None:
        """Handle an exception of a callback."""
        raise NotImplementedError

    def _run(self, entry: Entry, propagate: bool = True) -> None:
        """Run an entry; exceptions are reported, except that exits may `propagate`."""
        work = entry._work()
        try:
            if work is not None:
                callback, args, context = work
                result = (Context() if context is None else context).run(callback, *args)
                if type(result) is CoroutineType:
                    result.close()
                    raise CallbackError(f"{shown(callback)} is async, so nothing of it ran")
        except BaseException as error:
            if propagate and isinstance(error, (SystemExit, KeyboardInterrupt)):
                raise
            self._report(callback, error)
        finally:
            entry._finish()

    def _post(
        self, call: ScheduledCall, due: int, callback: Callback, args: Args, context: Context | None
    ) -> ScheduledCall:
        if not callable(callback):
            raise CallbackError(f"the callback must be callable, not {shown(callback)}")
        if context is not None and not isinstance(context, Context):
            raise CallbackError(f"context must be a Context, not {shown(context)}")
        mailbox = self._mailbox
        call._mailbox, call._callback, call._args = mailbox, callback, args
        call._context = (copy_context() or None) if context is None else context
        call._moment, call._handle, call._state = due, NO_HANDLE, PENDING
        mailbox.post(call)
        return call
