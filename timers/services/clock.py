"""Clocks, and seconds, timedeltas and datetimes as integer nanoseconds.

A *moment* is a point of a clock, in nanoseconds in [0, 2**63 - 1]. Values beyond the range are
clamped to it; they never wrap.
"""

import operator
import os
import threading
import time
import weakref
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import numpy as np

from timers.errors import ClockError, TimeRangeError, TimeTypeError
from timers.limits import LIMIT
from timers.validation import shown

NS_PER_S = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

QUICK_DURATION = 4_000_000.0
"""Seconds up to which float arithmetic is exact to the nanosecond; callers skip `duration_ns`."""


class Clock(Protocol):
    """The clock of a service, in integer nanoseconds."""

    def now(self) -> int:
        """Nanoseconds since a fixed moment; never decreases.

        A thread that waits for a deadline sleeps in real time: if the clock jumps ahead, it wakes
        no earlier.
        """

    def wall(self) -> int:
        """Nanoseconds since 1970-01-01 UTC; used once for each datetime that is converted."""


class MonotonicClock:
    """`time.monotonic_ns`, which on Linux stands still while the machine is suspended."""

    now = staticmethod(time.monotonic_ns)  # the builtin itself: no Python frame for each call
    wall = staticmethod(time.time_ns)


class ManualClock:
    """A clock for tests: `advance` moves it and runs what is due, on the caller's thread.

    The clock stops at each deadline on the way. A callback therefore sees the time at which it was
    due, and what it schedules within the span runs in the same `advance`. The wall clock starts at
    1970-01-01 UTC and moves with it. Services on one clock run in the order of their deadlines, and
    where these are equal in the order of their construction.

    With `autojump=True`, an event loop on this clock (`wheel_event_loop(clock=...)`) does not wait:
    whenever it has nothing to do, the clock jumps to the loop's next deadline.
    """

    def __init__(self, *, autojump: bool = False) -> None:
        self.autojump = autojump
        self._now = 0
        self._advancing = threading.Lock()
        self._thread = 0  # the one that holds it
        self._services: list[weakref.ref[Any]] = []
        after_fork.add(self)

    def now(self) -> int:
        """Nanoseconds since the clock was made, as moved by `advance`."""
        return self._now

    wall = now

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
        self._advance(duration)

    def _jump(self, moment: int | None) -> bool:
        """Move on to `moment`, or to the next deadline of a service if that is earlier; False
        without either.
        """
        moments = [service._next_moment() for service in self._alive()]
        targets = [each for each in (moment, *moments) if each is not None]
        if targets:
            self._advance(max(min(*targets, LIMIT) - self._now, 0))
        return bool(targets)

    def _advance(self, duration: int) -> None:
        if self._advancing.locked():
            raise ClockError("the clock is already advancing; a callback must not advance it")
        with self._advancing:
            self._thread = threading.get_ident()
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

    def _after_fork(self) -> None:
        """Let a forked child advance the clock if a thread did that it does not have."""
        if self._thread != threading.get_ident():
            self._advancing = threading.Lock()


after_fork: "weakref.WeakSet[Any]" = weakref.WeakSet()
"""Clocks and services whose method `_after_fork` runs in a forked child."""


def _after_fork_in_child() -> None:
    for each in list(after_fork):
        each._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def duration_ns(value: Any, name: str) -> int:
    """A duration of at least 0, in seconds or as a timedelta, in nanoseconds up to 2**63 - 1.

    Raises TimeTypeError for what is not a number; TimeRangeError for negative values, NaN and
    infinity.
    """
    duration = _signed_ns(value, name)
    if duration < 0:
        raise TimeRangeError(f"{name} must not be negative, not {shown(value)}")
    return min(duration, LIMIT)


def delay_ns(value: Any, name: str = "delay") -> int:
    """A delay in the same way; a negative one is 0."""
    return min(max(_signed_ns(value, name), 0), LIMIT)


def _signed_ns(value: Any, name: str) -> int:
    if isinstance(value, timedelta):
        return _span_ns(value)
    return seconds_ns(value, name, "seconds or a timedelta")


def moment_ns(value: Any, clock: Clock) -> int:
    """A moment in the clock's seconds, or an aware datetime, in nanoseconds of the clock.

    A datetime is converted once, with the wall clock's present offset. Raises TimeTypeError for
    what is neither, TimeRangeError for NaN, infinity and naive datetimes.
    """
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise TimeRangeError(f"moment {value} has no time zone; pass an aware datetime")
        moment = clock.now() + _span_ns(value - _EPOCH) - clock.wall()
    else:
        moment = seconds_ns(value, "moment", "seconds or an aware datetime")
    return min(max(moment, 0), LIMIT)


def seconds_ns(value: Any, name: str, types: str) -> int:
    """Seconds in nanoseconds, also negative or beyond 2**63.

    Raises TimeTypeError for what is not a number, with `types` as what is legal; TimeRangeError for
    NaN and infinity.
    """
    if hasattr(value, "__index__") and not isinstance(value, (bool, np.bool_)):
        try:
            return operator.index(value) * NS_PER_S
        except TypeError:  # an array that is no integer has the method, too
            raise _wrong_type(value, name, types) from None
    if isinstance(value, bool) or not hasattr(value, "as_integer_ratio"):
        raise _wrong_type(value, name, types)
    try:
        numerator, denominator = value.as_integer_ratio()
    except OverflowError:
        raise TimeRangeError(f"{name} must be finite, not {shown(value)}") from None
    except ValueError:
        raise TimeRangeError(f"{name} must be a number, not NaN") from None
    return int((2 * numerator * NS_PER_S + denominator) // (2 * denominator))


def _wrong_type(value: Any, name: str, types: str) -> TimeTypeError:
    return TimeTypeError(f"{name} must be {types}, not {type(value).__name__} ({shown(value)})")


def _span_ns(value: timedelta) -> int:
    return ((value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds) * 1_000
