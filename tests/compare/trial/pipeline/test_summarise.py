"""The table of replayed results: sums over all shards, in which every value is another prime."""

import json
from dataclasses import fields, replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from compare.cli.commands.summarise import text_of
from compare.cli.main import main
from compare.traffic.tapes.trace import write_trace
from compare.trial.pipeline.replay import replay_trace
from compare.trial.pipeline.results import ResultsError, outcome_table
from compare.trial.pipeline.summarise import ABOUT, SCHEMA, summarise, table_of
from compare.trial.replay.contestant import Contestant, contestant
from compare.trial.replay.lateness import Lateness
from compare.trial.replay.outcome import NUMBERS, Outcome
from tests.compare.small_tapes import tape_of

SHARDS = 3
TIMERS = ("hashed-wheel/tick=7us/wheel-size=64", "heapq-delay-queue")
GREATEST = ("most_pending", "nbytes")  # all others add up
LATE = {
    # Of all 1002, the 902nd alone is 7.
    (0, 0): [2] * 3 + [5] * 600 + [6] * 296 + [7] + [8] * 83 + [9] * 14,
    (0, 1): [11] * 3,
    (0, 2): [-13] * 2,
    (1, 0): [],
    (1, 1): [17] * 5,
    (1, 2): [19] * 6,
}


@pytest.fixture(scope="module")
def outcomes():
    """By timer and shard; what is greatest is not in the last shard."""
    prime = (n for n in range(101, 10**6) if all(n % k for k in range(2, int(n**0.5) + 1)))
    outcomes = [[Outcome()] * SHARDS for _ in TIMERS]
    for timer, of_shards in enumerate(outcomes):
        for shard in (0, 2, 1):
            numbers = {name: kind(next(prime)) for name, kind in NUMBERS.items()}
            counters = {"comparisons": next(prime)} if timer == 0 else None
            late = Lateness.of(np.array(LATE[timer, shard], np.int64))
            of_shards[shard] = Outcome(**numbers, counters=counters, lateness=late)
    return outcomes


@pytest.fixture(scope="module")
def results(outcomes, tmp_path_factory):
    """Those of a replay, in place of whose outcomes there are others."""
    path = tmp_path_factory.mktemp("results")
    tapes = [tape_of((10, 0, 0, 20)), tape_of((4999, 0, 0, 5000)), tape_of()]
    source = {"workload": "uniform", "seed": 7}
    trace = write_trace(path / "trace", tapes, unit="us", source=source)
    replayed = replay_trace(trace, TIMERS, path / "results", expiries=False)
    for timer, shard in replayed.replays():
        table = outcome_table(timer, shard, "any engine", outcomes[timer][shard], None)
        pq.write_table(table, replayed.outcome_file(timer, shard))
    return replayed


@pytest.fixture(scope="module")
def rows(results):
    return table_of(results).to_pylist()


@pytest.mark.parametrize("timer", [0, 1])
def test_numbers_are_of_all_shards(rows, outcomes, timer):
    for name in NUMBERS:
        values = [getattr(outcome, name) for outcome in outcomes[timer]]
        assert rows[timer][name] == (max if name in GREATEST else sum)(values), name
    assert {field.name for field in fields(Outcome)} - NUMBERS.keys() == {"counters", "lateness"}
    comparisons = [
        outcome.counters["comparisons"] for outcome in outcomes[timer] if outcome.counters
    ]
    assert rows[timer]["counters"] == ([("comparisons", sum(comparisons))] if comparisons else None)


@pytest.mark.parametrize("timer", [0, 1])
def test_times_are_of_all_shards_and_of_each(rows, outcomes, timer):
    own = outcomes[timer]
    seconds, operations = (
        sum(outcome.seconds for outcome in own),
        sum(outcome.operations for outcome in own),
    )
    assert rows[timer]["ns_per_operation"] == pytest.approx(seconds * 1e9 / operations)
    each = {
        "operations": sorted(outcome.operations for outcome in own),
        "ns_per_operation": sorted(outcome.seconds * 1e9 / outcome.operations for outcome in own),
    }
    for name, values in each.items():
        for which, value in zip(("least", "median", "most"), values, strict=True):
            assert rows[timer][f"shard_{name}_{which}"] == pytest.approx(value)


