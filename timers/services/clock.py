"""Clocks: the real one, and one that moves only when it is told to."""

import threading
import time
import weakref
from typing import Any

from timers.errors import ClockError, TimeRangeError
from timers.limits import LIMIT
from timers.services.moments import duration_ns


class MonotonicClock:
    """`time.monotonic_ns`, which on Linux stands still while the machine is suspended.

    >>> clock = MonotonicClock()
    >>> clock.now() <= clock.now()
    True
    """

    now = staticmethod(time.monotonic_ns)  # the builtin itself: no Python frame for each call
    wall = staticmethod(time.time_ns)


class ManualClock:
    """A clock for tests: `advance` moves it and runs what is due, on the caller's thread.

    The clock stops at each deadline on the way. A callback therefore sees the time at which it was
    due, and what it schedules within the span runs in the same `advance`. The wall clock starts at
    1970-01-01 UTC and moves with it. Services on one clock run in the order of their deadlines, and
    where these are equal in the order of their construction.

    >>> from timers import HierarchicalWheel
    >>> from timers.services import SystemTimer
    >>> clock = ManualClock()
    >>> timer = SystemTimer(HierarchicalWheel(), clock=clock)
    >>> call = timer.schedule_after(1.0, print, "one second")
    >>> clock.advance(0.999)
    >>> clock.advance(0.001)
    one second
    """

    def __init__(self) -> None:
        self._now = 0
        self._advancing = threading.Lock()
        self._services: list[weakref.ref[Any]] = []

    def now(self) -> int:
        """Nanoseconds since the clock was made, as moved by `advance`."""
        return self._now

    def wall(self) -> int:
        """Nanoseconds since 1970-01-01 UTC; equal to `now`."""
        return self._now

    def advance(self, seconds: Any) -> None:
        """Move the clock by `seconds` (or a timedelta) and run what becomes due, in order.

        `advance(0)` runs what is due already. If a callback raises SystemExit or KeyboardInterrupt,
        the clock stays at that callback's deadline.

        Raises:
            TimeTypeError, TimeRangeError: for what is not a duration of at least 0.
            ClockError: when a callback calls it.
        """
        duration = duration_ns(seconds, "seconds")
        if duration > LIMIT - self._now:
            raise TimeRangeError(f"advance by {seconds} would pass the end of the clock")
        if self._advancing.locked():
            raise ClockError("the clock is already advancing; a callback must not advance it")
        with self._advancing:
            self._run_until(self._now + duration)

    def _run_until(self, target: int) -> None:
        """A method of its own: see `no_exception_in_a_loop_skips_a_with` in the tests."""
        while True:
            waiting = [
                (moment, position, service)
                for position, service in enumerate(self._alive())
                if (moment := service._next_moment()) is not None and moment <= target
            ]
            if not waiting:
                break
            moment, _, service = min(waiting)
            self._now = max(self._now, moment)
            service._run_due()
        self._now = target

    def _attach(self, service: Any) -> None:
        """Drive a service by its methods `_next_moment` and `_run_due`."""
        self._services.append(weakref.ref(service))

    def _alive(self) -> list[Any]:
        self._services = [reference for reference in self._services if reference() is not None]
        return [service for reference in self._services if (service := reference()) is not None]
