"""Run numbered parts of work as Spark tasks."""

import gc
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from compare.base.executors import Result, Work, never_stopping
from compare.spark.session import cores, is_remote, plain_failures

_RESULTS = pa.schema([("part", pa.int64()), ("result", pa.binary())])


class SparkTasks:
    """An executor (`compare.base.executors`) that runs parts of work as Spark tasks."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    @property
    def workers(self) -> int:
        """See `cores`."""
        return cores(self._session)

    def run(self, parts: int, work: Work[Result]) -> list[Result]:
        """See `Executor.run`; `shares` divides the parts. Raises PipelineError if a task fails.

        Only the numbers, `work` and its pickled results travel through Spark.
        """

        def results(part: int) -> Iterator[pa.RecordBatch]:
            pickled = pickle.dumps(work(part, never_stopping))
            yield pa.RecordBatch.from_arrays([[part], [pickled]], schema=_RESULTS)

        with plain_failures("a task failed"):
            # Not toArrow, which waits for all tasks even after an interrupt.
            rows = self._rows(parts, results, _RESULTS).collect()
        return [pickle.loads(row["result"]) for row in sorted(rows)]

    def shuffle(
        self,
        parts: int,
        read: Callable[[int], Iterator[pa.RecordBatch]],
        schema: pa.Schema,
        groups: int,
        order: Sequence[str],
        write: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
        out: pa.Schema,
    ) -> pa.Table:
        """Read parts as rows, and write those of each group in an order.

        The first column of the order is the number of the group. `write` takes the rows of one
        group or of several.
        """
        rows = self._rows(parts, read, schema)
        # One partition per group; before Spark 4.1 some groups share a partition.
        partition = getattr(rows, "repartitionById", rows.repartition)
        ordered = partition(groups, order[0]).sortWithinPartitions(*order)
        written = ordered.mapInArrow(write, from_arrow_schema(out)).collect()
        return pa.Table.from_pylist([row.asDict() for row in written], out)

    def _rows(
        self, parts: int, read: Callable[[int], Iterable[pa.RecordBatch]], schema: pa.Schema
    ) -> DataFrame:
        """The rows of the parts; `shares` divides the parts into tasks."""
        tasks = shares(parts, self.workers)

        def run_tasks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for task in batch.column("id").to_pylist():
                    for part in tasks[task]:
                        yield from read(part)
                        freeze_imports()

        numbers = self._session.range(0, len(tasks), 1, len(tasks))
        return numbers.mapInArrow(run_tasks, from_arrow_schema(schema))

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
    """Divide parts into tasks, in the order in which Spark starts them: large ones first.

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
