import json
import re
import shutil
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compare.trial.replay.contestant import contestant
from compare.trial.results import store
from compare.trial.results.schema import OVER_BUDGET, SCHEMA, Row, rows_of, table_of
from compare.trial.results.store import (
    CLAIMS,
    COMPARISON,
    PURGATORY,
    RunError,
    check_store,
    contestant_entry,
    find_run,
    latest_run,
    new_run,
    read_run,
    run_before,
    runs_in,
)
from tests.words import one_line
from timers.registry import names

MANIFEST = {
    "command": ["wheelwork", "compare"],
    "commit": None,
    "dirty": None,
    "versions": {"python": "3.11"},
    "machine": {"cpu": None},
    "parameters": {"seed": 0},
    "sources": [],
    "agreement": {"tapes": 0},
    "contestants": [],
}
ROWS = [
    *rows_of("t", "hold", {"time": 1.5, "operations": 7}, 10, 0),
    *rows_of("t", "memory", {"at_rest": 24.0}, 10),
    Row("u", "hold", 10, "time", None, None, OVER_BUDGET),
]


def write_run(root, rows=ROWS, *, kind=COMPARISON, tasks=("first", "second")):
    """A run with the same rows in each task."""
    with new_run(root, kind, MANIFEST, tasks) as writer:
        for task in tasks:
            writer.write(task, rows)
        writer.finish(agreement={"tapes": 5})
    return writer.path


def interrupted(root, *done):
    """A run of which some tasks were finished."""
    with pytest.raises(KeyboardInterrupt), new_run(root, COMPARISON, MANIFEST, "abc") as writer:
        for task in done:
            writer.write(task, ROWS)
        raise KeyboardInterrupt
    return writer.path


@pytest.fixture
def stored(tmp_path):
    return write_run(tmp_path / "runs")


def test_what_is_written_is_read_again(stored):
    run = read_run(stored)
    assert run.path == stored
    assert run.rows == [*ROWS, *ROWS]
    assert run.missing == []
    agreed = {"agreement": {"tapes": 5}}
    assert (MANIFEST | agreed).items() <= run.manifest.items()
    assert (run.manifest["kind"], run.manifest["tasks"]) == (COMPARISON, {"first": 4, "second": 4})
    tables = [pq.read_table(path) for path in stored.glob("*.parquet")]
    assert len(tables) == 2 and all(table.schema.equals(SCHEMA) for table in tables)


def test_a_run_may_have_no_rows(tmp_path):
    assert read_run(write_run(tmp_path, [])).rows == []


def test_runs_are_added_and_never_replaced(tmp_path):
    runs = [write_run(tmp_path) for _ in range(3)]
    assert runs_in(tmp_path) == runs
    assert latest_run(tmp_path) == find_run(tmp_path) == runs[-1]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [path.name for path in runs]


def test_the_newest_run_of_a_kind_is_found(tmp_path):
    with one_line(RunError, "has no runs yet"):
        latest_run(tmp_path, CLAIMS)
    first, second = write_run(tmp_path), write_run(tmp_path, kind=PURGATORY)
    assert find_run(tmp_path, COMPARISON) == first and find_run(tmp_path) == second
    with one_line(RunError, f"has no run of kind 'claims'; the newest is {second}"):
        find_run(tmp_path, CLAIMS)
    assert find_run(tmp_path, CLAIMS, COMPARISON) == first
    assert find_run(tmp_path, PURGATORY, COMPARISON) == second
    damaged = write_run(tmp_path)
    (damaged / "manifest.json").write_text("{")
    assert find_run(tmp_path, COMPARISON) == damaged  # so that its error is seen


def test_an_interrupted_run_has_what_was_finished(tmp_path):
    path = interrupted(tmp_path, "b")
    run = read_run(path)
    assert (run.rows, run.missing) == (ROWS, ["a", "c"])
    assert run.manifest["agreement"] == MANIFEST["agreement"]
    assert find_run(tmp_path) == path  # there is no other
    whole = write_run(tmp_path)
    interrupted(tmp_path, "a")
    assert latest_run(tmp_path) == whole


def test_a_run_that_was_interrupted_at_once_leaves_nothing(tmp_path):
    interrupted(tmp_path / "runs")
    assert not list(tmp_path.iterdir())


def test_the_run_before_is_finished_and_of_the_same_kind(tmp_path):
    first = write_run(tmp_path)
    write_run(tmp_path, kind=PURGATORY)
    interrupted(tmp_path, "a")
    (older := write_run(tmp_path) / store.MANIFEST).write_text('{"version": 5}')
    last = read_run(write_run(tmp_path))
    assert run_before(last).path == first.resolve()
    assert run_before(read_run(first)) is None
    assert run_before(read_run(write_run(tmp_path))).path == last.path.resolve()  # the newest
    assert older.exists()


def test_a_run_is_named_by_the_moment_that_its_manifest_has(stored):
    created = datetime.fromisoformat(read_run(stored).manifest["created"])
    assert created.utcoffset() == timedelta(0)
    assert stored.name.startswith(f"{created:%Y%m%dT%H%M%S}.")


