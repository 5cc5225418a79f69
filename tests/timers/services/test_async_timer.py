"""AsyncTimer: its calls, and what it refuses, on a loop whose time jumps to the next event."""

# `_mailbox` is private: no public member tells what waits in it, or lets its timer fail.

import asyncio
import contextvars
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from tests.timers.services.cases import TIMERS, raising
from tests.timers.services.loops import JumpingLoop, run
from timers import CascadingWheel, HierarchicalWheel
from timers.errors import ParameterError, TimeRangeError
from timers.services import (
    AsyncTimer,
    CallbackError,
    ServiceClosedError,
    ServiceStateError,
    calls,
    mailbox,
)

# Calls


@pytest.mark.parametrize("name", TIMERS)
def test_calls_run_at_their_deadlines(name):
    async def main(timer, loop):
        lowest, greatest = timer._mailbox.timer.traits.rounding(
            timer._mailbox.timer.parameters
        ).bounds()
        ran = []
        delays = [0, 0.001, 0.5, 0.0305, 60, 2]
        for delay in delays:
            timer.schedule_after(delay, lambda d=delay: ran.append((d, loop.time() - 100)))
        timer.schedule_at(101.0, lambda: ran.append((1.0, loop.time() - 100)))
        assert timer.size == 7
        await asyncio.sleep(61)
        assert [delay for delay, _ in ran] == sorted([*delays, 1.0])
        for delay, time in ran:
            assert delay + lowest / 1000 - 1e-6 <= time <= delay + (greatest + 1) / 1000 + 1e-6
        assert timer.size == 0

    run(main, name)


@pytest.mark.parametrize("name", TIMERS)
def test_the_loop_knows_the_next_expiry_only(name):
    async def main(timer, loop):
        for delay in range(1000):
            timer.schedule_after(3600.0 + delay, print)
        await asyncio.sleep(0)
        assert len(loop.armed) == 1
        earlier = timer.schedule_after(10.0, print)
        await asyncio.sleep(0)
        assert len(loop.armed) == 2
        assert earlier.reschedule_after(5)
        await asyncio.sleep(0)
        assert len(loop.armed) == 3
        assert earlier.cancel()
        before = loop.selects
        await asyncio.sleep(1000)
        assert loop.selects - before < 60  # cascades, and no ticks

    run(main, name)


def test_a_call_is_cancelled_or_rearmed_like_those_of_a_system_timer():
    async def main(timer, loop):
        ran = []
        first = timer.schedule_after(1, ran.append, 1)
        second = timer.schedule_after(1, ran.append, 2)
        third = timer.schedule_after(9, ran.append, 3)
        assert first.cancel() and not first.cancel()
        assert second.reschedule_after(5) and third.reschedule(102.0)
        await asyncio.sleep(10)
        assert ran == [3, 2]
        assert not second.reschedule_after(1)

    run(main)


def test_a_datetime_is_a_moment():
    async def main(timer, loop):
        call = timer.schedule_at(datetime.now(UTC) + timedelta(seconds=50), print)
        assert call.when() == pytest.approx(150, abs=5)

    run(main)


def test_periodic_calls_keep_their_phase():
    async def main(timer, loop):
        ran = []
        call = timer.schedule_every(0.25, lambda: ran.append(loop.time()))
        await asyncio.sleep(1.1)
        call.cancel()
        await asyncio.sleep(1)
        assert ran == pytest.approx([100.25, 100.5, 100.75, 101.0])

    run(main)


def test_callbacks_that_schedule_cancel_and_close():
    async def main(timer, loop):
        ran = []
        sibling = timer.schedule_after(1.0002, ran.append, "sibling")
        timer.schedule_after(
            1, lambda: (ran.append(sibling.cancel()), timer.schedule_after(0, ran.append, "new"))
        )
        timer.schedule_after(3, timer.close)
        timer.schedule_after(3, ran.append, "too late")
        await asyncio.sleep(5)
        assert ran == [True, "new"]
        with pytest.raises(ServiceClosedError):
            timer.schedule_after(1, print)

    run(main)


def test_the_context_is_copied():
    variable = contextvars.ContextVar("variable", default=0)

    async def main(timer, loop):
        seen = []
        variable.set(1)
        timer.schedule_after(1, lambda: seen.append(variable.get()))
        variable.set(2)
        given = contextvars.Context()
        timer.schedule_after(1, lambda: seen.append(variable.get()), context=given)
        await asyncio.sleep(2)
        assert sorted(seen) == [0, 1]

    run(main)


