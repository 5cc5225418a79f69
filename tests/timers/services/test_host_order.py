"""The order of calls beside what the loop has ready: that of asyncio's own loop."""

import asyncio
import random
from dataclasses import dataclass

import pytest

from tests.timers.services.loops import JumpingLoop, JumpingSelector
from timers import CascadingWheel
from timers.services import AsyncTimer, wheel_event_loop

STEP_NS = 100_000  # of the time of the programs


class LookingLoop(JumpingLoop):
    """A loop that keeps the steps at which it looked at its calls."""

    def __init__(self):
        super().__init__()
        self.looks = []
        self._selector.select = self.look

    def look(self, timeout=None):
        events = JumpingSelector.select(self._selector, timeout)
        self.looks.append(self.step)
        return events

    @property
    def step(self):
        return round((self.now - 100) * 1e9 / STEP_NS)


@dataclass
class Asked:
    """A callback of a program: when it was asked for, its deadline if it is a call, and when it ran
    as which, in which turn of the loop.
    """

    asked: int
    deadline: int | None
    ran: int = 0
    place: int = -1
    turn: int = -1


def program(loop, call_later, seed, durations=(0, 0, 0, 10, 30, 90)):
    """A random program of callbacks that take time, and ask for others."""
    dice, everything, taken, ran = random.Random(seed), [], set(), []

    def ask(depth):
        asked = Asked(loop.step, None)
        everything.append(asked)
        if dice.random() < 0.5:
            loop.call_soon(run, asked, depth)
            return
        asked.deadline = loop.step + dice.randrange(1, 300)
        while asked.deadline in taken:  # the order of equal deadlines is undefined
            asked.deadline += 1
        taken.add(asked.deadline)
        call_later((asked.deadline - loop.step) * STEP_NS / 1e9, run, asked, depth)

    def run(asked, depth):
        asked.ran, asked.place, asked.turn = loop.step, len(ran), len(loop.looks)
        ran.append(asked)
        loop.now += dice.choice(durations) * STEP_NS / 1e9
        for _ in range(dice.randrange(3) if depth else 0):
            ask(depth - 1)

    for _ in range(8):
        ask(4)
    return everything


def on_a_loop(loop, seed, **options):
    """What the program does on a loop."""
    everything = program(loop, loop.call_later, seed, **options)
    loop.call_later(1000, loop.stop)
    loop.run_forever()
    loop.close()
    return everything


def on_an_async_timer(loop, seed, **options):
    async def main():
        async with AsyncTimer(CascadingWheel(), unit_ns=STEP_NS) as timer:
            everything = program(loop, timer.schedule_after, seed, **options)
            await asyncio.sleep(1000)
        return everything

    try:
        return loop.run_until_complete(main())
    finally:
        loop.close()


def wheel_loop():
    return wheel_event_loop(base=LookingLoop, unit_ns=STEP_NS)()


@pytest.mark.parametrize("seed", range(60))
def test_the_order_is_that_of_asyncio_if_callbacks_take_no_time(seed):
    on_asyncio = on_a_loop(LookingLoop(), seed, durations=[0])
    order = [each.place for each in on_asyncio]
    assert [each.place for each in on_a_loop(wheel_loop(), seed, durations=[0])] == order
    of_a_timer = on_an_async_timer(LookingLoop(), seed, durations=[0])
    assert [each.place for each in of_a_timer] == order
    assert -1 not in order


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("kind", ["asyncio", "wheel", "AsyncTimer"])
def test_a_call_neither_overtakes_what_was_ready_nor_waits_for_more_than_a_turn(kind, seed):
    """asyncio's own loop does not even wait for that turn."""
    loop = wheel_loop() if kind == "wheel" else LookingLoop()
    run = on_an_async_timer if kind == "AsyncTimer" else on_a_loop
    everything = run(loop, seed)
    assert all(each.place >= 0 for each in everything)
    calls = [each for each in everything if each.deadline is not None]
    for call in calls:
        assert call.ran >= call.deadline
        seen = next(turn for turn, step in enumerate(loop.looks, 1) if step >= call.deadline)
        assert call.turn <= seen + (kind != "asyncio"), call
        ready = [each for each in everything if each.deadline is None]
        before = [each for each in ready if each.asked < call.deadline]
        assert all(each.place < call.place for each in before), call


@pytest.mark.parametrize("on_a_wheel", [True, False])
def test_a_timeout_does_not_overtake_a_task_that_is_ready(on_a_wheel):
    """All tasks are ready again before the first timeout has passed its turn."""
    loop = wheel_event_loop(base=JumpingLoop)() if on_a_wheel else JumpingLoop()
    timed_out = []

    async def work():
        loop.now += 0.001  # the callbacks before it take longer than its timeout
        try:
            async with asyncio.timeout(0.02):
                await asyncio.sleep(0)
        except TimeoutError:
            timed_out.append(1)

    async def main():
        await asyncio.gather(*(work() for _ in range(2000)))

    loop.run_until_complete(main())
    loop.close()
    assert len(timed_out) == 0


def test_a_cancelled_call_leaves_the_timer_in_the_next_turn():
    with asyncio.Runner(loop_factory=wheel_event_loop(base=JumpingLoop)) as runner:
        loop = runner.get_loop()

        async def main():
            handles = [loop.call_later(3600 + k, print) for k in range(10)]
            await asyncio.sleep(1)
            assert len(loop.wheel.timer) == 10
            for handle in handles:
                handle.cancel()
            await asyncio.sleep(1)
            assert len(loop.wheel.timer) == 0

        runner.run(main())
