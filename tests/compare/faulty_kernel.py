"""A timer with a kernel that misreports its expiries, in a way that its parameter selects."""

import dataclasses
import sys
from typing import Any, NamedTuple

from timers import UnorderedList
from timers.kernels import unordered_list as right
from timers.kernels.jit import inlined, jit
from timers.kernels.operations import NONE
from timers.kernels.pool import NOW
from timers.traits import Parameter

NO_FAULT, HELD_BACK, AHEAD, REVERSED, NOT_COUNTED, WAKES_LATE = range(6)

FAULT = right.WORDS  # the cell of the fault


class FaultyState(NamedTuple):
    nodes: Any
    cells: Any
    counters: Any


State = FaultyState


def allocate(start, capacity, parameters, counters):
    nodes, cells = right.allocate_pool(start, capacity, right.BUCKETS, right.WORDS + 1)
    cells[right.SCANNED], cells[right.SORTED], cells[FAULT] = start, 1, parameters["fault"]
    return State(nodes, cells, counters)


enlarged, move_all, snapshot, check = right.enlarged, right.move_all, right.snapshot, right.check
schedule, reschedule = right.schedule, right.reschedule
due, next_expiry = right.due, right.next_expiry


@inlined
def cancel(state, handle):
    return right.cancel(state, handle) and state.cells[FAULT] != NOT_COUNTED


@jit
def advance(state, now, out):
    before, fault = state.cells[NOW], state.cells[FAULT]
    n, done = right.advance(state, now, out)
    if n > 0 and fault == HELD_BACK:  # as if the advance before had kept it
        out[0]["fired_at"] = before
    if n > 0 and fault == AHEAD:
        out[n - 1]["fired_at"] = now + 1
    if fault == REVERSED:
        for r in range(n // 2):
            last = n - 1 - r
            row, other = out[r], out[last]
            handle, deadline, fired_at = row["handle"], row["deadline"], row["fired_at"]
            row["handle"], row["deadline"] = other["handle"], other["deadline"]
            row["fired_at"] = other["fired_at"]
            other["handle"], other["deadline"], other["fired_at"] = handle, deadline, fired_at
    return n, done


@jit
def next_wakeup(state):
    expiry = next_expiry(state)
    return expiry + 1 if expiry != NONE and state.cells[FAULT] == WAKES_LATE else expiry


class Faulty(UnorderedList):
    """An unordered list with a fault."""

    _kernel = sys.modules[__name__]
    traits = dataclasses.replace(
        UnorderedList.traits,
        name="faulty",
        order="unspecified",
        parameters={"fault": Parameter(NO_FAULT, 0)},
    )

    def __init__(self, fault=NO_FAULT, **keywords):
        super().__init__(fault=fault, **keywords)
