"""NAME: one sentence about the idea of the structure.

This template is a complete kernel: one list of all timers, sorted by deadline. Copy it to
`timers/kernels/NAME.py`, and its class, `template_scheme.py`, to `timers/schemes/NAME.py`. Tests
ask for this docstring: the idea (for a wheel, with a drawing), an example, the costs, the drawback
and the source.

Example: deadlines 30, 10 and 20 are armed. The list is 10, 20, 30. An advance to 20 takes two.

Costs: schedule O(n), cancel O(1), expiry O(1). Drawback: a schedule passes all later deadlines.

Source: the paper, section or file from which you know it.
"""

from typing import Any, NamedTuple

from timers.kernels.counters import CLOCK_VISITS, TIMERS_TOUCHED, count
from timers.kernels.jit import inlined, jit
from timers.kernels.operations import NONE
from timers.kernels.pool import (
    HEADER,
    NOW,
    PENDING,
    allocate_pool,
    bucket_operations,
    check_pool,
    enlarged_pool,
    handle_of,
    is_full,
    link_sorted,
    move_pool,
    release,
    timers_in,
    unlink,
)
from timers.snapshot import Snapshot

# Buckets are lists of rows: their sentinels are the first rows of `nodes`. A wheel has one for each
# slot, from FIRST_SLOT on.
LIST = 0
BUCKETS = 1
# The cells from HEADER on are yours: a moment, a bitmap, the number of a level.
WORDS = HEADER


class TemplateState(NamedTuple):
    """The State: arrays and nothing else. Its name must be its own (not `TemplateState`)."""

    nodes: Any  # NODE, shape (BUCKETS + capacity,): sentinels, then a row for each place
    cells: Any  # int64, shape (WORDS,): the header of pool.py, then yours
    counters: Any  # int64, shape (len(COUNTERS),), or None if nothing is counted


State = TemplateState


def allocate(start: int, capacity: int, parameters: Any, counters: Any) -> State:
    """Python: the State of a new timer. `parameters` are those of the class, by name."""
    nodes, cells = allocate_pool(start, capacity, BUCKETS, WORDS)
    return State(nodes, cells, counters)


# How a State grows. These two serve every kernel in which only the places grow; a heap, whose
# entries grow as well, has its own (see `delay_queue.py`).
enlarged, move_all = enlarged_pool, move_pool


@inlined
def insert(nodes, cells, counters, i, deadline):
    """Put row `i`, which is in no bucket, where its deadline belongs. All arming goes through here.

    `count` adds to a counter if counting is on; it costs nothing otherwise.
    """
    nodes[i]["deadline"] = deadline
    link_sorted(nodes, counters, LIST, i)


# Handles, places and generations are those of pool.py.
schedule, cancel, reschedule = bucket_operations(insert)


@jit
def advance(state, now, out):
    """Deliver what is due up to `now`, in the order of firing.

    It must be able to stop after each row, because `out` may be full, and go on at the next call:
    what it has to remember is in `cells`. NOW is the moment at which a row fires.
    """
    nodes, cells, counters = state.nodes, state.cells, state.counters
    n = 0
    while cells[PENDING] > 0:
        i = nodes[LIST]["next"]
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
        unlink(nodes, i)
        release(nodes, cells, i)
    if is_full(out, n) and cells[NOW] < now:
        return n, False
    cells[NOW] = now
    return n, True


@inlined
def due(state):
    """Whether an advance to the present moment would deliver something."""
    nodes, cells = state.nodes, state.cells
    return cells[PENDING] > 0 and nodes[nodes[LIST]["next"]]["deadline"] <= cells[NOW]


@inlined
def next_expiry(state):
    """A lower bound of the next moment at which a timer fires; NONE if nothing is pending.

    The class says whether it is exact.
    """
    nodes, cells = state.nodes, state.cells
    if cells[PENDING] == 0:
        return NONE
    return max(cells[NOW], nodes[nodes[LIST]["next"]]["deadline"])


# The next moment at which `advance` has work, such as a cascade. It should take O(1) or O(levels):
# services set their alarm by it.
next_wakeup = next_expiry


def snapshot(state: State) -> Snapshot:
    """Python: the contents, for drawings and tests. A heap states its arity."""
    return Snapshot(int(state.cells[NOW]), lists={"list": timers_in(state, LIST)})


def check(state: State) -> None:
    """Python: raise InvariantError unless every row is where it belongs. Tests call it often."""
    nodes, cells, _ = state

    def belongs(bucket: int, i: int) -> bool:
        before = int(nodes[i]["prev"])
        return before == bucket or bool(nodes[before]["deadline"] <= nodes[i]["deadline"])

    check_pool(nodes, cells, belongs)
