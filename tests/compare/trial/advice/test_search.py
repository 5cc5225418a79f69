import dataclasses
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.base.stages import Here
from compare.spark.engine import engine
from compare.traffic.tapes.tape import CANCEL, REARM, START, joined
from compare.traffic.tapes.trace import write_trace
from compare.traffic.workloads.catalogue import make
from compare.trial.advice import replays, search
from compare.trial.advice.candidates import AdviceError, Bounds, Candidate
from compare.trial.advice.choice import choose
from compare.trial.advice.replays import Sample, outcomes, sampled
from compare.trial.advice.search import NEAR, advise, pareto_front
from compare.trial.replay.contestant import contestant
from compare.trial.replay.engine import OverBudgetError, replay
from compare.trial.replay.outcome import Outcome
from tests.compare.small_tapes import tape_of
from timers.registry import TIMERS, names
from timers.traits import Traffic

# ---- Pareto

point = st.tuples(st.integers(1, 50), st.integers(0, 50), st.integers(1, 50))


@given(st.lists(point, min_size=1, max_size=30))
def test_whatever_is_not_on_the_front_is_near_a_cheaper_one_that_is(points):
    candidates = [
        Candidate(contestant("delay-queue"), Outcome(), [cost], 1, nbytes, deviation, True, True)
        for cost, deviation, nbytes in points
    ]
    front = pareto_front(candidates)
    costs = [candidate.cost for candidate in front]
    assert costs == sorted(costs)
    for candidate in candidates:
        nearby = [
            other
            for other in front
            if other.cost <= candidate.cost
            and other.deviation <= NEAR * candidate.deviation
            and other.nbytes <= NEAR * candidate.nbytes
        ]
        on_front = any(candidate is other for other in front)
        assert nearby[0] is candidate if on_front else nearby  # it may cost as much as a later one


# ---- replays by an engine


@pytest.mark.parametrize("groups", [1, 2, 9])
def test_outcomes_are_those_of_the_replays_of_the_shards(trace, groups):
    labels = "delay-queue", "hashed-wheel/tick=5ms", "simple-wheel"
    timers = [contestant(label) for label in labels]
    outcomes_of = outcomes(Here(), sampled(trace, 10_000), timers, groups=groups)
    assert {*outcomes_of} == {*labels}
    for timer in timers:
        expected = Outcome()
        for shard in (0, 1):
            new = timer.new("us", int(trace.load(shard).time[0]))
            expected += replay(new, trace.load(shard), trace.shards[shard].id_space).outcome
        done = outcomes_of[timer.label]
        for name in ("operations", "scheduled", "fired", "most_pending", "lateness"):
            assert getattr(done, name) == getattr(expected, name)


def test_what_takes_longer_than_the_limit_is_left_out(trace, monkeypatch):
    monkeypatch.setattr(replays, "SHORTEST_LIMIT", 0.0)

    def labels(limit):
        timers = [contestant("delay-queue")]
        return [*outcomes(Here(), sampled(trace, 10_000), timers, limit=limit)]

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
        return outcomes(Here(), sampled(trace, 10_000), timers)[label].nbytes

    label = "delay-queue"
    with_room_for_all = nbytes()
    monkeypatch.setattr(replays, "AT_ONCE", 8)
    assert nbytes() < 0.6 * with_room_for_all


def test_a_sample_has_shards_at_even_distances_or_the_beginning_of_one(tmp_path, monkeypatch):
    # 40 operations are two and a half blocks.
    monkeypatch.setattr("compare.traffic.tapes.blocks.BLOCK", 16)
    tapes = [make("uniform", operations=100, seed=n).tape for n in range(6)]
    tapes[:0] = joined([]), make("uniform", operations=1, seed=9).tape
    trace = write_trace(tmp_path / "t", tapes, unit="ms", source={})
    sample = sampled(trace, 250)
    assert len(sample.shards) == 2
    assert sampled(trace, 601).total == 601
    sample = sampled(trace, 40)  # less than a shard: the beginning of one
    assert (sample.shards, sample.operations) == ([1], 40)
    sample = Sample(trace, [1, 4], 40)
    assert sample.tape(4).time.tolist() == trace.load(4).time[:40].tolist()
    assert sample.total == 1 + 40


# ---- the search


