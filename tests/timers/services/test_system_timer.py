"""SystemTimer: what a user can observe, on a manual clock wherever time matters."""

# Private members: `_pending.timer` is the timer that the service owns, whose invariants are checked
# and whose methods fail; `_thread` is its driver; `_call` shows which code has been loaded.

import contextvars
import logging
import threading
import weakref
from concurrent.futures import Executor, Future
from datetime import timedelta

import pytest

from tests.timers.services.cases import (
    MS,
    Interposed,
    Recorder,
    SettableClock,
    caller_driven,
    manual,
    raising,
)
from timers import CascadingWheel, HierarchicalWheel
from timers.errors import CapacityError, ParameterError, TimeRangeError
from timers.limits import LIMIT
from timers.schemes import base
from timers.services import ManualClock, ServiceStateError, SystemTimer

# Deadlines


def test_the_timer_keeps_its_own_start_and_the_service_starts_now():
    clock, _ = manual()
    clock.advance(123.456)
    timer = SystemTimer(HierarchicalWheel(start=LIMIT - 10_000), clock=clock)
    ran = []
    timer.schedule_after(1, lambda: ran.append(timer.time()))
    timer.schedule_after(1e9, ran.append, "beyond the range")
    clock.advance(1)
    assert ran == [124.456]
    assert timer._pending.timer.now == LIMIT - 9000
    clock.advance(20)
    timer.schedule_after(1, ran.append, "later")
    clock.advance(1)
    assert (timer._pending.timer.now, timer.size, len(ran)) == (LIMIT, 0, 3)


