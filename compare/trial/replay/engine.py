"""Replay a tape through a timer: in a compiled loop if it has a kernel, else in a Python loop.

A replay first advances to an operation's time, so a cancel or re-arm at the moment of the expiry is
too late. It skips the advance if the time has not changed and nothing is due. After the last
operation the timer is drained: advanced from wake-up to wake-up until nothing is pending.

A replay does not take a timer's word for when it fired. It raises ReplayError unless

- each row of an advance fired after the clock before it, and no later than the clock after it; a
  timer that was due when it was armed fires at the clock before;
- each row of an advance to a wake-up fired at that moment;
- the rows are ordered by the time at which they fired;
- as many timers are pending as were scheduled, and neither cancelled nor fired.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from compare.traffic.tapes.tape import ARM, CANCEL, START, Tape, part, validate
from compare.trial.replay import loops
from compare.trial.replay.lateness import Lateness
from compare.trial.replay.loops import FIRED, MAX_IDLE, OPERATION, STEPS_AT_ONCE, STEPS_IN_LIMIT
from compare.trial.replay.outcome import Outcome
from timers.arrays import Int64s
from timers.errors import TimerError
from timers.kernels.operations import NONE
from timers.kernels.pool import EXPIRY
from timers.protocol import Timer
from timers.schemes.base import KernelTimer

Rows = npt.NDArray[Any]
Clock = Callable[[], float]
Take = Callable[[Rows], None]

OPERATIONS_AT_ONCE = 1 << 16  # operations for which room is reserved at a time
FIRED_AT_ONCE = 1 << 16  # rows collected before Python takes them, while they are in the cache


class ReplayError(TimerError, RuntimeError):
    """A timer is not empty, is too late, or breaks the protocol."""


class OverBudgetError(TimerError, RuntimeError):
    """A replay, or a part of one, has exceeded its time limit."""


@dataclass(frozen=True)
class Replay:
    """The outcome of a replay of a whole tape, and the expiries in order, of dtype FIRED."""

    outcome: Outcome
    fired: Rows


def replay(
    timer: Timer,
    tape: Tape,
    id_space: int,
    *,
    drain_timer: bool = True,
    clock: Clock = time.thread_time,
    limit: float = math.inf,
    at_once: int | None = None,
) -> Replay:
    """Run a tape through an empty timer whose clock is not beyond the tape's first time.

    Without `drain_timer`, stop at the last operation. Before every `at_once` operations (default:
    OPERATIONS_AT_ONCE) the timer reserves room for them, so a lower number keeps it smaller. Raises
    TapeError if the tape breaks a rule; ReplayError if the timer is not empty, is too late, or
    breaks the protocol; OverBudgetError after more than `limit` seconds.
    """
    validate(tape, id_space)
    if len(timer) or (tape.time.size and timer.now > first_time(tape)):
        raise ReplayError(
            f"the timer is at {timer.now} with {len(timer)} pending; it must be empty, and no later"
            " than the first operation"
        )
    parts = [np.empty(0, FIRED)]
    room = min(int(np.count_nonzero(tape.op != CANCEL)), FIRED_AT_ONCE)
    buffers = Buffers(id_space, room)
    running = TimerOnShard(timer, buffers, lambda rows: parts.append(rows.copy()), clock, limit)
    size = at_once or OPERATIONS_AT_ONCE
    starts = range(0, tape.time.size, size)
    for batch in batches(part(tape, start, start + size) for start in starts):
        running.add(batch)
    return Replay(running.finish(drain_timer=drain_timer), np.concatenate(parts))


class Batch(NamedTuple):
    """Some operations of a shard, prepared once for all timers that replay it."""

    operations: Rows  # of dtype OPERATION
    overdue: Int64s  # tape indices of the operations that arm a timer after its deadline
    armed_at: Int64s  # their times


def batches(pieces: Iterable[Tape]) -> Iterator[Batch]:
    """Prepare the operations of a shard; `pieces` are in order."""
    first = 0
    for piece in pieces:
        overdue = np.flatnonzero((piece.deadline < piece.time) & (piece.op != CANCEL))
        yield Batch(operations_of(piece), overdue + first, piece.time[overdue])
        first += piece.time.size


class TimerOnShard:
    """A timer that replays a shard, and the lateness of its expiries.

    `take` receives the expiries in order, as rows of dtype FIRED that are overwritten afterwards.
    Lateness is `fired_at - max(deadline, armed_at)`. Hardly any timer is armed after its deadline,
    so `armed_at` is kept for such timers only, until they fire. Memory: the pending timers and the
    buffers.
    """

    def __init__(
        self,
        timer: Timer,
        buffers: "Buffers",
        take: Take,
        clock: Clock = time.thread_time,
        limit: float = math.inf,
    ) -> None:
        self._take_rows, self._lateness = take, Lateness()
        self._overdue = np.empty(0, np.int64)  # tape indices, ascending
        self._armed_at = np.empty(0, np.int64)
        steps = STEPS_AT_ONCE if limit == math.inf else STEPS_IN_LIMIT
        self._loop = loop_for(timer, buffers, self._take, clock, limit, steps)

    def add(self, batch: Batch) -> None:
        """Run the next operations."""
        self._overdue = np.concatenate([self._overdue, batch.overdue])
        self._armed_at = np.concatenate([self._armed_at, batch.armed_at])
        self._loop.run(batch.operations)

    def finish(self, *, drain_timer: bool = True) -> Outcome:
        """Drain the timer unless told otherwise, and return the outcome."""
        if drain_timer:
            self._loop.drain()
        return replace(self._loop.finish(), lateness=self._lateness)

    def _take(self, rows: Rows) -> None:
        late = rows["fired_at"] - rows["deadline"]
        if self._overdue.size:
            self._count_from_arming(rows["operation"], rows["fired_at"], late)
        self._lateness += Lateness.of(late).coarse()
        self._take_rows(rows)

    def _count_from_arming(self, operation: Int64s, fired_at: Int64s, late: Int64s) -> None:
        """Change `late` for timers that were armed after their deadlines."""
        index = np.searchsorted(self._overdue, operation)
        index[index == self._overdue.size] = 0
        overdue = self._overdue[index] == operation
        late[overdue] = fired_at[overdue] - self._armed_at[index[overdue]]
        # An overdue timer fires at the time when it is armed, and rows are ordered by `fired_at`.
        kept = self._armed_at >= fired_at[-1]
        self._overdue, self._armed_at = self._overdue[kept], self._armed_at[kept]


def first_time(tape: Tape) -> int:
    """The clock at which a replay starts its timer: the first operation's time."""
    return int(tape.time[0]) if tape.time.size else 0


