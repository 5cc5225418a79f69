"""Duration lists: one list for each distinct delay, and a heap of the lists.

Timers with the same delay expire in the order in which they were armed, so a list of them stays
sorted if new ones are appended. A hash table finds the list of a delay. The heap orders the lists
by the deadlines of their first timers. Of two lists with the same first deadline, the one with the
longer delay comes first, since its timer was armed earlier. A list exists while it has timers.

Each list is circular, without a sentinel: its first row stands for it. The row's `rounds` is the
index of the list's entry in the heap; all other rows have NONE there. An entry has the delay and
the first row. So a list takes room in proportion to the places: in the worst case, each timer has a
delay of its own. A pending timer takes 48 bytes.

Example: at 0, timers with the delays 30, 10 and 30 are armed; at 5, one with the delay 10. The list
of 10 holds the deadlines 10 and 15, that of 30 holds 30 and 30. The heap is [10, 30]. At 10 the
first timer fires, and the list of 10 stays in front: its first deadline is now 15.

Costs: with d distinct delays, schedule O(1), O(log d) for a delay that no other timer has; cancel
and re-arm O(1), O(log d) for the first timer of a list; expiry O(log d). Drawback: if most delays
differ, this is a heap with a hash table on top.

Source: Node.js, lib/internal/timers.js (a map from duration to list, and a PriorityQueue of
lists). The traits list how this differs from Node.js.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from timers.kernels.counters import CLOCK_VISITS, COMPARISONS, TIMERS_TOUCHED, count
from timers.kernels.jit import inlined, jit
from timers.kernels.memory import lengthened
from timers.kernels.operations import NONE, operations
from timers.kernels.pool import (
    HEADER,
    NO_ROW,
    NOW,
    PLACES,
    allocate_pool,
    check_places,
    demanded,
    enlarged_pool,
    handle_of,
    is_full,
    link,
    move_pool,
    release,
    rows_after,
    unlink,
    waiting,
)
from timers.snapshot import Snapshot

BUCKETS = 1  # sentinels: row 0, which stands for no row

LISTS = HEADER  # number of lists
CHAINS = HEADER + 1  # number of chains of the hash table: the highest power of two up to capacity
ENTRIES = HEADER + 2  # ENTRY cells for each place start here
DELAY = 0  # of the heap's entry k
LINKS = 1  # the list's first row + 2**32 * the first row of the next list of its chain, or NO_ROW
CHAIN = 2  # of the hash table's chain k: the first row of its first list, or NO_ROW
ENTRY = 3

HALF = 32  # bits of a row in LINKS, and of a hash value
LOW = (1 << HALF) - 1
MULTIPLIER = (
    663608941  # 2**30 divided by the golden ratio: a product with 32 bits stays below 2**63
)


class DurationListsState(NamedTuple):
    nodes: Any  # NODE, shape (BUCKETS + capacity,): a sentinel without a bucket, then places
    cells: Any  # int64, shape (ENTRIES + ENTRY * capacity,): header, cells above, entries
    counters: Any  # int64, shape (len(COUNTERS),), or None


State = DurationListsState


def allocate(start: int, capacity: int, parameters: Any, counters: Any) -> State:
    nodes, cells = allocate_pool(start, capacity, BUCKETS, ENTRIES + ENTRY * capacity)
    cells[CHAINS] = 1 << (capacity.bit_length() - 1)
    return State(nodes, cells, counters)


def enlarged(state: State, capacity: int) -> State:
    larger: State = enlarged_pool(state, capacity)
    return larger._replace(cells=lengthened(state.cells, ENTRIES + ENTRY * capacity))


@jit
def move_all(state, target):
    if not move_pool(state, target):
        return False
    nodes, cells = target.nodes, target.cells
    chains = cells[CHAINS]
    while 2 * chains <= nodes.size - BUCKETS:
        chains *= 2
    if chains > cells[CHAINS]:
        cells[CHAINS] = chains
        for k in range(chains):
            cells[entry_of(k, CHAIN)] = NO_ROW
        for k in range(cells[LISTS]):
            chain, first = chain_of(cells, cells[entry_of(k, DELAY)]), first_of(cells, k)
            cells[entry_of(k, LINKS)] = links_of(first, cells[chain])
            cells[chain] = first
    return True


@inlined
def entry_of(k, cell):
    """The index in `cells` of DELAY or LINKS of the heap's entry k, or of CHAIN of chain k."""
    return np.uint64(ENTRIES + ENTRY * k + cell)  # unsigned: no test for a negative index


@inlined
def links_of(first, next_first):
    """The LINKS of an entry."""
    return first | np.int64(next_first) << HALF


@inlined
def first_of(cells, k):
    """The first row of the list of entry k."""
    return cells[entry_of(k, LINKS)] & LOW


