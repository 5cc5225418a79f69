"""The table of replayed results: sums over all shards, in which every value is another prime."""

import json
import shutil
from dataclasses import fields, replace

import numpy as np
import pyarrow as pa
import pytest

from compare.cli.commands.summarise import sheet_of
from compare.cli.main import main
from compare.traffic.tapes.trace import write_trace
from compare.trial.pipeline.replay import replay_trace
from compare.trial.pipeline.results import EXPIRIES, ResultsError, open_results, outcome_row
from compare.trial.pipeline.summarise import (
    outcomes_of,
    summarise,
    summary_of,
    write_summary,
)
from compare.trial.replay.contestant import contestant
from compare.trial.replay.lateness import Lateness
from compare.trial.replay.outcome import NUMBERS, Outcome
from compare.trial.results.store import contestant_entry, read_run
from tests.compare.conftest import on_both
from tests.compare.small_tapes import tape_of
from tests.compare.trial.pipeline.contents import rewrite, rows_of, table_of
from tests.words import one_line
from timers.errors import TimerError

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
    (1, 2): [19] * 5 + [5003],  # a quantile has eleven binary digits, and the greatest has all
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
            late = Lateness.of(np.array(LATE[timer, shard], np.int64)).coarse()
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
    rows = rows_of(replayed.expiries)
    for row in rows:
        outcome = outcomes[TIMERS.index(row["contestant"])][row["shard"]]
        row["outcome"] = outcome_row("any engine", outcome, None)
    rewrite(replayed.expiries, pa.Table.from_pylist(rows, EXPIRIES))
    return replayed


@pytest.fixture(scope="module")
def run(results):
    return summarise(results.path)


def value(run, timer, metric):
    """The value over all shards."""
    [found] = [
        row.value
        for row in run.rows
        if (row.contestant, row.metric, row.repeat) == (TIMERS[timer], metric, None)
    ]
    return found


@pytest.mark.parametrize("timer", [0, 1])
def test_numbers_are_of_all_shards(run, outcomes, timer):
    for name in NUMBERS.keys() - {"seconds"}:
        values = [getattr(outcome, name) for outcome in outcomes[timer]]
        assert value(run, timer, name) == (max if name in GREATEST else sum)(values), name
    assert {field.name for field in fields(Outcome)} - NUMBERS.keys() == {"counters", "lateness"}
    comparisons = [
        outcome.counters["comparisons"] for outcome in outcomes[timer] if outcome.counters
    ]
    operations = sum(outcome.operations for outcome in outcomes[timer])
    counted = [row.value for row in run.rows if row[::3] == (TIMERS[timer], "comparisons", None)]
    assert counted == ([sum(comparisons) / operations] if comparisons else [])


@pytest.mark.parametrize("timer", [0, 1])
def test_times_are_of_all_shards_and_of_each(run, outcomes, timer):
    own = outcomes[timer]
    seconds, operations = (
        sum(outcome.seconds for outcome in own),
        sum(outcome.operations for outcome in own),
    )
    assert value(run, timer, "replay_time") == pytest.approx(seconds * 1e9 / operations)
    each = [
        (row.repeat, row.value)
        for row in run.rows
        if (row.contestant, row.metric) == (TIMERS[timer], "replay_time") and row.repeat is not None
    ]
    assert each == [
        (shard, pytest.approx(outcome.seconds * 1e9 / outcome.operations))
        for shard, outcome in enumerate(own)
    ]


def test_lateness_is_that_of_all_timers_that_fired(run):
    names = ("min", "median", "max", "p50", "p90", "p99", "p999")
    first, second = ([value(run, n, f"lateness_{name}") for name in names] for n in (0, 1))
    assert first == [-13, 5.0, 11, 5, 7, 9, 11]  # of 1002 timers
    assert second == [17, 19.0, 5003, 19, 19, 5000, 5000]