@pytest.mark.parametrize("delay", [1, 1.0, timedelta(seconds=1), 1e300])
def test_near_the_end_of_the_clock_deadlines_saturate(delay):
    clock, timer = manual()
    clock.advance(LIMIT // 10**9)
    calls = [timer.schedule_after(delay, print) for _ in range(5)]
    assert timer.size == 5
    clock.advance(0.5)
    assert timer.size == 5
    assert all(call.cancel() for call in calls)


def test_calls_of_one_unit_run_in_the_order_of_their_nanoseconds_and_count_once():
    clock, timer = manual()
    ran = []
    calls = [timer.schedule_after(us / 1e6, ran.append, us) for us in (500, 100, 900, 800)]
    timer.schedule_after(1e-6, lambda: ran.append((calls[2].reschedule(1), timer.size)))
    clock.advance(0.001)
    assert ran == [(True, 4), 100, 500, 800]


# ScheduledCall


def test_a_call_says_when_and_whether_it_ran():
    clock, timer = manual()
    call = timer.schedule_after(1.23456789, int)
    assert (call.when(), call.done(), call.cancelled()) == (1.23456789, False, False)
    assert repr(call) == "<ScheduledCall pending at 1.23456789 s>"
    clock.advance(2)
    assert (call.done(), call.cancelled(), call.cancel(), call.reschedule(9)) == (
        (True, False, False, False)
    )
    assert repr(call) == "<ScheduledCall done at 1.23456789 s>"


def test_cancelling_drops_callback_and_arguments_at_once():
    class Connection:
        def close(self):
            raise AssertionError("cancelled")

    _, timer = manual()
    connection, argument, context = Connection(), Connection(), contextvars.copy_context()
    call = timer.schedule_after(1, connection.close, argument, context=context)
    gone = [weakref.ref(each) for each in (connection, argument, context)]
    timer.size  # noqa: B018  # files the call
    del connection, argument, context
    assert all(reference() is not None for reference in gone)
    assert call.cancel()
    assert [reference() for reference in gone] == [None, None, None]
    assert call.cancelled()
    assert repr(call) == "<ScheduledCall cancelled at 1 s>"


def test_what_ran_is_dropped():
    class Argument:
        pass

    clock, timer = manual()
    argument = Argument()
    gone = weakref.ref(argument)
    call = timer.schedule_after(1, lambda _: None, argument)
    del argument
    clock.advance(1)
    assert gone() is None
    assert call.done()


def test_a_call_cancelled_before_its_batch_never_touches_the_wheel():
    clock, timer = manual()
    timer._pending.timer.schedule_many = None  # would raise
    for _ in range(100):
        assert timer.schedule_after(1, print).cancel()
    clock.advance(2)
    assert timer.size == 0


def test_the_context_is_a_copy_or_the_one_given():
    variable = contextvars.ContextVar("variable", default="default")
    clock, timer = manual()
    seen = []
    timer.schedule_after(1, lambda: seen.append(variable.get()))
    variable.set("at scheduling")
    timer.schedule_after(2, lambda: (seen.append(variable.get()), variable.set("inside")))
    given = contextvars.copy_context()
    timer.schedule_at(
        3, lambda: (seen.append(variable.get()), variable.set("inside")), context=given
    )
    variable.set("later")
    clock.advance(5)
    assert seen == ["default", "at scheduling", "at scheduling"]
    assert (given[variable], variable.get()) == ("inside", "later")


@pytest.mark.parametrize("empty", [True, False])
def test_the_runs_of_a_periodic_call_share_one_context(empty):
    counter = contextvars.ContextVar("counter", default=0)
    other = contextvars.ContextVar("other")
    clock, timer = manual()
    seen = []

    def count():
        counter.set(counter.get() + 1)
        seen.append(counter.get())

    def schedule():
        if not empty:
            other.set(1)
        timer.schedule_every(1, count)

    contextvars.Context().run(schedule)
    clock.advance(3)
    assert seen == [1, 2, 3]


# Callbacks that use the service


def test_a_callback_of_the_thread_may_close_the_service_without_joining_itself():
    answers = []
    timer = SystemTimer(HierarchicalWheel())
    timer.schedule_after(0, lambda: answers.append(timer.close("wait")))
    timer._thread.join(10)
    assert answers == [False]
    assert timer.close()


# Exceptions


def test_an_exception_is_logged_with_the_name_of_the_callback(caplog):
    clock, timer = manual()
    timer.schedule_after(1, raising(ValueError("on purpose")))
    timer.schedule_after(1, raising(GeneratorExit("also")))
    ran = []
    timer.schedule_after(1, ran.append, 1)
    with caplog.at_level(logging.ERROR, "timers.services"):
        clock.advance(1)
    assert [record.message for record in caplog.records] == (
        ["callback raising.<locals>.callback failed"] * 2
    )
    assert "on purpose" in caplog.text
    assert ran == [1]


def test_a_hook_that_also_schedules_and_closes_is_logged_once(caplog):
    """The other two calls are cancelled."""

    def hook(callback, error):
        timer.schedule_after(1, print)
        timer.close()
        timer.schedule_after(1, print)

    clock, timer = manual(on_error=hook)
    for _ in range(3):
        timer.schedule_after(1, raising(ValueError()))
    clock.advance(1)
    assert len(caplog.records) == 1
    assert timer.close()
    assert timer.size == 0


class Unprintable:
    def __init__(self, error):
        self.error = error

    def __call__(self):
        raise self.error

    __repr__ = __call__


class Unbound(Unprintable):
    """As a lazy proxy that is bound to nothing: every look at it raises."""

    def __getattr__(self, name):
        raise self.error


@pytest.mark.parametrize("error", [RuntimeError("unbound"), GeneratorExit("unbound")])
@pytest.mark.parametrize("kind", [Unbound, Unprintable])
def test_a_callback_whose_name_raises_is_logged_by_its_type(kind, error, caplog):
    refusing = RefusingExecutor(RuntimeError("full"))
    for options in ({}, {"on_error": raising(SystemExit("hook"))}, {"executor": refusing}):
        clock, timer = manual(**options)
        timer.schedule_after(1, kind(error))
        clock.advance(1)
    assert [record.message for record in caplog.records] == [
        f"callback {kind.__name__} failed",
        f"the hook for errors raised, for {kind.__name__}",
        f"callback {kind.__name__} failed",
    ]


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_where_the_caller_drives_exits_propagate_and_the_rest_stays_due(kind):
    clock, timer = manual()
    ran = []
    timer.schedule_after(1, raising(kind()))
    timer.schedule_after(1.5, ran.append, 1)
    with pytest.raises(kind):
        clock.advance(2)
    assert clock.now() == 1000 * MS
    assert timer.size == 1
    clock.advance(1)
    assert ran == [1]


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_on_the_thread_exits_go_to_the_hook(kind):
    errors, ran = Recorder(), threading.Event()
    with SystemTimer(HierarchicalWheel(), on_error=errors) as timer:
        timer.schedule_after(0, raising(kind("bye")))
        timer.schedule_after(0.001, ran.set)
        assert ran.wait(10)
    assert errors.texts == ["bye"]


# Compiled code


def test_the_constructor_loads_what_the_service_calls_and_leaves_the_timer_alone():
    """Under load, the thread would need seconds for it, with the lock held."""
    base._calls_of.cache_clear()
    wheel = CascadingWheel(start=5, counting=True)
    fresh = wheel.state.cells.copy()
    assert not vars(wheel._call).keys() & wheel._call._functions.keys()
    clock, service = caller_driven(wheel)
    assert (wheel.state.cells == fresh).all()
    assert not any(wheel.counters.values())
    loaded = vars(wheel._call).copy()
    calls = [service.schedule_after(1, print) for _ in range(2000)]  # the timer grows
    assert service.size == len(calls)
    assert calls[0].reschedule_after(2)
    assert all(call.cancel() for call in calls[1:])
    clock.value = 3000 * MS
    assert service.advance_clock() == 1
    assert vars(wheel._call) == loaded
    assert loaded.keys() & wheel._call._functions.keys() == {
        *("schedule_many", "cancel_many"),
        *("advance", "next_wakeup", "move_all"),
    }


# Periodic calls


def test_a_periodic_call_may_ask_for_another_run_at_once_in_each_run():
    clock, timer = manual()
    runs = []

    def run():
        runs.append(timer.size)
        if len(runs) < 5:
            assert call.reschedule(0)

    call = timer.schedule_every(1, run)
    clock.advance(1)
    clock.advance(0)
    assert runs == [0] * 5
    assert timer.size == 1
    clock.advance(1)
    assert len(runs) == 6


@pytest.mark.parametrize(
    ("missed", "expected"),
    [
        # The run at 1.0 takes until 3.5.
        ("skip", [1.0, 4.0, 5.0, 6.0]),
        ("burst", [1.0, 3.5, 3.5, 4.0, 5.0, 6.0]),
        ("delay", [1.0, 4.5, 5.5]),
    ],
)
def test_what_follows_a_slow_run(missed, expected):
    clock, timer = caller_driven()
    ran = []

    def callback():
        ran.append(timer.time())
        if len(ran) == 1:
            clock.value += 2500 * MS

    timer.schedule_every(1, callback, missed=missed)
    for half in range(13):
        clock.value = max(clock.value, half * 500 * MS)
        while timer.advance_clock():
            pass
    assert ran == expected


def test_the_phase_does_not_drift():
    clock, timer = manual()
    call = timer.schedule_every(1 / 3, lambda: None)
    clock.advance(1000)
    assert call.when() == 333_333_333 * 3001 / 1e9


@pytest.mark.parametrize("missed", ["skip", "burst", "delay"])
def test_an_early_timer_keeps_the_rate_of_a_period_below_its_tick(missed):
    clock, _ = manual()
    timer = SystemTimer(HierarchicalWheel(tick=20), clock=clock)
    ran = []

    def run():
        ran.append(1)
        if len(ran) > 300:  # at once, again and again
            timer.close()

    timer.schedule_every(0.005, run, missed=missed)
    clock.advance(1)
    assert len(ran) == pytest.approx(200, abs=4)


@pytest.mark.parametrize("period", [0, 1e-10])
def test_a_period_is_at_least_a_nanosecond(period):
    _, timer = manual()
    with pytest.raises(TimeRangeError, match="period must be at least a nanosecond"):
        timer.schedule_every(period, print)


def test_the_first_argument_is_a_timer():
    with pytest.raises(ParameterError, match="timer must be a timer object, such as .*, not 3"):
        SystemTimer(3)


def test_missed_is_one_of_three():
    _, timer = manual()
    with pytest.raises(ParameterError, match="missed must be skip, burst or delay, not 'catch up'"):
        timer.schedule_every(1, print, missed="catch up")


# Executors


class HeldExecutor(Executor):
    """Keeps what is submitted until the test runs it."""

    def __init__(self):
        self.tasks = []

    def submit(self, fn, /, *args, **kwargs):
        self.tasks.append(lambda: fn(*args, **kwargs))
        return Future()


class CountingExecutor(Executor):
    """Runs at once what is submitted, and applies what was gathered, as a caller may just then."""

    def submit(self, fn, /, *args, **kwargs):
        fn(*args, **kwargs)
        self.size = self.service.size
        return Future()


class RefusingExecutor(Executor):
    def __init__(self, error=None):
        self.error = error or RuntimeError("no more")
        self.refused = threading.Event()

    def submit(self, fn, /, *args, **kwargs):
        self.refused.set()
        raise self.error


def test_a_periodic_call_never_overlaps_itself_in_an_executor():
    executor = HeldExecutor()
    clock, timer = manual(executor=executor)
    call = timer.schedule_every(1, lambda: None)
    clock.advance(10)
    assert len(executor.tasks) == 1
    assert call.reschedule_after(1)  # while it runs
    clock.advance(5)
    assert len(executor.tasks) == 1
    executor.tasks.pop()()
    clock.advance(0)
    assert len(executor.tasks) == 1
    assert call.cancel()  # while it runs: it will not start again
    executor.tasks.pop()()
    clock.advance(10)
    assert executor.tasks == []
    assert timer.size == 0


def test_a_periodic_call_that_is_applied_before_the_driver_goes_on_is_not_lost():
    executor, ran = CountingExecutor(), []
    clock, executor.service = manual(executor=executor)
    call = executor.service.schedule_every(
        9, lambda: ran.append(len(ran) < 3 and call.reschedule(0))
    )
    call.reschedule(0)
    clock.advance(0)
    assert ran == [True, True, True, False]
    assert executor.size == 1


def test_the_hook_is_told_what_an_executor_refuses():
    executor, refused = RefusingExecutor(), Recorder()
    clock, timer = manual(executor=executor, on_error=refused)
    every = timer.schedule_every(1, print)
    timer.schedule_after(1, len)
    clock.advance(3)
    assert refused.callbacks == [print, len, print, print]
    assert refused.errors == [executor.error] * 4
    assert not every.done()


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_an_executor_whose_submit_exits(kind, caplog):
    """The thread goes on; where you drive, it propagates, and a periodic call goes on."""
    executor = RefusingExecutor(kind("bye"))
    with SystemTimer(HierarchicalWheel(), executor=executor) as timer:
        timer.schedule_after(0, print)
        assert executor.refused.wait(10)
        assert timer.close("wait")
    assert [record.message for record in caplog.records] == ["callback print failed"]
    clock, timer = manual(executor=executor)
    every = timer.schedule_every(1, print)
    for _ in range(2):
        with pytest.raises(kind):
            clock.advance(1)
    assert not every.done()
    assert every.when() == 3


def test_an_exception_in_an_executor_goes_to_the_hook():
    executor, errors = HeldExecutor(), Recorder()
    clock, timer = manual(executor=executor, on_error=errors)
    timer.schedule_after(1, raising(SystemExit("bye")))
    clock.advance(1)
    executor.tasks.pop()()
    assert errors.texts == ["bye"]


# Driving


def test_advance_clock_waits_for_the_next_expiry_in_real_time():
    timer = SystemTimer(HierarchicalWheel(), start=False)
    before = timer.time()
    timer.schedule_after(0.01, int)
    assert timer.advance_clock(None) == 1
    assert timer.time() - before >= 0.01
    timer.schedule_after(0.01, int)
    assert timer.advance_clock(None) == 1  # those of this call alone
    assert timer.advance_clock(0.001) == 0


def test_a_service_has_one_driver():
    clock, timer = manual()
    problems = []

    def callback():
        with pytest.raises(ServiceStateError) as caught:
            timer.advance_clock()
        problems.append(str(caught.value))

    timer.schedule_after(1, callback)
    clock.advance(1)
    assert problems == ["this SystemTimer is being advanced already"]
    with (
        SystemTimer(HierarchicalWheel()) as driven,
        pytest.raises(ServiceStateError, match="start=False"),
    ):
        driven.advance_clock()


# A timer that fails, and a clock that another thread reads


def test_a_clock_that_fails_on_the_thread_is_logged_and_read_again(caplog):
    """Both times: after the turn that failed, too."""
    clock, ran = SettableClock(), threading.Event()
    now, failures = clock.now, [OSError("the clock is out of order")] * 2

    def failing():
        if failures and threading.current_thread() is not threading.main_thread():
            raise failures.pop()
        return now()

    clock.now = failing
    with SystemTimer(HierarchicalWheel(), clock=clock) as timer:
        timer.schedule_after(0, ran.set)
        assert ran.wait(10)
    logged = [(record.message, str(record.exc_info[1])) for record in caplog.records]
    assert logged == [("the timer of a SystemTimer failed", "the clock is out of order")] * 2


def test_a_timer_without_memory_is_reported_and_tried_again():
    timer, ran, failures = Interposed(CascadingWheel()), threading.Event(), Recorder()
    told = threading.Event()
    timer.before["schedule_many"] = raising(CapacityError("no memory for 1 more"))
    with SystemTimer(timer, on_error=lambda *error: (failures(*error), told.set())) as service:
        service.schedule_after(3600, print)  # the driver files it
        assert told.wait(10)
        service.schedule_after(0, ran.set)
        assert ran.wait(10)
        assert service.size == 1
    assert (failures.callbacks, failures.texts) == ([None], ["no memory for 1 more"])


def test_a_rearm_while_the_next_period_is_computed_is_kept():
    """Another thread moves a periodic call between the end of a run and its next deadline."""

    class Clock(ManualClock):
        hook = None

        def now(self):
            hook, self.hook = self.hook, None
            if hook is not None:
                hook()
            return super().now()

    clock = Clock()
    timer = SystemTimer(HierarchicalWheel(), clock=clock)

    def run():
        clock.hook = lambda: call.reschedule(100.0)

    call = timer.schedule_every(1.0, run)
    clock.advance(1)
    assert call.when() == 100.0


def test_calls_that_are_cancelled_at_once_never_reach_the_timer():
    wheel = CascadingWheel()
    _, timer = caller_driven(wheel)
    timer.schedule_after(60, print)
    for _ in range(1000):
        timer.schedule_after(30, print).cancel()
    assert len(wheel) == 1  # `size` would apply what was gathered
    assert timer.size == 1


@pytest.mark.parametrize("delay", [0, -1])
def test_what_is_due_when_the_driver_looks_never_enters_the_timer(delay):
    wheel, clock, ran = Interposed(CascadingWheel()), SettableClock(), []
    timer = SystemTimer(wheel, clock=clock, start=False)
    wheel.before["schedule_many"] = raising(AssertionError("it entered the timer"))

    def again(left):
        ran.append(left)
        if left:
            timer.schedule_after(delay, again, left - 1)

    timer.schedule_after(delay, again, 3)
    for _ in range(4):
        clock.value += 400_000
        assert timer.advance_clock() >= 1 or len(ran) == 4
    assert ran == [3, 2, 1, 0]


def test_what_is_due_at_once_runs_in_order_with_what_the_timer_returns():
    clock, ran = ManualClock(), []
    timer = SystemTimer(CascadingWheel(), clock=clock)
    timer.schedule_after(1, ran.append, "second")
    assert timer.size == 1  # it is in the timer
    timer.schedule_at(0.5, ran.append, "first")
    timer.schedule_at(1.000_000_001, ran.append, "third")
    clock._now = 2 * 10**9
    clock.advance(0)
    assert ran == ["first", "second", "third"]
