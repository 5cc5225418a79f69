import asyncio
import gc
import sys
from types import SimpleNamespace

import pytest

from compare.trial.bench import calls as module
from compare.trial.bench.calls import LOOP, SERVICE, SHORTEST, TIMER, Calls, Way, event_loops
from compare.trial.oracle.compiled import AgreementError
from compare.trial.replay.contestant import contestant
from tests.compare.conftest import SMALL_CALLS
from tests.compare.own_timers import Timed
from timers import HeapqDelayQueue
from timers.protocol import Timer
from timers.registry import names
from timers.services.system_timer import SystemTimer

OTHERS, PAIRS, BATCHES = SMALL_CALLS.values()
OWN = "tests.compare.own_timers:Timed"


def calls(*timers, repeats=2, budget=1e9, **options):
    measured = Calls([*map(contestant, timers)], repeats, budget, seed=3, **options)
    measured.run()
    return measured


def keys(measured):
    return [(row.contestant, *Way.of(row.subject), row.repeat) for row in measured.rows]


def test_every_timer_and_event_loop_is_called_in_every_way():
    expected = []
    for repeat in (0, 1):
        for name in names():
            expected += [(name, TIMER, batch, repeat) for batch in BATCHES]
            expected.append((name, SERVICE, 1, repeat))
        expected += [(name, LOOP, 1, repeat) for name in event_loops()]
    measured = calls(*names())
    assert keys(measured) == expected
    assert all(row.value > 0 and row.size == OTHERS for row in measured.rows)
    assert {row.metric for row in measured.rows} == {"call_time"}


def test_a_sample_is_the_second_round_of_a_pair_with_one_advance(clock):
    measured = calls(OWN, clock=clock)
    ways = [(Way.of(row.subject), row) for row in measured.rows]
    timed = {way.batch: row for way, row in ways if way.interface == TIMER}
    for batch, row in timed.items():
        pairs = max(PAIRS, batch)
        single = Timed.SCHEDULE + Timed.CANCEL if batch == 1 else 0  # it times no batch form
        seconds = single + Timed.ADVANCE / pairs
        assert row.value == pytest.approx(seconds * 1e9)


def test_fewer_samples_if_all_would_take_longer_than_the_budget(clock):
    whole = calls(OWN, clock=clock, repeats=1)
    spent = clock.seconds
    for budget, repeats in ((spent * 0.5, 1), (spent * 2.5, 2), (spent * 9, 4)):
        measured = calls(OWN, clock=clock, repeats=4, budget=budget)
        counts = [row.repeat for row in measured.rows if row.subject == Way(SERVICE, 1).name]
        assert counts == list(range(repeats))
        assert measured.steps == 4 * whole.steps


class Forgetful(HeapqDelayQueue):
    """Never cancels."""

    def cancel(self, handle):
        return True


def test_a_timer_that_does_not_cancel_is_refused():
    with pytest.raises(AgreementError, match=f"Forgetful has {2 * PAIRS + OTHERS} timers pending"):
        calls(f"{__name__}:Forgetful")


def test_a_service_that_does_not_cancel_is_refused(monkeypatch):
    class Service(SystemTimer):
        def schedule_after(self, delay, callback):
            super().schedule_after(delay, callback)
            return SimpleNamespace(cancel=lambda: True)

    monkeypatch.setattr(module, "SystemTimer", Service)
    with pytest.raises(AgreementError, match="^SystemTimer on delay-queue has"):
        calls("delay-queue")


def test_a_timer_without_batch_forms_is_called_one_by_one(monkeypatch):
    for cls in (HeapqDelayQueue, Timer):
        monkeypatch.delattr(cls, "schedule_many")
    measured = calls("heapq-delay-queue", repeats=1)
    assert [row[:2] for row in measured.rows] == [
        ("heapq-delay-queue", "timer 1"),
        *((name, "call_later 1") for name in event_loops()),
    ]


def test_the_delays_are_the_same_for_all_and_nothing_expires():
    first, again = Calls([], 1, 1.0, 3), Calls([], 1, 1.0, 3)
    # Private: a run does not store the delays.
    assert first._delays.tolist() == again._delays.tolist() != Calls([], 1, 1.0, 4)._delays.tolist()
    assert SHORTEST <= first._delays.min() <= first._delays.max() < 2 * SHORTEST
    assert first._delays.size == OTHERS + max(BATCHES)


def test_event_loops_are_closed_and_the_collector_is_left_as_it_was(clock, monkeypatch):
    loops = []

    class Loop(asyncio.SelectorEventLoop):
        def run_until_complete(self, future):  # a turn, in which it removes what was cancelled
            clock.seconds += PAIRS
            return super().run_until_complete(future)

    def factory():
        loops.append(Loop())
        return loops[-1]

    monkeypatch.setattr(module, "event_loops", lambda: {"asyncio": factory})
    for collecting in (True, False):
        (gc.enable if collecting else gc.disable)()
        try:
            measured = calls(repeats=1, clock=clock)
            assert gc.isenabled() == collecting
        finally:
            gc.enable()
    assert keys(measured) == [("asyncio", LOOP, 1, 0)]
    assert measured.rows[0].value == 1e9  # of the second turn
    assert len(loops) == 2 and all(loop.is_closed() for loop in loops)
    monkeypatch.setattr(HeapqDelayQueue, "cancel", lambda timer, handle: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        calls("heapq-delay-queue")
    assert gc.isenabled()


def test_without_uvloop_asyncio_is_measured_alone(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert list(event_loops()) == ["asyncio"]
