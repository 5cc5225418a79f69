"""`due(state)`: whether an advance to the same moment would deliver something. Replay asks it after
each arming.
"""

import pytest

from timers import names, timer_class
from timers.kernels import dispatch

KERNELS = [name for name in names() if hasattr(timer_class(name), "locate")]


@pytest.mark.parametrize("name", KERNELS)
def test_due_says_whether_an_advance_to_now_delivers(name):
    timer = timer_class(name)(start=1_000)
    assert not dispatch.due(timer.state)
    timer.schedule(5_000)
    assert not dispatch.due(timer.state)
    passed = timer.schedule(999)
    assert dispatch.due(timer.state)
    assert timer.cancel(passed)
    assert not dispatch.due(timer.state)
    now = timer.schedule(1_000)
    assert dispatch.due(timer.state)
    assert timer.reschedule(now, 2_000)
    assert not dispatch.due(timer.state)
    assert timer.advance(1_000).handles.size == 0
    timer.schedule_many([0, 1_000])
    assert dispatch.due(timer.state)
    assert timer.advance(1_000).fired_at.tolist() == [1_000, 1_000]
    assert not dispatch.due(timer.state)
