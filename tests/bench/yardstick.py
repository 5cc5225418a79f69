"""The yardstick of the benchmark: a minimal cascading wheel of 5 x 256 slots in compiled code.

It has a replay loop, handles with generations, an id -> handle map and expiries in three columns,
and nothing else: no growth, re-arming, overflow, checks or counters, and nothing due at once.
Timers are filed by the highest bit in which deadline and clock differ. Its loop reads the same rows
as the project's own, and prefetches the map in the same way. The time that the project's timers
take beyond that is the price of their contract, or room for improvement.
"""

import numpy as np
from numba import njit

from compare.trial.replay.loops import LOOK_AHEAD
from timers.kernels.prefetch import prefetch

LEVELS, SLOT_BITS = 5, 8
SLOTS = 1 << SLOT_BITS
MASK = SLOTS - 1
BUCKETS = LEVELS * SLOTS
NODE = np.dtype(
    [("deadline", "i8"), ("next", "i4"), ("prev", "i4"), ("slot", "i4"), ("generation", "i4")]
)
NOW, FREE = 0, 1
START = 0


def allocate(capacity):
    """Rows of empty buckets, then free rows in a chain; and (now, first free row)."""
    nodes = np.zeros(BUCKETS + capacity, NODE)
    nodes["next"][:BUCKETS] = nodes["prev"][:BUCKETS] = np.arange(BUCKETS)
    nodes["next"][BUCKETS:] = np.arange(BUCKETS + 1, nodes.size + 1)
    return nodes, np.array([0, BUCKETS], np.int64)


@njit(inline="always")
def place(nodes, now, i):
    deadline = nodes[i].deadline
    differs = deadline ^ now
    bucket = (LEVELS - 1) * SLOTS + ((deadline >> (LEVELS - 1) * SLOT_BITS) & MASK)
    if differs < 1 << 8:
        bucket = deadline & MASK
    elif differs < 1 << 16:
        bucket = SLOTS + ((deadline >> 8) & MASK)
    elif differs < 1 << 24:
        bucket = 2 * SLOTS + ((deadline >> 16) & MASK)
    elif differs < 1 << 32:
        bucket = 3 * SLOTS + ((deadline >> 24) & MASK)
    tail = nodes[bucket].prev
    nodes[i].next = bucket
    nodes[i].prev = tail
    nodes[tail].next = i
    nodes[bucket].prev = i


@njit
def insert(nodes, clock, deadline):
    i = clock[FREE]
    clock[FREE] = nodes[i].next
    nodes[i].deadline = deadline
    place(nodes, clock[NOW], i)
    return i


@njit
def cancel(nodes, clock, i):
    before, after = nodes[i].prev, nodes[i].next
    nodes[before].next = after
    nodes[after].prev = before
    nodes[i].next = clock[FREE]
    clock[FREE] = i


@njit
def cascade(nodes, now, bucket):
    i = nodes[bucket].next
    nodes[bucket].next = nodes[bucket].prev = bucket
    while i != bucket:
        following = nodes[i].next
        place(nodes, now, i)
        i = following


@njit
def advance(nodes, clock, until, fired, first):
    n, now = first, clock[NOW]
    while now < until:
        now += 1
        if now & MASK == 0:
            if (now >> 8) & MASK == 0:
                if (now >> 16) & MASK == 0:
                    cascade(nodes, now, 3 * SLOTS + ((now >> 24) & MASK))
                cascade(nodes, now, 2 * SLOTS + ((now >> 16) & MASK))
            cascade(nodes, now, SLOTS + ((now >> 8) & MASK))
        bucket = now & MASK
        i = nodes[bucket].next
        nodes[bucket].next = nodes[bucket].prev = bucket
        while i != bucket:
            following = nodes[i].next
            fired[n, 0] = (np.int64(nodes[i].generation) << 32) | i
            fired[n, 1] = nodes[i].deadline
            fired[n, 2] = now
            n += 1
            nodes[i].generation += 1
            nodes[i].next = clock[FREE]
            clock[FREE] = i
            i = following
    clock[NOW] = now
    return n - first


@njit
def replay(nodes, clock, operations, handles, fired):
    """Run starts and cancels, of dtype OPERATION; return the number of rows in `fired`."""
    n = 0
    last = np.uint32(operations.size)
    for row in range(operations.size):
        k = np.uint32(row)
        time = operations[k].time
        if time > clock[NOW]:
            n += advance(nodes, clock, time, fired, n)
        i = np.uint32(operations[k].id)
        if operations[k].op == START:
            node = insert(nodes, clock, operations[k].deadline)
            handles[i] = (np.int64(nodes[node].generation) << 32) | node
        else:
            if k + LOOK_AHEAD < last:
                prefetch(handles, np.uint32(operations[np.uint32(k + LOOK_AHEAD)].id))
            handle = handles[i]
            node = handle & 0xFFFFFFFF
            if nodes[node].generation == handle >> 32:
                nodes[node].generation += 1
                cancel(nodes, clock, node)
    return n


@njit
def tick(nodes, clock, until, fired):
    """Advance by one unit at a time."""
    n = 0
    while clock[NOW] < until:
        n += advance(nodes, clock, clock[NOW] + 1, fired, n)
    return n


@njit
def bare_call(a, b):
    """Take two record arrays and do nothing: the cost of the call itself."""
    return a.size + b.size
