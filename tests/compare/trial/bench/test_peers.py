"""The timing of peers, with the project's own timers as peers; no toolchain is needed."""

import itertools
import math
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from compare.traffic.tapes.tape import REARM, validate
from compare.trial.bench import peers as module
from compare.trial.bench.callers import METRICS, CompiledCaller, Plan, costs_of
from compare.trial.bench.comparison import Comparison
from compare.trial.bench.peers import CALLER, METRIC, SINGLE, SUBJECTS, PeerBench, calling, costs
from compare.trial.bench.run import run_comparison
from compare.trial.bench.task import HOLD
from compare.trial.bench.work import tapes_of
from compare.trial.peers.catalogue import (
    CPP,
    JAVA,
    PYTHON,
    Entry,
    entries,
    entries_named,
    entry_named,
)
from compare.trial.peers.protocol import PeerError, PhaseTime, bin_end
from compare.trial.peers.run import Peer, own_peer
from compare.trial.replay.contestant import contestant
from compare.trial.replay.engine import CompiledLoop, replay
from compare.trial.replay.loops import STEPS_IN_LIMIT
from compare.trial.results.schema import OVER_BUDGET
from tests.compare.trial.peers import wrong
from timers.errors import ParameterError

LATE = "tests.compare.own_timers:Late"
ORDINARY = entry_named("python-heapq")


@dataclass(frozen=True)
class OwnEntry(Entry):
    """A timer of the project as an entry of the catalogue."""

    is_ready: bool = True
    command: tuple[str, ...] = ()
    share: float = 1.0  # of the time that the bench gives

    def peer(self, timeout=60.0):
        """See Entry."""
        timeout *= self.share
        if not self.is_ready:
            raise PeerError(f"{self.name}: not built")
        if self.command:
            return Peer(self.command, self.name, timeout)
        return own_peer(self.name, timeout)

    def description(self):
        """See Entry."""
        return self.peer().describe()


def bench_of(*peers, sizes=(30,), repeats=1, **settings):
    """The bench after a run, with what it stored."""
    bench, stored = PeerBench(peers, (), sizes, repeats, math.inf, 3, **settings), {}
    steps = []
    bench.run(steps.append, lambda name, rows: stored.update({name: rows}))
    assert len(steps) == bench.steps
    assert [*stored] == bench.tasks
    return bench, stored


def test_a_right_peer_is_timed_and_wrong_missing_and_broken_ones_are_named():
    peers = (
        OwnEntry(LATE, PYTHON),
        OwnEntry("unbuilt", CPP, is_ready=False),
        OwnEntry("broken", JAVA, command=("false",)),
        ORDINARY,
    )
    bench, _ = bench_of(*peers)
    timed = {(row.contestant, row.subject) for row in bench.rows if row.value is not None}
    assert timed == {(ORDINARY.name, subject) for subject in [*SUBJECTS, CALLER]}
    assert all(row.value > 0 for row in bench.rows if row.metric == METRIC and row.value)
    notes = {row.contestant: row.note for row in bench.rows if row.value is None}
    assert notes[LATE].startswith("with 30 timers pending, it disagrees: ")
    assert notes["unbuilt"] == "not built"
    assert "exits with code 1" in notes["broken"]
    described = {entry["name"]: entry for entry in bench.entries()}
    assert described["unbuilt"]["language"] == "C++" and described["unbuilt"]["scheme"] is None
    assert described["unbuilt"]["lateness"] is None
    assert described[ORDINARY.name]["rounding"] == "exact"
    assert described[ORDINARY.name]["lateness"] == [0, 0]


FAKE = {"insert": 100, "cancel": 200, "re-arm": 250, "hold": 300, "expiry": 400}
"""ns for each operation of the fake peer: each has another, so that none takes another's place."""
FAKE_BYTES = 50  # for each timer


