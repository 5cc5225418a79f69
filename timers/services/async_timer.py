"""`AsyncTimer`: calls at their deadlines, on an asyncio loop, and the alarm that it shares with
`wheel_event_loop`.
"""

import asyncio
import contextvars
import time
from collections.abc import Callable
from math import floor
from threading import get_ident
from typing import Self

from timers.protocol import Timer
from timers.services.calls import Callback, CallScheduler
from timers.services.clock import NS_PER_S
from timers.services.errors import ServiceClosedError, ServiceStateError
from timers.services.pending import AWAKE, NEVER, Pending
from timers.validation import shown

RETRY_NS = 100_000_000  # after a turn that was interrupted, or had no memory


class LoopClock:
    """The time of a loop, in nanoseconds."""

    wall = staticmethod(time.time_ns)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._time = loop.time

    def now(self) -> int:
        """Nanoseconds of the loop's time."""
        return floor(self._time() * 1e9 + 0.5)


class LoopDriver:
    """The alarm at which a loop takes a turn with pending calls.

    A turn does not run what is due: `pass_on` appends it to what the loop has ready. `set_alarm` is
    the method of the loop by which a call with an early deadline sets the alarm.
    """

    def __init__(
        self,
        timer: Timer,
        unit_ns: int,
        loop: asyncio.AbstractEventLoop,
        pass_on: Callable[[], object],
        name: str,
        max_pending: int | None,
    ) -> None:
        self._loop, self._pass_on = loop, pass_on
        self.turn = self._turn  # one object, by which a loop can tell the alarm from other calls
        self._alarm: asyncio.TimerHandle | None = None
        self.pending = Pending(timer, unit_ns, LoopClock(loop), self._wake, name, max_pending)
        self.pending.alarm = NEVER

    def close(self) -> None:
        """Cancel every pending entry and refuse new ones. Closing again is legal."""
        self.pending.close()
        self._set_alarm(None)

    def _wake(self, moment: int) -> int:
        """Have the loop call no later than the unit in which `moment` is due."""
        if self._loop.is_closed():
            self.pending.close()
            raise ServiceClosedError(f"the loop of this {self.pending.name} is closed")
        pending = self.pending
        due_at = pending.due_at(moment)
        self._set_alarm(due_at)
        # A finalizer or a signal handler may have set an earlier one meanwhile.
        while pending.alarm < pending.alarm_for(due_at):
            due_at = pending.due_at(pending.alarm)
            self._set_alarm(due_at)
        return pending.alarm_for(due_at)

    def _turn(self) -> None:
        """Pass on what is due, and have the loop call again at the next expiry."""
        pending = self.pending
        try:
            pending.alarm, pending.thread = AWAKE, get_ident()
            pending.collect(pending.now())
            self._pass_on()
            while True:
                moment = pending.next_moment()
                self._set_alarm(moment)
                if pending.alarm == pending.alarm_for(moment):
                    break  # otherwise a finalizer or a signal handler has set an earlier one
        except BaseException:
            self._set_alarm(pending.now() + RETRY_NS)
            raise

    def _set_alarm(self, moment: int | None) -> None:
        """Have the loop call at `moment`, and no longer at an earlier one."""
        former, self._alarm = self._alarm, None
        if moment is not None:
            self._alarm = self._loop.call_at(moment / NS_PER_S, self.turn)
        if former is not None:
            former.cancel()


class AsyncTimer(CallScheduler):
    """Calls on an asyncio loop, of which only the next expiry is known to the loop.

    `timer` is any empty timer of the registry, or one of your own; the service owns it from now on.
    One unit is `unit_ns` nanoseconds, and deadlines are rounded up to a unit. Callbacks run in the
    loop, behind what is ready when they become due. As with the loop's own methods, only its thread
    may use the service; others use `loop.call_soon_threadsafe`. An exception in a callback goes to
    the loop's exception handler, except that SystemExit and KeyboardInterrupt end the loop, as in
    asyncio. With `max_pending`, a call beyond that number is refused.

    Raises:
        ServiceStateError: if no loop runs.
        ParameterError: for a timer that is not empty, another `unit_ns` than 1 .. 10**18, or a
            `max_pending` below 1.
    """

    def __init__(
        self, timer: Timer, *, unit_ns: int = 1_000_000, max_pending: int | None = None
    ) -> None:
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            raise ServiceStateError("AsyncTimer must be made while its loop runs") from None
        self._driver = LoopDriver(
            timer, unit_ns, self._loop, self._pass_on, "AsyncTimer", max_pending
        )
        self._pending = self._driver.pending
        self._pending.thread = get_ident()
        self._passed_on = 0  # entries of `due` for which the loop will call `_run_passed_on`
        self._context = contextvars.Context()  # one for all these calls, which never overlap

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close the service and cancel what is pending."""
        self.close()

    def close(self) -> None:
        """Cancel every pending call and refuse new ones. Closing again is legal."""
        self._driver.close()

    def _pass_on(self) -> None:
        """Have the loop run everything that is due, behind what it has ready."""
        while self._passed_on < len(self._pending.due):
            self._loop.call_soon(self._run_passed_on, context=self._context)
            self._passed_on += 1

    def _run_passed_on(self) -> None:
        self._passed_on -= 1
        if self._pending.due:
            self._run_next()

    def _report(self, callback: Callback | None, error: BaseException) -> None:
        message = f"Exception in callback {shown(callback)} of AsyncTimer"
        self._loop.call_exception_handler({"message": message, "exception": error})
