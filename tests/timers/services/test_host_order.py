"""The order of calls beside what the host's loop has ready, against a model of that loop."""

import asyncio
import random

import pytest

from tests.timers.services.loops import JumpingLoop
from timers import CascadingWheel
from timers.services import AsyncTimer, wheel_event_loop

US = 1000  # nanoseconds: the order of equal deadlines is undefined, so few are equal


class Host:
    """A model: each turn of the loop first appends the alarm, if it is due, to what is ready, and
    then runs what was ready. The alarm appends the calls that are due.
    """

    def __init__(self):
        self.now, self.ready, self.calls, self.alarm = 0, [], [], None

    def call_soon(self, function):
        self.ready.append(function)

    def call_later(self, delay, function):
        self.calls.append((self.now + delay, len(self.calls), function))
        if self.alarm is None or self.now + delay < self.alarm:
            self.alarm = self.now + delay

    def turn(self):
        due = sorted(call for call in self.calls if call[0] <= self.now)
        self.calls = [call for call in self.calls if call not in due]
        self.ready += [function for *_, function in due]
        self.alarm = min((moment for moment, *_ in self.calls), default=None)

    def run(self):
        while self.ready or self.calls:
            if not self.ready:
                self.now = max(self.now, self.alarm)
            if self.alarm is not None and self.alarm <= self.now:
                self.alarm = None
                self.ready.append(self.turn)
            for _ in range(len(self.ready)):
                self.ready.pop(0)()


class OnALoop:
    """The same interface on a real loop, on which blocking moves the time."""

    def __init__(self, loop, call_later):
        self.loop, self.call_soon = loop, loop.call_soon
        self._call_later, self.start = call_later, loop.now

    @property
    def now(self):
        return round((self.loop.now - self.start) * 1e6)

    @now.setter
    def now(self, value):
        self.loop.now = self.start + value / 1e6

    def call_later(self, delay, function):
        self._call_later(delay / 1e6, function)


def program(host, seed):
    """A random program of callbacks that take time, and ask for others; what ran, and when."""
    dice, ran = random.Random(seed), []

    def ask(depth):
        name = len(names)
        names.append(name)
        function = lambda: run(name, depth)  # noqa: E731
        if dice.random() < 0.5:
            host.call_soon(function)
        else:
            host.call_later(dice.randrange(1, 12_000), function)

    def run(name, depth):
        ran.append((name, host.now))
        host.now += dice.choice((0, 0, 0, 1000, 3000, 9000))
        for _ in range(dice.randrange(3) if depth else 0):
            ask(depth - 1)

    names = []
    for _ in range(8):
        ask(4)
    return ran


def expected(seed):
    host = Host()
    ran = program(host, seed)
    host.run()
    return ran


@pytest.mark.parametrize("seed", range(60))
def test_a_wheels_loop_keeps_the_order_of_the_host(seed):
    loop = wheel_event_loop(base=JumpingLoop, unit_ns=US)()
    ran = program(OnALoop(loop, loop.call_later), seed)
    loop.call_later(100, loop.stop)
    loop.run_forever()
    loop.close()
    assert ran == expected(seed)
    assert len(ran) >= 8


@pytest.mark.parametrize("seed", range(60))
def test_an_async_timer_keeps_the_order_of_the_host(seed):
    async def main():
        loop = asyncio.get_running_loop()
        async with AsyncTimer(CascadingWheel(), unit_ns=US) as timer:
            ran = program(OnALoop(loop, timer.schedule_after), seed)
            await asyncio.sleep(100)
        return ran

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        assert runner.run(main()) == expected(seed)


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