def fake_times(turn, phases, *, histogram=False):
    """The times of a peer that takes exactly so long; the rest of a tape takes far longer."""
    size, pairs = turn.tapes.size, turn.tapes.operations(HOLD)
    waste = 10**12
    if (phases.tape.op == REARM).any():
        work = [None, None, ("re-arm", size), None]
    elif phases.first == module.filling(turn.tapes).first:
        work = [("insert", size), None, ("cancel", size), None]
    elif phases.first == module.holding(turn.tapes).first:
        # Some have fired during the pairs.
        work = [None, None, ("hold", pairs), ("expiry", size - 5), None]
    else:
        work = [None] * (len(phases.first) + 1)
    ends = [*phases.first[1:], phases.tape.time.size]
    lines = []
    for number, known in enumerate(work):
        ns = FAKE[known[0]] * known[1] if known else waste
        operations = ends[number] - phases.first[number] if number < len(phases.first) else 0
        expired = size - 5 if known and known[0] == "expiry" else 7
        counts = [0] * 100
        counts[number + 16] = 1
        lines.append(
            PhaseTime(
                *(0, number, operations, expired),
                wall_ns=10 * ns,
                thread_ns=5 * ns,
                process_ns=ns,
                memory_bytes=FAKE_BYTES * size,
                histogram=tuple(counts) if histogram else (),
            )
        )
    return lines


@pytest.mark.parametrize("size", [30, 1000])
def test_the_figures_are_those_of_a_peer_with_known_times(size, monkeypatch):
    monkeypatch.setattr(module._Turn, "time", fake_times)
    monkeypatch.setattr(PeerBench, "_check", lambda bench, turn: None)
    bench, _ = bench_of(ORDINARY, sizes=(size,), repeats=2)
    found = {(row.subject, row.metric, row.repeat): row.value for row in bench.rows}
    for repeat in (0, 1):
        for operation, ns in FAKE.items():
            assert found[f"peer {operation}", METRIC, repeat] == pytest.approx(ns)
        assert found["peer insert", module.MEMORY, repeat] == FAKE_BYTES
    phases = {"insert": 0, "cancel": 2, "re-arm": 2, "hold": 2, "expiry": 3}
    for operation, number in phases.items():
        for name in SINGLE:
            assert found[f"peer {operation}", name, None] == bin_end(number + 16)


def test_every_task_has_quantiles_of_single_operations():
    bench, _ = bench_of(ORDINARY, sizes=(200,))
    for subject in SUBJECTS:
        found = {r.metric: r.value for r in bench.rows if r.subject == subject and r.repeat is None}
        assert found.keys() == SINGLE.keys()
        values = [found[name] for name in SINGLE]
        assert values == sorted(values) and values[0] > 50  # Python takes longer


@pytest.mark.parametrize("name", ["delay-queue", "heapq-delay-queue"])
def test_timers_of_the_project_do_the_same_tasks(name):
    own = contestant(name)
    bench = PeerBench([], [own], (200,), 2, math.inf, 0)
    bench.run()
    assert all(row.value > 0 for row in bench.rows)
    assert sorted((row.subject, row.repeat) for row in bench.rows) == sorted(
        (subject, repeat) for subject in SUBJECTS for repeat in (0, 1)
    )


def test_a_slow_timer_of_the_project_is_over_budget_in_each_task(monkeypatch):
    """Compiled code is left now and then, so that the budget counts, and a signal."""
    sizes, real = [], CompiledLoop.run

    def run(loop, operations, *, reserve=True):
        sizes.append(operations.size)
        return real(loop, operations, reserve=reserve)

    monkeypatch.setattr(CompiledLoop, "run", run)
    own, ticks = contestant("ordered-list"), itertools.count()
    bench = PeerBench([], [own], (20_000,), 1, 9.0, 0, clock=lambda: float(next(ticks)))
    bench.run()
    assert max(sizes) == STEPS_IN_LIMIT and len(sizes) < 100
    assert {row.note for row in bench.rows} == {OVER_BUDGET}


def test_a_slow_peer_is_left_out_and_the_others_go_on():
    hangs = OwnEntry("slow", PYTHON, command=("sh", "-c", "sleep 1000"), share=0.005)
    bench, _ = bench_of(hangs, ORDINARY, sizes=(30, 40), timeout=100.0)
    notes = [(row.contestant, row.size, row.note) for row in bench.rows if row.note]
    assert notes == [("slow", 30, "with 30 timers pending, describe did not end in 0.5 s")]
    assert {row.size for row in bench.rows if row.contestant == ORDINARY.name} == {30, 40}


