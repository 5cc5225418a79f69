"""Traces come back as they were written, appear whole or not at all, and damaged ones are told in a
line.
"""

import json
import os
import stat

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compare.traffic.tapes import trace as module
from compare.traffic.tapes.tape import ARM, CANCEL, REARM, START, Tape, TapeError
from compare.traffic.tapes.trace import (
    SCHEMA,
    Shard,
    TraceError,
    new_shard,
    new_trace,
    open_trace,
    write_trace,
)
from tests.compare.small_tapes import tape_of
from tests.compare.traffic.tapes.test_tape import GOOD, with_row
from tests.words import one_line
from timers import LIMIT

SOURCE = {"kind": "test", "seed": 7}


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PIECE", 4)  # six rows are read in two pieces
    return tmp_path / "a trace"


@pytest.fixture
def written(path):
    return write_trace(path, [tape_of(*GOOD), tape_of()], unit="us", source=SOURCE)


def names(directory):
    return sorted(entry.name for entry in directory.iterdir())


def change(path, **changes):
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(manifest | changes))


def change_shard(path, **changes):
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["shards"][0] |= changes
    (path / "manifest.json").write_text(json.dumps(manifest))


def test_a_trace_comes_back_as_it_was_written(path, written):
    trace = open_trace(str(path))
    assert trace == written
    assert (trace.unit, trace.source, len(trace.shards)) == ("us", SOURCE, 2)
    assert trace.totals == {"rows": 6, "starts": 2, "cancels": 2, "rearms": 1, "arms": 1}
    assert trace.shards == (
        Shard("shard-00000.parquet", 6, 2, 0, LIMIT, starts=2, cancels=2, rearms=1, arms=1),
        Shard("shard-00001.parquet"),
    )
    for shard, tape in enumerate((tape_of(*GOOD), tape_of())):
        for actual, wanted in zip(trace.load(shard), tape, strict=True):
            np.testing.assert_array_equal(actual, wanted)
            assert actual.dtype == wanted.dtype
            assert actual.flags.c_contiguous
            assert actual.flags.writeable
    assert trace.beginning(5).time.tolist() == tape_of(*GOOD[:5]).time.tolist()  # of two pieces
    assert names(path) == ["manifest.json", "shard-00000.parquet", "shard-00001.parquet"]
    assert names(path.parent) == ["a trace"]


def test_totals_and_span_are_over_all_shards(path):
    first = [
        (7, START, 0, 9),
        (8, START, 1, 9),
        (9, CANCEL, 1, 0),
        (9, CANCEL, 0, 0),
        (20, ARM, 2, 9),
    ]
    other = [(3, START, 0, 5), (4, ARM, 1, 6), (4, ARM, 2, 6), (9, REARM, 0, 8), (9, CANCEL, 1, 0)]
    tapes = [tape_of(*rows) for rows in (first, [*other, (9, ARM, 3, 9)], [])]
    trace = write_trace(path, tapes, unit="s", source={})
    assert trace.totals == {"rows": 11, "starts": 3, "cancels": 3, "rearms": 1, "arms": 4}
    assert trace.span == 20 - 3
    assert write_trace(path, tapes[2:], unit="s", source={}, force=True).span == 0


def test_the_files_are_what_the_docs_say(path, written):
    manifest = json.loads((path / "manifest.json").read_text())
    assert (manifest["format"], manifest["version"]) == ("wheelwork-trace", 2)
    file = pq.ParquetFile(path / "shard-00000.parquet")
    assert file.schema_arrow.equals(SCHEMA)
    assert not any(field.nullable for field in file.schema_arrow)
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_long_shards_are_written_in_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ROW_GROUP", 1000)
    size = 2500
    tape = Tape(
        np.arange(3, 3 + size, dtype=np.int64),
        np.array([START, ARM, ARM, ARM, REARM], np.int8).repeat(size // 5),
        np.minimum(np.arange(size)[::-1], 99).astype(np.int32),
        np.arange(size, dtype=np.int64) + 5,
    )
    with new_shard(tmp_path / "one") as whole:
        whole.append(tape)
    with new_shard(tmp_path / "many") as many:
        for begin in range(0, size, 70):
            many.append(Tape(*(column[begin : begin + 70] for column in tape)))
        many.append(tape_of())
    counts = {"starts": 500, "cancels": 0, "rearms": 500, "arms": 1500}
    for writer, name in ((whole, "one"), (many, "many")):
        assert writer.shard == Shard(name, size, 100, 3, 2 + size, **counts)
    for path in (tmp_path / "one", tmp_path / "many"):
        groups = pq.ParquetFile(path).metadata
        assert [groups.row_group(k).num_rows for k in range(groups.num_row_groups)] == [
            *(1000, 1000, 500)
        ]
        assert pq.read_table(path).column("time").to_pylist() == tape.time.tolist()


def test_bad_tapes_are_refused_and_leave_nothing(path):
    with pytest.raises(TapeError, match="^shard 1: row 2: time -1 is negative"):
        write_trace(path, [tape_of(*GOOD), with_row(2, time=-1)], unit="ms", source={})
    with pytest.raises(TraceError, match="at least one shard"):
        write_trace(path, [], unit="ms", source={})
    with pytest.raises(TraceError, match="unit 'h' is not ns, us, ms, s or unit"):
        write_trace(path, [tape_of(*GOOD)], unit="h", source={})
    with pytest.raises(TraceError, match="id_space of .* is 8; it must not exceed the 6 rows"):
        write_trace(path, [with_row(5, id=7, op=START)], unit="ms", source={})
    for source in ({"x": object()}, {"x": float("nan")}):
        with pytest.raises(TraceError, match="source cannot be written as JSON"):
            write_trace(path, [tape_of(*GOOD)], unit="ms", source=source)
    assert names(path.parent) == []


def test_a_failure_while_writing_leaves_the_old_trace(path, written):
    def tapes():
        yield tape_of(*GOOD[:1])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_trace(path, tapes(), unit="ms", source={}, force=True)
    assert open_trace(path) == written
    assert names(path.parent) == ["a trace"]


def test_a_disk_that_is_full_is_told_in_a_line(path, monkeypatch):
    class Full(pq.ParquetWriter):
        def write_table(self, *args, **kwargs):
            raise OSError(28, os.strerror(28))

    monkeypatch.setattr(pq, "ParquetWriter", Full)
    with pytest.raises(TraceError, match=r"^cannot write .*a trace: No space left on device$"):
        write_trace(path, [tape_of(*GOOD)], unit="ms", source={})
    assert names(path.parent) == []


def test_only_a_trace_is_ever_replaced_and_only_by_force(path, written, tmp_path):
    with pytest.raises(TraceError, match="exists; pass --force"):
        write_trace(path, [tape_of(*GOOD[:1])], unit="ms", source={})
    replaced = write_trace(path, [tape_of(*GOOD[:1])], unit="ms", source={}, force=True)
    assert replaced.totals["rows"] == 1
    assert names(path) == ["manifest.json", "shard-00000.parquet"]
    (path / "notes.txt").write_text("keep me")
    (tmp_path / "file").write_text("a file")
    (tmp_path / "directory").mkdir()
    for name, why in {
        "a trace": "is not a trace",
        "file": "is not a trace",
        "directory": "is not a trace",
        ".": "is not a trace",
        "file/below": "file is not a directory",
    }.items():
        with pytest.raises(TraceError, match=why):
            write_trace(tmp_path / name, [tape_of(*GOOD)], unit="ms", source={}, force=True)
    assert names(tmp_path) == ["a trace", "directory", "file"]


def test_a_link_to_a_trace_stays_a_link(path, written, tmp_path):
    (tmp_path / "link").symlink_to(path)
    write_trace(tmp_path / "link", [tape_of(*GOOD[:1])], unit="ms", source={}, force=True)
    assert (tmp_path / "link").is_symlink()
    assert open_trace(path).totals["rows"] == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_directory_without_permission(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(TraceError, match="no permission to write in"):
        write_trace(tmp_path / "trace", [tape_of(*GOOD)], unit="ms", source={})
    tmp_path.chmod(stat.S_IRWXU)


def test_strays_of_a_task_that_was_tried_twice_are_removed(path):
    with new_trace(path, unit="ms", source={}) as unfinished:
        (unfinished.directory / "shard-00000.parquet.1234").write_text("half")
        with new_shard(unfinished.directory / "shard-00000.parquet") as writer:
            writer.append(tape_of(*GOOD))
        unfinished.shards.append(writer.shard)
    assert names(path) == ["manifest.json", "shard-00000.parquet"]
    open_trace(path).load()


def refuse(path, why, load=False):
    with one_line(TraceError, why):
        trace = open_trace(path)
        if load:
            trace.load()


def test_a_manifest_that_cannot_be_read(path, written):
    manifest = path / "manifest.json"
    manifest.write_bytes(b"\xff\xfe")
    refuse(path, "manifest.json is not valid JSON")
    manifest.unlink()
    manifest.mkdir()
    refuse(path, "cannot read .*manifest.json: Is a directory")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"version": 3}, "has version 3; this release reads 2"),
        ({"version": 1}, "has version 1, of an older release; this release reads 2"),
        ({"unit": "h"}, "unit 'h' is not ns, us, ms, s or unit"),
        ({"source": None}, "source is missing or not an object"),
        ({"shards": {}}, "shards is missing or not a list"),
        ({"shards": []}, "lists no shard"),
        ({"shards": [5]}, "each shard must be an object with file, rows"),
        ({"totals": {"rows": 7}}, "totals.rows is 7; its shards add up to 6"),
        ({"description": None}, "description is missing or not an object"),
        ({"description": {"armed": 4}}, "description must have armed, answered, waited, delay"),
    ],
)
def test_manifests_that_are_wrong(path, written, changes, why):
    change(path, **changes)
    refuse(path, why)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"file": "../elsewhere.parquet"}, "is not a plain file name"),
        ({"file": ""}, "is not a plain file name"),
        ({"rows": -1}, "rows of shard-00000.parquet is -1"),
        ({"rows": True}, "rows of shard-00000.parquet is True"),
        ({"id_space": "2"}, "id_space of shard-00000.parquet is '2'"),
        ({"first_time": None}, "first_time of shard-00000.parquet is None"),
        # A replay makes a table of so many ids before it reads a row.
        ({"id_space": 2**31}, "id_space of shard-00000.parquet is 2147483648; .* the 6 rows"),
        ({"id_space": 7}, "id_space of shard-00000.parquet is 7; it must not exceed the 6 rows"),
    ],
)
def test_manifests_with_wrong_shards(path, written, changes, why):
    change_shard(path, **changes)
    refuse(path, why)


