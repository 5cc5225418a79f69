import itertools

import numpy as np
import pytest

from compare.bench import work
from compare.bench.contestant import contestant, parse_contestant
from compare.bench.measure import Bench, overhead
from compare.bench.task import BY_CLOCK, BY_EVENT, CANCEL_ALL, HOLD, INSERT, TASKS
from compare.bench.work import plan
from compare.oracle.compiled import AgreementError
from compare.replay.engine import ReplayError
from compare.tapes.tape import CANCEL, START, validate
from compare.workloads.catalogue import digest
from tests.compare.conftest import SMALL
from timers.registry import names

SIZES = [32, 300]
LONGEST_DELAY, HOLD_PAIRS = SMALL["LONGEST_DELAY"], SMALL["HOLD_PAIRS"]
OWN = "tests.compare.own_timers:"


def bench(*timers, sizes=SIZES, repeats=2, budget=60.0, seed=3):
    return Bench([parse_contestant(name) for name in timers], sizes, repeats, budget, seed)


@pytest.fixture(scope="module")
def measured():
    done = bench(*names())
    heard = []
    done.run(heard.append)
    assert len(heard) == done.steps
    return done


# ---- the tapes


def test_the_tapes_are_those_of_the_seed_and_the_size_alone(short_measurements, monkeypatch):
    for name, value in short_measurements.items():
        monkeypatch.setattr(work, name, value)
    tapes = plan(1000, 7)
    digests = [digest(tape)[:16] for tape in (tapes.filling, tapes.holding)]
    assert digests == ["eb0b55bd3f6a91b0", "48c350c39fae7dd3"]
    assert [digest(tape)[:16] for tape in (plan(1000, 7).filling, plan(1000, 7).holding)] == digests
    assert digest(plan(1000, 8).filling) != digest(tapes.filling)


def test_filling_starts_all_and_cancels_all():
    tape = plan(500, 0).filling
    validate(tape, 500)
    assert tape.op.tolist() == [START] * 500 + [CANCEL] * 500
    assert tape.id[:500].tolist() == list(range(500))
    assert sorted(tape.id[500:].tolist()) == list(range(500))
    assert tape.id[500:].tolist() != list(range(500))
    assert not tape.time.any()
    assert 1 <= tape.deadline[:500].min() <= tape.deadline[:500].max() <= LONGEST_DELAY


def test_holding_keeps_the_number_pending():
    tape = plan(100, 0).holding
    validate(tape, 100)
    pairs = tape.op[100:].reshape(HOLD_PAIRS, 2)
    assert (pairs == [CANCEL, START]).all()
    victims = tape.id[100:].reshape(HOLD_PAIRS, 2)
    assert (victims[:, 0] == victims[:, 1]).all()
    assert np.unique(victims).size == 100
    started = tape.deadline[tape.op == START]
    assert started.mean() == pytest.approx(LONGEST_DELAY / 2, rel=0.05)


# ---- the bench


def test_every_measurement_is_repeated_as_often_as_asked(measured):
    samples = {}
    for sample in measured.samples:
        samples.setdefault((sample.contestant, sample.size, sample.task), []).append(sample.repeat)
        assert sample.ns_per_operation >= 0.0
        assert sample.operations > 0
    assert not measured.too_long
    assert samples.keys() == {(c, size, task) for c in range(7) for size in SIZES for task in TASKS}
    assert all(repeats == [0, 1] for repeats in samples.values())


def test_all_tapes_are_checked_against_the_oracle(measured):
    # Filling once and holding twice (by clock and by events), for each timer at each size; holding
    # fires all.
    assert measured.tapes == 7 * len(SIZES) * 3
    assert measured.expiries == 7 * 2 * sum(SIZES)


def counter(done, name, size, task, which):
    c = [contestant.name for contestant in done.contestants].index(name)
    return next((x.value, x.operations) for x in done.counted if x[:4] == (c, size, task, which))


