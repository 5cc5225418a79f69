"""Drives a mailbox from an asyncio loop, which knows only the next expiry."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from math import floor

from timers.protocol import Timer
from timers.services.mailbox import NEVER, Entry, Mailbox
from timers.services.moments import NS_PER_S

RETRY_NS = 100_000_000  # after a turn that was interrupted, or had no memory


class LoopClock:
    """The time of a loop, in nanoseconds."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._time = loop.time

    def now(self) -> int:
        """Nanoseconds of the loop's time."""
        return floor(self._time() * 1e9)

    def wall(self) -> int:
        """Nanoseconds since 1970-01-01 UTC."""
        return time.time_ns()


class LoopDriver:
    """A mailbox whose due entries run in a loop, and the alarm by which the loop calls it.

    `call_soon` is the method of the loop by which a call with an early deadline asks for a turn.
    """

    def __init__(
        self,
        timer: Timer,
        unit_ns: int,
        loop: asyncio.AbstractEventLoop,
        call_soon: Callable[[Callable[[], None]], object],
        run: Callable[[Entry], object],
        name: str,
    ) -> None:
        self._loop, self._run = loop, run
        self.turn = self._turn  # one object, by which a loop can tell the alarm from other calls
        self._alarm: asyncio.TimerHandle | None = None
        wake = partial(call_soon, self.turn)
        self.mailbox = Mailbox(timer, unit_ns, LoopClock(loop), wake, name)
        self.mailbox.alarm = NEVER

    def close(self) -> None:
        """Cancel every pending entry and refuse new ones. Closing again is legal."""
        if not self.mailbox.close() and not self._loop.is_closed():
            self._loop.call_soon(self.close)
        self._set_alarm(None)

    def _turn(self) -> None:
        """Run what is due, and have the loop call again at the next expiry."""
        try:
            self._set_alarm(self.mailbox.turn(self._run))
        except BaseException:
            self._set_alarm(self.mailbox.now() + RETRY_NS)
            raise

    def _set_alarm(self, moment: int | None) -> None:
        """Have the loop call at `moment`, and no longer at an earlier one."""
        former, self._alarm = self._alarm, None
        if moment is not None and not self._loop.is_closed():
            self._alarm = self._loop.call_at(moment / NS_PER_S, self.turn)
        if former is not None:
            former.cancel()
