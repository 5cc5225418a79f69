"""DataFrames of Spark, lakes of Parquet files, and files that only Spark reads, as logs."""

import datetime as dt
import gzip
import lzma
import random
import subprocess
import sys
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from compare.spark.session import sql_settings
from compare.traffic.logs.blocks import is_readable
from compare.traffic.logs.ingest import ingest_requests, ingest_touches
from compare.traffic.tapes.blocks import Tapes
from compare.traffic.tapes.tape import joined
from tests.compare.daemons import ROOT, TIME_LIMIT
from tests.compare.traffic.logs.hostile import files
from tests.words import one_line
from timers import TimerError

pytestmark = pytest.mark.spark

REQUESTS = {"time": "t", "duration": "d", "timeout": "5s", "unit": "us", "shards": 3}
TOUCHES = {"time": "t", "key": "client.ip", "idle": "30s", "unit": "ms", "shards": 2}


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """100 small files in partitions. One client has 60 % of the rows, and many times are equal."""
    root, rng = tmp_path_factory.mktemp("lake"), random.Random(7)
    for number in range(100):
        day, hour, part = number // 25 + 1, number // 5 % 5, number % 5
        begin = dt.datetime(2026, 11, day, hour, tzinfo=dt.UTC)
        times = [begin + dt.timedelta(seconds=rng.randrange(900)) for _ in range(20)]
        lengths = [rng.choice([None, rng.randrange(9000)]) for _ in times]
        clients = ["a" if rng.random() < 0.6 else f"k{rng.randrange(9)}" for _ in times]
        table = pa.table(
            {
                "t": pa.array(times, pa.timestamp("us", "Europe/Berlin")),
                "t_ntz": pa.array(
                    [time.replace(tzinfo=None) for time in times], pa.timestamp("ms")
                ),
                "t_ns": pa.array(times, pa.timestamp("ns", "UTC")),
                "d": pa.array([n and Decimal(n) / 1000 for n in lengths], pa.decimal128(9, 3)),
                "took": pa.array(
                    [n and dt.timedelta(milliseconds=n) for n in lengths], pa.duration("ms")
                ),
                "client": [{"ip": client} for client in clients],
            }
        )
        directory = root / f"dt=2026-11-{day:02}" / f"hour={hour:02}"
        directory.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, directory / f"part-{part}.parquet")
    return root


@pytest.fixture
def both(spark, tmp_path):
    """Ingest a log here and on Spark; return the result."""

    def ingest(log, far=None, **meant):
        ingest = ingest_touches if "key" in meant else ingest_requests
        here = ingest(log, tmp_path / "here", force=True, **meant)
        there = ingest(far or log, tmp_path / "there", force=True, session=spark, **meant)
        assert vars(here) | {"trace": 0} == vars(there) | {"trace": 0}
        assert files(here.trace.path)[1:] == files(there.trace.path)[1:]
        return here

    return ingest


@pytest.mark.parametrize(
    "meant",
    [
        REQUESTS,
        REQUESTS | {"time": "t_ntz", "where": ("dt = 2026-11-02", "hour = 03")},
        REQUESTS | {"time": "t_ns", "duration": "took"},
        TOUCHES,
    ],
)
def test_a_lake_with_partitions(both, lake, meant):
    done = both(lake, **meant)
    assert done.rows == (100 if "where" in meant else 2000)
    assert not done.unreadable
    assert both(f"{lake}/**/*.parquet", **meant).trace.totals == done.trace.totals


def tapes_of(blocks, shards):
    """The tapes of a DataFrame of blocks."""
    table = blocks.orderBy("shard", "block").toArrow()
    parts = (table.filter(pc.equal(table["shard"], shard)).to_batches() for shard in range(shards))
    return [joined(list(Tapes("a DataFrame", k).of(part))) for k, part in enumerate(parts)]