def test_the_manifest_says_what_it_is_of(run, results, outcomes):
    entries = [contestant_entry(contestant(label), ["us"]) for label in TIMERS]
    assert run.manifest["contestants"] == json.loads(json.dumps(entries))
    [source] = run.manifest["sources"]
    wanted = {"name": "uniform", "unit": "us", "shards": SHARDS, "span": 4989}
    wanted |= {"details": {"workload": "uniform", "seed": 7}}
    wanted["operations"] = sum(outcome.operations for outcome in outcomes[0])
    wanted["timers"] = sum(outcome.scheduled for outcome in outcomes[0])
    assert wanted.items() <= source.items()
    assert {row.subject for row in run.rows} == {"uniform"}
    asked = {"expiries": False, "drained": True, "counting": False, "checked": False}
    assert run.manifest["parameters"] == asked
    assert results.manifest["made_by"].items() <= run.manifest.items()
    assert run.manifest["agreement"]["checked"].startswith("not by this report")


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ({"kind": "generated", "workload": "uniform"}, "uniform"),
        ({"kind": "requests"}, "requests"),
        ({}, "trace"),
    ],
)
def test_a_trace_is_called_what_it_was_made_of(results, tmp_path, source, name):
    trace = replace(results.trace, source=source)
    run = write_summary(tmp_path / "run", results.manifest, trace, outcomes_of(results))
    assert {row.subject for row in run.rows} == {name}


def test_the_summary_is_written_and_replaced(results, run, tmp_path):
    assert run.path == results.path / "summary"
    assert summary_of(results.path).rows == read_run(run.path).rows == run.rows
    elsewhere = tmp_path / "elsewhere" / "run"
    for _ in range(2):
        assert summarise(results.path, elsewhere).rows == run.rows
    assert [path.name for path in elsewhere.parent.iterdir()] == ["run"]


def left_out(row):
    return lambda table: pa.concat_tables([table.slice(0, row), table.slice(row + 1)])


@on_both
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (left_out(0), "the outcomes of .* have shard 1 without 0"),
        (left_out(5), "has outcomes of 2 of 3 shards"),
        (lambda table: pa.concat_tables([table, table]), "the outcomes of .* have shard 0 twice"),
        (lambda table: table.slice(0, 0), "there are outcomes of no timer"),
    ],
    ids=["first", "last", "two-runs", "nothing"],
)
def test_outcomes_that_are_not_whole_are_one_line(where, results, tmp_path, change, says):
    copy = tmp_path / "results"
    shutil.copytree(results.path, copy)
    opened = open_results(copy)
    rewrite(opened.expiries, change(table_of(opened.expiries)))
    with one_line(TimerError, says):
        summarise(copy, **where)


def test_an_unwritable_place_is_refused(results, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "mine").mkdir()
    for path in ("file/run", "file", "mine"):
        with pytest.raises(ResultsError, match="cannot write .*(file|mine)"):
            summarise(results.path, tmp_path / path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "mine"]


def test_the_text_has_the_figures_of_each_timer(run):
    text = sheet_of(run).text()
    assert max(map(len, text.splitlines())) <= 80
    operations = value(run, 0, "operations")
    assert text.startswith(f"uniform: {operations:,.0f} operations in 3 shards")
    for timer, late in enumerate(("5 9 11", "19 5,000 5,003")):
        fired, pending = (value(run, timer, name) for name in ("fired", "most_pending"))
        numbers = f"{value(run, timer, 'replay_time'):.1f} {fired:,.0f} {pending:,.0f}"
        assert f"{TIMERS[timer]} {numbers} {late}" in " ".join(text.split())


def test_json_and_markdown_have_the_figures_of_each_timer(results, run, capsys):
    assert main(["summarise", str(results.path), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["run"] == str(run.path)
    time = next(
        each
        for each in printed["figures"]
        if (each["contestant"], each["metric"]) == (TIMERS[1], "replay_time")
    )
    assert (time["value"], time["n"]) == (value(run, 1, "replay_time"), SHARDS)
    assert main(["summarise", str(results.path), "--markdown"]) == 0
    out = capsys.readouterr().out
    assert f"| {TIMERS[1]} | {value(run, 1, 'replay_time'):.1f} |" in out
    assert main(["summarise", str(results.path), "--markdown", "--json"]) == 2


def test_long_names_stand_on_lines_of_their_own(run):
    name = "hashed-wheel/tick=123456789/wheel-size=654321"
    entry = {**run.manifest["contestants"][0], "label": name}
    rows = [
        row._replace(contestant=name, value=10.0**12 if row.metric == "fired" else row.value)
        for row in run.rows
        if row.contestant == TIMERS[0] and not row.metric.startswith("lateness")
    ]
    wide = replace(run, rows=rows, manifest={**run.manifest, "contestants": [entry]})
    lines = sheet_of(wide).text().splitlines()
    assert max(map(len, lines)) <= 80
    assert name in lines
    assert any(line.split()[-3:] == ["-", "-", "-"] for line in lines)
