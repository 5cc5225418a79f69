"""The compiled loops: run the operations of a tape, and advance a timer until it is drained.

They are written once for all kernels: the compiler selects `schedule(state, ...)` and the other
functions by the type of the State.
"""

import numpy as np

from compare.traffic.tapes.tape import ARM, CANCEL, START
from timers.kernels.dispatch import (
    advance,
    cancel,
    due,
    next_expiry,
    next_wakeup,
    reschedule,
    schedule,
)
from timers.kernels.handles import place_of
from timers.kernels.jit import inlined, long_entry
from timers.kernels.pool import NOW, PENDING
from timers.kernels.prefetch import prefetch

OPERATION = np.dtype([("time", "i8"), ("deadline", "i8"), ("id", "i4"), ("op", "i1")], align=True)
"""A row of a tape. One array instead of four leaves more registers for the timer."""

FIRED = np.dtype([("operation", "i8"), ("deadline", "i8"), ("fired_at", "i8")])
"""An expiry: the index of the operation that last armed the timer, its deadline, and when it fired.

The loops fill rows of dtype EXPIRY, which has the same layout, and replace the handle by the
operation.
"""

STEPS_AT_ONCE = 4096  # advances of `drain` and `tick` in one call, so that a caller can stop them
STEPS_IN_LIMIT = 512
"""A lower number for replays with a time limit: a list scans up to 10**7 timers in each advance."""
ALL_STEPS = 1 << 62
"""No limit: a timed task is one call, because work between calls would leave the caches cold."""
LOOK_AHEAD = 8  # operations by which the id -> handle map is prefetched
MAX_IDLE = 4096
"""After this many wake-ups in a row with nothing due, draining jumps to the next expiry instead."""

# Cells of a replay's cursor, int64.
NEXT = 0  # next row of the current operations
ROWS = 1  # rows in `fired`
SCHEDULED, CANCELLED, RESCHEDULED = 2, 3, 4  # operations that took effect
WAKEUPS, IDLE_WAKEUPS = 5, 6  # while draining: advances, and those in which nothing fired
FIRST = 7  # tape index of the first of the current operations
MOST_PENDING = 8  # the maximum of pending timers whenever the clock moved
IDLE = 9  # idle wake-ups in a row while draining
BEFORE = 10  # the clock before the advance that `run` interrupts when `fired` is full
# One advance in which a row said that it fired at another time; ADVANCED is 0 without one.
ADVANCED, EARLIEST, MOMENT, FIRST_AT, LAST_AT = 11, 12, 13, 14, 15
CELLS = 16


@long_entry
def run(state, operations, at_once, cursor, handles, armed_by, fired):
    """Run operations [cursor[NEXT], end), or stop when `fired` is full.

    `operations` is of dtype OPERATION, shape (operations,). `at_once` is the longest delay of a
    timer that may be due when it is armed. `handles` (int64, by id) holds each id's latest handle,
    `armed_by` (int32, by place) the operation that last armed a place's timer. The caller has
    reserved room for the timers that these operations start.
    """
    k, n = np.uint32(cursor[NEXT]), cursor[ROWS]  # unsigned: no test for a negative index
    last = np.uint32(operations.size)
    first = cursor[FIRST]
    scheduled, cancelled, rescheduled = cursor[SCHEDULED], cursor[CANCELLED], cursor[RESCHEDULED]
    most_pending = cursor[MOST_PENDING]
    now, before = state.cells[NOW], cursor[BEFORE]
    may_be_due = True  # a timer armed since the last advance may be due
    while k < last:
        moment = operations[k]["time"]
        if moment > now or (may_be_due and due(state)):
            most_pending = max(most_pending, state.cells[PENDING])
            earliest = before if may_be_due else before + 1
            filled = n
            n, done = advance_and_check(state, moment, earliest, cursor, fired, n)
            name_operations(armed_by, fired, filled, n)
            if not done:
                break
            now = before = moment
        may_be_due = False
        while k < last and operations[k]["time"] == now:
            operation = first + k
            op = operations[k]["op"]
            i = np.uint32(operations[k]["id"])
            deadline = operations[k]["deadline"]
            k = np.uint32(k + 1)
            if op == START:
                handle = schedule(state, deadline)
                handles[i] = handle
                scheduled += 1
            else:
                # The map belongs to the replay: its cache misses must not slow the timer down.
                if k + LOOK_AHEAD < last:
                    prefetch(handles, np.uint32(operations[np.uint32(k + LOOK_AHEAD)]["id"]))
                handle = handles[i]
                if op == CANCEL:
                    cancelled += 1 if cancel(state, handle) else 0
                    continue
                if reschedule(state, handle, deadline):
                    rescheduled += 1
                elif op == ARM:
                    handle = schedule(state, deadline)
                    handles[i] = handle
                    scheduled += 1
                else:
                    continue
            armed_by[place_of(handle)] = operation
            if deadline - now <= at_once:
                may_be_due = True
                break
    cursor[NEXT], cursor[ROWS], cursor[MOST_PENDING], cursor[BEFORE] = k, n, most_pending, before
    cursor[SCHEDULED], cursor[CANCELLED], cursor[RESCHEDULED] = scheduled, cancelled, rescheduled


