"""The result of a check for CI: the XML parses, and no name of a peer breaks a table."""

import dataclasses
import json
import sys
from xml.etree import ElementTree

import pytest

from compare.cli.main import main
from compare.trial.oracle.deliveries import Fault
from compare.trial.peers.check import Failure, Verdict
from compare.trial.peers.protocol import Description
from compare.trial.peers.run import Peer
from compare.trial.peers.tapes import tape_of
from compare.trial.peers.verdicts import badge, junit, markdown, result_text
from tests.compare.trial.peers import wrong

HOSTILE = '<a|b>&"\x1b]]>\n'
TAPE = tape_of([(0, 0, 0, 5), (1, 1, 0, 0)])
PASSED = Verdict(
    Peer(("./peer",)),
    Description(HOSTILE, "C", "heap | tree"),
    7,
    tried={"boundary tape": 57, "random tape": 0, "growth": 3},
    seconds={"boundary tape": 1.25, "random tape": 0.0, "growth": 0.5},
    growth={"start": 1.0, "cancel": 1.9},
    grown_to=4000,
)
FAILED = dataclasses.replace(
    PASSED,
    tried={"boundary tape": 4},
    failure=Failure(HOSTILE, TAPE, Fault("broken", None, f"it said {HOSTILE}"), None),
)


def test_junit_has_a_case_for_each_kind_of_tape():
    suite = ElementTree.fromstring(junit(PASSED))
    counts = {name: suite.get(name) for name in ("tests", "failures", "skipped", "time")}
    assert counts == {"tests": "3", "failures": "0", "skipped": "1", "time": "1.750"}
    cases = {case.get("name"): [child.tag for child in case] for case in suite}
    assert cases == {"boundary tape": [], "random tape": ["skipped"], "growth": []}
    assert suite[0].get("time") == "1.250"


def test_junit_has_the_fault_and_the_smallest_tape():
    suite = ElementTree.fromstring(junit(FAILED))
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    failure = suite[0][0]
    assert failure.get("message").startswith("broken: it said <a|b>&")
    assert len(failure.text.splitlines()) == TAPE.time.size


@pytest.mark.parametrize("verdict", [PASSED, FAILED])
def test_every_row_of_a_table_has_as_many_cells_as_its_head(verdict):
    for table in markdown(verdict).replace("\\|", "").split("\n\n"):
        rows = [row for row in table.splitlines() if row.startswith("|")]
        assert len({row.count("|") for row in rows}) <= 1
    assert "\x1b" not in markdown(verdict) and "<a" not in markdown(verdict)


def test_a_slow_timer_passes_and_is_called_slow():
    assert result_text(PASSED).endswith("(cancel as n^1.9; up to 4,000 pending)")
    states = {"passed": dataclasses.replace(PASSED, growth={}), "slow": PASSED, "failed": FAILED}
    for state, verdict in states.items():
        assert ElementTree.fromstring(badge(verdict)).get("aria-label") == f"timer check: {state}"


def test_the_files_are_written_and_what_cannot_be_is_said_first(tmp_path, capsys):
    command = ["--", sys.executable, wrong.__file__, "late"]
    junit_, badge_ = tmp_path / "check.xml", tmp_path / "check.svg"
    options = ["--quick", "--markdown", "-", "--junit", str(junit_), "--badge", str(badge_)]
    assert main(["check", *options, *command]) == 1
    assert capsys.readouterr().out.startswith("### wrong: wheelwork check failed\n")
    assert ElementTree.parse(junit_).getroot().get("failures") == "1"
    assert badge_.read_text().startswith("<svg")
    assert main(["check", "--junit", f"{junit_}/below", *command]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["check", "--json", "--quick", "--markdown", str(tmp_path / "a.md"), *command]) == 1
    assert json.loads(capsys.readouterr().out)["passed"] is False
    assert (tmp_path / "a.md").read_text().startswith("### wrong")
