"""Latencies of single operations, with counted work or a made clock instead of time."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings

from compare.traffic.tapes.tape import CANCEL, START, id_space_of
from compare.traffic.workloads.catalogue import make
from compare.trial.oracle.compiled import NEVER, expect
from compare.trial.replay.contestant import contestant
from compare.trial.replay.engine import OverBudgetError, first_time, replay
from compare.trial.replay.latencies import KINDS, Latencies, latencies_of
from compare.trial.replay.loops import STEPS_IN_LIMIT
from compare.trial.replay.timed_loops import ADVANCED
from tests.compare.small_tapes import tape_of, tapes
from timers import CascadingWheel, DelayQueue
from timers.kernels.pool import EXPIRY
from timers.registry import names
from timers.schemes.base import DEFAULT_CAPACITY

TIMERS = [contestant(name) for name in names()]


def run(timer, tape, **options):
    return latencies_of(timer, tape, id_space_of(tape), **options)


@pytest.mark.parametrize("timer", TIMERS, ids=names())
@settings(max_examples=30)
@given(tape=tapes())
def test_a_tape_does_what_a_replay_of_it_does(timer, tape):
    """The same timers fire as the oracle says, and each kind of operation is counted."""
    start = first_time(tape)
    done = run(timer.new("unit", start, 1), tape)
    due = expect(tape, id_space_of(tape), timer.rounding("unit")).fired_at
    assert done.fired["fired_at"].tolist() == sorted(due[due != NEVER].tolist())
    assert done.advances["fired"].sum() == done.fired.size
    outcome = replay(timer.new("unit", start), tape, id_space_of(tape)).outcome
    counted = {kind: int((done.kinds == op).sum()) for kind, op in KINDS.items()}
    assert counted["start"] == outcome.scheduled
    assert counted["cancel"] == (tape.op == CANCEL).sum()
    assert sum(counted.values()) == tape.time.size
    assert done.ticks_of("start").size == counted["start"]


@pytest.mark.parametrize("timer", TIMERS, ids=names())
def test_by_clock_each_advance_is_of_one_unit_and_fires_the_same(timer):
    made = make("keepalive", operations=500, seed=3, parameters={"rate": 1000, "idle": 400})
    start = first_time(made.tape)
    by_clock = run(timer.new("ms", start), made.tape, step=1)
    by_event = run(timer.new("ms", start), made.tape)
    assert (np.diff(by_clock.advances["moment"]) <= 1).all()
    moments = set(by_clock.advances["moment"].tolist())
    assert moments == {*range(start + 1, max(moments) + 1)} | (moments & {start})
    for name in ("deadline", "fired_at"):
        assert np.sort(by_clock.fired[name]).tolist() == np.sort(by_event.fired[name]).tolist()
    assert by_clock.digest != by_event.digest  # the advances differ
    assert by_clock.digest == run(timer.new("ms", start), made.tape, step=1).digest


def test_a_cascade_shows_as_the_slowest_advance_with_what_it_refiled():
    """With the timer's counters for a clock, the latencies are its counted work."""
    timers = 300
    tape = tape_of(*((0, START, k, 512 + k % 200) for k in range(timers)))
    timer = CascadingWheel(counting=True)
    done = run(timer, tape, step=1, fake=timer.state.counters)
    slowest = done.advances[done.advances["ticks"].argmax()]
    assert slowest["moment"] == 512 and slowest["refiled"] == timers
    at_512 = sum(k % 200 == 0 for k in range(timers))  # due in the tick of the cascade
    assert slowest["fired"] == at_512
    # Each timer is touched and re-filed; a slot and a stop of the clock; then some fire.
    assert slowest["ticks"] == 2 * timers + 1 + 1 + at_512
    assert done.advances["refiled"].sum() == timers
    assert sum(done.advances["ticks"]) + sum(done.spent) == sum(timer.state.counters)


def test_comparisons_of_single_operations_are_theirs():
    """In a heap the k-th timer with the earliest deadline so far rises to the top."""
    timer = DelayQueue(counting=True)
    tape = tape_of(*((0, START, k, 1000 - k) for k in range(40)))
    done = run(timer, tape, fake=timer.state.counters)
    assert done.ticks_of("start").sum() + done.advances["ticks"].sum() == sum(timer.state.counters)
    assert done.spent[0] == 0 < done.spent[20] <= done.spent[39]


class Grows(DelayQueue):
    """A timer whose growths take 1000 ticks of a made clock."""

    ticks = np.zeros(1, np.int64)

    def reserve(self, extra):
        before = self.nbytes
        super().reserve(extra)
        if self.nbytes > before:
            self.ticks += 1000


def test_the_operation_that_finds_no_room_waits_for_the_growth():
    count = 3 * DEFAULT_CAPACITY
    tape = tape_of(*((0, START, k, 9) for k in range(count)))
    done = run(Grows(), tape, fake=Grows.ticks)
    assert done.growths == 2
    waited = {int(k): int(done.spent[k]) for k in np.flatnonzero(done.spent)}
    assert waited == {DEFAULT_CAPACITY: 1000, 2 * DEFAULT_CAPACITY: 1000}
    assert not done.advances["ticks"].any()


def latencies(spent, ticks):
    advances = np.zeros(len(ticks), ADVANCED)
    advances["ticks"] = ticks
    kinds = np.zeros(len(spent), np.int8)
    return Latencies(kinds, np.array(spent), advances, np.empty(0, EXPIRY), 0)


def test_the_least_of_all_rounds_is_kept_for_each_operation():
    least = latencies([5, 9, 7], [3, 1])
    least.keep_least(latencies([6, 2, 7], [2, 4]))
    assert least.spent.tolist() == [5, 2, 7]
    assert least.advances["ticks"].tolist() == [2, 1]


@pytest.mark.parametrize("name", ["cascading-wheel", "heapq-delay-queue"])
def test_a_replay_that_takes_too_long_is_given_up(name):
    tape = tape_of(*((k, START, k, k + 10) for k in range(10)))
    with pytest.raises(OverBudgetError):
        run(contestant(name).new("unit"), tape, limit=-1.0)


def test_with_a_limit_the_clock_is_looked_at_more_often(monkeypatch):
    """An advance of a list scans it: thousands of them would exceed the limit by far."""
    tape = tape_of(*((k, START, k, k + 9_000) for k in range(5_000)))
    looks = iter(range(10**6))
    clock = SimpleNamespace(thread_time=lambda: next(looks))
    monkeypatch.setattr("compare.trial.replay.latencies.time", clock)
    timer = contestant("unordered-list").new("unit", capacity=5_000)
    with pytest.raises(OverBudgetError):
        run(timer, tape, limit=3.0)
    assert timer.now <= 4 * STEPS_IN_LIMIT  # an operation a unit; four looks
    whole = run(contestant("unordered-list").new("unit"), tape)
    assert whole.digest == run(contestant("unordered-list").new("unit"), tape, limit=1e6).digest
