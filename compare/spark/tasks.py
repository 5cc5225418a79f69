"""Run numbered parts of work as tasks of Spark."""

import gc
from collections.abc import Iterable, Iterator
from functools import cache

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from compare.executors import Work, never_stopping
from compare.spark.session import cores, is_local, is_remote, plain_failures

_ON_A_CLUSTER = 64
"""The assumed number of workers of a cluster, if fewer can be seen."""


class SparkTasks:
    """An executor (`compare.executors`) that runs parts of work as tasks of Spark."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self.workers = workers_of(session)

    def run(self, parts: int, work: Work, schema: pa.Schema) -> pa.Table:
        """See `in_tasks`. Raises PipelineError for a task that has failed."""
        with plain_failures("a task failed"):
            # Not toArrow, which waits for all tasks after an interrupt, too.
            rows = in_tasks(self._session, parts, work, schema).collect()
        return pa.Table.from_pylist([row.asDict(recursive=True) for row in rows], schema)

    def tasks(self) -> tuple[int, int]:
        """The tasks of the running jobs: ended, and all of them. (0, 0) through Spark Connect."""
        if is_remote(self._session):
            return 0, 0
        tracker = self._session.sparkContext.statusTracker()
        jobs = map(tracker.getJobInfo, tracker.getActiveJobsIds())
        numbers = {number for job in jobs if job is not None for number in job.stageIds}
        stages = [info for info in map(tracker.getStageInfo, numbers) if info is not None]
        done = sum(stage.numCompletedTasks for stage in stages)
        return done, sum(stage.numTasks for stage in stages)

    def send_module(self, file: str) -> None:
        """Send a Python file to all workers."""
        if is_remote(self._session):
            self._session.addArtifacts(file, pyfile=True)
        else:
            self._session.sparkContext.addPyFile(file)


def in_tasks(session: SparkSession, parts: int, work: Work, schema: pa.Schema) -> DataFrame:
    """The rows of `work` for each part in [0, parts), of this schema.

    The rows have no order. `shares` divides the parts among the tasks. Only the numbers, `work` and
    its rows travel through Spark.
    """
    tasks = shares(parts, workers_of(session))

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.column("id").to_pylist():
                for part in tasks[task]:
                    yield work(part, never_stopping)
                    freeze_imports()

    numbers = session.range(0, len(tasks), 1, len(tasks))
    return numbers.mapInArrow(run, from_arrow_schema(schema))


def workers_of(session: SparkSession) -> int:
    """How many tasks may run at a time, rather too many than too few.

    The executors of a cluster register one by one after the start of a session, and Spark Connect
    does not say how many there are.
    """
    seen = cores(session)
    return seen if not is_remote(session) and is_local(session) else max(seen, _ON_A_CLUSTER)


def shares(parts: int, workers: int) -> list[range]:
    """The parts of each task, in the order in which Spark starts them: many first, one last.

    A task takes half of a worker's share of the remaining parts, and at most an eighth of its share
    of all parts. So there are few tasks, each of which costs Spark about 30 ms, and slow parts or
    workers that were not counted do not delay the end by much. Source: guided self-scheduling,
    Polychronopoulos & Kuck, IEEE Transactions on Computers C-36 (1987).
    """
    tasks: list[range] = []
    first = 0
    most = -(-parts // (8 * workers))
    while first < parts:
        until = first + max(min((parts - first) // (2 * workers), most), 1)
        tasks.append(range(first, until))
        first = until
    return tasks


@cache
def freeze_imports() -> None:
    """Exclude what a worker has imported from garbage collection, once.

    PySpark collects garbage after each task, and Numba's objects alone take 70 ms of a core.
    """
    gc.collect()
    gc.freeze()
