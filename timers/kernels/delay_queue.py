"""Delay queue: a binary heap ordered by deadline, with a position index for random removal.

The heap's entry k has its parent at (k - 1) // 2 and its children at 2k + 1 and 2k + 2. Entries
carry their deadline and a sequence number, so that comparing touches nothing else and equal
deadlines come out in the order of arming; each place knows the index of its entry, so that a cancel
finds it at once. An entry is 16 bytes, a place 8: a pending timer costs 24. Numbers have 31 bits;
before they run out, the entries are numbered anew.

Example: deadlines 30, 10, 20 are armed in this order. The heap is [10, 30, 20]: 30 sank from the
root when 10 came. Cancelling 30 moves the last entry, 20, into its index 1; the heap is [10, 20].

Costs: schedule O(log n), O(1) on average; cancel and re-arm O(log n), of one entry anywhere; expiry
O(log n). Drawback: each expiry walks from the root to a leaf, one cache miss or two a level.

Source: Williams, "Algorithm 232: Heapsort" (CACM 1964), for the heap; the position index is
Sedgewick & Wayne's indexed priority queue (Algorithms, 4th ed., 2.4), as in Java's
ScheduledThreadPoolExecutor.DelayedWorkQueue. The sift on removal goes down to a leaf first and then
up, after Wegener (1993).
"""

from typing import Any, NamedTuple

import numpy as np

from timers.errors import InvariantError
from timers.kernels.counters import CLOCK_VISITS, COMPARISONS, TIMERS_TOUCHED, count
from timers.kernels.handles import (
    FIRST_GENERATION,
    LAST_GENERATION,
    LOWEST_HANDLE,
    PLACE_BITS,
    PLACE_MASK,
    encode,
    generation_of,
    place_of,
)
from timers.kernels.jit import inlined, jit
from timers.kernels.pool import FREE, HEADER, NONE, NOW, PENDING, RETIRED, grown
from timers.kernels.prefetch import prefetch

PLACE = np.dtype(
    [
        (
            "index",
            "i4",
        ),  # of the place's entry in the heap; of a free place -2 - the next free one (NONE ends the chain)
        ("generation", "i4"),  # of its present or next use
    ]
)

SEQUENCE = HEADER  # number of armings so far, since the last renumbering
HEAP = HEADER + 4  # from here two cells for each entry of the heap; see `aligned`
DEADLINE = 0
ORDER = 1  # sequence number of the arming * 2**32 + the place whose entry it is: ordered by the number, which is unique
ENTRY = 2
LAST_SEQUENCE = 2**31 - 1

LINE = 64  # bytes of a line of the cache


class DelayQueueState(NamedTuple):
    nodes: Any  # PLACE, shape (capacity,)
    clock: Any  # int64, shape (HEAP + ENTRY * capacity,): header of pool.py (BASE, BITS unused), SEQUENCE, the heap
    counters: Any  # int64, shape (len(COUNTERS),), or None


State = DelayQueueState


def allocate(start: int, capacity: int, parameters: Any, counters: Any) -> State:
    clock = aligned(HEAP)
    clock[NOW], clock[FREE] = start, NONE
    return with_capacity(State(np.zeros(0, PLACE), clock, counters), capacity)


def reserve(state: State, extra: int) -> State:
    nodes, clock, _ = state
    used = int(clock[PENDING] + clock[RETIRED])
    if nodes.size - used >= extra:
        return state
    return with_capacity(state, grown(nodes.size, used, extra))


def with_capacity(state: State, capacity: int) -> State:
    """A larger copy of a State whose new places are free."""
    nodes, clock, counters = state
    places = np.empty(capacity, PLACE)
    places[: nodes.size] = nodes
    places["generation"][nodes.size :] = FIRST_GENERATION
    places["index"][nodes.size :] = -2 - np.arange(nodes.size + 1, capacity + 1)
    places["index"][-1] = -2 - clock[FREE]
    larger = aligned(HEAP + ENTRY * capacity)
    larger[: clock.size] = clock
    larger[FREE] = nodes.size
    return State(places, larger, counters)


