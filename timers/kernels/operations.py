"""`schedule`, `cancel` and `reschedule`, which all kernels share.

A kernel only adds the functions that put a timer into its structure and remove it.
"""

from typing import Any, NamedTuple

from timers.kernels.jit import inlined

NONE = -1  # no moment, no row


class Places(NamedTuple):
    """A kernel's compiled functions for places."""

    claim: Any  # (nodes, cells) -> a free row, now taken
    release: Any  # (nodes, cells, i): free a row
    handle_of: Any  # (nodes, cells, i) -> the handle of a pending row
    row_of: Any  # (nodes, cells, handle) -> the row of a pending timer, or NONE


def operations(places: Places, insert: Any, remove: Any, rearm: Any = None) -> tuple[Any, Any, Any]:
    """Return the three operations of a kernel.

    `insert(nodes, cells, counters, i, deadline)` puts a row into the structure, and
    `remove(nodes, cells, counters, i)` takes it out. `rearm` has the parameters of `insert` and
    gives a row in the structure another deadline. Without it, the row is removed and inserted.
    """

    @inlined
    def remove_and_insert(nodes, cells, counters, i, deadline):
        remove(nodes, cells, counters, i)
        insert(nodes, cells, counters, i, deadline)

    move = rearm or remove_and_insert
    claim, release, handle_of, row_of = places

    @inlined
    def schedule(state, deadline):
        nodes, cells, counters = state.nodes, state.cells, state.counters
        i = claim(nodes, cells)
        insert(nodes, cells, counters, i, deadline)
        return handle_of(nodes, cells, i)

    @inlined
    def cancel(state, handle):
        nodes, cells, counters = state.nodes, state.cells, state.counters
        i = row_of(nodes, cells, handle)
        if i == NONE:
            return False
        remove(nodes, cells, counters, i)
        release(nodes, cells, i)
        return True

    @inlined
    def reschedule(state, handle, deadline):
        nodes, cells, counters = state.nodes, state.cells, state.counters
        i = row_of(nodes, cells, handle)
        if i == NONE:
            return False
        move(nodes, cells, counters, i, deadline)
        return True

    return schedule, cancel, reschedule
