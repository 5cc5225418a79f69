"""The project's own timers as peers: python -m compare.trial.peers.wheelwork NAME COMMAND ...

NAME is a contestant, such as `hashed-wheel/tick=5` or `module:Class`. A tick is a number of units.
`check` calls the timer's methods; `time` runs the compiled loop of a replay if there is one, and
`threads` puts the timer into a `SystemTimer`.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from compare.base.versions import DISTRIBUTION, versions
from compare.traffic.tapes.tape import CANCEL
from compare.traffic.tapes.tape import Tape as Operations
from compare.trial.peers import peer
from compare.trial.peers.protocol import ONCE, Description, Limits, PeerRounding
from compare.trial.replay.contestant import COMPILED, Contestant, contestant
from compare.trial.replay.engine import Buffers, loop_for, operations_of
from compare.trial.replay.loops import ALL_STEPS
from timers.errors import ParameterError, TimerError
from timers.rounding import LEVEL_REACHES, Rounding
from timers.services import SystemTimer


class OwnTimer:
    """A timer with the methods that `peer` calls."""

    def __init__(self, timer: Any) -> None:
        self._timer = timer
        self._armed_by: dict[int, int] = {}

    def start(self, operation: int, deadline: int) -> int:
        """Start a timer, and return its handle."""
        handle: int = self._timer.schedule(deadline)
        self._armed_by[handle] = operation
        return handle

    def cancel(self, handle: int) -> bool:
        """Cancel a timer."""
        cancelled: bool = self._timer.cancel(handle)
        return cancelled

    def rearm(self, handle: int, operation: int, deadline: int) -> int | None:
        """Re-arm a timer in place."""
        if not self._timer.reschedule(handle, deadline):
            return None
        self._armed_by[handle] = operation
        return handle

    def advance(self, now: int) -> peer.Fired:
        """Advance the clock. A handle that the timer does not have counts as operation -1."""
        expired = self._timer.advance(now)
        operations = [self._armed_by.get(handle, -1) for handle in expired.handles.tolist()]
        return zip(operations, expired.fired_at.tolist(), strict=True)

    def next_wakeup(self) -> int:
        """When the timer wants to be advanced."""
        wakeup = self._timer.next_wakeup()
        if wakeup is None:
            raise TimerError(f"{len(self)} timers are pending, but next_wakeup() is None")
        return int(wakeup)

    def __len__(self) -> int:
        """Return the number of pending timers."""
        return len(self._timer)


class LoopRun:
    """A run in the loop of a replay, without rows in between."""

    def __init__(self, timed: Contestant, tape: peer.Tape) -> None:
        columns = (tape.time, tape.op, tape.id, tape.deadline)
        self._operations = operations_of(Operations(*map(np.asarray, columns)))
        arms = int(np.count_nonzero(self._operations["op"] != CANCEL))
        timer = timed.new("unit", tape.first_time, tape.id_space)
        buffers = Buffers(tape.id_space, arms)
        self._loop = loop_for(timer, buffers, lambda rows: None, steps=ALL_STEPS)

    def operations(self, first: int, last: int) -> None:
        """Do operations [first, last)."""
        self._loop.run(self._operations[first:last])

    def drain(self) -> None:
        """Advance from wake-up to wake-up."""
        self._loop.drain()

    @property
    def expired(self) -> int:
        """The number of expiries so far."""
        return self._loop.finish().fired


class Served:
    """A timer in a SystemTimer, which is for several threads."""

    def __init__(self, timer: Contestant) -> None:
        self._service = SystemTimer(timer.new("ms", 0))

    def start(self, delay: int, call: Callable[[], None]) -> Any:
        """Make a call in `delay` ms."""
        return self._service.schedule_after(delay / 1000, call)

    def cancel(self, handle: Any) -> bool:
        """Cancel a call."""
        return bool(handle.cancel())

    def close(self) -> None:
        """End the thread."""
        self._service.close()


def description_of(timer: Contestant) -> Description:
    """The description of a timer. Raises ParameterError for one with a closed form of its own."""
    rounding = timer.rounding("unit")
    if not isinstance(rounding, Rounding):
        raise ParameterError(f"{timer.label} fires {rounding}, which the protocol cannot state")
    return Description(
        name=timer.label,
        language="Python, compiled by Numba" if timer.engine == COMPILED else "Python",
        scheme=timer.traits.scheme,
        library=DISTRIBUTION,
        version=versions().get(DISTRIBUTION) or "",
        rounding=PeerRounding.of(rounding),
        limits=Limits(delay=LEVEL_REACHES[-1] - 1) if rounding.direction == "levels" else Limits(),
        order=timer.traits.order,
        rearm="in place",
        threads=ONCE,
        parameters=timer.parameters("unit"),
    )


def main(argv: list[str]) -> int:
    """Run a command of the protocol for the timer that the first argument names."""
    if not argv:
        print("usage: wheelwork NAME describe | check TAPE OUT | time TAPE", file=sys.stderr)
        return peer.BAD_INPUT
    try:
        timer = contestant(argv[0])
        return peer.run_peer(
            description_of(timer).as_json(),
            lambda start: OwnTimer(timer.new("unit", start)),
            argv[1:],
            lambda tape: LoopRun(timer, tape),
            lambda: Served(timer),
        )
    except TimerError as error:
        print(f"{argv[0]}: {error}", file=sys.stderr)
        return peer.BAD_INPUT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
