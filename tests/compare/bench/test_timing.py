"""What the tasks are, what is timed of them, and what is predicted: exact, by a fake clock."""

import numpy as np
import pytest

from compare.bench import measure, work
from compare.bench.contestant import contestant, parse_contestant
from compare.bench.measure import Bench, Sample, overhead
from compare.bench.task import BY_CLOCK, BY_EVENT, CANCEL_ALL, HOLD, INSERT, TASKS
from compare.bench.work import SETTLE, plan
from compare.oracle.compiled import NEVER, expect
from compare.tapes.tape import CANCEL, START, validate
from tests.compare.clocks import COSTS, FakeClock, spend_in_compiled_code
from tests.compare.conftest import SMALL
from tests.compare.own_timers import Timed
from tests.compare.small_tapes import digest

SIZES = [32, 300]
LONGEST_DELAY, HOLD_PAIRS = SMALL["LONGEST_DELAY"], SMALL["HOLD_PAIRS"]
OWN = "tests.compare.own_timers:"


def bench(*timers, sizes=SIZES, repeats=2, budget=60.0, seed=3, **options):
    contestants = [parse_contestant(name) for name in timers]
    return Bench(contestants, sizes, repeats, budget, seed, **options)


@pytest.fixture
def clock(monkeypatch):
    """The clock of Timed and, with `spend_in_compiled_code`, of compiled loops."""
    clock = FakeClock()
    monkeypatch.setattr(Timed, "clock", clock)
    monkeypatch.setattr(Timed, "factor", 1)
    monkeypatch.setattr(Timed, "made", [])
    return clock


def seconds_of(done, *, size=None):
    """Task -> seconds per operation, by repeat, as the samples of one contestant have it."""
    found = {}
    for sample in done.samples:
        if size in (None, sample.size):
            found.setdefault(sample.task, []).append(sample.ns_per_operation / 1e9)
    return found


# ---- the tapes


def test_the_tapes_are_those_of_the_seed_and_the_size_alone(short_measurements, monkeypatch):
    for name, value in short_measurements.items():
        monkeypatch.setattr(work, name, value)
    tapes = plan(1000, 7)
    digests = [digest(tape)[:16] for tape in (tapes.filling, tapes.holding)]
    assert digests == ["85a3e8a815a8792b", "86bae0c44c5ba460"]
    assert [digest(tape)[:16] for tape in (plan(1000, 7).filling, plan(1000, 7).holding)] == digests
    assert digest(plan(1000, 8).filling) != digest(tapes.filling)


def test_filling_starts_all_settles_and_cancels_all():
    tape = plan(500, 0).filling
    validate(tape, 500)
    assert tape.op.tolist() == [START] * 500 + [CANCEL] * 501
    assert tape.id[:501].tolist() == [*range(500), 0]
    assert sorted(tape.id[501:].tolist()) == list(range(500))
    assert tape.id[501:].tolist() != list(range(500))
    assert tape.time.tolist() == [0] * 500 + [work.SETTLING] * 501
    assert 1 <= tape.deadline[:500].min() <= tape.deadline[:500].max() <= LONGEST_DELAY


