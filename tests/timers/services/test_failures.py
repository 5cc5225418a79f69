"""Clocks that fail, exceptions of signal handlers, and waits for calls that are cancelled."""

# Private members: whether the driver's thread lives, and where it is made to end.

import asyncio
import logging
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from functools import partial
from itertools import count

import pytest

from tests.timers.services.cases import (
    MS,
    Interposed,
    Recorder,
    SettableClock,
    Waiting,
    in_thread,
    raising,
)
from tests.timers.services.loops import JumpingLoop
from tests.timers.services.test_interruptions import interrupted, raise_interruption
from tests.timers.services.test_system_timer import HeldExecutor
from tests.timers.services.test_system_timer_processes import forks, status_of_child
from timers import CascadingWheel
from timers.errors import ClockError, ParameterError, TimeRangeError
from timers.services import (
    IdleDetector,
    ManualClock,
    Purgatory,
    ServiceClosedError,
    SystemTimer,
    system_timer,
    wheel_event_loop,
)
from timers.services.pending import NEVER


class FailingClock(SettableClock):
    """A clock that raises when the driver's thread reads it for the `failing`-th time."""

    def __init__(self, failing):
        self.failing, self.read = failing, 0

    def now(self):
        if threading.current_thread().name == "SystemTimer":
            self.read += 1
            if self.read == self.failing:
                raise OSError("the clock is out of order")
        return self.value


@pytest.mark.parametrize("failing", range(1, 7))
def test_a_clock_may_fail_wherever_the_driver_reads_it(failing):
    errors, ran = Recorder(), threading.Event()
    clock = FailingClock(failing)
    with SystemTimer(CascadingWheel(), clock=clock, on_error=errors) as timer:
        timer.schedule_after(3600, print)  # it decides how long to wait
        while clock.read < failing:
            in_thread(timer.schedule_after, -1, int)
        timer.schedule_after(0, ran.set)
        assert ran.wait(10)
        assert timer._thread.is_alive()
    assert errors.texts == ["the clock is out of order"]
    assert errors.callbacks == [None]


def test_a_service_whose_driver_has_ended_refuses_calls(monkeypatch):
    clock = FailingClock(None)
    timer = SystemTimer(CascadingWheel(), clock=clock)
    while timer._pending.alarm != NEVER:  # until the driver sleeps
        time.sleep(0.001)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    clock.failing = clock.read + 1
    with monkeypatch.context() as patch:
        patch.setattr(system_timer, "suppress", raising(MemoryError()))  # not even this works
        timer._bell._rung_by.append(timer)
        timer._bell._silence.release()
        timer._thread.join(10)
    assert not timer._thread.is_alive()
    with pytest.raises(ServiceClosedError):
        timer.schedule_after(1, print)
    assert timer.close()


def test_a_periodic_call_in_an_executor_goes_on_when_the_clock_fails_at_its_end():
    executor, errors, clock = HeldExecutor(), Recorder(), SettableClock()
    timer = SystemTimer(
        CascadingWheel(), clock=clock, start=False, executor=executor, on_error=errors
    )
    every = timer.schedule_every(1, int)
    clock.value = 1000 * MS
    timer.advance_clock()
    clock.now = timer._pending.now = raising(OSError("the clock is out of order"))
    clock.now = lambda: raising(OSError("the clock is out of order"))()
    executor.tasks.pop()()
    assert errors.texts == ["the clock is out of order"]
    assert timer.size == 1
    assert every.when() == 2
    assert not every.done()


def test_an_exception_between_the_start_of_a_call_and_its_callback_is_a_failed_run():
    for number in count():
        clock, errors, ran = SettableClock(), Recorder(), []
        timer = SystemTimer(CascadingWheel(), clock=clock, start=False, on_error=errors)
        callbacks = [partial(ran.append, k) for k in range(3)]
        for callback in callbacks:
            timer.schedule_after(1, callback)
        clock.value = 1000 * MS
        came = interrupted(number, raise_interruption, timer.advance_clock)
        timer.advance_clock()
        for k, callback in enumerate(callbacks):
            assert ran.count(k) <= 1
            assert ran.count(k) or callback in errors.callbacks, "neither run nor reported"
        assert timer.size == 0
        if not came:
            break
    assert number > 20


def test_an_interrupted_periodic_run_counts_again():
    for number in count():
        clock, errors = SettableClock(), Recorder()
        timer = SystemTimer(CascadingWheel(), clock=clock, start=False, on_error=errors)
        timer.schedule_every(1, int)
        clock.value = 1000 * MS
        came = interrupted(number, raise_interruption, timer.advance_clock)
        assert timer.size == 1
        if not came:
            break


@forks
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_is_forked_while_a_manual_clock_advances_may_advance_it():
    clock, started, release = ManualClock(), threading.Event(), threading.Event()
    timer = SystemTimer(CascadingWheel(), clock=clock)
    timer.schedule_after(1, lambda: (started.set(), release.wait(60)))
    thread = threading.Thread(target=clock.advance, args=(1,))
    thread.start()
    assert started.wait(10)
    assert status_of_child(lambda: clock.advance(5) is None) == 0
    release.set()
    thread.join(10)


