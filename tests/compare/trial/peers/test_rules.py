"""Every rule of `wheelwork check` is needed: without it, the wrong timer that it is for passes."""

import inspect
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from compare.traffic.tapes.tape import START
from compare.trial.oracle import deliveries
from compare.trial.oracle.deliveries import FAULTS, Delivery
from compare.trial.peers import check
from compare.trial.peers.check import check_peer
from compare.trial.peers.protocol import PeerRounding
from compare.trial.peers.run import Peer
from tests.compare.small_tapes import tape_of
from tests.compare.trial.peers import wrong_list, wrong_services
from tests.compare.trial.peers.test_check import InProcess, _small  # noqa: F401  # a fixture

WITHOUT = {
    "twice": ("if counts.max() > 1:", "if False:"),
    "missing": ('"missing": missing,', '"missing": missing & False,'),
    "not armed": ('"not armed": has_row &', '"not armed": False & has_row &'),
    "cancelled": ('"cancelled": armed &', '"cancelled": False & armed &'),
    "early": ('"early": came &', '"early": False & came &'),
    "late": ('"late": came &', '"late": False & came &'),
    "order": ("[rows.operation] < latest_so_far", "[rows.operation] < -1"),
    "fifo": ("if fifo:", "if False:"),
}
"""For each rule, what it is in the source, and what takes its place."""
OF_ROWS = "back in time"
"""No timer breaks this rule alone, since the helpers write the clock: rows do, below."""
STRUCTURAL = "unknown"
"""The code after this rule indexes by operations, and cannot run without it. `BROKEN` in
`test_check` has a wrong program for it."""
NEEDED_BY = {
    "twice": "twice",
    "missing": "lostbyjumps",
    "not armed": "revives",
    "cancelled": "cancelsthelast",
    "early": "earlyatwraps",
    "late": "late",
    "order": "shuffledbyjumps",
    "fifo": "lifo",
}


def changed(old, new):
    """The check of deliveries with another text in its source."""
    source = inspect.getsource(deliveries)
    assert source.count(old) == 1, old
    module = ModuleType("changed")
    exec(compile(source.replace(old, new), "changed", "exec"), module.__dict__)
    module._follow = deliveries._follow  # it is compiled already
    return module


def test_each_rule_is_tried():
    assert {*WITHOUT, OF_ROWS, STRUCTURAL} == {*FAULTS}
    assert {wrong_list.PYTHON[name] for name in NEEDED_BY.values()} == NEEDED_BY.keys()


@pytest.mark.parametrize("rule", NEEDED_BY)
def test_without_its_rule_a_wrong_timer_passes(rule, monkeypatch):
    peer = InProcess((), NEEDED_BY[rule])
    assert check_peer(peer, examples=0, shrink_seconds=0.0).failure is not None
    monkeypatch.setattr(check, "first_fault", changed(*WITHOUT[rule]).first_fault)
    assert check_peer(peer, examples=0, shrink_seconds=0.0).failure is None


def test_without_its_rule_rows_that_go_back_in_time_pass():
    """Both come out within their bounds, but the clock falls from 9 to 8."""
    tape = tape_of((0, START, 0, 5), (0, START, 1, 5))
    bounds = PeerRounding("late", 10).bounds(tape)
    rows = Delivery(*map(np.array, ([0, 1], [2, 2], [9, 8], [5, 5])))
    assert deliveries.first_fault(tape, 2, bounds, rows, fifo=False).kind == OF_ROWS
    rule = "    wrong[1:] |= (np.diff(rows.before) < 0) | (np.diff(rows.clock) < 0)\n"
    blind = changed(rule, "")
    assert blind.first_fault(tape, 2, bounds, rows, fifo=False) is None


@pytest.mark.peers
@pytest.mark.parametrize("language", ["C", "JavaScript"])
def test_wrong_timers_in_other_languages_are_caught(language, tmp_path):
    command, faults = wrong_list.programs(tmp_path)[language]
    failed = {
        fault: check_peer(Peer((*command, fault)), quick=True, shrink_seconds=0.0).failure
        is not None
        for fault in ("right", *faults)
    }
    assert failed == dict.fromkeys(faults, True) | {"right": False}


def test_the_table_in_the_docs_has_every_wrong_timer():
    page = Path(__file__).parents[4] / "docs" / "figures" / "wrong-timers.md"
    text, faults = page.read_text(), wrong_list.FAULTS
    assert sum(map(len, faults.values())) >= 40
    for language, rules in faults.items():
        for fault, rule in rules.items():
            row = f"| {language} | {wrong_list.says(language, fault)} | {rule} | "
            assert row in text, row
    for fault, rule in wrong_services.RULES.items():
        assert f"| Python, threads | {wrong_services.CLASSES[fault].__doc__} | {rule} | |" in text