def test_traits_are_told_in_the_finest_unit_of_the_run():
    timer = contestant("hierarchical-wheel/tick=1ms/wheel-size=8")
    assert contestant_entry(timer, ["ms"])["due_at"] == "at the deadline"
    kept = contestant_entry(timer, ["ms", "us"])
    assert kept["due_at"] == "at the start of the deadline's tick"
    assert (kept["unit"], kept["lateness_low"], kept["lateness_high"]) == ("us", -999, 0)
    assert (kept["tick"], kept["label"]) == ("1ms", "hierarchical-wheel/tick=1ms/wheel-size=8")
    assert kept["settings"] == {"tick": "1ms", "wheel_size": 8}
    assert kept["parameters"] == {"tick": 1000, "wheel_size": 8}
    assert kept["costs"][2:5] == [
        "reschedule: O(1)",
        "expiry: O(1) [uniform delays]",  # once, though two counters show it
        "expiry: O(log delay) [the same delay for all]",
    ]


def test_other_things_in_the_store_are_no_runs(stored):
    (stored.parent / "notes.txt").write_text("mine")
    (stored.parent / "zzz").mkdir()
    shutil.copytree(stored, stored.parent / f".{stored.name}-new")  # one that is being written
    stored.rename(before := stored.parent / "renamed")
    stored = write_run(stored.parent)
    (stored.parent / "trace").mkdir()
    (stored.parent / "trace" / store.MANIFEST).write_text('{"format": "of a trace"}')
    (stored / store.MANIFEST).write_text("{ damaged")
    assert runs_in(stored.parent) == [before, stored]


@pytest.mark.parametrize("column", ["contestant", "subject", "metric"])
def test_only_what_can_be_unknown_may_be_null(tmp_path, column):
    assert {field.name for field in SCHEMA if not field.nullable} == {
        *("contestant", "subject", "metric")
    }
    with pytest.raises(RunError, match="cannot store a run in .* null"):
        write_run(tmp_path / "runs", [ROWS[0]._replace(**{column: None})])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", names())
def test_traits_are_kept_as_plain_values(name):
    timer = contestant(name)
    kept = json.loads(json.dumps(contestant_entry(timer, ["ms"])))
    assert kept["timer"] == kept["label"] == name
    assert kept["parameters"] == timer.parameters("ms")
    costs = [text.partition(" [")[0] for text in kept["costs"]]
    assert set(costs) == {str(cost) for cost in timer.traits.costs}
    assert len(kept["costs"]) == len(set(kept["costs"]))  # each is told once
    assert (kept["lateness_low"], kept["lateness_high"]) == timer.rounding("ms").bounds()
    assert kept["due_at"]
    assert kept["engine"] == timer.engine


# ---- what cannot be read; `tests.compare.test_files` has more for manifests


def with_manifest(**changes):
    def damage(run):
        file = run / "manifest.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | changes))

    return damage


def with_table(table):
    return lambda run: pq.write_table(table, run / "first.parquet")


def change_a_bit(run):
    file = run / "first.parquet"
    whole = bytearray(file.read_bytes())
    column = pq.read_metadata(file).row_group(0).column(5)
    whole[column.data_page_offset + column.total_compressed_size - 1] ^= 1  # in the data
    file.write_bytes(whole)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (shutil.rmtree, "does not exist"),
        (with_manifest(format="wheelwork-trace"), "is not the manifest of a stored run"),
        (with_manifest(version=7), "has version 7; this release reads 6"),
        (with_manifest(version=5), "has version 5, of an older release; this release reads 6"),
        (with_manifest(kind=None), "kind is missing or not a string"),
        (with_manifest(machine=5), "machine is missing or not an object"),
        (with_manifest(commit=5), "commit is missing or not valid"),
        (lambda run: (run / "second.parquet").unlink(), "second.parquet does not exist"),
        (change_a_bit, "first.parquet is not a readable Parquet file: could not verify page"),
        (with_table(pa.table({"x": [1]})), "has the columns x, not those of this release"),
        (with_table(table_of(ROWS[:3])), "has 3 rows; the manifest says 4"),
    ],
)
def test_a_run_that_is_no_run_is_refused_in_one_line(stored, damage, says):
    damage(stored)
    with one_line(RunError, re.escape(says)) as raised:
        read_run(stored)
    assert str(stored) in str(raised.value)


def test_a_store_without_runs_is_named(tmp_path):
    with pytest.raises(RunError, match="has no runs yet"):
        latest_run(tmp_path)
    with pytest.raises(RunError, match="is not a directory of runs"):
        latest_run(tmp_path / "nowhere")


# ---- what cannot be written


def test_a_store_that_cannot_be_is_refused_before_anything_is_measured(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(RunError, match="is not a directory"):
            check_store(path)
        with pytest.raises(RunError, match="cannot store a run in"):
            write_run(path)
    check_store(tmp_path / "new" / "store")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file"]


def test_a_run_that_fails_halfway_leaves_nothing(tmp_path, monkeypatch):
    def fail(*arguments, **keywords):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.pq, "write_table", fail)
    with pytest.raises(RunError, match=r"cannot store a run in .*: No space left on device"):
        write_run(tmp_path / "runs")
    assert not list(tmp_path.iterdir())
