"""Each part is given to one task, and workers do not collect what they import."""

import gc
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.spark.session import PipelineError
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


def test_spark_does_each_part_once(spark):
    def work(part, stopping):
        assert not stopping()
        return part, TaskContext.get().partitionId(), gc.get_freeze_count()

    parts, tasks, frozen = zip(*SparkTasks(spark).run(20, work), strict=True)
    expected = [(part, task) for task, share in enumerate(shares(20, 2)) for part in share]
    assert list(zip(parts, tasks, strict=True)) == expected
    assert max(frozen) > 10_000  # from a worker's second part on


def test_a_job_has_its_description_and_a_later_one_has_none(spark):
    def plus_one(tasks, stopping):
        yield tasks.set_column(0, "x", pc.add(tasks["x"], 1))

    def newest():
        return spark.sparkContext._jsc.sc().statusStore().jobsList(None).apply(0)

    tasks = pa.table({"x": pa.array(range(5), pa.int64())})
    table = SparkTasks(spark).map(tasks, plus_one, tasks.schema, "plus one: 5 tasks")
    assert sorted(table["x"].to_pylist()) == [1, 2, 3, 4, 5]
    assert newest().description().get() == "plus one: 5 tasks"
    before = newest().jobId()
    spark.range(3).mapInArrow(lambda batches: batches, "id bigint").collect()
    assert newest().jobId() > before
    assert newest().description().isEmpty()


def test_a_task_that_fails_is_one_line(spark):
    def work(part, stopping):
        raise ValueError(f"part {part} is bad")

    with pytest.raises(PipelineError, match="^a task failed: part 0 is bad$"):
        SparkTasks(spark).run(1, work)


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
