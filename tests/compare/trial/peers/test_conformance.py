"""Timers that break the contract in one way each fail the model-based check."""

from itertools import count

import numpy as np
import pytest
from hypothesis import Phase

from compare.trial.peers.conformance import check_factory
from tests.compare import own_timers
from timers import HeapqDelayQueue

QUICK = {
    "max_examples": 60,
    "stateful_step_count": 20,
    "derandomize": True,
    "database": None,
    "phases": [Phase.generate],  # whether it fails is all that is asked
}


class NumpyHandles(HeapqDelayQueue):
    def schedule(self, deadline):
        return np.int64(super().schedule(deadline))


class NoGenerations(HeapqDelayQueue):
    """A handle of `schedule` is a place, which the next timer has again."""

    def __init__(self, **keywords):
        super().__init__(**keywords)
        self._real = {}

    def schedule(self, deadline):
        place = next(place for place in count(1) if place not in self._real)
        self._real[place] = super().schedule(deadline)
        return place

    def cancel(self, handle):
        return super().cancel(self._real.pop(handle, handle))

    def reschedule(self, handle, deadline):
        return super().reschedule(self._real.get(handle, handle), deadline)

    def advance(self, now, limit=None):
        rows = super().advance(now, limit)
        places = {real: place for place, real in self._real.items()}
        fired = [places.get(real, real) for real in rows.handles.tolist()]
        for place in fired:
            self._real.pop(place, None)
        return rows._replace(handles=np.array(fired, np.int64))


class Revives(HeapqDelayQueue):
    def reschedule(self, handle, deadline):
        super().reschedule(handle, deadline)
        return True


class ForgetsCancel(HeapqDelayQueue):
    def cancel(self, handle):
        return super().reschedule(handle, min(self.now + 9, 2**63 - 1))


class Backwards(HeapqDelayQueue):
    """Says that something expires before its clock."""

    def next_expiry(self):
        found = super().next_expiry()
        return None if found is None else found - 1


def test_a_right_timer_passes():
    check_factory(own_timers.Right, **QUICK)


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        (own_timers.Late, AssertionError, None),
        (own_timers.Twice, AssertionError, None),
        (own_timers.Asleep, AssertionError, None),
        (NumpyHandles, AssertionError, "is not an int"),
        (NoGenerations, AssertionError, "has been used before"),
        (Revives, AssertionError, None),
        (ForgetsCancel, AssertionError, None),
        (Backwards, AssertionError, None),
        (own_timers.NoTimer, AttributeError, "parameters"),
    ],
)
def test_a_wrong_timer_fails(wrong, error, says):
    with pytest.raises(error, match=says):
        check_factory(wrong, **QUICK)