@long_entry
def drain(state, limit, cursor, armed_by, fired):
    """Advance from wake-up to wake-up until nothing is pending or `fired` is full.

    Stops after `limit` wake-ups. A timer years away can take a hashed wheel 2**54 wake-ups;
    after MAX_IDLE idle ones in a row, the clock jumps to the next expiry, with the same result.
    """
    n, idle = cursor[ROWS], cursor[IDLE]
    steps = 0
    done = True
    while done and state.cells[PENDING] > 0 and steps < limit:
        steps += 1
        wakeup = next_wakeup(state) if idle < MAX_IDLE else next_expiry(state)
        before = n
        # Nothing is due before a wake-up, so what fires says that it fires at this moment.
        n, done = advance_and_check(state, wakeup, wakeup, cursor, fired, n)
        cursor[WAKEUPS] += 1
        idle = 0 if n > before else idle + 1
        if idle > 0:
            cursor[IDLE_WAKEUPS] += 1
    name_operations(armed_by, fired, cursor[ROWS], n)  # at once, so that its cache misses overlap
    cursor[ROWS], cursor[IDLE] = n, idle


@long_entry
def tick(state, limit, until, cursor, armed_by, fired):
    """Advance unit by unit to `until`; stop after `limit` units or when `fired` is full."""
    n = cursor[ROWS]
    now = state.cells[NOW]
    stop = now + min(until - now, limit)
    done = True
    while done and now < stop:
        before = n
        n, done = advance_and_check(state, now + 1, now + 1, cursor, fired, n)
        cursor[WAKEUPS] += 1
        if n == before:
            cursor[IDLE_WAKEUPS] += 1
        if done:
            now += 1
    name_operations(armed_by, fired, cursor[ROWS], n)
    cursor[ROWS] = n


@inlined
def advance_and_check(state, moment, earliest, cursor, fired, n):
    """Advance into fired[n:].

    Notes in `cursor` if a row did not fire from `earliest` to `moment`. Only the first and the last
    row are read here: the order of the rows is checked when they are handed over.

    Returns the number of rows in `fired`, and whether the advance is done or `fired` is full.
    """
    count, done = advance(state, moment, fired[n:])
    if count > 0:
        first_at, last_at = fired[n]["fired_at"], fired[n + count - 1]["fired_at"]
        if (first_at < earliest or last_at > moment) and cursor[ADVANCED] == 0:
            cursor[ADVANCED], cursor[EARLIEST], cursor[MOMENT] = 1, earliest, moment
            cursor[FIRST_AT], cursor[LAST_AT] = first_at, last_at
    return n + count, done


@inlined
def name_operations(armed_by, fired, first, last):
    """Replace the handles of the rows in [first, last) by the operations that armed the timers."""
    for r in range(first, last):
        row = np.uint32(r)
        fired[row]["handle"] = armed_by[place_of(fired[row]["handle"])]
