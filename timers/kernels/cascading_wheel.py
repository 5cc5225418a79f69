"""Cascading wheel: five wheels of 256 slots; a slot spans one rotation of the wheel below.

A slot of the lowest wheel spans one unit, a slot of the next wheel 256 units, and so on. The later
a timer's deadline, the higher its wheel and the coarser its slot. When the lowest wheel wraps, the
next slot of the wheel above is emptied and its timers are inserted again into lower wheels (a
cascade). A timer moves down at most four times.

    level  slot width  holds delays of         all 256 slots span
    1               1  1 .. 255                               256
    2           2**8   2**8  .. 2**16 - 1     2**16 =      65 536
    3           2**16  2**16 .. 2**24 - 1     2**24 =  16 777 216
    4           2**24  2**24 .. 2**32 - 1     2**32 ~ 4.3 * 10**9
    5           2**32  2**32 .. 2**40 - 1     2**40 ~ 1.1 * 10**12
    overflow           2**40 and more: a list, scanned when one of its timers can fit a wheel

    level 1, a slot is 1 unit       level 2, a slot is 256 units

        0    ..    20                   3     4     5
     +-----+-----+-----+             +-----+-----+-----+
     |     |     |  B  |             | now |     |  A  |
     +-----+-----+-----+             +-----+-----+-----+
 255 |     |     |     | ..        2 |     |     |     | 6
     +-----+     +-----+             +-----+     +-----+
     |     | now |     |             |     |     |     |
     +-----+-----+-----+             +-----+-----+-----+
       ..    232   ..                   1     0    ..

Example: at 1000, the clock is in slot 1000 & 255 = 232 of level 1 and 1000 >> 8 = 3 of level 2. A
timer for 1300 is 300 units away: level 2, slot 1300 >> 8 & 255 = 5 (A). At 1280 level 1 wraps and
slot 5 cascades. The timer is 20 units away: level 1, slot 1300 & 255 = 20 (B). It fires at 1300.

Costs: schedule and cancel O(1); advance O(1) for each move of a timer to a lower wheel, in bursts
of whole slots. Drawback: one tick can move all the timers of an upper slot. Occupancy bits let
advance skip empty time.

Source: Varghese & Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987), scheme 7, as in
Linux's kernel/timer.c before 4.8 (internal_add_timer, cascade, __run_timers). The traits list how
this differs from Linux.
"""

from typing import Any, NamedTuple

from timers.kernels.bitmap import ahead_in_ring, next_marked, unmark
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
    detach,
    earliest_in,
    enlarged_pool,
    is_empty,
    is_full,
    link,
    link_marked,
    move_pool,
    slots_in,
    timers_in,
)
from timers.limits import LIMIT
from timers.snapshot import Ring, Snapshot

LEVELS = 5
SLOT_BITS = 8
SLOTS = 1 << SLOT_BITS
SLOT_MASK = SLOTS - 1
SPAN_BITS = LEVELS * SLOT_BITS  # the wheels reach 2**40 units

DUE = LEVELS * SLOTS  # bucket of timers to be delivered at once; before it, level * SLOTS + slot
OVERFLOW = DUE + 1  # bucket of timers too far away for the wheels
BUCKETS = OVERFLOW + 1

OVERFLOW_MIN = HEADER  # a lower bound of the overflow bucket's deadlines, if it has any
WORDS = HEADER + 1


class CascadingWheelState(NamedTuple):
    nodes: Any  # NODE, shape (BUCKETS + capacity,): sentinels, then places
    cells: Any  # int64, shape (WORDS + words of bits,): header, OVERFLOW_MIN, occupancy bits
    counters: Any  # int64, shape (len(COUNTERS),), or None


State = CascadingWheelState


def allocate(start: int, capacity: int, parameters: Any, counters: Any) -> State:
    nodes, cells = allocate_pool(start, capacity, BUCKETS, WORDS, BUCKETS)
    return State(nodes, cells, counters)


enlarged, move_all = enlarged_pool, move_pool


@inlined
def slot_of(deadline, level):
    """The bucket of a deadline on a given level."""
    return (level << SLOT_BITS) + ((deadline >> (level * SLOT_BITS)) & SLOT_MASK)


@inlined
def bucket_of(deadline, now):
    """The bucket of a deadline, by its distance from now."""
    delay = deadline - now
    if delay <= 0:
        return DUE
    for level in range(LEVELS):
        if delay < 1 << ((level + 1) * SLOT_BITS):
            return slot_of(deadline, level)
    return OVERFLOW


@inlined
def insert(nodes, cells, counters, i, deadline):
    """Set a row's deadline and put the row into its bucket."""
    nodes[i]["deadline"] = deadline
    bucket = bucket_of(deadline, cells[NOW])
    if bucket < DUE:
        link_marked(nodes, cells, WORDS, bucket, i)
        return
    if bucket == OVERFLOW and (is_empty(nodes, OVERFLOW) or deadline < cells[OVERFLOW_MIN]):
        cells[OVERFLOW_MIN] = deadline
    link(nodes, bucket, i)


schedule, cancel, reschedule = bucket_operations(insert, WORDS)


