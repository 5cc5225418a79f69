"""Hierarchical wheel: wheels of growing ticks, created on demand, and a delay queue of buckets as
their clock.

Each level has `wheel_size` slots; its tick is the interval that the whole level below spans. A
timer goes into the first level whose interval covers it. The first timer in a bucket sets the
bucket's expiration, the start of its slot, and puts the bucket into a delay queue, a binary heap.
That queue drives the clock: when a bucket expires, its timers are filed again, now relative to the
new time: into a finer level, or they are due. Empty ticks cost nothing; a bucket whose timers were
all cancelled stays queued and is polled in vain.

    level  tick 1, 20 slots: tick   interval
    1                           1         20
    2                          20        400
    3                         400      8 000
    4                       8 000    160 000
    ...                                           level 15 reaches 2**63 - 1

Example, (1, 20), now 0: a delay of 450 is beyond level 2 (400): level 3, slot 1, expiration 400. At
400 it is 50 away: level 2, slot 450 // 20 % 20 = 2, expiration 440. At 440: level 1, slot 10. At
450 it fires.

Costs: schedule O(levels), O(log buckets) if its bucket was not queued; cancel O(1); up to levels -
1 re-filings later. Drawback: the tick rounds down, so a timer fires up to tick - 1 early; emptied
buckets wake for nothing.

Source: Varghese & Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987), scheme 7, as in
Apache Kafka's utils/timer (Timer.scala, TimingWheel.scala, TimerTaskList.scala). Kafka's wheels
learn the time from expiring buckets alone and lag behind when idle; here advance ends with every
level's clock aligned to now.
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
    dump,
    handle_of,
    is_empty,
    link,
    quotient,
    quotient_by,
    reciprocal,
    release,
    reserve_nodes,
    row_of,
    unlink,
)
from timers.limits import LIMIT

WHEEL_SIZE = HEADER  # number of slots of each level
REACH = HEADER + 1  # number of levels that it takes to reach LIMIT: room for so many is there
LEVELS = HEADER + 2  # number of levels created so far
QUEUED = HEADER + 3  # number of buckets in the delay queue
QUEUE = HEADER + 4  # index in `clock` of the queue's first entry
GEARS = HEADER + 5  # from here seven cells for each level:
TICK, INTERVAL = 0, 1  # its units a slot, and a rotation
CURRENT, SLOT = 2, 3  # its clock: now aligned down to the tick, and the slot of that moment
LAST = 4  # the last deadline that its interval covers
MULTIPLIER, DOWN = 5, 6  # the tick's reciprocal (pool.py)
GEAR = 7

DUE = 0  # bucket of timers to be delivered at once; level * wheel_size + slot + FIRST are the others, level from 0
FIRST = 1


class HierarchicalWheelState(NamedTuple):
    nodes: Any  # NODE, shape (1 + levels * wheel_size + capacity,): sentinels [DUE, level * wheel_size + slot], places;
    #             a sentinel's deadline is its bucket's expiration, NONE unless queued
    clock: Any  # int64, shape (GEARS + 7 * levels + buckets,): header, WHEEL_SIZE .., gears, heap of queued buckets
    counters: Any  # int64, shape (len(COUNTERS),), or None


State = HierarchicalWheelState


def allocate(start: int, capacity: int, parameters: Any, counters: Any) -> State:
    gears = gears_of(parameters["tick"], parameters["wheel_size"])
    buckets = FIRST + len(gears) * parameters["wheel_size"]
    queue = GEARS + GEAR * len(gears)
    clock = np.zeros(queue + buckets - FIRST, np.int64)
    clock[NOW], clock[FREE], clock[BASE], clock[BITS] = start, buckets, buckets, clock.size
    clock[WHEEL_SIZE], clock[REACH], clock[LEVELS], clock[QUEUE] = (
        parameters["wheel_size"],
        len(gears),
        1,
        queue,
    )
    for level, (tick, interval) in enumerate(gears):
        current, slot = start - start % tick, start // tick % parameters["wheel_size"]
        cells = (tick, interval, current, slot, last_of(current, interval), *reciprocal(tick))
        clock[GEARS + GEAR * level : GEARS + GEAR * (level + 1)] = cells
    nodes = allocate_nodes(buckets, capacity)
    nodes["deadline"][:buckets] = NONE
    return State(nodes, clock, counters)


def gears_of(tick: int, wheel_size: int) -> list[tuple[int, int]]:
    """(tick, interval) of each level up to the one that reaches LIMIT, whose interval is cut to
    LIMIT.
    """
    gears: list[tuple[int, int]] = []
    while not gears or gears[-1][1] < LIMIT:
        interval = min(tick * wheel_size, LIMIT)
        gears.append((tick, interval))
        tick = interval
    return gears


def reserve(state: State, extra: int) -> State:
    return state._replace(nodes=reserve_nodes(state.nodes, state.clock, extra))


@inlined
def gear(clock, level, cell):
    """A cell of a level."""
    return clock[np.uint64(GEARS + GEAR * level + cell)]  # unsigned: no test for a negative index


@inlined
def last_of(current, interval):
    """The last deadline that an interval covers; the interval of the highest level is LIMIT and
    covers all.
    """
    if interval == LIMIT or current > LIMIT - interval:
        return LIMIT
    return current + interval - 1


@inlined
def level_of(clock, deadline):
    """The first level, from 0, whose interval covers a deadline; level 0 for what is due."""
    level = 0
    while deadline > gear(clock, level, LAST):
        level += 1
    return level


@inlined
def precedes(nodes, counters, a, b):
    """Whether bucket `a` expires before bucket `b`."""
    count(counters, COMPARISONS, 1)
    return nodes[a]["deadline"] < nodes[b]["deadline"]


@jit
def offer(nodes, clock, counters, bucket):
    """Put a bucket into the delay queue, by its expiration."""
    count(counters, QUEUE_OFFERS, 1)
    queue = clock[QUEUE]
    k = clock[QUEUED]
    clock[QUEUED] += 1
    while k > 0:
        parent = (k - 1) >> 1
        if not precedes(nodes, counters, bucket, clock[queue + parent]):
            break
        clock[queue + k] = clock[queue + parent]
        k = parent
    clock[queue + k] = bucket


@jit
def poll(nodes, clock, counters):
    """Take the bucket that expires first out of the delay queue, which is not empty."""
    count(counters, QUEUE_POLLS, 1)
    queue = clock[QUEUE]
    bucket = clock[queue]
    clock[QUEUED] -= 1
    size = clock[QUEUED]
    last = clock[queue + size]
    k = 0
    while 2 * k + 1 < size:
        child = 2 * k + 1
        if child + 1 < size and precedes(
            nodes, counters, clock[queue + child + 1], clock[queue + child]
        ):
            child += 1
        if not precedes(nodes, counters, clock[queue + child], last):
            break
        clock[queue + k] = clock[queue + child]
        k = child
    clock[queue + k] = last
    return bucket


@inlined
def file(nodes, clock, counters, i):
    """Put a row into the bucket of its deadline, and the bucket into the queue if its expiration
    changed.
    """
    deadline = nodes[i]["deadline"]
    level = level_of(clock, deadline)
    if level == 0 and deadline - gear(clock, 0, CURRENT) < gear(clock, 0, TICK):
        link(nodes, DUE, i)
        return
    tick, current = gear(clock, level, TICK), gear(clock, level, CURRENT)
    ahead = quotient_by(
        deadline - current, tick, gear(clock, level, MULTIPLIER), gear(clock, level, DOWN)
    )
    slot = (
        gear(clock, level, SLOT) + ahead
    )  # less than a rotation ahead, so at most one turn too far
    if slot >= clock[WHEEL_SIZE]:
        slot -= clock[WHEEL_SIZE]
    bucket = FIRST + level * clock[WHEEL_SIZE] + slot
    link(nodes, bucket, i)
    expiration = current + ahead * tick
    if nodes[np.uint32(bucket)]["deadline"] != expiration:
        nodes[bucket]["deadline"] = expiration
        clock[LEVELS] = max(clock[LEVELS], level + 1)
        offer(nodes, clock, counters, bucket)


@inlined
def schedule(state, deadline):
    nodes, clock = state.nodes, state.clock
    i = claim(nodes, clock)
    nodes[i]["deadline"] = deadline
    file(nodes, clock, state.counters, i)
    return handle_of(nodes, clock[BASE], i)


@inlined
def cancel(state, handle):
    nodes, clock = state.nodes, state.clock
    i = row_of(nodes, clock[BASE], handle)
    if i == NONE:
        return False
    unlink(nodes, i)
    release(nodes, clock, i)
    return True


@inlined
def reschedule(state, handle, deadline):
    nodes, clock = state.nodes, state.clock
    i = row_of(nodes, clock[BASE], handle)
    if i == NONE:
        return False
    unlink(nodes, i)
    nodes[i]["deadline"] = deadline
    file(nodes, clock, state.counters, i)
    return True


@jit
def turn_gears(clock, now):
    """Align every level's clock down to `now`; a level moves only when the one below has."""
    for level in range(clock[REACH]):
        tick, wheel_size = gear(clock, level, TICK), clock[WHEEL_SIZE]
        ahead = now - gear(clock, level, CURRENT)
        if ahead < tick:
            break
        slots = quotient_by(ahead, tick, gear(clock, level, MULTIPLIER), gear(clock, level, DOWN))
        slot = gear(clock, level, SLOT) + slots
        current = gear(clock, level, CURRENT) + slots * tick
        clock[GEARS + GEAR * level + CURRENT] = current
        clock[GEARS + GEAR * level + LAST] = last_of(current, gear(clock, level, INTERVAL))
        clock[GEARS + GEAR * level + SLOT] = slot - quotient(slot, wheel_size) * wheel_size