def test_lateness_is_that_of_all_timers_that_fired(rows):
    names = ("min", "median", "max", "p50", "p90", "p99", "p999")
    first, second = ([row[f"lateness_{name}"] for name in names] for row in rows)
    assert first == [-13, 5.0, 11, 5, 7, 9, 11]  # of 1002 timers
    assert second == [17, 19.0, 19, 19, 19, 19, 19]


def test_each_row_says_what_it_is_of(rows):
    for row, label, engine in zip(rows, TIMERS, ("compiled", "python loop"), strict=True):
        assert (row["contestant"], row["engine"]) == (label, engine)
        assert Contestant(row["timer"], json.loads(row["settings"])) == contestant(label)
        assert (row["workload"], row["unit"], row["shards"]) == ("uniform", "us", SHARDS)
        assert row["source"] == '{"seed": 7, "workload": "uniform"}'
        assert row["span"] == 4989


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ({"kind": "generated", "workload": "uniform"}, "uniform"),
        ({"kind": "requests"}, "requests"),
        ({}, "trace"),
    ],
)
def test_a_trace_is_called_what_it_was_made_of(results, source, name):
    changed = replace(results, trace=replace(results.trace, source=source))
    assert {row["workload"] for row in table_of(changed).to_pylist()} == {name}


def test_the_table_is_written_and_says_how_the_results_were_made(results, tmp_path):
    table = summarise(results.path)
    assert table.schema.equals(SCHEMA)
    assert pq.read_table(results.path / "summary.parquet").equals(table)
    summarise(results.path, tmp_path / "elsewhere" / "table.parquet")
    written = pq.read_table(tmp_path / "elsewhere" / "table.parquet")
    assert written.equals(table)
    about = json.loads(written.schema.metadata[ABOUT])
    asked = {"expiries": False, "drained": True, "counting": False, "checked": False}
    assert about == results.manifest["made_by"] | {"asked": asked}


def test_an_unwritable_place_is_refused(results, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ResultsError, match="cannot write .*file"):
        summarise(results.path, tmp_path / "file" / "table.parquet")


def test_the_text_has_the_figures_of_each_timer(rows):
    text = text_of(rows)
    assert max(map(len, text.splitlines())) <= 80
    assert text.startswith(f"uniform: {rows[0]['operations']:,} operations in 3 shards")
    for row, late in zip(rows, ("5 9 11", "19 19 19"), strict=True):
        numbers = f"{row['ns_per_operation']:.1f} {row['fired']:,} {row['most_pending']:,}"
        assert f"{row['contestant']} {numbers} {late}" in " ".join(text.split())


def test_the_object_of_each_timer_has_the_columns_and_the_source(results, capsys):
    assert main(["summarise", str(results.path), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [row.pop("source") for row in printed] == [{"workload": "uniform", "seed": 7}] * 2
    expected = table_of(results).drop_columns(["source", "counters"]).to_pylist()
    assert [{k: v for k, v in row.items() if k != "counters"} for row in printed] == expected


def test_long_names_stand_on_lines_of_their_own(rows):
    name = "hashed-wheel/tick=123456789/wheel-size=654321"
    silent = {column: None for column in rows[0] if column.startswith("lateness_")}
    wide = {"fired": 10**12, "lateness_max": 10**8, "contestant": name}
    lines = text_of([rows[0] | wide, rows[1] | silent]).splitlines()
    assert max(map(len, lines)) <= 80
    assert name in lines
    assert any(line.split()[-3:] == ["-", "-", "-"] for line in lines)
