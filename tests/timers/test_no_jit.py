"""Interpreted, the kernels do exactly what they do compiled, nothing overflows, and hardly a line
is left unused.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.timers.tapes import digests

ROOT = Path(__file__).parents[2]
LEAST_COVERED = 95  # percent of the kernels' lines


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory):
    """(what the tapes give without the JIT, the coverage report of that run); NumPy's warnings are
    errors in it. Five seconds, made once for both tests: every kernel, line by line.
    """
    folder = tmp_path_factory.mktemp("interpreted")
    environment = {
        **os.environ,
        "NUMBA_DISABLE_JIT": "1",
        "COVERAGE_FILE": str(folder / "coverage"),
    }

    def coverage(*arguments):
        command = [sys.executable, "-W", "error", "-m", "coverage", *arguments]
        run = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stderr
        return run.stdout

    said = json.loads(coverage("run", "-m", "tests.timers.tapes"))
    coverage("json", "-o", str(folder / "report.json"))
    report = json.loads((folder / "report.json").read_text())
    return said, report


def test_kernels_say_the_same_compiled_and_interpreted(interpreted) -> None:
    """Rows, handles, bounds and counters."""
    assert interpreted[0] == digests()


def test_tapes_run_through_the_kernels_lines(interpreted) -> None:
    files = interpreted[1]["files"]
    del files["timers/kernels/jit.py"]  # how the others are compiled
    unused = {name: file["missing_lines"] for name, file in files.items() if file["missing_lines"]}
    lines = sum(file["summary"]["num_statements"] for file in files.values())
    covered = 100 * sum(file["summary"]["covered_lines"] for file in files.values()) / lines
    assert covered >= LEAST_COVERED, unused
