"""Logs and traces that cannot be read or written are one line."""

import gzip
import re
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compare.traffic.logs import blocks
from compare.traffic.logs.blocks import LogError, file_blocks, load, open_source
from compare.traffic.logs.formats import FORMATS
from compare.traffic.logs.options import IngestError
from compare.traffic.tapes.trace import TraceError, open_trace
from tests.compare import made_logs as logs
from tests.words import one_line
from timers import TimerError


def test_a_log_that_is_cut_off_while_it_is_read_is_an_error(csv_log):
    log = csv_log("ts,rtt\n1,0.5\n2,0.5\n")
    source = open_source(str(log))
    (block,) = file_blocks(source)
    log.write_text("ts,rtt\n1,0.5\n")
    with pytest.raises(LogError, match=r"log.csv became shorter while it was read"):
        load(source, block)


@pytest.mark.parametrize("uri", ["s3://bucket/log.csv", "gs://bucket/log.csv?anonymous=true"])
def test_a_store_that_cannot_be_reached_is_one_line(requests, monkeypatch, uri):
    asked = []

    def unreachable(name):
        asked.append(name)
        raise OSError("When resolving region for bucket 'bucket': no network")

    monkeypatch.setattr(blocks, "FileSystem", SimpleNamespace(from_uri=unreachable))
    monkeypatch.setattr("compare.spark.engine.spark_session", None)  # is not started
    with one_line(LogError, f"cannot read {re.escape(uri)}: When resolving region"):
        requests(uri)
    limit = "&retry_limit_seconds=5" * uri.startswith("gs")
    assert asked == [uri + limit]


@pytest.fixture
def good(tmp_path):
    logs.as_csv(tmp_path / "good.csv")
    return tmp_path / "good.csv"


WORDS = [f"word{k}" for k in range(3000)]

REFUSED = {
    "missing": (None, "does not exist"),
    "empty": (b"", "is empty"),
    "blank": (b"\n\n  \n", "is empty"),
    "empty.gz": (gzip.compress(b""), "is empty"),
    "zeros": (bytes(100), "is neither text nor a Parquet file"),
    "zip": (b"PK\x03\x04junk", "is compressed with zip; a log is plain or compressed with gzip,"),
    "cut.parquet": (b"PAR1 and then nothing", "is not a readable Parquet file"),
    "utf-16": (
        gzip.compress("ts,rtt\n1,1\n".encode("utf-16")),
        "is compressed UTF-16; convert it to UTF-8, for example with",
    ),
    "prose": (
        f"no columns \x07{'x' * 200}\nat all\n".encode(),
        f"is in no known format ({', '.join(FORMATS)}); its first line is 'no columns"
        f" ?{'x' * 68}'; give `wheelwork ingest` a --delimiter if a character separates its fields",
    ),
    "commas": (", ".join(WORDS).encode(), f"it has {', '.join(WORDS[:20])} and 2,980 more"),
    "bare": (
        b"1722470400,0.5\n",
        "it has 1722470400, 0.5; give `wheelwork ingest` the --columns if its first line",
    ),
    "date": (
        b"ts,rtt\n01.02.2024 10:00,1\n",
        "'01.02.2024 10:00' in column 'ts' is not a time in a known format (epoch-s, epoch-ms,"
        " epoch-us, epoch-ns, iso, access); give `wheelwork ingest` a --time-format, such as",
    ),
    "unfit": (
        b"ts,rtt\n1\n2\n",
        "its first line is 'ts,rtt', and 0 of 2 lines below it have as many commas; give",
    ),
}
"""The contents of a file that is not a log, and the message, with the option that helps."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_told_in_one_line(requests, tmp_path, name):
    data, problem = REFUSED[name]
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with one_line(TimerError, re.escape(problem)):
        requests(tmp_path / name)
    assert not list(tmp_path.glob("*trace*"))


def test_columns_and_choices_that_do_not_exist(requests, touches, good):
    with pytest.raises(
        IngestError, match=r"good.csv has no column 'time'; it has ts, rtt, client$"
    ):
        requests(good, time="time")
    with pytest.raises(IngestError, match="no column 'x'"):
        touches(good, key="x")
    for settings in (
        {"unit": "h"},
        {"format": "xml"},
        {"time_format": "unix"},
        {"shards": 0},
        {"time_is": "middle"},
    ):
        with pytest.raises(IngestError, match=str(*settings.values())):
            requests(good, **settings)
    for timeout in ("5", "0s", "-5s", "1.5us", "five", "1ns"):
        with pytest.raises(TimerError, match=timeout):
            requests(good, timeout=timeout)
    pq.write_table(
        pa.table({"ts": pa.array([1], pa.timestamp("us")), "rtt": [1.0]}), good.with_name("log")
    )
    with pytest.raises(IngestError, match="holds timestamps, so its time format cannot be iso"):
        requests(good.with_name("log"), time_format="iso")


def test_a_trace_is_replaced_by_force_if_the_log_can_be_read(requests, good, tmp_path):
    requests(good)
    with pytest.raises(TraceError, match=r"exists; .*--force"):
        requests(good)
    first = open_trace(tmp_path / "trace").totals
    with pytest.raises(IngestError):
        requests(good, force=True, time="time")
    assert open_trace(tmp_path / "trace").totals == first
    assert requests(good, force=True, timeout="1s").trace.totals != first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.csv", "trace"]


def test_a_disk_that_is_full_in_the_end(requests, good, tmp_path, monkeypatch):
    def full(path, schema, batches):
        list(batches)
        raise OSError(28, "x")

    monkeypatch.setattr("compare.traffic.tapes.trace.write_part", full)
    with pytest.raises(TimerError, match=r"^cannot write to \S+: No space left on device$"):
        requests(good)
    assert [path.name for path in tmp_path.iterdir()] == ["good.csv"]


@pytest.mark.parametrize("limit", ["job.ROWS_IN_MEMORY", "requests._PENDING"])
def test_a_disk_without_room_to_sort_is_one_line(requests, csv_log, tmp_path, monkeypatch, limit):
    """Rows in the main thread, pending timers in that of a shard."""
    monkeypatch.setattr("compare.traffic.logs.requests._GATHER", 1)
    monkeypatch.setattr(f"compare.traffic.logs.{limit}", 1)

    def full(directory):
        assert str(directory).startswith(str(tmp_path))  # beside the trace, not in /tmp
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("compare.traffic.logs.sorting.TemporaryFile", lambda dir: full(dir))
    log = csv_log("ts,rtt\n1,0.5\n2,0.5\n")
    with pytest.raises(TimerError, match=r"^cannot write to \S+: No space left on device$"):
        requests(log)
    assert list(tmp_path.iterdir()) == [log]
