"""Ordered list: all pending timers in one list, sorted by deadline.

Example: timers for 30, 10 and 20 are armed. 30 is the only one; 10 goes before 30; 20 is compared
with 30, then with 10, and goes between them. An advance to 20 takes 10 and 20 from the front.

Costs: schedule O(n), since the place is searched from the rear, but O(1) if the deadline is the
latest, as when all delays are equal; cancel O(1); expiry O(1). Drawback: with random deadlines,
each schedule passes half of the timers.

Source: Varghese & Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987), scheme 2, with the
search from the rear that the paper mentions for equal intervals.
"""

from typing import Any, NamedTuple

from timers.kernels.counters import CLOCK_VISITS, TIMERS_TOUCHED, count
from timers.kernels.jit import inlined, jit
from timers.kernels.operations import NONE
from timers.kernels.pool import (
    HEADER,
    NOW,
    PENDING,
    allocate_pool,
    bucket_operations,
    check_pool,
    enlarged_pool,
    handle_of,
    is_full,
    link_sorted,
    move_pool,
    release,
    timers_in,
    unlink,
)
from timers.snapshot import Snapshot

LIST = 0  # bucket of all timers
BUCKETS = 1
WORDS = HEADER


class OrderedListState(NamedTuple):
    nodes: Any  # NODE, shape (BUCKETS + capacity,): sentinel of the list, then places
    cells: Any  # int64, shape (WORDS,): header of pool.py
    counters: Any  # int64, shape (len(COUNTERS),), or None


State = OrderedListState


def allocate(start: int, capacity: int, parameters: Any, counters: Any) -> State:
    nodes, cells = allocate_pool(start, capacity, BUCKETS, WORDS)
    return State(nodes, cells, counters)


enlarged, move_all = enlarged_pool, move_pool


@inlined
def insert(nodes, cells, counters, i, deadline):
    """Set a row's deadline and put the row into the list."""
    nodes[i]["deadline"] = deadline
    link_sorted(nodes, counters, LIST, i)


schedule, cancel, reschedule = bucket_operations(insert)


@jit
def advance(state, now, out):
    nodes, cells, counters = state.nodes, state.cells, state.counters
    n = 0
    while cells[PENDING] > 0:
        i = nodes[LIST]["next"]
        deadline = nodes[i]["deadline"]
        if deadline > now:
            break
        if n == out.size:
            return n, False
        if deadline > cells[NOW]:
            cells[NOW] = deadline
            count(counters, CLOCK_VISITS, 1)
        out[n]["handle"] = handle_of(nodes, cells, i)
        out[n]["deadline"] = deadline
        out[n]["fired_at"] = cells[NOW]
        n += 1
        count(counters, TIMERS_TOUCHED, 1)
        unlink(nodes, i)
        release(nodes, cells, i)
    if is_full(out, n) and cells[NOW] < now:
        return n, False
    cells[NOW] = now
    return n, True


@inlined
def due(state):
    nodes, cells = state.nodes, state.cells
    return cells[PENDING] > 0 and nodes[nodes[LIST]["next"]]["deadline"] <= cells[NOW]


@inlined
def next_expiry(state):
    nodes, cells = state.nodes, state.cells
    if cells[PENDING] == 0:
        return NONE
    return max(cells[NOW], nodes[nodes[LIST]["next"]]["deadline"])


next_wakeup = next_expiry


def snapshot(state: State) -> Snapshot:
    return Snapshot(int(state.cells[NOW]), lists={"list": timers_in(state, LIST)})


def check(state: State) -> None:
    nodes, cells, _ = state

    def belongs(bucket: int, i: int) -> bool:
        before = int(nodes[i]["prev"])
        return before == bucket or bool(nodes[before]["deadline"] <= nodes[i]["deadline"])

    check_pool(nodes, cells, belongs)
