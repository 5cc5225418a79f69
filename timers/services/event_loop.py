"""`wheel_event_loop`: asyncio loops whose `call_later` and `call_at` go through a timer.

Everything that asyncio builds on these two (`asyncio.timeout`, `sleep`, `wait_for`, and the
libraries on top) uses the timer without a changed line. Of the loop, only documented methods are
overridden and used. What is due at once or soon goes to the loop itself, and so does the alarm of
the timer (`timers.services.loop_driver`). The `call_later` and `call_at` of a loop call each
other through `self`, in CPython and uvloop in opposite directions; so both pass such calls on.
"""

import asyncio
import selectors
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from functools import cache
from math import inf, nextafter
from typing import Any

from timers.errors import ParameterError
from timers.limits import LIMIT
from timers.protocol import Timer
from timers.schemes.cascading_wheel import CascadingWheel
from timers.services.clock import NS_PER_S, QUICK_DURATION, Clock, ManualClock, seconds_ns
from timers.services.loop_driver import LoopDriver
from timers.services.pending import BATCH, CANCELLED, PENDING, UNFILED
from timers.validation import shown

LoopFactory = Callable[[], asyncio.AbstractEventLoop]

SHORT_S = 0.01
"""Calls up to this delay go to the loop itself. So few are pending at a time that its heap is the
better place, even if they are cancelled: their way is shorter, and no unit delays them.
"""

AT_ONCE_S = 1e-6
"""The same on a clock of its own: a delay that has passed when the loop looks at its calls."""

_NOTHING = object()


def wheel_event_loop(
    timer_factory: Callable[[], Timer] = CascadingWheel,
    *,
    base: type[asyncio.AbstractEventLoop] | None = None,
    unit_ns: int = 100_000,
    clock: Clock | None = None,
    max_pending: int | None = None,
) -> Any:
    """A factory, for `asyncio.Runner` and `asyncio.run`, of loops that keep their calls in a timer.

    Without arguments it is a loop, which as a factory returns itself first: so `wheel_event_loop`
    is a loop factory, and `wheel_event_loop()` is, too.

    `timer_factory` makes an empty timer for each loop; one unit of it is `unit_ns` nanoseconds, and
    deadlines are rounded up to a unit. `base` is the class of loop that runs everything else:
    asyncio's own, or another one whose `call_later` and `call_at` may be overridden, such as
    `uvloop.Loop`. `clock` is the loop's clock; on `ManualClock(autojump=True)`, waiting takes no
    time. With `max_pending`, a call beyond that number raises OverloadError. Scheduling and
    cancelling are O(1) with a wheel, whatever the number of pending calls; asyncio's own heap takes
    O(log n).

    Raises:
        ParameterError: for what is not a factory, a class of loops or a clock, and for a clock on a
            base other than asyncio's SelectorEventLoop.
    """
    chosen: Any = base or getattr(asyncio, "EventLoop", asyncio.SelectorEventLoop)
    if not callable(timer_factory):
        raise ParameterError(f"timer_factory must be callable, not {shown(timer_factory)}")
    is_class = isinstance(chosen, type)
    if not (is_class and issubclass(chosen, asyncio.AbstractEventLoop)):
        raise ParameterError(f"base must be a class of event loops, not {shown(base)}")
    if clock is not None and not callable(getattr(clock, "now", None)):
        raise ParameterError(f"clock must be a Clock, not {shown(clock)}")
    if clock is not None and not issubclass(chosen, asyncio.SelectorEventLoop):
        raise ParameterError("a loop with a clock needs asyncio's SelectorEventLoop as its base")
    jumps = isinstance(clock, ManualClock) and clock.autojump
    cls: Any = chosen  # a class; mypy narrows the other name
    loop_class = _wheel_class(cls)

    def make() -> asyncio.AbstractEventLoop:
        arguments = (_JumpingSelector(clock),) if jumps else ()
        loop: asyncio.AbstractEventLoop = loop_class(
            timer_factory(), unit_ns, *arguments, clock=clock, max_pending=max_pending
        )
        return loop

    options = (timer_factory, base, unit_ns, clock, max_pending)
    if options != (CascadingWheel, None, 100_000, None, None):
        return make
    first: Any = make()
    first.make_another = make
    return first


