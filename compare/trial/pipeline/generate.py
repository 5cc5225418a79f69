"""Write a workload as a trace: each part of the work generates one shard and writes its file.

Only shard numbers and entries of the manifest are exchanged with the executor.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from compare.base.executors import Executor, Stopping, until_stopping
from compare.base.files import CANNOT_WRITE, errors_as
from compare.base.progress import progress
from compare.base.records import record_of, row_of, schema_of
from compare.spark.executor import executor
from compare.traffic.tapes.tape import Tape
from compare.traffic.tapes.trace import Shard, Trace, TraceError, new_trace, open_trace, write_shard
from compare.traffic.workloads.catalogue import Plan, make

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENTRIES = schema_of(Shard)


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
    """Write a workload as a trace of `shards` files, with this number of timers or operations.

    The number is divided evenly; if it is not divisible, the first shards have one more. A shard is
    the traffic of one machine at the full rate of the workload: 64 shards are the traffic of 64
    machines. Its rows are a pure function of the workload, its parameters, the seed, the shard's
    number and its share. They do not depend on the number of tasks or machines. On a cluster `out`
    must be the same directory on every machine.

    O(rows) time; a task needs memory for the pending members and about 2**20 rows. Raises
    TimerError, with a message of one line; nothing is left behind.
    """
    plan = Plan.of(
        name, timers=timers, operations=operations, shards=shards, seed=seed, parameters=parameters
    )
    with new_trace(out, unit=plan.workload.unit, source=plan.source, force=force) as unfinished:
        for name in ("lognormal-low", "keepalive"):
            make(name, operations=1)  # compiles the generator into the disk cache for workers
        with executor(master, session) as runner:
            unfinished.made_by = runner.made_by
            unfinished.shards += _write(runner, plan, unfinished.directory)
        for shard in unfinished.shards:
            if not (unfinished.directory / shard.file).exists():
                raise TraceError(
                    f"{shard.file} was not written to {out}: can all machines write there?"
                )
    return open_trace(out)


def _write(runner: Executor, plan: Plan, directory: Path) -> list[Shard]:
    """Write the shards, and return their entries in the manifest, in order."""
    here = [0]  # rows written by this process

    def write(tasks: pa.RecordBatch, stopping: Stopping) -> Iterator[pa.RecordBatch]:
        for number in tasks["shard"].to_pylist():
            shard = write_one(number, stopping)
            yield pa.RecordBatch.from_pylist([row_of(shard)], _ENTRIES)

    def write_one(number: int, stopping: Stopping) -> Shard:
        def counted() -> Iterator[Tape]:
            for piece in until_stopping(plan.pieces(number), stopping):
                yield piece
                here[0] += len(piece.time)

        with errors_as(TraceError, f"{CANNOT_WRITE} to {directory.parent}"):
            return write_shard(directory, number, counted())

    def rows_done() -> int:
        finished = (int(path.stem[-5:]) for path in directory.glob("shard-*.parquet"))
        return max(here[0], sum(map(plan.share, finished)))

    rows = (plan.amount, rows_done) if plan.counted == "operations" else ()
    shards = pa.table({"shard": pa.array(range(plan.shards), pa.int32())})
    text = f"generate: {plan.workload.name}, {plan.shards} shards"
    with progress("generate", runner.tasks, *rows):
        entries = runner.map(shards, write, _ENTRIES, text)
    return [record_of(Shard, entry) for entry in entries.sort_by("file").to_pylist()]
