"""Delay queue: a binary heap ordered by deadline, with a position index for random removal.

The heap's entry k has its parent at (k - 1) // 2 and its children at 2k + 1 and 2k + 2. An entry
contains its deadline and a sequence number, so a comparison reads nothing else and equal deadlines
fire in the order of arming. Each place contains the index of its entry, so a cancel finds it at
once. An entry takes 16 bytes and a place 8, so a pending timer takes 24. Sequence numbers have 31
bits; before they run out, the entries are renumbered.

Example: deadlines 30, 10, 20 are armed in this order. The heap is [10, 30, 20]: 30 sank from the
root when 10 was added. Cancelling 30 moves the last entry, 20, to its index 1: [10, 20].

Costs: schedule O(log n), O(1) on average; cancel and re-arm O(log n), wherever the entry is; expiry
O(log n). Drawback: each expiry walks from the root to a leaf, with one or two cache misses a level.

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
from timers.kernels.memory import lengthened, zeros
from timers.kernels.operations import NONE, Places, operations
from timers.kernels.pool import (
    FREE,
    HEADER,
    NOW,
    PENDING,
    RETIRED,
    ROWS,
    is_full,
    is_replaced,
    move_cells,
    move_rows,
)
from timers.kernels.prefetch import prefetch
from timers.snapshot import Snapshot, Waiting

PLACE = np.dtype(
    [
        ("index", "i4"),  # of its entry in the heap; if free, -2 - the next free place, or NONE
        ("generation", "i4"),  # of its current or next use
    ]
)

SEQUENCE = HEADER  # number of armings since the last renumbering
# Two cells for each entry of the heap start here, where an entry's four grandchildren share a line.
HEAP = HEADER + 2
DEADLINE = 0
ORDER = 1  # sequence number of the arming * 2**32 + the place; the number is unique
ENTRY = 2
LAST_SEQUENCE = 2**31 - 1


class DelayQueueState(NamedTuple):
    nodes: Any  # PLACE, shape (capacity,)
    cells: Any  # int64, shape (HEAP + ENTRY * capacity,): header, SEQUENCE, the heap
    counters: Any  # int64, shape (len(COUNTERS),), or None


State = DelayQueueState


def allocate(start: int, capacity: int, parameters: Any, counters: Any) -> State:
    nodes, cells = zeros(capacity, PLACE), zeros(HEAP + ENTRY * capacity, np.int64)
    nodes["generation"] = FIRST_GENERATION
    nodes["index"] = -2 - np.arange(1, capacity + 1)
    nodes["index"][-1] = -2 - NONE
    cells[HEAP:] = 0  # its pages are provided now, not at the first inserts
    cells[NOW], cells[ROWS] = start, capacity
    return State(nodes, cells, counters)


def enlarged(state: State, capacity: int) -> State:
    nodes, cells, counters = state
    return State(lengthened(nodes, capacity), lengthened(cells, HEAP + ENTRY * capacity), counters)


@jit
def move_all(state, target):
    nodes, cells, larger, target_cells = state.nodes, state.cells, target.nodes, target.cells
    if is_replaced(nodes, cells):
        return False
    move_rows(nodes, larger)
    for i in range(nodes.size, larger.size):
        larger[i]["generation"] = FIRST_GENERATION
        larger[i]["index"] = -2 - (i + 1)
        target_cells[entry_of(i, DEADLINE)] = 0  # its page is provided now, not at an insert
    move_cells(cells, target_cells)
    larger[larger.size - 1]["index"] = -2 - target_cells[FREE]
    target_cells[FREE] = nodes.size
    target_cells[ROWS] = larger.size
    return True


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
    """The index in `cells` of entry k's DEADLINE or ORDER."""
    return np.uint64(HEAP + ENTRY * k + cell)  # unsigned: no test for a negative index


@inlined
def handle_of(nodes, cells, i):
    """The handle of a pending place."""
    return encode(nodes[i]["generation"], i)


