"""The timing of timers that several threads use: the figures of programs with known calls."""

import sys

import numpy as np
import pytest

from compare.traffic.tapes.tape import CANCEL, START
from compare.trial.bench import threads as module
from compare.trial.bench.comparison import Comparison
from compare.trial.bench.run import run_comparison
from compare.trial.bench.threads import COUNTS, OWN, ThreadsBench, subject_of
from compare.trial.peers.catalogue import PYTHON, Entry, Program
from compare.trial.peers.protocol import Description, PhaseTime
from compare.trial.peers.tapes import RACING
from compare.trial.peers.threads import DONE, RAN, UNIT_NS, Calls
from tests.compare.trial.peers import wrong, wrong_services
from timers.errors import ParameterError


class Fake:
    """A peer that takes exactly so long: each start 5 ns, but one in 51 takes 90."""

    description = Description("fake", "C", "none", threads="once")

    def __init__(self, doubles=False):
        self.doubles = doubles

    def threads(self, tape, id_space, count, *, phases, warm_up=0, record=False):
        lines = [PhaseTime(0, k, 10, 0, wall_ns=10**12, process_ns=10**12) for k in range(4)]
        operations = phases[2] - phases[1]
        each = operations * count
        lines[1] = PhaseTime(
            0, 1, operations, 9, wall_ns=20 * each, thread_ns=7, process_ns=30 * each
        )
        if not record:
            return lines, None
        k = np.arange(tape.op.size)
        end = np.where(k % 51 == 0, 90, 5)
        cancelled = [*tape.id[tape.op == CANCEL]]
        ran = np.array([j for j in k[tape.op == START] if tape.id[j] not in cancelled])
        ran = np.append(ran, ran[:1] if self.doubles else [])
        at = tape.deadline[ran.astype(int)] * UNIT_NS + 3 * UNIT_NS
        columns = (k, ran), (k * 0 + DONE, ran * 0 + RAN), (k * 0, at), (end, at)
        return lines, Calls(*(np.concatenate(pair).astype(np.int64) for pair in columns))


class FakeEntry(Entry):
    """An entry of the catalogue that is a fake."""

    is_ready = True
    doubles = False

    def peer(self, timeout=60.0, **parameters):
        return Fake(self.doubles)


class Doubling(FakeEntry):
    doubles = True


@pytest.fixture
def fakes(monkeypatch):
    """A bench of fakes alone, on a tape without races."""

    def racing(size, pairs, seed):
        tape, first = real(size, pairs, seed)
        return tape._replace(op=np.where(tape.id < RACING, START, tape.op)), first

    real = module.racing
    monkeypatch.setattr(module, "racing", racing)
    monkeypatch.setattr(module, "SystemTimer", FakeEntry)


def test_the_figures_are_those_of_a_peer_with_known_times(fakes):
    bench = ThreadsBench([Doubling("doubling", PYTHON)], 100, 2, 100.0, 0, pairs=500)
    steps = []
    bench.run(steps.append)
    assert len(steps) <= bench.steps
    found = {(row.contestant, row.subject, row.metric, row.repeat): row.value for row in bench.rows}
    for count in COUNTS:
        subject = subject_of(count)
        for repeat in (0, 1):
            assert found[OWN, subject, "threads_cpu", repeat] == 30 * count
            assert found[OWN, subject, "threads_wall", repeat] == 20 * count
        assert found[OWN, subject, "threads_start_p99", None] == 90
        assert found[OWN, subject, "threads_late_p99", None] == pytest.approx(3, abs=0.001)
        assert found[OWN, subject, "threads_lost", None] == 0
        assert found[OWN, subject, "threads_doubled", None] == 0
    wrong_one = {key[1:]: value for key, value in found.items() if key[0] == "doubling"}
    assert wrong_one[subject_of(1), "threads_doubled", None] == 1
    assert not any(metric == "threads_wall" for _, metric, _ in wrong_one)  # it is not timed
    [note] = [row.note for row in bench.rows if row.note]
    assert note.startswith("failed: a timer came out twice: 1 in all")


def test_more_threads_than_cores_are_said(monkeypatch):
    monkeypatch.setattr(module, "machine", lambda: {"cores": 2})
    assert [*map(subject_of, COUNTS)] == ["threads 1", "threads 2", "threads 4, oversubscribed"]


def test_a_wrong_program_is_named_and_one_that_is_not_for_threads_left_out():
    programs = [
        f"{sys.executable} '{wrong_services.__file__}' twice",
        f"{sys.executable} '{wrong.__file__}' right",
        "./nowhere",
    ]
    entries = [Program(name, PYTHON) for name in programs]
    bench = ThreadsBench(entries, 50, 1, 10.0, 0, pairs=4_000)
    bench.run()
    notes = {row.contestant: row.note for row in bench.rows if row.note}
    assert set(notes) == {programs[0], "./nowhere"}
    assert "a timer came out twice" in notes[programs[0]]
    timed = {row.contestant for row in bench.rows if row.metric == "threads_wall"}
    assert timed == {OWN}


def test_threads_need_peers(tmp_path):
    with pytest.raises(ParameterError, match="threads are measured with peers"):
        run_comparison(Comparison(sizes=(10,), threads=True, runs=str(tmp_path)))
