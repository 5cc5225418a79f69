"""A workload becomes a trace: each shard is a part's work, from the first random number to its
Parquet file.

Nothing but the shards' numbers and their entries in the manifest travels to and from the executor.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from compare.executors import Executor, Stopped, Stopping
from compare.files import CANNOT_WRITE, errors_as
from compare.pipeline.shards import SHARDS, entries_of, row_of
from compare.progress import progress
from compare.spark.executor import executor
from compare.tapes.trace import Shard, Trace, TraceError, new_trace, open_trace
from compare.workloads.catalogue import Plan
from compare.workloads.writing import compile_generator, write_shard

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    session: "SparkSession | None" = None,
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
    session: "SparkSession | None" = None,
) -> Trace:
    """The same for a workload whose size and parameters have been checked."""
    with new_trace(out, unit=plan.workload.unit, source=plan.source, force=force) as unfinished:
        compile_generator()
        with executor(master, session) as where:
            unfinished.shards += _write(where, plan, unfinished.directory)
        for shard in unfinished.shards:
            if not (unfinished.directory / shard.file).exists():
                raise TraceError(
                    f"{shard.file} was not written to {out}: can all machines write there?"
                )
    return open_trace(out)


def _write(where: Executor, plan: Plan, directory: Path) -> list[Shard]:
    """Write the shards; returns the manifest's entries, in order."""
    out, target, here = str(directory.parent), str(directory), [0]  # rows written by this process

    def write(number: int, stopping: Stopping) -> pa.RecordBatch:
        def count(rows: int) -> None:
            here[0] += rows
            if stopping():
                raise Stopped

        with errors_as(TraceError, f"{CANNOT_WRITE} to {out}"):
            return row_of(number, write_shard(plan, number, Path(target), count))

    def rows_done() -> int:
        finished = (int(path.stem[-5:]) for path in directory.glob("shard-*.parquet"))
        return max(here[0], sum(map(plan.share, finished)))

    rows = (plan.amount, rows_done) if plan.counted == "operations" else ()
    with progress("generate", where.tasks, *rows):
        found = entries_of(where.run(plan.shards, write, SHARDS))
    return [found[number] for number in range(plan.shards)]