@inlined
def row_of(nodes, cells, handle):
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
def put(nodes, cells, k, deadline, order):
    """Write an entry, and its index into its place."""
    cells[entry_of(k, DEADLINE)] = deadline
    cells[entry_of(k, ORDER)] = order
    nodes[np.uint64(owner_of(order))]["index"] = k


@inlined
def move(nodes, cells, source, target):
    """Copy an entry, and store its new index in its place."""
    put(nodes, cells, target, cells[entry_of(source, DEADLINE)], cells[entry_of(source, ORDER)])


@inlined
def precedes(cells, k, deadline, order):
    """Return whether entry k precedes (deadline, order)."""
    other = cells[entry_of(k, DEADLINE)]
    return other < deadline or (other == deadline and cells[entry_of(k, ORDER)] < order)


@inlined
def sift_up(nodes, cells, counters, k, deadline, order):
    """Put an entry at index k or above, moving down the ancestors that it precedes."""
    while k > 0:
        parent = parent_of(k)
        count(counters, COMPARISONS, 1)
        if precedes(cells, parent, deadline, order):
            break
        move(nodes, cells, parent, k)
        k = parent
    put(nodes, cells, k, deadline, order)


@inlined
def sink_hole(nodes, cells, counters, k, size):
    """Move the smaller child into the hole at k until the hole is a leaf; return its index."""
    while child_of(k) + 1 < size:
        child = child_of(k)
        # Two levels ahead, so that two cache misses overlap. A fetch past the end has no effect.
        grandchild = child_of(child)
        prefetch(cells, entry_of(grandchild, DEADLINE))
        count(counters, COMPARISONS, 1)
        # No branch: which child is smaller cannot be predicted.
        second = precedes(
            cells, child + 1, cells[entry_of(child, DEADLINE)], cells[entry_of(child, ORDER)]
        )
        child += 1 if second else 0
        move(nodes, cells, child, k)
        k = child
    if child_of(k) < size:
        move(nodes, cells, child_of(k), k)
        k = child_of(k)
    return k


@jit
def remove_entry(nodes, cells, counters, k):
    """Take entry k out of the heap: its hole sinks to a leaf, where the last entry rises."""
    cells[PENDING] -= 1
    size = cells[PENDING]
    if k == size:
        return
    deadline, order = cells[entry_of(size, DEADLINE)], cells[entry_of(size, ORDER)]
    k = sink_hole(nodes, cells, counters, k, size)
    sift_up(nodes, cells, counters, k, deadline, order)


@jit
def renumber(nodes, cells):
    """Sort the heap, and renumber its entries. O(n log n), in place, not counted.

    A sorted array is a heap, and numbers in that order keep the order of equal deadlines.
    """
    size = cells[PENDING]
    for _ in range(size):
        deadline, order = cells[entry_of(0, DEADLINE)], cells[entry_of(0, ORDER)]
        remove_entry(nodes, cells, None, 0)
        put(nodes, cells, cells[PENDING], deadline, order)  # where the heap has just shrunk
    cells[PENDING] = size
    for low in range((size + 1) >> 1):  # reverse it: it is in falling order
        high = size - 1 - low
        first, last = cells[entry_of(high, ORDER)], cells[entry_of(low, ORDER)]
        early, late = cells[entry_of(high, DEADLINE)], cells[entry_of(low, DEADLINE)]
        put(nodes, cells, high, late, order_of(high + 1, owner_of(last)))
        put(nodes, cells, low, early, order_of(low + 1, owner_of(first)))
    cells[SEQUENCE] = size


@inlined
def claim(nodes, cells):
    """Take a free place; the caller has reserved one."""
    place = np.int64(np.uint32(cells[FREE]))  # tells Numba that the index is not negative
    cells[FREE] = -2 - nodes[place]["index"]
    return place


