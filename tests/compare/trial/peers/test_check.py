"""Peers with one fault each are caught, and the tape that shows it is small."""

import dataclasses
import json
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import find, given, settings

from compare.cli.main import main
from compare.traffic.tapes.tape import CANCEL, REARM, START, id_space_of, validate
from compare.trial.oracle.deliveries import Delivery
from compare.trial.peers import check, peer, tapes
from compare.trial.peers.check import check_peer, operations_table
from compare.trial.peers.protocol import (
    Description,
    Limits,
    PeerError,
    PeerRounding,
    PeerTimeoutError,
    PhaseTime,
    parse_description,
)
from compare.trial.peers.run import Peer
from compare.trial.peers.shrink import shrink
from compare.trial.peers.verdicts import result_text
from tests.compare.small_tapes import tape_of
from tests.compare.trial.peers import wrong
from tests.compare.trial.peers.wrong_list import PYTHON
from timers.limits import LIMIT

WRONG = Path(wrong.__file__)
SMALL = 6  # operations that are enough to show a fault of order, time or cancel


class InProcess(Peer):
    """Runs the classes of `wrong` without a process for each tape."""

    description = parse_description(json.dumps(wrong.DESCRIPTION))

    def check(self, tape, id_space, *, unit="unit"):
        class Columns:
            time, op, id, deadline = (column.tolist() for column in tape)
            operations, first_time = tape.time.size, int(tape.time[0]) if tape.time.size else 0

        Columns.id_space = id_space
        try:
            rounding = self.description.rounding
            early = rounding.tick - 1 if rounding.kind == "down" else 0
            rows = peer.check(wrong.CLASSES.get(self.name, wrong.Right), Columns, early)
        except (SystemExit, TimeoutError):
            raise PeerError(f"{self.name}: fell over") from None
        return Delivery(*np.array(rows, np.int64).reshape(-1, 4).T)

    def time(self, tape, id_space, *, phases, rounds, **rest):
        """The n operations of a phase take 100 n ns, or n^2 of a timer that is slow to cancel."""
        ends = [*phases[1:], tape.time.size]
        done = [end - first for first, end in zip(phases, ends, strict=True)]
        lines = [PhaseTime(0, k, n, 0, 100 * n) for k, n in enumerate(done)]
        if self.name == "slow":
            lines[2] = PhaseTime(0, 2, done[2], 0, done[2] ** 2)
        return [*lines, PhaseTime(0, len(done), 0, done[-1], 300 * done[-1])] * rounds


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """A crowd of thousands is as good as one of a million, if the fault is as small."""
    monkeypatch.setattr(tapes, "CROWD", 5000)
    monkeypatch.setattr(tapes, "WORKLOAD_TIMERS", 200)
    monkeypatch.setattr(wrong.Full, "PLACES", 2000)


def test_a_right_peer_passes():
    verdict = check_peer(InProcess((), "right"), examples=100)
    assert verdict.failure is None
    assert verdict.skipped == []
    assert verdict.tried["random tape"] >= 100
    assert {name: number > 0 for name, number in verdict.tried.items()} == dict.fromkeys(
        ["boundary tape", "random tape", "growth", "workload", "crowd"], True
    )


LONGER = {"grown": 65, "full": 2001}


@pytest.mark.parametrize("name", PYTHON)
def test_a_wrong_peer_is_caught_by_a_small_tape(name):
    verdict = check_peer(InProcess((), name))
    assert verdict.failure.fault.kind == PYTHON[name]
    assert verdict.failure.tape.time.size <= LONGER.get(name, SMALL)
    assert verdict.failure.repeats
    validate(verdict.failure.tape, id_space_of(verdict.failure.tape))


ALSO_AT_RANDOM = (
    *("late", "strict", "reversed", "keeps", "keepsolddeadline", "revives", "stale", "twice"),
    *("crash", "rearmedtwice", "cancelstwo"),
)


@pytest.mark.parametrize("name", ALSO_AT_RANDOM)
def test_random_tapes_alone_find_it_and_hypothesis_makes_it_small(name, monkeypatch):
    monkeypatch.setattr(check, "groups", lambda seed, quick: {"boundary tape": lambda: iter(())})
    failure = check_peer(InProcess((), name), examples=1000).failure
    assert failure.tape.time.size <= SMALL
    assert failure.origin == "random tape"


def test_a_crowd_is_needed_to_find_what_drops_timers():
    failure = check_peer(InProcess((), "crowded"), examples=20).failure
    assert failure.fault.kind == "missing"
    assert failure.tape.time.size == 1001


