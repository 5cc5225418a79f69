import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.base.executors import Threads
from compare.spark.executor import executor
from compare.traffic.tapes.tape import CANCEL, REARM, START, joined
from compare.traffic.tapes.trace import write_trace
from compare.traffic.workloads.catalogue import make
from compare.trial.advice import replays, search
from compare.trial.advice.candidates import AdviceError, Bounds
from compare.trial.advice.prices import Counted
from compare.trial.advice.replays import Sample, outcomes, sampled
from compare.trial.advice.search import NEAR, advise, pareto_front
from compare.trial.replay.contestant import contestant
from compare.trial.replay.engine import OverBudgetError, replay
from compare.trial.replay.outcome import Outcome
from tests.compare.small_tapes import tape_of
from timers.registry import names

# ---- Pareto

point = st.tuples(st.integers(1, 50), st.integers(0, 50), st.integers(1, 50))


@given(st.lists(point, min_size=1, max_size=30))
def test_whatever_is_not_on_the_front_is_near_a_cheaper_one_that_is(points):
    candidates = [
        Counted(contestant("delay-queue"), Outcome(seconds=cost), nbytes, deviation, True)
        for cost, deviation, nbytes in points
    ]
    front = pareto_front(candidates, lambda counted: counted.outcome.seconds)
    costs = [counted.outcome.seconds for counted in front]
    assert costs == sorted(costs)
    for counted in candidates:
        nearby = [
            other
            for other in front
            if other.outcome.seconds <= counted.outcome.seconds
            and other.deviation <= NEAR * counted.deviation
            and other.nbytes <= NEAR * counted.nbytes
        ]
        on_front = any(counted is other for other in front)
        assert nearby[0] is counted if on_front else nearby  # it may cost as much as a later one


# ---- replays on an executor


def test_outcomes_are_those_of_the_replays_of_the_shards(trace):
    timers = [contestant("delay-queue"), contestant("hashed-wheel/tick=5ms")]
    for counting in (True, False):
        counted = outcomes(Threads(), sampled(trace, 10_000), timers, counting=counting)
        assert list(counted) == [timer.label for timer in timers]
        for timer in timers:
            expected = Outcome()
            for shard in (0, 1):
                new = timer.new("us", int(trace.load(shard).time[0]), counting=counting)
                space = trace.shards[shard].id_space
                expected += replay(new, trace.load(shard), space).outcome
            done = counted[timer.label]
            for name in ("operations", "scheduled", "fired", "most_pending", "counters"):
                assert getattr(done, name) == getattr(expected, name)
            assert done.lateness == expected.lateness


@pytest.mark.parametrize("counting", [True, False])
def test_what_takes_longer_than_the_limit_is_left_out(trace, monkeypatch, counting):
    monkeypatch.setattr(replays, "SHORTEST_LIMIT", 0.0)

    def labels(limit):
        sample, timers = sampled(trace, 10_000), [contestant("delay-queue")]
        return [*outcomes(Threads(), sample, timers, counting=counting, limit=limit)]

    assert labels(0.0) == []
    assert labels(math.inf) == ["delay-queue"]
    second = trace.load(1).time.tolist()

    def over_budget_in_one_shard(timer, tape, *arguments, **options):
        if tape.time.tolist() == second:
            raise OverBudgetError("it takes longer")
        return replay(timer, tape, *arguments, **options)

    monkeypatch.setattr(replays, "replay", over_budget_in_one_shard)
    assert labels(math.inf) == []


def test_a_timer_has_no_more_room_than_a_program_would_give_it(trace, monkeypatch):
    def nbytes():
        timers = [contestant("delay-queue")]
        return outcomes(Threads(), sampled(trace, 10_000), timers, counting=False)[label].nbytes

    label = "delay-queue"
    with_room_for_all = nbytes()
    monkeypatch.setattr(replays, "AT_ONCE", 8)
    assert nbytes() < 0.6 * with_room_for_all


def test_a_sample_has_shards_at_even_distances_or_the_beginning_of_one(tmp_path, monkeypatch):
    # 40 operations are two and a half pieces.
    monkeypatch.setattr("compare.traffic.tapes.trace.PIECE", 16)
    tapes = [make("uniform", operations=100, seed=n).tape for n in range(6)]
    tapes[:0] = joined([]), make("uniform", operations=1, seed=9).tape
    trace = write_trace(tmp_path / "t", tapes, unit="ms", source={})
    sample = sampled(trace, 250)
    assert len(sample.shards) == 2 and not sample.whole
    assert sampled(trace, 601).whole
    sample = sampled(trace, 40)  # less than a shard: the beginning of one
    assert (sample.shards, sample.operations) == ([1], 40)
    sample = Sample(trace, [1, 4], 40)
    assert sample.tape(4).time.tolist() == trace.load(4).time[:40].tolist()
    assert sample.total == 1 + 40


