"""What is measured, how often, and what stops at the budget: exact, by a fake clock."""

import weakref

import numpy as np
import pytest

from compare.base.garbage import no_collections
from compare.traffic.tapes.tape import CANCEL, START, part, validate
from compare.trial.bench import measure, work
from compare.trial.bench.measure import Bench, overhead
from compare.trial.bench.task import BY_CLOCK, BY_EVENT, BY_NAME, CANCEL_ALL, HOLD, INSERT, TASKS
from compare.trial.bench.work import SETTLE, tapes_of
from compare.trial.oracle.compiled import NEVER, AgreementError, expect
from compare.trial.replay import loops
from compare.trial.replay.contestant import COMPILED, contestant
from compare.trial.replay.engine import OverBudgetError, ReplayError, replay
from compare.trial.results.schema import MEMORY
from tests.compare.clocks import COSTS, FakeClock, spend_in_compiled_code
from tests.compare.conftest import SMALL
from tests.compare.own_timers import Timed
from tests.compare.small_tapes import digest
from timers.registry import names

SIZES = [32, 300]
LONGEST_DELAY, HOLD_PAIRS = SMALL["LONGEST_DELAY"], SMALL["HOLD_PAIRS"]
OWN = "tests.compare.own_timers:"


def bench(*timers, sizes=SIZES, repeats=2, budget=1e9, seed=3, **options):
    return Bench(list(map(contestant, timers)), sizes, repeats, budget, seed, **options)


def facts(size, seed=3):
    """What an exact timer does: timers that fire in settling, holding and later; units; moments."""
    tapes = tapes_of(size, seed)
    held_until = int(tapes.holding.time[-1])
    fired_at = expect(tapes.holding, size, contestant("delay-queue").rounding("ms")).fired_at
    fired_at = fired_at[fired_at != NEVER]
    settled = int((fired_at <= work.SETTLING).sum())
    held = int(((fired_at > work.SETTLING) & (fired_at <= held_until)).sum())
    later = fired_at[fired_at > held_until]
    return settled, held, later.size, int(later.max()) - held_until, np.unique(later).size


# ---- the tapes


def test_the_tapes_are_those_of_the_seed_and_the_size_alone(short_measurements, monkeypatch):
    for name, value in short_measurements.items():
        monkeypatch.setattr(work, name, value)
    tapes, again = tapes_of(1000, 7), tapes_of(1000, 7)
    digests = [digest(tape)[:16] for tape in (tapes.filling, tapes.holding)]
    assert digests == ["85a3e8a815a8792b", "86bae0c44c5ba460"]
    assert [digest(tape)[:16] for tape in (again.filling, again.holding)] == digests
    assert digest(tapes_of(1000, 8).filling) != digest(tapes.filling)


