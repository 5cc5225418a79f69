"""The compiled loops: run the operations of a tape, and drive a timer's clock until it is drained.

Written once for all kernels: `schedule(state, ...)` and its kin are chosen by the State's type while compiling.
"""
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from compare.tape import ARM, CANCEL, START
from timers.kernels.dispatch import advance, cancel, due, next_expiry, next_wakeup, reschedule, schedule
from timers.kernels.handles import place_of
from timers.kernels.jit import entry
from timers.kernels.pool import NOW, PENDING

FIRED = np.dtype([("operation", "i8"), ("deadline", "i8"), ("fired_at", "i8")])
"""A fired row: the index of the operation that last armed the timer, its deadline, and when it fired."""

ROWS_AT_ONCE = 512  # rows that one advance hands over: 12 KiB, well inside the first-level cache
LOOK_AHEAD = 16  # operations ahead of which the id -> handle map is fetched into the cache
PATIENCE = 4096  # wake-ups in a row with nothing due, after which draining jumps to the next expiry instead

# Cells of a replay's cursor, int64.
NEXT = 0  # next operation
ROWS = 1  # rows in `fired`
SCHEDULED, CANCELLED, RESCHEDULED = 2, 3, 4  # operations that took effect
WAKEUPS, IDLE_WAKEUPS = 5, 6  # while draining: advances, and those in which nothing fired
CELLS = 7


def prefetch(array, index):
    """Ask for array[index] to be brought into the cache; no effect otherwise."""


@intrinsic
def _prefetch(typing_context, array, index):
    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        flag = ir.IntType(32)
        signature_of_prefetch = ir.FunctionType(ir.VoidType(), [address.type, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, signature_of_prefetch, "llvm.prefetch.p0")
        for_read, keep_in_all_levels, data_cache = flag(0), flag(3), flag(1)
        builder.call(function, [address, for_read, keep_in_all_levels, data_cache])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@overload(prefetch, inline="always")
def _overload_prefetch(array, index):
    return lambda array, index: _prefetch(array, index)


@entry
def run(state, tape, until, cursor, handles, armed_by, rows, fired):
    """Run operations [cursor[NEXT], until), or as many as `fired` has room for.

    `handles` (int64, by id) holds each id's latest handle, `armed_by` (int32, by place) the operation that last
    armed a place's timer. Room for the timers that these operations start is reserved.
    """
    k, n = cursor[NEXT], cursor[ROWS]
    scheduled, cancelled, rescheduled = cursor[SCHEDULED], cursor[CANCELLED], cursor[RESCHEDULED]
    now = state.clock[NOW]
    may_be_due = True  # something has been armed since the last advance
    while k < until:
        at = tape.time[k]
        if at > now or (may_be_due and due(state)):
            done = False
            while not done and fired.size - n >= rows.size:
                count, done = advance(state, at, rows)
                n = keep(rows, count, armed_by, fired, n)
            if not done:
                break
            now = at
        may_be_due = False
        op = tape.op[k]
        i = np.uint32(tape.id[k])
        if op == START:
            handle = schedule(state, tape.deadline[k])
            handles[i] = handle
            armed_by[place_of(handle)] = k
            scheduled += 1
            may_be_due = True
        else:
            # The map is the replay's own, not the timer's: its cache misses must not be charged to the timer.
            if k + LOOK_AHEAD < until:
                prefetch(handles, np.uint32(tape.id[k + LOOK_AHEAD]))
            handle = handles[i]
            if op == CANCEL:
                if cancel(state, handle):
                    cancelled += 1
            elif reschedule(state, handle, tape.deadline[k]):
                armed_by[place_of(handle)] = k
                rescheduled += 1
                may_be_due = True
            elif op == ARM:
                handle = schedule(state, tape.deadline[k])
                handles[i] = handle
                armed_by[place_of(handle)] = k
                scheduled += 1
                may_be_due = True
        k += 1
    cursor[NEXT], cursor[ROWS] = k, n
    cursor[SCHEDULED], cursor[CANCELLED], cursor[RESCHEDULED] = scheduled, cancelled, rescheduled


@entry
def drain(state, cursor, armed_by, rows, fired):
    """Advance from wake-up to wake-up until nothing is pending, or `fired` has no room left.

    A timer years away can take a hashed wheel 2**54 wake-ups; after PATIENCE idle ones in a row the next is
    skipped to the next expiry, which gives the same rows.
    """
    n = cursor[ROWS]
    idle = 0
    while state.clock[PENDING] > 0 and fired.size - n >= rows.size:
        at = next_wakeup(state) if idle < PATIENCE else next_expiry(state)
        count, _ = advance(state, at, rows)
        n = keep(rows, count, armed_by, fired, n)
        cursor[WAKEUPS] += 1
        idle = 0 if count > 0 else idle + 1
        if idle > 0:
            cursor[IDLE_WAKEUPS] += 1
    cursor[ROWS] = n


@entry
def tick(state, until, cursor, armed_by, rows, fired):
    """Advance by one unit at a time up to `until`, or while `fired` has room: the clock-driven way."""
    n = cursor[ROWS]
    now = state.clock[NOW]
    while now < until and fired.size - n >= rows.size:
        done = False
        while not done and fired.size - n >= rows.size:
            count, done = advance(state, now + 1, rows)
            n = keep(rows, count, armed_by, fired, n)
            cursor[WAKEUPS] += 1
            cursor[IDLE_WAKEUPS] += 1 if count == 0 else 0
        now = state.clock[NOW]
    cursor[ROWS] = n


@entry
def keep(rows, count, armed_by, fired, n):
    """Append rows[:count] to fired[n:], each with the operation that armed it instead of its handle."""
    for r in range(count):
        fired[n]["operation"] = armed_by[place_of(rows[r]["handle"])]
        fired[n]["deadline"] = rows[r]["deadline"]
        fired[n]["fired_at"] = rows[r]["fired_at"]
        n += 1
    return n
