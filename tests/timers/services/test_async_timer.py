"""AsyncTimer: its calls, and what it refuses, on a loop whose time jumps to the next event."""

# `_pending` is private: no public member tells what is in its timer, or interrupts that.

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from tests.timers.services.cases import TIMERS, Interposed, bounds_of, raising
from tests.timers.services.loops import JumpingLoop, run
from timers import CascadingWheel
from timers.errors import CapacityError, ParameterError
from timers.services import AsyncTimer, ServiceClosedError, ServiceStateError


@pytest.mark.parametrize("name", TIMERS)
def test_calls_run_at_their_deadlines(name):
    async def main(timer, loop):
        lowest, greatest = bounds_of(timer._pending.timer)
        ran = []
        delays = [0, 0.001, 0.5, 0.0305, 60, 2]
        for delay in delays:
            timer.schedule_after(delay, lambda d=delay: ran.append((d, loop.time() - 100)))
        timer.schedule_at(101.0, lambda: ran.append((1.0, loop.time() - 100)))
        assert timer.size == 7
        await asyncio.sleep(70)  # 60 s are up to 7.6 s late on the Linux wheel
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
        # One later alarm stays set.
        assert [handle.cancelled() for handle in loop.armed] == [False, True, False]
        assert earlier.cancel()
        before = loop.selects
        await asyncio.sleep(1000)
        # Cascades; a wheel with rounds has to look into each slot.
        assert loop.selects - before < (20_000 if name == "hashed-wheel" else 60)

    run(main, name)


def test_a_datetime_is_a_moment():
    async def main(timer, loop):
        call = timer.schedule_at(datetime.now(UTC) + timedelta(seconds=50), print)
        assert call.when() == pytest.approx(150, abs=5)

    run(main)


def test_a_callback_may_close_the_service():
    async def main(timer, loop):
        ran = []
        timer.schedule_after(3, timer.close)
        timer.schedule_after(3, ran.append, "too late")
        await asyncio.sleep(5)
        assert ran == []
        with pytest.raises(ServiceClosedError, match="AsyncTimer is closed"):
            timer.schedule_after(1, print)

    run(main)


def test_an_exception_goes_to_the_handler_of_the_loop():
    async def main(timer, loop):
        caught, ran = [], []
        loop.set_exception_handler(lambda _, context: caught.append(context))
        timer.schedule_after(1, raising(ValueError("on purpose")))
        timer.schedule_after(1, ran.append, 1)
        await asyncio.sleep(2)
        assert [str(context["exception"]) for context in caught] == ["on purpose"]
        assert caught[0]["message"].startswith("Exception in callback <function raising")
        assert ran == [1]

    run(main)


def test_a_timer_without_memory_is_tried_again_after_a_tenth_of_a_second():
    async def main(timer, loop):
        caught, ran = [], []
        loop.set_exception_handler(lambda _, context: caught.append(str(context["exception"])))
        timer._pending.timer = Interposed(timer._pending.timer)
        timer._pending.timer.before["schedule_many"] = raising(CapacityError("no memory"))
        timer.schedule_after(0.001, lambda: ran.append(loop.time()))
        timer.schedule_after(5, print)  # it enters the timer, in the turn of the other
        await asyncio.sleep(1)
        assert caught == ["no memory"]
        assert ran == [pytest.approx(100.1, abs=0.002)]

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
    assert len(timer._pending.timer) == 0
    loop.close()


@pytest.mark.parametrize("in_turn", [True, False])
def test_a_finalizer_may_close_the_service_while_it_files_calls(in_turn):
    async def main(timer, loop):
        timer.schedule_after(0.05, print)
        await asyncio.sleep(0)
        timer._pending.timer = Interposed(timer._pending.timer)
        timer._pending.timer.before["schedule_many"] = timer.close
        call = timer.schedule_after(0.1, print)
        assert in_turn or timer.size < 2  # files it, without a turn
        await asyncio.sleep(2)
        assert call.cancelled()
        assert timer.size == 0

    run(main)


def test_a_timer_belongs_to_a_loop():
    with pytest.raises(ServiceStateError, match="made while its loop runs"):
        AsyncTimer(CascadingWheel())

    async def make():
        with pytest.raises(ParameterError, match="unit_ns must lie in"):
            AsyncTimer(CascadingWheel(), unit_ns=0)
        return AsyncTimer(CascadingWheel())

    loop = JumpingLoop()
    timer = loop.run_until_complete(make())
    loop.close()
    with pytest.raises(ServiceClosedError, match="the loop of this AsyncTimer is closed"):
        timer.schedule_after(1, print)
    assert timer.size == 0


def test_another_thread_uses_it_through_the_loop():
    async def main():
        loop, ran, done = asyncio.get_running_loop(), [], asyncio.Event()
        async with AsyncTimer(CascadingWheel()) as timer:
            late = timer.schedule_after(3600, lambda: (ran.append("moved"), done.set()))
            await asyncio.sleep(0)  # the alarm is set

            def use():
                with pytest.raises(ServiceStateError, match="used by the thread of its loop alone"):
                    timer.schedule_after(0, ran.append, "refused")
                loop.call_soon_threadsafe(timer.schedule_after, 0, ran.append, "new")
                loop.call_soon_threadsafe(late.reschedule_after, 0.01)

            await loop.run_in_executor(None, use)
            await done.wait()
        assert ran == ["new", "moved"]

    asyncio.run(main(), debug=True)  # the loop then refuses a call that would not wake it
