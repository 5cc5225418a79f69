"""Rows that are left out, and those that cannot be read."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from compare.traffic.logs import blocks
from compare.traffic.logs.options import IngestError, LogOptions
from tests.compare import made_logs as logs
from tests.compare.made_logs import rejected
from tests.words import one_line


def test_which_rows_are_used(touches, requests, csv_log):
    log = csv_log(
        "ts,rtt,client,status\n1,0.1,a,200\n2,0.1,b,504\n3,x,c,504\nnever,x,d,200\n4,1,5,0.1,x\n"
        "5,9,a,504.0\n6,9,b,-\n"
    )
    done = requests(log, where=("status >= 504", "client != d"), unit="s")
    assert done.trace.load().time.tolist() == [2, 2, 5]
    assert [example[:7] for example in done.examples] == ["line 4:", "line 6:"]
    source = logs.manifest(done.trace)["source"]
    assert source["where"] == ["status >= 504", "client != d"]
    assert source["columns"] == {"time": "ts", "duration": "rtt"}
    done = touches(log, limit=4, out="limit", unit="s")
    assert done.trace.load().time.tolist() == [1, 2, 3]  # the header is a line
    assert (done.rows, done.unreadable) == (3, 0)
    assert logs.manifest(done.trace)["source"]["limit"] == 4
    with pytest.raises(IngestError, match=r"log.csv has no row that can be read with status = 6$"):
        touches(log, where=("status = 6",), out="other")
    with pytest.raises(IngestError, match="has no column 'nix'"):
        touches(log, where=("nix = 1",), out="other")
    for limit in (0, 10_000_001):
        with pytest.raises(IngestError, match=f"limit .*{limit}"):
            touches(log, limit=limit, out="other")


@pytest.mark.parametrize("size", [0, blocks.BLOCK - 1, 1 << 30, True])
def test_the_longest_line_is_at_least_a_block(size):
    with one_line(IngestError, "longest line must"):
        LogOptions("ts", longest_line=size)


HURTING = {
    "a line": lambda: [b"x" * 10**6] * 100,
    "commas": lambda: [b"," * 10**6] * 300,
    "blank lines": lambda: [b"\n" * 10**6] * 8,
}


@pytest.mark.parametrize("data", HURTING)
def test_memory_does_not_grow_with_a_line(tmp_path, data):
    """That of a process of its own, with a packed log."""
    log = tmp_path / "log.csv.gz"
    with gzip.open(log, "wb", 1) as file:
        file.writelines([b"ts,rtt\n1,1\n", *HURTING[data](), b"\n2,1\n"])
    program = f"""
import resource
from compare.traffic.logs.ingest import ingest_requests
from compare.traffic.logs.options import LogOptions
log, out, options = {str(log)!r}, {str(tmp_path / "t")!r}, LogOptions("ts")
done = ingest_requests(log, out, options, duration="rtt", timeout="5s")
print(done.rows, done.unreadable, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    rows, unreadable, kilobytes = map(int, done.stdout.split())
    assert (rows, unreadable) == ((2, 0) if data == "blank lines" else (3, 1))
    assert kilobytes < 1 << 20


@pytest.mark.parametrize("block", [8, 1 << 22])
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_a_limit_counts_all_lines_of_all_blocks(touches, csv_log, monkeypatch, block, limit):
    log = csv_log("ts,client\n2,a\n\n4,a\nnever,a\n6,a\n7,a\n8,a\n")  # the number of each line
    monkeypatch.setattr(blocks, "BLOCK", block)
    done = touches(log, limit=limit, unit="s")
    assert done.trace.load().time.tolist() == [line for line in (2, 4, 6, 7, 8) if line <= limit]
    assert done.unreadable == (limit >= 5)


def test_unreadable_rows_are_told_and_strict_refuses_them(requests, tmp_path, csv_log):
    log = csv_log(
        "ts,rtt\n" + "1.5,0.1\n" + "\x07bad time that goes on and on and on and on and on,1\n" * 7
    )
    done = requests(log)
    assert (done.rows, done.unreadable, len(done.examples)) == (8, 7, 5)
    assert (
        done.examples[0] == "line 3: time '?bad time that goes on and on and on and'"
        " is not epoch-s or is out of range"
    )
    source = logs.manifest(done.trace)["source"]
    assert (source["rows"], source["unreadable"], source["examples"]) == (8, 7, list(done.examples))
    with pytest.raises(
        IngestError, match="7 of the 8 rows of .*log.csv cannot be read; line 3: time"
    ):
        requests(log, strict=True, out="strict")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.csv", "trace"]


def test_every_row_that_is_left_out_is_kept_in_a_side_table(requests, touches, csv_log):
    log = csv_log("ts,rtt,client\n1,0.5,a\nnever,1,b\n2,soon,\n3,x,y,z\n\n4,0.5,-\n")
    done = requests(log)
    assert (done.rows, done.unreadable, done.unmatched) == (5, 3, 0)
    assert pq.read_table(done.trace.rejected).column_names == [
        "line",
        "kind",
        "problem",
        "time",
        "duration",
    ]
    assert rejected(done) == [
        (3, "unreadable", "time 'never' is not epoch-s or is out of range", "never", "1"),
        (4, "unreadable", "duration 'soon' is not a number in range", "2", "soon"),
        (5, "unreadable", "it does not have the 3 fields of the header", "3", "x"),
    ]
    again = touches(log, out="touches")
    assert [row[0] for row in rejected(again)] == [3, 4, 5, 7]
    log.write_text("ts,rtt,client\n1,0.5,a\n")
    assert requests(log, force=True).trace.rejected is None


@pytest.mark.parametrize("block", [8, 1 << 22])
def test_rejected_rows_have_the_line_in_their_own_file(touches, tmp_path, monkeypatch, block):
    monkeypatch.setattr(blocks, "BLOCK", block)
    # The table is written in several steps.
    monkeypatch.setattr("compare.base.datasets._ROWS_OF_A_GROUP", 2)
    names = [str(tmp_path / name) for name in "ab"]
    for name, bad in zip(names, ((3, 4, 9), (2, 8)), strict=True):
        lines = ["ts,client", *("x,a" if line in bad else f"{line},a" for line in range(2, 11))]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    done = touches(names)
    places = [(names[0], 3), (names[0], 4), (names[0], 9), (names[1], 2), (names[1], 8)]
    assert [row[:2] for row in rejected(done)] == places
    assert [example.partition(":")[0] for example in done.examples] == [
        f"{name}, line {line}" for name, line in places
    ]