@inlined
def release(nodes, cells, i):
    """Free a place; its handle is dead."""
    generation = nodes[i]["generation"]
    if generation == LAST_GENERATION:
        nodes[i]["index"] = NONE
        cells[RETIRED] += 1
    else:
        nodes[i]["generation"] = generation + 1
        nodes[i]["index"] = -2 - cells[FREE]
        cells[FREE] = i


@inlined
def number_arming(nodes, cells):
    """Make SEQUENCE the number of a new arming."""
    if cells[SEQUENCE] == LAST_SEQUENCE:
        renumber(nodes, cells)
    cells[SEQUENCE] += 1


@inlined
def insert(nodes, cells, counters, i, deadline):
    """Add an entry for a place to the heap."""
    number_arming(nodes, cells)
    k = cells[PENDING]
    cells[PENDING] += 1
    sift_up(nodes, cells, counters, k, deadline, order_of(cells[SEQUENCE], i))


@inlined
def remove(nodes, cells, counters, i):
    """Take a place's entry out of the heap."""
    remove_entry(nodes, cells, counters, nodes[i]["index"])


@inlined
def rearm(nodes, cells, counters, i, deadline):
    """Give a place's entry, which stays in the heap, another deadline."""
    number_arming(nodes, cells)
    # A re-arm is the newest of its deadline: the entry moves up only if the deadline is earlier,
    # and down if it is later or equal.
    k = nodes[i]["index"]
    if deadline >= cells[entry_of(k, DEADLINE)]:
        k = sink_hole(nodes, cells, counters, k, cells[PENDING])
    sift_up(nodes, cells, counters, k, deadline, order_of(cells[SEQUENCE], i))


schedule, cancel, reschedule = operations(
    Places(claim, release, handle_of, row_of), insert, remove, rearm
)


@jit
def advance(state, now, out):
    nodes, cells, counters = state.nodes, state.cells, state.counters
    n = 0
    while cells[PENDING] > 0 and cells[entry_of(0, DEADLINE)] <= now:
        if n == out.size:
            return n, False
        deadline, place = cells[entry_of(0, DEADLINE)], owner_of(cells[entry_of(0, ORDER)])
        if deadline > cells[NOW]:
            cells[NOW] = deadline
            count(counters, CLOCK_VISITS, 1)
        out[n]["handle"] = handle_of(nodes, cells, place)
        out[n]["deadline"] = deadline
        out[n]["fired_at"] = cells[NOW]
        n += 1
        count(counters, TIMERS_TOUCHED, 1)
        remove_entry(nodes, cells, counters, 0)
        release(nodes, cells, place)
    if is_full(out, n) and cells[NOW] < now:
        return n, False
    cells[NOW] = now
    return n, True


@inlined
def due(state):
    return state.cells[PENDING] > 0 and state.cells[entry_of(0, DEADLINE)] <= state.cells[NOW]


@inlined
def next_expiry(state):
    if state.cells[PENDING] == 0:
        return NONE
    return max(state.cells[NOW], state.cells[entry_of(0, DEADLINE)])


next_wakeup = next_expiry


def snapshot(state: State) -> Snapshot:
    nodes, cells, _ = state
    entries = cells[HEAP : HEAP + ENTRY * cells[PENDING]].reshape(-1, ENTRY).tolist()
    heap = [
        Waiting(int(handle_of(nodes, cells, owner_of(order))), deadline)
        for deadline, order in entries
    ]
    return Snapshot(int(cells[NOW]), heap=tuple(heap))


def check(state: State) -> None:
    nodes, cells, _ = state
    size = int(cells[PENDING])
    heap = cells[HEAP : HEAP + ENTRY * size].reshape(size, ENTRY)
    keys = heap.tolist()
    owners = heap[:, ORDER] & PLACE_MASK
    free: list[int] = []
    place = int(cells[FREE])
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
        "places are lost": nodes.size != size + len(free) + int(cells[RETIRED]),
    }
    for rule, is_broken in broken.items():
        if is_broken:
            raise InvariantError(
                f"{rule}\n  cells: {cells[: HEAP + ENTRY * size].tolist()}\n  places: {nodes}"
            )
