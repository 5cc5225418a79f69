"""The engine of Spark: stages as plans of DataFrames. It knows nothing of what the rows mean.

Spark reads, exchanges, sorts and writes the rows, and recovers from what fails.
"""

import gc
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from compare.base.datasets import Dataset
from compare.base.stages import SHARD, Batches, Here, Stage
from compare.base.versions import versions
from compare.spark.facts import about, cores, is_remote
from compare.spark.failures import plain_failures, plain_interrupts
from compare.spark.places import TABLE, is_far
from compare.spark.session import end_java, spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS_PER_CORE = 4
"""Tasks of an exchange for each core, if there are as many shards. So slow ones hardly delay the
end; with more, each task costs Spark about 50 ms."""

_WRITING = {
    "compression": "zstd",
    "parquet.writer.version": "v2",  # numbers as differences
    # No value occurs twice in most columns.
    "parquet.enable.dictionary": "false",
    # Bytes of a row group: what a reader holds at least. The default is 128 MB.
    "parquet.block.size": str(1 << 23),
    # How often, in rows, the size is checked. The default is at least 100, of 1.4 MB each.
    "parquet.page.size.row.check.min": "1",
    "parquet.page.size.row.check.max": "8",
    "parquet.page.write-checksum.enabled": "true",
}
_READING = {
    # With checksums, a damaged byte is an error, not another number.
    "parquet.page.verify-checksum.enabled": "true",
}


@contextmanager
def engine(
    master: str | None = None,
    session: "SparkSession | None" = None,
    places: Iterable[object] = (),
) -> Iterator["Here | OnSpark"]:
    """Yield the engine of this process, or Spark's if a master, a session or SPARK_REMOTE is given,
    only Spark reads one of the places, or the program was started by spark-submit.
    """
    given = master is not None or session is not None or any(map(is_far, places))
    if not given and not any(map(os.environ.get, ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"))):
        yield Here()
        return
    with spark_session(master, session) as spark:
        yield OnSpark(spark)


class OnSpark:
    """Runs stages on Spark; see `compare.base.stages.Engine`. Its rows are DataFrames."""

    def __init__(self, session: "SparkSession") -> None:
        self.session = session

    @property
    def workers(self) -> int:
        """See `cores`."""
        return cores(self.session)

    @property
    def made_by(self) -> Mapping[str, Any]:
        """See `Engine`."""
        facts = about(self.session)
        return {"executor": "spark", "master": facts.pop("master"), "versions": versions() | facts}

    def numbers(self, shards: int) -> "DataFrame":
        """See `Engine`."""
        tasks = min(shards, PARTITIONS_PER_CORE * self.workers)
        return self.session.range(0, shards, 1, tasks).selectExpr(f"CAST(id AS INT) AS {SHARD}")

    def read(self, dataset: Dataset, shards: int) -> "DataFrame":
        """See `Engine`."""
        from pyspark.sql.pandas.types import from_arrow_schema

        if dataset.path.startswith(TABLE):
            table = self.session.table(dataset.path.removeprefix(TABLE))
            return table.select(*dataset.schema.names)
        schema = from_arrow_schema(dataset.schema)
        return (
            self.session.read.schema(schema)
            .options(**_READING)
            .parquet(literal(uri_of(dataset.path)))
        )

    def values(self, dataset: Dataset, column: str, shards: int) -> "DataFrame":
        """See `Engine`."""
        rows = self.read(dataset, shards).select(*dataset.key, column)
        return rows.where(f"{column} IS NOT NULL")

    def apply(self, stage: Stage, *inputs: "DataFrame") -> "DataFrame":
        """See `Engine`."""
        from pyspark.sql.functions import expr
        from pyspark.sql.pandas.types import from_arrow_schema

        rows, *others = inputs
        for each in others:
            rows = rows.unionByName(each, allowMissingColumns=True)
        if stage.order:
            if stage.key[0] == SHARD:
                number = PARTITIONS_PER_CORE * self.workers
                rows = rows.repartitionById(number, expr(f"pmod({SHARD}, {number})"))
            else:
                rows = rows.repartition(*stage.key)
            rows = rows.sortWithinPartitions(*stage.key, *stage.order)
        return rows.mapInArrow(_in_worker(stage), from_arrow_schema(stage.output))

    def union(self, *rows: "DataFrame") -> "DataFrame":
        """See `Engine`."""
        first, *others = rows
        for each in others:
            first = first.unionAll(each)
        return first

    def write(self, rows: "DataFrame", path: str, description: str) -> None:
        """See `Engine`. Raises PipelineError."""
        try:
            with (
                plain_interrupts(),
                plain_failures("the Spark job failed"),
                self._described(description),
            ):
                writer = rows.write.options(**_WRITING)
                if path.startswith(TABLE):
                    writer.saveAsTable(path.removeprefix(TABLE))
                else:
                    writer.mode("append").parquet(uri_of(path))
        except KeyboardInterrupt:
            if not is_far(path):
                # The caller removes what is written. Tasks that go on would write more.
                end_java(self.session)
            raise

    def collect(self, rows: "DataFrame", description: str) -> pa.Table:
        """See `Engine`. Raises PipelineError."""
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(rows.schema)
        with plain_failures("the Spark job failed"), self._described(description):
            # Not toArrow, which waits for all tasks even after an interrupt.
            found = [row.asDict(recursive=True) for row in rows.collect()]
        return pa.Table.from_pylist(found, schema)

    @contextmanager
    def _described(self, description: str) -> Iterator[None]:
        """Give the jobs of the block a description in Spark's pages. Not through Spark Connect."""
        if is_remote(self.session):
            yield
            return
        context: Any = self.session.sparkContext
        context.setJobDescription(description)
        try:
            yield
        finally:
            context.setJobDescription(None)

    def tasks(self) -> tuple[int, int]:
        """See `Engine`: the tasks of the running jobs. (0, 0) through Spark Connect."""
        if is_remote(self.session):
            return 0, 0
        tracker = self.session.sparkContext.statusTracker()
        jobs = map(tracker.getJobInfo, tracker.getActiveJobsIds())
        numbers = {number for job in jobs if job is not None for number in job.stageIds}
        stages = [info for info in map(tracker.getStageInfo, numbers) if info is not None]
        done = sum(stage.numCompletedTasks for stage in stages)
        return done, sum(stage.numTasks for stage in stages)

    def send_module(self, file: str) -> None:
        """See `Engine`."""
        if is_remote(self.session):
            self.session.addArtifacts(file, pyfile=True)
        else:
            self.session.sparkContext.addPyFile(file)


def _in_worker(stage: Stage) -> Any:
    """The stage as a function for `mapInArrow`."""

    def apply(batches: Batches) -> Batches:
        for batch in stage.apply(batches):
            yield batch
            freeze_imports()

    return apply


@cache
def freeze_imports() -> None:
    """Exclude imported objects from garbage collection, once per worker.

    PySpark collects garbage after each task; scanning Numba's objects alone takes 70 ms.
    """
    gc.collect()
    gc.freeze()


def uri_of(path: str) -> str:
    """A path of this machine as a URI; a URI as it is."""
    return path if "://" in path else f"file:{Path(path).absolute()}"


def literal(path: str) -> str:
    """A URI that Spark does not take as a pattern."""
    return "".join(f"\\{c}" if c in "[]{}*?\\" else c for c in path)
