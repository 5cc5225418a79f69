"""Simple wheel: a ring with one slot for each of the next `wheel_size` units.

A deadline less than one rotation away goes into slot `deadline % wheel_size`, so all timers of a
slot have the same deadline. Later deadlines wait in an overflow list, which is scanned when the
clock reaches slot 0 again.

        0     1     2
     +-----+-----+-----+                 The clock moves clockwise, one slot per unit.
     |     |     |     |
     +-----+-----+-----+
   7 |     |     | 11  | 3  <-- deadline 11, 6 units away: 11 % 8 = 3
     +-----+     +-----+
     |     | now |     |
     +-----+-----+-----+                 overflow: 13, a full rotation away
        6     5     4

Example, wheel_size 8, now 5: deadline 11 goes into slot 3, and deadline 13 into the overflow list.
At 8 the list is scanned: 13 is 5 units away and goes into slot 5. Slot 3 fires at 11, slot 5 at 13.

Costs: schedule and cancel O(1); a unit O(1); a rotation O(timers in the overflow list). Drawback:
unless the wheel is as large as the longest delay, the overflow list is scanned again and again.

Source: Varghese & Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987), scheme 4 and its
remark on timers beyond MaxInterval. Here advance skips empty units, and rotations in which no timer
leaves the list.
"""

from typing import Any, NamedTuple

from timers.kernels.bitmap import ahead_in_ring, unmark
from timers.kernels.counters import CLOCK_VISITS, REFILED, SLOTS_VISITED, TIMERS_TOUCHED, count
from timers.kernels.jit import inlined, jit
from timers.kernels.operations import NONE
from timers.kernels.pool import (
    HEADER,
    NOW,
    PENDING,
    allocate_pool,
    append_bucket,
    bucket_operations,
    check_pool,
    deliver,
    earliest_in,
    enlarged_pool,
    is_empty,
    is_full,
    link,
    link_marked,
    move_pool,
    quotient,
    slots_in,
    timers_in,
    unlink,
)
from timers.limits import LIMIT
from timers.snapshot import Ring, Snapshot

WHEEL_SIZE = HEADER  # number of slots: the buckets [0, wheel_size); then come DUE and OVERFLOW
OVERFLOW_MIN = HEADER + 1  # a lower bound of the overflow bucket's deadlines, if it has any
WORDS = HEADER + 2


class SimpleWheelState(NamedTuple):
    nodes: Any  # NODE, shape (wheel_size + 2 + capacity,): sentinels, then places
    cells: Any  # int64, shape (WORDS + words of bits,): header, WHEEL_SIZE .., occupancy bits
    counters: Any  # int64, shape (len(COUNTERS),), or None


State = SimpleWheelState


def allocate(start: int, capacity: int, parameters: Any, counters: Any) -> State:
    wheel_size = parameters["wheel_size"]
    buckets = wheel_size + 2
    nodes, cells = allocate_pool(start, capacity, buckets, WORDS, buckets)
    cells[WHEEL_SIZE] = wheel_size
    return State(nodes, cells, counters)


enlarged, move_all = enlarged_pool, move_pool


@inlined
def due_bucket(cells):
    """The bucket of timers to be delivered at once."""
    return cells[WHEEL_SIZE]


@inlined
def overflow_bucket(cells):
    """The bucket of timers that are at least a rotation away."""
    return cells[WHEEL_SIZE] + 1


@inlined
def slot_of(moment, wheel_size):
    """The slot of a moment: `moment % wheel_size`."""
    return moment - quotient(moment, wheel_size) * wheel_size


@inlined
def insert(nodes, cells, counters, i, deadline):
    """Set a row's deadline and put the row into its bucket."""
    nodes[i]["deadline"] = deadline
    delay = deadline - cells[NOW]
    wheel_size = cells[WHEEL_SIZE]
    if delay >= wheel_size:
        overflow = overflow_bucket(cells)
        if is_empty(nodes, overflow) or deadline < cells[OVERFLOW_MIN]:
            cells[OVERFLOW_MIN] = deadline
        link(nodes, overflow, i)
    elif delay > 0:
        link_marked(nodes, cells, WORDS, slot_of(deadline, wheel_size), i)
    else:
        link(nodes, due_bucket(cells), i)


schedule, cancel, reschedule = bucket_operations(insert, WORDS)


