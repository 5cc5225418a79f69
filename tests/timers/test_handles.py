"""The small functions that all kernels share, against Python's own integers."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from timers.kernels import bitmap, handles, pool
from timers.limits import LIMIT

MOST_PLACE = 2**31 - 1
MOST_BITS = 200  # seven words, the last one not full

bit_sets = st.frozensets(st.integers(0, MOST_BITS - 1))
bits = st.integers(0, MOST_BITS - 1)
bases = st.integers(0, 3)  # other cells before the first word


# ---- handles


@given(generation=st.integers(1, handles.LAST_GENERATION), place=st.integers(0, MOST_PLACE))
@example(1, 0)
@example(handles.LAST_GENERATION, MOST_PLACE)
def test_handle_holds_place_and_generation(generation: int, place: int) -> None:
    handle = handles.encode(np.int32(generation), np.int32(place))  # narrow, and must not wrap
    assert handle == generation * 2**32 + place
    assert handles.LOWEST_HANDLE <= handle <= LIMIT
    assert (handles.place_of(handle), handles.generation_of(handle)) == (place, generation)


# ---- occupancy bits


def words_of(marked: frozenset[int], base: int = 0) -> np.ndarray:
    """The bitmap of a set of positions, after `base` cells whose every bit is set."""
    whole = sum(1 << bit for bit in marked)
    words = [whole >> 32 * k & 2**32 - 1 for k in range(bitmap.words_for(MOST_BITS))]
    return np.array([2**32 - 1] * base + words, np.int64)


@pytest.mark.parametrize(
    ("positions", "words"), [(0, 0), (1, 1), (31, 1), (32, 1), (33, 2), (64, 2), (1282, 41)]
)
def test_words_for_so_many_bits(positions: int, words: int) -> None:
    assert bitmap.words_for(positions) == words


@given(bit=st.integers(0, bitmap.WORD_BITS - 1), above=st.integers(0, 2**32 - 1))
def test_lowest_ignores_the_bits_above(bit: int, above: int) -> None:
    assert bitmap.lowest(np.int64((above << bit | 1 << bit) & 2**32 - 1)) == bit


@given(marked=bit_sets, bit=bits, base=bases)
def test_mark_and_unmark_change_one_bit(marked: frozenset[int], bit: int, base: int) -> None:
    words = words_of(marked, base)
    bitmap.mark(words, base, bit)
    np.testing.assert_array_equal(words, words_of(marked | {bit}, base))
    bitmap.unmark(words, base, bit)
    np.testing.assert_array_equal(words, words_of(marked - {bit}, base))


@pytest.mark.parametrize("bit", [0, 1, 30, 31, 32, 33, 63, 64, 95])
def test_next_marked_is_the_first_in_the_range(bit: int) -> None:
    """Around the edges of three words, of which none must be read beyond the last."""
    edges = [edge for edge in (0, 1, 31, 32, 33, 63, 64, 65, 95, 96, bit, bit + 1) if edge <= 96]
    marked = frozenset([bit, max(bit - 20, 0)])
    words = words_of(marked, base=1)[:4]
    for start in edges:
        for stop in edges:
            expected = min((bit for bit in marked if start <= bit < stop), default=-1)
            assert bitmap.next_marked(words, 1, start, stop) == expected, (start, stop)


# ---- arithmetic

EDGES = (
    *(1, 2, 3, 7, 10, 200, pool.SHORT - 1, pool.SHORT, pool.SHORT + 1),
    *(2**32 - 1, 2**52, 2**53 - 1, LIMIT - 1, LIMIT),
)


def quotients(dividend: int, divisor: int) -> set[int]:
    """What the kernels' two divisions give: one number."""
    short = pool.quotient_by(dividend, divisor, *map(np.int64, pool.reciprocal(divisor)))
    return {int(short), int(pool.quotient(dividend, divisor))}


@pytest.mark.parametrize("divisor", EDGES)
def test_quotient_is_right_where_reciprocals_cease_to_be(divisor: int) -> None:
    for dividend in (0, *EDGES):
        assert quotients(dividend, divisor) == {dividend // divisor}, dividend


def test_reciprocals_are_precise_enough_for_the_greatest_dividends() -> None:
    """Just below a multiple, and close to the limit, is where one binary digit less would show."""
    for divisor in range(1, 2000):
        multiple = pool.SHORT // divisor * divisor
        for dividend in (multiple - 1, multiple):
            if dividend < pool.SHORT:
                assert quotients(dividend, divisor) == {dividend // divisor}
