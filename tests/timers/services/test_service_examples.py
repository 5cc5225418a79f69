"""The services' examples in docs/examples: their doctests, and that they run as scripts."""

import doctest
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "docs" / "examples"
EXAMPLES = sorted([*FOLDER.glob("system_timer_*.py"), *FOLDER.glob("async_*.py")])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_does_what_it_says(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert doctest.testmod(module).failed == 0
    assert doctest.testmod(module).attempted > 0
    command = [sys.executable, "-W", "error", path]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout
