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

from compare.base.datasets import part_name, write_part
from compare.traffic.tapes import blocks as module
from compare.traffic.tapes.blocks import BLOCKS, Shard, Tapes, TraceError, blocks_of
from compare.traffic.tapes.tape import ARM, CANCEL, REARM, START, Tape, TapeError, joined, part
from compare.traffic.tapes.trace import UnfinishedTrace, open_trace, write_trace
from tests.compare.small_tapes import tape_of
from tests.compare.traffic.tapes.test_tape import GOOD, with_row
from tests.words import one_line
from timers import LIMIT

SOURCE = {"kind": "test", "seed": 7}


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 4)  # six rows are two blocks
    return tmp_path / "a trace"


@pytest.fixture
def written(path):
    return write_trace(path, [tape_of(*GOOD), tape_of()], unit="us", source=SOURCE)


def names(directory):
    return sorted(entry.name for entry in directory.iterdir())


def change(path, **changes):
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(manifest | changes))


def data(path):
    """The directory of the blocks."""
    [found] = path.glob("run-*/blocks")
    return found


def with_blocks(path, change):
    """Replace the blocks of a trace by changed rows."""
    file = data(path) / part_name(0)
    rows = change(pq.read_table(file).to_pylist())
    write_part(file, BLOCKS, [pa.RecordBatch.from_pylist([row], BLOCKS) for row in rows])


def test_a_trace_comes_back_as_it_was_written(path, written):
    trace = open_trace(str(path))
    assert trace == written
    assert (trace.unit, trace.source, len(trace.shards)) == ("us", SOURCE, 2)
    counts = {"starts": 2, "cancels": 2, "rearms": 1, "arms": 1}
    about = {"id_space": 2, "first_time": 0, "last_time": LIMIT}
    assert trace.totals == {"shards": 2, "rows": 6, **counts, **about}
    assert trace.shards == (Shard(6, 2, 0, LIMIT, **counts), Shard())
    for shard, tape in enumerate((tape_of(*GOOD), tape_of())):
        for actual, wanted in zip(trace.load(shard), tape, strict=True):
            np.testing.assert_array_equal(actual, wanted)
            assert actual.dtype == wanted.dtype
            assert actual.flags.c_contiguous
            assert actual.flags.writeable
    assert trace.beginning(5).time.tolist() == tape_of(*GOOD[:5]).time.tolist()  # of two pieces
    assert names(path) == ["manifest.json", trace.run]
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
    counts = {"starts": 3, "cancels": 3, "rearms": 1, "arms": 4}
    about = {"id_space": 4, "first_time": 3, "last_time": 20}
    assert trace.totals == {"shards": 3, "rows": 11, **counts, **about}
    assert trace.span == 20 - 3
    assert write_trace(path, tapes[2:], unit="s", source={}, force=True).span == 0


def test_the_files_are_what_the_docs_say(path, written):
    manifest = json.loads((path / "manifest.json").read_text())
    assert (manifest["format"], manifest["version"]) == ("wheelwork-trace", 3)
    assert manifest["run"] == data(path).parent.name
    file = pq.ParquetFile(data(path) / "part-00000.parquet")
    assert file.schema_arrow.names == ["shard", "block", *Tape._fields, "end"]
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    rows = file.read(["shard", "block", "time", "end"]).to_pylist()
    places = [(0, 0, False), (0, 1, True), (1, 0, True)]
    assert [(row["shard"], row["block"], row["end"] is not None) for row in rows] == places
    assert [len(row["time"]) for row in rows] == [4, 2, 0]


