"""How many pending timers are in the slots of a wheel, where the scheme does its work.

The others wait in a list: for the wheel's range to reach them, or for the end of the tick in which
they arrived. What is measured while all wait is that list, and not the wheel.
"""

from typing import Any, NamedTuple

import numpy as np

from timers.kernels.dispatch import kernel_of
from timers.kernels.handles import PLACE_BITS
from timers.kernels.pool import BASE, NODE
from timers.schemes.base import KernelTimer

LISTS = 2  # buckets of a timer that has no slots: of those due, and of all others


class Slots(NamedTuple):
    """Of the timers pending after holding, how many are in slots."""

    contestant: int  # index
    size: int
    pending: int
    in_slots: int


def slots_of(contestant: int, size: int, timer: Any) -> list[Slots]:
    """Where a timer's pending timers are; empty for one that is not a wheel. O(pending)."""
    if not isinstance(timer, KernelTimer) or timer.state.nodes.dtype != NODE:
        return []
    nodes, base = timer.state.nodes, int(timer.state.cells[BASE])
    if base <= LISTS:
        return []
    locate = kernel_of(type(timer.state)).locate
    following = nodes["next"].tolist()
    found = 0
    for bucket in np.flatnonzero(nodes["next"][:base] != np.arange(base)).tolist():
        i = following[bucket]
        handle = (int(nodes[i]["generation"]) << PLACE_BITS) | (i - base)
        if "slot" in locate(timer.state, handle):
            while i != bucket:
                found += 1
                i = following[i]
    return [Slots(contestant, size, len(timer), found)]
