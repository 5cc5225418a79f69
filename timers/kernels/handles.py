"""Handles: a place and a generation in one positive int64.

    handle = generation * 2**32 + place        1 <= generation <= 2**31 - 1,  0 <= place < 2**31

The place is the row of the timer; it is re-used after the timer fires or is cancelled. The
generation counts the uses, so a stale handle never matches the place's next timer. Generations
start at 1, so a handle is always positive.
"""

import numpy as np

from timers.kernels.jit import inlined

PLACE_BITS = 32
PLACE_MASK = (1 << PLACE_BITS) - 1
FIRST_GENERATION = 1
LAST_GENERATION = 2**31 - 1
LOWEST_HANDLE = FIRST_GENERATION << PLACE_BITS


@inlined
def encode(generation, place):
    """Return the handle of `place` in its `generation`-th use."""
    return (np.int64(generation) << PLACE_BITS) | place


@inlined
def place_of(handle):
    """The place of a valid handle: a dense index from 0, stable while the timer is pending."""
    return handle & PLACE_MASK


@inlined
def generation_of(handle):
    """The generation of a valid handle."""
    return handle >> PLACE_BITS
