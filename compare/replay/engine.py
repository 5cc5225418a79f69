"""Replay of a tape through a timer: one compiled loop for all timers with a kernel, a plain one for
any other.

Replay first advances to an operation's time, so a cancel or re-arm that comes exactly when the
timer fires comes too late. The call is skipped while the time stands still and nothing is due.
After the last operation the timer is drained: advanced from wake-up to wake-up until nothing is
pending.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from compare.replay.loops import (
    CANCELLED,
    CELLS,
    FIRED,
    FIRST,
    IDLE_WAKEUPS,
    MOST_PENDING,
    NEXT,
    OPERATION,
    PATIENCE,
    RESCHEDULED,
    ROWS,
    SCHEDULED,
    WAKEUPS,
    drain,
    run,
)
from compare.tapes.tape import ARM, CANCEL, START, Tape
from timers.errors import TimerError
from timers.kernels.pool import EXPIRY, NONE
from timers.protocol import Timer

OPERATIONS_AT_ONCE = 1 << 16  # operations for which room is reserved at a time
FIRED_AT_ONCE = (
    1 << 16
)  # rows that are collected before Python takes them over: they stay in the cache
MOST_FIRED = 1 << 20  # ... where all of them are kept anyway


class ReplayError(TimerError, RuntimeError):
    """A timer without kernel that breaks the protocol so that its replay cannot go on."""


class Lateness(NamedTuple):
    """Least, median and greatest `fired_at - max(deadline, armed_at)` in units; None where nothing
    fired.
    """

    min: int | None
    median: float | None
    max: int | None


@dataclass(frozen=True)
class Replay:
    """What a replay did. `fired` is of dtype FIRED, ordered by `fired_at`."""

    scheduled: int
    cancelled: int
    rescheduled: int
    pending: int
    most_pending: int  # when the clock moved on, or at the end
    fired: npt.NDArray[Any]
    counters: dict[str, int] | None
    wakeups: int  # advances while draining
    idle_wakeups: int  # ... in which nothing fired
    seconds: float  # spent in the operations and in draining
    operations: int
    engine: str  # "compiled", or "python loop"

    @property
    def ns_per_operation(self) -> float:
        """Nanoseconds for each operation of the tape, expiries included."""
        return self.seconds * 1e9 / max(self.operations, 1)

    def lateness(self, tape: Tape) -> Lateness:
        """Lateness of the timers that fired, in units of the tape."""
        late = lateness_of(tape, self.fired)
        if not late.size:
            return Lateness(None, None, None)
        return Lateness(int(late.min()), float(np.median(late)), int(late.max()))


def lateness_of(tape: Tape, fired: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """`fired_at - max(deadline, armed_at)` for each fired row, int64."""
    armed_at = tape.time[fired["operation"]]
    return np.asarray(fired["fired_at"] - np.maximum(fired["deadline"], armed_at))


def first_time(tape: Tape) -> int:
    """The clock at which a replay starts its timer: the first operation's time."""
    return int(tape.time[0]) if tape.time.size else 0


def replay(timer: Timer, tape: Tape, id_space: int, *, drain_timer: bool = True) -> Replay:
    """Run a tape through a timer that stands at the tape's first time and has nothing pending.

    A timer with a kernel runs in the compiled loop, any other in a plain Python loop; `engine` says
    which.
    """
    if has_kernel(timer):
        return _replay_compiled(timer, tape, id_space, drain_timer)
    return _replay_python(timer, tape, drain_timer)


def has_kernel(timer: Timer) -> bool:
    """Whether compiled loops can drive a timer: its `state` is that of a kernel."""
    return getattr(getattr(timer, "state", None), "_fields", ()) == ("nodes", "cells", "counters")


def operations_of(tape: Tape, first: int, until: int) -> npt.NDArray[Any]:
    """Rows [first, until) of a tape as one array of dtype OPERATION."""
    operations = np.empty(until - first, OPERATION)
    for name in Tape._fields:
        operations[name] = getattr(tape, name)[first:until]
    return operations


class Totals(NamedTuple):
    """What a replay did, besides the rows that it handed on; see `Replay`."""

    scheduled: int
    cancelled: int
    rescheduled: int
    most_pending: int  # the most that were pending when the clock moved on, or at the end
    wakeups: int
    idle_wakeups: int
    seconds: float
    operations: int


