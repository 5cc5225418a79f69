"""The doctests of the services' examples; `tests/test_docs.py` runs the examples themselves."""

import doctest
import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "docs" / "examples"
KINDS = ("system_timer_*", "async_*", "purgatory_*", "idle_server*", "virtual_time*")
EXAMPLES = sorted(path for kind in KINDS for path in FOLDER.glob(f"{kind}.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_does_what_it_says(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    done = doctest.testmod(module)
    assert done.attempted > 0
    assert done.failed == 0
