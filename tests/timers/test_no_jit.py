"""Interpreted, the kernels do exactly what they do compiled, and nothing overflows."""
import json
import os
import subprocess
import sys
from pathlib import Path

from tests.timers.tapes import digests

ROOT = Path(__file__).parents[2]


def test_kernels_say_the_same_compiled_and_interpreted() -> None:
    """Rows, handles, bounds and counters; NumPy's warnings are errors in the interpreted run."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.timers.tapes"],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == digests()
