import numpy as np
import pytest

from compare.trial.bench.measure import slots_of
from compare.trial.replay.contestant import contestant
from timers.registry import names


@pytest.mark.parametrize("name", names())
def test_timers_in_slots_are_those_that_a_wheel_finds_there(name):
    timer = contestant(name).new("ms", 0, 300)
    handles = timer.schedule_many(np.arange(2, 1202, 4)).tolist()
    timer.advance(230)
    handles += timer.schedule_many([231, 231, 290, 5000, 230]).tolist()
    if not name.endswith("wheel"):
        assert slots_of(timer) == {}
        return
    places = [timer.locate(handle) for handle in handles]
    pending = [place for place in places if place]
    in_slots = sum("slot" in place for place in pending)
    assert slots_of(timer) == {"in_slots": in_slots / len(pending)}
    # What is due already waits outside of the slots; in the dense wheel, it is in that of now.
    assert 50 < in_slots < len(pending) + (name == "dense-wheel")
