"""The alarm by which an asyncio loop drives pending calls: of an `AsyncTimer`, or of its own.

The loop knows one call, the alarm, at the next moment at which the timer has work. The alarm runs
what was due when the loop looked at its calls, as the loop runs its own. What has become due since
waits for the next turn of the loop, so no call overtakes what was ready before it.
"""

import asyncio
import time
from asyncio import _get_running_loop
from collections.abc import Callable
from math import floor, inf, nextafter
from typing import Any

from timers.protocol import Timer
from timers.services.clock import NS_PER_S, Clock
from timers.services.errors import ServiceClosedError, ServiceStateError
from timers.services.pending import DUE, NEVER, Pending

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
    """Runs what is due in turns of a loop.

    `call_at` is the loop's own method, by which it calls the driver. `clock` is the loop's clock,
    if it has an integer one.
    """

    run_next: Callable[[], object]  # runs the first entry of `due`; set by whoever has the driver

    def __init__(
        self,
        timer: Timer,
        unit_ns: int,
        loop: asyncio.AbstractEventLoop,
        call_at: Callable[..., asyncio.TimerHandle],
        name: str,
        max_pending: int | None,
        clock: Clock | None = None,
    ) -> None:
        self._loop, self._call_at = loop, call_at
        self._alarms: list[tuple[int, asyncio.TimerHandle]] = []  # and their moments; latest first
        self.pending = Pending(
            timer, unit_ns, clock or LoopClock(loop), self._wake, name, max_pending
        )
        self.pending.alarm = NEVER
        self.pending.check_thread = self._check_thread

    def close(self) -> None:
        """Cancel every pending entry and refuse new ones. Closing again is legal."""
        self.pending.close()
        self._set_alarm(None, 0)

    @property
    def moment(self) -> int | None:
        """The moment of the alarm."""
        return self._alarms[-1][0] if self._alarms else None

    def _check_thread(self) -> None:
        """Refuse another thread than the one that runs the loop."""
        if self._loop.is_running() and _get_running_loop() is not self._loop:
            raise ServiceStateError(
                f"an {self.pending.name} is used by the thread of its loop alone; "
                "other threads use loop.call_soon_threadsafe"
            )

    def _wake(self, moment: int) -> int:
        """Have the loop call no later than the unit in which `moment` is due.

        What is due already gets a call of its own, which the loop runs where it would run that of
        its own `call_at`.
        """
        if self._loop.is_closed():
            self.pending.close()
            raise ServiceClosedError(f"the loop of this {self.pending.name} is closed")
        pending, now = self.pending, self.pending.now()
        if moment <= now:
            self._call_at(_seconds(moment), self._turn, moment)
            return pending.alarm
        due_at = pending.due_at(moment)
        self._set_alarm(due_at, now, keep=1)  # after a short delay, the later one is the next again
        # A finalizer or a signal handler may have set an earlier one meanwhile.
        while pending.alarm < pending.alarm_for(due_at):
            due_at = pending.due_at(pending.alarm)
            self._set_alarm(due_at, now, keep=1)
        return pending.alarm_for(due_at)

    def _turn(self, until: int) -> None:
        """Run what is due until that moment, and have the loop call again at the next one."""
        pending, armed = self.pending, False
        try:
            self._forget_alarms(until)
            # The loop, whose time is a float, has found that `until` is due.
            now = max(pending.now(), until, pending.latest)
            pending.alarm = now  # a call with a later deadline is seen at the end of the turn
            pending.collect(now)
            try:
                self._run_due(until)
            finally:
                self._set_next_alarm()
                armed = True
        except BaseException:
            if not armed:
                self._set_alarm(pending.now() + RETRY_NS, 0)
            raise

    # Loops have methods of their own: see `no_exception_in_a_loop_skips_a_with` in the tests.

    def _forget_alarms(self, until: int) -> None:
        """Forget the alarms whose turn has come."""
        while self._alarms and self._alarms[-1][0] <= until:
            self._alarms.pop()

    def _run_due(self, until: int) -> None:
        """Run what is due until that moment, and drop what has left."""
        due: Any = self.pending.due
        while due and (due[0]._moment <= until or due[0]._handle != DUE):
            self.run_next()

    def _set_next_alarm(self) -> None:
        """Have the loop call when something is due next."""
        pending = self.pending
        while True:
            now = pending.now()
            moment = pending.next_moment(now)
            self._set_alarm(moment, now)
            if pending.alarm == pending.alarm_for(moment):
                break  # otherwise a finalizer or a signal handler has set an earlier one

    def _set_alarm(self, moment: int | None, now: int, keep: int = 0) -> None:
        """Have the loop call at `moment`. At most `keep` later alarms stay set."""
        alarms = self._alarms
        if len(alarms) == 1 and alarms[0][0] == moment:
            return
        while len(alarms) > keep:
            alarms.pop()[1].cancel()
        if moment is not None:
            # What is due now will be when the loop looks.
            alarm = self._call_at(_seconds(moment), self._turn, moment if moment > now else now)
            alarms.append((moment, alarm))


def _seconds(moment: int) -> float:
    """A moment in a loop's time.

    A step earlier, as a loop runs what is due before its time plus its resolution, which a float
    cannot hold after 2**24 seconds.
    """
    return nextafter(moment / NS_PER_S, -inf)