def test_each_task_has_its_part_of_a_tape():
    tapes = tapes_of(100, 0)
    filling, holding = tapes.filling, tapes.holding
    for tape in (filling, holding):
        validate(tape, 100)
    assert all((a[:101] == b[:101]).all() for a, b in zip(filling, holding, strict=True))
    assert {task: rows["op"].tolist() for task, rows in tapes.rows.items()} == {
        INSERT: [START] * 100,
        SETTLE: [CANCEL],
        CANCEL_ALL: [CANCEL] * 100,
        HOLD: [CANCEL, START] * HOLD_PAIRS,
    }
    operations = {task: tapes.operations(task) for task in TASKS}
    assert operations == {**dict.fromkeys(TASKS, 100), HOLD: HOLD_PAIRS}
    # All are started at once, settle, and are cancelled in random order.
    assert filling.time.tolist() == [0] * 100 + [work.SETTLING] * 101
    assert filling.id[:101].tolist() == [*range(100), 0]
    assert tapes.rows[CANCEL_ALL]["id"].tolist() == filling.id[101:].tolist() != [*range(100)]
    # Or each is replaced by another, while the clock moves a unit for 100 pairs.
    held, pairs = holding.id[101:].reshape(HOLD_PAIRS, 2), tapes.rows[HOLD]
    assert (held[:, 0] == held[:, 1]).all() and np.unique(held).size == 100
    assert pairs["deadline"].tolist() == holding.deadline[101:].tolist()
    assert pairs["time"].tolist() == [work.SETTLING + k // 200 for k in range(2 * HOLD_PAIRS)]
    delays = pairs["deadline"][1::2] - pairs["time"][1::2]
    assert 1 <= delays.min() < 60 and LONGEST_DELAY - 60 < delays.max() <= LONGEST_DELAY
    assert delays.mean() == pytest.approx(LONGEST_DELAY / 2, rel=0.05)


def test_no_task_makes_room(clock):
    """A timer is made with room for all, and the buffers have room for all that fires."""
    tapes = tapes_of(100, 0)
    assert tapes.buffers.fired.size > 100 + HOLD_PAIRS
    run = work.ScenarioRun(contestant("delay-queue"), tapes, clock)
    empty = run.timer.nbytes
    for task in (INSERT, SETTLE, HOLD):
        run.run(task)
    assert (len(run.timer), run.timer.nbytes) == (100, empty)


@pytest.mark.parametrize(("task", "loop"), [(BY_CLOCK, "tick"), (BY_EVENT, "drain")])
def test_a_timed_task_is_one_call_of_compiled_code(clock, monkeypatch, task, loop):
    """More advances than STEPS_AT_ONCE: to hand over rows between calls leaves the caches cold."""
    calls = spend_in_compiled_code(monkeypatch, clock)
    run = work.ScenarioRun(contestant("delay-queue"), tapes_of(10_000, 0), clock)
    run.run(INSERT)
    calls.clear()
    run.run(task)
    assert [name for name, _ in calls] == [loop]
    assert run.replay().outcome.wakeups > loops.STEPS_AT_ONCE


@pytest.mark.parametrize("name", ["delay-queue", "heapq-delay-queue"])
def test_a_run_is_freed_at_once(name):
    """A cycle would keep the objects of several runs of a million timers, 5 GB in `report`."""
    with no_collections():
        run = work.ScenarioRun(contestant(name), tapes_of(100, 0), FakeClock())
        run.run(INSERT)
        run.run(BY_EVENT)
        loop = weakref.ref(run.loop)
        del run
        assert loop() is None


def test_the_time_of_compiling_is_not_part_of_the_budget(monkeypatch):
    """The first call of each compiled loop, which takes a second here."""
    calls, clock = iter([5.0]), FakeClock()
    tick = loops.tick

    def compiling(*arguments):
        clock.seconds += next(calls, 0.01)
        tick(*arguments)

    monkeypatch.setattr(loops, "tick", compiling)
    run = work.ScenarioRun(contestant("delay-queue"), tapes_of(100, 0), clock, limit=1.0)
    run.run(INSERT)
    operations, seconds = run.run(BY_CLOCK)
    assert operations == 100
    assert seconds < 1.0


# ---- all timers


@pytest.fixture(scope="module")
def measured():
    done = bench(*names())
    heard = []
    done.run(heard.append)
    assert len(heard) == done.steps == len(names()) * len(SIZES) * 3
    return done


LOOPS = [name for name in names() if contestant(name).engine != COMPILED]


def rows(done, *metrics):
    return [row for row in done.rows if row.metric in metrics]


def task_of(row):
    return BY_NAME[row.subject]


def counter(done, name, size, task, which):
    """A count per operation."""
    (row,) = (row for row in rows(done, which) if row[:3] == (name, task.name, size))
    assert row.repeat is None
    return row.value


def operations_of(done):
    return {task_of(row): row.value for row in rows(done, "operations")}


def growth(done):
    """Seconds of the insert that makes a timer grow, by repeat, of each size."""
    seconds = {}
    for row in rows(done, "pause"):
        seconds.setdefault(row.size, []).append(row.value / 1e3)
    return [*seconds.values()]


def test_counters_are_of_the_task_alone(measured):
    for size in SIZES:
        # The naive list looks at every pending timer in every unit, and asks only when something
        # fires by events.
        looks = counter(measured, "unordered-list", size, BY_CLOCK, "timers_touched")
        _, _, fired, units, moments = facts(size)
        assert looks * fired > units * size * 0.3
        # A timer without a kernel counts nothing else, but its advances are known.
        for name in ("unordered-list", "heapq-delay-queue"):
            for task, advances, idle in [
                (BY_CLOCK, units, units - moments),
                (BY_EVENT, moments, 0),
            ]:
                assert counter(measured, name, size, task, "advances") == advances / fired
                assert counter(measured, name, size, task, "idle_advances") == idle / fired
    figures = {row.metric for row in measured.rows if row.contestant in LOOPS}
    of_tasks = {"time", "operations", "advances", "idle_advances"}
    assert figures == of_tasks | {"at_rest", "at_peak", "grown", "pause"}


@pytest.mark.parametrize("name", ["unordered-list", "delay-queue", "hierarchical-wheel"])
def test_counters_are_those_of_the_same_operations_on_the_timer(measured, name):
    tape = tapes_of(300, 3).filling

    def counters(operations):
        timer = contestant(name).new("ms", 0, 300, counting=True)
        return replay(timer, part(tape, 0, operations), 300, drain_timer=False).outcome.counters

    inserted, settled, cancelled = map(counters, (300, 301, 601))
    for which, value in inserted.items():
        assert counter(measured, name, 300, INSERT, which) == value / 300
        actual = counter(measured, name, 300, CANCEL_ALL, which)
        assert actual == (cancelled[which] - settled[which]) / 300


def test_memory_is_told_full_and_grown_and_while_it_grows(measured):
    for name in names():
        for size in SIZES:
            held = {
                row.metric: row.value * size
                for row in rows(measured, "at_rest", "at_peak", "grown")
                if row[:3] == (name, MEMORY, size)
            }
            pauses = [row for row in rows(measured, "pause") if row[:3] == (name, MEMORY, size)]
            assert [row.repeat for row in pauses] == [0, 1]
            if name not in LOOPS:
                created = contestant(name).new("ms", 0, size)
                assert held["at_rest"] == pytest.approx(created.nbytes)
                created.reserve(size + 1)
                assert held["at_rest"] < held["grown"] == pytest.approx(created.nbytes)
                # The old places are still there while they are copied to the new ones.
                copied = held["at_peak"] - held["grown"] - 24 * size
                assert -1 <= copied < held["at_rest"] + 4000


def test_slots_are_told_of_wheels_after_holding(measured):
    shares = rows(measured, "in_slots")
    assert {row.contestant for row in shares} == {n for n in names() if n.endswith("wheel")}
    for row in shares:
        assert (row.subject, row.repeat) == ("hold", None)
        # Most wait in a list: what is beyond 512 units; what has arrived since the last tick.
        if row.contestant in ("simple-wheel", "hashed-wheel"):
            assert row.value < 1 / 4
        else:
            assert row.value == 1


def test_a_size_is_stored_when_it_is_finished():
    stored = {}
    done = bench("delay-queue", sizes=[300, 32])
    done.run(store=lambda name, rows: stored.update({name: rows}))
    assert [*stored] == done.tasks == ["pending-32", "pending-300"]
    assert [row for rows in stored.values() for row in rows] == done.rows
    for size, of_size in zip((32, 300), stored.values(), strict=True):
        assert {row.size for row in of_size} == {size}


@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        ("Late", AgreementError, "Late disagrees with the oracle on the timer armed by operation"),
        ("Twice", ReplayError, "Twice fired handle"),
        ("Asleep", ReplayError, "none has fired"),
        ("Moody", AgreementError, "Moody fired different rows when timed"),
    ],
)
def test_a_wrong_timer_is_never_timed(name, error, says):
    done = bench(OWN + name, sizes=[500])  # so many that some fire in one unit
    with pytest.raises(error, match=says):
        done.run()