def test_blocks_do_not_depend_on_the_pieces(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 1000)
    size = 2500
    tape = Tape(
        np.arange(3, 3 + size, dtype=np.int64),
        np.array([START, ARM, ARM, ARM, REARM], np.int8).repeat(size // 5),
        np.minimum(np.arange(size), 99).astype(np.int32),
        np.arange(size, dtype=np.int64) + 5,
    )
    pieces = [part(tape, begin, begin + 70) for begin in range(0, size, 70)]
    whole, many = (list(blocks_of(4, each)) for each in ([tape], [*pieces, tape_of()]))
    assert [block.to_pylist() for block in whole] == [block.to_pylist() for block in many]
    assert [len(block["time"][0]) for block in whole] == [1000, 1000, 500]
    counts = {"starts": 500, "cancels": 0, "rearms": 500, "arms": 1500}
    tapes = Tapes("x", 4)
    assert joined(list(tapes.of(many))).time.tolist() == tape.time.tolist()
    assert tapes.shard == Shard(size, 100, 3, 2 + size, **counts)


@pytest.mark.parametrize("rows", [0, 999, 1000, 1001, 2000])
def test_the_last_block_of_a_shard_has_its_end(monkeypatch, rows):
    monkeypatch.setattr(module, "BLOCK", 1000)
    blocks = list(blocks_of(0, [tape_of(*[(0, ARM, 0, 5)] * rows)]))
    assert [block["end"][0].is_valid for block in blocks] == [False] * (len(blocks) - 1) + [True]
    assert len(blocks) == max(1, -(-rows // 1000))


def test_bad_tapes_are_refused_and_leave_nothing(path):
    with pytest.raises(TapeError, match="^shard 1: row 2: time -1 is negative"):
        write_trace(path, [tape_of(*GOOD), with_row(2, time=-1)], unit="ms", source={})
    with pytest.raises(TraceError, match="at least one shard"):
        write_trace(path, [], unit="ms", source={})
    with pytest.raises(TraceError, match="unit 'h' is not ns, us, ms, s or unit"):
        write_trace(path, [tape_of(*GOOD)], unit="h", source={})
    with pytest.raises(TapeError, match="shard 0: row 5: id 7 is outside \\[0, 6\\)"):
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
    assert names(path) == ["manifest.json", replaced.run]
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
        ({"version": 4}, "has version 4; this release reads 3"),
        ({"version": 2}, "has version 2, of an older release; this release reads 3"),
        ({"unit": "h"}, "unit 'h' is not ns, us, ms, s or unit"),
        ({"source": None}, "source is missing or not an object"),
        ({"run": None}, "run is missing or not a string"),
        ({"run": "run-../elsewhere"}, "run 'run-../elsewhere' is not the name of a run"),
        ({"totals": {}}, "totals.shards is None; it must be an integer from 0"),
        ({"totals": {"shards": True}}, "totals.shards is True"),
        ({"description": None}, "description is missing or not an object"),
        ({"description": {"armed": 4}}, "description must have armed, answered, waited, delay"),
    ],
)
def test_manifests_that_are_wrong(path, written, changes, why):
    change(path, **changes)
    refuse(path, why)


def test_totals_at_odds_with_the_shards(path, written):
    change(path, totals=written.totals | {"starts": 3})
    with one_line(TraceError, "totals.starts is 3; its shards have 2"):
        assert open_trace(path).shards
    change(path, totals=written.totals | {"shards": 3})
    with one_line(TraceError, "totals.shards is 3; its shards have 2"):
        assert open_trace(path).shards
    with one_line(TraceError, "shard 2 of .* has no blocks: others are missing"):
        open_trace(path).load(2)


def without(number):
    return lambda rows: rows[:number] + rows[number + 1 :]


def ending(**changes):
    def change(rows):
        rows[1]["end"] |= changes
        return rows

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (without(0), "^shard 0 of .* lacks block 0$"),
        (without(1), "^shard 0 of .* ends after block 0: others are missing$"),
        (lambda rows: rows[:1] * 2 + rows[1:], "^shard 0 of .* has block 0 twice$"),
        (lambda rows: [*rows[:2], rows[1] | {"block": 2}], "has block 2 after its last one$"),
        (ending(rows=7), "rows is 6; its last block says 7$"),
        (ending(starts=3), "starts is 2; its last block says 3$"),
        (ending(last_time=5), "last_time is 9223372036854775807; its last block says 5$"),
        (ending(id_space=1), "id_space is 2; its last block says 1$"),
    ],
)
def test_blocks_that_are_missing_twice_or_wrong(path, written, change, why):
    with_blocks(path, change)
    refuse(path, why, load=True)