def test_a_peer_that_falls_behind_in_idle_times_is_caught(monkeypatch):
    """Near deadlines only, so that it does not step for hours."""
    monkeypatch.setattr(
        tapes,
        "boundary_tapes",
        lambda quick: (trial for trial in tapes._idle() if "2147" in trial.name),
    )
    failure = check_peer(InProcess((), "clumsy"), examples=0).failure
    assert failure.fault.kind == "back in time" or failure.fault.kind == "late"


@pytest.mark.parametrize("cannot", [(), ("re-arm",), ("cancel", "re-arm")])
def test_the_tape_of_growth_keeps_the_rules_and_has_the_work_of_its_names(cannot):
    tape, first, names = tapes.growing(1000, cannot)
    validate(tape, 1000)
    assert Description("a", "b", "c", cannot=cannot).allows(tape)
    work = {"start": (START, 1000), "re-arm": (REARM, 1000), "cancel": (CANCEL, 500)}
    expected = [work[name] for name in work if name not in cannot]
    assert [*names] == [*(name for name in work if name not in cannot), "expiry"]
    for (op, count), begin, end in zip(expected, first, [*first[1:], None], strict=True):
        assert tape.op[begin:end].tolist() == [op] * count
        assert len({*tape.id[begin:end].tolist()}) == count


