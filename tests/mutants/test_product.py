"""The tests notice every seeded bug of `product.py`, and nothing where there is none.

`pytest -s` prints for each bug the test that failed first. A bug is tried in a process of its own,
forked when the libraries are imported: about a second each, which is what shows that the tests of
the figures that users read can fail.
"""

import json
import subprocess
import sys

import pytest

from tests.mutants.loading import ROOT, changed_source
from tests.mutants.product import BUGS, TESTED_BY, SeededBug

FOLDERS = list(dict.fromkeys(bug.file.rpartition("/")[0] for bug in BUGS))


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{bug.file}: {bug.new[:40]}")
def test_seeded_bug_still_fits_its_file(bug: SeededBug) -> None:
    assert changed_source(*bug) != (ROOT / bug.file).read_text()
    assert bug.file in TESTED_BY


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_seeded_bug_is_noticed(folder: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.mutants.hunt_product", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    lines = list(map(json.loads, run.stdout.splitlines()))
    bugs = [line for line in lines if "file" in line]
    controls = [line for line in lines if "tests" in line]
    for bug in bugs:
        print(f"{bug['file']}: {bug['new']}\n    {bug['killed by']}")
    assert len(bugs) == sum(bug.file.rpartition("/")[0] == folder for bug in BUGS) > 0
    assert [bug for bug in bugs if not bug["killed by"]] == []
    assert controls, "the tests were not run without a bug"
    assert [control for control in controls if control["failed"]] == []
