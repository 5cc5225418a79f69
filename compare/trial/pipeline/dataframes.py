"""The stages as functions of DataFrames of Spark, classic or Connect. They only plan.

A DataFrame of blocks comes from `compare.ingest_requests`, `generate`, or a trace. Each function
returns a DataFrame that Spark computes when it must, so that the stages are one plan:

>>> from compare import dataframes
>>> blocks = dataframes.generate(spark, "uniform", timers=1000)  # doctest: +SKIP
>>> dataframes.summarise(dataframes.replay(blocks, ["delay-queue"])).show()  # doctest: +SKIP

docs/pipeline.md has the columns. A session that `compare.spark_session` has not started should set
spark.sql.execution.arrow.maxBytesPerBatch to 32 MB: a row may be a block of 1.4 MB.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from compare.base.quantiles import QUANTILES
from compare.base.stages import SHARD, Batches, Stage
from compare.spark.engine import OnSpark
from compare.traffic.tapes.trace import Trace
from compare.traffic.workloads.catalogue import Plan
from compare.trial.pipeline import generate as generating
from compare.trial.pipeline import replay as replaying
from compare.trial.pipeline import summarise as summarising
from compare.trial.pipeline import verify as verifying
from compare.trial.pipeline.results import EXAMPLES, Results, send_own_timers
from compare.trial.replay.contestant import contestant
from compare.trial.replay.outcome import NUMBERS, outcome_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LATE = [f"lateness_{name}" for name in QUANTILES]
FIGURES = pa.schema(
    [
        ("contestant", pa.string()),
        ("shards", pa.int32()),
        ("ns_per_operation", pa.float64()),
        *((name, pa.float64() if kind is float else pa.int64()) for name, kind in NUMBERS.items()),
        *((name, pa.float64()) for name in _LATE),
        ("mismatches", pa.int64()),
    ]
)
"""A row of `summarise`. Lateness is null if nothing fired, mismatches if nothing was checked."""


def generate(
    spark: "SparkSession",
    name: str,
    *,
    timers: int | None = None,
    operations: int | None = None,
    shards: int = 1,
    seed: int = 0,
    parameters: Mapping[str, int] | None = None,
) -> "DataFrame":
    """Return the blocks of a workload; see `compare.generate`. Raises WorkloadError."""
    plan = Plan.of(
        name, timers=timers, operations=operations, shards=shards, seed=seed, parameters=parameters
    )
    engine = OnSpark(spark)
    return engine.apply(generating.stage(plan), engine.numbers(shards))


def blocks(trace: Trace, spark: "SparkSession") -> "DataFrame":
    """Return the blocks of a trace: shard, block, time, op, id, deadline and end."""
    return OnSpark(spark).read(trace.blocks, trace.totals["shards"])


def operations(blocks: "DataFrame") -> "DataFrame":
    """Return a row for each operation: shard, block, place in the block, time, op, id, deadline."""
    return blocks.selectExpr(SHARD, "block", _rows("time", "op", "id", "deadline")).selectExpr(
        SHARD, "block", "place", "row.*"
    )


def replay(
    blocks: "DataFrame",
    timers: Sequence[str],
    *,
    unit: str = "ms",
    expiries: bool = True,
    drained: bool = True,
    counting: bool = False,
    check: bool = False,
) -> "DataFrame":
    """Return what each timer fires, and the outcomes; see `compare.replay_trace`.

    `unit` is that of the times. Each shard is replayed through all timers by one task. Raises
    TimerError.
    """
    contestants = [contestant(text) for text in timers]
    options = replaying.Options(unit, expiries, drained, counting, check)
    replaying.check_labels(contestants)
    replaying.compiled(contestants, options)
    engine = OnSpark(blocks.sparkSession)
    send_own_timers(contestants, engine)
    return engine.apply(replaying.stage(contestants, options), blocks)


def results(results: Results, spark: "SparkSession") -> "DataFrame":
    """Return the expiries and outcomes of stored results, as `replay` does."""
    return OnSpark(spark).read(results.expiries, results.trace.totals["shards"])


def expiries(results: "DataFrame") -> "DataFrame":
    """Return a row for each expiry: shard, contestant, operation, deadline and fired_at."""
    return results.selectExpr(
        SHARD, "contestant", _rows("operation", "deadline", "fired_at")
    ).selectExpr(SHARD, "contestant", "row.*")


def verify(
    blocks: "DataFrame",
    results: "DataFrame",
    timers: Sequence[str],
    *,
    unit: str = "ms",
    drained: bool = True,
    examples: int = EXAMPLES,
) -> "DataFrame":
    """Return a check of each shard and timer; see `compare.verify`. Raises TimerError."""
    roundings = {each.label: each.rounding(unit) for each in map(contestant, timers)}
    checking = verifying.stage(roundings, drained=drained, examples=examples)
    return OnSpark(blocks.sparkSession).apply(checking, blocks, results)


def summarise(results: "DataFrame") -> "DataFrame":
    """Return a row for each timer, of FIGURES: its outcomes over all shards."""
    engine = OnSpark(results.sparkSession)
    outcomes = results.where("outcome IS NOT NULL").select(SHARD, "contestant", "outcome")
    added = engine.apply(summarising.stage(), outcomes)
    return engine.apply(Stage("figures", ("contestant",), (), FIGURES, _figures), added)


def _figures(rows: Batches) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        for row in batch.to_pylist():
            outcome, check = outcome_of(row["outcome"]), row["outcome"]["check"]
            late = outcome.lateness.quantiles(QUANTILES.values())
            figures = {
                "contestant": row["contestant"],
                "shards": row["shards"],
                "ns_per_operation": outcome.ns_per_operation,
                **{name: getattr(outcome, name) for name in NUMBERS},
                **dict(zip(_LATE, late, strict=True)),
                "mismatches": None if check is None else sum(dict(check["counts"]).values()),
            }
            yield pa.RecordBatch.from_pylist([figures], FIGURES)


def _rows(*columns: str) -> str:
    """An expression that turns arrays of one length into rows: `place`, and `row` with all."""
    return f"posexplode(arrays_zip({', '.join(columns)})) AS (place, row)"
