"""Runs with threads: what is wrong in every order of the calls is found, and nothing else."""

import json
import re
import sys

import numpy as np
import pytest

from compare.cli.main import main
from compare.traffic.tapes.tape import CANCEL, START, id_space_of, validate
from compare.trial.peers.check import check_peer
from compare.trial.peers.protocol import MAY_OVERLAP, ONCE, PeerError
from compare.trial.peers.run import Peer, own_peer
from compare.trial.peers.tapes import RACING, racing
from compare.trial.peers.threads import DONE, RAN, REFUSED, RULES, UNIT_NS, Calls, judge
from tests.compare.small_tapes import tape_of
from tests.compare.trial.peers import wrong_services
from tests.words import one_line

MS = UNIT_NS
TAPE = tape_of(
    (0, START, 0, 10), (0, START, 1, 10), (0, CANCEL, 1, 0), (0, START, 2, 10), (0, CANCEL, 2, 0)
)
RIGHT = [
    (0, DONE, 0, 1),
    (1, DONE, 1, 2),
    (2, DONE, 5 * MS, 6 * MS),
    (3, DONE, 2, 3),
    (0, RAN, 10 * MS, 10 * MS),
    (3, RAN, 11 * MS, 11 * MS),
    (4, REFUSED, 11 * MS, 12 * MS),
]


def judged(rows, threads=ONCE):
    return judge(TAPE, Calls(*map(np.array, zip(*rows, strict=True))), threads)


def changed(*rows, without=()):
    """The right rows, with some replaced, left out or added."""
    new = {row[:2]: row for row in rows}
    kept = [new.pop(row[:2], row) for row in RIGHT if row[:2] not in without]
    return [*kept, *new.values()]


def test_a_right_run_has_no_fault_in_any_order_of_its_rows():
    for rows in (RIGHT, RIGHT[::-1]):
        found = judged(rows)
        assert (found.fault, found.broken, found.lost, found.doubled) == (None, {}, 0, 0)
        assert found.start_ns.tolist() == [1, 1, 1]
        assert sorted(found.late_ns.tolist()) == [-1, MS - 3]


GRACE = 5_000 * MS
WRONG = {
    "unknown": changed((7, RAN, 0, 0)),
    "calls": changed(without=[(1, DONE)]),
    "not armed": changed((2, RAN, 10 * MS, 10 * MS)),
    "twice": [*RIGHT, (0, RAN, 12 * MS, 12 * MS)],
    "cancelled": changed((1, RAN, 10 * MS, 10 * MS)),
    "missing": changed(without=[(0, RAN)]),
    "early": changed((0, RAN, 9 * MS - 1, 9 * MS)),
    "late": changed((0, RAN, 10 * MS + GRACE + 2 * MS, 10 * MS + GRACE + 2 * MS)),
    "refused": changed((4, REFUSED, 8 * MS, 9 * MS)),
}


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_is_broken_alone(rule):
    found = judged(WRONG[rule])
    assert found.broken == {rule: 1}
    assert found.fault.kind == rule and RULES[rule] in found.fault.text
    assert found.lost == (rule in ("missing", "refused"))
    assert found.doubled == (rule in ("twice", "cancelled"))


def test_what_some_order_allows_is_no_fault():
    allowed = [
        changed((0, RAN, 9 * MS, 9 * MS)),  # clocks of libraries have a resolution of a unit
        changed((0, RAN, 10 * MS + GRACE, 10 * MS + GRACE)),
        changed((4, REFUSED, 9 * MS, 10 * MS)),  # it was due when the call ended
        changed((4, DONE, 11 * MS, 12 * MS), without=[(4, REFUSED), (3, RAN)]),
    ]
    assert [judged(rows).broken for rows in allowed] == [{}] * len(allowed)
    for rows in (changed((0, DONE, 5, 4)), changed((0, 3, 0, 1)), changed((-1, DONE, 0, 1))):
        assert [*judged(rows).broken] == ["unknown"]


def test_a_call_that_runs_may_be_cancelled_only_where_that_is_declared():
    during = changed((4, DONE, 11 * MS, 12 * MS), without=[(4, REFUSED)])
    assert judged(during).broken == {"cancelled": 1}
    assert judged(during, MAY_OVERLAP).broken == {}
    late = changed((4, DONE, 11 * MS, 12 * MS), (3, RAN, 13 * MS, 13 * MS), without=[(4, REFUSED)])
    assert judged(late).broken == {"cancelled": 1}
    assert judged(late, MAY_OVERLAP).broken == {}  # a thread may stop before the first line
    after = changed((1, RAN, 10 * MS, 10 * MS))  # cancelled before it was due
    assert judged(after, MAY_OVERLAP).broken == {"cancelled": 1}