def test_what_is_timed_counts_nothing(monkeypatch):
    doing, counted = [""], {}
    create = measure.ScenarioRun.__init__

    def noted(self, *arguments, counting=False, **options):
        counted.setdefault(doing[-1], set()).add(counting)
        create(self, *arguments, counting=counting, **options)

    monkeypatch.setattr(measure.ScenarioRun, "__init__", noted)
    bench("delay-queue", sizes=[40]).run(doing.append)
    assert counted == {
        "checking delay-queue at 40": {True, False},  # memory is measured without counters
        "timing delay-queue at 40": {False},
    }


# ---- what is timed


def seconds_of(done):
    """Task -> seconds per operation, by repeat, as the samples of one contestant have it."""
    seconds = {}
    for row in rows(done, "time"):
        seconds.setdefault(task_of(row), []).append(row.value / 1e9)
    return seconds


def test_each_task_is_timed_alone_and_from_its_first_call_to_its_last(clock):
    size = 700  # enough that a timer fires while holding
    done = bench(OWN + "Timed", sizes=[size], clock=clock)
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
    operations = operations_of(done)
    # Without a kernel, each scenario is run once: insert is part of all three, and hold of two.
    assert operations == {
        INSERT: 3 * size,
        CANCEL_ALL: size,
        HOLD: 2 * HOLD_PAIRS,
        BY_CLOCK: fired,
        BY_EVENT: fired,
    }
    assert growth(done) == [[pytest.approx(t.SCHEDULE)] * 2]


