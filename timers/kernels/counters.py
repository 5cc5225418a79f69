"""Cost counters: how much work an operation did, the same on every machine for the same operations.

A State's `counters` field is None (counting compiles to nothing) or an int64 array indexed by the
constants below. Every kernel counts what its scheme has; the rest stay zero.

What is counted is the original's work, whatever a kernel saves by its occupancy bits: buckets,
units and rotations in which nothing is found do not count. How many rows `advance` has room for
changes no counter.
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
    TIMERS_TOUCHED,  # looks at a timer by advance: each leaves it where it is, files it, or delivers it
    SLOTS_VISITED,  # buckets gone through by advance to expire, cascade or find what came within reach; and empty polls
    REFILED,  # timers that advance took from an upper level or an overflow list, and filed again or found due
    QUEUE_OFFERS,  # buckets put into the delay queue of buckets
    QUEUE_POLLS,  # buckets taken out of it
    EMPTY_POLLS,  # ... of which held no timer any more
    CLOCK_VISITS,  # moments after the present one at which advance stopped the clock to look at something
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
