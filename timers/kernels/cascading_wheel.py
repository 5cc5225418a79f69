"""Cascading wheel: five wheels of 256 slots, geared like an odometer.

The lowest wheel has a slot for each of the next 256 units, the one above a slot for each 256 units,
and so on. A timer is filed by its distance: the further off, the higher the wheel and the coarser
the slot. When the lowest wheel wraps, the next slot of the wheel above is emptied and its timers
are filed again, now closer, hence lower (a cascade). A timer goes down at most four times.

    level  slot width  holds delays of         all 256 slots span
    0               1  1 .. 255                               256
    1           2**8   2**8  .. 2**16 - 1     2**16 =      65 536
    2           2**16  2**16 .. 2**24 - 1     2**24 =  16 777 216
    3           2**24  2**24 .. 2**32 - 1     2**32 ~ 4.3 * 10**9
    4           2**32  2**32 .. 2**40 - 1     2**40 ~ 1.1 * 10**12
    overflow           2**40 and more: a plain list, looked at when a timer in it can come into reach

Example: at 1000 a timer for 1300 is 300 away: level 1, slot (1300 >> 8) & 255 = 5. At 1280 level 0
wraps; slot 5 cascades; the timer is 20 away: level 0, slot 1300 & 255 = 20. At 1300 it fires.

Costs: schedule and cancel O(1); advance O(1) per timer and wheel that it descends, in bursts of
whole slots. Drawback: one tick can re-file a whole upper slot. Empty time is jumped over by
occupancy bits.

Source: Varghese & Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987), scheme 7, as in
Linux's kernel/timer.c before 4.8 (internal_add_timer, cascade), which has 256 + 4 x 64 slots,
clamps what lies beyond 2**32 and visits each unit: here all wheels have 256, the overflow list
keeps far deadlines exact, and empty units are skipped.
"""

from typing import Any, NamedTuple

import numpy as np

from timers.kernels.bitmap import next_marked, unmark, words_for
from timers.kernels.counters import (
    CLOCK_VISITS,
    REFILED,
    SLOTS_VISITED,
    TIMERS_TOUCHED,
    count,
)
from timers.kernels.jit import inlined, jit
from timers.kernels.pool import (
    BASE,
    BITS,
    FREE,
    HEADER,
    NONE,
    NOW,
    PENDING,
    allocate_nodes,
    bucket_at,
    check_pool,
    claim,
    deliver,
    detach,
    earliest_in,
    handle_of,
    is_empty,
    link,
    link_marked,
    release,
    reserve_nodes,
    row_of,
    unlink_marked,
)
from timers.limits import LIMIT

LEVELS = 5
SLOT_BITS = 8
SLOTS = 1 << SLOT_BITS
SLOT_MASK = SLOTS - 1
SPAN_BITS = LEVELS * SLOT_BITS  # the wheels reach 2**40 units

DUE = LEVELS * SLOTS  # bucket of timers to be delivered at once
OVERFLOW = DUE + 1  # bucket of timers beyond the wheels' reach
BUCKETS = OVERFLOW + 1
NAMED = {DUE: "due", OVERFLOW: "overflow"}

OVERFLOW_MIN = (
    HEADER  # no deadline in the overflow bucket is below this; of no meaning while it is empty
)
WORDS = HEADER + 1


class CascadingWheelState(NamedTuple):
    nodes: Any  # NODE, shape (BUCKETS + capacity,): sentinels [level * 256 + slot, DUE, OVERFLOW], then places
    clock: Any  # int64, shape (WORDS + words of bits,): header of pool.py, OVERFLOW_MIN, occupancy bits
    counters: Any  # int64, shape (len(COUNTERS),), or None


State = CascadingWheelState


def allocate(start: int, capacity: int, parameters: Any, counters: Any) -> State:
    clock = np.zeros(WORDS + words_for(BUCKETS), np.int64)
    clock[NOW], clock[FREE], clock[BASE], clock[BITS] = start, BUCKETS, BUCKETS, WORDS
    return State(allocate_nodes(BUCKETS, capacity), clock, counters)


