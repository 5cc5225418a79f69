"""`AsyncTimer`: calls, timeouts and sleeps on an asyncio loop, with one loop timer for them all."""

import asyncio
import math
import time
from asyncio import CancelledError, Task, current_task, get_running_loop
from collections.abc import Awaitable, Callable
from functools import wraps
from math import floor
from threading import get_ident
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from timers.limits import LIMIT
from timers.protocol import Timer
from timers.services.calls import (
    AWAKE,
    CLOSED,
    NO_HANDLE,
    BoundEntry,
    Callback,
    CallTimer,
    no_callback,
)
from timers.services.errors import ServiceClosedError, ServiceStateError
from timers.services.moments import NS_PER_S, moment_ns, seconds_ns
from timers.validation import shown

Given = ParamSpec("Given")
Result = TypeVar("Result")

_NEVER = CLOSED - 1  # the alarm when nothing is armed: any call is earlier
_FOREVER = LIMIT - 1  # the moment of a timeout that has lost its deadline; this very object
_CREATED, _ENTERED, _EXITED = "created", "active", "done"
_EXPIRING, _EXPIRED = "expiring", "expired"


class _LoopClock:
    """The time of a loop, in nanoseconds."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._time = loop.time

    def now(self) -> int:
        return floor(self._time() * 1e9)

    def wall(self) -> int:
        return time.time_ns()


def _on_its_loop(
    method: Callable[Concatenate[Any, Given], Result],
) -> Callable[Concatenate[Any, Given], Result]:
    """The method, with a ServiceStateError where its AsyncTimer's loop does not run."""

    @wraps(method)
    def checked(self: Any, /, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        self._check_loop()
        return method(self, *args, **kwargs)

    return checked


class AsyncTimer(CallTimer):
    """Calls and timeouts on an asyncio loop, of which only the next expiry is known to the loop.

    `timer` is any empty timer of the registry, or one of your own; the service owns it from now on.
    One unit is `unit_ns` nanoseconds, and deadlines are rounded up to a unit. All methods, also of
    calls and timeouts, are called on the loop's thread, while the loop runs. Elsewhere, whatever
    schedules, reschedules, waits or asks for the size raises ServiceStateError; from another
    thread, use `loop.call_soon_threadsafe`. Callbacks run in the loop. An exception in one goes to
    the loop's exception handler, except that SystemExit and KeyboardInterrupt end the loop, as in
    asyncio.

    >>> import asyncio
    >>> from timers import HierarchicalWheel
    >>> from timers.services import AsyncTimer
    >>> async def main():
    ...     with AsyncTimer(HierarchicalWheel()) as timer:
    ...         call = timer.schedule_after(0.001, print, "called")
    ...         await timer.sleep(0.01)
    ...         try:
    ...             async with timer.timeout(0.01):
    ...                 await asyncio.sleep(3600)
    ...         except TimeoutError:
    ...             print("timed out")
    >>> asyncio.run(main())
    called
    timed out

    Raises:
        ServiceStateError: if no loop runs.
        ParameterError: for a timer that is not empty, or another `unit_ns` than 1 .. 10**18.
    """

    def __init__(self, timer: Timer, *, unit_ns: int = 1_000_000) -> None:
        try:
            self._loop = get_running_loop()
        except RuntimeError:
            raise ServiceStateError("AsyncTimer must be made while its loop runs") from None
        super().__init__(timer, unit_ns, _LoopClock(self._loop))
        self._time = self._loop.time
        self._thread = get_ident()  # in which the loop was last seen to run
        self._alarm = _NEVER
        self._armed_handle: asyncio.TimerHandle | None = None  # of the loop, for the next expiry

    schedule_after = _on_its_loop(CallTimer.schedule_after)
    schedule_every = _on_its_loop(CallTimer.schedule_every)

    # For `schedule_at`, and for calls that are rescheduled.
    _moment_at = _on_its_loop(CallTimer._moment_at)
    _moment_after = _on_its_loop(CallTimer._moment_after)

    @property
    def size(self) -> int:
        """The number of pending calls, and of timeouts with a deadline whose body is running.

        Calls that are due but have not started count; a periodic call does not count while it runs.
        """
        self._check_loop()
        return super().size

    def timeout(self, delay: float | None) -> "Timeout":
        """An asynchronous context manager that cancels its body after `delay` seconds.

        It behaves as `asyncio.timeout`: the cancellation becomes a TimeoutError outside the body;
        None never expires; what has passed expires in the loop's next iteration.

        Raises:
            TimeTypeError, TimeRangeError: for what is not a number, and for NaN.
        """
        if type(delay) is float and 0.0 < delay < 1e6:
            timeout = Timeout()
            timeout._service, timeout._state = self, _CREATED
            timeout._moment = floor((self._time() + delay) * 1e9)
            return timeout
        if delay is None:
            return self._timeout_at(None)
        now = self._now()
        moment = now + seconds_ns(delay, "delay", "seconds or None")
        return self._timeout_at(min(max(moment, 0), LIMIT), now)

    def timeout_at(self, moment: float | None) -> "Timeout":
        """As `timeout`, with an absolute time of the loop; behaves as `asyncio.timeout_at`."""
        if moment is None:
            return self._timeout_at(None)
        return self._timeout_at(moment_ns(moment, self._clock), self._now())

    def _timeout_at(self, moment: int | None, now: int = 0) -> "Timeout":
        timeout = Timeout() if moment is None or moment > now else _PassedTimeout()
        timeout._service, timeout._state, timeout._moment = self, _CREATED, moment
        return timeout

    async def sleep(self, delay: float, result: Any = None) -> Any:
        """Sleep for `delay` seconds and return `result`; behaves as `asyncio.sleep`.

        A delay of 0 or less lets other tasks run once.

        Raises:
            TimeTypeError, TimeRangeError: for what is not a number, and for NaN.
        """
        self._check_loop()
        _check_number(delay, "delay", "seconds")
        if delay <= 0:
            await asyncio.sleep(0)
            return result
        future = self._loop.create_future()
        call = self.schedule_after(delay, _wake_future, future)
        try:
            await future
        finally:
            call.cancel()
        return result

    async def wait_for(self, awaitable: Awaitable[Result], timeout: float | None) -> Result:
        """Wait for `awaitable` and return its result; behaves as `asyncio.wait_for`.

        After `timeout` seconds the awaitable is cancelled, and when its cancellation has ended,
        TimeoutError is raised. None waits without limit. With a timeout of 0 or less, the result
        must be there already.

        Raises:
            TimeoutError: if the time was up.
            TimeTypeError, TimeRangeError: for what is not a number, and for NaN.
        """
        if timeout is not None:
            _check_number(timeout, "timeout", "seconds or None")
        if timeout is None or timeout > 0:
            async with self.timeout(timeout):
                return await awaitable
        self._check_loop()
        future = asyncio.ensure_future(awaitable)
        if future.done():
            return future.result()  # a cancellation from elsewhere stays one
        future.cancel()
        await asyncio.wait([future])
        try:
            return future.result()
        except CancelledError as error:
            raise TimeoutError from error

    def close(self) -> None:
        """Cancel every pending call, also those of timeouts, and refuse new ones.

        Timeouts whose body is running never expire then, and pending sleeps never end by
        themselves. Closing again is legal.
        """
        self._closed = True
        self._alarm = CLOSED
        if self._armed_handle is not None:
            self._armed_handle.cancel()
            self._armed_handle = None
        if self._is_filing():  # in a finalizer that our own filing ran
            self._loop.call_soon(self.close)
            return
        with self._lock:
            self._cancel_all()

    def _check_loop(self) -> None:
        try:
            if get_running_loop() is self._loop:
                self._thread = get_ident()
                return
        except RuntimeError:
            pass
        state = "is closed" if self._loop.is_closed() else "is not the one that runs here"
        raise ServiceStateError(f"the loop of this AsyncTimer {state}")

    # Driving

    def _wake(self) -> None:
        """Have the loop call `_turn` at the earliest moment of the mailbox or the timer."""
        if self._closed:
            return
        if self._is_filing():  # in a finalizer that our own filing ran
            self._loop.call_soon(self._turn)
        else:
            with self._lock:
                self._apply()
                self._arm()

    def _arm(self) -> None:
        """Have the loop call `_turn` at the next expiry, and publish that as the alarm."""
        if self._armed_handle is not None:
            self._armed_handle.cancel()
            self._armed_handle = None
        moment = self._next_expiry()
        if moment is None:
            self._alarm = _NEVER
        else:
            self._alarm = moment - self._unit_ns + 1
            self._armed_handle = self._loop.call_at(moment / NS_PER_S, self._turn)

    def _turn(self) -> None:
        """Run what is due."""
        if self._closed:
            return
        self._armed_handle = None
        self._alarm = AWAKE
        try:
            with self._lock:
                self._collect()
            self._run_ready()
        finally:
            self._wake()
            # If an exit left through a callback, the loop may run again.
            if self._ready and not self._closed:
                self._loop.call_soon(self._turn)

    def _report(self, callback: Callback | None, error: BaseException) -> None:
        message = f"Exception in callback {shown(callback)} of AsyncTimer"
        self._loop.call_exception_handler({"message": message, "exception": error})


class Timeout(BoundEntry):
    """Cancels the body of its `async with` at a deadline; made by `AsyncTimer.timeout`.

    The methods are those of `asyncio.Timeout`. It is an entry of the mailbox itself, and holds its
    token while it has a deadline.
    """

    __slots__ = ("_cancelling", "_state", "_task")

    _service: AsyncTimer
    _moment: int | None  # type: ignore[assignment]  # None if it has had no deadline yet
    _state: str
    _task: Task[Any] | None  # within the body
    _cancelling: int  # requests to cancel the task when the body was entered

    def when(self) -> float | None:
        """The deadline in seconds of `loop.time()`; None if it never expires."""
        moment = self._moment
        return None if moment is None or moment is _FOREVER else moment / NS_PER_S

    def expired(self) -> bool:
        """Whether the deadline has passed within the body."""
        return self._state is _EXPIRING or self._state is _EXPIRED

    def reschedule(self, when: float | None) -> None:
        """Change the deadline, in seconds of `loop.time()`; None never expires.

        Raises:
            RuntimeError: before the body was entered, and after the deadline or the end of it.
            TimeTypeError, TimeRangeError: for what is not a number, and for NaN.
        """
        self._service._check_loop()
        if self._state is _CREATED:
            raise ServiceStateError("the timeout has not been entered")
        if self._state is not _ENTERED:
            raise ServiceStateError(f"the timeout is {self._state}; it cannot be rescheduled")
        moment = _FOREVER if when is None else moment_ns(when, self._service._clock)
        self._moment = moment
        if hasattr(self, "_callback"):
            self._service._rearmed(self)
        elif moment is not _FOREVER:
            self._arm(moment)
        self._hurry(moment)

    def __repr__(self) -> str:
        return f"<Timeout {self._state} when={self.when()}>"

    async def __aenter__(self) -> Self:
        if self._state is not _CREATED:
            raise ServiceStateError("a timeout can be entered only once")
        service = self._service
        # This also tells which task runs in another thread. `get_running_loop` would cost a system
        # call in CPython 3.11, so the thread is looked at first.
        task: Task[Any] | None = current_task(service._loop)
        if task is None or get_ident() != service._thread:
            service._check_loop()
        if task is None:
            raise ServiceStateError("a timeout must be used inside a task")
        if service._closed:
            raise ServiceClosedError("AsyncTimer is closed")
        self._task = task
        self._cancelling = task.cancelling()
        self._state = _ENTERED
        if self._moment is not None:
            self._arm(self._moment)
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        task = self._task
        self._task = None  # the mailbox may hold this entry for a while
        if self._state is _ENTERED:
            self._state = _EXITED
            self.cancel()
        else:
            self._state = _EXPIRED
            # Only what this timeout cancelled becomes a TimeoutError: a request from elsewhere to
            # cancel the task stays one.
            if task.uncancel() <= self._cancelling and isinstance(error, CancelledError):  # type: ignore[union-attr]  # within the body
                raise TimeoutError from error

    def _arm(self, moment: int) -> None:
        service = self._service
        self._callback, self._args, self._context = no_callback, (), None
        self._handle = NO_HANDLE
        arrivals = service._arrivals
        arrivals.append(self)
        if moment < service._alarm or len(arrivals) > service._limit:
            service._attend(self)
            self._hurry(moment)

    def _hurry(self, moment: int) -> None:
        """Do not let what has passed wait for the next unit."""
        if moment <= self._service._now():
            self._service._loop.call_soon(self._fire, moment)

    def _fire(self, armed: int) -> None:
        if self._moment is armed and self.cancel():
            self._state = _EXPIRING
            self._task.cancel()  # type: ignore[union-attr]  # within the body


class _PassedTimeout(Timeout):
    """A timeout whose deadline had passed when it was made; a class, so that others need no test.

    An alarm may be set for the end of the present unit, so that `_arm` does not look at the clock.
    """

    __slots__ = ()

    def _arm(self, moment: int) -> None:
        super()._arm(moment)
        self._hurry(moment)


def _check_number(value: Any, name: str, types: str) -> None:
    """Raise for NaN and for what is not a number."""
    if type(value) is not float or math.isnan(value):
        seconds_ns(value, name, types)


def _wake_future(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
