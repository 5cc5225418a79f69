"""Seconds, timedeltas and datetimes as nanoseconds, and the clocks."""

# Private members: a deadline in nanoseconds, and whether a clock lets dropped services go.

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.timers.services.cases import MS, manual
from timers import CascadingWheel
from timers.errors import ClockError, TimeRangeError, TimeTypeError
from timers.limits import LIMIT
from timers.services import ManualClock, MonotonicClock, SystemTimer
from timers.services.clock import duration_ns, moment_ns


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (0.2, 200 * MS),
        (1e-9, 1),
        (4e-10, 0),
        (6e-10, 1),
        (np.float64(0.2), 200 * MS),
        (np.float32(0.5), 500 * MS),
        (np.int64(3), 3000 * MS),
        (Fraction(1, 3), 333_333_333),
        (Fraction(2, 3), 666_666_667),
        (Decimal("0.001"), MS),
        (timedelta(days=36_500, microseconds=1), 36_500 * 86_400_000 * MS + 1000),
        (1e300, LIMIT),
        (10**30, LIMIT),
        (Fraction(10**400), LIMIT),
        (Decimal("1e400"), LIMIT),
        (np.array(3), 3000 * MS),
    ],
)
def test_durations_are_rounded_to_nanoseconds_and_clamped(value, expected):
    assert duration_ns(value, "delay") == expected


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (-1, "not be negative, not -1"),
        (-1e-9, "not be negative, not -1e-09"),
        (timedelta(seconds=-1), "not be negative, not datetime.timedelta"),
        (float("nan"), "be a number, not NaN"),
        (float("inf"), "be finite, not inf"),
        (float("-inf"), "be finite, not -inf"),
        (Fraction(-(10**400)), "not be negative, not Fraction"),
        (Decimal("NaN"), "be a number, not NaN"),
        (Decimal("sNaN"), "be a number, not NaN"),
    ],
)
def test_a_duration_is_at_least_zero(value, rule):
    with pytest.raises(TimeRangeError, match=rf"delay must {rule}\b(?!\d)"):
        duration_ns(value, "delay")


@pytest.mark.parametrize(
    "value",
    [True, None, "1", [1], 1j, datetime(2026, 1, 1, tzinfo=UTC), np.array(0.5), np.array([1, 2])],
    ids=repr,
)
def test_a_duration_is_a_number_or_a_timedelta(value):
    with pytest.raises(TimeTypeError, match="delay must be seconds or a timedelta"):
        duration_ns(value, "delay")


@given(st.floats(0, 4e6))
@example(1e9 / 7)  # too long for it
def test_the_quick_path_rounds_as_the_exact_one(delay):
    clock, timer = manual()
    call = timer.schedule_after(delay, print)
    assert abs(call._moment - duration_ns(delay, "delay")) <= 1


def test_moments_are_seconds_of_the_clock_or_aware_datetimes():
    clock = ManualClock()
    clock.advance(100)
    assert moment_ns(2.5, clock) == 2500 * MS
    assert moment_ns(-5, clock) == 0
    assert moment_ns(Fraction(-(10**400)), clock) == 0
    assert moment_ns(datetime(1970, 1, 1, 0, 2, tzinfo=UTC), clock) == 120_000 * MS
    east = timezone(timedelta(hours=1))
    assert moment_ns(datetime(1970, 1, 1, 1, 2, tzinfo=east), clock) == 120_000 * MS


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), Decimal("sNaN"), datetime(2026, 1, 1)]
)
def test_a_moment_has_a_time_zone_and_a_value(value):
    with pytest.raises(TimeRangeError):
        moment_ns(value, ManualClock())


@pytest.mark.parametrize("value", [True, None, "now", timedelta(hours=1)])
def test_a_moment_is_not_of_another_type(value):
    with pytest.raises(TimeTypeError, match="moment must be seconds or an aware datetime"):
        moment_ns(value, ManualClock())


def test_the_real_clock_counts_nanoseconds():
    clock = MonotonicClock()
    assert type(clock.now()) is int
    assert clock.wall() > 10**18


def test_a_manual_clock_moves_only_when_told_to_and_up_to_its_end():
    clock, timer = manual()
    clock.advance(1.5)
    clock.advance(timedelta(seconds=1))
    seen = []
    timer.schedule_at(1, lambda: seen.append(clock.now()))  # it has passed
    clock.advance(0)
    assert seen == [clock.now()] == [clock.wall()] == [2500 * MS]
    clock.advance(Fraction(LIMIT - 2500 * MS, 10**9))
    assert clock.now() == LIMIT


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-1, "seconds must not be negative, not -1"),
        (float("nan"), "seconds must be a number, not NaN"),
        (1e10, "advance by 10000000000.0 would pass the end of the clock"),
    ],
)
def test_a_manual_clock_refuses_to_step_back_or_past_its_end(value, text):
    clock = ManualClock()
    clock.advance(1)
    with pytest.raises(TimeRangeError, match=text):
        clock.advance(value)
    assert clock.now() == 1000 * MS


def test_a_callback_must_not_advance_the_clock():
    clock, timer = manual()
    errors = []

    def callback():
        with pytest.raises(ClockError) as caught:
            clock.advance(1)
        errors.append(caught.value)

    timer.schedule_after(1, callback)
    clock.advance(1)
    assert len(errors) == 1


def test_services_on_one_clock_run_in_the_order_of_their_deadlines():
    clock, first = manual()
    second = SystemTimer(CascadingWheel(), clock=clock)
    seen = []
    first.schedule_after(2, seen.append, "first 2")
    second.schedule_after(1, seen.append, "second 1")
    second.schedule_after(2, seen.append, "second 2")
    clock.advance(3)
    assert seen == ["second 1", "first 2", "second 2"]


def test_a_clock_forgets_services_that_are_gone():
    clock, timer = manual()
    del timer
    clock.advance(1)
    assert clock._services == []
