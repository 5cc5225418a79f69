"""The examples of the documentation that run on Spark."""

import runpy
from pathlib import Path

import pytest

from tests.words import tells

pytestmark = pytest.mark.spark

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


def test_idle_connections_in_a_stream(spark, capsys):
    runpy.run_path(str(EXAMPLES / "spark_idle_connections.py"), run_name="__main__")
    printed = capsys.readouterr().out.splitlines()
    facts = [
        "b 12:00:31 events 1",  # an event 44 s after the last one begins another session
        "a 12:00:42 events 2",
        "b 12:01:15 events 1",
    ]
    assert len(printed) == len(facts)
    assert all(map(tells, printed, facts)), printed