def test_an_empty_call_is_subtracted_from_compiled_code(clock, monkeypatch):
    spend_in_compiled_code(monkeypatch, clock)
    done = bench("delay-queue", sizes=[40], clock=clock)
    done.run()
    cost = {name: each for name, (_, each) in COSTS.items()}
    seconds = seconds_of(done)
    assert seconds[INSERT] == seconds[CANCEL_ALL] == [cost["run"]] * 2
    assert seconds[HOLD] == [2 * cost["run"]] * 2  # two operations
    assert seconds[BY_EVENT] == [cost["drain"]] * 2
    # What is short is run several times: to cancel 2000, and to let 500 fire.
    operations = operations_of(done)
    fired = operations[BY_CLOCK]
    assert 35 <= fired <= 40
    assert operations == {
        INSERT: (50 + 13 + 1) * 40,
        CANCEL_ALL: 50 * 40,
        HOLD: 14 * HOLD_PAIRS,
        BY_CLOCK: fired,
        BY_EVENT: 13 * fired,
    }


def test_an_empty_call_is_the_median_of_several(clock, monkeypatch):
    # Of the empty calls a quarter takes 900 longer, and a quarter 400 less.
    spend_in_compiled_code(monkeypatch, clock)
    assert overhead(contestant("delay-queue"), clock) == {
        INSERT: COSTS["run"][0],
        BY_EVENT: COSTS["drain"][0],
        BY_CLOCK: COSTS["tick"][0],
    }
    assert overhead(contestant("heapq-delay-queue"), clock) == {INSERT: 0.0}


def test_a_call_quicker_than_an_empty_one_takes_no_time(clock, monkeypatch):
    monkeypatch.setattr(measure, "overhead", lambda *_: dict.fromkeys(TASKS, 1e9))
    done = bench(OWN + "Timed", sizes=[32], repeats=1, clock=clock)
    done.run()
    assert {row.value for row in rows(done, "time")} == {0.0}


def changing(factors):
    """Progress that gives Timed another factor in each round of timing."""
    left = iter(factors)

    def step(what):
        Timed.factor = next(left) if what.startswith("timing") else 1

    return step


def test_a_sample_is_of_its_own_repeat(clock):
    done = bench(OWN + "Timed", sizes=[300, 32], repeats=3, clock=clock)
    done.run(changing([5, 2, 3, 7, 11, 4]))
    for size, factors in {32: [5, 2, 3], 300: [7, 11, 4]}.items():
        for task, seconds in ((INSERT, Timed.SCHEDULE), (CANCEL_ALL, Timed.CANCEL)):
            assert [
                (row.repeat, row.value)
                for row in rows(done, "time")
                if (row.size, task_of(row)) == (size, task)
            ] == [(k, seconds * 1e9 * factor) for k, factor in enumerate(factors)]
    assert growth(done) == [[15, 6, 9], [21, 33, 12]]


def test_contestants_take_turns_and_smaller_sizes_come_first(clock):
    done = bench(OWN + "Timed", OWN + "Right", sizes=[900, 200], clock=clock)
    heard = []
    done.run(heard.append)

    def steps(what, size):
        return [f"{what} {OWN}{name} at {size}" for name in ("Timed", "Right")]

    assert heard == [
        *(steps("checking", 200) + 2 * steps("timing", 200)),
        *(steps("checking", 900) + 2 * steps("timing", 900)),
    ]
    right = [row for row in rows(done, "time") if row.contestant == OWN + "Right"]
    assert {row.value for row in right} == {0.0}


# ---- the budget


