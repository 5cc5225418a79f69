"""Hierarchical wheel: wheels of growing ticks, and a delay queue of their buckets.

Each level has `wheel_size` slots; its tick is the interval of the level below. A timer goes into
the first level that covers its deadline. The first timer in a bucket sets the bucket's expiration,
the start of its slot, and puts the bucket into a delay queue, a binary heap. That queue drives the
clock: when a bucket expires, its timers are inserted again, into a finer level or among the due
timers. Empty ticks cost nothing. If all timers of a bucket are cancelled, the bucket stays queued
and is polled empty.

    level  tick 1, 20 slots: tick   interval
    1                           1         20
    2                          20        400
    3                         400      8 000
    4                       8 000    160 000
    ...                                           level 15 reaches 2**63 - 1

    level 1, tick 1             level 2, tick 20            level 3, tick 400

        0     1    ..               0     1     2               0     1     2
     +-----+-----+-----+         +-----+-----+-----+         +-----+-----+-----+
     | now |     |     |         | now |     |  B  |         | now |  A  |     |
     +-----+-----+-----+         +-----+-----+-----+         +-----+-----+-----+
  19 |     |     |     | 9    19 |     |     |     | 3    19 |     |     |     | 3
     +-----+     +-----+         +-----+     +-----+         +-----+     +-----+
     |     |     |  C  |         |     |     |     |         |     |     |     |
     +-----+-----+-----+         +-----+-----+-----+         +-----+-----+-----+
       ..    11    10              ..     5     4              ..     5     4

Example, tick 1, wheel_size 20: at 0, a timer for 450 is beyond level 2. It goes into level 3, slot
450 // 400 % 20 = 1 (A), which expires at 400. Then it is 50 units away: level 2, slot
450 // 20 % 20 = 2 (B), which expires at 440. Then level 1, slot 450 % 20 = 10 (C); it fires at 450.

Costs: schedule O(levels), plus O(log buckets) if its bucket was not queued; cancel O(1); later up
to levels - 1 moves. Drawback: deadlines are rounded down, so a timer fires up to tick - 1 early;
and emptied buckets cause useless wake-ups.

Source: Varghese & Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987), scheme 7, as in
Apache Kafka's utils/timer (Timer.scala, TimingWheel.scala, TimerTaskList.scala). The traits list
how this differs from Kafka.
"""

from typing import Any, NamedTuple

import numpy as np

from timers.errors import InvariantError
from timers.kernels.counters import (
    CLOCK_VISITS,
    COMPARISONS,
    EMPTY_POLLS,
    QUEUE_OFFERS,
    QUEUE_POLLS,
    REFILED,
    SLOTS_VISITED,
    TIMERS_TOUCHED,
    count,
)
from timers.kernels.jit import inlined, jit
from timers.kernels.operations import NONE
from timers.kernels.pool import (
    BASE,
    HEADER,
    NOW,
    PENDING,
    allocate_pool,
    bucket_operations,
    check_pool,
    deliver,
    detach,
    dump,
    enlarged_pool,
    is_empty,
    is_full,
    link,
    move_pool,
    quotient,
    quotient_by,
    reciprocal,
    slots_in,
    timers_in,
)
from timers.limits import LIMIT
from timers.snapshot import Queued, Ring, Snapshot

WHEEL_SIZE = HEADER  # number of slots of each level
LEVELS_TO_LIMIT = HEADER + 1  # number of levels up to the one that reaches LIMIT
LEVELS = HEADER + 2  # number of levels used so far
QUEUED = HEADER + 3  # number of buckets in the delay queue
QUEUE = HEADER + 4  # index in `cells` of the queue's first entry
FIRST_LEVEL = HEADER + 5  # LEVEL_FIELDS cells for each level start here:
TICK, INTERVAL = 0, 1  # units per slot, units per rotation
CURRENT, SLOT = 2, 3  # its clock: now, aligned down to the tick; and the slot of that moment
LAST = 4  # the last deadline that its interval covers
MULTIPLIER, SHIFT = 5, 6  # the tick's reciprocal (pool.py)
LEVEL_FIELDS = 7