@pytest.mark.parametrize("meant", [REQUESTS, TOUCHES])
def test_a_dataframe_becomes_blocks_when_spark_needs_them(spark, lake, tmp_path, meant):
    from pyspark.sql import Observation

    ingest = ingest_touches if "key" in meant else ingest_requests
    [name, *_] = sorted(str(path) for path in lake.rglob("*.parquet"))
    schema = "t timestamp, d decimal(9,3), client struct<ip:string>"
    frame = spark.read.schema(schema).parquet(name)
    tracker, observation = spark.sparkContext.statusTracker(), Observation()
    before = set(tracker.getJobIdsForGroup())
    blocks = ingest(frame, observation=observation, **meant)
    assert set(tracker.getJobIdsForGroup()) == before
    here = ingest(name, tmp_path / "here", **meant)
    shards = range(meant["shards"])
    wanted = [[column.tolist() for column in here.trace.load(shard)] for shard in shards]
    assert [[c.tolist() for c in tape] for tape in tapes_of(blocks, len(shards))] == wanted
    assert observation.get["rows"] == here.rows == 20
    there = ingest(frame, tmp_path / "there", **meant)
    assert there.trace.shards == here.trace.shards
    far = ingest(frame, f"file://{tmp_path}/far", **meant)
    assert far.trace.totals == here.trace.totals


def test_times_and_conditions_of_a_dataframe_as_texts(spark, tmp_path):
    rows = [(f"2026-11-28T00:00:{k % 60:02}Z", k / 10, f"k{k % 3}") for k in range(200)]
    rows += [("never", 1.0, "k1")]
    frame = spark.createDataFrame(rows, "`a.time` string, d double, k string").coalesce(1)
    meant = {"time": "a.time", "duration": "d", "timeout": "5s", "where": ("k = k1",)}
    done = ingest_requests(frame, tmp_path / "out", **meant)
    assert (done.rows, done.unreadable, done.reading.time_format) == (68, 1, "iso")
    assert done.examples == ("row 201: time 'never' is not iso or is out of range",)
    # A plan reads no rows: it must be told.
    blocks = ingest_requests(frame, **meant, time_format="iso")
    assert blocks.selectExpr("sum(size(time))").collect()[0][0] == done.trace.totals["rows"]
    with pytest.raises(Exception, match="a row of DataFrame cannot be used: time 'never' is not"):
        ingest_requests(frame, **meant, time_format="iso", strict=True).collect()


BAD = {
    "no column 'x'; it has t, s, d, r.a, l": {"time": "x"},
    "column 'l' of type array<int> cannot be read as a key": {"key": "l"},
    "column 'd' of type date32.* cannot be read as a time": {"time": "d", "time_format": "iso"},
    "its time format must be given; a plan reads no rows": {"time": "s"},
    "holds timestamps, so its time format cannot be iso": {"time_format": "iso"},
    "rows in no order, so its times must have years": {"time": "s", "time_format": "%b %d"},
    "has columns of its own, so format": {"format": "csv"},
}


@pytest.mark.parametrize("problem", BAD)
def test_a_dataframe_that_cannot_be_read(spark, problem):
    columns = "timestamp '2026-11-28' t, 'x' s, date '2026-11-28' d, struct('y' AS a) r, array(1) l"
    frame = spark.sql(f"SELECT {columns}")
    with one_line(TimerError, problem):
        ingest_touches(frame, **{"time": "t", "key": "r.a", "idle": "5s"} | BAD[problem])


def test_places_that_cannot_be_read(spark, tmp_path):
    meant = {"time": "t", "key": "k", "idle": "5s", "session": spark}
    for log, problem in {
        "table:nothing": "cannot read table:nothing: .*cannot be found",
        "s3a://bucket/x": "s3a://bucket/x cannot be read: .*add the connector",
        "table:v": "limit is of a log that this machine reads",
    }.items():
        limit = {"limit": 1} if "limit" in problem else {}
        with one_line(TimerError, problem):
            ingest_touches(log, tmp_path / "out", **meant, **limit)
    with one_line(TimerError, "^out, the place of the trace, is missing"):
        ingest_touches(tmp_path, **meant)
    assert list(tmp_path.iterdir()) == []


def test_a_table_of_a_catalog(spark, lake, tmp_path):
    name = next(map(str, lake.rglob("*.parquet")))
    spark.read.schema("t timestamp, d decimal(9,3)").parquet(name).createOrReplaceTempView("v")
    done = ingest_requests("table:v", tmp_path / "out", session=spark, **REQUESTS)
    assert done.trace.totals == ingest_requests(name, tmp_path / "here", **REQUESTS).trace.totals
    assert done.trace.source["format"] == "table"


def test_what_only_spark_reads():
    """Directories and patterns at URIs, but not those of this machine."""
    here = ("/a/*.csv", "file:///a/*.csv", "file:///a/", "a/")
    assert all(map(is_readable, (*here, "s3://b/a.csv", "gs://b/a?anonymous=true")))
    assert not any(map(is_readable, ("s3://b/*.csv", "s3://b/a/", "s3://b/a?.csv", "nosuch://a")))


