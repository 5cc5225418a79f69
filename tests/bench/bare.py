"""A kernel in bare compiled loops: a replay without its tape, its map of operations and its checks.

The loops do the operations of the benchmark's tapes on the same timers. They keep handles in an
array by id, as a replay does, and write all rows that fire to one array. Unlike a replay, they do
not fetch that array ahead.
"""

import numpy as np

from compare.trial.bench.task import BY_CLOCK, CANCEL_ALL, HOLD, INSERT
from compare.trial.bench.work import PAIRS_PER_UNIT, SETTLE, SETTLING, UNIT
from timers.kernels.dispatch import advance, cancel, schedule
from timers.kernels.jit import long_entry
from timers.kernels.pool import NOW, PENDING


@long_entry
def insert(state, deadlines, handles):
    """Schedule a timer for each deadline."""
    for row in range(deadlines.size):
        k = np.uint32(row)
        handles[k] = schedule(state, deadlines[k])


@long_entry
def cancel_all(state, order, handles):
    """Cancel the timers with these ids."""
    for row in range(order.size):
        cancel(state, handles[np.uint32(order[np.uint32(row)])])


@long_entry
def hold(state, victims, deadlines, handles, fired):
    """Cancel a timer and schedule another one, again and again; the clock moves as in the tape.

    Returns the number of rows in `fired`.
    """
    n, now = 0, state.cells[NOW]
    for row in range(victims.size):
        k = np.uint32(row)
        if row > 0 and row % PAIRS_PER_UNIT == 0:
            now += 1
            count, _ = advance(state, now, fired[n:])
            n += count
        i = np.uint32(victims[k])
        cancel(state, handles[i])
        handles[i] = schedule(state, deadlines[k])
    return n


@long_entry
def tick(state, fired, n):
    """Advance by one unit at a time until nothing is pending; rows go to fired[n:]."""
    while state.cells[PENDING] > 0:
        count, _ = advance(state, state.cells[NOW] + 1, fired[n:])
        n += count


class BareRun:
    """A run of a scenario on a timer with a kernel, without a replay."""

    def __init__(self, contestant, tapes):
        timer, size = contestant.new(UNIT, 0, tapes.size), tapes.size
        handles, fired = np.full(size, -1, np.int64), tapes.buffers.fired
        deadlines, order = tapes.filling.deadline[:size].copy(), tapes.filling.id[size + 1 :].copy()
        victims, new = tapes.holding.id[size + 1 :: 2], tapes.holding.deadline[size + 2 :: 2]
        victims, new = victims.copy(), new.copy()
        self.rows = 0  # in `fired`

        def settle():
            timer.advance(SETTLING)
            timer.cancel(int(handles[0]))

        def hold_all():
            self.rows = hold(timer.state, victims, new, handles, fired)

        self._tasks = {
            INSERT: lambda: insert(timer.state, deadlines, handles),
            SETTLE: settle,
            CANCEL_ALL: lambda: cancel_all(timer.state, order, handles),
            HOLD: hold_all,
            BY_CLOCK: lambda: tick(timer.state, fired, self.rows),
        }

    def run(self, task):
        """Run a task."""
        self._tasks[task]()
