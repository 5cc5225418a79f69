"""The timing of peers, with the project's own timers as peers; no toolchain is needed."""

import math
from dataclasses import dataclass

import pytest

from compare.trial.bench.comparison import Comparison
from compare.trial.bench.peers import METRIC, SUBJECTS, PeerBench, warm_up
from compare.trial.bench.run import run_comparison
from compare.trial.peers.catalogue import CPP, JAVA, PYTHON, Entry, entries, entries_named
from compare.trial.peers.protocol import PeerError
from compare.trial.peers.run import Peer, own_peer
from timers.errors import ParameterError

LATE = "tests.compare.own_timers:Late"


@dataclass(frozen=True)
class OwnEntry(Entry):
    """A timer of the project as an entry of the catalogue."""

    is_ready: bool = True
    command: tuple[str, ...] = ()

    def peer(self, timeout=60.0):
        """See Entry."""
        if not self.is_ready:
            raise PeerError(f"{self.name}: not built")
        if self.command:
            return Peer(self.command, self.name, timeout)
        return own_peer(self.name, timeout)

    def description(self):
        """See Entry."""
        return self.peer().describe()


def bench_of(*peers, sizes=(30,), repeats=1):
    """The bench after a run, with what it stored."""
    bench, stored = PeerBench(peers, (), sizes, repeats, math.inf, 3), {}
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
        OwnEntry("delay-queue", PYTHON),
    )
    bench, _ = bench_of(*peers)
    timed = {(row.contestant, row.subject) for row in bench.rows if row.value is not None}
    assert timed == {("delay-queue", subject) for subject in SUBJECTS}
    assert all(row.value > 0 for row in bench.rows if row.value is not None)
    notes = {row.contestant: row.note for row in bench.rows if row.value is None}
    assert notes[LATE].startswith("disagrees: ")
    assert notes["unbuilt"] == "not built"
    assert "exits with code 1" in notes["broken"]
    assert {row.metric for row in bench.rows} == {METRIC}
    described = {entry["name"]: entry for entry in bench.entries()}
    assert described["unbuilt"]["language"] == "C++" and described["unbuilt"]["scheme"] is None
    assert described["delay-queue"]["rounding"] == "exact"


def test_what_failed_is_not_run_at_larger_sizes():
    bench, stored = bench_of(OwnEntry("broken", JAVA, command=("false",)), sizes=(40, 30))
    assert [row.size for row in bench.rows] == [30]
    assert stored["peers-40"] == []


def test_the_warm_up_is_shorter_at_large_sizes():
    assert [warm_up(size) for size in (1, 100_000, 1_000_000)] == [5, 5, 1]


def test_groups_and_names():
    assert [entry.name for entry in entries_named(["all"])] == [each.name for each in entries()]
    assert {entry.language.name for entry in entries_named(["jvm"])} == {JAVA.name}
    names = [entry.name for entry in entries_named(["cpp-wheel", "native", "cpp-wheel"])]
    assert names[0] == "cpp-wheel" and len(names) == len({*names}) > 1
    with pytest.raises(PeerError, match="cpp-weel"):
        entries_named(["cpp-weel"])


def test_peers_need_a_size(tmp_path):
    with pytest.raises(ParameterError, match="no size"):
        run_comparison(Comparison(sizes=(), peers=("all",), runs=str(tmp_path)))
