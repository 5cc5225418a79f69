"""The state machine notices every seeded bug of `mutants.py`, and nothing where there is none.

`pytest -s` prints for each bug the geometry, the rule or invariant that failed first, and what it
said.
"""

import json
import os
import subprocess
import sys

import pytest

from tests.mutants.loading import KERNELS, ROOT, mutated_source
from tests.mutants.mutants import MUTANTS, Mutant

TIMERS = list(dict.fromkeys(mutant.timer for mutant in MUTANTS))
SHARED = {"operations.py", "pool.py", "bitmap.py"}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.bug)
def test_seeded_bug_still_fits_its_kernel(mutant: Mutant) -> None:
    assert mutated_source(mutant) != (ROOT / KERNELS / mutant.file).read_text()


def test_every_kernel_has_seeded_bugs() -> None:
    kernels = {f"{timer.replace('-', '_')}.py" for timer in TIMERS}
    assert {mutant.file for mutant in MUTANTS} == kernels | SHARED


@pytest.mark.parametrize("timer", TIMERS)
def test_machine_kills_every_mutant(timer: str) -> None:
    """Up to ten seconds a timer: they show that the model-based tests find what they are for."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.mutants.hunt", timer],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    *mutants, control = map(json.loads, run.stdout.splitlines())
    for mutant in mutants:
        print(f"{mutant['file']}: {mutant['bug']}\n    {mutant['geometry']}: {mutant['killed by']}")
    assert [mutant["bug"] for mutant in mutants] == [
        mutant.bug for mutant in MUTANTS if mutant.timer == timer
    ]
    assert [mutant["bug"] for mutant in mutants if not mutant["killed by"]] == []
    assert control["killed by"] is None, "the timer without any bug fails too"
