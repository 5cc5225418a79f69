"""Sorted hashed wheel: one wheel whose slots are lists sorted by deadline.

A deadline goes into slot `deadline % wheel_size`, and there to its place in the order of deadlines.
Timers of different rotations share a slot. When the clock reaches a slot, the timers at the front
that are due fire. The first one that is not due ends the visit.

        0         1         2
    +---------+---------+---------+      The clock moves clockwise, one slot per unit.
    |         |   now   |         |
    +---------+---------+---------+
  7 |         |         |         | 3
    +---------+         +---------+
    |         |         |   12    |  <-- deadline 12: slot 12 % 8 = 4
    |         |         |   28    |  <-- deadline 28: slot 28 % 8 = 4, two rotations later
    +---------+---------+---------+
        6         5         4

Example, wheel_size 8: at 9, a timer for 28 is armed, then one for 12. Both belong to slot 4, and 12
goes before 28. At 12 the first fires, and 28 is not due. At 20 nothing is due; at 28 it fires.

Costs: schedule O(1) if the wheel is larger than the number of timers, else O(n / wheel_size): the
place is searched from the rear of a slot; cancel O(1); a unit O(1). Drawback: the time of a
schedule depends on the other timers of the slot.

Source: Varghese & Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987), scheme 5. Here
advance skips slots without a due timer.
"""

from typing import Any, NamedTuple

from timers.kernels.bitmap import ahead_in_ring, mark, unmark
from timers.kernels.counters import CLOCK_VISITS, SLOTS_VISITED, TIMERS_TOUCHED, count
from timers.kernels.jit import inlined, jit
from timers.kernels.operations import NONE
from timers.kernels.pool import (
    HEADER,
    NOW,
    PENDING,
    allocate_pool,
    bucket_operations,
    check_pool,
    deliver,
    enlarged_pool,
    is_empty,
    is_full,
    link,
    link_sorted,
    move_pool,
    quotient,
    slots_in,
    timers_in,
    unlink,
)
from timers.limits import LIMIT
from timers.snapshot import Ring, Snapshot

WHEEL_SIZE = HEADER  # number of slots: the buckets [0, wheel_size); then comes DUE
WORDS = HEADER + 1


class SortedHashedWheelState(NamedTuple):
    nodes: Any  # NODE, shape (wheel_size + 1 + capacity,): sentinels, then places
    cells: Any  # int64, shape (WORDS + words of bits,): header, WHEEL_SIZE, occupancy bits
    counters: Any  # int64, shape (len(COUNTERS),), or None


State = SortedHashedWheelState


def allocate(start: int, capacity: int, parameters: Any, counters: Any) -> State:
    wheel_size = parameters["wheel_size"]
    buckets = wheel_size + 1
    nodes, cells = allocate_pool(start, capacity, buckets, WORDS, buckets)
    cells[WHEEL_SIZE] = wheel_size
    return State(nodes, cells, counters)


enlarged, move_all = enlarged_pool, move_pool


@inlined
def due_bucket(cells):
    """The bucket of timers to be delivered at once, sorted like a slot."""
    return cells[WHEEL_SIZE]


@inlined
def slot_of(moment, wheel_size):
    """The slot of a moment: `moment % wheel_size`."""
    return moment - quotient(moment, wheel_size) * wheel_size


@inlined
def insert(nodes, cells, counters, i, deadline):
    """Set a row's deadline and put the row into its bucket."""
    nodes[i]["deadline"] = deadline
    bucket = due_bucket(cells)
    if deadline > cells[NOW]:
        bucket = slot_of(deadline, cells[WHEEL_SIZE])
        mark(cells, WORDS, bucket)
    link_sorted(nodes, counters, bucket, i)


schedule, cancel, reschedule = bucket_operations(insert, WORDS)


@jit
def next_due(nodes, cells, last):
    """The earliest deadline in the slots, or NONE. If it is after `last`, a bound that is, too.

    O(occupied slots that the clock passes, at most one rotation).
    """
    now, wheel_size = cells[NOW], cells[WHEEL_SIZE]
    current = slot_of(now, wheel_size)
    earliest = NONE
    distance = 1
    while distance <= min(wheel_size, last - now):
        slot = current + distance
        slot -= wheel_size if slot >= wheel_size else 0
        ahead = ahead_in_ring(cells, WORDS, 0, wheel_size, slot)
        distance += ahead
        if ahead == NONE or distance > min(wheel_size, last - now):
            break
        slot += ahead
        slot -= wheel_size if slot >= wheel_size else 0
        deadline = nodes[nodes[slot]["next"]]["deadline"]
        if deadline == now + distance:  # the slots ahead have later ones
            return deadline
        if earliest == NONE or deadline < earliest:
            earliest = deadline
        distance += 1
    return earliest


@jit
def take_due(nodes, cells, counters, slot):
    """Move the timers of a slot that are due from its front to the due bucket, which is empty."""
    count(counters, SLOTS_VISITED, 1)
    i = nodes[slot]["next"]
    while i != slot and nodes[i]["deadline"] == cells[NOW]:
        after = nodes[i]["next"]
        unlink(nodes, i)
        link(nodes, due_bucket(cells), i)
        i = after
    if is_empty(nodes, slot):
        unmark(cells, WORDS, slot)


@jit
def advance(state, now, out):
    nodes, cells, counters = state.nodes, state.cells, state.counters
    bucket = due_bucket(cells)
    n = 0
    while True:
        before = n
        n = deliver(nodes, cells, bucket, out, n)
        count(counters, TIMERS_TOUCHED, n - before)
        if not is_empty(nodes, bucket):
            return n, False
        if cells[NOW] >= now:
            return n, True
        if is_full(out, n):
            return n, False
        stop = next_due(nodes, cells, now)
        if stop == NONE or stop > now:
            cells[NOW] = now
            return n, True
        cells[NOW] = stop
        count(counters, CLOCK_VISITS, 1)
        take_due(nodes, cells, counters, slot_of(stop, cells[WHEEL_SIZE]))


@inlined
def due(state):
    return not is_empty(state.nodes, due_bucket(state.cells))


@jit
def next_expiry(state):
    nodes, cells = state.nodes, state.cells
    if cells[PENDING] == 0:
        return NONE
    if due(state):
        return cells[NOW]
    return next_due(nodes, cells, LIMIT)


next_wakeup = next_expiry


def snapshot(state: State) -> Snapshot:
    now, size = int(state.cells[NOW]), int(state.cells[WHEEL_SIZE])
    ring = Ring(None, 1, size, now % size, slots_in(state, 0, size))
    return Snapshot(now, (ring,), {"due": timers_in(state, size)})


def check(state: State) -> None:
    nodes, cells, _ = state
    now, wheel_size = int(cells[NOW]), int(cells[WHEEL_SIZE])

    def belongs(bucket: int, i: int) -> bool:
        deadline, before = int(nodes[i]["deadline"]), int(nodes[i]["prev"])
        in_order = before == bucket or bool(nodes[before]["deadline"] <= deadline)
        if bucket == due_bucket(cells):
            return in_order and deadline <= now
        return in_order and bucket == deadline % wheel_size and deadline > now

    check_pool(nodes, cells, belongs, wheel_size)
