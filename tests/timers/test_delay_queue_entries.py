"""A delay queue's entries: numbers that run out change nothing, and what is read together lies
together.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timers import DelayQueue
from timers.kernels.delay_queue import ENTRY, HEAP, LAST_SEQUENCE, ORDER, SEQUENCE

STEPS = st.lists(
    st.tuples(st.sampled_from(["schedule", "schedule", "cancel", "reschedule"]), st.integers(0, 5)),
    max_size=60,
)


@given(steps=STEPS, left=st.integers(0, 30), pick=st.randoms(use_true_random=False))
def test_new_numbers_change_nothing(steps, left, pick):
    worn, new = DelayQueue(), DelayQueue()
    worn.state.cells[SEQUENCE] = LAST_SEQUENCE - left
    handles = []
    for what, deadline in steps:
        if what == "schedule" or not handles:
            handles.append(worn.schedule(deadline))
            assert new.schedule(deadline) == handles[-1]
        elif what == "cancel":
            handle = handles.pop(pick.randrange(len(handles)))
            assert worn.cancel(handle) and new.cancel(handle)
        else:
            handle = pick.choice(handles)
            assert worn.reschedule(handle, deadline) and new.reschedule(handle, deadline)
        worn.check()
    for rows, expected in zip(worn.advance(5), new.advance(5), strict=True):
        np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize("pending", range(1, 8))
def test_numbers_are_new_and_unique_and_tell_who_is_first(pending):
    timer = DelayQueue()
    timer.cancel_many(timer.schedule_many([7] * (pending + 1)))
    armed = [timer.schedule(7) for _ in range(pending)]
    timer.state.cells[SEQUENCE] = LAST_SEQUENCE
    armed.append(timer.schedule(7))
    places = [handle & 0xFFFFFFFF for handle in armed]
    assert places == sorted(places, reverse=True), (
        "of equal numbers the higher place would come first"
    )
    orders = timer.state.cells[HEAP + ORDER :: ENTRY][: pending + 1]
    assert sorted(orders >> 32) == list(range(1, pending + 2))
    assert timer.advance(7).handles.tolist() == armed


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