def test_holding_replaces_timers_while_the_clock_moves():
    tapes = plan(100, 0)
    tape = tapes.holding
    validate(tape, 100)
    assert all((a[:101] == b[:101]).all() for a, b in zip(tape, tapes.filling, strict=True))
    pairs = tape.op[101:].reshape(HOLD_PAIRS, 2)
    assert (pairs == [CANCEL, START]).all()
    held = tape.id[101:].reshape(HOLD_PAIRS, 2)
    assert (held[:, 0] == held[:, 1]).all()
    assert np.unique(held).size == 100
    moments = [work.SETTLING + k // 200 for k in range(2 * HOLD_PAIRS)]  # a unit for 100 pairs
    assert tape.time[101:].tolist() == moments
    assert tapes.held_until == work.SETTLING + HOLD_PAIRS / 100 - 1
    delays = tape.deadline[102::2] - tape.time[102::2]
    assert 1 <= delays.min() <= LONGEST_DELAY / 100
    assert LONGEST_DELAY * 0.99 <= delays.max() <= LONGEST_DELAY
    assert delays.mean() == pytest.approx(LONGEST_DELAY / 2, rel=0.05)


def test_each_task_has_its_part_of_a_tape():
    tapes = plan(100, 0)
    parts = {task: part["op"].tolist() for task, part in tapes.rows.items()}
    assert parts == {
        INSERT: [START] * 100,
        SETTLE: [CANCEL],
        CANCEL_ALL: [CANCEL] * 100,
        HOLD: [CANCEL, START] * HOLD_PAIRS,
    }
    assert tapes.rows[CANCEL_ALL]["id"].tolist() == tapes.filling.id[101:].tolist()
    assert tapes.rows[HOLD]["deadline"].tolist() == tapes.holding.deadline[101:].tolist()
    assert {task: tapes.operations(task) for task in TASKS} == {
        INSERT: 100,
        CANCEL_ALL: 100,
        HOLD: HOLD_PAIRS,
        BY_CLOCK: 100,
        BY_EVENT: 100,
    }


def test_no_task_makes_room(clock):
    """A timer is made with room for all. Its growth is a task of its own."""
    tapes = plan(100, 0)
    trial = work.Trial(parse_contestant("delay-queue"), tapes, clock)
    made = trial.timer.nbytes
    for task in (INSERT, SETTLE, HOLD):
        trial.run(task)
    assert (len(trial.timer), trial.timer.nbytes) == (100, made)


# ---- what is timed


def facts(size, seed=3):
    """What an exact timer does: timers that fire in settling, holding and later; units; moments."""
    tapes = plan(size, seed)
    fired_at = expect(tapes.holding, size, contestant("delay-queue").rounding).fired_at
    fired_at = fired_at[fired_at != NEVER]
    settled = int((fired_at <= work.SETTLING).sum())
    held = int(((fired_at > work.SETTLING) & (fired_at <= tapes.held_until)).sum())
    later = fired_at[fired_at > tapes.held_until]
    units = int(later.max()) - tapes.held_until
    return settled, held, later.size, units, np.unique(later).size


@pytest.mark.parametrize("size", [700, 2000])  # so many that a timer fires while holding
def test_each_task_is_timed_alone_and_from_its_first_call_to_its_last(clock, size):
    done = bench(OWN + "Timed", sizes=[size], budget=1e9, clock=clock)
    done.run()
    t = Timed
    settled, held, fired, units, moments = facts(size)
    assert settled and held and moments < fired < size
    advances = HOLD_PAIRS / 100 - 1
    each = {
        INSERT: t.SCHEDULE,
        CANCEL_ALL: t.CANCEL,
        HOLD: t.CANCEL + t.SCHEDULE + (t.ADVANCE * advances + t.FIRE * held) / HOLD_PAIRS,
        BY_CLOCK: t.FIRE + t.ADVANCE * units / fired,
        BY_EVENT: t.FIRE + (t.ADVANCE + t.WAKE) * moments / fired,
    }
    assert seconds_of(done) == {task: [pytest.approx(each[task], rel=1e-12)] * 2 for task in TASKS}
    operations = {sample.task: sample.operations for sample in done.samples}
    # Without a kernel, each scenario is run once: insert is part of all three, and hold of two.
    assert operations == {
        INSERT: 3 * size,
        CANCEL_ALL: size,
        HOLD: 2 * HOLD_PAIRS,
        BY_CLOCK: fired,
        BY_EVENT: fired,
    }
    assert [one.growth_seconds for one in done.memory] == [[t.SCHEDULE] * 2]


@pytest.mark.parametrize("name", ["delay-queue", "hashed-wheel"])
def test_an_empty_call_is_subtracted_from_each_call_of_compiled_code(clock, monkeypatch, name):
    calls = spend_in_compiled_code(monkeypatch, clock)
    done = bench(name, sizes=[32], budget=1e9, clock=clock)
    done.run()
    cost = {name: each for name, (_, each) in COSTS.items()}
    assert seconds_of(done) == {
        INSERT: [cost["run"]] * 2,
        CANCEL_ALL: [cost["run"]] * 2,
        HOLD: [2 * cost["run"]] * 2,  # two operations
        BY_CLOCK: [cost["tick"]] * 2,
        BY_EVENT: [cost["drain"]] * 2,
    }
    # What is short is run several times: to cancel 2000, and to let 500 fire.
    operations = {sample.task: sample.operations for sample in done.samples}
    fired = operations[BY_CLOCK]
    assert 28 <= fired <= 32
    assert operations == {
        INSERT: (63 + 16 + 1) * 32,
        CANCEL_ALL: 63 * 32,
        HOLD: 17 * HOLD_PAIRS,
        BY_CLOCK: fired,
        BY_EVENT: 16 * fired,
    }
    assert [name for name, _ in calls].count(
        "tick"
    ) == 65 + 1 + 2  # compile and empty ones; the check; the samples


def test_an_empty_call_is_the_median_of_several(clock, monkeypatch):
    spend_in_compiled_code(
        monkeypatch, clock
    )  # of which a quarter take 900 longer, and a quarter 400 less
    assert overhead(contestant("delay-queue"), clock) == {
        INSERT: COSTS["run"][0],
        BY_EVENT: COSTS["drain"][0],
        BY_CLOCK: COSTS["tick"][0],
    }
    assert overhead(contestant("heapq-delay-queue"), clock) == {INSERT: 0.0}


def test_a_call_quicker_than_an_empty_one_takes_no_time(clock, monkeypatch):
    monkeypatch.setattr(measure, "overhead", lambda *_: dict.fromkeys(TASKS, 1e9))
    done = bench(OWN + "Timed", sizes=[32], repeats=1, budget=1e9, clock=clock)
    done.run()
    assert {sample.ns_per_operation for sample in done.samples} == {0.0}


def changing(factors):
    """Progress that gives Timed another factor in each round of timing."""
    left = iter(factors)

    def step(what):
        Timed.factor = next(left) if what.startswith("timing") else 1

    return step


def test_a_sample_is_of_its_own_repeat_and_predictions_use_the_least(clock):
    done = bench(OWN + "Timed", sizes=[32, 300], repeats=3, budget=1e9, clock=clock)
    done.run(changing([5, 2, 3, 7, 11, 4]))
    factors = {32: [5, 2, 3], 300: [7, 11, 4]}
    for size, expected in factors.items():
        assert seconds_of(done, size=size)[CANCEL_ALL] == [5.0 * factor for factor in expected]
        by_repeat = [
            (sample.repeat, sample.ns_per_operation)
            for sample in done.samples
            if (sample.size, sample.task) == (size, INSERT)
        ]
        assert by_repeat == [(k, 3e9 * factor) for k, factor in enumerate(expected)]
    assert [one.growth_seconds for one in done.memory] == [[15, 6, 9], [21, 33, 12]]
    observed = done._observed[0, INSERT]
    assert {size: (one.seconds, one.steps) for size, one in observed.items()} == {
        32: (3 * 2 * 32, 32),
        300: (3 * 4 * 300, 300),
    }
    steps = {task: done._observed[0, task][300].steps for task in TASKS}
    _, _, _, units, moments = facts(300)
    assert steps == {
        INSERT: 300,
        CANCEL_ALL: 300,
        HOLD: HOLD_PAIRS,
        BY_CLOCK: units,
        BY_EVENT: moments,
    }


def test_contestants_take_turns_and_only_what_was_asked_for_is_kept(clock):
    done = bench(OWN + "Timed", OWN + "Right", sizes=[900, 200], budget=1e9, clock=clock)
    heard = []
    done.run(heard.append)

    def steps(what, size):
        return [f"{what} {OWN}{name} at {size}" for name in ("Timed", "Right")]

    assert heard == [
        *(steps("checking", 128) + steps("timing", 128)),
        *(steps("checking", 200) + 2 * steps("timing", 200)),
        *(steps("checking", 900) + 2 * steps("timing", 900)),
    ]
    assert done.steps == len(heard)
    for results in (done.samples, done.counted, done.memory):
        assert [one.size for one in results] == sorted(one.size for one in results)
        assert {(one.contestant, one.size) for one in results} == {
            (c, size) for c in (0, 1) for size in (200, 900)
        }
    assert {sample.ns_per_operation for sample in done.samples if sample.contestant} == {0.0}
    assert done.tapes == 2 * 3 * 3  # the pilot's, too


@pytest.mark.parametrize(
    ("sizes", "pilots"),
    [([129], 1), ([128], 0), ([256], 1), ([257], 2), ([9000, 128], 0), ([], 0)],
)
def test_pilots_are_smaller_than_all_sizes(sizes, pilots):
    done = bench(OWN + "Timed", sizes=sizes, repeats=3, budget=1.0)
    assert done.steps == 2 * pilots + 4 * len(sizes)


def test_what_takes_a_third_of_the_budget_is_measured(clock):
    """After one pilot the worst growth is assumed, but the second is only twice as large."""

    def hold(budget):
        done = bench(OWN + "Timed", sizes=[1000], repeats=1, budget=budget, clock=clock)
        done.run()
        (sample,) = (sample for sample in done.samples if sample.task == HOLD)
        return sample

    seconds = hold(1e9).ns_per_operation * HOLD_PAIRS / 1e9
    assert hold(3 * seconds).predicted_seconds is None


def test_a_prediction_adds_up_all_that_must_be_run(clock, monkeypatch):
    monkeypatch.setattr(Timed, "FIRE", 0)
    done = bench(OWN + "Timed", sizes=[300, 2000], repeats=1, budget=1e9, clock=clock)

    def step(what):
        if what.endswith("at 2,000"):
            done.budget = 1.0

    done.run(step)
    t, (_, _, _, units, moments) = Timed, facts(2000)
    insert, settle = t.SCHEDULE * 2000, t.ADVANCE + t.CANCEL
    hold = (t.SCHEDULE + t.CANCEL) * HOLD_PAIRS + t.ADVANCE * (HOLD_PAIRS / 100 - 1)
    expected = {
        INSERT: insert,
        CANCEL_ALL: insert + settle + t.CANCEL * 2000,
        HOLD: insert + settle + hold,
        BY_CLOCK: insert + settle + hold + t.ADVANCE * units,
        BY_EVENT: insert + settle + hold + (t.ADVANCE + t.WAKE) * moments,
    }
    omitted = [one for one in done.samples if one.size == 2000]
    assert {one.task: one.predicted_seconds for one in omitted} == {
        task: pytest.approx(seconds, rel=1e-6) for task, seconds in expected.items()
    }
    assert len(omitted) == len(TASKS)
    for one in omitted:
        operations = HOLD_PAIRS if one.task == HOLD else 2000
        assert one[3:6] == (operations, None, None)
    assert [one.size for one in done.memory] == [300]


@pytest.mark.parametrize(
    ("budget", "measured", "checks"),
    [
        (1.9, set(), 0),
        (2.0, {INSERT}, 0),
        (9.9, {INSERT}, 0),
        (10.0, {INSERT, CANCEL_ALL}, 1),
        (12.0, {INSERT, CANCEL_ALL, HOLD}, 2),
        (23.0, {INSERT, CANCEL_ALL, HOLD, BY_EVENT}, 3),
        (25.0, set(TASKS), 3),
    ],
)
def test_what_fits_into_the_budget_is_run_and_checked(clock, monkeypatch, budget, measured, checks):
    own = {INSERT: 2.0, SETTLE: 3.0, CANCEL_ALL: 5.0, HOLD: 7.0, BY_EVENT: 11.0, BY_CLOCK: 13.0}
    monkeypatch.setattr(Bench, "_predicted", lambda self, c, at, task: own[task])
    done = bench(OWN + "Timed", sizes=[40], repeats=1, budget=budget, clock=clock)
    done.run()
    assert {one.task for one in done.samples if one.predicted_seconds is None} == measured
    assert {one.task: one.predicted_seconds for one in done.samples if one.predicted_seconds} == {
        task: seconds
        for task, seconds in zip(TASKS, (2.0, 10.0, 12.0, 25.0, 23.0), strict=True)
        if task not in measured
    }
    assert done.tapes == checks
    assert len(done.memory) == bool(measured)


def test_a_tick_without_end_is_predicted_from_its_steps(clock):
    name = "hashed-wheel/tick=1000000000000/wheel-size=2"
    done = bench(name, sizes=[10], repeats=1, clock=clock)
    done.run()
    (omitted,) = (one for one in done.samples if one.predicted_seconds is not None)
    steps = 10**12 - plan(10, 3).held_until
    assert omitted == Sample(0, 10, BY_CLOCK, 10, predicted_seconds=steps * 5e-9)


def repeats_within(clock, budget):
    """The repeats that are made, and the seconds of each: two make the budget as they are."""
    done = bench(OWN + "Timed", sizes=[40], repeats=5, budget=budget, clock=clock)
    moments = []
    done.run(lambda what: moments.append(clock()))
    return {sample.repeat for sample in done.samples}, moments[2] - moments[1]


def test_repeats_end_before_they_exceed_the_budget_but_one_is_made(clock):
    _, seconds = repeats_within(clock, 1e9)
    for budget, made in [(0.5, 1), (1.9, 1), (2.0, 2), (2.9, 2), (3.0, 3), (9.0, 5)]:
        assert repeats_within(clock, budget * seconds)[0] == set(range(made))
    assert repeats_within(clock, 2 * seconds - 0.5)[0] == {0}