def test_traffic_has_the_median_and_the_longest_delay(tmp_path):
    """A cancel has none."""
    rows = (0, START, 0, 10), (5, REARM, 0, 35), *[(6, CANCEL, 0, 0)] * 3, (20, START, 1, 320)
    trace = write_trace(tmp_path / "t", [tape_of(*rows)], unit="ms", source={})
    traffic = search.traffic_of(trace, Bounds(5, 6))
    assert traffic == Traffic(median_delay=30, longest_delay=300, max_late=5, max_early=6)
    trace = write_trace(tmp_path / "u", [tape_of((6, START, 0, 5))], unit="ms", source={})
    assert search.traffic_of(trace, Bounds()) == Traffic(1, 1)  # overdue


def test_the_advice_keeps_its_bounds_and_is_chosen_by_the_rule(advice, trace):
    assert {candidate.contestant.name for candidate in advice.ranked} >= {*names()} - {
        "heapq-delay-queue",
        "unordered-list",
    }
    for candidate in advice.ranked:
        low, high = candidate.contestant.rounding("us").bounds(trace.description.delay["max"])
        assert (low, high) == advice.lateness(candidate)
        assert -2000 <= low <= high <= 10_000 and candidate.allowed
        assert candidate.deviation == max(-low, high)
        late = candidate.outcome.lateness
        assert low <= late.min <= late.max <= high
    costs = [candidate.cost for candidate in advice.ranked]
    assert costs == sorted(costs)
    offers = [candidate.offer for candidate in advice.ranked]
    seconds = trace.span / 1e6
    assert advice.choice == choose(offers, 1e9 * seconds / trace.totals["rows"])
    assert advice.best is advice.ranked[advice.choice.number]
    name = advice.best.contestant.name
    others = [candidate for candidate in advice.ranked if candidate.contestant.name != name]
    assert advice.best_of(others[0].contestant.name) is advice.runner_up is others[0]
    assert all(len(candidate.times) == 2 for candidate in advice.finalists)


def costing(monkeypatch, cost):
    """Puts costs in the place of measured times: of a candidate on so many operations, in turns."""
    replayed = []

    def outcomes_at_cost(engine, sample, candidates, *, limit=math.inf, **groups):
        done = outcomes(engine, sample, candidates, **groups)
        replayed.append((sample.total, [each.label for each in candidates]))
        ns = {each.label: cost(each, sample.total) for each in candidates}
        return {
            label: dataclasses.replace(outcome, seconds=ns[label] * outcome.operations / 1e9)
            for label, outcome in done.items()
            if ns[label] <= limit
        }

    monkeypatch.setattr(search, "outcomes", outcomes_at_cost)
    return replayed