def reserve(state: State, extra: int) -> State:
    return state._replace(nodes=reserve_nodes(state.nodes, state.clock, extra))


@inlined
def slot_of(deadline, level):
    """The bucket of a deadline on a given level."""
    return (level << SLOT_BITS) + ((deadline >> (level * SLOT_BITS)) & SLOT_MASK)


@inlined
def bucket_of(deadline, now):
    """Where a timer is filed: by its distance to the deadline."""
    delay = deadline - now
    if delay < 1 << 8:
        return slot_of(deadline, 0) if delay > 0 else DUE
    if delay < 1 << 16:
        return slot_of(deadline, 1)
    if delay < 1 << 24:
        return slot_of(deadline, 2)
    if delay < 1 << 32:
        return slot_of(deadline, 3)
    if delay < 1 << 40:
        return slot_of(deadline, 4)
    return OVERFLOW


@inlined
def file(nodes, clock, i):
    """Put a row into the bucket of its deadline."""
    deadline = nodes[i]["deadline"]
    bucket = bucket_of(deadline, clock[NOW])
    if bucket < DUE:
        link_marked(nodes, clock, WORDS, bucket, i)
        return
    if bucket == OVERFLOW and (is_empty(nodes, OVERFLOW) or deadline < clock[OVERFLOW_MIN]):
        clock[OVERFLOW_MIN] = deadline
    link(nodes, bucket, i)


@inlined
def schedule(state, deadline):
    nodes, clock = state.nodes, state.clock
    i = claim(nodes, clock)
    nodes[i]["deadline"] = deadline
    file(nodes, clock, i)
    return handle_of(nodes, BUCKETS, i)


@inlined
def cancel(state, handle):
    nodes, clock = state.nodes, state.clock
    i = row_of(nodes, BUCKETS, handle)
    if i == NONE:
        return False
    unlink_marked(nodes, clock, WORDS, i)
    release(nodes, clock, i)
    return True


@inlined
def reschedule(state, handle, deadline):
    nodes, clock = state.nodes, state.clock
    i = row_of(nodes, BUCKETS, handle)
    if i == NONE:
        return False
    unlink_marked(nodes, clock, WORDS, i)
    nodes[i]["deadline"] = deadline
    file(nodes, clock, i)
    return True


@jit
def refile(nodes, clock, counters, bucket):
    """File all timers of a bucket again."""
    count(counters, SLOTS_VISITED, 1)
    i = detach(nodes, bucket)
    unmark(clock, WORDS, bucket)
    while i != bucket:
        after = nodes[i]["next"]
        file(nodes, clock, i)
        count(counters, TIMERS_TOUCHED, 1)
        count(counters, REFILED, 1)
        i = after


@inlined
def next_open(clock, level):
    """The moment when a level's next occupied slot opens, and the slot's bucket; (NONE, NONE) if
    all are empty.
    """
    shift = level * SLOT_BITS
    first = level << SLOT_BITS
    turns = clock[NOW] >> shift
    at = turns & SLOT_MASK
    bucket = next_marked(clock, WORDS, first + at + 1, first + SLOTS)
    ahead = bucket - first - at
    if bucket == NONE:  # none before the level wraps; the present slot comes last, a full turn away
        bucket = next_marked(clock, WORDS, first, first + at + 1)
        ahead = bucket - first - at + SLOTS
    if bucket == NONE:
        return NONE, NONE
    return (turns + ahead) << shift, bucket


@inlined
def next_stop(nodes, clock):
    """The next unit at which a bucket must be opened, or NONE."""
    now = clock[NOW]
    at = now & SLOT_MASK
    ahead = next_marked(clock, WORDS, at + 1, SLOTS)
    if ahead != NONE:  # before the lowest wheel wraps, hence before any cascade
        return now + (ahead - at)
    return next_stop_after_wrap(nodes, clock)


