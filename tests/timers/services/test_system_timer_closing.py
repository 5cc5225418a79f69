"""SystemTimer: how it is closed, and what it refuses."""

# Private members: the timer and the thread of a service that has ended.

import gc
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

import pytest

from tests.timers.services.cases import MS, Recorder, SettableClock, in_thread, manual
from timers import CascadingWheel, HashedWheel, HierarchicalWheel
from timers.errors import ClockError, ParameterError, TimeRangeError, TimeTypeError
from timers.services import (
    CallbackError,
    ServiceClosedError,
    SystemTimer,
)

# Closing


def test_leaving_the_context_cancels_what_is_pending():
    clock, timer = manual()
    with timer:
        filed = timer.schedule_after(1, print)
        assert timer.size == 1
        new = timer.schedule_after(1, print)
    assert filed.cancelled() and new.cancelled()
    assert timer.size == len(timer._pending.timer) == 0
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
@pytest.mark.parametrize("timeout", [None, 60])
def test_waiting_in_real_time(start, timeout):
    timer = SystemTimer(HierarchicalWheel(), start=start)
    ran = []
    timer.schedule_after(0.1, ran.append, 1)
    assert timer.close("wait", timeout)
    assert ran == [1]


@pytest.mark.parametrize("start", [True, False])
def test_what_is_left_after_the_timeout_of_a_wait_is_cancelled(start):
    timer = SystemTimer(HashedWheel(), start=start)
    call = timer.schedule_after(10, print)
    assert timer.close("wait", timeout=0.01)
    assert call.cancelled()


def test_a_finalizer_that_close_runs_may_wait_for_another_thread():
    class Connection:
        def __del__(self):
            sizes.append(in_thread(lambda: timer.size))

    sizes, timer = [], SystemTimer(HierarchicalWheel())
    timer.schedule_after(60, print, Connection())
    assert timer.close()
    assert sizes == [0]


@pytest.mark.parametrize("pending", ["cancel", "wait"])
def test_close_waits_for_a_running_callback_no_longer_than_asked(pending):
    started, release = threading.Event(), threading.Event()
    timer = SystemTimer(HierarchicalWheel())
    timer.schedule_after(0, lambda: (started.set(), release.wait(10)))
    assert started.wait(10)
    assert not timer.close(pending, timeout=0)
    release.set()
    assert timer.close(timeout=10)


def test_pending_is_cancel_or_wait():
    _, timer = manual()
    with pytest.raises(ParameterError, match="pending must be cancel or wait, not 'drop'"):
        timer.close("drop")
    with pytest.raises(TimeRangeError, match="timeout"):
        timer.close(timeout=-1)


# Bad input


@pytest.mark.parametrize("delay", [float("inf"), float("nan"), float("-inf")])
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
def test_a_callback_is_callable_and_runs_in_a_context(schedule):
    _, timer = manual()
    with pytest.raises(TypeError, match="the callback must be callable, not 7"):
        getattr(timer, schedule)(1, 7)
    with pytest.raises(CallbackError, match="context must be a Context, not 'x'"):
        getattr(timer, schedule)(1, print, context="x")
    assert timer.size == 0


def test_the_timer_is_empty_and_the_unit_sensible():
    wheel = HierarchicalWheel()
    wheel.schedule(1)
    with pytest.raises(ParameterError, match="the timer must be empty; it has 1 pending"):
        SystemTimer(wheel)
    for unit_ns in (0, 10**18 + 1):
        with pytest.raises(ParameterError, match="unit_ns must lie in"):
            SystemTimer(HierarchicalWheel(), unit_ns=unit_ns)
    assert SystemTimer(HierarchicalWheel(), unit_ns=10**18).close()
    with pytest.raises(TimeTypeError, match="unit_ns must be an integer"):
        SystemTimer(HierarchicalWheel(), unit_ns=1.5)


def test_a_clock_that_steps_back_is_refused_and_the_service_goes_on_when_it_has_caught_up():
    clock, ran = SettableClock(), []
    clock.value = 5000 * MS
    timer = SystemTimer(HierarchicalWheel(), clock=clock, start=False)
    timer.schedule_after(1, ran.append, 1)
    clock.value = 5500 * MS
    assert timer.advance_clock() == 0
    clock.value = 0
    for _ in range(2):
        with pytest.raises(ClockError, match="the clock stepped back from 5500000000 to 0"):
            timer.advance_clock()
    clock.value = 6000 * MS
    assert timer.advance_clock() == 1
    assert ran == [1]


def test_a_timer_belongs_to_one_service():
    wheel = HierarchicalWheel()
    first = SystemTimer(wheel, start=False)
    with pytest.raises(ParameterError, match="the timer belongs to another service"):
        SystemTimer(wheel, start=False)
    first.close()
    SystemTimer(wheel, start=False).close()


def test_threads_may_make_services_at_the_same_time():
    former = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(8) as pool:
            made = pool.map(lambda _: SystemTimer(HashedWheel(), start=False), range(800))
            assert len(list(made)) == 800
    finally:
        sys.setswitchinterval(former)


def test_an_executor_a_clock_and_a_hook_are_what_they_should_be():
    with pytest.raises(ParameterError, match="executor must be an Executor, not 3"):
        SystemTimer(HierarchicalWheel(), executor=3)
    with pytest.raises(ParameterError, match="clock must be a Clock, not None"):
        SystemTimer(HierarchicalWheel(), clock=None)
    with pytest.raises(ParameterError, match="on_error must be callable, not 3"):
        SystemTimer(HierarchicalWheel(), on_error=3)


async def coroutine():
    """Not a callback."""


class Asynchronous:
    async def __call__(self):
        """Not a callback either."""

    async def method(self):
        """Nor this."""


@pytest.mark.parametrize(
    "callback", [coroutine, partial(coroutine), Asynchronous(), Asynchronous().method]
)
def test_an_async_callback_is_an_error(callback, recwarn):
    reported = Recorder()
    clock, timer = manual(on_error=reported)
    timer.schedule_after(1, callback)
    every = timer.schedule_every(1, callback)
    clock.advance(2)
    assert reported.callbacks == [callback] * 3
    assert {type(error) for error in reported.errors} == {CallbackError}
    assert all(text.endswith("is async, so nothing of it ran") for text in reported.texts)
    assert every.cancel()
    reported.errors.clear()  # their frames have the coroutines
    assert RuntimeWarning not in [each.category for each in recwarn]  # "was never awaited"


def test_a_service_that_is_dropped_runs_what_is_pending_and_ends():
    ran = threading.Event()
    service = SystemTimer(HierarchicalWheel())
    service.schedule_after(0.02, ran.set)
    thread = service._thread
    del service
    gc.collect()
    assert ran.wait(10)
    thread.join(10)
    assert not thread.is_alive()


def test_close_does_not_wait_for_a_clock_that_has_stepped_back():
    clock, told = SettableClock(), threading.Event()
    clock.value = 10**15
    service = SystemTimer(CascadingWheel(), clock=clock, on_error=lambda *_: told.set())
    service.schedule_after(100, print)
    while not len(service._pending.timer):  # until the driver has taken it
        time.sleep(0.001)
    clock.value = 0
    service.schedule_after(0, print)
    assert told.wait(10)
    assert service.close(timeout=10)
