"""The check of a replay by Spark, with the queries of `compare.oracle.sql`."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from compare.files import open_parquet
from compare.oracle import sql
from compare.oracle.mismatches import KINDS, Mismatch, Verified, lowest
from compare.pipeline.expiries import VerifyError, open_expiries, rounding_on_workers
from compare.pipeline.results import EXPIRIES, Results
from compare.progress import progress
from compare.replay.contestant import Contestant
from compare.spark.session import cores, plain_failures, spark_session
from compare.spark.tasks import SparkTasks
from compare.tapes.trace import SCHEMA, shard_name
from timers.rounding import Rounding

_SHARD = "CAST(substring(_metadata.file_name, 7, 5) AS BIGINT) AS shard"
"""The shard by its file's name, which `shard_name` gives."""
_ROWS_PER_PARTITION = 1 << 22
"""Rows of a partition that is sorted: some 200 MB, which fit in a core's share of 2 GB."""


def verified_by_sql(
    results: Results, examples: int, master: str | None, session: SparkSession | None
) -> list[Verified]:
    """The comparison of each timer. Raises VerifyError, PipelineError."""
    _check_files(results)
    with (
        spark_session(master, session) as spark,
        plain_failures(f"{results.path} cannot be verified"),
        progress("verify", SparkTasks(spark).tasks),
    ):
        return list(_verified(spark, results, examples))


def _verified(spark: SparkSession, results: Results, examples: int) -> Iterator[Verified]:
    """The operations are sorted by id, and what must fire and what has fired by operation."""
    trace = results.trace
    partitions = max(trace.totals["rows"] // _ROWS_PER_PARTITION, cores(spark))
    tape = operations(spark, results)
    for timer, of_timer in enumerate(results.contestants):
        query = sql.must_fire(partitions, rearms=trace.totals["rearms"] > 0)
        expected = spark.sql(query, tape=with_due(tape, of_timer, trace.unit))
        if not results.manifest["drained"]:
            last = [
                (n, shard.rows - 1, shard.last_time or 0) for n, shard in enumerate(trace.shards)
            ]
            ends = spark.createDataFrame(last, "shard BIGINT, last BIGINT, last_time BIGINT")
            expected = spark.sql(sql.DUE_IN_TIME, expected=expected, ends=ends)
        fired = expiries(spark, results, timer)
        wrong = spark.sql(sql.mismatches(partitions), expected=expected, fired=fired).persist()
        try:
            by_kind = spark.sql(sql.COUNTS, wrong=wrong).collect()
            counts = {row["kind"]: row["number"] for row in by_kind}
            mismatches = _examples(spark, tape, wrong, examples) if counts else []
        finally:
            wrong.unpersist()
        shards = range(len(trace.shards))
        rows = sum(_rows_in(results.expiries_file(timer, shard)) for shard in shards)
        # The rows that are not in `wrong` are right, one for each timer.
        right = rows - sum(row["fired"] for row in by_kind)
        yield Verified(
            right + sum(row["timers"] for row in by_kind),
            rows,
            {kind: counts.get(kind, 0) for kind in KINDS},
            lowest(mismatches, examples),
        )


def operations(spark: SparkSession, results: Results) -> DataFrame:
    """The trace as (shard, operation, time, op, id, deadline)."""
    trace = results.trace
    files = [str(trace.path.resolve() / shard.file) for shard in trace.shards]
    rows = _read(spark, files, "time BIGINT, op TINYINT, id INT, deadline BIGINT")
    operation = "_metadata.row_index AS operation"
    return rows.selectExpr(_SHARD, operation, "time", "op", "id", "deadline")


def expiries(spark: SparkSession, results: Results, timer: int) -> DataFrame:
    """What a timer fired as (shard, operation, reported, fired_at); `reported` is the deadline."""
    shards = range(len(results.trace.shards))
    files = [str(results.expiries_file(timer, shard).resolve()) for shard in shards]
    rows = _read(spark, files, ", ".join(f"{name} BIGINT" for name in EXPIRIES.names))
    return rows.selectExpr(_SHARD, "operation", "deadline AS reported", "fired_at")


def with_due(tape: DataFrame, timer: Contestant, unit: str) -> DataFrame:
    """The operations with `due`, when an arming fires; for a cancel it means nothing."""
    declared = timer.rounding(unit)
    if isinstance(declared, Rounding):
        return tape.selectExpr("*", f"{sql.due(declared)} AS due")
    rounding = rounding_on_workers(timer, unit)

    def add_due(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        due_at = rounding().due_at
        for batch in batches:
            deadline, time = (batch.column(name).to_numpy() for name in ("deadline", "time"))
            yield batch.append_column("due", pa.array(due_at(deadline, time)))

    schema = ", ".join(f"{name} {kind}" for name, kind in tape.dtypes)
    return tape.mapInArrow(add_due, f"{schema}, due bigint")


def _examples(spark: SparkSession, tape: DataFrame, wrong: DataFrame, limit: int) -> list[Mismatch]:
    rows = spark.sql(sql.examples(limit), wrong=wrong).collect()
    places = [(row["shard"], row["operation"]) for row in rows]
    wanted = spark.createDataFrame(places, "shard BIGINT, operation BIGINT").distinct()
    found = spark.sql(sql.ON_TAPE, tape=tape, wanted=wanted).collect()
    on_tape = {(row["shard"], row["operation"]): (row["id"], row["deadline"]) for row in found}
    return [
        Mismatch(row["kind"], *place, *on_tape.get(place, (None, None)), *row[3:])
        for row, place in zip(rows, places, strict=True)
    ]


def _read(spark: SparkSession, files: Sequence[str], schema: str) -> DataFrame:
    # With checksums, a damaged byte is an error and not another number.
    reader = spark.read.schema(schema).option("parquet.page.verify-checksum.enabled", "true")
    # Spark takes brackets and stars for patterns.
    return reader.parquet(*("file:" + re.sub(r"[][{}*?\\]", r"\\\g<0>", file) for file in files))


def _check_files(results: Results) -> None:
    """Raise VerifyError for files that Spark would take for other shards, for rows of nulls, or
    for fewer rows.
    """
    for number, shard in enumerate(results.trace.shards):
        path = results.trace.path / shard.file
        if shard.file != shard_name(number):
            which = f"shard {number} of {results.trace.path}"
            raise VerifyError(f"{which} is {shard.file}; method sql needs {shard_name(number)}")
        with open_parquet(path, VerifyError) as file:
            fits = file.schema_arrow.equals(SCHEMA) and file.metadata.num_rows == shard.rows
        if not fits:
            raise VerifyError(f"{path} does not match the trace's manifest")
    for timer, shard_number in results.replays():
        _rows_in(results.expiries_file(timer, shard_number))


def _rows_in(expiries_file: Path) -> int:
    with open_expiries(expiries_file) as file:
        return int(file.metadata.num_rows)
