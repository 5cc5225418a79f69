from collections import Counter

import pytest

from compare.bench.contestant import contestant
from compare.bench.task import BY_CLOCK, BY_EVENT, CANCEL_ALL, HOLD, INSERT, TASKS
from compare.bench.work import plan
from compare.oracle.compiled import AgreementError, expect
from compare.replay.engine import ReplayError, replay
from compare.tapes.tape import Tape
from tests.compare.bench.test_timing import bench, facts
from tests.compare.conftest import SMALL
from timers.registry import names

SIZES = [32, 300]
LONGEST_DELAY, HOLD_PAIRS = SMALL["LONGEST_DELAY"], SMALL["HOLD_PAIRS"]
OWN = "tests.compare.own_timers:"


@pytest.fixture(scope="module")
def measured():
    done = bench(*names())
    heard = []
    done.run(heard.append)
    assert len(heard) == done.steps
    return done


def test_every_measurement_is_repeated_as_often_as_asked(measured):
    samples = {}
    for sample in measured.samples:
        samples.setdefault((sample.contestant, sample.size, sample.task), []).append(sample.repeat)
        assert sample.ns_per_operation >= 0.0
        assert sample.operations > 0
        assert sample.predicted_seconds is None
    assert samples.keys() == {(c, size, task) for c in range(7) for size in SIZES for task in TASKS}
    assert all(repeats == [0, 1] for repeats in samples.values())


def test_all_tapes_are_checked_against_the_oracle(measured):
    # Filling once and holding twice, by clock and by event, for each timer at each size.
    assert measured.tapes == 7 * len(SIZES) * 3
    assert measured.expiries == sum(
        expect(tape, size, timer.rounding).fired
        for size in SIZES
        for timer in measured.contestants
        for tape in (plan(size, 3).filling, plan(size, 3).holding, plan(size, 3).holding)
    )


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
        _, _, fired, units, moments = facts(size)
        assert looks > units * size * 0.3
        # A timer without kernel counts nothing else, but its advances are known.
        for name in ("unordered-list", "heapq-delay-queue"):
            for task, advances, idle in [
                (BY_CLOCK, units, units - moments),
                (BY_EVENT, moments, 0),
            ]:
                assert counter(measured, name, size, task, "advances") == (advances, fired)
                assert counter(measured, name, size, task, "idle_advances") == (idle, fired)
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
    assert again.slots == measured.slots


@pytest.mark.parametrize("name", ["unordered-list", "delay-queue", "hierarchical-wheel"])
def test_counters_are_those_of_the_same_operations_on_the_timer(measured, name):
    tape = plan(300, 3).filling

    def counters(operations):
        part = Tape(*(column[:operations] for column in tape))
        timer = contestant(name).new(0, 300, counting=True)
        return replay(timer, part, 300, drain_timer=False).outcome.counters

    inserted, settled, cancelled = map(counters, (300, 301, 601))
    for which, value in inserted.items():
        assert counter(measured, name, 300, INSERT, which) == (value, 300)
        found = counter(measured, name, 300, CANCEL_ALL, which)
        assert found == (cancelled[which] - settled[which], 300)


def test_work_for_predictions_is_what_was_counted_and_the_steps(measured):
    counted = Counter()
    for one in measured.counted:
        if "advances" not in one.counter:
            counted[one.contestant, one.task, one.size] += one.value
    found = {
        (c, task, size): measured._observed[c, task][size]
        for c in range(7)
        for task in TASKS
        for size in SIZES
    }
    for (c, task, size), one in found.items():
        has_kernel = measured.contestants[c].name != "heapq-delay-queue"
        assert one.work == (one.steps + counted[c, task, size] if has_kernel else None)


def test_all_that_is_started_can_fire_in_one_call():
    """A tick that runs out of room would stop early."""
    size = 2 * HOLD_PAIRS
    assert plan(size, 0).buffers.fired.size > size + HOLD_PAIRS


def test_memory_is_told_full_and_grown_and_while_it_grows(measured):
    assert [(one.contestant, one.size) for one in measured.memory] == [
        (c, size) for size in SIZES for c in range(7)
    ]
    for one in measured.memory:
        timer = measured.contestants[one.contestant]
        assert len(one.growth_seconds) == 2
        if timer.name != "heapq-delay-queue":
            made = timer.new(0, one.size)
            assert one.nbytes == made.nbytes
            made.reserve(one.size + 1)
            assert one.grown_nbytes == made.nbytes > one.nbytes
            # The old places are still there while they are copied to the new ones.
            assert 0 <= one.peak_nbytes - one.grown_nbytes - 24 * one.size < one.nbytes + 4000


def test_slots_are_told_of_wheels_after_holding(measured):
    wheels = [c for c, one in enumerate(measured.contestants) if one.name.endswith("wheel")]
    assert [(one.contestant, one.size) for one in measured.slots] == [
        (c, size) for size in SIZES for c in wheels
    ]
    for one in measured.slots:
        timer = measured.contestants[one.contestant]
        assert one.size * 0.85 < one.pending <= one.size
        if timer.name in ("hierarchical-wheel", "cascading-wheel"):
            assert one.in_slots == one.pending
        else:  # most wait in a list: what is beyond 512 units; what has arrived since the last tick
            assert one.in_slots < one.pending / 4


def test_what_would_take_too_long_is_predicted_and_not_run():
    done = bench("unordered-list", sizes=[50_000], budget=0.05)
    done.run()
    omitted = {one.task: one for one in done.samples if one.predicted_seconds is not None}
    assert BY_CLOCK in omitted
    assert omitted[BY_CLOCK].predicted_seconds > 0.05
    assert INSERT in {one.task for one in done.samples if one.ns_per_operation is not None}
    assert done.tapes  # what is not timed is checked all the same


def test_a_timer_without_counters_is_predicted_from_its_times():
    done = bench(OWN + "Greedy", sizes=[3000], repeats=1, budget=0.1)
    done.run()
    assert BY_CLOCK in {one.task for one in done.samples if one.predicted_seconds is not None}


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
