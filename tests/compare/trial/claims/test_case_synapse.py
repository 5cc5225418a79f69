"""The case study: the wrong rule fails on the tape that the page shows, the fixed one does not."""

import runpy
import sys
from pathlib import Path

import pytest

from compare.traffic.tapes.tape import START
from compare.trial.oracle.deliveries import first_fault
from compare.trial.peers.run import Peer
from tests.compare.small_tapes import tape_of

ROOT = Path(__file__).parents[4]
MODEL = ROOT / "docs" / "examples" / "list_of_buckets.py"
PAGE = (ROOT / "docs" / "case-synapse.md").read_text()


@pytest.mark.parametrize(("rule", "kind"), [("wrong", "early"), ("fixed", None)])
def test_two_operations_show_the_fault(rule, kind):
    peer = Peer((sys.executable, str(MODEL), rule), environment={"PYTHONPATH": str(ROOT)})
    tape = tape_of((0, START, 0, 494), (0, START, 1, 496))
    rows, bounds = peer.check(tape, 2), peer.description.rounding.bounds(tape)
    fault = first_fault(tape, 2, bounds, rows, fifo=False)
    assert (fault and fault.kind) == kind
    if fault:
        assert " ".join(fault.text.split()) in " ".join(PAGE.split())


def test_the_page_has_the_figures_of_the_model():
    early = runpy.run_path(str(MODEL))["early"]
    assert f"wrong: {len(early('wrong')):,} of 4,000" in PAGE
    assert f"by up to {max(early('wrong'))}\n" in PAGE
    assert not early("fixed")
