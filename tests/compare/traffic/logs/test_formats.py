"""Blocks of bytes become the records that Python's own readers find, wherever a log is cut."""

import gzip
import os
import random
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.traffic.logs.blocks import LogError, expand
from compare.traffic.logs.formats import base
from compare.traffic.logs.formats.base import Layout
from compare.traffic.logs.opening import ANY, open_log
from tests.compare import made_logs as logs
from tests.compare.traffic.logs.records import records, written
from tests.words import one_line

# ---- long lines, and many


LONGEST = 60

HEADS = {
    "csv": (b"time,duration", b"%s,1", ANY),
    "jsonl": (b'{"time":"0","duration":1}', b'{"time":"%s","duration":1}', ANY),
    "zeek": (b"#fields\ttime\tduration", b"%s\t1", ANY),
    "pattern": (b"0 1", b"%s 1", Layout(pattern=r"^(?P<time>\S+) (?P<duration>1)$")),
}
"""Format -> its first line, and one with a text in it."""


@pytest.mark.parametrize("kind", HEADS)
@given(
    st.lists(st.one_of(st.integers(1, 200), st.integers(LONGEST - 40, LONGEST + 1)), max_size=8),
    st.sampled_from([b"\n", b"\r", b"\r\n"]),
    st.booleans(),
    st.booleans(),
    st.integers(1, LONGEST),
)
def test_longer_lines_are_rejected_by_number(path, kind, lengths, end, ended, packed, block):
    head, form, layout = HEADS[kind]
    if kind == "zeek":
        end = b"\n"  # what ends a header
    lines = [head, *(form % (b"x" * length) for length in lengths)]
    data = end.join(lines) + end * ended
    path.write_bytes(gzip.compress(data) if packed else data)
    found = records(path, ["time", "duration"], layout, block, LONGEST)
    carriage_return = len(end) - 1  # is part of a line that LF ends
    numbers = range(2, len(lines) + 1)
    rows = [("0", "1")] * (kind in ("jsonl", "pattern"))
    expected = [(1, False, *row) for row in rows]
    for number, length, line in zip(numbers, lengths, lines[1:], strict=True):
        is_last = number == len(lines) and not ended
        too_long = len(line) + carriage_return * (not is_last) > LONGEST
        texts = (None, None) if too_long else ("x" * length, "1")
        expected.append((number, too_long, *texts))
    assert found == expected


@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize("most", [1, 2, 3])
def test_lines_are_read_in_parts(path, monkeypatch, kind, most):
    monkeypatch.setattr(base, "MOST_LINES", most)
    head, form, layout = HEADS[kind]
    lines = [head, *(b"" if number % 3 == 0 else form % b"x" for number in range(9))]
    path.write_bytes(b"\n".join(lines))
    found = records(path, ["time", "duration"], layout)
    numbers = [number for number, line in enumerate(lines, 1) if line and number > 1]
    if kind == "jsonl":  # records are numbered, not lines
        numbers = list(range(2, 8))
    assert [row for row in found if row[0] > 1] == [(n, False, "x", "1") for n in numbers]


def test_a_header_far_below_the_first_line_is_one(path, monkeypatch):
    monkeypatch.setattr(base, "MOST_LINES", 1)
    path.write_text("\n\n\n\na,b\n1,2\n3,4\n")
    assert records(path, ["a"]) == [(6, False, "1"), (7, False, "3")]


def test_a_header_between_parts_counts(path, monkeypatch):
    monkeypatch.setattr(base, "MOST_LINES", 2)
    path.write_text("#fields\ta\tb\n1\t2\n3\t4\n#fields\tb\ta\n5\t6\n7\t8\n9\t10\n")
    rows = [(2, "1"), (3, "3"), (5, "6"), (6, "8"), (7, "10")]
    assert records(path, ["a"]) == [(number, False, text) for number, text in rows]


def test_an_element_of_an_array_has_a_longest_length_too(path):
    path.write_text('[{"a": 1}, {"a": "' + "x" * 100 + '"}, {"a": 2}]')
    assert [row[2] for row in records(path, ["a"], block=50)] == ["1", "x" * 100, "2"]
    with one_line(LogError, "has a record of more than 60 bytes"):
        records(path, ["a"], block=50, longest=60)


# ---- Zeek, Parquet


