"""Stages on Spark: as on this machine, described, counted, and a failure is one line."""

import gc
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from compare.base.datasets import Dataset
from compare.base.stages import Here, Stage
from compare.spark.engine import OnSpark, engine
from compare.spark.failures import PipelineError
from tests.compare.conftest import NO_SPARK, on_both
from tests.words import one_line
from timers import TimerError

NUMBERS = pa.schema([("shard", pa.int32()), ("value", pa.int64())])


def plus_one(batches):
    """A row for each number."""
    for batch in batches:
        values = pc.add(batch["shard"].cast(pa.int64()), 1)
        yield pa.RecordBatch.from_arrays([batch["shard"], values], schema=NUMBERS)


PLUS_ONE = Stage("plus one", ("shard",), (), NUMBERS, plus_one)


@pytest.fixture
def running(where):
    return OnSpark(where["session"]) if where else Here()


@on_both
@pytest.mark.parametrize("number", [20, 1])
def test_each_shard_is_given_once(running, number):
    table = running.collect(running.apply(PLUS_ONE, running.numbers(number)), "test")
    assert table.schema.equals(NUMBERS)
    values = table.sort_by("shard")["value"].to_pylist()
    assert values == list(range(1, number + 1))


@on_both
def test_what_a_task_raises_is_one_line_and_runs_nothing_before(running):
    def broken(batches):
        for batch in batches:
            if 3 in batch["shard"].to_pylist():
                raise TimerError("shard 3 is broken")
            yield from plus_one([batch])

    rows = running.apply(Stage("broken", ("shard",), (), NUMBERS, broken), running.numbers(5))
    with one_line(TimerError, "shard 3 is broken$"):
        running.collect(rows, "test")


@on_both
def test_rows_are_ordered_by_key_and_order_wherever_they_are(running, tmp_path):
    """Two inputs, whose files are in no order; null comes first."""
    left = pa.table({"shard": [1, 0, 1], "at": [5, 7, 1]}, pa.schema({"shard": "i4", "at": "i8"}))
    kinds = pa.schema([("shard", pa.int32()), ("at", pa.int64()), ("name", pa.string())])
    right = pa.table({"shard": [0, 1], "at": [7, 2], "name": ["b", "a"]}, kinds)
    inputs = []
    for name, table in (("left", left), ("right", right)):
        (tmp_path / name).mkdir()
        for row in range(table.num_rows):
            pa.parquet.write_table(table.slice(row, 1), tmp_path / name / f"part-{row}.parquet")
        dataset = Dataset(str(tmp_path / name), table.schema, ("shard", "at"), TimerError)
        inputs.append(running.read(dataset, 2))
    seen = pa.schema([("shard", pa.int32()), ("rows", pa.list_(pa.string()))])

    def listed(batches):
        rows = [row for batch in batches for row in batch.to_pylist()]
        texts = [f"{row['at']} {row['name']}" for row in rows]
        yield pa.RecordBatch.from_pylist([{"shard": rows[0]["shard"], "rows": texts}], seen)

    stage = Stage("listed", ("shard",), ("at", "name"), seen, listed)
    table = running.collect(running.apply(stage, *inputs), "test").sort_by("shard")
    assert table["rows"].to_pylist() == [["7 None", "7 b"], ["1 None", "2 a", "5 None"]]


def test_it_runs_in_this_process_unless_spark_is_asked_for(monkeypatch):
    pytest.importorskip("pyspark", reason="Spark is asked for")
    asked = []

    def session(master, session):
        asked.append((master, session))
        raise TimerError("Spark")

    monkeypatch.setattr("compare.spark.engine.spark_session", session)
    for name in ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    with engine(places=["a/directory", None]) as running:
        assert isinstance(running, Here)
    for name, settings in (
        ("SPARK_REMOTE", {}),
        ("PYSPARK_GATEWAY_PORT", {}),
        ("OTHER", {"master": "local[2]"}),
        ("OTHER", {"session": "theirs"}),
        ("OTHER", {"places": ["here", "s3a://there"]}),
        ("OTHER", {"places": ["table:a.b"]}),
    ):
        with monkeypatch.context() as patch, pytest.raises(TimerError, match="Spark"):
            patch.setenv(name, "1")
            with engine(**settings):
                pass
    nothing = (None, None)
    assert asked == [nothing, nothing, ("local[2]", None), (None, "theirs"), nothing, nothing]


@pytest.mark.spark
def test_workers_do_not_collect_what_they_import(spark):
    def frozen(batches):
        for batch in plus_one(batches):
            count = pa.array([gc.get_freeze_count()] * batch.num_rows, pa.int64())
            yield batch.set_column(1, "value", count)

    running = OnSpark(spark)
    stage = Stage("frozen", ("shard",), (), NUMBERS, frozen)
    counts = running.collect(running.apply(stage, running.numbers(20)), "test")["value"]
    assert max(counts.to_pylist()) > 10_000  # from a worker's second shard on


@pytest.mark.spark
def test_a_job_has_its_description_and_a_later_one_has_none(spark):
    def newest():
        return spark.sparkContext._jsc.sc().statusStore().jobsList(None).apply(0)

    running = OnSpark(spark)
    running.collect(running.apply(PLUS_ONE, running.numbers(5)), "plus one: 5 shards")
    assert newest().description().get() == "plus one: 5 shards"
    before = newest().jobId()
    spark.range(3).mapInArrow(lambda batches: batches, "id bigint").collect()
    assert newest().jobId() > before
    assert newest().description().isEmpty()


@pytest.mark.spark
def test_an_error_that_is_not_ours_says_what_failed(spark):
    def broken(batches):
        raise ValueError("it is bad")

    running = OnSpark(spark)
    stage = Stage("broken", ("shard",), (), NUMBERS, broken)
    with pytest.raises(PipelineError, match="it is bad$"):
        running.collect(running.apply(stage, running.numbers(1)), "test")


def test_progress_is_over_all_stages_of_the_jobs_that_run():
    """One job has ended since its number was asked for, and one stage has."""
    pytest.importorskip("pyspark", reason=NO_SPARK)
    stages = {
        1: SimpleNamespace(numCompletedTasks=3, numActiveTasks=2, numTasks=10),
        2: SimpleNamespace(numCompletedTasks=0, numActiveTasks=0, numTasks=4),
    }
    tracker = SimpleNamespace(
        getActiveJobsIds=lambda: [7, 8],
        getJobInfo={7: SimpleNamespace(stageIds=[1, 2, 3])}.get,
        getStageInfo=stages.get,
    )
    context = SimpleNamespace(statusTracker=lambda: tracker)
    session: Any = SimpleNamespace(sparkContext=context)
    assert OnSpark(session).tasks() == (3, 14)
