"""Clocks, and seconds, timedeltas and datetimes as integer nanoseconds.

A *moment* is a point of a clock, in nanoseconds in [0, 2**63 - 1]. Values beyond the range are
clamped to it; they never wrap.
"""

import operator
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
    """What a service needs to know of time, in integer nanoseconds."""

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
    """

    def __init__(self) -> None:
        self._now = 0
        self._advancing = threading.Lock()
        self._services: list[weakref.ref[Any]] = []

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


def duration_ns(value: Any, name: str) -> int:
    """A duration of at least 0, in seconds or as a timedelta, in nanoseconds up to 2**63 - 1.

    Raises TimeTypeError for what is not a number, TimeRangeError for negative values and NaN.
    """
    if isinstance(value, timedelta):
        duration = _span_ns(value)
    else:
        duration = seconds_ns(value, name, "seconds or a timedelta")
    if duration < 0:
        raise TimeRangeError(f"{name} must not be negative, not {shown(value)}")
    return min(duration, LIMIT)


def moment_ns(value: Any, clock: Clock) -> int:
    """A moment in the clock's seconds, or an aware datetime, in nanoseconds of the clock.

    A datetime is converted once, with the wall clock's present offset. Raises TimeTypeError for
    what is neither, TimeRangeError for NaN and for naive datetimes.
    """
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise TimeRangeError(f"moment {value} has no time zone; pass an aware datetime")
        moment = clock.now() + _span_ns(value - _EPOCH) - clock.wall()
    else:
        moment = seconds_ns(value, "moment", "seconds or an aware datetime")
    return min(max(moment, 0), LIMIT)


def seconds_ns(value: Any, name: str, types: str) -> int:
    """Seconds in nanoseconds, negative or beyond 2**63 as they are; infinity is 2**63 - 1.

    Raises TimeTypeError for what is not a number, with `types` as what is legal; TimeRangeError for
    NaN.
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
    except OverflowError:  # infinity
        return LIMIT if value > 0 else -LIMIT
    except ValueError:
        raise TimeRangeError(f"{name} must be a number, not NaN") from None
    return int((2 * numerator * NS_PER_S + denominator) // (2 * denominator))


def _wrong_type(value: Any, name: str, types: str) -> TimeTypeError:
    return TimeTypeError(f"{name} must be {types}, not {type(value).__name__} ({shown(value)})")


def _span_ns(value: timedelta) -> int:
    return ((value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds) * 1_000
