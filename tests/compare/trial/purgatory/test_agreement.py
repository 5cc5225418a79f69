"""On one clock the services do what the kernels do, request by request."""

from datetime import timedelta

import pytest

from compare.trial.purgatory.figures import PURGING, SCANNING
from compare.trial.purgatory.kernels import COMPLETED, EXPIRED, PURGE_TICKS, TICK
from compare.trial.purgatory.scanning import ScanningPurgatory
from compare.trial.purgatory.simulation import simulate
from compare.trial.purgatory.traffic import traffic
from timers import DelayQueue, HierarchicalWheel
from timers.services import (
    DelayedOperation,
    ManualClock,
    Purgatory,
    SystemTimer,
)
from timers.services.purgatory import PURGE_PERIOD


class Request(DelayedOperation):
    def __init__(self, number, timeout, clock, fate, ended_at):
        super().__init__(timeout)
        self.number, self.clock, self.fate, self.ended_at = number, clock, fate, ended_at

    def try_complete(self):
        return False

    def on_complete(self):
        assert self.number not in self.fate
        self.fate[self.number] = COMPLETED
        self.ended_at[self.number] = self.clock.now() // 1000

    def on_expiration(self):
        self.fate[self.number] = EXPIRED


def test_services_and_kernels_purge_as_often():
    assert PURGE_TICKS * TICK == PURGE_PERIOD * 1e6


class Counted(Purgatory):
    """Counts its purges of the lists."""

    purges = 0

    def purge(self):
        self.purges += 1
        return super().purge()


@pytest.mark.parametrize("interval", [3, 40])  # with 3, nearly each purge waits for its period
@pytest.mark.parametrize("load", ["low", "high"])
@pytest.mark.parametrize(
    ("design", "make_timer", "make"),
    [
        (PURGING, HierarchicalWheel, lambda t, n: Counted("r", t, purge_interval=n)),
        (SCANNING, DelayQueue, lambda t, n: ScanningPurgatory("r", t, limit=n)),
    ],
    ids=[PURGING, SCANNING],
)
def test_services_and_kernels_agree_on_who_completes_and_who_expires(
    load, interval, design, make_timer, make
):
    given = traffic(load, 2000, 600, seed=4)
    clock = ManualClock()
    timer = SystemTimer(make_timer(), clock=clock)
    purgatory = make(timer, interval)
    requests, fate, ended_at = [], {}, {}
    for now, r in zip(given.time.tolist(), given.request.tolist(), strict=True):
        clock.advance(timedelta(microseconds=now - clock.now() // 1000))
        if r == len(requests):
            requests.append(Request(r, 0.2, clock, fate, ended_at))
            purgatory.try_complete_else_watch(requests[r], given.keys[r].tolist())
        else:
            assert requests[r].force_complete()
    clock.advance(0.3)
    simulated = simulate(design, given, interval)
    numbers = range(len(requests))
    assert [fate[r] for r in numbers] == simulated.fate.tolist()
    assert [ended_at[r] for r in numbers] == simulated.ended_at.tolist()
    assert set(fate.values()) == {COMPLETED, EXPIRED}
    assert purgatory.delayed == 0
    if design == PURGING:
        # A purge is due within a tick, and what completes in the same tick may come before it.
        assert abs(purgatory.purges - simulated.counters["purges"]) <= 1 < purgatory.purges
    purgatory.purge()
    assert purgatory.watched == 0
    purgatory.shutdown()
    timer.close()
