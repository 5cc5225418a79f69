"""Delay queue: a binary heap ordered by deadline, with a position index for random removal.

The heap's entry k has its parent at (k - 1) // 2 and its children at 2k + 1 and 2k + 2. Entries carry their deadline and a
sequence number, so that comparing touches nothing else and equal deadlines come out in the order of
arming; each place knows the index of its entry, so that a cancel finds it at once.

Example: deadlines 30, 10, 20 are armed in this order. The heap is [10, 30, 20]: 30 sank from the root when 10 came.
Cancelling 30 moves the last entry, 20, into its index 1; the heap is [10, 20].

Costs: schedule O(log n), O(1) on average; cancel and re-arm O(log n), of one entry anywhere; expiry O(log n).
Drawback: each expiry walks from the root to a leaf, one cache miss or two a level.

Source: Williams, "Algorithm 232: Heapsort" (CACM 1964), for the heap; the position index is Sedgewick & Wayne's
indexed priority queue (Algorithms, 4th ed., 2.4), as in Java's ScheduledThreadPoolExecutor.DelayedWorkQueue. The
sift on removal goes down to a leaf first and then up, after Wegener (1993).
"""
from typing import Any, NamedTuple

import numpy as np

from timers.errors import InvariantError
from timers.kernels.counters import CLOCK_VISITS, COMPARISONS, TIMERS_TOUCHED, count
from timers.kernels.handles import (
    FIRST_GENERATION,
    LAST_GENERATION,
    LOWEST_HANDLE,
    encode,
    generation_of,
    place_of,
)
from timers.kernels.jit import inlined, jit
from timers.kernels.pool import FREE, HEADER, NONE, NOW, PENDING, RETIRED, grown

# One array holds two tables side by side: row k has the heap's entry k and, in the last two columns, what is
# known of place k. The two have nothing else to do with each other.
NODE = np.dtype(
    [
        ("deadline", "i8"),  # entry: key
        ("sequence", "i8"),  # entry: key among equal deadlines, the number of its arming
        ("place", "u4"),  # entry: whose it is
        ("index", "i4"),  # place: index of its entry; of a free place NONE
        ("generation", "i4"),  # place: of its present or next use
        ("next_free", "i4"),  # place: the next free one, or NONE
    ]
)

SEQUENCE = HEADER  # number of armings so far
WORDS = HEADER + 1


class DelayQueueState(NamedTuple):
    nodes: Any  # NODE, shape (capacity,): the heap, and the places beside it
    clock: Any  # int64, shape (WORDS,): header of pool.py (BASE and BITS unused), SEQUENCE
    counters: Any  # int64, shape (len(COUNTERS),), or None


State = DelayQueueState


def allocate(start: int, capacity: int, parameters: Any, counters: Any) -> State:
    clock = np.zeros(WORDS, np.int64)
    clock[NOW], clock[FREE] = start, NONE
    return State(with_free_places(np.empty(0, NODE), clock, capacity), clock, counters)


def reserve(state: State, extra: int) -> State:
    nodes, clock, _ = state
    used = int(clock[PENDING] + clock[RETIRED])
    if nodes.size - used >= extra:
        return state
    return state._replace(nodes=with_free_places(nodes, clock, grown(nodes.size, used, extra)))


def with_free_places(nodes: Any, clock: Any, capacity: int) -> Any:
    """A copy of `nodes` with `capacity` rows, the new places free. `clock` changes only on success."""
    larger = np.zeros(capacity, NODE)
    larger[: nodes.size] = nodes
    new = larger[nodes.size :]
    new["index"] = NONE
    new["generation"] = FIRST_GENERATION
    new["next_free"] = np.arange(nodes.size + 1, capacity + 1)
    new["next_free"][-1] = clock[FREE]
    clock[FREE] = nodes.size
    return larger


@inlined
def parent_of(k):
    """The index of an entry's parent."""
    return (k - 1) >> 1


@inlined
def child_of(k):
    """The index of an entry's first child; the second follows it."""
    return 2 * k + 1


@inlined
def pending_place(nodes, handle):
    """The place of a pending timer's handle, or NONE for any other int64."""
    place = place_of(handle)
    if handle < LOWEST_HANDLE or place >= nodes.size:
        return NONE
    if nodes[place]["generation"] != generation_of(handle) or nodes[place]["index"] == NONE:
        return NONE
    return place


@inlined
def put(nodes, k, deadline, sequence, place):
    """Write an entry, and its index into its place."""
    nodes[k]["deadline"] = deadline
    nodes[k]["sequence"] = sequence
    nodes[k]["place"] = place
    nodes[place]["index"] = k


@inlined
def move(nodes, source, target):
    """Copy an entry, and note its new index in its place."""
    put(nodes, target, nodes[source]["deadline"], nodes[source]["sequence"], nodes[source]["place"])