def test_shards_that_are_missing_or_twice(path, written):
    with_blocks(path, without(2))
    with one_line(TraceError, "lacks shard 1: blocks are missing, or from two runs$|totals.shards"):
        assert open_trace(path).shards
    other = data(path) / part_name(1)
    other.write_bytes((data(path) / part_name(0)).read_bytes())
    with one_line(TraceError, "has shard 0 twice: blocks are missing, or from two runs$"):
        assert open_trace(path).shards
    refuse(path, "shard 0 of .* has block 0 twice", load=True)


def test_the_order_of_the_blocks_is_found_not_assumed(path, written):
    with_blocks(path, lambda rows: rows[::-1])
    assert open_trace(path).load().time.tolist() == tape_of(*GOOD).time.tolist()
    # As from two tasks of Spark.
    rows = pq.read_table(data(path) / part_name(0))
    for number in range(3):
        pq.write_table(rows.slice(number, 1), data(path) / f"part-{9 - number}.parquet")
    (data(path) / part_name(0)).unlink()
    (data(path) / "_SUCCESS").touch()
    assert open_trace(path).load().time.tolist() == tape_of(*GOOD).time.tolist()


def test_many_shards_share_a_file(path):
    tapes = [tape_of(*[(time, START, 0, time + 5) for time in range(n)]) for n in range(300)]
    trace = write_trace(path, tapes, unit="ms", source={})
    assert names(data(path)) == ["part-00000.parquet"]
    for number in (0, 1, 150, 299):
        assert trace.load(number).time.size == number


def test_a_huge_id_takes_no_memory(path, written):
    def change(rows):
        rows[0]["id"][0] = 2**31 - 1
        return rows

    with_blocks(path, change)
    with pytest.raises(TapeError, match=r"row 0: id 2147483647 is outside \[0, 4\)"):
        open_trace(path).load()


def test_shards_that_do_not_exist(path, written):
    for shard in (2, -1):
        with pytest.raises(TraceError, match=f"has no shard {shard}; it has 2"):
            written.load(shard)
    (data(path) / part_name(0)).unlink()
    refuse(path, "shard 0 of .* has no blocks", load=True)
    data(path).rmdir()
    refuse(path, "blocks is not a directory of this machine", load=True)


def test_damaged_parquet_files(path, written):
    file = data(path) / part_name(0)
    good = file.read_bytes()
    for damaged in (b"", b"PAR1", good[:-1], good[: len(good) // 2], b"not parquet at all, really"):
        file.write_bytes(damaged)
        refuse(path, "part-00000.parquet is not a readable Parquet file", load=True)
    # Every single flipped byte is told, or does no harm.
    tape = tape_of(*GOOD)
    for place in range(0, len(good), 37):
        file.write_bytes(good[:place] + bytes([good[place] ^ 0x55]) + good[place + 1 :])
        try:
            actual = open_trace(path).load()
        except (TraceError, TapeError) as error:
            assert "\n" not in str(error)
        else:
            assert all(map(np.array_equal, actual, tape))


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.drop(["deadline"]),
        lambda table: table.set_column(4, "id", table["id"].cast(pa.list_(pa.int64()))),
        lambda table: table.select(["block", "shard", *table.column_names[2:]]),
    ],
)
def test_foreign_parquet_files(path, written, change):
    file = data(path) / part_name(0)
    pq.write_table(change(pq.read_table(file)), file)
    refuse(
        path, r"part-00000.parquet has the columns \(.*\); it must have \(shard int32", load=True
    )


def test_a_trace_in_a_directory_that_exists(path):
    """As of a recording: the description comes last, and completes it."""
    path.mkdir()
    unfinished = UnfinishedTrace(path, "us", {"kind": "test"})
    unfinished.write(0, blocks_of(0, [tape_of(*GOOD)]))
    refuse(path, "is not a trace: it has no manifest.json")
    unfinished.finish(path)
    assert open_trace(path).load().time.size == 6
