"""SystemTimer: how it is closed, and what it refuses."""

import threading
from datetime import timedelta

import pytest

from tests.timers.services.cases import (
    MS,
    Recorder,
    SettableClock,
    caller_driven,
    manual,
)
from timers import HashedWheel, HierarchicalWheel
from timers.errors import ParameterError, TimeRangeError, TimeTypeError
from timers.services import (
    CallbackError,
    ManualClock,
    ServiceClosedError,
    ServiceStateError,
    SystemTimer,
)
from timers.services import system_timer as module

# Closing


def test_leaving_the_context_cancels_what_is_pending():
    clock, timer = manual()
    with timer:
        filed = timer.schedule_after(1, print)
        assert timer.size == 1
        new = timer.schedule_after(1, print)
    assert filed.cancelled() and new.cancelled()
    assert timer.size == len(timer._timer) == 0
    clock.advance(10)


@pytest.mark.parametrize(
    "use",
    [
        lambda timer: timer.schedule_after(1, print),
        lambda timer: timer.schedule_after(timedelta(seconds=1), print),
        lambda timer: timer.schedule_at(1, print),
        lambda timer: timer.schedule_every(1, print),
        lambda timer: timer.advance_clock(),
    ],
)
@pytest.mark.parametrize("manually", [True, False])
def test_a_closed_service_refuses_everything(use, manually):
    timer = manual()[1] if manually else SystemTimer(HierarchicalWheel(), start=False)
    assert timer.close()
    with pytest.raises(ServiceClosedError, match="SystemTimer is closed"):
        use(timer)
    assert timer.size == 0
    assert timer.close()


def test_waiting_runs_the_rest_at_their_deadlines():
    clock, timer = manual()
    ran = []
    timer.schedule_after(2, ran.append, "once")
    every = timer.schedule_every(1, ran.append, "every")
    assert not timer.close("wait")
    with pytest.raises(ServiceClosedError):
        timer.schedule_after(1, print)
    clock.advance(1)
    with pytest.raises(ServiceClosedError):  # also after the driver was awake
        timer.schedule_after(5, print)
    assert ran == ["every"]
    assert every.done()
    clock.advance(5)
    assert ran == ["every", "once"]
    assert timer.close("wait")


def test_a_second_close_ends_the_wait():
    clock, timer = manual()
    call = timer.schedule_after(2, print)
    assert not timer.close("wait")
    assert call.reschedule_after(3)
    assert timer.close()
    assert call.cancelled()
    assert timer.close("wait")


@pytest.mark.parametrize("start", [True, False])
def test_waiting_in_real_time(start):
    timer = SystemTimer(HierarchicalWheel(), start=start)
    ran = []
    timer.schedule_after(0.01, ran.append, 1)
    assert timer.close("wait")
    assert ran == [1]


@pytest.mark.parametrize("start", [True, False])
def test_what_is_left_after_the_timeout_of_a_wait_is_cancelled(start):
    timer = SystemTimer(HierarchicalWheel(), start=start)
    call = timer.schedule_after(3600, print)
    timer.close("wait", timeout=0.01)
    assert call.cancelled()
    assert timer.close(timeout=10)


def test_close_waits_for_a_running_callback_no_longer_than_asked():
    started, release = threading.Event(), threading.Event()
    timer = SystemTimer(HierarchicalWheel())
    timer.schedule_after(0, lambda: (started.set(), release.wait(10)))
    assert started.wait(10)
    assert not timer.close(timeout=0)
    release.set()
    assert timer.close(timeout=10)


def test_pending_is_cancel_or_wait():
    _, timer = manual()
    with pytest.raises(ParameterError, match="pending must be cancel or wait, not 'drop'"):
        timer.close("drop")
    with pytest.raises(TimeRangeError, match="timeout"):
        timer.close(timeout=-1)


# Bad input


@pytest.mark.parametrize("delay", [-1, -0.5, float("nan"), timedelta(seconds=-1)])
def test_a_bad_delay_is_an_error_and_the_service_goes_on(delay):
    clock, timer = manual()
    ran = []
    call = timer.schedule_after(1, ran.append, 1)
    with pytest.raises(TimeRangeError, match="delay must"):
        timer.schedule_after(delay, print)
    with pytest.raises(TimeRangeError, match="delay must"):
        call.reschedule_after(delay)
    assert timer.size == 1
    clock.advance(1)
    assert ran == [1]


@pytest.mark.parametrize("schedule", ["schedule_after", "schedule_at", "schedule_every"])
def test_a_callback_is_callable(schedule):
    _, timer = manual()
    with pytest.raises(CallbackError, match="the callback must be callable, not 7"):
        getattr(timer, schedule)(1, 7)
    assert timer.size == 0


def test_the_timer_is_empty_and_the_unit_sensible():
    wheel = HierarchicalWheel()
    wheel.schedule(1)
    with pytest.raises(ParameterError, match="the timer must be empty; it has 1 pending"):
        SystemTimer(wheel)
    with pytest.raises(ParameterError, match="unit_ns must lie in"):
        SystemTimer(HierarchicalWheel(), unit_ns=0)
    with pytest.raises(TimeTypeError, match="unit_ns must be an integer"):
        SystemTimer(HierarchicalWheel(), unit_ns=1.5)


def test_a_clock_that_steps_back_is_reported_and_the_service_goes_on():
    clock, errors = SettableClock(5000 * MS), Recorder()
    timer = caller_driven(clock, on_error=errors)
    ran = []
    timer.schedule_after(1, ran.append, 1)
    timer.advance_clock()
    clock.value = 0
    assert timer.advance_clock() == 0
    assert errors.texts == ["the clock stepped back from 5000000000 to 0"]
    timer.schedule_after(2, ran.append, 2)
    timer.schedule_every(1, ran.append, 3)
    assert timer.advance_clock() == 0
    clock.value = 1000 * MS
    while timer.advance_clock():
        pass
    assert ran == [1, 3]
    clock.value = 2000 * MS
    while timer.advance_clock():
        pass
    assert ran == [1, 3, 2, 3]
    assert len(errors.errors) == 1


def test_the_timer_is_never_moved_backwards():
    class Backwards(ManualClock):
        value = 5000 * MS

        def now(self):
            return self.value

    clock, ran = Backwards(), []
    timer = SystemTimer(HierarchicalWheel(), clock=clock)
    timer.schedule_after(1, ran.append, 1)
    for clock.value in (5500 * MS, 0, 6000 * MS):
        timer.advance_clock()
    assert ran == [1]


def test_python_without_the_gil_is_refused(monkeypatch):
    monkeypatch.setattr(module.sys, "_is_gil_enabled", lambda: False, raising=False)
    with pytest.raises(ServiceStateError, match="needs the GIL"):
        SystemTimer(HashedWheel())