@jit
def scan_overflow(nodes, cells, counters):
    """Move timers less than a rotation away into the ring. O(timers in the overflow list)."""
    overflow = overflow_bucket(cells)
    count(counters, SLOTS_VISITED, 1)
    earliest = LIMIT
    i = nodes[overflow]["next"]
    while i != overflow:
        after = nodes[i]["next"]
        deadline = nodes[i]["deadline"]
        if deadline - cells[NOW] < cells[WHEEL_SIZE]:
            unlink(nodes, i)
            insert(nodes, cells, counters, i, deadline)
            count(counters, REFILED, 1)
        else:
            earliest = min(earliest, deadline)
        count(counters, TIMERS_TOUCHED, 1)
        i = after
    cells[OVERFLOW_MIN] = earliest


@inlined
def next_in_ring(cells):
    """The moment of the next occupied slot, or NONE."""
    now, wheel_size = cells[NOW], cells[WHEEL_SIZE]
    ahead = ahead_in_ring(cells, WORDS, 0, wheel_size, slot_of(now, wheel_size))
    return NONE if ahead == NONE else now + ahead


@inlined
def next_scan(nodes, cells):
    """The start of the rotation in which the overflow list must be scanned, or NONE."""
    if is_empty(nodes, overflow_bucket(cells)):
        return NONE
    return cells[OVERFLOW_MIN] - slot_of(cells[OVERFLOW_MIN], cells[WHEEL_SIZE])


@inlined
def next_stop(nodes, cells):
    """The next moment at which a slot must be opened or the overflow list scanned, or NONE."""
    stop, scan_at = next_in_ring(cells), next_scan(nodes, cells)
    return scan_at if stop == NONE or (scan_at != NONE and scan_at < stop) else stop


@jit
def advance(state, now, out):
    nodes, cells, counters = state.nodes, state.cells, state.counters
    n = 0
    while True:
        before = n
        n = deliver(nodes, cells, due_bucket(cells), out, n)
        slot = slot_of(cells[NOW], cells[WHEEL_SIZE])
        n = deliver(nodes, cells, slot, out, n)
        count(counters, TIMERS_TOUCHED, n - before)
        unmark(cells, WORDS, slot)
        # Timers that do not fit into `out` stay due until the next call.
        append_bucket(nodes, slot, due_bucket(cells))
        if not is_empty(nodes, due_bucket(cells)):
            return n, False
        if cells[NOW] >= now:
            return n, True
        if is_full(out, n):
            return n, False
        stop = next_stop(nodes, cells)
        if stop == NONE or stop > now:
            cells[NOW] = now
            return n, True
        cells[NOW] = stop
        count(counters, CLOCK_VISITS, 1)
        if stop == next_scan(nodes, cells):
            scan_overflow(nodes, cells, counters)
        if not is_empty(nodes, slot_of(stop, cells[WHEEL_SIZE])):
            count(counters, SLOTS_VISITED, 1)


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
    in_ring = next_in_ring(cells)
    earliest = LIMIT if in_ring == NONE else in_ring
    # A timer in the overflow list can be due before all those in the ring.
    if cells[OVERFLOW_MIN] < earliest:
        earliest = earliest_in(nodes, overflow_bucket(cells), earliest)
    return earliest


@jit
def next_wakeup(state):
    if due(state):
        return state.cells[NOW]
    return next_stop(state.nodes, state.cells)


def snapshot(state: State) -> Snapshot:
    now, size = int(state.cells[NOW]), int(state.cells[WHEEL_SIZE])
    ring = Ring(None, 1, size, now % size, slots_in(state, 0, size))
    due, overflow = (timers_in(state, size + k) for k in range(2))
    return Snapshot(now, (ring,), {"due": due, "overflow": overflow})


def check(state: State) -> None:
    nodes, cells, _ = state
    now, wheel_size = int(cells[NOW]), int(cells[WHEEL_SIZE])

    def belongs(bucket: int, i: int) -> bool:
        deadline = int(nodes[i]["deadline"])
        if bucket == due_bucket(cells):
            return deadline <= now
        if bucket == overflow_bucket(cells):
            return (
                bool(deadline >= cells[OVERFLOW_MIN]) and deadline // wheel_size > now // wheel_size
            )
        return bucket == deadline % wheel_size and now < deadline < now + wheel_size

    check_pool(nodes, cells, belongs, wheel_size)
