"""Traces and results as DataFrames of the user's own Spark."""

import re
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit
from pyspark.sql.pandas.types import from_arrow_schema

from compare.traffic.tapes.trace import SCHEMA, Trace, TraceError, shard_name
from compare.trial.pipeline.results import EXPIRIES, OUTCOMES, Results, ResultsError

SHARD = "CAST(substring(_metadata.file_name, 7, 5) AS BIGINT) AS shard"
"""The shard, from a file name that `shard_name` returned."""


def dataframe(data: Trace | Results, spark: SparkSession, *, expiries: bool = False) -> DataFrame:
    """Return a trace or results as a DataFrame. Nothing is read before Spark needs it.

    - A trace has a row for each operation: shard, operation (its number in the shard), time, op, id
      and deadline.
    - Results have a row for each shard replay: contestant (the timer with its parameters), and the
      columns of an outcome.
    - With `expiries`, results have a row for each expiry: contestant, shard, operation, deadline
      and fired_at.

    docs/pipeline.md and docs/traces.md explain the columns. Raises ResultsError if the expiries
    were not stored, and TraceError if the files of a trace have other names.

    >>> from compare import open_trace, spark_session
    >>> with spark_session() as spark:  # doctest: +SKIP
    ...     dataframe(open_trace("out/trace"), spark).groupBy("op").count().show()
    """
    if isinstance(data, Trace):
        return operations(data, spark)
    if expiries and not data.manifest["expiries"]:
        raise ResultsError(f"{data.path} has no expiries; they were not stored")
    shards = range(len(data.trace.shards))
    frames = []
    for timer, contestant in enumerate(data.contestants):
        if expiries:
            rows = expiries_of(data, timer, spark)
        else:
            rows = read(spark, (data.outcome_file(timer, n) for n in shards), OUTCOMES)
        frames.append(rows.select(lit(contestant.label).alias("contestant"), "*"))
    first, *others = frames
    for frame in others:
        first = first.unionByName(frame)
    return first


def operations(trace: Trace, spark: SparkSession) -> DataFrame:
    """The operations of a trace: shard, operation, time, op, id, deadline."""
    for number, shard in enumerate(trace.shards):
        if shard.file != shard_name(number):
            raise TraceError(
                f"shard {number} of {trace.path} is {shard.file}; Spark needs {shard_name(number)}"
            )
    rows = read(spark, [trace.path / shard.file for shard in trace.shards], SCHEMA)
    return rows.selectExpr(SHARD, "_metadata.row_index AS operation", *SCHEMA.names)


def expiries_of(results: Results, timer: int, spark: SparkSession) -> DataFrame:
    """The expiries of a timer: shard, operation, deadline, fired_at."""
    shards = range(len(results.trace.shards))
    files = (results.expiries_file(timer, shard) for shard in shards)
    return read(spark, files, EXPIRIES).selectExpr(SHARD, *EXPIRIES.names)


def read(spark: SparkSession, files: Iterable[Path], schema: pa.Schema) -> DataFrame:
    """Read Parquet files of a schema."""
    # With checksums, a damaged byte is an error, not another number.
    reader = spark.read.schema(from_arrow_schema(schema))
    reader = reader.option("parquet.page.verify-checksum.enabled", "true")
    # Spark treats brackets and stars as patterns.
    escaped = (re.sub(r"[][{}*?\\]", r"\\\g<0>", str(file.resolve())) for file in files)
    return reader.parquet(*(f"file:{file}" for file in escaped))
