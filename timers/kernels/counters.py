"""Cost counters: how much work an operation did, the same on every machine for the same operations.

A State's `counters` field is None (counting compiles to nothing) or an int64 array indexed by the
constants below. Every kernel counts what its scheme has; the rest stay zero.

The original's work is counted, not the kernel's: buckets, units and rotations in which there is
nothing to do cost nothing, and neither do the occupancy bits that find the others. The counts do
not depend on how many rows `advance` has room for.
"""

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

COUNTERS = (
    "comparisons",
    "timers_touched",
    "slots_visited",
    "refiled",
    "queue_offers",
    "queue_polls",
    "empty_polls",
    "clock_visits",
)
(
    COMPARISONS,  # of two timers' deadlines, or of two buckets' expirations
    TIMERS_TOUCHED,  # visits of advance to a timer, which it leaves, moves or delivers
    SLOTS_VISITED,  # buckets that advance went through to expire, cascade or scan; and empty polls
    REFILED,  # timers that advance took from an upper level or overflow list and inserted again
    QUEUE_OFFERS,  # buckets put into the delay queue of buckets
    QUEUE_POLLS,  # buckets taken out of it
    EMPTY_POLLS,  # buckets taken out of it that held no timer any more
    CLOCK_VISITS,  # moments after the present one at which advance stopped the clock
) = range(len(COUNTERS))


def allocate_counters() -> np.ndarray[Any, Any]:
    """Counters at zero: int64, shape (len(COUNTERS),)."""
    return np.zeros(len(COUNTERS), np.int64)


def count(counters, which, by):
    """Add to a counter, where there are counters."""
    if counters is not None:
        counters[which] += by


# Inlined by LLVM, not by Numba (inline="always"): that loses a call whose argument is a conditional
# expression.
@overload(count, jit_options={"forceinline": True, "_nrt": False})
def _count(counters, which, by):
    if isinstance(counters, types.NoneType):
        return lambda counters, which, by: None

    def add(counters, which, by):
        counters[which] += by

    return add
