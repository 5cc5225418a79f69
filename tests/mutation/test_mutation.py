"""The tests notice changes of the code: a few mechanical mutants of each area, in every run."""

import re
import subprocess
import sys

import pytest

from tests.mutation.operators import mutants_of
from tests.mutation.trial import ROOT

AREAS = {
    "wheel": (50, ["timers/kernels/cascading_wheel.py", "timers/kernels/dense_wheel.py"]),
    "heap": (50, ["timers/kernels/delay_queue.py"]),
    "tapes": (10, ["compare/traffic/tapes/tape.py", "compare/trial/replay/lateness.py"]),
    "figures": (10, ["reports/statistics.py", "reports/answer.py"]),
}
"""Files, and the part of their mutants that is tried: one of so many."""
SHARE = 0.7  # of the mutants, at least; some change nothing that a user could see


@pytest.mark.parametrize("area", AREAS)
def test_mutants_are_noticed(area: str) -> None:
    """Up to 15 seconds an area: they show that the tests can fail."""
    each, files = AREAS[area]
    command = [sys.executable, "-m", "tests.mutation.hunt", "--each", str(each), *files]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    counts = re.findall(r": (\d+) of (\d+) noticed", run.stdout)
    noticed, mutants = (sum(map(int, column)) for column in zip(*counts, strict=True))
    assert noticed >= SHARE * mutants, run.stdout


SOURCE = """
def least(a, b):
    "The least of two."
    if a < b + 1 and not b:
        return min(a, b)
    return a
"""


def test_a_mutant_is_one_change() -> None:
    mutants = list(mutants_of(SOURCE))
    assert [str(mutant) for mutant in mutants] == [
        "line 4, least: And to Or",
        "line 4, least: Lt to LtE",
        "line 4, least: Add to Sub",
        "line 4, least: 1 to 2",
        "line 4, least: without not",
        "line 5, least: min to max",
    ]
    assert "if a < b + 1 or not b" in mutants[0].source()
    assert "if a < b + 1 and (not not b)" in mutants[4].source()
    assert len({mutant.source() for mutant in mutants}) == len(mutants)