DUE = 0  # bucket of timers to be delivered at once
FIRST_SLOT = 1  # bucket of slot 0 of level 1; the others follow, level by level


class HierarchicalWheelState(NamedTuple):
    nodes: Any  # NODE, shape (1 + levels * wheel_size + capacity,): sentinels, then places;
    #             a sentinel's deadline is its bucket's expiration, NONE unless queued
    cells: Any  # int64, shape (FIRST_LEVEL + LEVEL_FIELDS * levels + buckets,):
    #             header, WHEEL_SIZE .. QUEUE, the levels' fields, heap of queued buckets
    counters: Any  # int64, shape (len(COUNTERS),), or None


State = HierarchicalWheelState


def allocate(start: int, capacity: int, parameters: Any, counters: Any) -> State:
    levels = levels_of(parameters["tick"], parameters["wheel_size"])
    buckets = FIRST_SLOT + len(levels) * parameters["wheel_size"]
    queue = FIRST_LEVEL + LEVEL_FIELDS * len(levels)
    nodes, cells = allocate_pool(start, capacity, buckets, queue + buckets - FIRST_SLOT)
    cells[WHEEL_SIZE], cells[QUEUE] = parameters["wheel_size"], queue
    cells[LEVELS], cells[LEVELS_TO_LIMIT] = 1, len(levels)
    for level, (tick, interval) in enumerate(levels):
        current, slot = start - start % tick, start // tick % parameters["wheel_size"]
        fields = (tick, interval, current, slot, last_of(current, interval), *reciprocal(tick))
        first = FIRST_LEVEL + LEVEL_FIELDS * level
        cells[first : first + LEVEL_FIELDS] = fields
    nodes["deadline"][:buckets] = NONE
    return State(nodes, cells, counters)


def levels_of(tick: int, wheel_size: int) -> list[tuple[int, int]]:
    """(tick, interval) of each level, up to the one that reaches LIMIT."""
    levels: list[tuple[int, int]] = []
    while not levels or levels[-1][1] < LIMIT:
        interval = min(tick * wheel_size, LIMIT)
        levels.append((tick, interval))
        tick = interval
    return levels


enlarged, move_all = enlarged_pool, move_pool


@inlined
def field_of(cells, level, field):
    """A field of a level."""
    # Unsigned: no test for a negative index.
    return cells[np.uint64(FIRST_LEVEL + LEVEL_FIELDS * level + field)]


@inlined
def last_of(current, interval):
    """The last deadline that an interval covers; the highest level's interval covers all."""
    if interval == LIMIT or current > LIMIT - interval:
        return LIMIT
    return current + interval - 1


@inlined
def level_of(cells, deadline):
    """The first level, from 0, that covers a deadline; 0 if the deadline is due."""
    level = 0
    while deadline > field_of(cells, level, LAST):
        level += 1
    return level


@inlined
def precedes(nodes, counters, a, b):
    """Return whether bucket `a` expires before bucket `b`."""
    count(counters, COMPARISONS, 1)
    return nodes[a]["deadline"] < nodes[b]["deadline"]


@jit
def offer(nodes, cells, counters, bucket):
    """Put a bucket into the delay queue, by its expiration."""
    count(counters, QUEUE_OFFERS, 1)
    queue = cells[QUEUE]
    k = cells[QUEUED]
    cells[QUEUED] += 1
    while k > 0:
        parent = (k - 1) >> 1
        if not precedes(nodes, counters, bucket, cells[queue + parent]):
            break
        cells[queue + k] = cells[queue + parent]
        k = parent
    cells[queue + k] = bucket