class WheelHandle(asyncio.TimerHandle):
    """The handle that `call_later` returns; also an entry of the loop's pending calls."""

    __slots__ = ("_handle", "_moment", "_ready", "_state")

    def cancel(self: Any) -> None:
        """Cancel the call. O(1)."""
        loop = self._loop
        if loop.debugging and not self._cancelled:
            self._cancelled = True
            self._repr = repr(self)  # as asyncio does: the callback is dropped
        if self._state == PENDING:  # `Pending.leave` in line, for a service that does not end
            self._state, self._cancelled, handle = CANCELLED, True, self._handle
            if handle:
                wheel = loop.wheel
                wheel.filed -= 1
                if handle > 0:
                    wheel.remove(handle)
        elif self._ready is not None:
            self._ready.cancel()
        self._cancelled = True
        self._callback = self._args = None


class _WheelLoop(asyncio.AbstractEventLoop):
    """Mixin that routes a loop's calls through a timer."""

    def __init__(
        self,
        timer: Timer,
        unit_ns: int,
        *arguments: Any,
        clock: Clock | None = None,
        max_pending: int | None = None,
    ) -> None:
        if clock is not None:
            self.time = lambda: clock.now() / NS_PER_S  # type: ignore[method-assign]
        super().__init__(*arguments)
        self._jumps = isinstance(clock, ManualClock) and clock.autojump
        self._has_clock = clock is not None
        self._short = SHORT_S if clock is None else AT_ONCE_S
        self._passing: Any = _NOTHING  # the callback that goes to the loop itself
        self.debugging = self.get_debug()
        self.make_another: LoopFactory | None = None
        self._is_taken = False
        try:
            self.driver = LoopDriver(
                timer,
                unit_ns,
                self,
                self._pass,
                "Event loop",
                max_pending,
                clock,
            )
        except BaseException:
            super().close()
            raise
        self.wheel = self.driver.pending
        self.driver.run_next = self._run_next
        if self._jumps:
            arguments[0].driver = self.driver

    def __call__(self) -> asyncio.AbstractEventLoop:
        """As a loop factory: this loop, and afterwards others of its kind."""
        if self._is_taken and self.make_another is not None:
            return self.make_another()
        self._is_taken = True
        return self

    def call_later(  # type: ignore[override]  # returns what uvloop returns, too
        self, delay: Any, callback: Any, *args: Any, context: Any = None
    ) -> Any:
        """As in asyncio; the call goes into the timer."""
        if callback is self._passing:
            return super().call_later(delay, callback, *args, context=context)
        if delay is None:
            raise TypeError("delay must not be None")
        when = self.time() + delay
        if delay <= self._short:
            return self._pass(when, callback, *args, context=context)
        return self._call_at(when, callback, args, context)

    def call_at(  # type: ignore[override]  # the same
        self, when: Any, callback: Any, *args: Any, context: Any = None
    ) -> Any:
        """As in asyncio; the call goes into the timer."""
        if callback is self._passing:
            return super().call_at(when, callback, *args, context=context)
        if when is None:
            raise TypeError("when cannot be None")
        return self._call_at(when, callback, args, context)

    def _pass(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:
        """The loop's own `call_at`."""
        if self._has_clock:
            when = nextafter(when, -inf)  # as the alarm
        former = self._passing
        try:
            self._passing = callback
            handle: Any = super().call_at(when, callback, *args, context=context)
        finally:
            self._passing = former
        if self.debugging and (places := getattr(handle, "_source_traceback", None)):
            while places and places[-1].filename == __file__:  # more of them on uvloop
                places.pop()
        return handle

    def _call_at(self, when: float, callback: Any, args: Any, context: Context | None) -> Any:
        if self.debugging:
            self.call_soon(callback, *args).cancel()  # checks the thread and the callback
            handle: Any = WheelHandle(when, callback, args, self, context)
            del handle._source_traceback[-2:]  # two frames of ours
        else:
            # The two constructors would take a third of the time. A test compares the slots.
            handle = WheelHandle.__new__(WheelHandle)
            handle._context = copy_context() if context is None else context
            handle._loop, handle._callback, handle._args = self, callback, args
            handle._when, handle._cancelled, handle._scheduled = when, False, False
            handle._repr = handle._source_traceback = None
        if type(when) is float and 0.0 <= when <= QUICK_DURATION:
            moment = int(when * 1e9 + 0.5)
        else:
            moment = _moment_of(when)
        handle._moment, handle._handle, handle._state = moment, UNFILED, PENDING
        handle._ready = None
        wheel = self.wheel
        # Before this call is added, which may be cancelled next.
        if len(wheel.new) >= BATCH and not wheel.failed:
            with suppress(MemoryError):  # the next turn tries again, and raises it
                wheel.apply()
        if moment < wheel.alarm or wheel.guarded:
            return self._add(handle)
        wheel.new.append(handle)
        return handle

    def _add(self, handle: Any) -> Any:
        """Take a call that is the earliest, or may have to be refused; or pass it to the loop."""
        wheel = self.wheel
        if wheel.closed:
            raise RuntimeError("Event loop is closed")
        if handle._moment <= wheel.now() + self._short * NS_PER_S:
            call = handle._when, handle._callback, *handle._args
            return self._pass(*call, context=handle._context)
        if wheel.is_full():
            wheel.refuse_more()
        wheel.add([handle])
        return handle

    def _run_next(self) -> None:
        """Run the first call that is due, unless it was cancelled."""
        wheel: Any = self.wheel
        handle = wheel.due[0]
        begun = wheel.begin(handle)
        wheel.due.popleft()
        if not begun:
            return
        if self.debugging:  # the loop reports slow calls, and where they were asked for
            handle._ready = self.call_soon(handle._callback, *handle._args, context=handle._context)
            with suppress(AttributeError):  # a handle of uvloop has none
                handle._ready._source_traceback = handle._source_traceback
        else:
            handle._run()

    def shutdown_default_executor(self, *arguments: Any, **keywords: Any) -> Any:
        """As in asyncio, but without its timeout in virtual time, where it would pass at once."""
        if self._jumps:
            arguments, keywords = (), {}
        return super().shutdown_default_executor(*arguments, **keywords)

    def close(self) -> None:
        """As in asyncio; pending calls never run."""
        if not self.is_closed() and not self.is_running():
            self.driver.close()
        super().close()

    def set_debug(self, enabled: bool) -> None:
        """As in asyncio."""
        super().set_debug(enabled)
        self.debugging = enabled


@cache
def _wheel_class(base: Any) -> Any:
    """The class of loops that keep their calls in a timer."""
    return type("WheelEventLoop", (_WheelLoop, base), {})


def _moment_of(when: Any) -> int:
    """A loop's time in nanoseconds, within the range; infinity is its end."""
    if when in (inf, -inf):
        return LIMIT if when > 0 else 0
    return min(max(seconds_ns(when, "when", "seconds"), 0), LIMIT)


class _JumpingSelector(selectors.DefaultSelector):
    """Moves the clock instead of waiting for time to pass."""

    driver: LoopDriver

    def __init__(self, clock: Any) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> Any:
        """As in the base class. Without a deadline to which the clock could jump, it waits."""
        events = super().select(0)
        if events or timeout == 0:
            return events
        # The alarm's own moment, as the timeout is a float.
        jumped = self._clock._jump(self.driver.moment)
        return super().select(0 if jumped else timeout)
