"""Loops whose clock jumps: programs that wait for hours run in no time, in order."""

import asyncio

import pytest

from timers import CascadingWheel
from timers.errors import ParameterError
from timers.services import AsyncTimer, ManualClock, SystemTimer, wheel_event_loop


def run(main, **options):
    clock = ManualClock(autojump=True)
    with asyncio.Runner(loop_factory=wheel_event_loop(clock=clock, **options)) as runner:
        return clock, runner.run(main(clock))


def test_ten_hours_of_sleeps_take_a_moment_and_keep_their_order():
    async def main(clock):
        loop, ran = asyncio.get_running_loop(), []

        async def work(number):
            for _ in range(10):
                await asyncio.sleep(3600 + number)
                ran.append((loop.time(), number))

        await asyncio.gather(*(work(number) for number in range(50)))
        return ran

    clock, ran = run(main)
    assert clock.now() / 1e9 == pytest.approx(36_490, abs=1e-3)
    assert len(ran) == 500
    assert ran == sorted(ran)


def test_timeouts_expire_at_their_deadlines():
    async def main(clock):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1800):
                await asyncio.sleep(3600)
        return clock.now() / 1e9

    assert run(main)[1] == pytest.approx(1800, abs=1e-3)


def test_services_on_the_clock_run_in_order_with_the_loop():
    async def main(clock):
        ran = []
        system = SystemTimer(CascadingWheel(), clock=clock)
        async with AsyncTimer(CascadingWheel()) as timer:
            system.schedule_after(1, ran.append, "system")
            timer.schedule_after(2, ran.append, "async")
            system.schedule_after(3, ran.append, "system again")
            await asyncio.sleep(4)
        return ran

    assert run(main)[1] == ["system", "async", "system again"]


def test_sockets_and_threads_work():
    async def main(clock):
        async def serve(reader, writer):
            writer.write(await reader.readline())
            await asyncio.sleep(100)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"hello\n")
        line = await reader.readline()
        rest = await reader.read()
        writer.close()
        server.close()
        return line, rest, await asyncio.to_thread(int, "5")

    assert run(main)[1] == (b"hello\n", b"", 5)


def test_a_clock_that_does_not_jump_is_moved_by_the_program():
    async def main():
        task = asyncio.create_task(asyncio.sleep(60, "done"))
        await asyncio.sleep(0)
        clock.advance(61)
        return await task

    clock = ManualClock()
    with asyncio.Runner(loop_factory=wheel_event_loop(clock=clock)) as runner:
        assert runner.run(main()) == "done"


def test_the_factory_needs_no_parentheses_and_takes_them():
    for factory in (wheel_event_loop, wheel_event_loop(), wheel_event_loop(CascadingWheel)):
        for _ in range(2):
            with asyncio.Runner(loop_factory=factory) as runner:
                loop = runner.get_loop()
                runner.run(asyncio.sleep(0.001))
            assert len(loop.wheel.timer) == 0


class Proactor(asyncio.BaseEventLoop):
    """Another kind of loop."""


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"timer_factory": 5}, "timer_factory must be callable, not 5"),
        ({"base": 5}, "base must be a class of event loops, not 5"),
        ({"clock": 5}, "clock must be a Clock, not 5"),
        ({"clock": ManualClock(), "base": Proactor}, "needs asyncio's SelectorEventLoop"),
    ],
)
def test_nonsense_is_refused(options, text):
    with pytest.raises(ParameterError, match=text):
        wheel_event_loop(**options)


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("days", [193, 195, 2_000, 20_000])
def test_a_clock_may_be_as_far_as_a_float_has_no_nanoseconds(days, debug):
    """From 2**24 seconds on, which are 194 days, the time of a loop has steps of nanoseconds."""
    clock, ran = ManualClock(autojump=True), []

    async def main():
        loop = asyncio.get_running_loop()
        await asyncio.sleep(days * 86_400)
        for delay in (0, 1e-9, 0.001, 1, 12_345.678_9):
            await asyncio.sleep(delay)
            loop.call_later(delay, ran.append, delay)
        await asyncio.sleep(86_400)

    with asyncio.Runner(loop_factory=wheel_event_loop(clock=clock), debug=debug) as runner:
        runner.run(main())
    assert ran == [0, 1e-9, 0.001, 1, 12_345.678_9]
    assert clock.now() >= (days + 1) * 86_400 * 10**9


def test_a_sleep_ends_before_the_later_call_of_a_service_on_its_clock():
    clock, ran = ManualClock(autojump=True), []
    timer = SystemTimer(CascadingWheel(), clock=clock)
    timer.schedule_after(10, ran.append, 1)

    async def main():
        await asyncio.sleep(1)
        assert (clock.now(), ran) == (10**9, [])
        await asyncio.sleep(10)

    with asyncio.Runner(loop_factory=wheel_event_loop(clock=clock)) as runner:
        runner.run(main())
    assert (clock.now(), ran) == (11 * 10**9, [1])