# ---- the search


def test_the_longest_tick_is_the_median_delay(tmp_path):
    """A cancel has none."""
    rows = (0, START, 0, 10), (5, REARM, 0, 35), *[(6, CANCEL, 0, 0)] * 3, (20, START, 1, 320)
    trace = write_trace(tmp_path / "t", [tape_of(*rows)], unit="ms", source={})
    assert search._delays(sampled(trace, 100)) == (30, 300)


def test_the_advice_keeps_its_bounds_and_beats_the_other_finalists(advice):
    assert {counted.contestant.name for counted in advice.ranked} >= {*names()} - {
        "heapq-delay-queue",
        "unordered-list",
    }
    for counted in advice.ranked:
        low, high = counted.contestant.rounding("us").bounds()
        assert -2000 <= low <= high <= 10_000 and counted.allowed
        assert counted.deviation == max(-low, high)
        late = counted.outcome.lateness
        assert low <= late.min <= late.max <= high
    costs = [advice.cost(counted) for counted in advice.ranked]
    assert costs == sorted(costs)
    name = advice.best.contestant.name
    others = [counted for counted in advice.ranked if counted.contestant.name != name]
    assert advice.best_of(name) is advice.best is advice.ranked[0]
    assert advice.best_of(others[0].contestant.name) is advice.runner_up is others[0]
    assert all(len(samples) == 2 for samples in advice.samples.values())
    assert -1 <= advice.correlation <= 1 and len(advice.checked) == 8


def test_noise_is_the_difference_between_odd_and_even_rounds(advice):
    label = advice.best.label
    samples = {**advice.samples, label: [10.0, 14.0, 12.0, 11.0]}
    other = dataclasses.replace(advice, samples=samples)
    assert other.cost(advice.best) == 10
    assert other.noise(advice.best) == pytest.approx(0.1)


def test_what_is_less_precise_is_the_cheapest_outside_the_bounds(advice):
    precise = advice.grid.precise
    labels = [label for label, counted in advice.counted.items() if not precise(counted.contestant)]
    samples = {label: [9.0, 2.0 + k] for k, label in enumerate(reversed(labels))}
    timed = dataclasses.replace(advice, samples={advice.best.label: [1.0], **samples})
    assert timed.looser.label == labels[-1] and len(labels) > 1
    too_large = {advice.best.label: dataclasses.replace(advice.best, allowed=False)}  # but precise
    precise_alone = {"counted": too_large, "samples": {advice.best.label: [1.0]}}
    assert dataclasses.replace(advice, **precise_alone).looser is None


# 8 s: a dozen small jobs, on workers that load the compiled code. Nothing else covers --master.
@pytest.mark.spark
def test_a_search_on_spark_counts_the_same_work(trace, advice, spark):
    with executor(session=spark) as runner:
        on_spark = advise(trace, Bounds(10_000, 2_000), runner)
    assert on_spark.best.allowed
    for label in on_spark.counted.keys() & advice.counted.keys():
        first, second = (each.counted[label].outcome for each in (advice, on_spark))
        assert first.counters == second.counters
        assert first.lateness == second.lateness


def test_memory_is_a_bound_and_an_objective(trace, monkeypatch):
    replayed = []

    def recorded(executor, sample, *arguments, counting, **limit):
        replayed.append((counting, sample.total))
        return outcomes(executor, sample, *arguments, counting=counting, **limit)

    monkeypatch.setattr(search, "outcomes", recorded)
    monkeypatch.setattr(search, "SEARCHED", 600)  # one of the two shards
    smallest = advise(trace, Bounds(10_000), Threads(), "memory").best
    assert (replayed[0], replayed[-1]) == ((True, 600), (False, 1200))
    limit = 2 * smallest.nbytes
    advice = advise(trace, Bounds(10_000, memory=limit), Threads())
    assert all(counted.nbytes <= limit for counted in advice.ranked)
    assert smallest.nbytes <= min(counted.nbytes for counted in advice.ranked)
    rows = smallest.outcome.most_pending
    assert smallest.nbytes == smallest.contestant.new("us", capacity=rows).nbytes
    with pytest.raises(AdviceError, match=f"10 bytes: the smallest, .*, takes {smallest.nbytes}"):
        advise(trace, Bounds(10_000, memory=10), Threads())


def test_an_empty_trace_is_refused(tmp_path):
    tape = make("uniform", operations=4, seed=1).tape
    nothing = type(tape)(*(column[:0] for column in tape))
    trace = write_trace(tmp_path / "empty", [nothing], unit="ms", source={})
    with pytest.raises(AdviceError, match="empty has no operations"):
        advise(trace, Bounds(), Threads())


def test_bounds_that_no_timer_keeps_are_refused(trace):
    with pytest.raises(AdviceError, match="no timer fires as precisely"):
        advise(trace, dataclasses.replace(Bounds(), max_late=-1), Threads())
