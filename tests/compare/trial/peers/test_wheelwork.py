"""The project's own timers as peers: the protocol does what a replay does."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from compare.traffic.tapes.flat import write_flat
from compare.traffic.tapes.tape import id_space_of, part
from compare.traffic.workloads.catalogue import make
from compare.trial.oracle.deliveries import Delivery, first_fault
from compare.trial.peers.protocol import parse_description
from compare.trial.peers.run import own_peer
from compare.trial.peers.wheelwork import description_of, main
from compare.trial.replay.contestant import contestant
from compare.trial.replay.engine import replay
from tests.compare.small_tapes import tape_of, tapes

TIMERS = [
    "delay-queue",
    "heapq-delay-queue",
    "hashed-wheel/tick=7/wheel-size=8",
    "hierarchical-wheel/tick=7/wheel-size=3",
    "cascading-wheel",
    "linux-wheel",
]


def rows_of(timer, tape, path):
    """The rows of a timer on a tape: through the file, but in this process."""
    write_flat(path, tape, id_space=id_space_of(tape), unit="unit")
    out = path.with_suffix(".rows")
    assert peer_main(timer, "check", str(path), str(out)) == 0
    return Delivery(*np.fromfile(out, "<i8").reshape(-1, 4).T)


def peer_main(timer, *arguments):
    return main([timer, *arguments])


def came_out_before(timer, tape):
    """By row of a replay: the operation before which it came out."""
    new = contestant(timer).new
    begin = int(tape.time[0]) if tape.time.size else 0
    fired = [
        replay(
            new("unit", begin), part(tape, 0, k + 1), id_space_of(tape), drain_timer=False
        ).fired.size
        for k in range(tape.time.size)
    ]
    total = replay(new("unit", begin), tape, id_space_of(tape)).fired
    return total, np.searchsorted(fired, np.arange(total.size), side="right")


@settings(max_examples=40)
@given(tape=tapes(), timer=st.sampled_from(TIMERS))
def test_a_peer_delivers_what_a_replay_does_and_in_the_same_order(tmp_path_factory, tape, timer):
    # A hashed wheel wakes up in each rotation, here in Python.
    span = max(tape.deadline, default=0) - min(tape.time, default=0)
    assume(not timer.startswith("hashed") or span < 10**6)
    rows = rows_of(timer, tape, tmp_path_factory.mktemp("peer") / "some.tape")
    fired, before = came_out_before(timer, tape)
    assert rows.operation.tolist() == fired["operation"].tolist()
    assert rows.fired_at.tolist() == fired["fired_at"].tolist()
    assert rows.before.tolist() == before.tolist()


@pytest.mark.parametrize("timer", TIMERS)
def test_a_peer_passes_its_own_check(timer, tmp_path):
    described = description_of(contestant(timer))
    for workload in ("lognormal-low", "keepalive"):
        made = make(workload, timers=500)
        rows = rows_of(timer, made.tape, tmp_path / "some.tape")
        bounds = described.rounding.bounds(made.tape)
        fifo = described.order == "fifo"
        assert first_fault(made.tape, made.id_space, bounds, rows, fifo=fifo) is None
        assert rows.operation.size > 10


@pytest.mark.parametrize("timer", TIMERS)
def test_a_peer_describes_itself(timer, capsys):
    assert peer_main(timer, "describe") == 0
    out = capsys.readouterr().out
    described = parse_description(out)
    assert described == description_of(contestant(timer))
    assert described.as_json() == json.loads(out)
    assert described.name == contestant(timer).label


@pytest.mark.parametrize("timer", ["delay-queue", "heapq-delay-queue"])
def test_a_peer_is_timed_by_round_and_phase(timer):
    made = make("keepalive", timers=300)
    own = own_peer(timer)
    phases, rounds, last = (0, 100, 100), 2, made.tape.time.size
    times = own.time(made.tape, made.id_space, phases=phases, rounds=rounds, warm_up=1)
    assert [(line.round, line.phase) for line in times] == [
        (number, phase) for number in range(rounds) for phase in range(4)
    ]
    assert [line.operations for line in times[:4]] == [100, 0, last - 100, 0]
    total = replay(contestant(timer).new("unit", 0), made.tape, made.id_space).fired.size
    assert sum(line.expired for line in times[:4]) == total
    for line in times:
        assert line.wall_ns > 0
        assert line.thread_ns >= 0
        assert line.process_ns >= 0
        assert line.memory_bytes is None or line.memory_bytes >= 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "usage: wheelwork NAME describe"),
        (["delay-queue"], "usage: delay-queue describe | check TAPE OUT | time TAPE"),
        (["nothing", "describe"], "nothing: no timer is called 'nothing'"),
        (
            ["delay-queue", "check", "no.tape", "out"],
            "delay-queue: no.tape: No such file or directory",
        ),
        (["tests.compare.own_timers:Undeclared", "describe"], "which the protocol cannot state"),
    ],
)
def test_bad_input_is_one_line(arguments, says, capsys):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda data: data[:-8], "is cut short"),
        (lambda data: data[:20], "is not a tape"),
        (lambda data: b"x" + data[1:], "is not a tape"),
        (lambda data: data[:8] + b"\2" + data[9:], "is a tape of version 2"),
    ],
)
def test_a_damaged_tape_is_one_line(change, says, tmp_path, capsys):
    path = tmp_path / "some.tape"
    write_flat(path, tape_of((0, 0, 0, 5)), id_space=1, unit="ms")
    path.write_bytes(change(path.read_bytes()))
    assert peer_main("delay-queue", "check", str(path), str(tmp_path / "out")) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"delay-queue: {path} {says}")
    assert err.count("\n") == 1


def test_a_timer_that_is_pending_and_asleep_is_one_line(tmp_path, capsys):
    path = tmp_path / "some.tape"
    write_flat(path, tape_of((0, 0, 0, 5)), id_space=1, unit="ms")
    timer = "tests.compare.own_timers:Asleep"
    assert peer_main(timer, "check", str(path), str(tmp_path / "out")) == 2
    assert "1 timers are pending, but next_wakeup() is None" in capsys.readouterr().err


def test_the_part_that_peers_share_imports_the_standard_library_alone():
    code = "import sys, compare.trial.peers.peer; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "numba", "pyarrow"} & set(done.stdout.split())
