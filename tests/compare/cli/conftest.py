"""A small trace for the commands."""

import pytest

from compare.cli.main import main


@pytest.fixture
def trace(here):
    line = "generate lognormal-high --timer-count 300 --seed 4 --out some.trace"
    assert main(line.split()) == 0
    return "some.trace"
