"""On one clock, both designs end every request at its moment."""

from datetime import timedelta
from operator import itemgetter

import numpy as np
import pytest

from compare.trial.purgatory.scanning import ScanningPurgatory
from compare.trial.purgatory.traffic import traffic
from timers import DelayQueue, HierarchicalWheel
from timers.services import (
    DelayedOperation,
    ManualClock,
    Purgatory,
    SystemTimer,
)

TICK = 1000  # microseconds


class Request(DelayedOperation):
    def __init__(self, number, timeout, clock, ended_at, expired):
        super().__init__(timeout)
        self.number, self.clock, self.ended_at, self.expired = number, clock, ended_at, expired

    def try_complete(self):
        return False

    def on_complete(self):
        assert self.number not in self.ended_at
        self.ended_at[self.number] = self.clock.now() // 1000

    def on_expiration(self):
        self.expired.add(self.number)


@pytest.mark.parametrize("interval", [3, 40])  # with 3, nearly each purge waits for its period
@pytest.mark.parametrize("load", ["low", "high"])
@pytest.mark.parametrize(
    ("make_timer", "make"),
    [
        (HierarchicalWheel, lambda t, n: Purgatory("r", t, purge_interval=n)),
        (DelayQueue, lambda t, n: ScanningPurgatory("r", t, limit=n)),
    ],
    ids=["purging", "scanning"],
)
def test_requests_are_completed_when_they_are_answered_and_expire_otherwise(
    load, interval, make_timer, make
):
    given = traffic(load, 2000, 600, seed=4)
    clock = ManualClock()
    timer = SystemTimer(make_timer(), clock=clock)
    purgatory = make(timer, interval)
    requests, ended_at, expired = [], {}, set()
    answered = np.flatnonzero(given.services >= 0)
    arrivals, answers = given.arrivals, (given.arrivals + given.services)[answered]
    events = [*enumerate(arrivals.tolist()), *zip(answered.tolist(), answers.tolist(), strict=True)]
    for r, now in sorted(events, key=itemgetter(1)):  # at one time, arrivals come first
        clock.advance(timedelta(microseconds=now - clock.now() // 1000))
        if r == len(requests):
            requests.append(Request(r, 0.2, clock, ended_at, expired))
            purgatory.try_complete_else_watch(requests[r], given.keys[r].tolist())
        else:
            assert requests[r].force_complete()
    clock.advance(0.3)
    due = -((arrivals + given.timeout) // -TICK) * TICK  # the first tick from the deadline
    expected = np.where(given.services >= 0, arrivals + given.services, due)
    assert [ended_at[r] for r in range(len(requests))] == expected.tolist()
    assert expired == set(np.flatnonzero(given.services < 0).tolist())
    assert 0 < len(expired) < len(requests)
    assert purgatory.delayed == 0
    purgatory.purge()
    assert purgatory.watched == 0
    purgatory.shutdown()
    timer.close()