@jit
def reinsert(nodes, cells, counters, bucket):
    """Insert all timers of a bucket again, relative to the new time."""
    count(counters, SLOTS_VISITED, 1)
    i = detach(nodes, bucket)
    unmark(cells, WORDS, bucket)
    while i != bucket:
        after = nodes[i]["next"]
        insert(nodes, cells, counters, i, nodes[i]["deadline"])
        count(counters, TIMERS_TOUCHED, 1)
        count(counters, REFILED, 1)
        i = after


@inlined
def next_open(cells, level):
    """When a level's next occupied slot opens, and its bucket; (NONE, NONE) if all are empty."""
    shift = level * SLOT_BITS
    first = level << SLOT_BITS
    tick = cells[NOW] >> shift
    # The current slot comes last, a full turn away.
    ahead = ahead_in_ring(cells, WORDS, first, SLOTS, first + (tick & SLOT_MASK) + 1)
    if ahead == NONE:
        return NONE, NONE
    tick += 1 + ahead
    return tick << shift, first + (tick & SLOT_MASK)


@inlined
def next_stop(nodes, cells):
    """The next unit at which a bucket must be opened, or NONE."""
    now = cells[NOW]
    current = now & SLOT_MASK
    slot = next_marked(cells, WORDS, current + 1, SLOTS)
    if slot != NONE:  # before the lowest wheel wraps, so before any cascade
        return now + (slot - current)
    return next_stop_after_wrap(nodes, cells)


@jit
def next_stop_after_wrap(nodes, cells):
    """`next_stop` if no slot of the lowest wheel is occupied before it wraps."""
    stop = NONE
    for level in range(LEVELS):
        opens, _ = next_open(cells, level)
        if opens != NONE and (stop == NONE or opens < stop):
            stop = opens
    if not is_empty(nodes, OVERFLOW):
        opens = (cells[OVERFLOW_MIN] >> SPAN_BITS) << SPAN_BITS
        if stop == NONE or opens < stop:
            stop = opens
    return stop


@jit
def advance(state, now, out):
    nodes, cells, counters = state.nodes, state.cells, state.counters
    n = 0
    while True:
        before = n
        bucket = slot_of(cells[NOW], 0)
        n = deliver(nodes, cells, bucket, out, n)
        n = deliver(nodes, cells, DUE, out, n)
        count(counters, TIMERS_TOUCHED, n - before)
        unmark(cells, WORDS, bucket)
        # Timers that do not fit into `out` stay due until the next call, the slot's own first.
        append_bucket(nodes, DUE, bucket)
        append_bucket(nodes, bucket, DUE)
        if not is_empty(nodes, DUE):
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
        if stop & SLOT_MASK == 0:
            cascade(nodes, cells, counters, stop)
        if not is_empty(nodes, slot_of(stop, 0)):
            count(counters, SLOTS_VISITED, 1)


@jit
def cascade(nodes, cells, counters, now):
    """Empty the upper slots that open at `now`, from the bottom up."""
    for level in range(1, LEVELS):
        if now & ((1 << (level * SLOT_BITS)) - 1) == 0:
            bucket = slot_of(now, level)
            if not is_empty(nodes, bucket):
                reinsert(nodes, cells, counters, bucket)
    if (
        now & ((1 << SPAN_BITS) - 1) == 0
        and not is_empty(nodes, OVERFLOW)
        and cells[OVERFLOW_MIN] - now < 1 << SPAN_BITS
    ):
        reinsert(nodes, cells, counters, OVERFLOW)


@inlined
def due(state):
    return not is_empty(state.nodes, DUE)


@jit
def next_expiry(state):
    nodes, cells = state.nodes, state.cells
    if cells[PENDING] == 0:
        return NONE
    if due(state):
        return cells[NOW]
    earliest = LIMIT
    for level in range(LEVELS):
        opens, bucket = next_open(cells, level)
        # Slots of a level open in the order of deadlines, so only the next can hold the earliest.
        if opens != NONE and opens <= earliest:
            earliest = earliest_in(nodes, bucket, earliest)
    if cells[OVERFLOW_MIN] < earliest:
        earliest = earliest_in(nodes, OVERFLOW, earliest)
    return earliest


@jit
def next_wakeup(state):
    if due(state):
        return state.cells[NOW]
    return next_stop(state.nodes, state.cells)


def snapshot(state: State) -> Snapshot:
    now = int(state.cells[NOW])
    rings = [
        Ring(
            level + 1,  # as in the table above; the code counts from 0
            1 << level * SLOT_BITS,
            SLOTS,
            now >> level * SLOT_BITS & SLOT_MASK,
            slots_in(state, level * SLOTS, SLOTS),
        )
        for level in range(LEVELS)
    ]
    lists = {"due": timers_in(state, DUE), "overflow": timers_in(state, OVERFLOW)}
    return Snapshot(now, tuple(rings), lists)


def check(state: State) -> None:
    nodes, cells, _ = state
    now = int(cells[NOW])

    def belongs(bucket: int, i: int) -> bool:
        deadline = int(nodes[i]["deadline"])
        if bucket == DUE:
            return deadline <= now
        if bucket == OVERFLOW:
            return deadline >= cells[OVERFLOW_MIN]
        level = bucket >> SLOT_BITS
        width = 1 << (level * SLOT_BITS)
        opens = deadline - deadline % width
        return bool(bucket == slot_of(deadline, level)) and now < opens <= now + SLOTS * width

    check_pool(nodes, cells, belongs, DUE)
