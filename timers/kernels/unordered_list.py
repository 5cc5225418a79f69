"""Unordered list: all pending timers in one list; every advance examines all of them.

Example: timers for 30, 10 and 20 are listed in the order of arming. An advance to 20 examines all
three, removes the timers for 10 and 20, and sorts these two. The timer for 30 stays.

Costs: schedule and cancel O(1); each advance to a later moment O(n), whether anything is due or
not, plus a merge sort of the due timers. Drawback: the cost of each step of the clock is
proportional to the number of pending timers. Wheels exist to avoid that.

Source: Varghese & Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987), scheme 1, which
decrements a counter in each timer at each tick; here the deadline is compared instead, which
permits jumps.
"""

from typing import Any, NamedTuple

from timers.kernels.counters import CLOCK_VISITS, COMPARISONS, TIMERS_TOUCHED, count
from timers.kernels.jit import inlined, jit
from timers.kernels.operations import NONE
from timers.kernels.pool import (
    HEADER,
    NOW,
    PENDING,
    allocate_pool,
    bucket_operations,
    check_pool,
    detach,
    earliest_in,
    enlarged_pool,
    handle_of,
    is_empty,
    is_full,
    link,
    move_pool,
    release,
    timers_in,
    unlink,
)
from timers.limits import LIMIT
from timers.snapshot import Snapshot

LIST = 0  # bucket of the timers that are not due, in the order of arming
DUE = 1  # bucket of the timers to be delivered, with all deadlines up to SCANNED
BUCKETS = 2

SCANNED = HEADER  # all deadlines in the list are later than this, which is not before the clock
SORTED = HEADER + 1  # 1 while the due bucket is in the order of delivery
WORDS = HEADER + 2


class UnorderedListState(NamedTuple):
    nodes: Any  # NODE, shape (BUCKETS + capacity,): sentinels [LIST, DUE], then places
    cells: Any  # int64, shape (WORDS,): header of pool.py, SCANNED, SORTED
    counters: Any  # int64, shape (len(COUNTERS),), or None


State = UnorderedListState


def allocate(start: int, capacity: int, parameters: Any, counters: Any) -> State:
    nodes, cells = allocate_pool(start, capacity, BUCKETS, WORDS)
    cells[SCANNED], cells[SORTED] = start, 1
    return State(nodes, cells, counters)


enlarged, move_all = enlarged_pool, move_pool


@inlined
def insert(nodes, cells, counters, i, deadline):
    """Set a row's deadline and put the row into the list, or into the due bucket if the list has
    been scanned beyond the deadline.
    """
    nodes[i]["deadline"] = deadline
    if deadline > cells[SCANNED]:
        link(nodes, LIST, i)
    else:
        link(nodes, DUE, i)
        cells[SORTED] = 0


schedule, cancel, reschedule = bucket_operations(insert)


@jit
def scan(nodes, cells, counters, now):
    """Move all timers with a deadline up to `now` from the list to the due bucket."""
    i = nodes[LIST]["next"]
    while i != LIST:
        after = nodes[i]["next"]
        if nodes[i]["deadline"] <= now:
            unlink(nodes, i)
            link(nodes, DUE, i)
            cells[SORTED] = 0
        else:
            count(counters, TIMERS_TOUCHED, 1)
        i = after
    cells[SCANNED] = now


@jit
def merge(nodes, counters, left, right):
    """Link two chains that are ordered by deadline and end at DUE into the due bucket, in order.

    Among equal deadlines, the left chain comes first.
    """
    while left != DUE or right != DUE:
        if left != DUE and right != DUE:
            count(counters, COMPARISONS, 1)
            right_first = nodes[right]["deadline"] < nodes[left]["deadline"]
        else:
            right_first = left == DUE
        if right_first:
            i = right
            right = nodes[right]["next"]
        else:
            i = left
            left = nodes[left]["next"]
        link(nodes, DUE, i)


@jit
def sort_due(nodes, cells, counters):
    """Sort the due bucket by deadline, then by arming: a bottom-up merge sort of the chain."""
    width = 1
    merged = 2
    while merged > 1:
        rest = detach(nodes, DUE)
        merged = 0
        while rest != DUE:
            left = rest
            right = cut(nodes, left, width)
            rest = cut(nodes, right, width)
            merge(nodes, counters, left, right)
            merged += 1
        width *= 2
    cells[SORTED] = 1


@jit
def cut(nodes, chain, width):
    """End a chain after up to `width` rows and return the rest."""
    last = DUE
    while chain != DUE and width > 0:
        last = chain
        chain = nodes[chain]["next"]
        width -= 1
    if last != DUE:
        nodes[last]["next"] = DUE
    return chain


@jit
def advance(state, now, out):
    nodes, cells, counters = state.nodes, state.cells, state.counters
    if now > cells[SCANNED]:
        scan(nodes, cells, counters, now)
    if cells[SORTED] == 0:
        sort_due(nodes, cells, counters)
    n = 0
    while not is_empty(nodes, DUE):
        if n == out.size:
            return n, False
        i = nodes[DUE]["next"]
        deadline = nodes[i]["deadline"]
        if deadline > now:  # an interrupted advance has scanned further
            break
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
    return not is_empty(nodes, DUE) and earliest_in(nodes, DUE, LIMIT) <= cells[NOW]


@jit
def next_expiry(state):
    nodes, cells = state.nodes, state.cells
    if cells[PENDING] == 0:
        return NONE
    return max(cells[NOW], earliest_in(nodes, DUE, earliest_in(nodes, LIST, LIMIT)))


next_wakeup = next_expiry


def snapshot(state: State) -> Snapshot:
    lists = {"list": timers_in(state, LIST), "due": timers_in(state, DUE)}
    return Snapshot(int(state.cells[NOW]), lists=lists)


def check(state: State) -> None:
    nodes, cells, _ = state

    def belongs(bucket: int, i: int) -> bool:
        return bool((nodes[i]["deadline"] > cells[SCANNED]) == (bucket == LIST))

    check_pool(nodes, cells, belongs)
