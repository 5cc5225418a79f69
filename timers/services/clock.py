"""Clocks: the real one, and one that moves only when it is told to."""

import threading
import time
import weakref
from typing import Any, Protocol

from timers.errors import ClockError, TimeRangeError
from timers.limits import LIMIT
from timers.services.moments import Clock, duration_ns


class MonotonicClock:
    """`time.monotonic_ns`, which on Linux stands still while the machine is suspended.

    >>> clock = MonotonicClock()
    >>> clock.now() <= clock.now()
    True
    """

    now = staticmethod(time.monotonic_ns)  # the builtin itself: no Python frame for each call
    wall = staticmethod(time.time_ns)


class SteadyClock:
    """Somebody else's clock, which goes on from the latest moment when the other steps back."""

    def __init__(self, clock: Clock) -> None:
        self.wall = clock.wall
        self._clock = clock
        self._offset = 0
        self._latest = clock.now()
        self._lock = threading.RLock()  # a signal handler may come back
        self.error: ClockError | None = None  # the latest step back, until somebody takes it

    def now(self) -> int:
        """Nanoseconds of the other clock, and of all its steps back."""
        with self._lock:
            now = self._clock.now() + self._offset
            if now < self._latest:
                self.error = ClockError(f"the clock stepped back from {self._latest} to {now}")
                self._offset += self._latest - now
            self._latest = max(self._latest, now)
            return self._latest


class _Driven(Protocol):
    """A service that a ManualClock drives."""

    def _next_moment(self) -> int | None: ...

    def _run_due(self) -> int: ...


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
        self._advancing = False
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
        if self._advancing:
            raise ClockError("the clock is already advancing; a callback must not advance it")
        target = self._now + duration
        self._advancing = True
        try:
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
        finally:
            self._advancing = False

    def _attach(self, service: _Driven) -> None:
        self._services.append(weakref.ref(service))

    def _alive(self) -> list[_Driven]:
        self._services = [reference for reference in self._services if reference() is not None]
        return [service for reference in self._services if (service := reference()) is not None]