def operations_of(tape: Tape) -> Rows:
    """The rows of a tape as one array of dtype OPERATION."""
    operations = np.empty(tape.time.size, OPERATION)
    for name, column in zip(Tape._fields, tape, strict=True):
        operations[name] = column
    return operations


# ---- loops: both kinds have the same methods


class Buffers:
    """The arrays that a compiled loop writes to; later replays may reuse them.

    Each page is written to once here. Its first use costs a thousand times as much as a row, and
    must not be timed.
    """

    def __init__(self, id_space: int, room: int = FIRED_AT_ONCE) -> None:
        self.handles = np.full(max(id_space, 1), NONE, np.int64)
        self.armed_by = np.zeros(0, np.int32)
        self.fired = np.ones(room + 1, EXPIRY)

    def reserve(self, id_space: int) -> None:
        """Make room for more ids. O(ids) if there is none."""
        missing = id_space - self.handles.size
        if missing > 0:
            more = max(missing, self.handles.size)  # it is copied, so it doubles
            self.handles = np.append(self.handles, np.full(more, NONE, np.int64))


class CompiledLoop:
    """Runs operations on a timer with a kernel, piece by piece.

    Call `run` for each piece, `drain` or `tick` to let the remaining timers fire, and `finish` at
    the end. All but `finish` return the seconds spent in compiled code, and raise OverBudgetError
    when their total exceeds `limit` seconds. `take` receives the expiries in order, as rows of
    dtype FIRED that are overwritten afterwards; their `operation` counts from the first operation
    of the replay. Memory: the pending timers and the buffers.
    """

    def __init__(
        self, timer: Any, buffers: Buffers, take: Take, clock: Clock, limit: float, steps: int
    ) -> None:
        self.timer, self.limit, self._steps = timer, math.inf, steps
        self._buffers, self._take, self._clock = buffers, take, clock
        self._at_once = timer.traits.rounding(timer.parameters).at_once
        self._cursor = np.zeros(loops.CELLS, np.int64)
        self._operations = self._fired = 0
        self._fired_at = 0  # of the last row that was taken
        self.seconds = 0.0
        # Compile, or load from the disk cache, before anything is timed.
        self.run(np.empty(0, OPERATION))
        self.drain()
        self.seconds, self._cursor[:] = 0.0, 0
        self.limit = limit

    def run(self, operations: Rows, *, reserve: bool = True) -> float:
        """Run the next operations, of dtype OPERATION.

        Room for the timers that they arm is reserved first, untimed. Pass `reserve=False` if the
        timer already has that room.
        """
        timer, buffers, cursor = self.timer, self._buffers, self._cursor
        if reserve:
            timer.reserve(int(np.count_nonzero(operations["op"] != CANCEL)))
        missing = timer.state.nodes.size - buffers.armed_by.size  # nodes are places and sentinels
        if missing > 0:
            more = max(missing, buffers.armed_by.size)  # it is copied, so it doubles
            buffers.armed_by = np.append(buffers.armed_by, np.zeros(more, np.int32))
        cursor[loops.FIRST], cursor[loops.NEXT] = self._operations, 0
        cursor[loops.BEFORE] = timer.now
        self._operations += operations.size
        arguments = operations, self._at_once, cursor, buffers.handles
        return self._timed(
            lambda: bool(cursor[loops.NEXT] == operations.size), loops.run, *arguments
        )

    def drain(self) -> float:
        """Advance from wake-up to wake-up until nothing is pending."""
        timer, cursor = self.timer, self._cursor
        cursor[loops.MOST_PENDING] = max(cursor[loops.MOST_PENDING], len(timer))
        return self._timed(lambda: not len(timer), loops.drain, self._steps, cursor)

    def tick(self, until: int) -> float:
        """Advance by one unit at a time up to `until`; the buffers have room for all that fires."""
        timer, cursor = self.timer, self._cursor
        return self._timed(lambda: timer.now >= until, loops.tick, self._steps, until, cursor)

    def finish(self) -> Outcome:
        """Pass the last rows to `take`, and return the outcome, without lateness."""
        self._hand_over()
        cursor = self._cursor.tolist()
        return Outcome(
            operations=self._operations,
            scheduled=cursor[loops.SCHEDULED],
            cancelled=cursor[loops.CANCELLED],
            rescheduled=cursor[loops.RESCHEDULED],
            fired=self._fired,
            pending=len(self.timer),
            most_pending=max(cursor[loops.MOST_PENDING], len(self.timer)),
            wakeups=cursor[loops.WAKEUPS],
            idle_wakeups=cursor[loops.IDLE_WAKEUPS],
            nbytes=int(self.timer.nbytes),
            seconds=self.seconds,
            counters=self.timer.counters,
        )

    def _timed(
        self, is_done: Callable[[], bool], compiled: Callable[..., None], *arguments: Any
    ) -> float:
        """Call compiled code until it is done. After each call, hand over the expiries, untimed."""
        clock, state = self._clock, self.timer.state
        armed_by, fired = self._buffers.armed_by, self._buffers.fired
        seconds = 0.0
        while True:
            started = clock()
            compiled(state, *arguments, armed_by, fired)
            seconds += clock() - started
            if self.seconds + seconds > self.limit:
                raise OverBudgetError(f"it takes longer than {self.limit:g} s")
            if is_done():
                self.seconds += seconds
                return seconds
            self._hand_over()

    def _hand_over(self) -> None:
        cursor = self._cursor.tolist()
        if cursor[loops.ADVANCED]:
            _check_moments(self.timer, *cursor[loops.EARLIEST : loops.CELLS])
        count = cursor[loops.ROWS]
        if count:
            rows = self._buffers.fired[:count].view(FIRED)
            self._fired_at = _check_order(self.timer, self._fired_at, rows)
            self._take(rows)
            self._cursor[loops.ROWS] = 0
            self._fired += count
        _check_pending(self.timer, cursor[loops.SCHEDULED] - cursor[loops.CANCELLED] - self._fired)


