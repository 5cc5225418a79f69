"""Check a replay on Spark, with the queries of `compare.trial.oracle.sql`."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from compare.base.progress import progress
from compare.spark.engine import cores
from compare.spark.failures import plain_failures
from compare.spark.session import spark_session
from compare.spark.tasks import SparkTasks
from compare.trial.oracle import sql
from compare.trial.oracle.mismatches import KINDS, Mismatch, Verified, lowest
from compare.trial.pipeline.dataframes import expiries_of, operations
from compare.trial.pipeline.results import Results, open_expiries
from compare.trial.replay.contestant import Contestant
from timers.rounding import Rounding

_ROWS_PER_PARTITION = 1 << 22
"""Rows of a partition to sort: about 200 MB, which fit in a core's share of 2 GB."""


def verified_by_sql(
    results: Results, examples: int, master: str | None, session: SparkSession | None
) -> list[Verified]:
    """Check each timer. Raises TraceError, ResultsError, PipelineError."""
    _check_files(results)
    with (
        spark_session(master, session) as spark,
        plain_failures(f"{results.path} cannot be verified"),
        progress("verify", (tasks := SparkTasks(spark)).tasks),
    ):
        results.send_own_timers(tasks)
        return list(_verified(spark, results, examples, tasks))


def _verified(
    spark: SparkSession, results: Results, examples: int, tasks: SparkTasks
) -> Iterator[Verified]:
    """Operations are sorted by id; expected and actual expiries are sorted by operation."""
    trace, shards = results.trace, range(len(results.trace.shards))
    partitions = max(trace.totals["rows"] // _ROWS_PER_PARTITION, cores(spark))
    tape = operations(trace, spark)
    for timer, contestant in enumerate(results.contestants):
        query = sql.must_fire(partitions, rearms=trace.totals["rearms"] > 0)
        expected = spark.sql(query, tape=_with_due(tape, contestant, trace.unit))
        if not results.manifest["drained"]:
            last = [
                (n, shard.rows - 1, shard.last_time or 0) for n, shard in enumerate(trace.shards)
            ]
            ends = spark.createDataFrame(last, "shard BIGINT, last BIGINT, last_time BIGINT")
            expected = spark.sql(sql.DUE_IN_TIME, expected=expected, ends=ends)
        files = [results.expiries_file(timer, shard) for shard in shards]
        fired = expiries_of(results, timer, spark).withColumnRenamed("deadline", "reported")
        wrong = spark.sql(sql.mismatches(partitions), expected=expected, fired=fired).persist()
        try:
            with tasks.described(f"verify: {len(shards)} shards of {contestant.label}, by joins"):
                by_kind = spark.sql(sql.COUNTS, wrong=wrong).collect()
                counts = {row["kind"]: row["number"] for row in by_kind}
                mismatches = _examples(spark, tape, wrong, examples) if counts else []
        finally:
            wrong.unpersist()
        rows = sum(map(_rows_in, files))
        # The rows that are not in `wrong` are right, one per timer.
        right = rows - sum(row["fired"] for row in by_kind)
        yield Verified(
            right + sum(row["timers"] for row in by_kind),
            rows,
            {kind: counts.get(kind, 0) for kind in KINDS},
            lowest(mismatches, examples),
        )


def _with_due(tape: DataFrame, timer: Contestant, unit: str) -> DataFrame:
    """Add `due`, when an armed timer fires; the value is meaningless for a cancel."""
    rounding = timer.rounding(unit)
    if isinstance(rounding, Rounding):
        return tape.selectExpr("*", f"{sql.due(rounding)} AS due")

    def add_due(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            deadline, time = (batch.column(name).to_numpy() for name in ("deadline", "time"))
            yield batch.append_column("due", pa.array(rounding.due_at(deadline, time)))

    schema = ", ".join(f"{name} {kind}" for name, kind in tape.dtypes)
    return tape.mapInArrow(add_due, f"{schema}, due bigint")


def _examples(spark: SparkSession, tape: DataFrame, wrong: DataFrame, limit: int) -> list[Mismatch]:
    rows = spark.sql(sql.examples(limit), wrong=wrong).collect()
    places = [(row["shard"], row["operation"]) for row in rows]
    wanted = spark.createDataFrame(places, "shard BIGINT, operation BIGINT").distinct()
    on_tape_rows = spark.sql(sql.ON_TAPE, tape=tape, wanted=wanted).collect()
    on_tape = {
        (row["shard"], row["operation"]): (row["id"], row["deadline"]) for row in on_tape_rows
    }
    return [
        Mismatch(row["kind"], *place, *on_tape.get(place, (None, None)), *row[3:])
        for row, place in zip(rows, places, strict=True)
    ]


def _check_files(results: Results) -> None:
    """Raise an error for files that Spark would read as other shards, as nulls or as fewer rows."""
    trace = results.trace
    for number in range(len(trace.shards)):
        with trace.open_shard(number):
            pass
    for replay in results.replays():
        _rows_in(results.expiries_file(*replay))


def _rows_in(expiries_file: Path) -> int:
    with open_expiries(expiries_file) as file:
        return int(file.metadata.num_rows)
