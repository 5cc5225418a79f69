"""A workload becomes a trace on Spark: each shard is a task's, from the first random number to its
Parquet file.

Nothing but the shards' numbers and their entries in the manifest travels through Spark.
"""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from compare.files import CANNOT_WRITE, errors_as
from compare.pipeline.shards import SHARDS, entries_of, row_of
from compare.spark.progress import progress
from compare.spark.session import PipelineError, plain_failures, spark_session
from compare.spark.tasks import in_tasks
from compare.tapes.trace import Shard, Trace, new_trace, open_trace
from compare.workloads.catalogue import Plan, WorkloadError
from compare.workloads.writing import warm, write_shard

_TOO_LONG = f"{WorkloadError.__module__}.{WorkloadError.__name__}"
"""What a worker raises for a workload that turns out to be too long."""


def generate(
    name: str,
    out: str | os.PathLike[str],
    *,
    timers: int | None = None,
    operations: int | None = None,
    shards: int = 1,
    seed: int = 0,
    parameters: Mapping[str, int] | None = None,
    force: bool = False,
    master: str | None = None,
    session: SparkSession | None = None,
) -> Trace:
    """Write a workload as a trace of `shards` files; so many timers with all they do, or so many
    operations.

    These are divided evenly; the first shards have one more if the number is not divisible. A
    shard is the traffic of one timer and has all of the workload's rate: 64 shards are 64 machines'
    traffic side by side. Its rows are a pure function of the workload, its parameters, the seed,
    the shard's number and its share: whatever the number of tasks or machines, they are the same.
    On a cluster `out` must be the same directory on every machine.

    O(rows) time; each task has memory for the members under way and some 2**20 rows. Raises a
    TimerError in one line for everything that can be wrong; in that case nothing is left behind.
    """
    plan = Plan.of(
        name, timers=timers, operations=operations, shards=shards, seed=seed, parameters=parameters
    )
    return generate_plan(plan, out, force=force, master=master, session=session)


def generate_plan(
    plan: Plan,
    out: str | os.PathLike[str],
    *,
    force: bool = False,
    master: str | None = None,
    session: SparkSession | None = None,
) -> Trace:
    """The same for a workload whose size and parameters have been checked."""
    with new_trace(out, unit=plan.workload.unit, source=plan.source, force=force) as unfinished:
        warm()
        with (
            spark_session(master, session) as spark,
            plain_failures(f"cannot generate {out}", {_TOO_LONG: WorkloadError}),
        ):
            unfinished.shards += _write(spark, plan, unfinished.directory)
        for shard in unfinished.shards:
            if not (unfinished.directory / shard.file).exists():
                raise PipelineError(
                    f"{shard.file} was not written to {out}: can all machines write there?"
                )
    return open_trace(out)


def _write(spark: SparkSession, plan: Plan, directory: Path) -> list[Shard]:
    """Write the shards as tasks; returns the manifest's entries, in order."""

    def rows_done() -> int:
        return sum(plan.share(int(path.stem[-5:])) for path in directory.glob("shard-*.parquet"))

    rows = (plan.amount, rows_done) if plan.counted == "operations" else ()
    with progress(spark, "generate", *rows):
        write = partial(_write_shard, plan=plan, directory=str(directory))
        found = entries_of(in_tasks(spark, plan.shards, write, SHARDS).toArrow())
    return [found[number] for number in range(plan.shards)]


def _write_shard(number: int, *, plan: Plan, directory: str) -> pa.RecordBatch:
    """Write a shard in a worker; returns a row of SHARDS."""
    with errors_as(OSError, f"{CANNOT_WRITE} to {Path(directory).parent}"):
        return row_of(number, write_shard(plan, number, Path(directory)))