class Interrupting:
    """A lock that calls `after` once, when it has been released for the first time."""

    def __init__(self, lock, after):
        self.lock, self.after = lock, after

    def __enter__(self):
        self.lock.acquire()

    def __exit__(self, *error):
        self.lock.release()
        after, self.after = self.after, lambda: None
        after()


def test_reschedule_moves_a_periodic_call_whose_run_ends_meanwhile():
    executor, clock = HeldExecutor(), SettableClock()
    timer = SystemTimer(CascadingWheel(), clock=clock, start=False, executor=executor)
    every = timer.schedule_every(1, int)
    clock.value = 1000 * MS
    timer.advance_clock()  # it runs until the task has run
    timer._pending.lock = Interrupting(timer._pending.lock, executor.tasks.pop())
    assert every.reschedule(50)
    assert every.when() == 50


# Waits


def ends(wait, cancel):
    """Another thread waits for a call that is an hour away, until that is cancelled."""
    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    thread.join(0.1)  # real time: it sleeps then
    assert thread.is_alive()
    cancel()
    thread.join(10)
    return not thread.is_alive()


@pytest.mark.parametrize("start", [True, False])
def test_close_does_not_wait_for_a_call_that_was_cancelled_meanwhile(start):
    timer = SystemTimer(CascadingWheel(), start=start)
    call = timer.schedule_after(3600, print)
    assert ends(lambda: timer.close("wait"), call.cancel)
    assert timer.close()


def test_advance_clock_does_not_wait_for_a_call_that_was_cancelled_meanwhile():
    timer = SystemTimer(CascadingWheel(), start=False)
    call = timer.schedule_after(3600, print)

    def cancel():
        while not timer._driving.locked():  # or `close` would wait itself, for an hour
            time.sleep(0.001)
        assert not timer.close("wait")  # the other thread advances it
        time.sleep(0.1)  # real time: until that sleeps again
        call.cancel()

    assert ends(lambda: timer.advance_clock(None), cancel)


@pytest.mark.parametrize("how", ["complete", "cancel", "shutdown"])
def test_close_does_not_wait_for_operations_that_have_left_meanwhile(how):
    timer = SystemTimer(CascadingWheel())
    purgatory, operation = Purgatory("test", timer), Waiting(3600)
    purgatory.try_complete_else_watch(operation, ["a"])
    leave = {
        "complete": operation.force_complete,
        "cancel": operation.cancel,
        "shutdown": purgatory.shutdown,
    }
    assert ends(lambda: timer.close("wait"), leave[how])


@pytest.mark.parametrize(
    ("late_ms", "running_ms", "expected"),
    [(4.9, None, False), (5, None, True), (5, 9, True), (5, 11, False), (4.9, 9, False)],
)
def test_callers_let_a_late_driver_go_first_but_not_a_slow_callback(
    late_ms, running_ms, expected, monkeypatch
):
    clock = SettableClock()
    timer = SystemTimer(CascadingWheel(), clock=clock, start=False)
    monkeypatch.setattr(system_timer.time, "monotonic_ns", lambda: 10**12)
    timer._runner.next_due, clock.value = 10**9, 10**9 + int(late_ms * MS)
    if running_ms is not None:
        timer._runner.running_since = 10**12 - running_ms * MS
    assert timer._is_late() == expected


# Filing that fails


def test_what_cannot_be_filed_leaves_nothing_behind_and_runs_on_time():
    """The memory is missing after the timer has taken the calls, again and again."""

    class Failing(CascadingWheel):
        failing = 0

        def schedule_many(self, deadlines):
            handles = super().schedule_many(deadlines)
            self.failing -= 1
            return handles if self.failing < 0 else WithoutMemory(handles)

    class WithoutMemory:
        """Handles that cannot be read at first."""

        def __init__(self, handles):
            self.handles, self.reads = handles, 0

        def __and__(self, mask):
            raise MemoryError

        def tolist(self):
            return self.handles.tolist()

    wheel, errors, clock, ran = Failing(), Recorder(), SettableClock(), []
    timer = SystemTimer(wheel, clock=clock, start=False, on_error=errors)
    wheel.failing = 3
    for k in range(1000):
        timer.schedule_after(1, ran.append, k)
    assert len(wheel) == 0
    assert wheel.failing == 2, "callers tried again"
    for left in (1, 0):
        with pytest.raises(MemoryError):
            timer.advance_clock()
        assert (len(wheel), wheel.failing) == (0, left)
    assert timer.size == len(wheel) == 1000
    clock.value = 1000 * MS
    assert timer.advance_clock() == 1000
    assert ran == list(range(1000))


# Executors


def test_an_executor_of_processes_is_refused():
    with ProcessPoolExecutor(1) as pool, pytest.raises(ParameterError, match="in this process"):
        SystemTimer(CascadingWheel(), executor=pool)