@jit
def poll(nodes, cells, counters):
    """Take the bucket that expires first out of the delay queue, which is not empty."""
    count(counters, QUEUE_POLLS, 1)
    queue = cells[QUEUE]
    bucket = cells[queue]
    cells[QUEUED] -= 1
    size = cells[QUEUED]
    last = cells[queue + size]
    k = 0
    while 2 * k + 1 < size:
        child = 2 * k + 1
        if child + 1 < size and precedes(
            nodes, counters, cells[queue + child + 1], cells[queue + child]
        ):
            child += 1
        if not precedes(nodes, counters, cells[queue + child], last):
            break
        cells[queue + k] = cells[queue + child]
        k = child
    cells[queue + k] = last
    return bucket


@inlined
def insert(nodes, cells, counters, i, deadline):
    """Set a row's deadline, put the row into its bucket, and queue the bucket if needed."""
    nodes[i]["deadline"] = deadline
    level = level_of(cells, deadline)
    if level == 0 and deadline - field_of(cells, 0, CURRENT) < field_of(cells, 0, TICK):
        link(nodes, DUE, i)
        return
    tick, current = field_of(cells, level, TICK), field_of(cells, level, CURRENT)
    ahead = quotient_by(
        deadline - current, tick, field_of(cells, level, MULTIPLIER), field_of(cells, level, SHIFT)
    )
    slot = field_of(cells, level, SLOT) + ahead  # less than a rotation ahead
    if slot >= cells[WHEEL_SIZE]:
        slot -= cells[WHEEL_SIZE]
    bucket = FIRST_SLOT + level * cells[WHEEL_SIZE] + slot
    link(nodes, bucket, i)
    expiration = current + ahead * tick
    if nodes[np.uint32(bucket)]["deadline"] != expiration:
        nodes[bucket]["deadline"] = expiration
        cells[LEVELS] = max(cells[LEVELS], level + 1)
        offer(nodes, cells, counters, bucket)


schedule, cancel, reschedule = bucket_operations(insert)


@jit
def align_levels(cells, now):
    """Align every level's clock down to `now`; a level moves only when the one below has."""
    for level in range(cells[LEVELS_TO_LIMIT]):
        tick, wheel_size = field_of(cells, level, TICK), cells[WHEEL_SIZE]
        ahead = now - field_of(cells, level, CURRENT)
        if ahead < tick:
            break
        slots = quotient_by(
            ahead, tick, field_of(cells, level, MULTIPLIER), field_of(cells, level, SHIFT)
        )
        slot = field_of(cells, level, SLOT) + slots
        current = field_of(cells, level, CURRENT) + slots * tick
        first = FIRST_LEVEL + LEVEL_FIELDS * level
        cells[first + CURRENT] = current
        cells[first + LAST] = last_of(current, field_of(cells, level, INTERVAL))
        cells[first + SLOT] = slot - quotient(slot, wheel_size) * wheel_size


@jit
def flush(nodes, cells, counters, bucket):
    """Insert the timers of an expired bucket again: into finer levels or among the due timers."""
    count(counters, SLOTS_VISITED, 1)
    nodes[bucket]["deadline"] = NONE
    if is_empty(nodes, bucket):
        count(counters, EMPTY_POLLS, 1)
        return
    level = quotient(bucket - FIRST_SLOT, cells[WHEEL_SIZE])
    i = detach(nodes, bucket)
    while i != bucket:
        after = nodes[i]["next"]
        insert(nodes, cells, counters, i, nodes[i]["deadline"])
        count(counters, TIMERS_TOUCHED, 1 if level > 0 else 0)
        count(counters, REFILED, 1 if level > 0 else 0)
        i = after


