"""A loop whose time jumps to the next event, and AsyncTimers on it."""

# `_pending` is private: the timer of a service that is closed cannot be asked in public.

import asyncio
import selectors

from tests.timers.services.cases import TIMERS
from timers.services import AsyncTimer


class JumpingSelector(selectors.DefaultSelector):
    """Instead of sleeping, moves the loop's time."""

    loop = None

    def select(self, timeout=None):
        self.loop.selects += 1
        events = super().select(0)
        if not events and timeout:
            self.loop.now += timeout
        return events


class JumpingLoop(asyncio.SelectorEventLoop):
    """A loop on which waiting takes no time; it starts at 100 s."""

    def __init__(self):
        selector = JumpingSelector()
        selector.loop = self
        self.now = 100.0
        self.selects = 0
        self.armed = []  # what call_at returned
        super().__init__(selector)

    def time(self):
        return self.now

    def call_at(self, when, callback, *args, **options):
        self.armed.append(super().call_at(when, callback, *args, **options))
        return self.armed[-1]


def run(main, name="cascading-wheel"):
    """The result of `main(timer, loop)` on a loop whose time jumps."""

    async def outer():
        async with AsyncTimer(TIMERS[name]()) as timer:
            result = await main(timer, asyncio.get_running_loop())
        assert len(timer._pending.timer) == 0
        return result

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(outer())