@inlined
def precedes(nodes, a, deadline, sequence):
    """Whether entry `a` comes before (deadline, sequence)."""
    other = nodes[a]["deadline"]
    return other < deadline or (other == deadline and nodes[a]["sequence"] < sequence)


@inlined
def sift_up(nodes, counters, k, deadline, sequence, place):
    """Put an entry at index k or above, moving down the ancestors that it precedes."""
    while k > 0:
        parent = parent_of(k)
        count(counters, COMPARISONS, 1)
        if precedes(nodes, parent, deadline, sequence):
            break
        move(nodes, parent, k)
        k = parent
    put(nodes, k, deadline, sequence, place)


@inlined
def sink_hole(nodes, counters, k, size):
    """Move the smaller child up into the hole at k, again and again; returns the leaf where the hole ends."""
    while child_of(k) + 1 < size:
        child = child_of(k)
        count(counters, COMPARISONS, 1)
        # Written without a branch: which child is smaller is a coin toss that no predictor learns.
        second = precedes(nodes, child + 1, nodes[child]["deadline"], nodes[child]["sequence"])
        child += 1 if second else 0
        move(nodes, child, k)
        k = child
    if child_of(k) < size:
        move(nodes, child_of(k), k)
        k = child_of(k)
    return k


@jit
def remove(nodes, clock, counters, k):
    """Take entry k out of the heap: the last entry goes to the hole's leaf and rises to its index."""
    clock[PENDING] -= 1
    size = clock[PENDING]
    if k == size:
        return
    deadline, sequence, place = nodes[size]["deadline"], nodes[size]["sequence"], nodes[size]["place"]
    k = sink_hole(nodes, counters, k, size)
    sift_up(nodes, counters, k, deadline, sequence, place)


@inlined
def arm(nodes, clock, counters, k, deadline, place):
    """Give a place a new entry, starting at index k."""
    clock[SEQUENCE] += 1
    sift_up(nodes, counters, k, deadline, clock[SEQUENCE], place)


@inlined
def release(nodes, clock, place):
    """Give a place back, which ends the life of its handle."""
    nodes[place]["index"] = NONE
    generation = nodes[place]["generation"]
    if generation == LAST_GENERATION:
        clock[RETIRED] += 1
    else:
        nodes[place]["generation"] = generation + 1
        nodes[place]["next_free"] = clock[FREE]
        clock[FREE] = place


@inlined
def schedule(state, deadline):
    nodes, clock = state.nodes, state.clock
    place = clock[FREE]
    clock[FREE] = nodes[place]["next_free"]
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
    # A re-arm is the newest of its deadline, so later or equal means down; only an earlier deadline means up.
    k = nodes[place]["index"]
    if deadline >= nodes[k]["deadline"]:
        k = sink_hole(nodes, counters, k, clock[PENDING])
    arm(nodes, clock, counters, k, deadline, place)
    return True


@jit
def advance(state, now, out):
    nodes, clock, counters = state.nodes, state.clock, state.counters
    n = 0
    while clock[PENDING] > 0 and nodes[0]["deadline"] <= now:
        if n == out.size:
            return n, False
        deadline, place = nodes[0]["deadline"], nodes[0]["place"]
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
    return state.clock[PENDING] > 0 and state.nodes[0]["deadline"] <= state.clock[NOW]


@inlined
def next_expiry(state):
    if state.clock[PENDING] == 0:
        return NONE
    return max(state.clock[NOW], state.nodes[0]["deadline"])


@inlined
def next_wakeup(state):
    return next_expiry(state)


def locate(state: State, handle: int) -> dict[str, int | str]:
    place = pending_place(state.nodes, handle)
    return {} if place == NONE else {"index": int(state.nodes[place]["index"])}


def check(state: State) -> None:
    nodes, clock, _ = state
    size = int(clock[PENDING])
    heap = nodes[:size]
    keys = list(zip(heap["deadline"].tolist(), heap["sequence"].tolist(), strict=True))
    free = []
    place = int(clock[FREE])
    while place != NONE and len(free) <= nodes.size:
        free.append(place)
        place = int(nodes[place]["next_free"])
    in_heap = nodes["index"] != NONE
    broken = {
        "the heap is out of order": any(keys[parent_of(k)] > keys[k] for k in range(1, size)),
        "a place does not know its entry's index": bool((nodes["index"][heap["place"]] != np.arange(size)).any()),
        "not exactly the pending places have an index": np.flatnonzero(in_heap).tolist() != sorted(heap["place"]),
        "a free place is pending or in the chain twice": bool(in_heap[free].any()) or len(set(free)) != len(free),
        "places are lost": nodes.size != size + len(free) + int(clock[RETIRED]),
    }
    for rule, is_broken in broken.items():
        if is_broken:
            raise InvariantError(f"{rule}\n  clock: {clock.tolist()}\n  columns: {NODE.names}\n  {nodes}")
