"""`SystemTimer`: calls at their deadlines, in real time, from a thread of its own."""

import atexit
import logging
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from typing import Any, Literal, Self

from timers.errors import ParameterError
from timers.protocol import Timer
from timers.services.call_runner import CallRunner, check_executor
from timers.services.calls import ROOM_S, Callback, CallScheduler
from timers.services.clock import (
    NS_PER_S,
    Clock,
    ManualClock,
    MonotonicClock,
    after_fork,
    duration_ns,
)
from timers.services.errors import ServiceClosedError, ServiceStateError
from timers.services.pending import AWAKE, NEVER, Pending
from timers.validation import shown

logger = logging.getLogger("timers.services")

ErrorHook = Callable[[Callback | None, BaseException], object]

_MONOTONIC = MonotonicClock()
_SECONDS_AT_EXIT = 1.0  # for which interpreter exit waits for a callback that is running
_SECONDS_TO_END = 1.0  # at most, for a thread that runs no callback; beyond the timeout
_RETRY_S = 0.1  # after the timer itself failed, e.g. for lack of memory
_LATE_NS = 5_000_000  # from here on, callers let the driver go first
_SLOW_NS = 10_000_000  # a callback that takes longer does not hold up callers
_LOOKS = 50  # at most, of a caller that lets the driver go first


