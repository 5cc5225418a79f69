"""The compiled loops of `latencies`, and the clock that they read around each operation.

On x86-64 the clock is the processor's cycle counter, behind a fence, so that what stands before a
reading has ended. Elsewhere it is `clock_gettime`.
"""

import platform
import time
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from compare.traffic.tapes.tape import ARM, CANCEL, REARM, START
from compare.trial.replay.loops import MAX_IDLE
from timers.kernels.counters import REFILED
from timers.kernels.dispatch import (
    advance,
    cancel,
    due,
    next_expiry,
    next_wakeup,
    reschedule,
    schedule,
)
from timers.kernels.jit import jit, long_entry
from timers.kernels.pool import NOW, PENDING, room

HAS_CYCLES = platform.machine().lower() in ("x86_64", "amd64")
"""Whether the clock is a cycle counter. Others than that of x86-64 may be closed to programs."""

ADVANCED = np.dtype([("moment", "i8"), ("ticks", "i8"), ("fired", "i8"), ("refiled", "i8")])
"""An advance: where it led, its time, and the timers that it fired and moved to another list.

`refiled` is 0 unless the timer counts its work.
"""

# Cells of the cursor, int64.
NEXT = 0  # next row of the operations
ROWS = 1  # rows in `fired`
ADVANCES = 2  # rows in `advances`
GREW = 3  # ticks of a growth that the next operation waited for
IDLE = 4  # wake-ups in a row in which nothing fired, while draining
CELLS = 5


@long_entry
def run(state, operations, stop, step, early, fake, cursor, handles, fired, kinds, spent, advances):
    """Run operations [cursor[NEXT], stop). Stop early if `advances` is full, or if there is no room
    for a timer.

    `early` is the largest number of units that the scheme fires before a deadline; `step` is at
    most LIMIT.
    """
    k, last = np.uint32(cursor[NEXT]), np.uint32(stop)
    grew = cursor[GREW]
    may_be_due = True  # a timer armed since the last advance may be due
    while k < last:
        moment, now = operations[k]["time"], state.cells[NOW]
        if moment > now or (may_be_due and due(state)):
            if cursor[ADVANCES] == advances.size:
                break
            target = now + min(moment - now, step)
            timed_advance(state, target, fake, cursor, fired, advances)
            may_be_due = False
            continue
        kind, i = operations[k]["op"], np.uint32(operations[k]["id"])
        deadline = operations[k]["deadline"]
        if kind != CANCEL and room(state.nodes, state.cells) < 1:
            break
        handle = handles[i]
        started = ticks(fake)
        if kind == CANCEL:
            cancel(state, handle)
        elif kind == START or (not reschedule(state, handle, deadline) and kind == ARM):
            handle, kind = schedule(state, deadline), START
        elif kind == ARM:
            kind = REARM
        spent[k] = ticks(fake) - started + grew
        handles[i], kinds[k] = handle, kind
        grew = 0
        may_be_due = may_be_due or (kind != CANCEL and deadline - moment <= early)
        k = np.uint32(k + 1)
    cursor[NEXT], cursor[GREW] = k, grew


@long_entry
def drain(state, step, fake, cursor, fired, advances):
    """Advance until nothing is pending or `advances` is full."""
    while state.cells[PENDING] > 0 and cursor[ADVANCES] < advances.size:
        if step == 1:
            moment = state.cells[NOW] + 1
        else:
            moment = next_wakeup(state) if cursor[IDLE] < MAX_IDLE else next_expiry(state)
        before = cursor[ROWS]
        timed_advance(state, moment, fake, cursor, fired, advances)
        cursor[IDLE] = 0 if cursor[ROWS] > before else cursor[IDLE] + 1


@jit
def timed_advance(state, moment, fake, cursor, fired, advances):
    """Advance to `moment` into `fired`, which has room for all that fires."""
    n, a = cursor[ROWS], cursor[ADVANCES]
    before = refiled_by(state.counters)
    out = fired[n:]
    started = ticks(fake)
    count, _ = advance(state, moment, out)
    advances[a]["ticks"] = ticks(fake) - started
    advances[a]["moment"], advances[a]["fired"] = moment, count
    advances[a]["refiled"] = refiled_by(state.counters) - before
    cursor[ROWS], cursor[ADVANCES] = n + count, a + 1


@jit
def refiled_by(counters):
    """The timers re-filed so far; 0 without counters."""
    if counters is None:
        return 0
    return counters[REFILED]


# ---- the clock


def ticks(fake: Any) -> int:
    """Read the clock, in ticks; with an array instead of None, the sum of the array.

    A test passes an array: with a timer's own counters, an operation takes the work that it counts.
    """
    return time.perf_counter_ns() if fake is None else int(fake.sum())


@intrinsic
def _cycles(typing_context):
    def generate(context, builder, signature, arguments):
        module, word = builder.module, ir.IntType(64)
        fence = ir.FunctionType(ir.VoidType(), [])
        read = ir.FunctionType(word, [])
        builder.call(cgutils.get_or_insert_function(module, fence, "llvm.x86.sse2.lfence"), [])
        counter = cgutils.get_or_insert_function(module, read, "llvm.readcyclecounter")
        return builder.call(counter, [])

    return types.int64(), generate


@intrinsic
def _monotonic(typing_context):
    def generate(context, builder, signature, arguments):
        word, number = ir.IntType(64), ir.IntType(32)
        moment = cgutils.alloca_once(builder, ir.ArrayType(word, 2))  # struct timespec
        kind = ir.FunctionType(number, [number, moment.type])
        function = cgutils.get_or_insert_function(builder.module, kind, "clock_gettime")
        builder.call(function, [number(time.CLOCK_MONOTONIC), moment])
        seconds, rest = (
            builder.load(cgutils.gep_inbounds(builder, moment, 0, part)) for part in (0, 1)
        )
        return builder.add(builder.mul(seconds, word(10**9)), rest)

    return types.int64(), generate


@overload(ticks, inline="always")
def _overload_ticks(fake):
    if not isinstance(fake, types.NoneType):
        return lambda fake: fake.sum()
    if HAS_CYCLES:
        return lambda fake: _cycles()
    return lambda fake: _monotonic()


@long_entry
def read(fake):
    """`ticks` for Python; a call takes 0.1 µs more."""
    return ticks(fake)


@long_entry
def differences(out):
    """Fill an int64 array with the ticks between two readings in a row."""
    for k in range(out.size):
        before = ticks(None)
        out[k] = ticks(None) - before
