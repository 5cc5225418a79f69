"""Loops whose calls are in a timer: CPython's own tests, beside asyncio's loop, and details."""

import asyncio
import importlib.util
import json
import random
import subprocess
import sys
from contextlib import closing

import pytest

from tests.timers.services.cases import TIMERS, bounds_of, in_thread
from tests.timers.services.loops import JumpingLoop
from timers import CascadingWheel
from timers.services import wheel_event_loop

PRIVATE = {
    "BaseEventLoopTests.test__run_once_cancelled_event_cleanup",
    "BaseEventLoopTests.test_call_later",
}
"""Tests of CPython that look into the loop's own heap, `_scheduled`, in which nothing is."""


needs_suites = pytest.mark.skipif(
    importlib.util.find_spec("test.test_asyncio") is None,
    reason="this interpreter comes without the package `test`",
)


@needs_suites
@pytest.mark.parametrize("suite", ["test_timeouts", "test_waitfor", "test_base_events"])
def test_the_tests_of_cpython_pass(suite):
    """Up to ten seconds: the one proof that the loop behaves as asyncio's."""
    tests, scheduled, failed, report = run_suite(suite)
    assert set(failed) == (PRIVATE if suite == "test_base_events" else set()), report
    assert tests > 10
    assert scheduled > 20


@needs_suites
@pytest.mark.skipif(importlib.util.find_spec("uvloop") is None, reason="uvloop is not installed")
@pytest.mark.parametrize(
    "suite",
    [
        *("test_timeouts", "test_waitfor"),
        *(
            pytest.param(f"test_{name}", marks=pytest.mark.slow)
            for name in ("taskgroups", "locks", "queues", "events", "server", "tasks")
        ),
    ],
)
def test_no_test_of_cpython_fails_on_uvloop_that_passes_without_the_wheel(suite):
    """Six seconds each, as two programs run; a minute and a half for the tests of tasks."""
    tests, scheduled, failed, report = run_suite(suite, "uvloop")
    plain_tests, _, plain_failed, _ = run_suite(suite, "plain uvloop")
    assert set(failed) <= set(plain_failed), report
    assert tests == plain_tests > 0
    # Those of servers ask for no calls, and those of events for calls that are due at once.
    assert scheduled > 0 or suite in ("test_server", "test_events")


@pytest.mark.slow
def test_the_tests_of_tasks_pass():
    """A minute."""
    tests, scheduled, failed, report = run_suite("test_tasks")
    assert failed == [], report
    assert tests > 900
    assert scheduled > 1000


@pytest.mark.parametrize("module", ["asyncio", "uvloop"])
def test_in_debug_mode_a_call_remembers_who_asked_for_it(module):
    base = getattr(pytest.importorskip(module), "SelectorEventLoop", None)
    base = base or pytest.importorskip(module).Loop
    with closing(wheel_event_loop(base=base)()) as loop:
        loop.set_debug(True)
        now = loop.time()
        for delay in (0, 0.001, 1):
            for handle in (loop.call_later(delay, print), loop.call_at(now + delay, print)):
                assert handle._source_traceback[-1].filename == __file__, (delay, handle)
                handle.cancel()


def run_suite(suite, base="asyncio"):
    """How many tests ran, how many calls were in a timer, the tests that failed, and why."""
    command = [sys.executable, "-m", "tests.timers.services.cpython_suites", suite, base]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return *json.loads(run.stdout.splitlines()[-1]), run.stderr


def on_a_wheel(timer=CascadingWheel):
    """A loop whose time jumps and whose calls are in a timer."""
    return wheel_event_loop(timer, base=JumpingLoop, unit_ns=1_000_000)()


@pytest.fixture
def loop():
    with closing(on_a_wheel()) as loop:
        yield loop


@pytest.mark.parametrize("name", TIMERS)
def test_it_runs_what_asyncio_runs(name):
    """Random calls that schedule and cancel others, each at a unit of its own."""

    def run(loop):
        dice, ran, handles, taken = random.Random(1), [], [], set()

        def call(number, depth):
            ran.append((number, round((loop.time() - 100) * 1000)))
            if depth:
                schedule(depth - 1)
            if dice.random() < 0.3:
                dice.choice(handles).cancel()

        def schedule(depth):
            when = round((loop.time() - 100) * 1000) + dice.randrange(1, 500)
            while when in taken:  # the order of equal deadlines is undefined
                when += 1
            taken.add(when)
            handles.append(loop.call_at(100 + when / 1000, call, len(handles), depth))

        for _ in range(300):
            schedule(2)
        loop.call_later(5, loop.stop)
        loop.run_forever()
        states = [(handle.cancelled(), round(handle.when(), 6)) for handle in handles]
        loop.close()
        return ran, states

    ran, states = run(on_a_wheel(TIMERS[name]))
    if bounds_of(TIMERS[name]()) == (0, 0):
        assert (ran, states) == run(JumpingLoop())
    assert len(ran) > 500


def test_a_handle_is_as_asyncio_makes_it(loop):
    """Its slots are set directly, as the constructors take a third of the time."""
    handle = loop.call_at(105.0, print, "a", 1)
    plain = asyncio.TimerHandle(105.0, print, ("a", 1), loop)
    slots = {name for cls in asyncio.TimerHandle.__mro__ for name in getattr(cls, "__slots__", ())}
    for name in slots - {"__weakref__", "_context"}:
        assert getattr(handle, name) == getattr(plain, name), name
    assert dict(handle._context) == dict(plain._context)
    for call in (loop.call_later, loop.call_at):
        assert call(105.0, print, context=handle._context)._context is handle._context
    assert repr(handle).replace("WheelHandle", "TimerHandle") == repr(plain)
    handle.cancel()
    plain._scheduled = False
    plain.cancel()
    assert repr(handle).replace("WheelHandle", "TimerHandle") == repr(plain)
    assert handle.cancelled()