@jit
def next_stop_after_wrap(nodes, clock):
    """`next_stop` when no slot of the lowest wheel is occupied before it wraps."""
    stop = NONE
    for level in range(LEVELS):
        opens, _ = next_open(clock, level)
        if opens != NONE and (stop == NONE or opens < stop):
            stop = opens
    if not is_empty(nodes, OVERFLOW):
        opens = (clock[OVERFLOW_MIN] >> SPAN_BITS) << SPAN_BITS
        if stop == NONE or opens < stop:
            stop = opens
    return stop


@jit
def advance(state, now, out):
    nodes, clock, counters = state.nodes, state.clock, state.counters
    n = 0
    while True:
        before = n
        n = deliver(nodes, clock, BUCKETS, DUE, out, n)
        bucket = slot_of(clock[NOW], 0)
        n = deliver(nodes, clock, BUCKETS, bucket, out, n)
        count(counters, TIMERS_TOUCHED, n - before)
        if n == out.size and not (is_empty(nodes, DUE) and is_empty(nodes, bucket)):
            return n, False
        unmark(clock, WORDS, bucket)
        if clock[NOW] >= now:
            return n, True
        stop = next_stop(nodes, clock)
        if stop == NONE or stop > now:
            clock[NOW] = now
            return n, True
        clock[NOW] = stop
        count(counters, CLOCK_VISITS, 1)
        if stop & SLOT_MASK == 0:
            cascade(nodes, clock, counters, stop)
        if not is_empty(nodes, slot_of(stop, 0)):
            count(counters, SLOTS_VISITED, 1)


@jit
def cascade(nodes, clock, counters, now):
    """Empty the upper slots that open at `now`, from the top down."""
    if (
        now & ((1 << SPAN_BITS) - 1) == 0
        and not is_empty(nodes, OVERFLOW)
        and clock[OVERFLOW_MIN] - now < 1 << SPAN_BITS
    ):
        refile(nodes, clock, counters, OVERFLOW)
    for level in range(LEVELS - 1, 0, -1):
        if now & ((1 << (level * SLOT_BITS)) - 1) == 0:
            bucket = slot_of(now, level)
            if not is_empty(nodes, bucket):
                refile(nodes, clock, counters, bucket)


@inlined
def due(state):
    return not is_empty(state.nodes, DUE)


@jit
def next_expiry(state):
    nodes, clock = state.nodes, state.clock
    if clock[PENDING] == 0:
        return NONE
    if due(state):
        return clock[NOW]
    earliest = LIMIT
    for level in range(LEVELS):
        opens, bucket = next_open(clock, level)
        # Within a level, slots open in the order of their deadlines: only the next one can hold the
        # earliest.
        if opens != NONE and opens <= earliest:
            earliest = min(earliest, earliest_in(nodes, bucket))
    if not is_empty(nodes, OVERFLOW) and clock[OVERFLOW_MIN] < earliest:
        earliest = min(earliest, earliest_in(nodes, OVERFLOW))
    return earliest


@jit
def next_wakeup(state):
    if due(state):
        return state.clock[NOW]
    return next_stop(state.nodes, state.clock)


def locate(state: State, handle: int) -> dict[str, int | str]:
    nodes, clock, _ = state
    i = row_of(nodes, BUCKETS, handle)
    if i == NONE:
        return {}
    bucket = bucket_at(nodes, clock, i)
    if bucket in NAMED:
        return {"bucket": NAMED[bucket]}
    return {"level": bucket >> SLOT_BITS, "slot": bucket & SLOT_MASK}


def check(state: State) -> None:
    nodes, clock, _ = state
    now = int(clock[NOW])

    def belongs(bucket: int, i: int) -> bool:
        deadline = int(nodes[i]["deadline"])
        if bucket == DUE:
            return deadline <= now
        if bucket == OVERFLOW:
            return deadline >= clock[OVERFLOW_MIN]
        level = bucket >> SLOT_BITS
        width = 1 << (level * SLOT_BITS)
        opens = deadline - deadline % width
        return bool(bucket == slot_of(deadline, level)) and now < opens <= now + SLOTS * width

    check_pool(nodes, clock, DUE, belongs)
