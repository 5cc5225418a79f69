"""The order of calls beside what the host's loop has ready, against a model of that loop."""

import asyncio
import random
from functools import partial

import pytest

from tests.timers.services.loops import JumpingLoop
from timers import DelayQueue
from timers.services import AsyncTimer, wheel_event_loop

US = 1000  # nanoseconds


class Host:
    """A model: each turn of the loop first appends the alarm, if it is due, to what is ready, and
    then runs what was ready. The alarm runs the calls that were due when it was set, or are due at
    its moment; the next alarm is set behind them. The timer has no slots that open before a call
    is due.
    """

    def __init__(self):
        self.now, self.ready, self.calls, self.alarm = 0, [], [], None

    def call_soon(self, function):
        self.ready.append(function)

    def call_later(self, delay, function):
        self.calls.append((self.now + delay, len(self.calls), function))
        if not self.turning and (self.alarm is None or self.now + delay < self.alarm):
            self.set_alarm()

    turning = False

    def set_alarm(self):
        self.alarm = min((moment for moment, *_ in self.calls), default=None)
        self.until = None if self.alarm is None else max(self.alarm, self.now)

    def turn(self, until):
        self.turning = True
        due = sorted(call for call in self.calls if call[0] <= until)
        self.calls = [call for call in self.calls if call not in due]
        for *_, function in due:
            function()
        self.turning = False
        self.set_alarm()

    def run(self):
        while self.ready or self.calls:
            if not self.ready:
                self.now = max(self.now, self.alarm)
            if self.alarm is not None and self.alarm <= self.now:
                self.ready.append(partial(self.turn, self.until))
                self.alarm = None
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


def program(host, seed, durations=(0, 0, 0, 1000, 3000, 9000)):
    """A random program of callbacks that take time, and ask for others; what ran, and when."""
    dice, ran = random.Random(seed), []

    def ask(depth):
        name = len(names)
        names.append(name)
        function = lambda: run(name, depth)  # noqa: E731
        if dice.random() < 0.5:
            host.call_soon(function)
        else:
            moment = host.now + dice.randrange(2, 12_000)
            while moment in taken:  # the order of equal deadlines is undefined
                moment += 1
            taken.add(moment)
            host.call_later(moment - host.now, function)

    def run(name, depth):
        ran.append((name, host.now))
        host.now += dice.choice(durations)
        for _ in range(dice.randrange(3) if depth else 0):
            ask(depth - 1)

    names, taken = [], set()
    for _ in range(8):
        ask(4)
    return ran


def expected(seed):
    host = Host()
    ran = program(host, seed)
    host.run()
    return ran


def on_a_loop(loop, seed, **options):
    """What the program does on a loop."""
    ran = program(OnALoop(loop, loop.call_later), seed, **options)
    loop.call_later(100, loop.stop)
    loop.run_forever()
    loop.close()
    assert len(ran) >= 8
    return ran


@pytest.mark.parametrize("seed", range(60))
def test_a_wheels_loop_keeps_the_order_of_asyncio_if_callbacks_take_no_time(seed):
    loop = wheel_event_loop(base=JumpingLoop, unit_ns=US)()
    assert on_a_loop(loop, seed, durations=[0]) == on_a_loop(JumpingLoop(), seed, durations=[0])


@pytest.mark.parametrize("seed", range(60))
def test_a_wheels_loop_keeps_the_order_of_the_host(seed):
    loop = wheel_event_loop(DelayQueue, base=JumpingLoop, unit_ns=US)()
    assert on_a_loop(loop, seed) == expected(seed)


@pytest.mark.parametrize("seed", range(60))
def test_an_async_timer_keeps_the_order_of_the_host(seed):
    async def main():
        loop = asyncio.get_running_loop()
        async with AsyncTimer(DelayQueue(), unit_ns=US) as timer:
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