CSV = {"time": "ts", "duration": "rtt", "timeout": "3s", "unit": "us", "shards": 2}


@pytest.fixture
def far(both, monkeypatch, tmp_path):
    """Ingest files here, and as if only Spark could reach them."""
    monkeypatch.setattr("compare.traffic.logs.ingest.is_readable", lambda name: "://" not in name)
    monkeypatch.setattr("compare.traffic.logs.spark_rows.WHOLE", 0)  # splits, as of large files

    def ingest(pattern, **meant):
        return both(f"{tmp_path}/{pattern}", f"file://{tmp_path}/{pattern}", **meant)

    return ingest


def csv_lines(begin):
    rows = [f"{begin + k / 5:.1f},{k * 37 % 40 / 10}" for k in range(200)]
    return "\n".join(["ts,rtt", *rows, "x,y", ""])


def test_files_of_one_name_in_two_directories(far, tmp_path):
    for number in range(6):
        directory = tmp_path / "logs" / "ab"[number // 3]
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"part-{number % 3}.csv").write_text(csv_lines(1000 + 100 * number))
    done = far("logs/*/*.csv", **CSV)
    assert (done.rows, done.unreadable) == (6 * 201, 6)
    assert far("logs/**/*.csv", **CSV).rows == done.rows


PACKED = {
    "log.csv.gz": gzip.compress,
    "log.csv.xz": lzma.compress,
    "utf16.csv": lambda data: data.decode().encode("utf-16"),
    "empty/b.csv": bytes,
}


@pytest.mark.parametrize("name", PACKED)
def test_files_that_only_spark_reads(far, tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(PACKED[name](csv_lines(1000).encode()))
    (path.parent / "a.csv").touch()
    assert far("empty" if "/" in name else name, **CSV).unreadable == 1


def test_lines_without_a_year_in_files_that_only_spark_reads(spark, far, tmp_path):
    for number in range(2):
        december = [f"Dec 31 2{number}:{k % 60:02}:00 a x\n" for k in range(60)]
        january = [f"Jan  1 0{number}:{k % 60:02}:00 b x\n" for k in range(60)]
        (tmp_path / f"{number}.log").write_text("".join([*december, *january]))
    meant = {"time": "time", "key": "host", "idle": "5s", "unit": "s"}
    with sql_settings(spark, {"spark.sql.files.maxPartitionBytes": "500"}):
        assert far("*.log", **meant, year=2019).rows == 240


def test_files_that_only_spark_reads_are_alike(far, tmp_path):
    for name, text in {"1": "ts,rtt\n1,2\n", "2": "time,ts,rtt\n1,2,3\n"}.items():
        (tmp_path / f"{name}.csv").write_text(text)
    with one_line(TimerError, r"^\S+2.csv is csv with the columns time, ts, rtt, and \S+1.csv is"):
        far("*.csv", **CSV)
    with one_line(TimerError, r"^no file matches .*nothing"):
        far("nothing*", **CSV)


THROUGH_CONNECT = """
import sys
from compare import ingest_touches, spark_session
with spark_session(sys.argv[1]) as spark:
    schema = "t timestamp, client struct<ip:string>"
    frame = spark.read.schema(schema).parquet(sys.argv[2])
    meant = {"time": "t", "key": "client.ip", "idle": "30s", "shards": 2}
    blocks = ingest_touches(frame, **meant)
    done = ingest_touches(frame, sys.argv[3], **meant)
    assert blocks.selectExpr("sum(size(time))").collect()[0][0] == done.trace.totals["rows"]
    lake = ingest_touches(sys.argv[4], sys.argv[3], force=True, session=spark, **meant)
    print(done.rows, lake.rows)
"""


@pytest.mark.cluster
def test_dataframes_of_spark_connect(daemons, lake, tmp_path):
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: pip install 'pyspark[connect]'")
    name = next(map(str, lake.rglob("*.parquet")))
    command = [sys.executable, "-c", THROUGH_CONNECT, daemons.connect_server(), name]
    done = subprocess.run(
        [*command, str(tmp_path / "out"), str(lake)],
        timeout=TIME_LIMIT,
        check=False,
        capture_output=True,
        text=True,
        env=daemons.environment | {"PYTHONPATH": str(ROOT)},
    )
    assert done.stdout == "20 2000\n", done.stderr
