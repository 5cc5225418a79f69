"""The tests notice every seeded bug of `product.py`.

A bug is tried in a process of its own, forked when the libraries are imported: half a second
each. This shows that the tests of the figures that users read can fail.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence

import pytest

from tests.mutants.loading import ROOT, changed_source
from tests.mutants.product import BUGS, SeededBug

EACH_RUN = 4  # the normal run tries every fourth bug; `nox -s model` tries all
PARTS = 2  # of the normal run, so that no worker waits long for the other
FOLDERS = list(dict.fromkeys(bug.file.rpartition("/")[0] for bug in BUGS))


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{bug.file}: {bug.new[:40]}")
def test_seeded_bug_still_fits_its_file(bug: SeededBug) -> None:
    source = (ROOT / bug.file).read_text()
    assert changed_source(bug.file, bug.old, bug.new) != source
    assert (ROOT / bug.test.partition("::")[0]).is_file()


@pytest.mark.parametrize("part", range(PARTS))
def test_seeded_bugs_are_noticed(part: int) -> None:
    hunt(range(part * EACH_RUN, len(BUGS), PARTS * EACH_RUN))


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_every_seeded_bug_is_noticed(folder: str) -> None:
    hunt([number for number, bug in enumerate(BUGS) if bug.file.rpartition("/")[0] == folder])


def hunt(numbers: Sequence[int]) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.mutants.hunt_product", *map(str, numbers)],
        cwd=ROOT,
        # What runs with a bug in it is not measured.
        env={name: value for name, value in os.environ.items() if name != "COVERAGE_FOLDER"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    bugs = list(map(json.loads, run.stdout.splitlines()))
    for bug in bugs:
        print(f"{bug['file']}: {bug['new']}\n    {bug['killed by']}")
    assert len(bugs) == len(numbers) > 0
    assert [bug for bug in bugs if bug["killed by"] != bug["test"]] == []


def test_the_normal_run_tries_enough() -> None:
    assert len(BUGS[::EACH_RUN]) >= 40
