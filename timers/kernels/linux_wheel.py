"""Linux wheel: nine wheels of 64 slots; timers fire with their slot and never cascade.

A slot of a wheel spans eight times as many units as one of the wheel below. A timer goes into a
wheel by its delay, and into the slot that begins when the tick of its deadline on that wheel has
passed. It fires when the clock reaches the slot: late by one tick of its wheel at most, which is a
unit or less than 8/63 of the delay. Delays beyond the wheels are cut, so these timers are early.

    level  slot width  holds delays of           late by
    1               1  1 .. 62                   1
    2               8  63 .. 503                 1 .. 8
    3              64  504 .. 4031               1 .. 64
    4             512  4032 .. 32 255            1 .. 512
    ...
    9            8**8  132 120 576 and more      1 .. 16 777 216
    delays of 63 * 8**8 = 1 056 964 608 and more count as 62 * 8**8

    level 1, a slot is 1 unit       level 2, a slot is 8 units

       41   42    43                   61   62    63
     +-----+-----+-----+             +-----+-----+-----+
     | now |     |     |             | now |     |     |
     +-----+-----+-----+             +-----+-----+-----+
  40 |     |     |     | 44       60 |     |     |     | 0
     +-----+     +-----+             +-----+     +-----+
     |     |     |  A  |             |     |     |  B  |
     +-----+-----+-----+             +-----+-----+-----+
       39   ..    51                   59   ..    10

Example: at 1001, the clock is in slot 1001 % 64 = 41 of level 1 and 1001 // 8 % 64 = 61 of level 2.
A timer for 1010 is 9 units away: level 1, slot (1010 + 1) % 64 = 51 (A). It fires at 1011. One for
1100 is 99 units away: level 2, slot (1100 // 8 + 1) % 64 = 10 (B). It fires at 1104.

Costs: schedule and cancel O(1); expiry O(1), without any moves. Drawback: the longer the delay, the
later a timer fires, by up to 8/63 of the delay.

Source: Linux since 4.8, kernel/time/timer.c (calc_wheel_index, __collect_expired_timers,
__run_timers), by Gleixner. The traits list how this differs from Linux.
"""

from typing import Any, NamedTuple

from timers.kernels.bitmap import ahead_in_ring, unmark
from timers.kernels.counters import CLOCK_VISITS, SLOTS_VISITED, TIMERS_TOUCHED, count
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

LEVELS = 9
TICK_BITS = 3  # a slot spans 2**3 times as many units as one of the level below
SLOT_BITS = 6
SLOTS = 1 << SLOT_BITS
SLOT_MASK = SLOTS - 1
REACH = SLOTS - 1  # ticks of a level from which on a delay belongs to the next level
LATEST = (REACH - 1) << (LEVELS - 1) * TICK_BITS  # the delay of those beyond the wheels

DUE = LEVELS * SLOTS  # bucket of timers to be delivered at once; before it, level * SLOTS + slot
BUCKETS = DUE + 1

WORDS = HEADER


class LinuxWheelState(NamedTuple):
    nodes: Any  # NODE, shape (BUCKETS + capacity,): sentinels, then places
    cells: Any  # int64, shape (WORDS + words of bits,): header, occupancy bits
    counters: Any  # int64, shape (len(COUNTERS),), or None


State = LinuxWheelState


def allocate(start: int, capacity: int, parameters: Any, counters: Any) -> State:
    nodes, cells = allocate_pool(start, capacity, BUCKETS, WORDS, BUCKETS)
    return State(nodes, cells, counters)


enlarged, move_all = enlarged_pool, move_pool


@inlined
def tick_after(deadline, level):
    """The number of the tick that begins when that of a deadline has passed, on a level."""
    tick = deadline >> level * TICK_BITS
    return tick if tick == LIMIT else tick + 1  # LIMIT is the last moment


@inlined
def begin_of(tick, level):
    """The moment at which a tick begins; LIMIT if it would begin later."""
    shift = level * TICK_BITS
    return LIMIT if tick > LIMIT >> shift else tick << shift