@inlined
def next_in_chain(cells, k):
    """The first row of the list after that of entry k in its chain, or NO_ROW."""
    return cells[entry_of(k, LINKS)] >> HALF


@inlined
def chain_of(cells, delay):
    """The index in `cells` of the hash table's chain of a delay."""
    value = ((delay ^ (delay >> HALF)) & LOW) * MULTIPLIER & LOW
    return entry_of((value * cells[CHAINS]) >> HALF, CHAIN)


@inlined
def list_of(nodes, cells, delay):
    """The first row of the list of a delay, or NO_ROW."""
    first = cells[chain_of(cells, delay)]
    while first != NO_ROW:
        k = nodes[first]["rounds"]
        if cells[entry_of(k, DELAY)] == delay:
            break
        first = next_in_chain(cells, k)
    return first


@jit
def replace_in_chain(nodes, cells, delay, first, other):
    """Put another first row, or the rest of the chain, in the place of a list's first row."""
    chain = chain_of(cells, delay)
    row = cells[chain]
    if row == first:
        cells[chain] = other
        return
    while True:
        k = nodes[row]["rounds"]
        after = next_in_chain(cells, k)
        if after == first:
            cells[entry_of(k, LINKS)] = links_of(row, other)
            return
        row = after


@inlined
def precedes(nodes, cells, counters, k, delay, first):
    """Return whether the list of entry k comes before that of this delay and first row."""
    count(counters, COMPARISONS, 1)
    deadline, other = nodes[first]["deadline"], nodes[first_of(cells, k)]["deadline"]
    return other < deadline or (other == deadline and cells[entry_of(k, DELAY)] > delay)


@inlined
def put(nodes, cells, k, delay, links):
    """Write an entry, and its index into the list's first row."""
    cells[entry_of(k, DELAY)] = delay
    cells[entry_of(k, LINKS)] = links
    nodes[links & LOW]["rounds"] = k


@inlined
def move(nodes, cells, source, target):
    """Copy an entry, and store its new index in the list's first row."""
    put(nodes, cells, target, cells[entry_of(source, DELAY)], cells[entry_of(source, LINKS)])


@jit
def sift_up(nodes, cells, counters, k, delay, links):
    """Put an entry at index k or above, moving down the ancestors that it precedes."""
    while k > 0:
        parent = (k - 1) >> 1
        if precedes(nodes, cells, counters, parent, delay, links & LOW):
            break
        move(nodes, cells, parent, k)
        k = parent
    put(nodes, cells, k, delay, links)


@jit
def sink_hole(nodes, cells, counters, k):
    """Move the earlier child into the hole at k until the hole is a leaf; return its index."""
    size = cells[LISTS]
    while 2 * k + 1 < size:
        child = 2 * k + 1
        if child + 1 < size and precedes(
            nodes, cells, counters, child + 1, cells[entry_of(child, DELAY)], first_of(cells, child)
        ):
            child += 1
        move(nodes, cells, child, k)
        k = child
    return k


@inlined
def insert(nodes, cells, counters, i, deadline):
    """Set a row's deadline, and append the row to the list of its delay."""
    nodes[i]["deadline"] = deadline
    nodes[i]["rounds"] = NONE
    delay = deadline - cells[NOW]
    first = list_of(nodes, cells, delay)
    if first != NO_ROW:
        link(nodes, first, i)
    else:
        add_list(nodes, cells, counters, i, delay)


@jit
def add_list(nodes, cells, counters, i, delay):
    """Make a row the only one of a new list."""
    nodes[i]["next"] = nodes[i]["prev"] = i
    chain, k = chain_of(cells, delay), cells[LISTS]
    links = links_of(i, cells[chain])
    cells[chain] = i
    cells[LISTS] += 1
    sift_up(nodes, cells, counters, k, delay, links)


@inlined
def remove(nodes, cells, counters, i):
    """Take a row out of its list."""
    if nodes[i]["rounds"] != NONE:
        remove_first(nodes, cells, counters, i)
    unlink(nodes, i)


@jit
def remove_first(nodes, cells, counters, i):
    """Make the row after a list's first row the first one, or end the list if there is none."""
    k, after = np.int64(nodes[i]["rounds"]), np.int64(nodes[i]["next"])
    delay, rest = cells[entry_of(k, DELAY)], next_in_chain(cells, k)
    if after != i:
        replace_in_chain(nodes, cells, delay, i, after)
        links = links_of(after, rest)
    else:
        replace_in_chain(nodes, cells, delay, i, rest)
        cells[LISTS] -= 1
        last = cells[LISTS]
        if k == last:
            return
        delay, links = cells[entry_of(last, DELAY)], cells[entry_of(last, LINKS)]
    k = sink_hole(nodes, cells, counters, k)
    sift_up(nodes, cells, counters, k, delay, links)