def test_zeek_logs_behind_each_other(path):
    logs.as_zeek(path)
    wanted = [
        (k + 1, False, ts, rtt, client)
        for k, (ts, rtt, client) in zip((7, 8, 9, 18, 19, 20), logs.REQUESTS, strict=True)
    ]
    for block in (1, 10, 1 << 20):
        assert records(path, logs.COLUMNS, block=block) == wanted
    own = b"#separator \\x7c\n#unset_field|none\n#fields|a|b\nnone|2#\n#fields|b|a\n3|4|5\n6|7\n"
    for block in (30, 1 << 20):  # the second header begins a block, or is in the middle of one
        assert records(written(path, own), ("a", "b"), block=block) == [
            (4, False, None, "2#"),
            (6, True, "4", "3"),
            (7, False, "7", "6"),
        ]


def test_parquet_of_all_shapes(path):
    inner = pa.array([{"ip": "x", "deep": {"n": 1}}, None])
    table = pa.table(
        {
            "a.b": [1.5, float("nan")],
            "client": inner,
            "k": pa.array(["u", "v"]).dictionary_encode(),
            "d": pa.array([1, None], pa.decimal128(20, 3)),
        }
    )
    pq.write_table(table, path, row_group_size=1)
    names = ("a.b", "client.ip", "client.deep.n", "k", "d")
    log = open_log(str(path))
    assert log.columns == names
    assert [block.first for block in log.blocks()] == [0, 1]
    assert records(path, names) == [
        (1, False, "1.5", "x", "1", "u", "1.000"),
        (2, False, None, None, None, "v", None),
    ]


# ---- files


@pytest.mark.parametrize("kind", logs.PACKED)
@pytest.mark.parametrize("name", ["csv", "jsonl", "zeek"])
def test_compressed_files(path, kind, name):
    getattr(logs, f"as_{name}")(path)
    pack = logs.PACKED[kind]
    plain = records(path, ("ts", "client"))
    data = path.read_bytes()
    for block in (5, 1 << 20):
        whole = written(path, pack(data))
        assert records(whole, ("ts", "client"), block=block) == plain
    parts = pack(data[:50]) + pack(data[50:])
    assert records(written(path, parts), ("ts", "client")) == plain
    long = pack(b"ts,client\n" + random.Random(1).randbytes(50_000).hex().encode())
    flipped = long[:20] + bytes([long[20] ^ 0x55]) + long[21:]
    for damaged in (long[: len(long) // 2], long[:-2], flipped):
        with one_line(LogError, rf"^\S+ has damaged {kind} data: .+"):
            records(written(path, damaged), ("ts",))


def test_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    data = b"ts,client\n" + b"1,a\n" * 500_000
    writer = threading.Thread(target=lambda: pipe.write_bytes(gzip.compress(data)))
    writer.start()
    rows = records(pipe, ("client",))
    writer.join()
    assert (len(rows), rows[-1]) == (500_000, (500_001, False, "a"))


def test_files_of_directories_and_patterns(tmp_path):
    for name in ("b.log", "a.log", ".hidden", "_SUCCESS", "[odd]"):
        (tmp_path / name).touch()
    (tmp_path / "empty").mkdir()
    paths = [str(tmp_path / name) for name in ("[odd]", "a.log", "b.log")]
    assert sorted(expand([str(tmp_path)])) == paths
    assert expand([f"{tmp_path}/*.log", paths[1], paths[0], "-", "missing"]) == [
        *paths[1:],
        paths[0],
        "-",
        "missing",
    ]
    with pytest.raises(LogError, match="empty is a directory without logs"):
        expand([str(tmp_path / "empty")])
    with pytest.raises(LogError, match=r"no file matches \S+/\*\.txt"):
        expand([f"{tmp_path}/*.txt"])


@pytest.mark.parametrize("kind", ["csv", "zeek", "pattern", "jsonl"])
@pytest.mark.parametrize("block", [1, 30, 1 << 20])
def test_lines_with_a_nul_byte_are_damaged(path, kind, block):
    head, form, layout = HEADS[kind]
    lines = [head, *(form % text for text in (b"1", b"2\0", b"3", b"4", b"5"))]
    lines[4] = b"\0" * 50
    written(path, b"\n".join(lines) + b"\n")
    found = [row for row in records(path, ["time", "duration"], layout, block) if row[0] > 1]
    assert [row[0] for row in found if row[1]] == [3, 5]
    rows = [(2, False, "1", "1"), (4, False, "3", "1"), (6, False, "5", "1")]
    assert [row for row in found if not row[1]] == rows


@pytest.mark.parametrize("data", [bytes(100), b"a\0,b\n" * 9])
def test_a_file_of_nul_bytes_is_not_text(path, data):
    written(path, data)
    with one_line(LogError, "is neither text nor a Parquet file"):
        open_log(str(path))