@inlined
def bucket_of(deadline, now):
    """The bucket of a deadline, by its distance from now."""
    delay = deadline - now
    if delay <= 0:
        return DUE
    level = 0
    while level < LEVELS and delay >= REACH << level * TICK_BITS:
        level += 1
    if level == LEVELS:
        level, deadline = LEVELS - 1, now + LATEST
    return (level << SLOT_BITS) + (tick_after(deadline, level) & SLOT_MASK)


@inlined
def insert(nodes, cells, counters, i, deadline):
    """Set a row's deadline and put the row into its bucket."""
    nodes[i]["deadline"] = deadline
    bucket = bucket_of(deadline, cells[NOW])
    if bucket < DUE:
        link_marked(nodes, cells, WORDS, bucket, i)
    else:
        link(nodes, DUE, i)


schedule, cancel, reschedule = bucket_operations(insert, WORDS)


@inlined
def next_begin(cells, level):
    """When a level's next occupied slot begins, and its bucket; (NONE, NONE) if all are empty."""
    first = level << SLOT_BITS
    tick = cells[NOW] >> level * TICK_BITS
    # The current slot comes last, a full turn away.
    ahead = ahead_in_ring(cells, WORDS, first, SLOTS, first + (tick & SLOT_MASK) + 1)
    if ahead == NONE:
        return NONE, NONE
    tick += 1 + ahead
    return begin_of(tick, level), first + (tick & SLOT_MASK)


@jit
def next_stop(cells):
    """The next moment at which a slot begins, or NONE."""
    stop = NONE
    for level in range(LEVELS):
        begins, _ = next_begin(cells, level)
        if begins != NONE and (stop == NONE or begins < stop):
            stop = begins
    return stop


@jit
def open_slots(nodes, cells, counters, stop):
    """Move the timers of all slots that begin at `stop` to the due bucket."""
    for level in range(LEVELS):
        begins, bucket = next_begin(cells, level)
        while begins == stop:  # at LIMIT, more than one slot of a level
            append_bucket(nodes, bucket, DUE)
            unmark(cells, WORDS, bucket)
            count(counters, SLOTS_VISITED, 1)
            begins, bucket = next_begin(cells, level)


@jit
def advance(state, now, out):
    nodes, cells, counters = state.nodes, state.cells, state.counters
    n = 0
    while True:
        before = n
        n = deliver(nodes, cells, DUE, out, n)
        count(counters, TIMERS_TOUCHED, n - before)
        if not is_empty(nodes, DUE):
            return n, False
        if cells[NOW] >= now:
            return n, True
        if is_full(out, n):
            return n, False
        stop = next_stop(cells)
        if stop == NONE or stop > now:
            cells[NOW] = now
            return n, True
        open_slots(nodes, cells, counters, stop)
        cells[NOW] = stop
        count(counters, CLOCK_VISITS, 1)


@inlined
def due(state):
    return not is_empty(state.nodes, DUE)


@jit
def next_expiry(state):
    cells = state.cells
    if cells[PENDING] == 0:
        return NONE
    if due(state):
        return cells[NOW]
    return next_stop(cells)


next_wakeup = next_expiry


def snapshot(state: State) -> Snapshot:
    now = int(state.cells[NOW])
    rings = [
        Ring(
            level + 1,  # as in the table above; the code counts from 0
            1 << level * TICK_BITS,
            SLOTS,
            now >> level * TICK_BITS & SLOT_MASK,
            slots_in(state, level * SLOTS, SLOTS),
        )
        for level in range(LEVELS)
    ]
    return Snapshot(now, tuple(rings), {"due": timers_in(state, DUE)})


def check(state: State) -> None:
    nodes, cells, _ = state
    now = int(cells[NOW])

    def belongs(bucket: int, i: int) -> bool:
        deadline = int(nodes[i]["deadline"])
        if bucket == DUE:
            return True  # a timer that is late, or overdue, or was cut
        level = bucket >> SLOT_BITS
        passed = now >> level * TICK_BITS
        tick = passed + 1 + (bucket - passed - 1) % SLOTS  # the next one of this slot
        is_cut = level == LEVELS - 1 and begin_of(tick, level) <= deadline
        return is_cut or tick == tick_after(deadline, level)

    check_pool(nodes, cells, belongs, DUE)
