"""A delay queue whose sequence numbers run out delivers what one does that has plenty left."""
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from timers import DelayQueue
from timers.kernels.delay_queue import LAST_SEQUENCE, SEQUENCE

STEPS = st.lists(st.tuples(st.sampled_from(["schedule", "schedule", "cancel", "reschedule"]), st.integers(0, 5)), max_size=60)


@given(steps=STEPS, left=st.integers(0, 30), pick=st.randoms(use_true_random=False))
def test_new_numbers_change_nothing(steps, left, pick):
    worn, new = DelayQueue(), DelayQueue()
    worn.state.clock[SEQUENCE] = LAST_SEQUENCE - left
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


def test_numbers_of_all_pending_timers_are_renewed_at_once():
    timer = DelayQueue()
    timer.schedule_many([7, 7, 3, 7])
    timer.state.clock[SEQUENCE] = LAST_SEQUENCE
    timer.schedule(3)
    assert timer.state.clock[SEQUENCE] == 5
    timer.check()
    assert [handle & 0xFFFFFFFF for handle in timer.advance(7).handles.tolist()] == [2, 4, 0, 1, 3]