@jit
def flush(nodes, clock, counters, bucket):
    """File the timers of an expired bucket again: into finer levels, or they are due."""
    count(counters, SLOTS_VISITED, 1)
    nodes[bucket]["deadline"] = NONE
    if is_empty(nodes, bucket):
        count(counters, EMPTY_POLLS, 1)
        return
    level = quotient(bucket - FIRST, clock[WHEEL_SIZE])
    i = detach(nodes, bucket)
    while i != bucket:
        after = nodes[i]["next"]
        file(nodes, clock, counters, i)
        count(counters, TIMERS_TOUCHED, 1 if level > 0 else 0)
        count(counters, REFILED, 1 if level > 0 else 0)
        i = after


@jit
def advance(state, now, out):
    nodes, clock, counters = state.nodes, state.clock, state.counters
    n = 0
    while True:
        before = n
        n = deliver(nodes, clock, clock[BASE], DUE, out, n)
        count(counters, TIMERS_TOUCHED, n - before)
        if not is_empty(nodes, DUE):
            return n, False
        if clock[QUEUED] == 0 or nodes[clock[clock[QUEUE]]]["deadline"] > now:
            clock[NOW] = now
            turn_gears(clock, now)
            return n, True
        bucket = poll(nodes, clock, counters)
        expiration = nodes[bucket]["deadline"]
        if expiration > clock[NOW]:
            clock[NOW] = expiration
            turn_gears(clock, expiration)
            count(counters, CLOCK_VISITS, 1)
        flush(nodes, clock, counters, bucket)


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
    bound = LIMIT
    for k in range(clock[QUEUED]):
        bucket = clock[clock[QUEUE] + k]
        if not is_empty(nodes, bucket):
            bound = min(bound, nodes[bucket]["deadline"])
    return bound