def stopped(done):
    """Task -> the size at which it was over budget; each is told once."""
    over = [row for row in rows(done, "time") if row.value is None]
    assert {(row.repeat, row.note) for row in over} <= {(None, "over budget")}
    sizes = {task_of(row): row.size for row in over}
    assert len(sizes) == len(over)
    return sizes


def timed(done):
    """Task -> the sizes at which it was timed."""
    sizes = {}
    for row in rows(done, "time"):
        if row.value is not None:
            sizes.setdefault(task_of(row), []).append(row.size)
    return sizes


PAIRS = (Timed.SCHEDULE + Timed.CANCEL) * HOLD_PAIRS + Timed.ADVANCE * HOLD_PAIRS // 100
"""The seconds of HOLD; by clock, 40 timers already take longer."""


def within(budget, sizes, clock, step=lambda what: None):
    done = bench(OWN + "Timed", sizes=sizes, repeats=1, budget=budget, clock=clock)
    done.run(step)
    return done


def test_a_task_over_budget_is_not_run_at_larger_sizes(clock):
    sizes = [40, 400, 4000]
    done = within(2.2 * PAIRS, sizes, clock)
    assert stopped(done) == {BY_CLOCK: 40, BY_EVENT: 4000}
    assert timed(done) == {INSERT: sizes, CANCEL_ALL: sizes, HOLD: sizes, BY_EVENT: [40, 400]}
    # Filling and by event, twice; then filling alone.
    assert done.tapes == 2 + 2 + 1


def test_what_comes_after_a_task_over_budget_is_over_budget(clock):
    done = within(PAIRS / 2, [40, 400], clock)
    assert stopped(done) == dict.fromkeys((HOLD, BY_EVENT, BY_CLOCK), 40)
    assert timed(done) == {INSERT: [40, 400], CANCEL_ALL: [40, 400]}


def test_a_timer_for_which_everything_is_over_budget_has_no_figures(clock):
    done = within(1.0, [40, 400], clock)
    assert stopped(done) == dict.fromkeys(TASKS, 40)
    assert {row.metric for row in done.rows} == {"time"} and not timed(done)


def test_a_compiled_task_is_stopped_soon_after_the_budget(clock, monkeypatch):
    """A tick without end: 10**12 units, of which a call passes some thousand."""
    calls = spend_in_compiled_code(monkeypatch, clock)
    name = "hashed-wheel/tick=1000000000000/wheel-size=2"
    done = bench(name, sizes=[10], repeats=1, budget=200_000.0, clock=clock)
    done.run()
    assert stopped(done) == {BY_CLOCK: 10}
    fixed, each = COSTS["tick"]
    assert 0 < calls.count(("tick", fixed + 10 * each)) < 100  # with all ten timers pending
    run = work.ScenarioRun(contestant("delay-queue"), tapes_of(2000, 3), clock, limit=1.0)
    calls.clear()
    with pytest.raises(OverBudgetError):
        run.run(INSERT)
    fixed, each = COSTS["run"]
    assert calls == [("run", fixed + loops.STEPS_IN_LIMIT * each)]


def test_a_sample_over_budget_is_kept_and_is_the_last(clock):
    """The run that is checked is within the budget, and the timed one is not."""
    sizes = [40, 41]
    done = within(1.5 * Timed.CANCEL * 40, sizes, clock, changing([2, 1]))
    assert stopped(done) == dict.fromkeys((CANCEL_ALL, HOLD, BY_EVENT, BY_CLOCK), 40)
    assert timed(done) == {INSERT: sizes, CANCEL_ALL: [40]}
    done = within(1.5 * PAIRS, sizes, clock, changing([2, 1]))
    assert stopped(done) == dict.fromkeys((HOLD, BY_EVENT, BY_CLOCK), 40)
    assert timed(done) == {INSERT: sizes, CANCEL_ALL: sizes, HOLD: [40], BY_EVENT: [40]}


def test_repeats_end_before_they_exceed_the_budget_but_one_is_made(clock):
    moments = []
    within(1e9, [40], clock, lambda what: moments.append(clock()))
    seconds = clock() - moments[1]
    for share, repeats in ((1.0, 1), (1.9, 1), (2.0, 2)):
        done = bench(OWN + "Timed", sizes=[40], repeats=5, budget=share * seconds, clock=clock)
        done.run()
        assert {row.repeat for row in rows(done, "time")} - {None} == set(range(repeats))