@jit
def advance(state, now, out):
    nodes, cells, counters = state.nodes, state.cells, state.counters
    n = 0
    while True:
        before = n
        n = deliver(nodes, cells, DUE, out, n)
        count(counters, TIMERS_TOUCHED, n - before)
        if not is_empty(nodes, DUE) or (is_full(out, n) and cells[NOW] < now):
            return n, False
        if cells[QUEUED] == 0 or nodes[cells[cells[QUEUE]]]["deadline"] > now:
            cells[NOW] = now
            align_levels(cells, now)
            return n, True
        bucket = poll(nodes, cells, counters)
        expiration = nodes[bucket]["deadline"]
        if expiration > cells[NOW]:
            cells[NOW] = expiration
            align_levels(cells, expiration)
            count(counters, CLOCK_VISITS, 1)
        flush(nodes, cells, counters, bucket)
        # Flush all buckets that expire now before `out` can be full: none of them stays queued.
        while cells[QUEUED] > 0 and nodes[cells[cells[QUEUE]]]["deadline"] == expiration:
            flush(nodes, cells, counters, poll(nodes, cells, counters))


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
    bound = LIMIT
    for k in range(cells[QUEUED]):
        bucket = cells[cells[QUEUE] + k]
        if not is_empty(nodes, bucket):
            bound = min(bound, nodes[bucket]["deadline"])
    return bound


@inlined
def next_wakeup(state):
    if due(state):
        return state.cells[NOW]
    if state.cells[QUEUED] == 0:
        return NONE
    return state.nodes[state.cells[state.cells[QUEUE]]]["deadline"]


def snapshot(state: State) -> Snapshot:
    nodes, cells, _ = state
    size = int(cells[WHEEL_SIZE])
    rings = [
        Ring(
            level + 1,
            int(field_of(cells, level, TICK)),
            size,
            int(field_of(cells, level, SLOT)),
            slots_in(state, FIRST_SLOT + level * size, size),
        )
        for level in range(cells[LEVELS])
    ]
    buckets = cells[cells[QUEUE] : cells[QUEUE] + cells[QUEUED]].tolist()
    queue = []
    for bucket in buckets:
        level, slot = divmod(bucket - FIRST_SLOT, size)
        queue.append(Queued(int(nodes[bucket]["deadline"]), level + 1, slot))
    return Snapshot(
        int(cells[NOW]), tuple(rings), {"due": timers_in(state, DUE)}, queue=tuple(queue)
    )


def check(state: State) -> None:
    nodes, cells, _ = state
    now, wheel_size = int(cells[NOW]), int(cells[WHEEL_SIZE])
    queue = cells[cells[QUEUE] : cells[QUEUE] + cells[QUEUED]].tolist()
    expirations = nodes["deadline"][: cells[BASE]]

    def belongs(bucket: int, i: int) -> bool:
        deadline = int(nodes[i]["deadline"])
        if bucket == DUE:
            return deadline - now < field_of(cells, 0, TICK)
        level, slot = divmod(bucket - FIRST_SLOT, wheel_size)
        tick = int(field_of(cells, level, TICK))
        opens = deadline - deadline % tick
        return (
            level < cells[LEVELS]
            and deadline // tick % wheel_size == slot
            and expirations[bucket] == opens > now
        )

    check_pool(nodes, cells, belongs)
    broken = {
        "a level's clock is not aligned to now": any(
            field_of(cells, level, CURRENT) != now - now % int(field_of(cells, level, TICK))
            for level in range(cells[LEVELS_TO_LIMIT])
        ),
        "a level's slot is not that of its clock": any(
            field_of(cells, level, SLOT) != now // int(field_of(cells, level, TICK)) % wheel_size
            for level in range(cells[LEVELS_TO_LIMIT])
        ),
        "the queue is out of order": any(
            expirations[queue[(k - 1) // 2]] > expirations[queue[k]] for k in range(1, len(queue))
        ),
        "not exactly the buckets with an expiration are queued, once each": (
            sorted(queue) != np.flatnonzero(expirations != NONE).tolist()
        ),
    }
    for rule, is_broken in broken.items():
        if is_broken:
            raise InvariantError(
                f"{rule}: expirations {expirations.tolist()}\n{dump(nodes, cells)}"
            )