def aligned(cells: int) -> np.ndarray[Any, Any]:
    """Zeros that begin a line of the cache, so that all four grandchildren of an entry lie in one
    line.
    """
    zeros = np.zeros(cells + LINE // 8, np.int64)
    first = -zeros.ctypes.data % LINE // 8
    return zeros[first : first + cells]


@inlined
def parent_of(k):
    """The index of an entry's parent."""
    return (k - 1) >> 1


@inlined
def child_of(k):
    """The index of an entry's first child; the second follows it."""
    return 2 * k + 1


@inlined
def entry_of(k, cell):
    """The index in `clock` of a cell of entry k."""
    return np.uint64(HEAP + ENTRY * k + cell)  # unsigned: no test for a negative index


@inlined
def pending_place(nodes, handle):
    """The place of a pending timer's handle, or NONE for any other int64."""
    place = place_of(handle)
    if handle < LOWEST_HANDLE or place >= nodes.size:
        return NONE
    if nodes[place]["generation"] != generation_of(handle) or nodes[place]["index"] < 0:
        return NONE
    return place


@inlined
def order_of(sequence, place):
    """The ORDER of an entry."""
    return sequence << PLACE_BITS | place


@inlined
def owner_of(order):
    """The place whose entry has this ORDER."""
    return order & PLACE_MASK


@inlined
def put(nodes, clock, k, deadline, order):
    """Write an entry, and its index into its place."""
    clock[entry_of(k, DEADLINE)] = deadline
    clock[entry_of(k, ORDER)] = order
    nodes[np.uint64(owner_of(order))]["index"] = k


@inlined
def move(nodes, clock, source, target):
    """Copy an entry, and note its new index in its place."""
    put(nodes, clock, target, clock[entry_of(source, DEADLINE)], clock[entry_of(source, ORDER)])


@inlined
def precedes(clock, k, deadline, order):
    """Whether entry k comes before (deadline, order)."""
    other = clock[entry_of(k, DEADLINE)]
    return other < deadline or (other == deadline and clock[entry_of(k, ORDER)] < order)


@inlined
def sift_up(nodes, clock, counters, k, deadline, order):
    """Put an entry at index k or above, moving down the ancestors that it precedes."""
    while k > 0:
        parent = parent_of(k)
        count(counters, COMPARISONS, 1)
        if precedes(clock, parent, deadline, order):
            break
        move(nodes, clock, parent, k)
        k = parent
    put(nodes, clock, k, deadline, order)


@inlined
def sink_hole(nodes, clock, counters, k, size):
    """Move the smaller child up into the hole at k, again and again; returns the leaf where the
    hole ends.
    """
    while child_of(k) + 1 < size:
        child = child_of(k)
        # The level after next, so that two misses are under way at a time. A fetch past the end has
        # no effect.
        grandchild = child_of(child)
        prefetch(clock, entry_of(grandchild, DEADLINE))
        count(counters, COMPARISONS, 1)
        # Written without a branch: which child is smaller is a coin toss that no predictor learns.
        second = precedes(
            clock, child + 1, clock[entry_of(child, DEADLINE)], clock[entry_of(child, ORDER)]
        )
        child += 1 if second else 0
        move(nodes, clock, child, k)
        k = child
    if child_of(k) < size:
        move(nodes, clock, child_of(k), k)
        k = child_of(k)
    return k


@jit
def remove(nodes, clock, counters, k):
    """Take entry k out of the heap: the last entry goes to the hole's leaf and rises to its
    index.
    """
    clock[PENDING] -= 1
    size = clock[PENDING]
    if k == size:
        return
    deadline, order = clock[entry_of(size, DEADLINE)], clock[entry_of(size, ORDER)]
    k = sink_hole(nodes, clock, counters, k, size)
    sift_up(nodes, clock, counters, k, deadline, order)


@jit
def renumber(nodes, clock):
    """Sort the heap, and number its entries anew, so that numbers never run out. O(n log n), in
    place, not counted.

    A sorted array is a heap, and numbers in that order keep the order of equal deadlines.
    """
    size = clock[PENDING]
    for _ in range(size):
        deadline, order = clock[entry_of(0, DEADLINE)], clock[entry_of(0, ORDER)]
        remove(nodes, clock, None, 0)
        put(nodes, clock, clock[PENDING], deadline, order)  # the entry that the heap has just lost
    clock[PENDING] = size
    for low in range((size + 1) >> 1):  # it is falling now
        high = size - 1 - low
        first, last = clock[entry_of(high, ORDER)], clock[entry_of(low, ORDER)]
        early, late = clock[entry_of(high, DEADLINE)], clock[entry_of(low, DEADLINE)]
        put(nodes, clock, high, late, order_of(high + 1, owner_of(last)))
        put(nodes, clock, low, early, order_of(low + 1, owner_of(first)))
    clock[SEQUENCE] = size


@inlined
def arm(nodes, clock, counters, k, deadline, place):
    """Give a place a new entry, starting at index k."""
    clock[SEQUENCE] += 1
    sift_up(nodes, clock, counters, k, deadline, order_of(clock[SEQUENCE], place))


@inlined
def release(nodes, clock, place):
    """Give a place back, which ends the life of its handle."""
    generation = nodes[place]["generation"]
    if generation == LAST_GENERATION:
        nodes[place]["index"] = NONE
        clock[RETIRED] += 1
    else:
        nodes[place]["generation"] = generation + 1
        nodes[place]["index"] = -2 - clock[FREE]
        clock[FREE] = place


@inlined
def schedule(state, deadline):
    nodes, clock = state.nodes, state.clock
    if clock[SEQUENCE] == LAST_SEQUENCE:
        renumber(nodes, clock)
    place = np.int64(np.uint32(clock[FREE]))  # known to be no negative index
    clock[FREE] = -2 - nodes[place]["index"]
    clock[PENDING] += 1
    arm(nodes, clock, state.counters, clock[PENDING] - 1, deadline, place)
    return encode(nodes[place]["generation"], place)


@inlined
def cancel(state, handle):
    nodes, clock = state.nodes, state.clock
    place = pending_place(nodes, handle)
    if place == NONE:
        return False
    remove(nodes, clock, state.counters, nodes[place]["index"])
    release(nodes, clock, place)
    return True


@inlined
def reschedule(state, handle, deadline):
    nodes, clock, counters = state.nodes, state.clock, state.counters
    place = pending_place(nodes, handle)
    if place == NONE:
        return False
    if clock[SEQUENCE] == LAST_SEQUENCE:
        renumber(nodes, clock)
    # A re-arm is the newest of its deadline, so later or equal means down; only an earlier deadline
    # means up.
    k = nodes[place]["index"]
    if deadline >= clock[entry_of(k, DEADLINE)]:
        k = sink_hole(nodes, clock, counters, k, clock[PENDING])
    arm(nodes, clock, counters, k, deadline, place)
    return True


@jit
def advance(state, now, out):
    nodes, clock, counters = state.nodes, state.clock, state.counters
    n = 0
    while clock[PENDING] > 0 and clock[entry_of(0, DEADLINE)] <= now:
        if n == out.size:
            return n, False
        deadline, place = clock[entry_of(0, DEADLINE)], owner_of(clock[entry_of(0, ORDER)])
        if deadline > clock[NOW]:
            clock[NOW] = deadline
            count(counters, CLOCK_VISITS, 1)
        out[n]["handle"] = encode(nodes[place]["generation"], place)
        out[n]["deadline"] = deadline
        out[n]["fired_at"] = clock[NOW]
        n += 1
        count(counters, TIMERS_TOUCHED, 1)
        remove(nodes, clock, counters, 0)
        release(nodes, clock, place)
    clock[NOW] = now
    return n, True


@inlined
def due(state):
    return state.clock[PENDING] > 0 and state.clock[entry_of(0, DEADLINE)] <= state.clock[NOW]


@inlined
def next_expiry(state):
    if state.clock[PENDING] == 0:
        return NONE
    return max(state.clock[NOW], state.clock[entry_of(0, DEADLINE)])


@inlined
def next_wakeup(state):
    return next_expiry(state)


def locate(state: State, handle: int) -> dict[str, int | str]:
    place = pending_place(state.nodes, handle)
    return {} if place == NONE else {"index": int(state.nodes[place]["index"])}


def check(state: State) -> None:
    nodes, clock, _ = state
    size = int(clock[PENDING])
    heap = clock[HEAP : HEAP + ENTRY * size].reshape(size, ENTRY)
    keys = [(deadline, order) for deadline, order in heap.tolist()]
    owners = heap[:, ORDER] & PLACE_MASK
    free: list[int] = []
    place = int(clock[FREE])
    while place != NONE and len(free) <= nodes.size:
        free.append(place)
        place = -2 - int(nodes[place]["index"])
    in_heap = nodes["index"] >= 0
    broken = {
        "the heap is out of order": any(keys[parent_of(k)] > keys[k] for k in range(1, size)),
        "a place does not know its entry's index": bool(
            (nodes["index"][owners] != np.arange(size)).any()
        ),
        "not exactly the pending places have an index": np.flatnonzero(in_heap).tolist()
        != sorted(owners.tolist()),
        "a free place is pending or in the chain twice": bool(in_heap[free].any())
        or len(set(free)) != len(free),
        "places are lost": nodes.size != size + len(free) + int(clock[RETIRED]),
    }
    for rule, is_broken in broken.items():
        if is_broken:
            raise InvariantError(
                f"{rule}\n  clock: {clock[: HEAP + ENTRY * size].tolist()}\n  places: {nodes}"
            )