class PythonLoop:
    """Runs operations on any timer by calling its methods; see CompiledLoop."""

    def __init__(self, timer: Timer, take: Take, clock: Clock, limit: float) -> None:
        self.timer, self.limit = timer, limit
        self._take, self._clock = take, clock
        self._at_once = timer.traits.rounding(timer.parameters).at_once
        self._handles: dict[int, int] = {}
        self._armed_by: dict[int, int] = {}  # by handle
        self._rows: list[tuple[int, int, int]] = []
        self._fired_at = 0  # of the last row that was taken
        self._outcome = Outcome()

    @property
    def seconds(self) -> float:
        """The seconds of all calls so far."""
        return self._outcome.seconds

    def run(self, operations: Rows, *, reserve: bool = True) -> float:
        """Run the next operations, of dtype OPERATION."""
        steps = range(0, operations.size, STEPS_AT_ONCE)
        parts = (operations[k : k + STEPS_AT_ONCE] for k in steps)
        return self._timed(lambda: self._run(next(parts, None)))

    def drain(self) -> float:
        """Advance from wake-up to wake-up until nothing is pending."""
        self._idle = 0  # idle wake-ups in a row
        return self._timed(self._drain)

    def tick(self, until: int) -> float:
        """Advance by one unit at a time up to `until`."""
        return self._timed(lambda: self._tick(until))

    def finish(self) -> Outcome:
        """Pass the last rows to `take`, and return the outcome, without lateness."""
        self._hand_over()
        pending, nbytes = len(self.timer), int(self.timer.nbytes)
        return self._outcome + Outcome(pending=pending, most_pending=pending, nbytes=nbytes)

    def _run(self, operations: Rows | None) -> Outcome | None:
        if operations is None:
            return None
        columns = [operations[name].tolist() for name in ("time", "op", "id", "deadline")]
        timer, handles, armed_by, at_once = self.timer, self._handles, self._armed_by, self._at_once
        scheduled = cancelled = rescheduled = most_pending = 0
        now = timer.now
        may_be_due = True  # a timer armed since the last advance may be due
        rows = zip(*columns, strict=True)
        for k, (moment, op, i, deadline) in enumerate(rows, self._outcome.operations):
            if moment > now or (may_be_due and timer.next_expiry() == moment):
                most_pending = max(most_pending, len(timer))
                self._advance(moment, now if may_be_due else now + 1)
                now = moment
            may_be_due = False
            if op == START:
                handles[i] = handle = timer.schedule(deadline)
                scheduled += 1
            else:
                handle = handles.get(i, NONE)
                if op == CANCEL:
                    if timer.cancel(handle):
                        armed_by.pop(handle, None)
                        cancelled += 1
                    continue
                if timer.reschedule(handle, deadline):
                    rescheduled += 1
                elif op == ARM:
                    handles[i] = handle = timer.schedule(deadline)
                    scheduled += 1
                else:
                    continue
            armed_by[handle] = k
            may_be_due = deadline - now <= at_once
        _check_pending(timer, len(armed_by))
        return Outcome(
            operations=len(columns[0]),
            scheduled=scheduled,
            cancelled=cancelled,
            rescheduled=rescheduled,
            most_pending=most_pending,
        )

    def _drain(self) -> Outcome | None:
        timer, most_pending = self.timer, len(self.timer)
        wakeups = idle_wakeups = 0
        while len(timer) and wakeups < STEPS_AT_ONCE:
            wakeup = timer.next_wakeup() if self._idle < MAX_IDLE else timer.next_expiry()
            if wakeup is None or self._idle > 2 * MAX_IDLE:
                raise ReplayError(
                    f"{type(timer).__name__} has {len(timer)} timers pending, but after"
                    f" {self._idle} idle wake-ups none has fired"
                )
            wakeups += 1
            self._idle = 0 if self._advance(wakeup, wakeup) else self._idle + 1
            idle_wakeups += self._idle > 0
        done = Outcome(wakeups=wakeups, idle_wakeups=idle_wakeups, most_pending=most_pending)
        return done if wakeups else None

    def _tick(self, until: int) -> Outcome | None:
        moments = range(self.timer.now + 1, until + 1)[:STEPS_AT_ONCE]
        idle_wakeups = sum(not self._advance(moment, moment) for moment in moments)
        return Outcome(wakeups=len(moments), idle_wakeups=idle_wakeups) if moments else None

    def _advance(self, moment: int, earliest: int) -> int:
        """Advance to `moment`; what fires must say that it does so from `earliest` to `moment`."""
        expired = self.timer.advance(moment)
        columns = [column.tolist() for column in expired]
        if columns[2]:
            _check_moments(self.timer, earliest, moment, min(columns[2]), max(columns[2]))
        for handle, deadline, fired_at in zip(*columns, strict=True):
            operation = self._armed_by.pop(handle, None)
            if operation is None:
                fired = f"{type(self.timer).__name__} fired handle {handle} at {fired_at}"
                raise ReplayError(f"{fired}, which was not pending")
            self._rows.append((operation, deadline, fired_at))
        _check_pending(self.timer, len(self._armed_by))
        return len(expired.handles)

    def _timed(self, work: Callable[[], Outcome | None]) -> float:
        """Call `work` until it returns None. After each call, hand over the expiries."""
        seconds = 0.0
        while True:
            started = self._clock()
            done = work()
            spent = self._clock() - started
            if done is None:
                return seconds
            seconds += spent
            self._outcome += replace(done, seconds=spent)
            if self.seconds > self.limit:
                raise OverBudgetError(f"it takes longer than {self.limit:g} s")
            if len(self._rows) >= FIRED_AT_ONCE:
                self._hand_over()

    def _hand_over(self) -> None:
        if self._rows:
            rows = np.array(self._rows, FIRED)
            self._fired_at = _check_order(self.timer, self._fired_at, rows)
            self._take(rows)
            self._outcome += Outcome(fired=len(self._rows))
            self._rows.clear()


