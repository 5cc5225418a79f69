"""`AsyncTimer`: calls at their deadlines, on an asyncio loop, and what drives it."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from math import floor
from typing import Self

from timers.protocol import Timer
from timers.services.calls import CallScheduler
from timers.services.clock import NS_PER_S
from timers.services.errors import ServiceClosedError, ServiceStateError
from timers.services.mailbox import NEVER, Callback, Entry, Mailbox
from timers.validation import shown

RETRY_NS = 100_000_000  # after a turn that was interrupted, or had no memory


class LoopClock:
    """The time of a loop, in nanoseconds."""

    wall = staticmethod(time.time_ns)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._time = loop.time

    def now(self) -> int:
        """Nanoseconds of the loop's time."""
        return floor(self._time() * 1e9)


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
        self.mailbox.alarm = [NEVER]

    def close(self) -> None:
        """Cancel every pending entry and refuse new ones. Closing again is legal."""
        self.mailbox.close()
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


class AsyncTimer(CallScheduler):
    """Calls on an asyncio loop, of which only the next expiry is known to the loop.

    `timer` is any empty timer of the registry, or one of your own; the service owns it from now on.
    One unit is `unit_ns` nanoseconds, and deadlines are rounded up to a unit. Callbacks run in the
    loop; all methods may be called from any thread. An exception in a callback goes to the loop's
    exception handler, except that SystemExit and KeyboardInterrupt end the loop, as in asyncio.

    Raises:
        ServiceStateError: if no loop runs.
        ParameterError: for a timer that is not empty, or another `unit_ns` than 1 .. 10**18.
    """

    def __init__(self, timer: Timer, *, unit_ns: int = 1_000_000) -> None:
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            raise ServiceStateError("AsyncTimer must be made while its loop runs") from None
        loop = self._loop
        self._driver = LoopDriver(timer, unit_ns, loop, self._call_soon, self._run, "AsyncTimer")
        self._mailbox = self._driver.mailbox

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close the service and cancel what is pending."""
        self.close()

    def close(self) -> None:
        """Cancel every pending call and refuse new ones. Closing again is legal."""
        self._driver.close()

    def _call_soon(self, turn: Callable[[], None]) -> None:
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        try:
            (self._loop.call_soon if here else self._loop.call_soon_threadsafe)(turn)
        except RuntimeError:
            self.close()
            raise ServiceClosedError("the loop of this AsyncTimer is closed") from None

    def _report(self, callback: Callback, error: BaseException) -> None:
        message = f"Exception in callback {shown(callback)} of AsyncTimer"
        self._loop.call_exception_handler({"message": message, "exception": error})