class Replaying:
    """A replay through a timer with a kernel that is given its operations bit by bit: `add` them,
    then `finish`.

    `take` is given what fires, in order, as rows of dtype FIRED, which are overwritten when it has
    returned; `operation` counts from the first one added. Its time is not measured. Memory: the
    pending timers, `fired_at_once` rows, and 8 bytes for each id.
    """

    def __init__(
        self,
        timer: Any,
        id_space: int,
        take: Callable[[npt.NDArray[Any]], None],
        *,
        fired_at_once: int = FIRED_AT_ONCE,
    ) -> None:
        self._timer, self._take = timer, take
        self._early = -timer.traits.rounding(timer.parameters).bounds()[0]
        self._cursor = np.zeros(CELLS, np.int64)
        self._handles = np.full(
            max(id_space, 1), 0, np.int64
        )  # written to, so that no first use of a page is timed
        self._armed_by = np.zeros(0, np.int32)
        # Touched before it is timed: a page's first use costs a thousand times a row's.
        self._fired = np.ones(fired_at_once + 1, EXPIRY)
        self._seconds = 0.0
        self._operations = 0
        # Compile, or load from the disk cache, before the clock runs.
        self._run(np.empty(0, OPERATION))
        drain(timer.state, self._cursor, self._armed_by, self._fired[:0])

    def _run(self, operations: npt.NDArray[Any]) -> None:
        run(
            self._timer.state,
            operations,
            self._early,
            self._cursor,
            self._handles,
            self._armed_by,
            self._fired,
        )

    def _hand_on(self) -> None:
        if self._cursor[ROWS]:
            self._take(self._fired[: self._cursor[ROWS]].view(FIRED))
            self._cursor[ROWS] = 0

    def add(self, operations: npt.NDArray[Any]) -> None:
        """Run operations, of dtype OPERATION, that follow those before. Room is made for as many
        timers as they arm.
        """
        self._timer.reserve(int(np.count_nonzero(operations["op"] != CANCEL)))
        places = self._timer.state.nodes.size  # sentinels included: at least one for each place
        if self._armed_by.size < places:
            self._armed_by = np.concatenate(
                [self._armed_by, np.zeros(places - self._armed_by.size, np.int32)]
            )
        cursor = self._cursor
        cursor[FIRST], cursor[NEXT] = self._operations, 0
        self._operations += operations.size
        while cursor[NEXT] < operations.size:
            started = time.perf_counter()
            self._run(operations)
            self._seconds += time.perf_counter() - started
            if cursor[NEXT] < operations.size:  # no room
                self._hand_on()

    def finish(self, *, drain_timer: bool = True) -> Totals:
        """Drain the timer, unless it should stay as it is, and hand on the last rows."""
        cursor = self._cursor
        cursor[MOST_PENDING] = max(cursor[MOST_PENDING], len(self._timer))
        while drain_timer and len(self._timer):
            started = time.perf_counter()
            drain(self._timer.state, cursor, self._armed_by, self._fired)
            self._seconds += time.perf_counter() - started
            self._hand_on()
        self._hand_on()
        return Totals(
            scheduled=int(cursor[SCHEDULED]),
            cancelled=int(cursor[CANCELLED]),
            rescheduled=int(cursor[RESCHEDULED]),
            most_pending=int(cursor[MOST_PENDING]),
            wakeups=int(cursor[WAKEUPS]),
            idle_wakeups=int(cursor[IDLE_WAKEUPS]),
            seconds=self._seconds,
            operations=self._operations,
        )


def _replay_compiled(timer: Any, tape: Tape, id_space: int, drain_timer: bool) -> Replay:
    parts: list[npt.NDArray[Any]] = []
    at_once = min(int(np.count_nonzero(tape.op != CANCEL)), MOST_FIRED)
    replaying = Replaying(
        timer, id_space, lambda rows: parts.append(rows.copy()), fired_at_once=at_once
    )
    for first in range(0, tape.time.size, OPERATIONS_AT_ONCE):
        replaying.add(operations_of(tape, first, min(first + OPERATIONS_AT_ONCE, tape.time.size)))
    totals = replaying.finish(drain_timer=drain_timer)
    return Replay(
        **totals._asdict(),
        pending=len(timer),
        fired=np.concatenate(parts) if parts else np.empty(0, FIRED),
        counters=timer.counters,
        engine="compiled",
    )


def _replay_python(timer: Timer, tape: Tape, drain_timer: bool) -> Replay:
    name = type(timer).__name__
    handles: dict[int, int] = {}
    armed_by: dict[int, int] = {}
    fired: list[tuple[int, int, int]] = []
    scheduled = cancelled = rescheduled = most_pending = wakeups = idle_wakeups = idle = 0

    def advance_to(moment: int) -> int:
        expired = timer.advance(moment)
        for handle, deadline, fired_at in zip(
            *(column.tolist() for column in expired), strict=True
        ):
            if handle not in armed_by:
                raise ReplayError(
                    f"{name} fired handle {handle} at {fired_at}, which was not pending"
                )
            fired.append((armed_by.pop(handle), deadline, fired_at))
        return len(expired.handles)

    columns = (tape.time.tolist(), tape.op.tolist(), tape.id.tolist(), tape.deadline.tolist())
    started = time.perf_counter()
    for k, (at, op, i, deadline) in enumerate(zip(*columns, strict=True)):
        if at > timer.now or timer.next_expiry() == at:
            most_pending = max(most_pending, len(timer))
            advance_to(at)
        handle = handles.get(i, NONE)
        if op == CANCEL:
            if timer.cancel(handle):
                cancelled += 1
        elif op != START and timer.reschedule(handle, deadline):
            armed_by[handle] = k
            rescheduled += 1
        elif op in (START, ARM):
            handles[i] = handle = timer.schedule(deadline)
            armed_by[handle] = k
            scheduled += 1
    most_pending = max(most_pending, len(timer))
    while drain_timer and len(timer):
        wakeup = timer.next_wakeup() if idle < PATIENCE else timer.next_expiry()
        if wakeup is None or idle > 2 * PATIENCE:
            raise ReplayError(
                f"{name} has {len(timer)} timers pending, but after {idle} idle wake-ups none has fired"
            )
        wakeups += 1
        idle = 0 if advance_to(wakeup) else idle + 1
        idle_wakeups += idle > 0
    seconds = time.perf_counter() - started
    return Replay(
        scheduled=scheduled,
        cancelled=cancelled,
        rescheduled=rescheduled,
        pending=len(timer),
        most_pending=most_pending,
        fired=np.array(fired, FIRED),
        counters=None,
        wakeups=wakeups,
        idle_wakeups=idle_wakeups,
        seconds=seconds,
        operations=tape.time.size,
        engine="python loop",
    )
