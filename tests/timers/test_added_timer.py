"""A new timer in the registry passes the general tests, with nothing else changed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.timers.added_timers import COPIES, FOLDER
from timers.errors import ParameterError
from timers.schemes.base import KernelTimer
from timers.schemes.hashed_wheel import HashedWheel

ROOT = Path(__file__).parents[2]
NAMES = [*COPIES, "template-kernel"]


def test_timers_that_are_added_to_the_registry_pass_the_general_tests(tmp_path: Path) -> None:
    """Half a minute, for the promise that a timer is a kernel file, a class file and a line."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.timers.added_timers"]
    command += ["-k", " or ".join(NAMES), "tests/timers", "--ignore", "tests/timers/services"]
    command += ["--ignore", "tests/timers/test_interruptions.py"]  # for their time
    environment = os.environ | {FOLDER: str(tmp_path)}
    run = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout
    [passed] = re.findall(r"^(\d+) passed", run.stdout, re.MULTILINE)
    assert int(passed) > 150, run.stdout


def test_a_copied_kernel_needs_a_name_of_its_own_for_its_state() -> None:
    class Copied:
        """As a kernel whose State was not renamed."""

        State = type("HashedWheelState", (tuple,), {"__module__": "timers.kernels.copied"})

    with pytest.raises(ParameterError, match="copied and .* both call their State Hash"):
        type("Forgotten", (KernelTimer,), {"_kernel": Copied, "traits": HashedWheel.traits})