class Coarse(wrong.Right):
    """Rounds to multiples of 10; what is armed for the present is due at once."""

    UP = 10

    def due_at(self, deadline):
        return min(max((deadline + self.UP - 1) // 10 * 10, self.now), LIMIT)


class CoarseDown(Coarse):
    UP = 1


class Threaded(wrong.Right):
    """Fires in a thread of its own."""

    pool = ThreadPoolExecutor(1)

    def advance(self, now):
        return self.pool.submit(super().advance, now).result()


@pytest.mark.parametrize(
    ("odd", "declared"),
    [
        (wrong.Lifo, {"order": "unspecified"}),
        (wrong.Reversed, None),
        (Coarse, {"rounding": PeerRounding("late", 9), "order": "unspecified"}),
        (CoarseDown, {"rounding": PeerRounding("down", 10), "order": "unspecified"}),
        (Threaded, {}),
    ],
)
def test_a_right_peer_passes_however_odd_it_is(odd, declared, monkeypatch):
    """And one that is wrong fails whatever it declares."""
    monkeypatch.setitem(wrong.CLASSES, "odd", odd)
    described = dataclasses.replace(InProcess.description, **declared or {"order": "unspecified"})
    monkeypatch.setattr(InProcess, "description", described)
    verdict = check_peer(InProcess((), "odd"), examples=20, shrink_seconds=1.0)
    assert (verdict.failure is None) == (declared is not None), verdict.failure


def test_a_timer_that_is_right_and_slow_passes_and_its_growth_is_said(monkeypatch):
    monkeypatch.setattr(tapes, "CROWD", 50_000)

    def check_(self, tape, id_space, *, unit="unit"):
        if tape.time.size > 20_000:
            raise PeerTimeoutError("slow: check did not end in 60 s")
        return original(self, tape, id_space)

    original = InProcess.check
    monkeypatch.setattr(InProcess, "check", check_)
    verdict = check_peer(InProcess((), "slow"), examples=1)
    assert verdict.failure is None
    assert verdict.growth == pytest.approx(
        {"start": 1, "re-arm": 1, "cancel": 2, "expiry": 1}, abs=0.01
    )
    costs = {"start": 100, "re-arm": 100, "cancel": 16_000, "expiry": 300}
    assert (verdict.costs, verdict.grown_to) == (costs, 32_000)
    assert result_text(verdict) == (
        "no fault, but slow: the time of n operations grows too fast"
        " (cancel as n^2.0; up to 32,000 pending)"
    )
    assert verdict.skipped == ["50,000 timers due at one moment (it takes too long)"]
    assert verdict.as_json()["slow"] == ["cancel"]
    failure = check_peer(InProcess((), "right"), examples=1, shrink_seconds=0.0).failure
    assert failure.fault.text == "slow: check did not end in 60 s"


def test_a_peer_that_cannot_be_timed_fails(monkeypatch):
    def time(*arguments, **named):
        raise PeerError("untimed: time exits with code 2")

    monkeypatch.setattr(InProcess, "time", time)
    failure = check_peer(InProcess((), "right"), examples=1).failure
    assert (failure.origin, failure.fault.kind) == ("growth", "broken")


def test_a_hang_is_shrunk_by_the_usual_time(monkeypatch):
    """Only the first hang takes the whole time limit."""
    limits = []

    def hangs(self, tape, id_space, *, unit="unit"):
        if (tape.op == CANCEL).any():
            limits.append(self.timeout)
            raise PeerError(f"hang: check did not end in {self.timeout:g} s")
        return original(self, tape, id_space)

    original = InProcess.check
    monkeypatch.setattr(InProcess, "check", hangs)
    failure = check_peer(InProcess((), "right", timeout=60.0)).failure
    assert failure.tape.op.tolist() == [START, CANCEL]
    first, *others, last = limits
    assert first == 60 and max(others) < 10
    assert max(others) < last < 60


def test_a_quick_check_ends_in_time_and_tries_a_little_of_everything(monkeypatch):
    clock = SimpleNamespace(now=0.0)

    def slowly(self, tape, id_space, *, unit="unit"):
        clock.now += 0.1
        return original(self, tape, id_space)

    original = InProcess.check
    monkeypatch.setattr(InProcess, "check", slowly)
    monkeypatch.setattr(check, "time", SimpleNamespace(monotonic=lambda: clock.now))
    verdict = check_peer(InProcess((), "right"), quick=True)
    assert verdict.failure is None
    assert clock.now <= check.QUICK_SECONDS + 1
    assert all(verdict.tried.values())


def test_the_seed_decides_the_random_tapes(monkeypatch):
    monkeypatch.setattr(check, "groups", lambda seed, quick: {"boundary tape": lambda: iter(())})
    seen = {}
    for run, seed in enumerate((1, 1, 2)):
        seen[run] = []
        recorded = InProcess((), "right")
        monkeypatch.setattr(
            InProcess,
            "check",
            lambda self, tape, *rest, run=run, **named: (
                seen[run].append(tape.time.tolist()) or Delivery(*np.zeros((4, 0), np.int64))
            ),
        )
        monkeypatch.setattr(check, "first_fault", lambda *arguments, **named: None)
        check_peer(recorded, seed=seed, examples=20)
    assert seen[0] == seen[1] != seen[2]


def test_a_failure_that_does_not_repeat_is_reported_as_such(monkeypatch):
    calls = []

    def sometimes(self, tape, id_space, *, unit="unit"):
        calls.append(tape)
        if len(calls) == 2:
            raise PeerError("moody: fell over")
        return original(self, tape, id_space)

    original = InProcess.check
    monkeypatch.setattr(InProcess, "check", sometimes)
    failure = check_peer(InProcess((), "right")).failure
    assert not failure.repeats
    assert failure.fault.text == "moody: fell over"


def test_shrinking_ends_when_its_time_is_up(monkeypatch):
    ticks = iter(range(10**6))
    monkeypatch.setattr(check.time, "monotonic", lambda: float(next(ticks)))
    failure = check_peer(InProcess((), "crowded"), examples=20, shrink_seconds=3.0).failure
    assert failure.fault.kind == "missing"
    assert 1001 < failure.tape.time.size <= 5000
    assert next(ticks) < 400


def test_what_a_peer_cannot_do_is_skipped_and_said(monkeypatch):
    limits = Limits(time=2**40, delay=10**6, step=10**5)
    limited = Description("limited", "any", "any", cannot=("cancel",), limits=limits)
    monkeypatch.setattr(InProcess, "description", limited)
    verdict = check_peer(InProcess((), "keeps"), examples=50)
    assert verdict.failure is None
    assert "everything cancelled" in verdict.skipped
    assert "delays around 2^53" in verdict.skipped
    assert verdict.tried["random tape"] >= 50


@settings(max_examples=100)
@given(
    tape=tapes.random_tapes(Description("a", "b", "c", limits=Limits(time=300, delay=100, step=70)))
)
def test_random_tapes_keep_the_limits(tape):
    validate(tape, id_space_of(tape))
    assert tape.time.max(initial=0) <= 300
    assert tape.deadline.max(initial=0) <= 300


@pytest.mark.parametrize("op", range(4))
def test_random_tapes_have_every_operation(op):
    assert find(tapes.random_tapes(), lambda tape: (tape.op == op).any()).time.size <= 2


def test_boundary_tapes_keep_the_rules_and_have_names_of_their_own():
    trials = list(tapes.boundary_tapes())
    for trial in trials:
        validate(trial.tape, trial.id_space)
        assert (trial.tape.deadline <= LIMIT).all()
    assert len({trial.name for trial in trials}) == len(trials) > 50


def test_a_shrunk_tape_needs_each_of_its_operations():
    rows = [(k, START, k, k + 50) for k in range(40)] + [(41, CANCEL, 7, 0), (41, CANCEL, 9, 0)]

    def fails(tape):
        return (tape.op == CANCEL).sum() == 2 and (tape.time == 30).any()

    small = shrink(tape_of(*rows), fails)
    assert small.time.tolist() == [7, 9, 30, 41, 41]
    assert small.id.tolist() == [0, 1, 2, 0, 1]


def test_a_start_and_its_cancel_are_left_out_together():
    rows = [(0, START, k, 50) for k in range(100)] + [(1, CANCEL, k, 0) for k in range(100)]

    def fails(tape):
        """All that are started are cancelled."""
        starts, cancels = ((tape.op == op).sum() for op in (START, CANCEL))
        return starts == cancels > 0

    assert shrink(tape_of(*rows), fails).op.tolist() == [START, CANCEL]


def test_the_table_shows_what_must_come_out_and_what_did():
    verdict = check_peer(InProcess((), "keepsolddeadline"))
    table = operations_table(verdict.failure, verdict.description)
    first, second = table
    assert (first["operation"], first["expected"]) == ("start", "re-armed by 1")
    assert (second["operation"], second["expected"]) == ("re-arm", "at 100")
    assert second["delivered"] == "at 300, in the drain"


# ---- the command


def command(*options, fault="right"):
    return ["check", *options, "--", sys.executable, str(WRONG), fault]


def test_the_command_says_what_was_tried(monkeypatch, capsys):
    few = [tapes.Trial(f"tape {k}", tape_of((k, START, 0, 9))) for k in range(3)]
    kinds = {"boundary tape": few, "workload": few[:2], "crowd": few[:1]}
    fixed = {kind: partial(iter, trials) for kind, trials in kinds.items()}
    monkeypatch.setattr(check, "groups", lambda seed, quick: fixed)
    monkeypatch.setattr(check, "GROWTH_SIZES", (4, 8))
    assert main(command("--examples", "5")) == 0
    first, tried, *costs, result = capsys.readouterr().out.splitlines()
    assert first == "wrong (Python): exact"
    assert tried == ("  tried       3 boundary tapes, 5 random tapes, 2 workloads, 1 crowd; seed 0")
    assert re.match(r"  costs       start \S+ ns, re-arm \S+ ns, cancel \S+ ns, expiry", costs[0])
    assert costs[-1].endswith("pending")

    assert result == "  result      no fault"


def test_the_command_prints_the_smallest_tape(capsys):
    assert main(command("--seed", "3", fault="late")) == 1
    out = capsys.readouterr().out
    assert "seed 3" in out
    assert out.splitlines()[-1].split() == [
        *("0", "0", "start", "0", "499", "at", "499", "at", "500,", "in", "the", "drain"),
    ]


def test_the_command_prints_json(capsys):
    assert main(command("--json", fault="late")) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["passed"] is False
    assert result["description"] == {
        **parse_description(json.dumps(wrong.DESCRIPTION)).as_json(),
    }
    assert result["failure"]["kind"] == "late"
    assert result["failure"]["tape"][0]["deadline"] == 499
    assert result["failure"]["repeats"] is True


BROKEN = {
    "crash": "check exits with code 7: first line | second line | no place left",
    "hang": "check did not end in 0.1 s",
    "half": "check wrote 36 bytes, which are not whole rows",
    "nofile": "check wrote no rows: No such file or directory",
    "backintime": "came out at 4, in the drain, after a row at 5, in the drain",
    "twice": "came out 2 times",
    "unknown": "row 0 is of operation 1048576; the tape has 1",
}


@pytest.mark.parametrize("fault", BROKEN)
def test_the_command_tells_how_a_program_breaks_the_protocol(fault, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HANGS", str(hangs := tmp_path / "hangs"))
    clock = SimpleNamespace(now=0.0)

    def monotonic():
        """Time passes only when a program hangs, however long it takes to start."""
        if hangs.exists():
            hangs.unlink()
            clock.now += 1
        return clock.now

    monkeypatch.setattr(
        "compare.trial.peers.run.time", SimpleNamespace(monotonic=monotonic, sleep=time.sleep)
    )
    monkeypatch.setattr(
        check, "groups", lambda seed, quick: {"boundary tape": lambda: iter([trial])}
    )
    timeout = "0.1" if fault == "hang" else "60"
    rows = [(0, START, 0, 5), (0, START, 1, 6), (0, START, 2, 7), (0, CANCEL, 2, 0)]
    trial = tapes.Trial("four operations", tape_of(*rows))
    assert main(command("--json", "--timeout", timeout, fault=fault)) == 1
    failure = json.loads(capsys.readouterr().out)["failure"]
    assert BROKEN[fault] in failure["text"]
    assert failure["text"].count("\n") == 0
    assert len(failure["tape"]) <= SMALL


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["check"], "name the command of the peer"),
        (["check", "--", "./nowhere"], "./nowhere: cannot be started: No such file"),
        (command(fault="garbage"), "garbage: describe: Expecting value"),
        (command(fault="realtime"), "realtime runs in real time, in which expiries cannot be"),
        (command(fault="oldprotocol"), "protocol is 0; this release speaks 1"),
    ],
)
def test_a_peer_that_cannot_be_started_is_one_line(arguments, says, capsys):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert says in err


def test_without_hypothesis_the_command_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    assert main(command()) == 2
    assert "needs Hypothesis: pip install hypothesis" in capsys.readouterr().err
