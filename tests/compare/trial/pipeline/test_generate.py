"""A generated trace is the same, whoever writes it, and never half of one."""

import json
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pyarrow as pa
import pytest

from compare.base.executors import even_shares
from compare.base.files import MANIFEST
from compare.spark.failures import failure
from compare.traffic.tapes import description, ids
from compare.traffic.tapes.tape import joined, validate
from compare.traffic.tapes.trace import write_shard
from compare.traffic.workloads import generator
from compare.traffic.workloads.catalogue import Plan, WorkloadError, make
from compare.trial.pipeline.generate import generate
from tests.compare.conftest import on_both
from tests.compare.small_tapes import digest
from tests.words import one_line
from timers import TimerError


def files(trace):
    """The bytes of the shards, and the manifest without the executor."""
    manifest = json.loads((trace.path / MANIFEST).read_text())
    del manifest["made_by"]
    shards = {path.name: path.read_bytes() for path in trace.path.glob("shard-*")}
    return manifest, shards, len(list(trace.path.iterdir()))


@pytest.mark.spark
def test_files_do_not_depend_on_who_writes_them(spark, tmp_path, monkeypatch):
    def written(out, tasks=1, **where):
        amount = {"operations": 20_003, "shards": 16, "seed": 5, "parameters": {"mean": 70}}
        monkeypatch.setattr(
            "compare.spark.tasks.shares", lambda parts, _: even_shares(parts, tasks)
        )
        return generate("cancel-heavy", tmp_path / out, **amount, **where)

    here = written("threads")
    for tasks in (1, 3, 16):
        assert files(written(f"by-{tasks}", tasks, session=spark)) == files(here)
    assert [shard.file for shard in here.shards] == [f"shard-{k:05d}.parquet" for k in range(16)]
    assert len({digest(here.load(shard)) for shard in range(16)}) == 16
    assert here.totals["rows"] == 20_003
    assert here.source == {
        "workload": "cancel-heavy",
        "parameters": {"rate": 10_000, "timeout": 30_000, "mean": 70, "lost": 10},
        "seed": 5,
        "shards": 16,
        "operations": 20_003,
    }


def test_a_shard_is_the_unsharded_tape_of_its_size(tmp_path):
    trace = generate("keepalive", tmp_path / "sharded", timers=1001, shards=2, seed=8)
    for shard, timers in ((0, 501), (1, 500)):
        workload = make("keepalive", timers=timers, seed=8, shard=shard)
        tape = trace.load(shard)
        assert digest(tape) == digest(workload.tape)
        assert trace.shards[shard].id_space == workload.id_space
        validate(tape, workload.id_space)
    alone = generate("keepalive", tmp_path / "alone", timers=501, seed=8)
    assert digest(alone.load()) == digest(trace.load(0))
    assert alone.source["shard"] == 0


@pytest.mark.spark
def test_workers_find_the_machine_code_that_the_driver_compiled(spark, tmp_path):
    generate("uniform", tmp_path / "trace", timers=10, session=spark)

    def look(batches):
        for _ in batches:
            pass
        for _ in Plan.of("lognormal-low", timers=10).pieces():
            pass
        # Private: only the compiled functions know what they found in the cache.
        functions = (generator.fill_rows, ids._assign, description._follow)
        yield pa.record_batch(
            {"misses": [sum(sum(f.stats.cache_misses.values()) for f in functions)]}
        )

    assert spark.range(2).mapInArrow(look, "misses bigint").agg({"misses": "sum"}).first()[0] == 0


def test_a_shard_that_is_written_twice_is_written_once(tmp_path):
    plan = Plan.of("uniform", timers=1000, shards=2)
    first = write_shard(tmp_path, 1, plan.pieces(1))
    assert first.rows == 500
    content = (tmp_path / first.file).read_bytes()
    assert write_shard(tmp_path, 1, plan.pieces(1)) == first
    assert (tmp_path / first.file).read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["shard-00001.parquet"]


