import json
import shutil
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compare.bench import store as runs
from compare.bench.store import (
    SCHEMAS,
    RunError,
    check_store,
    latest_run,
    read_run,
    runs_in,
    traits_of,
    write_run,
)
from compare.replay.contestant import contestant
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
    assert run.manifest["tables"] == {
        "samples": 0,
        "counters": 0,
        "replays": 0,
        "lateness": 0,
        "memory": 1,
        "slots": 0,
        "calls": 0,
        "purgatory": 0,
    }
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


def test_a_run_that_is_being_written_is_not_the_newest(stored):
    shutil.copytree(stored, stored.parent / f".{stored.name}-new")
    assert runs_in(stored.parent) == [stored]


def test_traits_are_told_in_the_finest_unit_of_the_run():
    timer = contestant("hierarchical-wheel/tick=1ms/wheel-size=8")
    assert traits_of(timer, ["ms"])["due_at"] == "at the deadline"
    kept = traits_of(timer, ["ms", "us"])
    assert kept["due_at"] == "at the start of the deadline's tick"
    assert (kept["unit"], kept["lateness_low"], kept["lateness_high"]) == ("us", -999, 0)
    assert (kept["tick"], kept["label"]) == ("1ms", "hierarchical-wheel/tick=1ms/wheel-size=8")
    assert (kept["settings"]["wheel_size"], kept["defaults"]["wheel_size"]) == (8, 20)
    assert kept["costs"][2:5] == [
        "reschedule: O(1)",
        "expiry: O(1) [uniform delays]",  # once, though two counters show it
        "expiry: O(log delay) [the same delay for all]",
    ]


def test_other_things_in_the_store_are_no_runs(stored):
    (stored.parent / "notes.txt").write_text("mine")
    (stored.parent / "zzz").mkdir()
    (stored.parent / ".partial-1").mkdir()
    assert runs_in(stored.parent) == [stored]


def test_only_what_can_be_unknown_may_be_null(tmp_path):
    nullable = {
        name: [field.name for field in schema if field.nullable] for name, schema in SCHEMAS.items()
    }
    assert nullable["samples"] == ["repeat", "ns_per_operation"]
    assert [nullable[name] for name in ("counters", "lateness", "memory", "slots")] == [[]] * 4
    for row in (MEMORY | {"contestant": None}, {"contestant": "t"}):
        with pytest.raises(ValueError, match="non-nullable|null values"):
            write_run(tmp_path / "runs", MANIFEST, {"memory": [row]})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", names())
def test_traits_are_kept_as_plain_values(name):
    timer = contestant(name)
    kept = json.loads(json.dumps(traits_of(timer, ["ms"])))
    assert kept["timer"] == kept["label"] == name
    assert kept["defaults"] == dict(timer.traits.defaults)
    costs = [text.partition(" [")[0] for text in kept["costs"]]
    assert set(costs) == {str(cost) for cost in timer.traits.costs}
    assert len(kept["costs"]) == len(set(kept["costs"]))  # each is told once
    assert (kept["lateness_low"], kept["lateness_high"]) == timer.rounding("ms").bounds()
    assert kept["due_at"]
    assert kept["engine"] == timer.engine


# ---- what cannot be read


def damage(path, how):
    manifest = path / "manifest.json"
    content = json.loads(manifest.read_text())
    if how == "no manifest":
        manifest.unlink()
    elif how == "no json":
        manifest.write_text("{")
    elif how == "no utf-8":
        manifest.write_bytes(b"\xff")
    elif how == "foreign":
        manifest.write_text('{"format": "wheelwork-trace", "version": 1}')
    elif how == "a list":
        manifest.write_text("[]")
    elif how == "newer":
        manifest.write_text(json.dumps({**content, "version": 5}))
    elif how == "entry missing":
        del content["machine"]
        manifest.write_text(json.dumps(content))
    elif how == "wrong type":
        manifest.write_text(json.dumps({**content, "commit": 5}))
    elif how == "no table":
        (path / "samples.parquet").unlink()
    elif how == "truncated":
        whole = (path / "memory.parquet").read_bytes()
        (path / "memory.parquet").write_bytes(whole[: len(whole) // 2])
    elif how == "a bit changed":
        whole = bytearray((path / "memory.parquet").read_bytes())
        column = pq.read_metadata(path / "memory.parquet").row_group(0).column(3)
        whole[column.data_page_offset + column.total_compressed_size - 1] ^= 1  # in the data
        (path / "memory.parquet").write_bytes(whole)
    elif how == "other columns":
        pq.write_table(pa.table({"x": [1]}), path / "memory.parquet")
    elif how == "other rows":
        table = pq.read_table(path / "memory.parquet")
        pq.write_table(pa.concat_tables([table, table]), path / "memory.parquet")
    elif how == "gone":
        shutil.rmtree(path)
    elif how == "a file":
        shutil.rmtree(path)
        path.write_text("")


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("gone", "does not exist"),
        ("a file", "is not a stored run: it is not a directory"),
        ("no manifest", "is not a stored run: it has no manifest.json"),
        ("no json", "is not valid JSON"),
        ("no utf-8", "is not valid JSON"),
        ("foreign", "is not the manifest of a stored run"),
        ("a list", "is not the manifest of a stored run"),
        ("newer", "has version 5; this release reads 4"),
        ("entry missing", "machine is missing or not an object"),
        ("wrong type", "commit is missing or not valid"),
        ("no table", "samples.parquet does not exist"),
        ("truncated", "memory.parquet is not a readable Parquet file"),
        ("a bit changed", "memory.parquet is not a readable Parquet file: could not verify page"),
        ("other columns", "has the columns x, not those of this release"),
        ("other rows", "has 2 rows; the manifest says 1"),
    ],
)
def test_a_run_that_is_no_run_is_refused_in_one_line(stored, how, says):
    damage(stored, how)
    with pytest.raises(RunError) as raised:
        read_run(stored)
    assert says in str(raised.value)
    assert str(stored) in str(raised.value)
    assert "\n" not in str(raised.value)


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


@pytest.mark.parametrize("is_new", [True, False])
def test_a_run_that_fails_halfway_leaves_nothing(tmp_path, monkeypatch, is_new):
    store = tmp_path / "runs"
    if not is_new:
        store.mkdir()

    def fail(*arguments, **keywords):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(runs.pq, "write_table", fail)
    with pytest.raises(RunError, match=r"cannot store a run in .*: No space left on device"):
        write_run(store, MANIFEST, {})
    assert store.exists() is not is_new
    if not is_new:
        assert list(store.iterdir()) == []
