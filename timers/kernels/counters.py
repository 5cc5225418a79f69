"""Cost counters: the work of operations, equal on every machine for equal operations.

A State's `counters` field is None (counting compiles to nothing) or an int64 array indexed by the
constants below. Counters of work that does not occur in a scheme stay zero.

The counters show the original's work, not the kernel's. Buckets, units and rotations with nothing
to do are not counted, and neither are the occupancy bits by which they are skipped, nor a look at
the first timer of an ordered structure. The counts do not depend on the number of rows for which
`advance` has room.
"""

from numba import types
from numba.extending import overload

from timers.kernels.jit import FORCE_INLINE

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
    TIMERS_TOUCHED,  # timers that advance examined, and then left, moved or delivered
    SLOTS_VISITED,  # buckets that advance expired, cascaded or scanned, empty polls included
    REFILED,  # timers that advance took from an upper level or overflow list and inserted again
    QUEUE_OFFERS,  # buckets put into the delay queue of buckets
    QUEUE_POLLS,  # buckets taken out of it
    EMPTY_POLLS,  # buckets taken out of it without a timer
    CLOCK_VISITS,  # moments, after the first, at which advance stopped the clock
) = range(len(COUNTERS))


def count(counters, counter, amount):
    """Add to a counter; does nothing if `counters` is None."""
    if counters is not None:
        counters[counter] += amount


# Inlined by LLVM, not by Numba: with inline="always", a call is lost if its argument is a
# conditional expression.
@overload(count, jit_options=FORCE_INLINE)
def _count(counters, counter, amount):
    if isinstance(counters, types.NoneType):
        return lambda counters, counter, amount: None

    def add(counters, counter, amount):
        counters[counter] += amount

    return add