def test_progress_is_in_rows_if_their_number_is_known(tmp_path, monkeypatch):
    """Ten operations in three shards, counted as they are written here, and by files that others
    have finished. How many operations ten connections have is not known before.
    """
    shown, counts = [], []

    @contextmanager
    def progress(name, tasks, rows=None, rows_done=int):
        counts.append(rows_done)
        shown.append((rows, rows_done()))
        yield
        shown.append((rows, rows_done()))

    def write(directory, number, pieces):
        tapes = list(pieces)
        if number == 0:
            shown.append(counts[-1]())
        return write_shard(directory, number, tapes)

    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0}, raising=False)
    monkeypatch.setattr("compare.trial.pipeline.generate.progress", progress)
    monkeypatch.setattr("compare.trial.pipeline.generate.write_shard", write)
    generate("uniform", tmp_path / "one", operations=10, shards=3)
    assert shown == [(10, 0), 4, (10, 10)]
    shown.clear()
    generate("keepalive", tmp_path / "two", timers=10)
    assert shown[0] == shown[-1] == (None, 0)


# ---- what goes wrong


@pytest.mark.parametrize(
    ("master", "says"),
    [
        ("sparkle", "'sparkle' is not a Spark master"),
        ("spark://127.0.0.1:1", "cannot reach the Spark master spark://127.0.0.1:1"),
    ],
)
def test_a_master_that_cannot_be_had_leaves_nothing(tmp_path, monkeypatch, master, says):
    # What is wrong with it is said before Spark starts.
    sql = pytest.importorskip("pyspark.sql", reason="the master is Spark's")
    monkeypatch.setattr(sql.SparkSession, "getActiveSession", lambda: None)
    with one_line(TimerError, says):
        generate("uniform", tmp_path / "trace", timers=100, master=master)
    assert list(tmp_path.iterdir()) == []


@on_both
def test_a_tape_that_becomes_too_long_leaves_nothing(where, tmp_path, monkeypatch):
    plan = Plan.of("keepalive", timers=1000, shards=2)
    too_long = Plan(**{**vars(plan), "max_rows": 5000})
    only = SimpleNamespace(of=lambda name, **_: too_long)
    monkeypatch.setattr("compare.trial.pipeline.generate.Plan", only)
    with pytest.raises(TimerError, match="timers of keepalive have more than 5000 operations"):
        generate("keepalive", tmp_path / "trace", **where)
    assert list(tmp_path.iterdir()) == []


def test_a_shard_that_is_being_written_is_stopped_when_another_fails(tmp_path, monkeypatch):
    begun = threading.Event()

    def pieces(plan, number=0):
        if number == 0:
            begun.wait()
            raise WorkloadError("a bad shard")
        while True:  # as one that takes hours
            begun.set()
            yield joined([])

    monkeypatch.setattr("compare.trial.pipeline.generate.make", lambda *_, **__: None)
    monkeypatch.setattr(Plan, "pieces", pieces)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1}, raising=False)
    with pytest.raises(WorkloadError, match="a bad shard"):
        generate("uniform", tmp_path / "trace", timers=100, shards=2)
    assert list(tmp_path.iterdir()) == []


def test_the_failure_of_a_worker_is_its_last_line():
    pytest.importorskip("pyspark", reason="it is Spark that fails")
    text = (
        "[X] failed: Traceback (most recent call last):\n  File\nKeyError: 5\n"
        "During handling of the above exception, another exception occurred:\n  File\n"
        "compare.traffic.workloads.WorkloadError: why\n SQLSTATE: 38000"
    )
    assert failure(ValueError(text)) == "why"
    text = "Traceback (most recent call last):\n  File\nOSError: cannot write to x"
    assert failure(ValueError(text)) == "cannot write to x"
    assert failure(ValueError("one\ntwo")) == "one"
