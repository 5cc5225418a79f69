"""What a stored run says that was timed, exactly: by the clock of a test."""

import dataclasses

import numpy as np
import pytest

from compare.bench.contestant import Contestant, contestant
from compare.bench.measure import Bench
from compare.bench.run import run_comparison
from compare.bench.sources import checked_replay, digest_of, fresh_replay, timed_replay
from compare.bench.store import TOO_LONG, read_run
from compare.bench.task import TASKS
from compare.oracle.compiled import expect
from compare.replay.engine import Replay, replay
from compare.replay.loops import FIRED
from compare.replay.outcome import Outcome
from compare.tapes.tape import START, Tape
from compare.tapes.trace import write_trace
from compare.workloads.catalogue import make
from tests.compare.bench.test_run import SMALL, rows, shards
from tests.compare.clocks import FakeClock
from tests.compare.own_timers import Timed
from tests.compare.small_tapes import tape_of

OWN = "tests.compare.own_timers:"


@pytest.fixture
def clock(monkeypatch):
    clock = FakeClock()
    monkeypatch.setattr(Timed, "clock", clock)
    monkeypatch.setattr(Timed, "factor", 1)
    monkeypatch.setattr(Timed, "made", [])
    return clock


def timed_runs(traces, clock, tmp_path, **options):
    options = dataclasses.replace(
        SMALL, timers=(OWN + "Timed",), traces=traces, runs=str(tmp_path / "runs"), **options
    )
    return read_run(run_comparison(options, clock))


def test_a_replay_is_timed_over_all_shards_by_the_clock_that_is_given(tmp_path, clock, monkeypatch):
    path, tapes = shards(tmp_path)
    prime = iter([1, 1, 1, 1, 2, 3, 5, 7, 11, 13, 17])  # the first are made for their traits
    made = Timed.__init__

    def make(self, **keywords):
        Timed.factor = next(prime)
        made(self, **keywords)

    monkeypatch.setattr(Timed, "__init__", make)
    run = timed_runs((str(path),), clock, tmp_path, sizes=(), repeats=3, budget=1e9)
    *_, checked, a0, a1, a2, checked_too, b0, b1, b2 = Timed.made
    found = run.replays.to_pylist()
    assert [row["repeat"] for row in found] == [0, 1, 2]
    seconds = [a0.spent + b0.spent, a1.spent + b1.spent, a2.spent + b2.spent]
    assert len(set(seconds)) == 3
    assert [row["seconds"] for row in found] == seconds
    assert [row["ns_per_operation"] for row in found] == [1e9 * each / 800 for each in seconds]
    t, one = Timed, found[0]
    assert a0.spent / a0.factor == checked.spent / checked.factor
    assert one["scheduled"] == sum(int((tape.op == START).sum()) for tape in tapes)
    both = (a0.spent / a0.factor + b0.spent / b0.factor) - t.FIRE * one["fired"]
    assert both > t.SCHEDULE * one["scheduled"] + t.CANCEL * one["cancelled"]
    assert one["operations"] == 800
    assert one["wakeups"] > 0


def test_samples_are_stored_with_their_times_and_in_order(tmp_path, clock):
    run = timed_runs((), clock, tmp_path, sizes=(90, 40), workloads=(), budget=1e9)
    rows_of = run.samples.to_pylist()
    assert [(row["size"], row["operation"], row["driver"], row["repeat"]) for row in rows_of] == [
        (size, *task, repeat) for size in (40, 90) for task in TASKS for repeat in (0, 1)
    ]
    found = {row["operation"]: row for row in rows_of}
    assert found["insert"]["ns_per_operation"] == Timed.SCHEDULE * 1e9
    assert found["insert"]["operations"] == 3 * 90
    assert found["cancel"]["ns_per_operation"] == Timed.CANCEL * 1e9
    assert run.memory.to_pylist()[0]["growth_seconds"] == [Timed.SCHEDULE] * 2
    advances = [row for row in run.counters.to_pylist() if row["counter"] == "advances"]
    assert [(row["size"], row["driver"]) for row in advances] == [
        (size, driver) for size in (40, 90) for driver in ("clock", "event")
    ]
    for row in advances:  # as many as take their time
        ns = rows(run.samples, size=row["size"], driver=row["driver"])[0]["ns_per_operation"]
        each = Timed.ADVANCE + Timed.WAKE * (row["driver"] == "event")
        spent = each * row["count"] / row["operations"] + Timed.FIRE
        assert ns == pytest.approx(spent * 1e9)


@pytest.mark.parametrize(("share", "repeats"), [(0.99, None), (1.0, 1), (2.5, 2), (3.0, 3), (9, 3)])
def test_a_replay_is_predicted_for_all_shards_together(tmp_path, clock, share, repeats):
    tapes = [make("constant", operations=n, seed=1).tape for n in (4000, 2000)]
    path = write_trace(tmp_path / "of.trace", tapes, unit="ms", source={"kind": "test"}).path
    prefix = Tape(*(column[:1000] for column in tapes[0]))
    id_space = int(tapes[0].id.max()) + 1
    spent = replay(Timed(), prefix, id_space, clock=clock).outcome.seconds
    # Nothing is known of the growth: a step is four times as long on four times the operations.
    predicted = spent * 4 * 4 * 6000 / 4000
    run = timed_runs((str(path),), clock, tmp_path, sizes=(), repeats=3, budget=predicted * share)
    if repeats is None:
        (row,) = run.replays.to_pylist()
        assert row["status"] == TOO_LONG
        assert row["predicted_seconds"] == pytest.approx(predicted)
        assert row["operations"] == 6000
    else:
        assert [row["repeat"] for row in run.replays.to_pylist()] == list(range(repeats))


def test_the_clock_of_a_replay_begins_with_its_first_operation(monkeypatch):
    """From 0 a wheel would have to walk through all that lies before."""
    starts = []
    new = Contestant.new

    def noted(self, start=0, capacity=1, *, counting=False):
        starts.append(start)
        return new(self, start, capacity, counting=counting)

    monkeypatch.setattr(Contestant, "new", noted)
    tape = tape_of((1009, START, 0, 1013))
    assert fresh_replay(contestant("hashed-wheel"), tape, 1).outcome.fired == 1
    assert starts == [1009]


@pytest.mark.parametrize("column", FIRED.names)
def test_other_rows_have_another_digest(column):
    fired = np.zeros(3, FIRED)
    fired["operation"] = [2, 0, 1]
    other = fired.copy()
    other[column][1] += 7
    rows = [fired, fired.copy(), other, fired[::-1]]
    same, again, *others = (digest_of(Replay(Outcome(), each)) for each in rows)
    assert same == again
    assert len({same, *others}) == 3


def test_what_is_timed_counts_nothing(monkeypatch):
    doing, counted = [""], {}
    new = Contestant.new

    def noted(self, start=0, capacity=1, *, counting=False):
        counted.setdefault(doing[-1], set()).add(counting)
        return new(self, start, capacity, counting=counting)

    monkeypatch.setattr(Contestant, "new", noted)
    timer, made = contestant("delay-queue"), make("uniform", operations=300, seed=1)
    Bench([timer], [40], 2, 60.0, 0).run(doing.append)
    expected = expect(made.tape, made.id_space, timer.rounding)
    doing.append("a check")
    _, digest = checked_replay(timer, made.tape, made.id_space, expected)
    doing.append("a replay")
    assert timed_replay(timer, made.tape, made.id_space, digest) > 0
    assert counted == {
        "checking delay-queue at 40": {True, False},  # memory is measured without counters
        "timing delay-queue at 40": {False},
        "a check": {True},
        "a replay": {False},
    }