def test_the_budget_counts_what_is_timed(monkeypatch):
    calls = []
    entry = OwnEntry("delay-queue", PYTHON)
    phase = PhaseTime(0, 0, 1, 1, wall_ns=10**8, process_ns=5, histogram=(0, 1))

    def time_(turn, phases, *, histogram=False):
        calls.append(histogram)
        return [phase] * (len(phases.first) + 1)

    monkeypatch.setattr(module._Turn, "time", time_)
    bench = PeerBench([entry], (), (30,), 50, 3.0, 0)
    monkeypatch.setattr(bench, "_check", lambda turn: None)
    bench.run()
    turns = {row.repeat for row in bench.rows if row.metric == METRIC}
    assert len(turns) == 2  # of 5 + 7 phases of 0.1 s each
    assert calls == [False] * 4 * 2 + [True] * 3


@pytest.mark.parametrize("size", [8, 100, 5_000])
def test_the_tapes_keep_the_rules_and_their_phases_have_their_work(size):
    tapes, plan = tapes_of(size, 1), Plan(size, 400, 1)
    made = (make(tapes) for make in (module.filling, module.rearming, module.holding))
    for phases in (*made, calling(plan)):
        validate(phases.tape, phases.id_space)
        assert phases.first[0] == 0
    tape, first, id_space = module.holding(tapes)
    done = replay(contestant("delay-queue").new("ms", 0), tape, id_space, drain_timer=False)
    assert done.outcome.pending == 0  # all fire unit by unit
    assert set(np.diff(tape.time[first[3] :])) == {1}


@pytest.mark.parametrize("size", [8, 1_000])
def test_a_peer_pays_for_what_a_caller_pays_for(size):
    """Counted, not timed: each expiry counts 1, and each step of the clock 1 000."""
    plan = Plan(size, 400, 1)

    class Counting(CompiledCaller):
        def fires(self, plan):
            started = self.timer.now
            _, steps = super().fires(plan)
            assert started <= 1_500 - 1
            return plan.fires + 1_000 * steps, steps

        def steps(self, count):
            super().steps(count)
            return 1_000 * count

        def pairs(self, slots, deadlines):
            super().pairs(slots, deadlines)
            return slots.size

    expected = costs_of(Counting(contestant("delay-queue"), plan), plan)
    tape, first, _ = calling(plan)
    ends = [*first[1:], tape.time.size]
    phases = []
    for phase, (begin, end) in enumerate(zip(first, ends, strict=True)):
        steps = int(tape.time[end - 1] - tape.time[begin - 1]) if begin else 0
        starts = int((tape.op[begin:end] == 0).sum())
        ns = {2: starts, 3: 1_000 * steps, 5: starts + 1_000 * steps}.get(phase, 0)
        phases.append(PhaseTime(0, phase, 0, 0, ns))
    phases.append(PhaseTime(0, 6, 0, 0, 0))
    got = costs(phases, plan)
    assert {name: 1e9 * ns for name, ns in got.items()} == pytest.approx(
        dict(zip(METRICS, expected, strict=True))
    )


def test_what_failed_is_not_run_at_larger_sizes():
    bench, stored = bench_of(OwnEntry("broken", JAVA, command=("false",)), sizes=(40, 30))
    assert [row.size for row in bench.rows] == [30]
    assert stored["peers-40"] == []


def test_groups_and_names():
    assert [entry.name for entry in entries_named(["all"])] == [each.name for each in entries()]
    assert {entry.language.name for entry in entries_named(["jvm"])} == {JAVA.name}
    names = [entry.name for entry in entries_named(["cpp-wheel", "native", "cpp-wheel"])]
    assert names[0] == "cpp-wheel" and len(names) == len({*names}) > 1
    with pytest.raises(PeerError, match="cpp-weel"):
        entries_named(["cpp-weel"])


def test_a_name_with_a_space_or_a_slash_is_a_command():
    command = f"{sys.executable} '{wrong.__file__}' right"
    [program] = entries_named([command])
    bench, _ = bench_of(program, *entries_named(["./nowhere", "cat 'x"]))
    assert bench.entries()[0] == {
        "name": command,
        "language": "Python",
        "library": "",
        "scheme": "list",
        "rounding": "exact",
        "lateness": [0, 0],
    }
    timed = {row.subject for row in bench.rows if row.contestant == command}
    assert timed == {*SUBJECTS, CALLER}
    notes = {row.contestant: row.note for row in bench.rows if row.note}
    assert notes["./nowhere"].endswith("cannot be started: No such file or directory")
    assert notes["cat 'x"].endswith("No closing quotation")


def test_peers_need_a_size(tmp_path):
    with pytest.raises(ParameterError, match="no size"):
        run_comparison(Comparison(sizes=(), peers=("all",), runs=str(tmp_path)))
