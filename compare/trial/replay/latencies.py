"""Replay a tape and measure each operation and each advance by itself.

The loops are those of `compare.trial.replay.loops` with two readings of a clock around every
operation. A timer starts small and grows when an operation finds no room, as it does in a program;
that operation's time includes the growth. The clock moves to the next operation's time, at most
`step` units in one advance. After the last operation it moves until nothing is pending: by `step`
if that is 1, else from wake-up to wake-up.
"""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from compare.base.garbage import no_collections
from compare.traffic.tapes.tape import ARM, CANCEL, REARM, START, Tape
from compare.trial.replay.engine import OverBudgetError, operations_of
from compare.trial.replay.loops import MAX_IDLE, STEPS_AT_ONCE, STEPS_IN_LIMIT
from compare.trial.replay.timed_loops import (
    ADVANCED,
    ADVANCES,
    CELLS,
    GREW,
    NEXT,
    ROWS,
    drain,
    read,
    run,
    ticks,
)
from timers.arrays import Int64s
from timers.kernels.operations import NONE
from timers.kernels.pool import EXPIRY
from timers.limits import LIMIT
from timers.protocol import Timer
from timers.schemes.base import KernelTimer

KINDS = {"start": START, "cancel": CANCEL, "rearm": REARM}
"""The kinds of operations, by what they did or tried to do: an arm starts or re-arms."""

Rows = npt.NDArray[Any]


@dataclass
class Latencies:
    """The ticks of a replay; or, after `keep_least`, the least of several replays."""

    kinds: npt.NDArray[np.int8]  #: by operation: a value of KINDS
    spent: Int64s  #: by operation
    advances: Rows  #: of dtype ADVANCED
    fired: Rows  #: of dtype EXPIRY, in order
    growths: int  #: times that the timer grew

    def keep_least(self, other: "Latencies") -> None:
        """Keep the lesser time of each operation and each advance."""
        own = self.advances["ticks"]
        np.minimum(self.spent, other.spent, out=self.spent)
        np.minimum(own, other.advances["ticks"], out=own)

    @property
    def digest(self) -> bytes:
        """A digest of everything but the ticks and the counted work."""
        columns = (self.kinds, self.fired, *(self.advances[name] for name in ("moment", "fired")))
        return hashlib.blake2b(b"".join(column.tobytes() for column in columns)).digest()

    def ticks_of(self, kind: str) -> Int64s:
        """The ticks of all operations of a kind."""
        return np.asarray(self.spent[self.kinds == KINDS[kind]])


def latencies_of(
    timer: Any,
    tape: Tape,
    id_space: int,
    *,
    step: int = LIMIT,
    fake: Int64s | None = None,
    limit: float = np.inf,
) -> Latencies:
    """Run a valid tape through an empty timer whose clock is not beyond the tape's first time.

    An advance covers at most `step` units. `fake` replaces the clock: see `ticks`. Raises
    OverBudgetError after more than `limit` seconds of CPU time.
    """
    ends = time.thread_time() + limit

    def check() -> None:
        if time.thread_time() > ends:
            raise OverBudgetError(f"it takes longer than {limit:g} s")

    if isinstance(timer, KernelTimer):
        steps = STEPS_AT_ONCE if limit == np.inf else STEPS_IN_LIMIT
        return _compiled(timer, tape, id_space, step, fake, check, steps)
    with no_collections():
        return _interpreted(timer, tape, step, fake, check)


def _compiled(
    timer: Any,
    tape: Tape,
    id_space: int,
    step: int,
    fake: Any,
    check: Callable[[], None],
    steps: int,
) -> Latencies:
    """Call `check` at least after this number of operations, and of advances."""
    size, at_once, growths = tape.time.size, timer.traits.rounding(timer.parameters).at_once, 0
    operations, cursor = operations_of(tape), np.zeros(CELLS, np.int64)
    handles = np.full(max(id_space, 1), NONE, np.int64)
    # Each page is written to once before anything is timed.
    fired = np.ones(int(np.count_nonzero(tape.op != CANCEL)) + 1, EXPIRY)
    kinds, spent = np.ones(size, np.int8), np.ones(size, np.int64)
    advances, parts = np.ones(steps, ADVANCED), []

    def run_to(stop: int) -> None:
        results = (cursor, handles, fired, kinds, spent, advances)
        run(timer.state, operations, stop, step, at_once, fake, *results)

    def drain_some() -> None:
        drain(timer.state, step, fake, cursor, fired, advances)

    read(fake)  # compiles it; so do the next two
    run_to(0)
    drain_some()
    while cursor[NEXT] < size or len(timer):
        stop = min(int(cursor[NEXT]) + steps, size)
        if cursor[NEXT] < size:
            run_to(stop)
        else:
            drain_some()
        if cursor[ADVANCES] == advances.size:
            parts.append(advances.copy())
            cursor[ADVANCES] = 0
        elif cursor[NEXT] < stop:
            started = read(fake)
            timer.reserve(1)
            cursor[GREW] += read(fake) - started
            growths += 1
        check()
    parts.append(advances[: cursor[ADVANCES]])
    return Latencies(kinds, spent, np.concatenate(parts), fired[: cursor[ROWS]], growths)


def _interpreted(
    timer: Timer, tape: Tape, step: int, fake: Any, check: Callable[[], None]
) -> Latencies:
    """`_compiled` for a timer without a kernel, which grows by itself."""
    at_once, may_be_due, idle = timer.traits.rounding(timer.parameters).at_once, True, 0
    handles: dict[int, int] = {}
    kinds, spent = np.zeros(tape.time.size, np.int8), np.zeros(tape.time.size, np.int64)
    advances: list[tuple[int, int, int, int]] = []
    fired: list[Rows] = []

    def advance_to(moment: int) -> bool:
        started = ticks(fake)
        rows = timer.advance(moment)
        advances.append((moment, ticks(fake) - started, len(rows.handles), 0))
        fired.append(np.rec.fromarrays(rows, dtype=EXPIRY).view(np.ndarray))
        if len(advances) % STEPS_AT_ONCE == 0:
            check()
        return bool(len(rows.handles))

    for k, (moment, op, i, deadline) in enumerate(
        zip(*(tape[column].tolist() for column in range(4)), strict=True)
    ):
        while moment > timer.now or (may_be_due and timer.next_expiry() == timer.now):
            advance_to(min(moment, timer.now + step))
            may_be_due = False
        handle, kind = handles.get(i, NONE), op
        started = ticks(fake)
        if op == CANCEL:
            timer.cancel(handle)
        elif op == START or (not timer.reschedule(handle, deadline) and op == ARM):
            handle, kind = timer.schedule(deadline), START
        elif op == ARM:
            kind = REARM
        spent[k] = ticks(fake) - started
        handles[i], kinds[k] = handle, kind
        may_be_due = may_be_due or (op != CANCEL and deadline - moment <= at_once)
        if k % STEPS_AT_ONCE == 0:
            check()
    while len(timer):
        wakeup = timer.next_wakeup() if idle < MAX_IDLE else timer.next_expiry()
        moment = timer.now + 1 if step == 1 or wakeup is None else wakeup
        idle = 0 if advance_to(moment) else idle + 1
    return Latencies(
        kinds,
        spent,
        np.array(advances, ADVANCED),
        np.concatenate([np.empty(0, EXPIRY), *fired]),
        growths=0,
    )