def test_the_loop_itself_knows_one_call(loop):
    async def main():
        sleeping = [asyncio.create_task(asyncio.sleep(3600 + k)) for k in range(1000)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(loop.armed) == 1
        for task in sleeping:
            task.cancel()
        await asyncio.gather(*sleeping, return_exceptions=True)

    loop.run_until_complete(main())


def test_a_closed_loop_refuses_calls_and_pending_ones_never_run(loop):
    ran = []
    handle = loop.call_later(1, ran.append, 1)
    loop.close()
    loop.close()
    for call in (loop.call_later, loop.call_at):
        with pytest.raises(RuntimeError, match="Event loop is closed"):
            call(1, print)
    handle.cancel()
    assert ran == []


def test_a_running_loop_cannot_be_closed(loop):
    async def main():
        with pytest.raises(RuntimeError, match="Cannot close a running event loop"):
            loop.close()
        await asyncio.sleep(1)

    loop.run_until_complete(main())


def test_debug_mode_checks_the_thread_and_the_callback(loop):
    async def coroutine():
        """Not a callback."""

    def refused():
        with pytest.raises(RuntimeError, match="Non-thread-safe operation"):
            loop.call_later(1, print)
        return True

    async def main():
        loop.set_debug(True)
        with pytest.raises(TypeError, match="coroutines cannot be used"):
            loop.call_later(1, coroutine)
        assert in_thread(refused)
        assert loop.call_later(1, print)._source_traceback

    loop.run_until_complete(main())


@pytest.mark.parametrize("when", [float("inf"), float("-inf"), -5, 0, 10**30, 100.5])
def test_any_moment_is_legal(loop, when):
    ran = []
    handle = loop.call_at(when, ran.append, 1)
    assert handle.when() == when
    loop.run_until_complete(asyncio.sleep(1))
    assert ran == ([1] if when < 101 else [])


def test_an_infinite_delay(loop):
    ran = []
    loop.call_later(float("-inf"), ran.append, "at once")
    loop.call_later(float("inf"), ran.append, "never")
    loop.run_until_complete(asyncio.sleep(1000))
    assert ran == ["at once"]


AT_ONCE = {
    "call_later(0)": lambda loop, again: loop.call_later(0, again),
    "call_later(-1)": lambda loop, again: loop.call_later(-1, again),
    "call_later(1e-9)": lambda loop, again: loop.call_later(1e-9, again),
    "call_at(0)": lambda loop, again: loop.call_at(0, again),
    "call_at(now)": lambda loop, again: loop.call_at(loop.time(), again),
}


@pytest.mark.parametrize("within", ["the host", "a turn"])
@pytest.mark.parametrize("name", AT_ONCE)
def test_a_chain_of_calls_that_are_due_takes_as_many_turns_as_on_asyncio(name, within):
    """From a callback of the loop itself, and from one that was in the timer."""

    def turns(loop):
        left, selects = 100, []

        def again():
            nonlocal left
            left -= 1
            selects.append(loop.selects)
            if left:
                AT_ONCE[name](loop, again)
            else:
                loop.stop()

        loop.call_later(0 if within == "the host" else 1, again)
        loop.run_forever()
        now = loop.time()
        loop.close()
        return selects[-1] - selects[0], round(now, 3)

    assert turns(on_a_wheel()) == turns(JumpingLoop())


def test_what_is_due_stands_behind_what_is_ready_in_order_of_time(loop):
    for loop in (loop, JumpingLoop()):  # noqa: B020  # the fixture closes the first
        ran = []
        loop.call_at(loop.time() - 1, ran.append, "second")
        loop.call_at(loop.time() - 2, ran.append, "first")
        gone = loop.call_later(0, ran.append, "cancelled")
        loop.call_soon(ran.append, "ready")
        gone.cancel()
        loop.call_soon(loop.stop)
        loop.run_forever()
        loop.run_until_complete(asyncio.sleep(0))
        assert ran == ["ready", "first", "second"]
    loop.close()


def test_a_loop_may_run_in_one_thread_after_another(loop):
    ran = []
    loop.call_later(1, ran.append, 1)
    loop.run_until_complete(asyncio.sleep(2))

    def elsewhere():
        for k in range(1000):
            loop.call_later(10 + k, ran.append, 2)
        loop.run_until_complete(asyncio.sleep(20))
        return True

    assert in_thread(elsewhere)
    loop.run_until_complete(asyncio.sleep(0.001))
    assert ran == [1] + [2] * 11


def test_the_repr_of_a_cancelled_handle_says_so_in_debug_mode(loop):
    loop.set_debug(True)
    for delay in (1, 0):
        handle = loop.call_later(delay, print)
        handle.cancel()
        assert "cancelled" in repr(handle)
        assert "print" in repr(handle)


def test_by_default_a_unit_is_a_tenth_of_a_millisecond():
    ran = []
    with closing(wheel_event_loop(base=JumpingLoop)()) as loop:
        loop.call_later(0.02025, lambda: ran.append(loop.time()))
        loop.run_until_complete(asyncio.sleep(0.1))
    assert ran == [pytest.approx(100.0203, abs=1e-6)]


def test_nonsense_is_refused(loop):
    with pytest.raises(TypeError):
        loop.call_later(None, print)
    with pytest.raises(TypeError):
        loop.call_at(None, print)
    with pytest.raises(ValueError, match="NaN"):
        loop.call_at(float("nan"), print)
