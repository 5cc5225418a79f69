"""Occupancy bits: a bit is set if its bucket is not empty, so that empty time can be skipped.

The bits are part of an int64 array, 32 to a word. So a word is never negative, and shifts give the
same result compiled and interpreted.
"""

from numba.core import cgutils, types
from numba.extending import lower_builtin, type_callable

from timers.kernels.jit import inlined

WORD_BITS = 32
_WORD_SHIFT = 5
_BIT_MASK = WORD_BITS - 1
_WORD_MASK = (1 << WORD_BITS) - 1


def words_for(bits: int) -> int:
    """Return the number of words for `bits` bits."""
    return -(-bits // WORD_BITS)


def lowest(word):
    """Return the position of the lowest set bit of a word that is not zero."""
    return (int(word) & -int(word)).bit_length() - 1


@type_callable(lowest)
def _type_of_lowest(context):
    return lambda word: word


@lower_builtin(lowest, types.Integer)
def _lowest(context, builder, signature, arguments):
    (word,) = arguments
    return builder.cttz(word, cgutils.true_bit)  # undefined for zero


@inlined
def mark(words, base, bit):
    """Set a bit; `base` is the index of the bitmap's first word in `words`."""
    words[base + (bit >> _WORD_SHIFT)] |= 1 << (bit & _BIT_MASK)


@inlined
def unmark(words, base, bit):
    """Clear a bit."""
    words[base + (bit >> _WORD_SHIFT)] &= ~(1 << (bit & _BIT_MASK))


@inlined
def next_marked(words, base, start, stop):
    """Return the first set bit in [start, stop), or -1. O((stop - start) / 32)."""
    if start >= stop:
        return -1
    i = start >> _WORD_SHIFT
    word = words[base + i] & (_WORD_MASK << (start & _BIT_MASK))
    last = (stop - 1) >> _WORD_SHIFT
    while word == 0:
        i += 1
        if i > last:
            return -1
        word = words[base + i]
    bit = (i << _WORD_SHIFT) + lowest(word)
    return bit if bit < stop else -1


@inlined
def ahead_in_ring(words, base, first, size, start):
    """Return the distance from bit `start` to the first set bit of a ring, or -1. It may be 0.

    The ring is [first, first + size).
    """
    bit = next_marked(words, base, start, first + size)
    if bit >= 0:
        return bit - start
    bit = next_marked(words, base, first, start)
    return bit - start + size if bit >= 0 else -1
