"""Requests in two rows with an id, a start and an end."""

import os
import random
import threading

import numpy as np
import pyarrow as pa
import pytest

from compare.traffic.logs.options import IngestError
from compare.traffic.logs.rows import fingerprints
from compare.traffic.tapes.tape import joined
from tests.compare import made_logs as logs
from tests.compare.made_logs import rejected, tape_rows

TWO_ROWS = {"id": "id", "event": "type", "starts": "begin", "ends": "end"}


def test_a_request_in_two_rows(requests, csv_log):
    log = csv_log(
        "ts,id,type\n"
        "1.5,a,end\n1,a,begin\n"  # in any order
        "2,b,begin\n"  # without an end
        "3,c,end\n"  # without a start
        "4,d,begin\n4,d, end \n9,d,end\n"  # with two ends
        "5,e,begin\n10,e,end\n"  # too late
        "6,a,begin\n7,a,begin\n8,a,end\n"  # the id again, and twice
        "11,f,retry\n12,,begin\nx,g,begin\n"
    )
    done = requests(log, duration=None, **TWO_ROWS, unit="ms")
    wanted = [(1000, 1500), (2000, None), (4000, 4000), (5000, None), (6000, None), (7000, 8000)]
    assert sorted(logs.rows_of(done.trace.load())) == sorted(tape_rows(wanted, 5000))
    assert (done.rows, done.unmatched, done.unreadable, done.reading.rows) == (10, 2, 2, 6)
    assert rejected(done) == [
        (5, "unmatched", "it is an end, and 'c' has no start before it", "3", "c"),
        (8, "unmatched", "it is an end, and 'd' has no start before it", "9", "d"),
        (15, "unreadable", "it has no id", "12", None),
        (16, "unreadable", "time 'x' is not epoch-s or is out of range", "x", "g"),
    ]
    source = logs.manifest(done.trace)["source"]
    assert source["columns"] == {"time": "ts", "id": "id", "event": "type"}
    assert (source["starts"], source["ends"], source["unmatched"]) == ("begin", "end", 2)
    for change, problem in {
        ("event", None): "--id needs --event, a column, and --starts",
        ("ends", "begin"): "starts and ends are both 'begin'",
        ("id", None): "needs exactly one of --duration, --end and --id",
        ("time_is", "end"): "--time-is cannot be end",
        ("event", "nix"): "has no column 'nix'",
    }.items():
        with pytest.raises(IngestError, match=problem):
            requests(log, duration=None, **TWO_ROWS | dict([change]), out="other")


def test_two_rows_are_the_same_requests_as_one(requests, tmp_path):
    rng = random.Random(3)
    rows = [(k / 7, rng.choice([None, rng.random() * 8])) for k in range(3000)]
    one_row = "".join(f"{a:.3f},{'' if b is None else format(a + b, '.3f')}\n" for a, b in rows)
    two = [f"{a:.3f},i{k},begin\n" for k, (a, _) in enumerate(rows)]
    two += [f"{a + b:.3f},i{k},end\n" for k, (a, b) in enumerate(rows) if b is not None]
    rng.shuffle(two)
    (tmp_path / "one").write_text("ts,stop\n" + one_row)
    (tmp_path / "two").mkdir()
    for number in range(2):
        lines = ["ts,id,type\n", *["0,none,end\n"] * number, *two[number::2]]
        (tmp_path / "two" / str(number)).write_text("".join(lines))
    done = requests(tmp_path / "one", duration=None, end="stop", unit="ms")
    again = requests(tmp_path / "two", duration=None, **TWO_ROWS, unit="ms", shards=3, out="again")
    tapes = [again.trace.load(shard) for shard in range(3)]
    assert sorted(logs.rows_of(joined(tapes))) == sorted(logs.rows_of(done.trace.load()))
    assert (again.unmatched, again.reading.timed_out) == (1, done.reading.timed_out)


def test_fingerprints_are_fnv_1a():
    """Of the vectors in its reference."""
    texts = pa.array([b"x", b"", b"a", b"foobar", None], pa.binary())
    wanted = [0xCBF29CE484222325, 0xAF63DC4C8601EC8C, 0x85944171F73967E8]
    assert fingerprints(texts[1:]).view(np.uint64)[:3].tolist() == wanted
    assert not len(fingerprints(pa.array([], pa.binary())))


def test_a_pipe_with_ids_is_refused(requests, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"ts,id,type\n1,a,begin\n"))
    writer.start()
    with pytest.raises(IngestError, match="pipe can be read only once, and a log with ids"):
        requests(pipe, duration=None, **TWO_ROWS)
    writer.join()