@pytest.mark.parametrize("drop", ["cancel", "break"])
def test_a_call_that_its_executor_drops_is_reported(drop):
    class Dropping(Executor):
        def submit(self, function, /, *args):
            futures.append(Future())
            return futures[-1]

    futures, errors, clock = [], Recorder(), SettableClock()
    timer = SystemTimer(
        CascadingWheel(), clock=clock, start=False, executor=Dropping(), on_error=errors
    )
    once, every = timer.schedule_after(1, print), timer.schedule_every(1, print)
    clock.value = 1000 * MS
    timer.advance_clock()
    for future in futures:
        future.cancel() if drop == "cancel" else future.set_exception(ValueError("broken"))
    assert [type(error).__name__ for error in errors.errors] == [
        "CancelledError" if drop == "cancel" else "ValueError"
    ] * 2
    assert once.done()
    assert not every.done()
    assert (timer.size, every.when()) == (1, 2)


# What is out of range


def test_an_infinite_delay_is_refused():
    timer = SystemTimer(CascadingWheel(), clock=ManualClock())
    for delay in (float("inf"), float("-inf")):
        for schedule in (timer.schedule_after, timer.schedule_at, timer.schedule_every):
            with pytest.raises(TimeRangeError, match="must be finite, not"):
                schedule(delay, print)
    assert timer.size == 0


def test_a_negative_delay_is_due_at_once():
    clock, ran = ManualClock(), []
    clock.advance(5)
    timer = SystemTimer(CascadingWheel(), clock=clock)
    call = timer.schedule_after(-3, ran.append, 1)
    assert call.when() == 5
    assert timer.schedule_after(9, ran.append, 2).reschedule_after(-1)
    clock.advance(0)
    assert ran == [1, 2]


@pytest.mark.parametrize(("timeout", "tick"), [(0, 1), (1, 2), (0, 0), (1, 0)])
def test_an_idle_detectors_tick_lies_within_its_timeout(timeout, tick):
    with pytest.raises(TimeRangeError, match="at most the timeout"):
        IdleDetector(timeout, tick)


def test_a_clock_that_steps_back_does_what_the_guide_says():
    """Nothing runs; the hook is told, and told again after a tenth of a second."""
    clock, errors, told, ran = SettableClock(), Recorder(), threading.Semaphore(0), []

    def hook(callback, error):
        errors(callback, error)
        told.release()

    clock.value = 10**10
    timer = SystemTimer(CascadingWheel(), clock=clock, on_error=hook)
    first = threading.Event()
    timer.schedule_after(0, first.set)
    assert first.wait(10)
    clock.value = 0
    timer.schedule_at(0, ran.append, 1)
    assert told.acquire(timeout=10) and told.acquire(timeout=10)
    assert ran == []
    assert set(map(type, errors.errors)) == {ClockError}
    clock.value = 2 * 10**10
    assert timer.close("wait", 10)
    assert ran == [1]


# The first run, and what is pending


def test_the_first_run_of_a_periodic_call():
    clock, ran = ManualClock(), []
    timer = SystemTimer(CascadingWheel(), clock=clock)
    timer.schedule_every(10, lambda: ran.append(timer.time()), first=3)
    timer.schedule_every(10, lambda: ran.append(timer.time()), first=0)
    clock.advance(15)
    assert ran == [0, 3, 10, 13]


def test_calls_lists_what_is_pending_and_cancel_all_cancels_it():
    clock, ran = ManualClock(), []
    timer = SystemTimer(CascadingWheel(), clock=clock)
    late, early = timer.schedule_after(9, print), timer.schedule_after(1, print)
    assert timer.size == 2
    every = timer.schedule_every(5, print)
    timer.schedule_after(0.5, lambda: ran.append(timer.calls()))
    clock.advance(0.5)
    assert ran == [[early, every, late]] == [timer.calls()]
    assert timer.cancel_all() == 3
    assert timer.calls() == []
    assert (timer.size, timer.cancel_all()) == (0, 0)


# Debug mode


def test_debug_mode_names_the_slow_callback_and_where_it_was_asked_for(caplog):
    def slow():
        loop.now += 5

    loop = wheel_event_loop(base=JumpingLoop)()
    loop.set_debug(True)
    loop.call_later(1, slow)
    loop.call_at(loop.time() + 1.5, slow)
    with caplog.at_level(logging.WARNING, "asyncio"):
        loop.run_until_complete(asyncio.sleep(20))
    loop.close()
    messages = [record.getMessage() for record in caplog.records]
    slow_ones = [message for message in messages if "slow()" in message]
    assert len(slow_ones) == 2
    assert not any("LoopDriver" in message for message in slow_ones)
    assert all("created at" in message and "test_failures.py" in message for message in slow_ones)
    assert not any("event_loop.py" in message for message in slow_ones)


def test_a_timer_that_fails_in_the_wait_is_reported():
    """`next_wakeup`, which decides how long to wait."""
    wheel, errors, ran = Interposed(CascadingWheel()), Recorder(), threading.Event()
    wheel.before["next_wakeup"] = raising(MemoryError("no memory"))
    with SystemTimer(wheel, on_error=errors) as timer:
        timer.schedule_after(0, ran.set)
        assert ran.wait(10)
    assert errors.texts == ["no memory"]