@inlined
def next_wakeup(state):
    if due(state):
        return state.clock[NOW]
    if state.clock[QUEUED] == 0:
        return NONE
    return state.nodes[state.clock[state.clock[QUEUE]]]["deadline"]


def locate(state: State, handle: int) -> dict[str, int | str]:
    nodes, clock, _ = state
    i = row_of(nodes, clock[BASE], handle)
    if i == NONE:
        return {}
    bucket = bucket_at(nodes, clock, i)
    if bucket == DUE:
        return {"bucket": "due"}
    level, slot = divmod(bucket - FIRST, int(clock[WHEEL_SIZE]))
    return {"level": level + 1, "slot": slot}


def check(state: State) -> None:
    nodes, clock, _ = state
    now, wheel_size = int(clock[NOW]), int(clock[WHEEL_SIZE])
    queue = clock[clock[QUEUE] : clock[QUEUE] + clock[QUEUED]].tolist()
    expirations = nodes["deadline"][: clock[BASE]]

    def belongs(bucket: int, i: int) -> bool:
        deadline = int(nodes[i]["deadline"])
        if bucket == DUE:
            return deadline - now < gear(clock, 0, TICK)
        level, slot = divmod(bucket - FIRST, wheel_size)
        tick = int(gear(clock, level, TICK))
        opens = deadline - deadline % tick
        return (
            level < clock[LEVELS]
            and deadline // tick % wheel_size == slot
            and expirations[bucket] == opens > now
        )

    check_pool(nodes, clock, 0, belongs)
    broken = {
        "a level's clock is not aligned to now": any(
            gear(clock, level, CURRENT) != now - now % int(gear(clock, level, TICK))
            for level in range(clock[REACH])
        ),
        "a level's slot is not that of its clock": any(
            gear(clock, level, SLOT) != now // int(gear(clock, level, TICK)) % wheel_size
            for level in range(clock[REACH])
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
                f"{rule}: expirations {expirations.tolist()}\n{dump(nodes, clock)}"
            )