def test_a_cancel_means_the_timer_that_its_id_had_then():
    tape = tape_of((0, START, 0, 9), (0, CANCEL, 0, 0), (0, START, 0, 9), (0, CANCEL, 0, 0))
    rows = [(k, DONE, k, k) for k in range(3)] + [
        (3, REFUSED, 9 * MS, 9 * MS),
        (2, RAN, 9 * MS, 9 * MS),
    ]
    assert judge(tape, Calls(*map(np.array, zip(*rows, strict=True))), ONCE).broken == {}


def test_the_tape_of_producers_keeps_the_rules_and_starts_what_it_cancels():
    tape, first = racing(100, 400)
    validate(tape, id_space_of(tape))
    filled, ended = first[1:]
    assert filled == RACING + 100 and ended == filled + 800
    pairs = tape.id[filled:ended].reshape(-1, 2)
    soon, odd = tape.id < RACING, tape.id % 2 == 1
    assert (pairs[:, 0] == pairs[:, 1]).all()
    assert ((tape.op[filled:ended:2] == START) == (soon & odd)[filled:ended:2]).all()
    starts = tape.op == START
    assert tape.deadline[soon & starts].max() == 5 and tape.deadline[~soon & starts].min() > 50_000
    assert 20 < soon[filled:ended].sum() / 2 < 100  # an eighth
    assert sorted(tape.id[ended:].tolist()) == [*range(RACING, RACING + 100)]


def service(fault, timeout=60.0):
    return Peer((sys.executable, wrong_services.__file__, fault), fault, timeout)


@pytest.mark.parametrize("count", [1, 3])
def test_a_system_timer_loses_and_doubles_nothing(count):
    tape, first = racing(300, 3_000)
    peer = own_peer("cascading-wheel")
    times, calls = peer.threads(tape, id_space_of(tape), count, phases=first, record=True)
    found = judge(tape, calls, peer.description.threads)
    assert (found.fault, len(found.start_ns)) == (None, (tape.op == START).sum())
    assert [line.operations for line in times] == [RACING + 300, 6_000, 300, 0]
    assert sum(line.expired for line in times) == len(found.late_ns) > 0
    times, nothing = peer.threads(tape, id_space_of(tape), count, phases=first, rounds=2, warm_up=1)
    assert nothing is None and [line.round for line in times] == [0] * 4 + [1] * 4


def test_a_right_service_passes():
    verdict = check_peer(service("right"))
    assert verdict.failure is None
    assert verdict.tried == {"threaded run": 3}  # in real time nothing else can be judged


@pytest.mark.parametrize(("fault", "rule"), wrong_services.RULES.items())
def test_a_wrong_service_is_found(fault, rule):
    """A program waits 5 s for what never comes out."""
    failure = check_peer(service(fault)).failure
    assert failure is not None and failure.fault.kind == rule


def test_the_command_says_what_is_wrong_without_a_tape(capsys, tmp_path):
    words = [sys.executable, wrong_services.__file__, "early"]
    report = tmp_path / "check.md"
    assert main(["check", "--markdown", str(report), "--", *words]) == 1
    out = capsys.readouterr().out
    assert out.startswith("early (Python): in real time\n")
    assert "fault       with 1 producers, a timer came out more than a unit too early:\n" in out
    assert "operation  id" not in out
    assert "| threaded runs | 1 |" in report.read_text()
    assert main(["check", "--json", "--", *words]) == 1
    assert json.loads(capsys.readouterr().out)["failure"]["tape"] == []


@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("import os, sys; os.symlink('/dev/zero', sys.argv[-1])", "threads has put a link in the"),
        ("import sys; open(sys.argv[-1], 'wb').write(bytes(33))", "threads wrote 33 bytes, which"),
        ("print('{}')", "threads wrote no rows: No such file"),
        ("import time; time.sleep(100)", "threads did not end in 0.5 s"),
        ("import sys; open(sys.argv[-1], 'w')", "threads: time printed 0 lines"),
    ],
)
def test_what_breaks_the_protocol_is_one_line(does, says):
    tape, first = racing(3, 3)
    with one_line(PeerError, re.escape(says)):
        Peer((sys.executable, "-c", does), "x", timeout=0.5 if "sleep" in does else 60.0).threads(
            tape, id_space_of(tape), 1, phases=first, record=True
        )


def test_a_peer_that_does_not_know_the_command_is_one_line():
    tape, first = racing(3, 3)
    with one_line(PeerError, "exits with code 2.*usage"):
        Peer((sys.executable, wrong_services.wrong.__file__, "right")).threads(
            tape, id_space_of(tape), 1, phases=first
        )
