"""A new timer in the registry passes the general tests, with nothing else changed."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_timer_that_is_added_to_the_registry_passes_the_general_tests() -> None:
    """Ten seconds, for the promise that a timer is a kernel file, a class file and a line."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.timers.added_timer"]
    command += ["-k", "added-timer", "tests/timers", "--ignore", "tests/timers/services"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
    [passed] = re.findall(r"^(\d+) passed", run.stdout, re.MULTILINE)
    assert int(passed) > 50, run.stdout
