"""A replay compares when a timer delivers with when the timer says that it fired."""

import numpy as np
import pytest

from compare.traffic.tapes.tape import ARM, CANCEL, START
from compare.trial.replay.engine import ReplayError, replay
from tests.compare import faulty_kernel as faults
from tests.compare.small_tapes import tape_of
from tests.compare.trial.replay.test_engine import Plain, both_loops
from timers import HeapqDelayQueue
from timers.protocol import Expired

TAPE = tape_of(
    (0, START, 0, 4),
    (0, START, 1, 6),
    (3, ARM, 2, 3),  # due when it is armed: the next operation finds it fired
    (3, CANCEL, 0, 0),
    (8, START, 0, 20),
    (9, START, 3, 21),
    (10, START, 4, 30),
    (25, CANCEL, 4, 0),
    (26, START, 5, 40),
)


def delivered(fault, *, plain):
    timer = faults.Faulty(fault=fault)
    return replay(Plain(timer) if plain else timer, TAPE, 6).fired["fired_at"].tolist()


@both_loops
def test_a_timer_that_reports_what_it_does_passes(plain):
    assert delivered(faults.NO_FAULT, plain=plain) == [3, 6, 20, 21, 40]


@both_loops
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (faults.HELD_BACK, "advanced to 8 .* fired at 3; .* fires from 4 to 8$"),
        (faults.AHEAD, "advanced to 3 .* fired at 4; .* fires at 3$"),
        (faults.REVERSED, "a timer that fired at 21 before one that fired at 20"),
        (faults.NOT_COUNTED, "says that 0 timers are pending at .* there are [12]"),
        (faults.WAKES_LATE, "advanced to 41 .* fired at 40; .* fires at 41$"),
    ],
)
def test_a_timer_that_misreports_what_it_does_is_refused(fault, says, plain):
    with pytest.raises(ReplayError, match=says):
        delivered(fault, plain=plain)


class HeldBack(HeapqDelayQueue):
    """Holds each expiry back for 500 units, and reports when it was due."""

    def __init__(self, **keywords):
        super().__init__(**keywords)
        self._held = []

    def __len__(self):
        return super().__len__() + len(self._held)

    def advance(self, now, limit=None):
        columns = [column.tolist() for column in super().advance(now, limit)]
        self._held += zip(*columns, strict=True)
        count = sum(fired_at <= now - 500 for _, _, fired_at in self._held)
        rows, self._held = self._held[:count], self._held[count:]
        return Expired(*np.array(rows, np.int64).reshape(-1, 3).T)


def test_a_timer_that_holds_its_expiries_back_is_refused():
    often = [(100 * k, START, k, 100 * k + 50) for k in range(20)]
    with pytest.raises(ReplayError, match="advanced to 600 .* fired at 50; .* from 501 to 600"):
        replay(HeldBack(), tape_of(*often), 20)
