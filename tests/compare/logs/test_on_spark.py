"""Spark and the threads of this process write the same trace, whatever is in a log."""

import gzip
import json
import random

import pyarrow.parquet as pq
import pytest

from compare.logs import blocks, job, shards
from compare.logs.ingest import IngestError, Options, ingest_requests, ingest_touches
from tests.compare import made_logs as logs
from timers import TimerError

pytestmark = pytest.mark.spark

STATUS = ("200", "504", " 5.04e2 ", "504.5", "-", "x", "")
TIMES = ("{}", "{}.123456789", "{}e0", " {} ", "-5", "", "never", "99999999999999999999", "{}.5")
DURATIONS = ("0.1", "2ms", "", "-", "-1", "soon", "1e-7", "9e99", "300us", '"0.2"')
KEYS = ("a", '"b ""c"""', "", "-", "\udcff\udcfe", "d e", '"f,g"', "é")


def hostile(rng, rows):
    """Lines of a log that is hardly in order, with rows that are bad in all ways."""
    lines = ["ts,rtt,client,id,status,stop"]
    for k in range(rows):
        time = rng.choice(TIMES).format(1000 + k // 5 + rng.randrange(20))
        fields = [time, rng.choice(DURATIONS), rng.choice(KEYS), rng.choice(["", f"i{k % 97}"])]
        fields += [rng.choice(STATUS), rng.choice(TIMES).format(1001 + k // 5 + rng.randrange(20))]
        lines.append(",".join(fields))
        if rng.random() < 0.05:
            lines.append(rng.choice(["", "  ", "x", "1,2,3,4,5,6,7", '1,"2', "\0,,,,,"]))
    return "\r\n".join(lines).encode(errors="surrogateescape")


VALUES = {"duration": "rtt", "end": "stop", "id": "client"}


@pytest.fixture
def both(spark, tmp_path, monkeypatch):
    """Ingest a log in both ways, with tiny blocks on Spark."""

    def ingest(log, ingest, block, value="duration", **settings):
        meant = {value: VALUES[value], "timeout": "3s"}
        if value == "id":
            meant |= {"event": "status", "starts": "200", "ends": "504"}
        if ingest is ingest_touches:
            meant = {"key": "client", "idle": "3s"}
        options = Options(**{"time": "ts", "unit": "us", "force": True} | settings)
        here = ingest(log, tmp_path / "here", options, **meant)
        monkeypatch.setattr(blocks, "BLOCK", block)
        monkeypatch.setattr(shards, "_PIECE", 100)
        there = ingest(log, tmp_path / "there", options, **meant, session=spark)
        monkeypatch.undo()
        assert vars(here) | {"trace": 0} == vars(there) | {"trace": 0}
        for path in here.trace.path.iterdir():
            assert path.read_bytes() == (there.trace.path / path.name).read_bytes(), path.name
        return here

    return ingest


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("ingest", [ingest_requests, ingest_touches])
@pytest.mark.parametrize(
    "settings", [{}, {"unique": "id", "in_order_within": "15s"}], ids=["", "checked"]
)
def test_hostile_rows(both, tmp_path, shards, ingest, settings):
    log = tmp_path / "log.csv"
    log.write_bytes(hostile(random.Random(shards), 3000).replace(b"\0", b"0"))
    done = both(log, ingest, 10_000, shards=shards, **settings)
    assert done.unreadable > 500
    assert (done.late > 20, done.duplicate > 20) == ((True, True) if settings else (False, False))


@pytest.mark.parametrize("ingest", [ingest_requests, ingest_touches])
@pytest.mark.parametrize(
    "settings",
    [
        {"value": "end", "shards": 2},
        {"value": "id", "shards": 2, "unique": "id", "in_order_within": "15s"},
        {"value": "id", "sample": "50%"},
        {"where": ("status >= 504", "client != a"), "sample": "50%", "unique": "id"},
        {"limit": 1000, "in_order_within": "15s"},
        {"time": "ts,status", "time_format": "%m%d %f"},
    ],
    ids=["end", "id", "id-sample", "where", "limit", "format"],
)
def test_choices_among_hostile_rows(both, tmp_path, ingest, settings):
    log = tmp_path / "log.csv"
    log.write_bytes(hostile(random.Random(7), 3000).replace(b"\0", b"0"))
    done = both(log, ingest, 10_000, **settings)
    assert done.rows > done.left_out > 100
    two_rows = settings.get("value") == "id" and ingest is ingest_requests
    assert (done.unmatched > 0) == two_rows


def test_streams_and_several_files(both, tmp_path):
    rng = random.Random(1)
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(3):
        lines = []
        for k in range(500):
            time = 1000 + 100 * (2 - number) + k / 5
            row = {"ts": time, "rtt": rng.random(), "client": f"k{k % 7}", "id": k}
            lines.append("oops" if k % 50 == 1 else json.dumps(row))
        data = "\n".join(lines).encode()
        (folder / f"{number}").write_bytes(gzip.compress(data) if number == 1 else data)
    (folder / "3").touch()
    done = both(folder, ingest_touches, 3000, shards=2)
    assert done.examples[0] == f"{folder}/2, record 2: it is not a JSON object"
    table = pq.read_table(done.trace.rejected)
    assert table.column_names == ["file", "record", "kind", "problem", "time", "key"]
    assert table["record"].to_pylist() == [*range(2, 500, 50)] * 3
    names = [str(folder / name) for name in ("1", "0", "2")]
    again = ingest_touches(
        names, tmp_path / "again", Options("ts", unit="us", shards=2), key="client", idle="3s"
    )
    assert again.trace.shards == done.trace.shards


def test_logs_without_rows(both, tmp_path):
    log = tmp_path / "log"
    log.write_text("ts,rtt,client\n")
    assert both(log, ingest_requests, 5, shards=2).rows == 0


def test_what_goes_wrong_on_spark_is_one_line(spark, tmp_path):
    log, options = tmp_path / "log.gz", Options("ts")
    data = gzip.compress(b"ts,rtt\n" + b"1.5,2\n" * 300_000)
    log.write_bytes(data[:-12])
    for session in (None, spark):
        with pytest.raises(TimerError, match=r"^\S+log.gz is damaged: its gzip data .+") as error:
            ingest_requests(
                log, tmp_path / "out", options, duration="rtt", timeout="5s", session=session
            )
        assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["log.gz"]


def test_a_large_log_is_left_to_spark(spark, tmp_path, monkeypatch):
    log = tmp_path / "log.csv"
    log.write_text("ts,rtt\n" + "1.5,2\n" * 300)
    monkeypatch.setattr(job, "MOST_ROWS", 200)
    meant = {"duration": "rtt", "timeout": "5s"}
    done = ingest_requests(log, tmp_path / "out", Options("ts"), **meant)  # in the active session
    assert done.trace.totals["starts"] == 300
    monkeypatch.setattr("compare.logs.ingest.missing_packages", lambda: "pyspark")
    with pytest.raises(IngestError, match=r"log.csv has more than .* rows, .*: run pip install"):
        ingest_requests(log, tmp_path / "other", Options("ts"), **meant)


def test_a_log_that_only_spark_can_reach(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("compare.logs.ingest.is_readable", lambda name: "://" not in name)
    logs.as_zeek(tmp_path / "log")
    logs.pack(tmp_path / "log")
    meant = {"duration": "rtt", "timeout": "5s"}
    here = ingest_requests(tmp_path / "log", tmp_path / "here", Options("ts"), **meant)
    done = ingest_requests(
        f"file://{tmp_path}/log.gz", tmp_path / "out", Options("ts"), **meant, session=spark
    )
    assert done.trace.source["log"] == "log.gz"
    assert done.trace.shards == here.trace.shards
    with pytest.raises(TimerError, match="cannot be read: .*Path does not exist: file:.*nowhere"):
        ingest_requests(f"file://{tmp_path}/nowhere", tmp_path / "no", Options("ts"), **meant)