class SystemTimer(CallScheduler):
    """Runs callbacks at their deadlines, in real time.

    `timer` is any empty timer of the registry, or one of your own; the service owns it from now on,
    and its `now` when passed in corresponds to the current time. One unit of it is `unit_ns`
    nanoseconds; deadlines are rounded up to a unit, and on a timer that is declared exact nothing
    runs early. A daemon thread drives it. With `start=False` you do, by `advance_clock`, and with a
    ManualClock the clock does. Callbacks run one after the other, in the order of their deadlines,
    on the thread that drives, or in `executor` (of threads). Any thread may call any method.

    With `max_pending`, no more calls than that are pending. A caller of a `schedule_` method then
    waits until there is room (`overload="wait"`), or gets an OverloadError (`overload="refuse"`;
    always where you drive the service). Callbacks on the service's own thread, and finalizers and
    signal handlers that interrupt the service, never wait; their calls are accepted.

    An exception in a callback goes to `on_error(callback, exception)`, by default to the log
    "timers.services"; so does the error of an executor that refuses one. If the timer or the clock
    fails, the hook gets None for the callback. Where you drive the service, SystemExit and
    KeyboardInterrupt propagate. docs/services.md tells what happens when a service is dropped, when
    the process forks and when the interpreter exits.

    >>> from timers import HierarchicalWheel
    >>> from timers.services import ManualClock, SystemTimer
    >>> clock = ManualClock()
    >>> with SystemTimer(HierarchicalWheel(), clock=clock) as timer:
    ...     call = timer.schedule_after(0.2, print, "timed out")
    ...     also = timer.schedule_after(0.2, print, "never")
    ...     print(also.cancel(), timer.size)
    ...     clock.advance(0.2)
    True 1
    timed out

    Raises:
        ParameterError: for a timer that is not empty or belongs to another service, another
            `unit_ns` than 1 .. 10**18, a `max_pending` below 1, another `overload`, or what is not
            an executor, a clock or a hook.
        ServiceStateError: while the interpreter exits.
    """

    def __init__(
        self,
        timer: Timer,
        *,
        unit_ns: int = 1_000_000,
        executor: Executor | None = None,
        clock: Clock = _MONOTONIC,
        start: bool = True,
        on_error: ErrorHook | None = None,
        max_pending: int | None = None,
        overload: Literal["wait", "refuse"] = "wait",
    ) -> None:
        if _exiting:
            raise ServiceStateError("no SystemTimer can be started while the interpreter exits")
        check_executor(executor)
        if not callable(getattr(clock, "now", None)):
            raise ParameterError(f"clock must be a Clock, not {shown(clock)}")
        if on_error is not None and not callable(on_error):
            raise ParameterError(f"on_error must be callable, not {shown(on_error)}")
        if overload not in ("wait", "refuse"):
            raise ParameterError(f"overload must be wait or refuse, not {shown(overload)}")
        self._bell = _Bell()
        bell, this = self._bell, weakref.ref(self)
        wake = partial(_wake, bell, this)
        self._pending = Pending(
            timer, unit_ns, clock, wake, "SystemTimer", max_pending, shared=True
        )
        report = partial(_report, _log_error if on_error is None else on_error)
        self._runner = CallRunner(self._pending, report, executor)
        self._driving = threading.Lock()  # held by whoever advances a service without a thread
        self._driver = 0  # the thread that does
        self._manual = isinstance(clock, ManualClock)
        self._thread: threading.Thread | None = None
        _services.add(self)
        after_fork.add(self)
        atexit.unregister(_close_all)
        atexit.register(_close_all)  # again: functions that were registered earlier run after it
        if isinstance(clock, ManualClock):
            clock._attach(self)
        elif start:
            self._dropped = weakref.ref(self, lambda _: bell.ring(None))
            self._thread = threading.Thread(
                target=_drive, args=(bell, self._pending), name="SystemTimer", daemon=True
            )
            self._thread.start()
            self._runner.propagates = False
            self._waits = overload == "wait"
            bell.ring(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Close the service and cancel what is pending."""
        self.close()

    def advance_clock(self, timeout: Any = 0) -> int:
        """Run what is due; if that is nothing, wait up to `timeout` seconds for the next expiry.

        Returns the number of callbacks started. `timeout=None` waits without limit. On a
        ManualClock it never waits. For services made with `start=False`.

        Raises:
            TimeTypeError, TimeRangeError: for what is not a duration of at least 0.
            ServiceStateError: if a thread drives the service, or another call advances it now.
            ServiceClosedError: after `close`, unless it left something to run.
        """
        pending = self._pending
        limit = None if timeout is None else pending.now() + duration_ns(timeout, "timeout")
        if self._thread is not None:
            raise ServiceStateError("a thread drives this SystemTimer; make it with start=False")
        if pending.closed and not (pending.runs_rest and self.size):
            raise ServiceClosedError("SystemTimer is closed")
        return self._advance(limit)

    def close(
        self, pending: Literal["cancel", "wait"] = "cancel", timeout: float | None = None
    ) -> bool:
        """Refuse new calls, and cancel those that are pending or run them at their deadlines.

        With `pending="wait"`, a periodic call runs once more, and what is left after `timeout`
        seconds is cancelled. On a ManualClock it does not wait: `advance` runs the rest. Returns
        whether the service has ended: False if its thread still runs a callback after `timeout`. In
        a callback on that thread, and while another call advances the service, it is False at once.
        Callbacks in an executor do not count. Closing again is legal; `close()` ends a wait.

        Raises:
            ParameterError: for another `pending`.
            TimeTypeError, TimeRangeError: for a timeout that is not a duration of at least 0.
        """
        if pending not in ("cancel", "wait"):
            raise ParameterError(f"pending must be cancel or wait, not {shown(pending)}")
        seconds = None if timeout is None else duration_ns(timeout, "timeout") / NS_PER_S
        interrupts = self._pending.is_held
        self._pending.close(runs_rest=pending == "wait")
        self._bell.ring(self)
        if interrupts:
            return False
        if self._thread is None:
            return self._finish_without_thread(seconds)
        if self._thread is threading.current_thread():
            return False
        self._thread.join(seconds)
        if self._thread.is_alive() and self._pending.runs_rest:
            return self.close("cancel", timeout=0)
        if self._runner.running_since == NEVER:
            self._thread.join(_SECONDS_TO_END)
        return not self._thread.is_alive()

    # Callers beside the driver

    def _may_wait(self) -> bool:
        return threading.current_thread() is not self._thread and not self._pending.is_held

    def _relieve(self) -> None:
        """Apply what was gathered. If the driver is late, let it go first: callers at full speed
        would keep it from the GIL, and from its work.
        """
        super()._relieve()
        with suppress(Exception):  # of the clock
            if self._is_late() and self._thread is not None and self._may_wait():
                self._let_driver_go()

    def _is_late(self) -> bool:
        """Whether the driver is late, and not because of a slow callback."""
        if self._pending.now() - self._runner.next_due < _LATE_NS:
            return False
        return time.monotonic_ns() - self._runner.running_since < _SLOW_NS

    def _let_driver_go(self) -> None:
        """Wait for a late driver, but not for long."""
        for _ in range(_LOOKS):
            time.sleep(ROOM_S)
            if not self._is_late():
                break

    # Driving

    def _has_ended(self, moment: int | None) -> bool:
        return self._pending.closed and (moment is None or not self._pending.runs_rest)

    def _turn(self) -> int | None:
        """Run what is due; returns the moment of the next turn, None if nothing is pending."""
        pending = self._pending
        now, arrived = pending.now(), False
        while not arrived:
            with pending.lock:
                pending.alarm = AWAKE
                arrived = pending.collect(now)
            while pending.due:
                self._runner.run_next()
        now = pending.now()
        with pending.lock:
            moment = pending.next_moment(now)
            self._runner.next_due = NEVER if moment is None else moment
        return moment

    def _advance(self, limit: int | None) -> int:
        """`advance_clock` until the moment `limit`."""
        if self._driving.locked() or self._pending.is_held:
            raise ServiceStateError("this SystemTimer is being advanced already")
        with self._driving:
            self._driver = threading.get_ident()
            return self._advance_until(limit)

    def _advance_until(self, limit: int | None) -> int:
        started = self._runner.started
        while True:
            moment = self._turn()
            now = self._pending.now()
            if self._runner.started > started or self._manual or self._has_ended(moment):
                return self._runner.started - started
            if limit is not None:
                if now >= limit:
                    return 0
                moment = limit if moment is None else min(moment, limit)
            _wait(self._bell, self._pending, moment)

    # What a ManualClock calls

    def _next_moment(self) -> int | None:
        if self._pending.is_held:
            raise ServiceStateError("the clock cannot advance while its SystemTimer is updated")
        now = self._pending.now()
        with self._pending.lock:
            return self._pending.next_moment(now)

    def _run_due(self) -> int:
        return self._advance(self._pending.now())

    # Closing

    def _finish_without_thread(self, seconds: float | None) -> bool:
        """The end of `close` where the caller drives the service."""
        if self._pending.runs_rest and not self._manual and not self._driving.locked():
            now = self._pending.now
            limit = None if seconds is None else now() + int(seconds * NS_PER_S)
            while self.size and (limit is None or now() < limit):
                self._advance(limit)
            if self.size:
                return self.close("cancel")
        return not self._driving.locked() and not self.size

    def _after_fork(self) -> None:
        """Close the copy in a forked child if its driver does not exist.

        What the forking thread holds stays held: its frames go on in the child and release it.
        """
        lock: Any = self._pending.lock
        filing = not lock.acquire(blocking=False)  # a thread that the child does not have
        if not filing:
            lock.release()
        driving = self._driving.locked() and self._driver != threading.get_ident()
        if driving:
            self._driving = threading.Lock()
        if self._thread is not None or filing or driving:
            self._thread, self._runner.propagates = None, True
            self._pending.abandon()


class _Bell:
    """Wakes the driver, also from finalizers and signal handlers, where an Event could deadlock.

    A SimpleQueue can miss the end of a timeout on CPython before 3.13, and then waits for ever.
    """

    def __init__(self) -> None:
        self._rung_by: deque[SystemTimer | None] = deque(maxlen=1)
        self._silence = threading.Lock()
        self._silence.acquire()

    def ring(self, service: SystemTimer | None) -> None:
        self._rung_by.append(service)
        with suppress(RuntimeError):  # it rings already
            self._silence.release()

    def wait(self, seconds: float = -1) -> None:
        """Wait until it rings, or for some seconds, perhaps less."""
        self._silence.acquire(timeout=seconds)

    def get(self) -> SystemTimer | None:
        """Wait until it rings, and return the service, or None if that has been dropped."""
        while not self._rung_by:
            self.wait()
        return self._rung_by.popleft()


def _wake(bell: _Bell, service: "weakref.ref[SystemTimer]", _: int) -> int:
    bell.ring(service())
    return AWAKE


def _drive(bell: _Bell, pending: Pending) -> None:
    """The thread of a service: run what is due, sleep until the next expiry.

    While nothing is pending, it does not keep the service alive.
    """
    service: SystemTimer | None = None
    try:
        while True:
            try:
                if service is None:
                    service = bell.get()
                if service is None or service._has_ended(0):
                    break
                moment = service._turn()
                if service._has_ended(moment):
                    break
                if moment is None:
                    service = None
                else:
                    _wait(bell, pending, moment)
            except BaseException as error:  # of the clock, or for lack of memory
                with suppress(BaseException):
                    if service is not None:
                        service._runner.report(None, error)
                    bell.wait(_RETRY_S)
    finally:
        pending.closed = pending.guarded = True


def _wait(bell: _Bell, pending: Pending, moment: int | None) -> None:
    """Wait until the bell rings, or until a moment."""
    if moment is None:
        bell.wait()
    elif (seconds := (moment - pending.now()) / NS_PER_S) > 0:
        bell.wait(min(seconds, threading.TIMEOUT_MAX))


def _report(on_error: ErrorHook, callback: Callback | None, error: BaseException) -> None:
    try:
        on_error(callback, error)
    except BaseException as failure:
        logger.error("the hook for errors raised, for %s", _name(callback), exc_info=failure)


def _log_error(callback: Callback | None, error: BaseException) -> None:
    if callback is None:
        logger.error("the timer of a SystemTimer failed", exc_info=error)
    else:
        logger.error("callback %s failed", _name(callback), exc_info=error)


def _name(callback: object) -> str:
    """Its name for the log; never raises, so that the code of a callback cannot end the driver."""
    try:
        return str(getattr(callback, "__qualname__", None) or shown(callback))
    except BaseException:
        return type(callback).__name__


_services: "weakref.WeakSet[SystemTimer]" = weakref.WeakSet()
_exiting = False


def _close_all() -> None:
    """At exit: calls that could never run are refused."""
    global _exiting
    _exiting = True
    for service in list(_services):
        service.close(timeout=_SECONDS_AT_EXIT)