def test_the_better_half_replays_twice_as_many_operations(trace, monkeypatch):
    """The best is found although it is only in the better half at first."""

    def cost(candidate, operations):
        values = {"tick": 1, "wheel_size": 1, **candidate.parameters("us")}
        if candidate.label == "hashed-wheel/tick=2ms/wheel-size=32":
            return {150: 120.0, 300: 113.5}.get(operations, 30.0)
        return 100.0 + values["wheel_size"] % 37 + len(candidate.name) + values["tick"] % 7

    monkeypatch.setattr(search, "FIRST", 150)
    monkeypatch.setattr(search, "FINALISTS", 4)
    replayed = costing(monkeypatch, cost)
    advice = advise(trace, Bounds(10_000, 2_000), Here())
    assert advice.best.label == "hashed-wheel/tick=2ms/wheel-size=32"
    assert advice.best.times == pytest.approx([30.0, 30.0])
    sizes = [size for size, _ in replayed]
    assert sizes == [1200, 150, 300, 600, 1200, 1200, 1200]  # the reference, rounds, two turns
    assert advice.rounds == [(len(labels), size) for size, labels in replayed[1:-1]]
    everything = {candidate.label: candidate for candidate in advice.finalists + advice.dropped}
    assert {*everything} == {*replayed[1][1]}
    for (size, labels), (_, kept) in pairwise(replayed[1:5]):
        ranked = sorted(
            (cost(everything[label].contestant, size), label)
            for label in labels
            if everything[label].allowed
        )
        half = ranked[: len(ranked) // 2]
        assert {label for ns, label in half if ns < half[-1][0]} <= {*kept}
        assert len(kept) < len(labels)


def test_rounds_end_once_few_candidates_are_left(trace, monkeypatch):
    monkeypatch.setattr(search, "FIRST", 150)
    monkeypatch.setattr(search, "FINALISTS", 1000)
    replayed = costing(monkeypatch, lambda candidate, operations: len(candidate.label))
    advise(trace, Bounds(10_000), Here())
    assert [size for size, _ in replayed] == [1200, 150, 1200, 1200]


def test_slow_candidates_are_cut_by_the_best_so_far(trace, monkeypatch):
    """The limit of the first round is that of a delay queue."""
    slow = {"delay-queue": 100.0, "unordered-list": 801.0, "cascading-wheel": 799.0}
    monkeypatch.setattr(search, "FIRST", 150)
    replayed = costing(monkeypatch, lambda candidate, _: slow.get(candidate.name, 20.0))
    advice = advise(trace, Bounds(10_000), Here())
    everything = {candidate.label for candidate in advice.finalists + advice.dropped}
    assert "unordered-list" in replayed[1][1] and "unordered-list" not in everything
    assert "cascading-wheel" in replayed[2][1]  # the best of its scheme
    assert "cascading-wheel" not in {candidate.label for candidate in advice.finalists}


def test_own_parameters_of_an_added_timer_are_searched(trace, monkeypatch):
    monkeypatch.setitem(TIMERS, "added-timer", "tests.compare.trial.advice.added_timer:AddedTimer")
    advice = advise(trace, Bounds(10_000), Here(), "memory")
    tried = {each.label for each in advice.finalists + advice.dropped}
    expected = {"added-timer/levels=2", "added-timer", "added-timer/levels=6"}
    assert expected | {"added-timer/levels=8"} == {x for x in tried if x.startswith("added")}
    assert advice.best_of("added-timer").label == "added-timer/levels=2"


def test_noise_is_the_difference_between_odd_and_even_turns(advice):
    candidate = dataclasses.replace(advice.best, times=[10.0, 14.0, 12.0, 11.0])
    assert candidate.cost == 10
    assert candidate.noise == pytest.approx(0.1)


def test_what_is_less_precise_is_the_cheapest_outside_the_bounds(advice):
    """What is too large for the memory may be precise."""
    best = dataclasses.replace(advice.best, times=[1.0])
    too_large = dataclasses.replace(best, allowed=False)
    late = [dataclasses.replace(too_large, times=[ns], precise=False) for ns in (3.0, 2.0, 9.0)]
    timed = dataclasses.replace(advice, finalists=[best, *late])
    assert timed.looser is late[1]
    assert dataclasses.replace(advice, finalists=[best, too_large]).looser is None


# 8 s: a dozen small jobs, on workers that load the compiled code. Nothing else covers --master.
@pytest.mark.spark
def test_a_search_on_spark_fires_the_same_timers(trace, advice, spark):
    with engine(session=spark) as runner:
        on_spark = advise(trace, Bounds(10_000, 2_000), runner)
    assert on_spark.best.allowed
    here, there = (
        {candidate.label: candidate.outcome for candidate in each.finalists}
        for each in (advice, on_spark)
    )
    assert "delay-queue" in here.keys() & there.keys()
    for label in here.keys() & there.keys():
        assert here[label].lateness == there[label].lateness
        assert here[label].fired == there[label].fired


def test_memory_is_a_bound_and_an_objective(trace, monkeypatch):
    monkeypatch.setattr(search, "LAST", 600)  # one of the two shards
    monkeypatch.setattr(search, "FIRST", 100)
    smallest = advise(trace, Bounds(10_000), Here(), "memory").best
    assert smallest.outcome.operations == 600
    limit = 2 * smallest.nbytes
    advice = advise(trace, Bounds(10_000, memory=limit), Here())
    assert all(candidate.nbytes <= limit for candidate in advice.ranked)
    assert smallest.nbytes <= min(candidate.nbytes for candidate in advice.ranked)
    rows = smallest.outcome.most_pending
    assert smallest.nbytes == smallest.contestant.new("us", capacity=rows).nbytes
    # In the first round already, memory is that of the whole sample.
    assert min(candidate.nbytes for candidate in advice.dropped) >= 24 * rows
    with pytest.raises(AdviceError, match=f"10 bytes: the smallest, .*, takes {smallest.nbytes}"):
        advise(trace, Bounds(10_000, memory=10), Here())


def test_an_empty_trace_is_refused(tmp_path):
    tape = make("uniform", operations=4, seed=1).tape
    nothing = type(tape)(*(column[:0] for column in tape))
    trace = write_trace(tmp_path / "empty", [nothing], unit="ms", source={})
    with pytest.raises(AdviceError, match="empty has no operations"):
        advise(trace, Bounds(), Here())


def test_bounds_that_no_timer_keeps_are_refused(trace):
    with pytest.raises(AdviceError, match="no timer fires as precisely"):
        advise(trace, dataclasses.replace(Bounds(), max_late=-1), Here())
