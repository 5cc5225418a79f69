"""`wheel_event_loop`: asyncio loops whose `call_later` and `call_at` go through a timer.

Everything that asyncio builds on these two (`asyncio.timeout`, `sleep`, `wait_for`, and the
libraries on top) uses the timer without a changed line. Of the loop, only documented methods are
overridden and used. It knows one call itself, the alarm at the next expiry of the timer. The
`call_later` and `call_at` of a loop call each other through `self`, in CPython and uvloop in
opposite directions; so both pass the alarm on.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from functools import cache
from math import floor
from typing import Any

from timers.limits import LIMIT
from timers.protocol import Timer
from timers.schemes.cascading_wheel import CascadingWheel
from timers.services.async_timer import LoopDriver
from timers.services.clock import QUICK_DURATION, seconds_ns
from timers.services.mailbox import CANCELLED, MAILBOX_LIMIT, NO_HANDLE, PENDING, STARTED

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def wheel_event_loop(
    timer_factory: Callable[[], Timer] = CascadingWheel,
    *,
    base: type[asyncio.AbstractEventLoop] | None = None,
    unit_ns: int = 100_000,
) -> LoopFactory:
    """A loop factory for `asyncio.Runner` and `asyncio.run`, whose loops keep their calls in a
    timer.

    `timer_factory` makes an empty timer for each loop; one unit of it is `unit_ns` nanoseconds, and
    deadlines are rounded up to a unit. `base` is the class of loop that runs everything else:
    asyncio's own, or another one whose `call_later` and `call_at` may be overridden, such as
    `uvloop.Loop`. Scheduling and cancelling are O(1) with a wheel, whatever the number of pending
    calls; asyncio's own heap takes O(log n).
    """
    chosen: Any = base or getattr(asyncio, "EventLoop", asyncio.SelectorEventLoop)
    loop_class = _wheel_class(chosen)
    return lambda: loop_class(timer_factory(), unit_ns)


class WheelHandle(asyncio.TimerHandle):
    """What `call_later` returns: also an entry of the loop's mailbox."""

    __slots__ = ("_handle", "_moment", "_state")

    def cancel(self: Any) -> None:
        """Cancel the call. O(1)."""
        loop = self._loop
        mailbox = loop.wheel
        if len(mailbox.entries) >= MAILBOX_LIMIT:
            mailbox.make_room()
        if loop.debugging and not self._cancelled:
            self._repr = repr(self)  # as asyncio does: the callback is dropped
        if self._state == PENDING:
            if self._handle:
                mailbox.entries.append(self)
            self._state = CANCELLED
        self._cancelled = True
        self._callback = self._args = None

    def _begin(self, moment: int) -> bool:
        if self._state != PENDING:
            return False
        self._state = STARTED
        return True

    def _finish(self) -> None:
        """It runs only once."""


class _WheelLoop(asyncio.AbstractEventLoop):
    """What a class of loops is given: its calls go into a timer."""

    def __init__(self, timer: Timer, unit_ns: int, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.debugging = self.get_debug()
        try:
            self._driver = LoopDriver(
                timer, unit_ns, self, self.call_soon, _run_handle, "Event loop"
            )
        except BaseException:
            super().close()
            raise
        self.wheel = self._driver.mailbox

    def call_later(  # type: ignore[override]  # returns what uvloop returns, too
        self, delay: Any, callback: Any, *args: Any, context: Any = None
    ) -> Any:
        """As in asyncio; the call goes into the timer."""
        if callback is self._driver.turn:
            return super().call_later(delay, callback, *args, context=context)
        if delay is None:
            raise TypeError("delay must not be None")
        return self._call_at(self.time() + delay, callback, args, context)

    def call_at(  # type: ignore[override]  # the same
        self, when: Any, callback: Any, *args: Any, context: Any = None
    ) -> Any:
        """As in asyncio; the call goes into the timer."""
        if callback is self._driver.turn:
            return super().call_at(when, callback, *args, context=context)
        if when is None:
            raise TypeError("when cannot be None")
        return self._call_at(when, callback, args, context)

    def _call_at(self, when: float, callback: Any, args: Any, context: Context | None) -> Any:
        if self.debugging:
            self.call_soon(callback, *args).cancel()  # checks the thread and the callback
            handle: Any = WheelHandle(when, callback, args, self, context)
        else:
            # The two constructors would take a third of the time. A test compares the slots.
            handle = WheelHandle.__new__(WheelHandle)
            handle._context = copy_context() if context is None else context
            handle._loop, handle._callback, handle._args = self, callback, args
            handle._when, handle._cancelled, handle._scheduled = when, False, False
            handle._repr = handle._source_traceback = None
        if type(when) is float and 0.0 <= when <= QUICK_DURATION:
            moment = floor(when * 1e9)
        else:
            moment = min(max(seconds_ns(when, "when", "seconds"), 0), LIMIT)
        handle._moment, handle._handle, handle._state = moment, NO_HANDLE, PENDING
        mailbox = self.wheel
        if len(mailbox.entries) >= MAILBOX_LIMIT:
            mailbox.make_room()
        if mailbox.closed:
            raise RuntimeError("Event loop is closed")
        if moment < mailbox.alarm[0]:
            mailbox.hurry()
        mailbox.entries.append(handle)
        return handle

    def close(self) -> None:
        """As in asyncio; pending calls never run."""
        if not self.is_closed() and not self.is_running():
            self._driver.close()
        super().close()

    def set_debug(self, enabled: bool) -> None:
        """As in asyncio."""
        super().set_debug(enabled)
        self.debugging = enabled


@cache
def _wheel_class(base: type) -> Any:
    """The class of loops that keep their calls in a timer."""
    return type("WheelEventLoop", (_WheelLoop, base), {})


def _run_handle(handle: Any) -> None:
    if not handle._cancelled:  # by a signal handler, since it began
        handle._run()
