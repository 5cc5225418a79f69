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


def test_a_lake_becomes_a_table_of_timers(spark, capsys):
    runpy.run_path(str(EXAMPLES / "spark_lake.py"), run_name="__main__")
    printed = capsys.readouterr().out
    # One request in 500 takes 7.5 s, with a timeout of 5 s; all others are answered in time.
    rows = [line.split("|")[1:-1] for line in printed.splitlines() if line.startswith("|")]
    table = {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows if len(row) == 6}
    assert table.keys() == {"contestant", "cascading-wheel", "hashed-wheel/tick=5ms", "delay-queue"}
    for label in ("cascading-wheel", "hashed-wheel/tick=5ms", "delay-queue"):
        operations, fired, _, _, mismatches = table[label]
        assert (operations, fired, mismatches) == ("199800", "200", "0")
