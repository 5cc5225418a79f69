"""An executor that applies a function to tasks with `mapInArrow`."""

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from compare.base.executors import Function, Stopping, never_stopping
from compare.base.versions import versions
from compare.spark.engine import cores, engine, is_remote
from compare.spark.failures import plain_failures

PARTITION = "partition"


class SparkTasks:
    """An executor (`compare.base.executors`) on Spark."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    @property
    def workers(self) -> int:
        """See `cores`."""
        return cores(self._session)

    @property
    def made_by(self) -> Mapping[str, Any]:
        """See `Executor.made_by`."""
        about = engine(self._session)
        return {
            "executor": "spark",
            "master": about.pop("master"),
            "versions": versions() | about,
        }

    def map(
        self, tasks: pa.Table, function: Function, schema: pa.Schema, description: str
    ) -> pa.Table:
        """See `Executor.map`. Raises PipelineError if a task fails."""
        if not tasks.num_rows:
            return schema.empty_table()
        with plain_failures("a task failed"):
            return self._collected(self._rows(tasks, function, schema), schema, description)

    def shuffle(
        self,
        parts: int,
        read: Callable[[int], Iterator[pa.RecordBatch]],
        schema: pa.Schema,
        groups: int,
        order: Sequence[str],
        write: Callable[[int, Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
        out: pa.Schema,
        description: str,
    ) -> pa.Table:
        """Read parts as rows, and write those of each group in an order.

        The first column of the order is the number of the group. `write` takes the number of a
        group and its rows; it is not called for a group without rows.
        """

        def read_parts(tasks: pa.RecordBatch, _: Stopping) -> Iterator[pa.RecordBatch]:
            for part in tasks["part"].to_pylist():
                yield from read(part)

        def write_group(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for first in batches:
                yield from write(first[order[0]][0].as_py(), chain([first], batches))

        numbers = pa.table({"part": pa.array(range(parts), pa.int64())})
        rows = self._rows(numbers, read_parts, schema)
        # One partition for each group.
        ordered = rows.repartitionById(groups, order[0]).sortWithinPartitions(*order)
        written = ordered.mapInArrow(write_group, from_arrow_schema(out))
        return self._collected(written, out, description)

    def _rows(self, tasks: pa.Table, function: Function, schema: pa.Schema) -> DataFrame:
        """The results of all tasks; `shares` divides the tasks into partitions."""

        def apply(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for task in range(batch.num_rows):
                    one = batch.slice(task, 1).drop_columns([PARTITION])
                    yield from function(one, never_stopping)
                    freeze_imports()

        partitions = shares(tasks.num_rows, self.workers)
        numbers = [number for number, share in enumerate(partitions) for _ in share]
        placed = tasks.append_column(PARTITION, pa.array(numbers, pa.int32()))
        rows = self._session.createDataFrame(placed)
        rows = rows.repartitionById(max(len(partitions), 1), PARTITION)
        return rows.mapInArrow(apply, from_arrow_schema(schema))

    def _collected(self, frame: DataFrame, schema: pa.Schema, description: str) -> pa.Table:
        with self.described(description):
            # Not toArrow, which waits for all tasks even after an interrupt.
            rows = [row.asDict(recursive=True) for row in frame.collect()]
        return pa.Table.from_pylist(rows, schema)

    @contextmanager
    def described(self, description: str) -> Iterator[None]:
        """Give the jobs of the block a description in Spark's pages. Not through Spark Connect."""
        if is_remote(self._session):
            yield
            return
        context: Any = self._session.sparkContext
        context.setJobDescription(description)
        try:
            yield
        finally:
            context.setJobDescription(None)

    def tasks(self) -> tuple[int, int]:
        """Count the tasks of the running jobs: ended, and all. (0, 0) through Spark Connect."""
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


def shares(parts: int, workers: int) -> list[range]:
    """Divide parts among Spark tasks, in the order in which Spark starts them: large ones first.

    A task gets half of a worker's share of the remaining parts, and at most an eighth of its share
    of all parts. So there are few tasks, which cost Spark about 50 ms each, and slow parts or
    workers that were not counted hardly delay the end. Source: guided self-scheduling,
    Polychronopoulos & Kuck, IEEE Transactions on Computers C-36 (1987).
    """
    tasks: list[range] = []
    first = 0
    maximum = -(-parts // (8 * workers))
    while first < parts:
        end = first + max(min((parts - first) // (2 * workers), maximum), 1)
        tasks.append(range(first, end))
        first = end
    return tasks


@cache
def freeze_imports() -> None:
    """Exclude imported objects from garbage collection, once per worker.

    PySpark collects garbage after each task; scanning Numba's objects alone takes 70 ms.
    """
    gc.collect()
    gc.freeze()
