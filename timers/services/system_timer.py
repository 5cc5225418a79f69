"""`SystemTimer`: calls at their deadlines, in real time, from a thread of its own."""

import atexit
import logging
import os
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from contextvars import Context
from typing import Any, Literal

from timers.errors import ParameterError
from timers.protocol import Timer
from timers.services.calls import AWAKE, CLOSED, Args, Callback, CallTimer, Finish
from timers.services.clock import ManualClock, MonotonicClock, SteadyClock
from timers.services.errors import ServiceClosedError, ServiceStateError
from timers.services.moments import NS_PER_S, Clock, duration_ns
from timers.validation import shown

logger = logging.getLogger("timers.services")

ErrorHook = Callable[[Callback | None, BaseException], object]

_MONOTONIC = MonotonicClock()
_SECONDS_AT_EXIT = 1.0  # for which interpreter exit waits for a callback that is running
_RETRY_S = 0.1  # after the timer itself failed, e.g. for lack of memory


class SystemTimer(CallTimer):
    """Runs callbacks at their deadlines, in real time.

    `timer` is any empty timer of the registry, or one of your own; the service owns it from now on,
    and its `now` stands for the present moment. One unit of the timer is `unit_ns` nanoseconds. On
    a timer that is declared exact, nothing runs early. A timer that rounds down to ticks, such as
    HierarchicalWheel with a tick above 1, runs calls early by less than a tick.

    A daemon thread drives the timer; it sleeps until the next expiry. With `start=False` you drive
    it by `advance_clock`, and with a ManualClock the clock does. Callbacks run one after the other,
    in the order of their deadlines, on the thread that drives, or in `executor` (of threads).

    An exception in a callback goes to `on_error(callback, exception)`, by default to the log
    "timers.services", and the service goes on. SystemExit and KeyboardInterrupt do so as well on
    the service's own thread and in an executor, where nobody could catch them; where you drive,
    they propagate to you, and what else is due stays due. If the timer itself fails, the hook gets
    None in place of the callback.

    A forked child has no driver thread: its copy of the service is closed and its calls never run.
    A service that you drive goes on in both processes. When the interpreter exits, pending calls
    are cancelled; a callback that is running gets a second to end. The service relies on the GIL:
    on a free-threaded Python without it, the constructor raises ServiceStateError.

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
        ParameterError: for a timer that is not empty, or another `unit_ns` than 1 .. 10**18.
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
    ) -> None:
        if not getattr(sys, "_is_gil_enabled", lambda: True)():
            raise ServiceStateError("SystemTimer needs the GIL, which this Python runs without")
        self._steady: SteadyClock | None = None
        if not isinstance(clock, (MonotonicClock, ManualClock)):
            clock = self._steady = SteadyClock(clock)
        super().__init__(timer, unit_ns, clock)
        self._executor = executor
        self._on_error = _log_error if on_error is None else on_error
        self._logged: set[str] = set()  # what is logged only once, and has been
        self._runs_rest = False  # closed, but what is pending still runs
        self._started = 0  # callbacks
        self._bell = threading.Lock()  # released to wake the driver
        self._bell.acquire()
        self._driving = threading.Lock()  # held by whoever advances a service without a thread
        self._driver = 0  # the thread that does
        self._manual = isinstance(clock, ManualClock)
        self._thread: threading.Thread | None = None
        _services.add(self)
        if isinstance(clock, ManualClock):
            clock._attach(self)
        elif start:
            self._thread = threading.Thread(target=self._drive, name="SystemTimer", daemon=True)
            self._thread.start()

    def advance_clock(self, timeout: Any = 0) -> int:
        """Run what is due; if that is nothing, wait up to `timeout` seconds for the next expiry.

        Returns the number of callbacks started. `timeout=None` waits without limit. On a
        ManualClock it never waits. For services made with `start=False`.

        Raises:
            TimeTypeError, TimeRangeError: for what is not a duration of at least 0.
            ServiceStateError: if a thread drives the service, or another call advances it now.
            ServiceClosedError: after `close`, unless it left something to run.
        """
        limit = None if timeout is None else self._now() + duration_ns(timeout, "timeout")
        if self._thread is not None:
            raise ServiceStateError("a thread drives this SystemTimer; make it with start=False")
        if self._closed and not (self._runs_rest and self.size):
            raise ServiceClosedError("SystemTimer is closed")
        return self._advance(limit)

    def close(
        self, pending: Literal["cancel", "wait"] = "cancel", timeout: float | None = None
    ) -> bool:
        """Refuse new calls, and cancel those that are pending or run them at their deadlines.

        With `pending="wait"`, a periodic call runs once more, and what is left after `timeout`
        seconds is cancelled. On a ManualClock it does not wait: `advance` runs the rest. Returns
        whether the service has ended: False if a callback is still running after `timeout`, and
        False in a callback of this service, which never waits for itself. Closing again is legal;
        `close()` ends a wait.

        Raises:
            ParameterError: for another `pending`.
            TimeTypeError, TimeRangeError: for a timeout that is not a duration of at least 0.
        """
        if pending not in ("cancel", "wait"):
            raise ParameterError(f"pending must be cancel or wait, not {shown(pending)}")
        seconds = None if timeout is None else duration_ns(timeout, "timeout") / NS_PER_S
        first = not self._closed
        if self._is_filing():  # the driver, or another `close`, cancels what is pending
            self._shut(runs_rest=False)
            self._wake()
            return False
        with self._lock:
            self._shut(runs_rest=pending == "wait" and (first or self._runs_rest))
            if not self._runs_rest:
                self._cancel_all()
        self._wake()
        if self._thread is None:
            return self._finish_without_thread(seconds)
        if self._thread is threading.current_thread():
            return False
        self._thread.join(seconds)
        if self._thread.is_alive() and self._runs_rest:
            return self.close("cancel", timeout=0)
        return not self._thread.is_alive()

    # Driving

    def _drive(self) -> None:
        """The thread: run what is due, sleep until the next expiry."""
        while True:
            try:
                moment = self._prepare()
            except Exception as error:
                self._report(None, error)
                self._bell.acquire(timeout=_RETRY_S)
                continue
            if self._ready:
                self._run_ready()
            elif self._closed and (moment is None or not self._runs_rest):
                break
            else:
                self._sleep(moment)
        with self._lock:
            self._cancel_all()

    def _prepare(self) -> int | None:
        """Collect what is due; publish the moment of the next expiry as the alarm and return it."""
        with self._lock:
            self._set_alarm(AWAKE)
            self._collect()
            self._cancel_rest()
            moment = self._latest if self._ready else self._next_expiry()
            # Only moments that round up to an earlier unit than the next expiry ring the bell.
            self._set_alarm(CLOSED - 1 if moment is None else moment - self._unit_ns + 1)
            if self._arrivals or self._changes:  # came before the alarm was published
                self._set_alarm(AWAKE)
                moment = self._latest
        if self._steady is not None and self._steady.error is not None:
            error, self._steady.error = self._steady.error, None
            self._report(None, error)
        return moment

    def _set_alarm(self, alarm: int) -> None:
        if not self._closed:
            self._alarm = alarm

    def _sleep(self, moment: int | None) -> None:
        if moment is None:
            self._bell.acquire()
            return
        seconds = (moment - self._now()) / NS_PER_S
        if seconds > 0:
            self._bell.acquire(timeout=min(seconds, threading.TIMEOUT_MAX))

    def _wake(self) -> None:
        if self._bell.locked():
            with suppress(RuntimeError):  # another thread released it first
                self._bell.release()

    def _advance(self, limit: int | None) -> int:
        """`advance_clock` until the moment `limit`."""
        if self._is_filing() or not self._driving.acquire(blocking=False):
            raise ServiceStateError("this SystemTimer is being advanced already")
        try:
            self._driver = threading.get_ident()
            started = self._started
            while True:
                moment = self._prepare()
                self._run_ready()
                now = self._now()
                ended = self._closed and (moment is None or not self._runs_rest)
                if self._started > started or self._manual or ended:
                    return self._started - started
                if limit is not None:
                    if now >= limit:
                        return 0
                    moment = limit if moment is None else min(moment, limit)
                self._sleep(moment)
        finally:
            with self._lock:
                self._set_alarm(AWAKE)
            self._driver = 0
            self._driving.release()

    # What a ManualClock calls

    def _next_moment(self) -> int | None:
        if self._is_filing():
            raise ServiceStateError("the clock cannot advance while its SystemTimer files calls")
        with self._lock:
            self._apply()
            self._cancel_rest()
            return self._latest if self._ready else self._next_expiry()

    def _run_due(self) -> int:
        return self._advance(self._now())

    # Callbacks

    def _start(
        self, callback: Callback, args: Args, context: Context | None, finish: Finish = None
    ) -> None:
        self._started += 1
        if self._executor is None:
            self._run(callback, args, context, finish, propagate=self._thread is None)
            return
        try:
            self._executor.submit(self._run, callback, args, context, finish)
        except BaseException as error:
            if finish is not None:
                finish()
            if self._thread is None and isinstance(error, (SystemExit, KeyboardInterrupt)):
                raise
            self._log_once("refused", "the executor refused %s", _name(callback), error)

    def _report(self, callback: Callback | None, error: BaseException) -> None:
        try:
            self._on_error(callback, error)
        except BaseException as failure:
            self._log_once("hook", "the hook for errors raised, for %s", _name(callback), failure)

    def _log_once(self, what: str, message: str, name: str, error: BaseException) -> None:
        if what not in self._logged:
            self._logged.add(what)
            logger.error(message, name, exc_info=error)

    # Closing

    def _shut(self, runs_rest: bool) -> None:
        self._closed = True
        self._runs_rest = runs_rest
        self._alarm = CLOSED

    def _cancel_rest(self) -> None:
        """Cancel what is pending if a finalizer within our own filing has closed the service."""
        if self._closed and not self._runs_rest and (len(self._timer) or self._ready):
            self._cancel_all()

    def _finish_without_thread(self, seconds: float | None) -> bool:
        """The end of `close` where the caller drives the service."""
        if self._runs_rest and not self._manual and not self._driving.locked():
            limit = None if seconds is None else self._now() + int(seconds * NS_PER_S)
            while self.size and (limit is None or self._now() < limit):
                self._advance(limit)
            if self.size:
                return self.close("cancel")
        return not self._driving.locked() and not self.size

    def _after_fork(self) -> None:
        """Close the copy in a forked child if its driver does not exist; leave its calls alone.

        What the forking thread holds stays held: its frames go on in the child and release it.
        """
        filing = not self._lock.acquire(blocking=False)  # a thread that the child does not have
        if filing:
            self._lock = threading.RLock()
        else:
            self._lock.release()
        driving = self._driving.locked() and self._driver != threading.get_ident()
        if driving:
            self._driving = threading.Lock()
        if self._thread is not None or filing or driving:
            self._thread = None
            self._shut(runs_rest=False)


def _log_error(callback: Callback | None, error: BaseException) -> None:
    if callback is None:
        logger.error("the timer of a SystemTimer failed", exc_info=error)
    else:
        logger.error("callback %s raised", _name(callback), exc_info=error)


def _name(callback: object) -> str:
    """Its name for the log; never raises, so that the code of a callback cannot end the driver."""
    try:
        return str(getattr(callback, "__qualname__", None) or shown(callback))
    except BaseException:
        return type(callback).__name__


_services: "weakref.WeakSet[SystemTimer]" = weakref.WeakSet()


def _close_all() -> None:
    for service in list(_services):
        if service._thread is not None:
            service.close(timeout=_SECONDS_AT_EXIT)


def _after_fork_in_child() -> None:
    for service in list(_services):
        service._after_fork()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
