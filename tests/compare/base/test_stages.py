"""Stages get the rows of each key in order, from one input or several, and from any files."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.base.datasets import Dataset, part_name, write_part
from compare.base.stages import Here, Stage
from tests.words import one_line
from timers.errors import TimerError

ROWS = pa.schema([("shard", pa.int32()), ("block", pa.int32()), ("value", pa.list_(pa.int64()))])
OTHERS = pa.schema([("shard", pa.int32()), ("block", pa.int32()), ("name", pa.string())])
SUMS = pa.schema([("shard", pa.int32()), ("seen", pa.list_(pa.string()))])


class Wrong(TimerError):
    """Raised by these tests."""


def write(path, *parts, schema=ROWS):
    path.mkdir()
    for number, rows in enumerate(parts):
        batches = [pa.RecordBatch.from_pylist([row], schema) for row in rows]
        write_part(path / part_name(number), schema, batches)
    return Dataset(str(path), schema, ("shard", "block"), Wrong)


def row(shard, block):
    return {"shard": shard, "block": block, "value": [shard, block]}


def seen(batches):
    """A row for each call: what came, in the order in which it came."""
    rows = [row for batch in batches for row in batch.to_pylist()]
    texts = [f"{row['block']}{row.get('name') or ''}" for row in rows]
    assert all(row.get("value") in (None, [row["shard"], row["block"]]) for row in rows)
    yield pa.RecordBatch.from_pylist([{"shard": rows[0]["shard"], "seen": texts}], SUMS)


BY_SHARD = Stage("seen", ("shard",), ("block",), SUMS, seen)


def collected(stage, *datasets, shards):
    engine = Here()
    rows = engine.apply(stage, *(engine.read(dataset, shards) for dataset in datasets))
    found = engine.collect(rows, "a test").to_pylist()
    assert len({row["shard"] for row in found}) == len(found)  # one call for each shard
    return {row["shard"]: row["seen"] for row in found}


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99)), unique=True), st.data())
def test_each_key_comes_whole_and_in_order(tmp_path_factory, places, data):
    """However the rows lie in files and row groups."""
    parts = [data.draw(st.integers(0, 2)) for _ in places]
    rows = [
        [row(*place) for place, part in zip(places, parts, strict=True) if part == number]
        for number in range(3)
    ]
    dataset = write(tmp_path_factory.mktemp("data") / "rows", *rows)
    expected = {}
    for shard, block in sorted(places):
        expected.setdefault(shard, []).append(str(block))
    assert collected(BY_SHARD, dataset, shards=10) == expected


def test_two_inputs_are_one_stream(tmp_path):
    """Null comes first: a row without a name before those of the same block."""
    rows = write(tmp_path / "rows", [row(0, 0), row(0, 1), row(1, 0)])
    names = [(0, 0, "b"), (0, 0, "a"), (0, 1, "c"), (1, 5, "d")]
    others = write(
        tmp_path / "others",
        [dict(zip(OTHERS.names, name, strict=True)) for name in names],
        schema=OTHERS,
    ).ordered_by(("shard", "block", "name"))
    stage = Stage("seen", ("shard",), ("block", "name"), SUMS, seen)
    assert collected(stage, rows, others, shards=2) == {
        0: ["0", "0a", "0b", "1", "1c"],
        1: ["0", "5d"],
    }


def test_another_key_gathers_all_shards(tmp_path):
    def named(batches):
        table = pa.Table.from_batches(list(batches))
        [name] = set(table["name"].to_pylist())
        texts = [str(shard) for shard in table["shard"].to_pylist()]
        yield pa.RecordBatch.from_pylist([{"shard": int(name), "seen": texts}], SUMS)

    rows = [
        {"shard": shard, "block": 0, "name": str(shard % 2)} for shard in (5, 0, 3, 2, 199, 100)
    ]
    dataset = write(tmp_path / "rows", rows, schema=OTHERS)
    stage = Stage("named", ("name",), ("shard",), SUMS, named)
    assert collected(stage, dataset, shards=200) == {0: ["0", "2", "100"], 1: ["3", "5", "199"]}


def test_rows_of_several_branches_are_written_and_read_back(tmp_path):
    def doubled(batches):
        for batch in batches:
            for shard in batch["shard"].to_pylist():
                yield pa.RecordBatch.from_pylist([row(shard, 1)], ROWS)

    engine, path = Here(), tmp_path / "rows"
    path.mkdir()
    stage = Stage("double", ("shard",), (), ROWS, doubled)
    numbers = engine.numbers(100)
    rows = engine.union(engine.apply(stage, numbers), engine.apply(stage, numbers))
    engine.write(rows, str(path), "a test")
    dataset = Dataset(str(path), ROWS, ("shard", "block"), Wrong)
    assert dataset.index.keys["shard"].to_pylist() == np.arange(100).repeat(2).tolist()
    values = engine.values(dataset, "value", 100)
    assert engine.collect(values, "a test").num_rows == 200
    assert engine.tasks() == (64, 64)


def test_an_error_of_a_stage_ends_the_others(tmp_path):
    def fails(batches):
        for batch in batches:
            if batch["shard"][0].as_py() == 3:
                raise Wrong("shard 3 is wrong")
            yield batch

    engine = Here()
    rows = engine.apply(Stage("fails", ("shard",), (), ROWS, fails), engine.numbers(64))
    with one_line(Wrong, "^shard 3 is wrong$"):
        engine.collect(rows, "a test")


@pytest.mark.parametrize("nothing", ["absent", "file"])
def test_a_dataset_that_is_no_directory(tmp_path, nothing):
    (tmp_path / "file").touch()
    dataset = Dataset(str(tmp_path / nothing), ROWS, ("shard",), Wrong)
    with one_line(Wrong, f"{nothing} is not a directory of this machine$"):
        assert dataset.files


def test_an_empty_dataset(tmp_path):
    dataset = write(tmp_path / "rows")
    assert collected(BY_SHARD, dataset, shards=3) == {}
    assert dataset.column("value").num_rows == 0
