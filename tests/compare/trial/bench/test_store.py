import json
import re
import shutil
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compare.trial.bench import store
from compare.trial.bench.store import (
    SCHEMAS,
    RunError,
    check_store,
    latest_run,
    read_run,
    runs_in,
    traits_of,
    write_run,
)
from compare.trial.replay.contestant import contestant
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
    "traits": [],
}
MEMORY = {
    "contestant": "t",
    "capacity": 10,
    "nbytes": 240,
    "nbytes_per_timer": 24.0,
    "peak_nbytes": 720,
    "grown_nbytes": 480,
    "growth_seconds": [0.5, 0.25],
}


@pytest.fixture
def stored(tmp_path):
    return write_run(tmp_path / "runs", MANIFEST, {"memory": [MEMORY]})


def test_what_is_written_is_read_again(stored):
    run = read_run(stored)
    assert run.path == stored
    assert MANIFEST.items() <= run.manifest.items()
    assert run.manifest["tables"] == {**dict.fromkeys(SCHEMAS, 0), "memory": 1}
    assert run.memory.to_pylist() == [MEMORY]
    assert all(getattr(run, name).schema.equals(schema) for name, schema in SCHEMAS.items())


def test_runs_are_added_and_never_replaced(tmp_path):
    runs = [write_run(tmp_path, MANIFEST, {}) for _ in range(3)]
    assert runs_in(tmp_path) == runs
    assert latest_run(tmp_path) == runs[-1]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [path.name for path in runs]


def test_a_run_is_named_by_the_moment_that_its_manifest_has(stored):
    created = datetime.fromisoformat(read_run(stored).manifest["created"])
    assert created.utcoffset() == timedelta(0)
    assert stored.name.startswith(f"{created:%Y%m%dT%H%M%S}.")


def test_traits_are_told_in_the_finest_unit_of_the_run():
    timer = contestant("hierarchical-wheel/tick=1ms/wheel-size=8")
    assert traits_of(timer, ["ms"])["due_at"] == "at the deadline"
    kept = traits_of(timer, ["ms", "us"])
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
    stored = write_run(stored.parent, MANIFEST, {})
    (stored.parent / "trace").mkdir()
    (stored.parent / "trace" / store.MANIFEST).write_text('{"format": "of a trace"}')
    (stored / store.MANIFEST).write_text("{ damaged")
    assert runs_in(stored.parent) == [before, stored]


def test_only_what_can_be_unknown_may_be_null(tmp_path):
    nullable = {
        name: [field.name for field in schema if field.nullable] for name, schema in SCHEMAS.items()
    }
    assert nullable["samples"] == ["repeat", "ns_per_operation"]
    assert [nullable[name] for name in ("counters", "memory", "slots")] == [[]] * 3
    for row in (MEMORY | {"contestant": None}, {"contestant": "t"}):
        with pytest.raises(ValueError, match="non-nullable|null values"):
            write_run(tmp_path / "runs", MANIFEST, {"memory": [row]})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", names())
def test_traits_are_kept_as_plain_values(name):
    timer = contestant(name)
    kept = json.loads(json.dumps(traits_of(timer, ["ms"])))
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


def with_memory(table):
    return lambda run: pq.write_table(table, run / "memory.parquet")


def change_a_bit(run):
    file = run / "memory.parquet"
    whole = bytearray(file.read_bytes())
    column = pq.read_metadata(file).row_group(0).column(3)
    whole[column.data_page_offset + column.total_compressed_size - 1] ^= 1  # in the data
    file.write_bytes(whole)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (shutil.rmtree, "does not exist"),
        (with_manifest(format="wheelwork-trace"), "is not the manifest of a stored run"),
        (with_manifest(version=6), "has version 6; this release reads 5"),
        (with_manifest(machine=5), "machine is missing or not an object"),
        (with_manifest(commit=5), "commit is missing or not valid"),
        (lambda run: (run / "samples.parquet").unlink(), "samples.parquet does not exist"),
        (change_a_bit, "memory.parquet is not a readable Parquet file: could not verify page"),
        (with_memory(pa.table({"x": [1]})), "has the columns x, not those of this release"),
        (
            with_memory(pa.Table.from_pylist([MEMORY] * 2, SCHEMAS["memory"])),
            "has 2 rows; the manifest says 1",
        ),
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
            write_run(path, MANIFEST, {})
    check_store(tmp_path / "new" / "store")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file"]


def test_a_run_that_fails_halfway_leaves_nothing(tmp_path, monkeypatch):
    def fail(*arguments, **keywords):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.pq, "write_table", fail)
    with pytest.raises(RunError, match=r"cannot store a run in .*: No space left on device"):
        write_run(tmp_path / "runs", MANIFEST, {})
    assert not list(tmp_path.iterdir())