schedule, cancel, reschedule = operations(PLACES, insert, remove)


@jit
def advance(state, now, out):
    nodes, cells, counters = state.nodes, state.cells, state.counters
    n = 0
    while cells[LISTS] > 0:
        i = first_of(cells, 0)
        deadline = nodes[i]["deadline"]
        if deadline > now:
            break
        if n == out.size:
            return n, False
        if deadline > cells[NOW]:
            cells[NOW] = deadline
            count(counters, CLOCK_VISITS, 1)
        out[n]["handle"] = handle_of(nodes, cells, i)
        out[n]["deadline"] = deadline
        out[n]["fired_at"] = cells[NOW]
        n += 1
        count(counters, TIMERS_TOUCHED, 1)
        remove(nodes, cells, counters, i)
        release(nodes, cells, i)
    if is_full(out, n) and cells[NOW] < now:
        return n, False
    cells[NOW] = now
    return n, True


@inlined
def due(state):
    nodes, cells = state.nodes, state.cells
    return cells[LISTS] > 0 and nodes[first_of(cells, 0)]["deadline"] <= cells[NOW]


@inlined
def next_expiry(state):
    nodes, cells = state.nodes, state.cells
    if cells[LISTS] == 0:
        return NONE
    return max(cells[NOW], nodes[first_of(cells, 0)]["deadline"])


next_wakeup = next_expiry


def snapshot(state: State) -> Snapshot:
    nodes, cells, _ = state
    entries = range(int(cells[LISTS]))
    firsts = {int(cells[entry_of(k, DELAY)]): int(first_of(cells, k)) for k in entries}
    lists = {
        f"delay {delay}": waiting(state, [first, *rows_after(nodes, first)])
        for delay, first in sorted(firsts.items())
    }
    return Snapshot(int(cells[NOW]), lists=lists)


def check(state: State) -> None:
    nodes, cells, _ = state
    now, size = int(cells[NOW]), int(cells[LISTS])
    entries = [(int(cells[entry_of(k, DELAY)]), int(first_of(cells, k))) for k in range(size)]
    after, previous, deadlines, indices = (
        nodes[name].tolist() for name in ("next", "prev", "deadline", "rounds")
    )
    demand, seen = partial(demanded, nodes, cells), [False] * nodes.size
    for k, (delay, first) in enumerate(entries):
        demand(
            BUCKETS <= first < nodes.size and indices[first] == k,
            f"the first row {first} of entry {k} does not have the entry's index",
        )
        other_delay, other_first = entries[(k - 1) >> 1] if k > 0 else (delay, first)
        demand(
            (deadlines[other_first], -other_delay) <= (deadlines[first], -delay),
            f"entry {k} comes before its parent",
        )
        before, i, is_first = previous[first], first, True
        while is_first or i != first:
            demand(
                BUCKETS <= i < nodes.size and not seen[i],
                f"row {i} of the list of delay {delay} is not a place, or is in two lists",
            )
            demand(previous[i] == before, f"row {i} of the list of delay {delay} is linked wrongly")
            demand(
                is_first or (indices[i] == NONE and deadlines[before] <= deadlines[i]),
                f"row {i} of the list of delay {delay} is out of order, or has an index",
            )
            armed_at = deadlines[i] - delay
            demand(
                max(deadlines[i], armed_at) >= now >= armed_at,
                f"row {i} of deadline {deadlines[i]} cannot have the delay {delay}",
            )
            seen[i], is_first = True, False
            before, i = i, after[i]
        demand(previous[first] == before, f"the list of delay {delay} does not end at its last row")
    capacity, chains = nodes.size - BUCKETS, int(cells[CHAINS])
    demand(chains <= capacity < 2 * chains, f"{chains} chains for {capacity} places")
    hashed = 0
    for chain in range(ENTRIES + CHAIN, ENTRIES + ENTRY * int(cells[CHAINS]), ENTRY):
        first = int(cells[chain])
        while first != NO_ROW and hashed < size:
            hashed += 1
            is_entry = first < nodes.size and 0 <= indices[first] < size
            demand(
                is_entry and entries[indices[first]][1] == first,
                f"row {first} in the hash table is not the first one of a list",
            )
            delay = entries[indices[first]][0]
            demand(chain_of(cells, delay) == chain, f"the delay {delay} is in the wrong chain")
            first = int(next_in_chain(cells, indices[first]))
        demand(first == NO_ROW, "a list is in the hash table twice")
    demand(hashed == size, f"{hashed} lists are in the hash table, {size} in the heap")
    check_places(nodes, cells, seen)