def test_counters_are_of_the_task_alone(measured):
    for size in SIZES:
        assert counter(measured, "unordered-list", size, INSERT, "timers_touched") == (0, size)
        assert counter(measured, "delay-queue", size, CANCEL_ALL, "clock_visits") == (0, size)
        assert counter(measured, "delay-queue", size, HOLD, "comparisons")[1] == HOLD_PAIRS
        # The naive list looks at every pending timer in every unit, and asks only when something
        # fires by events.
        looks, _ = counter(measured, "unordered-list", size, BY_CLOCK, "timers_touched")
        advances, _ = counter(measured, "unordered-list", size, BY_CLOCK, "advances")
        assert looks > advances * size * 0.3
        assert LONGEST_DELAY * 0.9 < advances <= LONGEST_DELAY
        assert counter(measured, "unordered-list", size, BY_EVENT, "idle_advances")[0] == 0
        assert counter(measured, "unordered-list", size, BY_EVENT, "advances")[0] <= size
        # A timer without kernel counts nothing, but its advances are known.
        assert counter(measured, "heapq-delay-queue", size, BY_CLOCK, "advances")[0] == advances
    heapq = [
        x.counter
        for x in measured.counted
        if measured.contestants[x.contestant].name == "heapq-delay-queue"
    ]
    assert set(heapq) == {"advances", "idle_advances"}


def test_counters_are_the_same_in_every_run(measured):
    again = bench(*names(), repeats=1)
    again.run()
    assert again.counted == measured.counted
    assert again.memory == measured.memory


def test_memory_is_at_full_capacity(measured):
    assert len(measured.memory) == 7 * len(SIZES)
    for c, size, nbytes in measured.memory:
        name = measured.contestants[c].name
        if name != "heapq-delay-queue":
            assert nbytes == contestant(name).new(0, size).nbytes


def test_what_would_take_too_long_is_predicted_and_not_run():
    done = bench("unordered-list", sizes=[50_000], budget=0.05)
    done.run()
    omitted = {one.task: one for one in done.too_long}
    assert BY_CLOCK in omitted
    assert omitted[BY_CLOCK].seconds > 0.05
    assert omitted[BY_CLOCK].operations == 50_000
    assert BY_CLOCK not in {sample.task for sample in done.samples}
    assert INSERT in {sample.task for sample in done.samples}
    assert done.tapes  # what is not timed is checked all the same


def test_a_clock_that_would_tick_for_years_is_not_tried():
    done = bench("hashed-wheel/tick=1000000000000/wheel-size=2", sizes=[10], repeats=1)
    done.run()
    assert [one.task for one in done.too_long] == [BY_CLOCK]
    assert done.too_long[0].seconds >= 1e12 * 1e-9


def repeats_and_ticks(repeats, budget):
    """The repeats that are made, and how often the clock is read, which each time shows a second
    more.
    """
    ticks = itertools.count()
    done = bench("delay-queue", sizes=[40], repeats=repeats, budget=budget)
    done.clock = lambda: float(next(ticks))
    done.run()
    return {sample.repeat for sample in done.samples}, next(ticks)


def test_repeats_end_before_they_exceed_the_budget_but_one_is_made():
    once, twice = (repeats_and_ticks(number, 1e9) for number in (1, 2))
    assert (once[0], twice[0]) == ({0}, {0, 1})
    seconds = twice[1] - once[1]  # of a repeat
    for budget, made in [(0.5, {0}), (1.9, {0}), (2.1, {0, 1}), (9.0, {0, 1, 2, 3, 4})]:
        assert repeats_and_ticks(5, budget * seconds)[0] == made


def test_a_timer_without_counters_is_predicted_from_its_times():
    done = bench(OWN + "Greedy", sizes=[3000], repeats=1, budget=0.1)
    done.run()
    assert BY_CLOCK in {one.task for one in done.too_long}


@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        ("Late", AgreementError, "Late disagrees with the oracle on the timer armed by operation"),
        ("Twice", ReplayError, "Twice fired handle"),
        ("Asleep", ReplayError, "none has fired"),
        ("Moody", AgreementError, "Moody fired other rows when timed than when checked"),
    ],
)
def test_a_wrong_timer_is_never_timed(name, error, says):
    done = bench(OWN + name, sizes=[500])  # so many that some fire in one unit
    with pytest.raises(error, match=says):
        done.run()


def test_empty_calls_are_measured_apart():
    assert all(0.0 < seconds < 0.01 for seconds in overhead(contestant("delay-queue")))
    assert overhead(contestant("heapq-delay-queue")) == (0.0, 0.0, 0.0)
