"""Write a workload as a trace: each shard is generated as a stream of blocks."""

import os
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from compare.base.progress import progress
from compare.base.stages import SHARD, Batches, Stage
from compare.spark.engine import engine
from compare.traffic.tapes.blocks import BLOCKS, blocks_of
from compare.traffic.tapes.places import check_output, new_trace_at, open_trace_at
from compare.traffic.tapes.trace import Trace
from compare.traffic.workloads.catalogue import Plan, make

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def stage(plan: Plan) -> Stage:
    """Turn numbers of shards into blocks."""
    return Stage("generate", (SHARD,), (), BLOCKS, partial(_generated, plan))


def _generated(plan: Plan, numbers: Batches) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for shard in batch[SHARD].to_pylist():
            yield from blocks_of(shard, plan.pieces(shard))


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
    """Write a workload as a trace of this many shards, with this number of timers or operations.

    The number is divided evenly; if it is not divisible, the first shards have one more. A shard is
    the traffic of one machine at the full rate of the workload: 64 shards are the traffic of 64
    machines. Its rows are a pure function of the workload, its parameters, the seed, the shard's
    number and its share. They do not depend on the number of tasks or machines.

    `out` is a directory or, for Spark, a URI or `table:catalog.database.name`. O(rows) time; a task
    needs memory for the pending members and about 2**20 rows. Raises TimerError, with a message of
    one line; nothing is left behind.
    """
    plan = Plan.of(
        name, timers=timers, operations=operations, shards=shards, seed=seed, parameters=parameters
    )
    for name in ("lognormal-low", "keepalive"):
        make(name, operations=1)  # compiles the generator into the disk cache for workers
    check_output(out, force=force)
    unit, source = plan.workload.unit, plan.source
    with engine(master, session, [out]) as chosen:
        with new_trace_at(chosen, out, unit=unit, source=source, force=force) as unfinished:
            unfinished.made_by = chosen.made_by
            with progress("generate", chosen.tasks):
                blocks = chosen.apply(stage(plan), chosen.numbers(shards))
                text = f"generate: {plan.workload.name}, {shards} shards"
                chosen.write(blocks, str(unfinished.blocks), text)
        return open_trace_at(chosen, out)
