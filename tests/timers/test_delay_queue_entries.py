"""A delay queue's entries: numbers that run out change nothing, and what is read together lies
together.
"""

import numpy as np
import pytest

from timers import DelayQueue
from timers.kernels.delay_queue import ENTRY, HEAP, LAST_SEQUENCE, ORDER, SEQUENCE


@pytest.mark.parametrize("pending", range(1, 8))
def test_numbers_are_new_and_unique_and_tell_who_is_first(pending):
    timer = DelayQueue()
    timer.cancel_many(timer.schedule_many([7] * (pending + 1)))
    armed = [timer.schedule(7 + k % 2) for k in range(pending)]
    timer.state.cells[SEQUENCE] = LAST_SEQUENCE
    armed.append(timer.schedule(7 + pending % 2))
    places = [handle & 0xFFFFFFFF for handle in armed]
    assert places == sorted(places, reverse=True), (
        "of equal numbers the higher place would come first"
    )
    orders = timer.state.cells[HEAP + ORDER :: ENTRY][: pending + 1]
    assert sorted(orders >> 32) == list(range(1, pending + 2))
    assert timer.advance(8).handles.tolist() == armed[::2] + armed[1::2]


def test_an_entry_has_bits_for_all_numbers_and_places():
    assert (LAST_SEQUENCE << 32) + 2**32 - 1 == 2**63 - 1


@pytest.mark.parametrize("pending", [100, 1000, 10_000])
def test_all_grandchildren_of_an_entry_lie_in_one_line_of_the_cache(pending):
    timer = DelayQueue()
    timer.schedule_many(np.arange(pending))
    cells = timer.state.cells
    first = HEAP + ENTRY * (4 * np.arange(pending // 4 - 2) + 3)
    begin, end = (cells.ctypes.data + 8 * cell for cell in (first, first + 4 * ENTRY - 1))
    np.testing.assert_array_equal(begin // 64, end // 64)
