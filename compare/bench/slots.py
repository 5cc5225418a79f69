"""Counts the pending timers that are in the slots of a wheel.

The others wait in a list until the wheel's range reaches them, or until the tick in which they
arrived ends. While all timers wait, a measurement shows the list and not the wheel.
"""

from typing import Any, NamedTuple

import numpy as np

from timers.kernels.dispatch import kernel_of
from timers.kernels.handles import PLACE_BITS
from timers.kernels.pool import BASE, NODE
from timers.schemes.base import KernelTimer

LISTS = 2  # buckets of a timer without slots: one for timers that are due, one for all others


class Slots(NamedTuple):
    """The number of timers pending after holding, and how many of them are in slots."""

    contestant: int  # index
    size: int
    pending: int
    in_slots: int


def slots_of(contestant: int, size: int, timer: Any) -> list[Slots]:
    """Count the pending timers in slots; empty for a timer that is not a wheel. O(pending)."""
    if not isinstance(timer, KernelTimer) or timer.state.nodes.dtype != NODE:
        return []
    nodes, base = timer.state.nodes, int(timer.state.cells[BASE])
    if base <= LISTS:
        return []
    locate = kernel_of(type(timer.state)).locate
    following = nodes["next"].tolist()
    in_slots = 0
    for bucket in np.flatnonzero(nodes["next"][:base] != np.arange(base)).tolist():
        i = following[bucket]
        handle = (int(nodes[i]["generation"]) << PLACE_BITS) | (i - base)
        if "slot" in locate(timer.state, handle):
            while i != bucket:
                in_slots += 1
                i = following[i]
    return [Slots(contestant, size, len(timer), in_slots)]
