"""Each part is given to one task, and workers do not collect what they import."""

import gc
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.spark.failures import PipelineError
from tests.compare.conftest import NO_SPARK

TaskContext = pytest.importorskip("pyspark", reason=NO_SPARK).TaskContext
from compare.spark.tasks import SparkTasks, shares  # noqa: E402  # it imports PySpark

pytestmark = pytest.mark.spark


@given(st.integers(0, 5000), st.integers(1, 300))
def test_each_part_is_given_once_and_the_shares_grow_smaller(parts, workers):
    tasks = shares(parts, workers)
    assert [part for share in tasks for part in share] == list(range(parts))
    sizes = [len(share) for share in tasks]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1:] in ([], [1])
    # Whatever has been given out, a share is no more than half of what a worker still has to do on
    # average, or one part.
    left = parts
    for size in sizes:
        assert size == 1 or 2 * workers * size <= left
        left -= size
    assert max(sizes, default=0) <= -(-parts // (8 * workers))


def test_there_are_few_tasks_even_for_many_parts():
    sizes = [len(share) for share in shares(128, 2)]
    assert sizes == [*[8] * 13, 6, 4, 3, 2, 2, *[1] * 7]
    assert len(shares(100_000, 100)) < 20 * 100


def numbered(tasks):
    return pa.table({"task": pa.array(range(tasks), pa.int64())})


def test_tasks_are_in_the_partitions_of_their_shares(spark):
    names = ("task", "partition", "frozen")
    results = pa.schema([(name, pa.int64()) for name in names])

    def function(tasks, stopping):
        (task,) = tasks["task"].to_pylist()
        place = TaskContext.get().partitionId(), gc.get_freeze_count()
        yield pa.record_batch([[value] for value in (task, *place)], schema=results)

    table = SparkTasks(spark).map(numbered(20), function, results, "test").sort_by("task")
    tasks, partitions, frozen = (table[name].to_pylist() for name in names)
    assert list(zip(tasks, partitions, strict=True)) == [
        (task, number) for number, share in enumerate(shares(20, 2)) for task in share
    ]
    assert max(frozen) > 10_000  # from a worker's second task on


def test_a_job_has_its_description_and_a_later_one_has_none(spark):
    def plus_one(tasks, stopping):
        yield tasks.set_column(0, "task", pc.add(tasks["task"], 1))

    def newest():
        return spark.sparkContext._jsc.sc().statusStore().jobsList(None).apply(0)

    tasks = numbered(5)
    table = SparkTasks(spark).map(tasks, plus_one, tasks.schema, "plus one: 5 tasks")
    assert sorted(table["task"].to_pylist()) == [1, 2, 3, 4, 5]
    assert newest().description().get() == "plus one: 5 tasks"
    before = newest().jobId()
    spark.range(3).mapInArrow(lambda batches: batches, "id bigint").collect()
    assert newest().jobId() > before
    assert newest().description().isEmpty()


def test_a_task_that_fails_is_one_line(spark):
    def function(tasks, stopping):
        raise ValueError(f"task {tasks['task'][0]} is bad")

    with pytest.raises(PipelineError, match="^a task failed: task 0 is bad$"):
        SparkTasks(spark).map(numbered(1), function, numbered(1).schema, "test")


def test_progress_is_over_all_stages_of_the_jobs_that_run():
    """One job has ended since its number was asked for, and one stage has."""
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
    assert SparkTasks(SimpleNamespace(sparkContext=context)).tasks() == (3, 14)