def test_shards_at_odds_with_the_manifest(path, written):
    change_shard(path, rows=7)
    change(path, totals={"rows": 7, "starts": 2, "cancels": 2, "rearms": 1, "arms": 1})
    refuse(path, "shard-00000.parquet has 6 rows; the manifest says 7", load=True)
    change_shard(path, rows=6, starts=3)
    change(path, totals={"rows": 6, "starts": 3, "cancels": 2, "rearms": 1, "arms": 1})
    refuse(path, "starts is 2; the manifest says 3", load=True)
    change_shard(path, starts=2, last_time=5)
    change(path, totals={"rows": 6, "starts": 2, "cancels": 2, "rearms": 1, "arms": 1})
    refuse(path, "last_time is 9223372036854775807; the manifest says 5", load=True)
    change_shard(path, id_space=1)
    with pytest.raises(
        TapeError, match=r"shard-00000.parquet: row 1: id 1 is outside \[0, 1\)"
    ) as error:
        open_trace(path).load()
    assert error.value.row == 1


def test_shards_that_do_not_exist(path, written):
    for shard in (2, -1):
        with pytest.raises(TraceError, match=f"has no shard {shard}; it has 2"):
            written.load(shard)
    (path / "shard-00000.parquet").unlink()
    refuse(path, "shard-00000.parquet does not exist", load=True)


def test_damaged_parquet_files(path, written):
    shard = path / "shard-00000.parquet"
    good = shard.read_bytes()
    for damaged in (b"", b"PAR1", good[:-1], good[: len(good) // 2], b"not parquet at all, really"):
        shard.write_bytes(damaged)
        refuse(path, "shard-00000.parquet is not a readable Parquet file", load=True)
    # Every single flipped byte is told, or does no harm.
    tape = tape_of(*GOOD)
    for place in range(0, len(good), 7):
        shard.write_bytes(good[:place] + bytes([good[place] ^ 0x55]) + good[place + 1 :])
        try:
            actual = open_trace(path).load()
        except (TraceError, TapeError) as error:
            assert "\n" not in str(error)
        else:
            assert all(map(np.array_equal, actual, tape))


@pytest.mark.parametrize(
    "columns",
    [
        {"time": pa.int64(), "op": pa.int8(), "id": pa.int32()},
        {"time": pa.int64(), "op": pa.int8(), "id": pa.int64(), "deadline": pa.int64()},
        {"time": pa.float64(), "op": pa.int8(), "id": pa.int32(), "deadline": pa.int64()},
        {"time": pa.int64(), "op": pa.int8(), "id": pa.int32(), "deadline": pa.int64()},  # nullable
        {"op": pa.int8(), "time": pa.int64(), "id": pa.int32(), "deadline": pa.int64()},
    ],
)
def test_foreign_parquet_files(path, written, columns):
    table = pa.table({name: pa.array([0], kind) for name, kind in columns.items()})
    pq.write_table(table, path / "shard-00000.parquet")
    refuse(
        path,
        "has the columns .*;"
        " a tape has .time int64, op int8, id int32, deadline int64., none nullable",
        load=True,
    )