def loop_for(
    timer: Timer,
    buffers: Buffers,
    take: Take,
    clock: Clock = time.thread_time,
    limit: float = math.inf,
    steps: int = STEPS_AT_ONCE,
) -> CompiledLoop | PythonLoop:
    """The compiled loop for a timer with a kernel, the Python loop for any other.

    Compiled code drains or ticks up to `steps` advances in one call.
    """
    if isinstance(timer, KernelTimer):
        return CompiledLoop(timer, buffers, take, clock, limit, steps)
    return PythonLoop(timer, take, clock, limit)


def _check_moments(timer: Timer, earliest: int, moment: int, first_at: int, last_at: int) -> None:
    """Check when the first and the last row of an advance to `moment` fired."""
    if first_at < earliest or last_at > moment:
        fired_at = first_at if first_at < earliest else last_at
        expected = f"from {earliest} to {moment}" if earliest < moment else f"at {moment}"
        raise ReplayError(
            f"{type(timer).__name__} was advanced to {moment} and delivered a timer that it says"
            f" fired at {fired_at}; what it delivers then fires {expected}"
        )


def _check_order(timer: Timer, previous: int, rows: Rows) -> int:
    """Check that rows are ordered by when they fired; returns that of the last."""
    fired_at = rows["fired_at"]
    misplaced = np.flatnonzero(np.diff(fired_at, prepend=previous) < 0)
    if misplaced.size:
        k = int(misplaced[0])
        before = fired_at[k - 1] if k else previous
        raise ReplayError(
            f"{type(timer).__name__} delivered a timer that fired at {before} before one that fired"
            f" at {fired_at[k]}"
        )
    return int(fired_at[-1])


def _check_pending(timer: Timer, expected: int) -> None:
    if len(timer) != expected:
        raise ReplayError(
            f"{type(timer).__name__} says that {len(timer)} timers are pending at {timer.now};"
            f" by the operations and what fired there are {expected}"
        )
