"""How often a driver wakes up: a program that sleeps until the timer's next wake-up.

An operation moves the clock as in a replay, which is not a wake-up. Before it, the driver has
advanced the timer to each wake-up on the way. A wake-up is idle if nothing fires.
"""

# ruff: noqa: ANN001, ANN202  # compiled functions are typed by their arguments
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
import math
import time
from typing import Any, NamedTuple

import numpy as np

from compare.traffic.tapes.tape import ARM, CANCEL, START, Tape
from compare.trial.replay.engine import Clock, operations_of
from compare.trial.replay.loops import STEPS_IN_LIMIT
from timers.kernels.dispatch import advance, cancel, next_wakeup, reschedule, schedule
from timers.kernels.jit import long_entry
from timers.kernels.operations import NONE
from timers.kernels.pool import EXPIRY, NOW

# Cells of the cursor, int64.
NEXT = 0  # next row of the operations
WAKEUPS, IDLE_WAKEUPS = 1, 2
ARRIVED = 3  # whether everything is done
CELLS = 4
_ROWS = 1024  # that an advance delivers at a time


class Wakeups(NamedTuple):
    """The wake-ups of a driver."""

    wakeups: int
    idle: int  #: of them, those in which nothing fired
    seconds: float  #: spent in the timer
    now: int  #: the clock at the end, which is early if the time limit was reached


def drive(
    timer: Any,
    tape: Tape,
    id_space: int,
    until: int,
    *,
    limit: float = math.inf,
    clock: Clock = time.thread_time,
) -> Wakeups:
    """Run a valid tape with a driver and wake up until `until`, for at most about `limit` seconds.

    The timer has a kernel.
    """
    operations, cursor = operations_of(tape), np.zeros(CELLS, np.int64)
    handles, fired = np.full(max(id_space, 1), NONE, np.int64), np.empty(_ROWS, EXPIRY)
    timer.reserve(int(np.count_nonzero(tape.op != CANCEL)))
    _drive(timer.state, operations[:0], timer.now, 0, cursor, handles, fired)  # compiles it
    cursor[:] = 0
    seconds = 0.0
    while not cursor[ARRIVED] and seconds <= limit:
        started = clock()
        _drive(timer.state, operations, until, STEPS_IN_LIMIT, cursor, handles, fired)
        seconds += clock() - started
    return Wakeups(int(cursor[WAKEUPS]), int(cursor[IDLE_WAKEUPS]), seconds, timer.now)


@long_entry
def _drive(state, operations, until, limit, cursor, handles, fired):
    """Run the operations and wake up, until the clock arrives at `until` or after `limit` steps.

    A step is a look at the next wake-up, which a list takes a scan to find.
    """
    k, steps = cursor[NEXT], 0
    while True:
        moment = operations[k]["time"] if k < operations.size else until
        if moment > state.cells[NOW] or k == operations.size:
            if steps == limit:
                break
            steps += 1
            wakeup = next_wakeup(state)
            if wakeup != NONE and wakeup <= moment:
                delivered, done = advance(state, wakeup, fired)
                while not done:
                    _, done = advance(state, wakeup, fired)
                cursor[WAKEUPS] += 1
                if delivered == 0:
                    cursor[IDLE_WAKEUPS] += 1
                continue
            if moment > state.cells[NOW]:
                advance(state, moment, fired)
            if k == operations.size:
                cursor[ARRIVED] = 1
                break
        op, i, deadline = operations[k]["op"], operations[k]["id"], operations[k]["deadline"]
        if op == CANCEL:
            cancel(state, handles[i])
        elif op == START or (not reschedule(state, handles[i], deadline) and op == ARM):
            handles[i] = schedule(state, deadline)
        k += 1
    cursor[NEXT] = k