def test_an_exception_goes_to_the_handler_of_the_loop():
    async def main(timer, loop):
        caught, ran = [], []
        loop.set_exception_handler(lambda _, context: caught.append(context))
        timer.schedule_after(1, raising(ValueError("on purpose")))
        timer.schedule_after(1, ran.append, 1)
        await asyncio.sleep(2)
        assert [str(context["exception"]) for context in caught] == ["on purpose"]
        assert "callback" in caught[0]["message"]
        assert ran == [1]

    run(main)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_an_exit_ends_the_loop_and_the_rest_stays_due(kind):
    loop = JumpingLoop()
    ran = []

    async def setup():
        timer = AsyncTimer(CascadingWheel())
        timer.schedule_after(1, raising(kind()))
        timer.schedule_after(1, ran.append, 1)
        return timer

    timer = loop.run_until_complete(setup())
    with pytest.raises(kind):
        loop.run_forever()
    assert ran == []
    loop.run_until_complete(asyncio.sleep(2))
    assert ran == [1]
    assert len(timer._mailbox.timer) == 0
    loop.close()


def test_a_full_mailbox_is_applied(monkeypatch):
    monkeypatch.setattr(calls, "MAILBOX_LIMIT", 10)
    monkeypatch.setattr(mailbox, "MAILBOX_LIMIT", 10)

    async def main(timer, loop):
        calls = [timer.schedule_after(60, print) for _ in range(100)]
        assert len(timer._mailbox.entries) <= 10
        for call in calls:
            assert call.cancel()
        assert len(timer._mailbox.entries) <= 10
        assert timer.size == 0

    run(main)


def test_a_finalizer_may_use_the_timer_while_it_files_calls():
    async def main(timer, loop):
        schedule = timer._mailbox.timer.schedule_many
        ran = []

        def reentrant(deadlines):
            timer._mailbox.timer.schedule_many = schedule
            timer.schedule_after(0.5, ran.append, "from the finalizer")
            return schedule(deadlines)

        timer._mailbox.timer.schedule_many = reentrant
        timer.schedule_after(1, ran.append, "first")
        await asyncio.sleep(2)
        assert sorted(ran) == ["first", "from the finalizer"]
        timer._mailbox.timer.schedule_many = lambda deadlines: (timer.close(), schedule(deadlines))[
            1
        ]
        call = timer.schedule_after(0.1, ran.append, "closed")
        await asyncio.sleep(2)
        assert len(ran) == 2
        assert call.cancelled()
        del timer._mailbox.timer.schedule_many

    run(main)


def test_what_close_drops_may_use_the_timer():
    async def main(timer, loop):
        sizes = []

        class Argument:
            def __del__(self):
                sizes.append(timer.size)

        timer.schedule_after(1, print, Argument())
        timer.close()
        assert sizes == [0]

    run(main)


# Bad input


def test_a_timer_belongs_to_a_loop():
    with pytest.raises(ServiceStateError, match="made while its loop runs"):
        AsyncTimer(CascadingWheel())

    async def make():
        return AsyncTimer(CascadingWheel())

    loop = JumpingLoop()
    timer = loop.run_until_complete(make())
    loop.close()
    with pytest.raises(ServiceClosedError, match="the loop of this AsyncTimer is closed"):
        timer.schedule_after(1, print)


def test_another_thread_may_use_it_while_the_loop_sleeps():
    async def main():
        loop, ran, done = asyncio.get_running_loop(), [], asyncio.Event()
        async with AsyncTimer(CascadingWheel()) as timer:
            late = timer.schedule_after(3600, lambda: (ran.append("moved"), done.set()))

            def use():
                timer.schedule_after(0, ran.append, "new")
                return late.reschedule_after(0.01), timer.size

            moved, size = await loop.run_in_executor(None, use)
            assert moved and size in (1, 2)
            await done.wait()
        assert ran == ["new", "moved"]

    asyncio.run(main())


def test_bad_arguments_are_refused_and_the_service_goes_on():
    async def main(timer, loop):
        with pytest.raises(TimeRangeError):
            timer.schedule_after(-1, print)
        with pytest.raises(TimeRangeError):
            timer.schedule_after(float("nan"), print)
        with pytest.raises(CallbackError):
            timer.schedule_after(1, None)
        for schedule in (timer.schedule_after, timer.schedule_at, timer.schedule_every):
            with pytest.raises(CallbackError, match="context must be a Context, not 'x'"):
                schedule(1, print, context="x")
        assert timer.size == 0
        with pytest.raises(ParameterError):
            AsyncTimer(HierarchicalWheel(), unit_ns=0)

    run(main)


def test_a_delay_beyond_all_floats_is_as_long_as_can_be():
    async def main(timer, loop):
        call = timer.schedule_after(Fraction(10**400), print)
        assert call.when() == pytest.approx((2**63 - 1) / 1e9)
        await asyncio.sleep(1)
        assert timer.size == 1

    run(main)
