"""Idle connections of a stream: those of session_window, whatever is stopped, silent or out of
order.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from compare.pipeline.stream import (
    EXPIRED,
    LATE_EVENTS,
    METRICS,
    Seen,
    StreamError,
    Watch,
    check,
    follow,
    idle_connections,
    start,
)
from compare.spark.session import PipelineError
from timers import TimerError

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[3]
IDLE, DELAY = 10, 20
FILES = 4
END = 5_000


@pytest.fixture(autouse=True)
def few_partitions(spark):
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before)


def write(directory, files):
    """A JSON file for each list of (time, key), in this order."""
    directory.mkdir(exist_ok=True)
    for number, events in enumerate(files):
        path = directory / f"{number:03}.json"
        path.write_text("".join(json.dumps({"t": time, "k": key}) + "\n" for time, key in events))
        os.utime(path, (1_000_000 + number, 1_000_000 + number))


def random_files(seed):
    """Events out of order by less than the delay, silent at times; then one that lets all others
    expire.
    """
    rng = random.Random(seed)
    files = []
    for number in range(FILES):
        base = 1000 + number * 40
        events = [
            (base + rng.randrange(40 + DELAY - 1) + rng.choice([0, 0.5]), rng.choice("abcdefgh"))
            for _ in range(25)
        ]
        files.append([*events, (base + 40 + DELAY - 1, "clock")])
    return [*files, [(END, "end")]]


def reference(spark, directory):
    """What session_window says of the files, but for the last event, which stays."""
    events = (
        spark.read.schema("t double, k string")
        .json(str(directory))
        .selectExpr("timestamp_seconds(t) AS t", "k")
    )
    windows = events.where(F.col("k") != "end").groupBy(
        "k", F.session_window("t", f"{IDLE} seconds")
    )
    found = windows.agg(F.max("t").alias("last"), F.count(F.lit(1)).alias("n"))
    return [
        tuple(row)
        for row in found.select(
            "k", "session_window.start", "last", "session_window.end", "n"
        ).collect()
    ]


def watch(tmp_path, out="out", **settings):
    given = {
        "source": str(tmp_path / "in"),
        "time": "t",
        "key": "k",
        "idle": f"{IDLE}s",
        "delay": f"{DELAY}s",
        "shards": 3,
        "checkpoint": str(tmp_path / f"{out}.state"),
        "out": str(tmp_path / out),
        "batch_files": 1,
    }
    return Watch(**given | settings)


def written(spark, tmp_path, out="out", kind="idle"):
    rows = spark.read.parquet(str(tmp_path / out)).where(F.col("kind") == kind)
    columns = (
        ["key", "first_time", "last_time", "expired_at", "events"]
        if kind == "idle"
        else ["key", "first_time", "problem"]
    )
    return sorted((tuple(row) for row in rows.select(*columns).collect()), key=repr)


def test_the_same_as_session_window_however_often_restarted(spark, tmp_path):
    """Three runs, the second of which is stopped in the middle of its work."""
    files = random_files(1)
    write(tmp_path / "all", files)
    expected = sorted(reference(spark, tmp_path / "all"), key=repr)
    assert len(expected) > 20
    write(tmp_path / "in", files[:2])
    first, interrupted = follow(start(spark, watch(tmp_path)))
    assert 0 < len(written(spark, tmp_path)) < len(expected)
    assert first == Seen(sum(map(len, files[:2])), len(written(spark, tmp_path)), 0, 0)
    assert not interrupted
    write(tmp_path / "in", files[:4])
    query = start(spark, watch(tmp_path))
    query.awaitTermination(1)
    query.stop()
    write(tmp_path / "in", files)
    follow(start(spark, watch(tmp_path, batch_files=2)))
    assert written(spark, tmp_path) == expected


@pytest.mark.cluster
def test_nothing_is_lost_or_told_twice_when_the_machine_dies(spark, tmp_path):
    write(tmp_path / "in", random_files(3))
    settings = watch(tmp_path)
    command = [
        sys.executable,
        "-m",
        "compare.cli",
        "stream",
        settings.source,
        "--time",
        settings.time,
        "--key",
        settings.key,
        "--idle",
        settings.idle,
        "--delay",
        settings.delay,
        "--checkpoint",
        settings.checkpoint,
        "--out",
        settings.out,
        "--shards",
        str(settings.shards),
        "--batch-files",
        "1",
        "--time-format",
        settings.time_format,
        "--master",
        "local[2]",
    ]
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, stderr=subprocess.PIPE)
    try:
        # Another process's files: there is no manual clock for them. Two micro-batches are done, a
        # third is not.
        while not (Path(settings.checkpoint) / "commits" / "1").exists():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.01)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    before = written(spark, tmp_path)
    follow(start(spark, settings))
    expected = sorted(reference(spark, tmp_path / "in"), key=repr)
    assert len(before) < len(expected)
    assert written(spark, tmp_path) == expected


def test_late_and_unusable_events_are_counted_and_listed(spark, tmp_path):
    write(
        tmp_path / "in",
        [
            [(1000, "a"), (None, "x"), (5, None)],
            [(1001, "b"), (979.9, "late"), (980, "not")],
            [(END, "end")],
        ],
    )
    seen, _ = follow(start(spark, watch(tmp_path)))
    assert seen == Seen(7, 3, 1, 2)
    assert [row[0] for row in written(spark, tmp_path)] == ["a", "b", "not"]
    epoch = datetime.fromtimestamp(0, UTC).replace(tzinfo=None)
    assert written(spark, tmp_path, kind="rejected") == sorted(
        [
            ("late", epoch + timedelta(seconds=979.9), "late"),
            ("x", None, "no time"),
            (None, epoch + timedelta(seconds=5), "no key"),
        ],
        key=repr,
    )


def test_silence_stops_time_and_heartbeats_move_it(spark, tmp_path):
    write(tmp_path / "in", [[(1000, "a"), (1003, "b")]])

    def run(heartbeats, name):
        events = spark.readStream.schema("t double, k string").json(str(tmp_path / "in"))
        found = idle_connections(
            events.selectExpr("timestamp_seconds(t) AS t", "k"),
            time="t",
            key="k",
            idle="10s",
            shards=2,
            heartbeats=heartbeats,
        )
        query = (
            found.writeStream.format("memory")
            .queryName(name)
            .option("checkpointLocation", tmp_path / name)
            .start()
        )
        try:
            if heartbeats is None:
                query.processAllAvailable()
            else:  # which never end
                for _ in range(300):
                    if spark.table(name).count() == 2:
                        break
                    query.awaitTermination(0.1)
        finally:
            query.stop()
        return sorted(row["key"] for row in spark.table(name).collect())

    assert run(None, "silent") == []
    beats = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", 1)
        .option("numPartitions", 1)
    )
    beats = beats.option("startTimestamp", 1_000_000).option("advanceMillisPerBatch", 20_000).load()
    assert run(beats.select("timestamp"), "beating") == ["a", "b"]


def test_keys_keep_their_type_and_the_progress_counts(spark, tmp_path):
    write(tmp_path / "in", [[(1000, 7), (1001, -8)], [(END, 9), (2, 7)]])
    events = (
        spark.readStream.schema("t bigint, k int")
        .option("maxFilesPerTrigger", 1)
        .json(str(tmp_path / "in"))
    )
    events = events.selectExpr("timestamp_seconds(t) AS `a.time`", "k AS `the key`")
    found = idle_connections(events, time="a.time", key="the key", idle="10s")
    assert [field.simpleString() for field in found.schema] == [
        "key:int",
        "first_time:timestamp",
        "last_time:timestamp",
        "expired_at:timestamp",
        "events:bigint",
    ]
    query = found.writeStream.format("memory").queryName("typed").trigger(availableNow=True).start()
    query.awaitTermination()
    assert sorted(row["key"] for row in spark.table("typed").collect()) == [-8, 7]
    counts = [
        progress.observedMetrics[METRICS]
        for progress in query.recentProgress
        if progress.observedMetrics
    ]
    # Null where a micro-batch had nothing to count.
    assert sum(filter(None, (seen[EXPIRED] for seen in counts))) == 2
    assert sum(filter(None, (seen[LATE_EVENTS] for seen in counts))) == 1


def test_csv_and_parquet_files(spark, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text(
        "x,t,k\n1,2024-05-01T10:00:00.25Z,u\n1,noon,v\n1,2024-05-01T11:00:00Z,w\n"
    )
    seen, _ = follow(start(spark, watch(tmp_path)))
    assert seen == Seen(3, 1, 0, 1)
    assert written(spark, tmp_path)[0][1] == datetime(2024, 5, 1, 10, 0, 0, 250_000)
    # Restarted with a file whose columns are others: refused, not read by their positions.
    (tmp_path / "in" / "b.csv").write_text("x,k,t\n1,2,2024-05-01T12:00:00Z\n")
    with pytest.raises(PipelineError, match=r"b\.csv|header"):
        follow(start(spark, watch(tmp_path)))
    assert [row[0] for row in written(spark, tmp_path)] == ["u"]
    times = pa.array(map(Decimal, ("1700000000.5", "1700000100")), pa.decimal128(20, 3))
    (tmp_path / "pq").mkdir()
    pq.write_table(pa.table({"t": times, "k": ["u", "w"]}), tmp_path / "pq" / "a.parquet")
    seen, _ = follow(start(spark, watch(tmp_path, "from_pq", source=str(tmp_path / "pq"))))
    assert seen == Seen(2, 1, 0, 0)
    assert written(spark, tmp_path, "from_pq")[0][1] == datetime(2023, 11, 14, 22, 13, 20, 500_000)


@pytest.mark.parametrize("form", ["csv", "json"])
def test_other_formats_out(spark, tmp_path, form):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.tsv").write_text("t\tk\n1700000000.5\tu\nnoon\tv\n1700000100\tw\n")
    seen, _ = follow(start(spark, watch(tmp_path, out_format=form)))
    assert seen == Seen(3, 1, 0, 1)
    idle = (
        spark.read.format(form).option("header", "true").load(str(tmp_path / "out" / "kind=idle"))
    )
    [row] = [row.asDict() for row in idle.collect()]
    assert (row["key"], str(row["events"])) == ("u", "1")
    assert row["first_time"].startswith("2023-11-14T22:13:20.5")
    [left_out] = (
        spark.read.format(form)
        .option("header", "true")
        .load(str(tmp_path / "out" / "kind=rejected"))
        .collect()
    )
    assert left_out["key"] == "v"


def test_what_does_not_fit_is_one_line_and_leaves_nothing(spark, tmp_path):
    write(tmp_path / "in", [[(1000, "a")]])
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    lines = {
        ("source", str(tmp_path / "none")): "does not exist",
        ("source", str(tmp_path / "empty")): "has no file yet",
        ("idle", "30"): "not a number with a unit",
        ("delay", "0s"): "not a positive multiple",
        ("shards", 0): "shards must lie in",
        ("heartbeat", True): "needs --follow",
        ("out", str(tmp_path / "full")): "is not empty but the checkpoint is new",
        ("checkpoint", str(tmp_path / "full")): "is not empty and is not a checkpoint",
    }
    for (name, value), line in lines.items():
        with pytest.raises(TimerError, match=line) as error:
            check(watch(tmp_path, **{name: value}))
        assert "\n" not in str(error.value)
    with pytest.raises(StreamError, match="not a stream"):
        idle_connections(spark.range(1), time="id", key="id", idle="1s")
    for name in ("out", "checkpoint"):
        with pytest.raises(OSError, match="directory"):
            start(spark, watch(tmp_path, **{name: str(tmp_path / "full" / "x" / "y")}))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "full", "in"]


def test_a_checkpoint_is_bound_to_its_settings(spark, tmp_path):
    write(tmp_path / "in", [[(1000, "a"), (1001, "b")]])
    follow(start(spark, watch(tmp_path)))
    for change, says in [
        ({"shards": 4}, "shards 3, not 4"),
        ({"key": "other"}, "key k, not other"),
        ({"time": "other"}, "time t, not other"),
        ({"heartbeat": True, "follow": True}, "heartbeat False, not True"),
    ]:
        with pytest.raises(StreamError, match=f"is for {says}"):
            check(watch(tmp_path, **change))
    # And where somebody calls the function with his own checkpoint, the state itself tells.
    write(tmp_path / "in", [[(1000, "a")], [(END, "a"), (END, "b")]])
    settings = tmp_path / "out.state" / "wheelwork.json"
    settings.write_text(settings.read_text().replace('"shards": 3', '"shards": 1'))
    with pytest.raises(
        PipelineError,
        match=r"^the stream failed: the checkpoint's state has 3 shards, not 1$",
    ):
        follow(start(spark, watch(tmp_path, shards=1)))
