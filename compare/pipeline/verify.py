"""Check that each timer of a replay fired what it must, when it must, and nothing else.

There are two methods, which share only the names of the roundings and of the kinds of mismatches:

- "compiled", the default: a task compares the expiries of a shard with `compare.oracle.compiled`;
- "sql": Spark runs the queries of `compare.oracle.sql` on the files of the trace and of the
  expiries.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from compare.bench.contestant import Contestant, contestant
from compare.files import open_parquet
from compare.oracle import sql
from compare.oracle.compiled import Check, Rows, warm
from compare.oracle.mismatches import (
    KINDS,
    ROW_SCHEMA,
    Mismatch,
    Verified,
    combined,
    lowest,
    row_of,
    verified_of,
)
from compare.pipeline.results import EXPIRIES, Results, open_results
from compare.spark.progress import progress
from compare.spark.session import cores, plain_failures, spark_session
from compare.spark.tasks import in_tasks
from compare.tapes.trace import SCHEMA, shard_name
from timers.errors import TimerError
from timers.rounding import AnyRounding, Rounding

METHODS = ("compiled", "sql")
_ROWS_AT_ONCE = 1 << 18
_SHARD = "CAST(substring(_metadata.file_name, 7, 5) AS BIGINT) AS shard"
"""The shard by its file's name, which `shard_name` gives."""
_ROWS_PER_PARTITION = 1 << 22
"""Rows of a partition that is sorted: some 200 MB, which fit in a core's share of 2 GB."""


class VerifyError(TimerError, ValueError):
    """Results that cannot be verified; one line that names the file and what is wrong."""


@dataclass(frozen=True)
class Verdict(Verified):
    """The comparison of one timer, over all shards."""

    timer: str  # its label

    @property
    def mismatches(self) -> int:
        """How many there are, of all kinds."""
        return sum(self.counts.values())


@dataclass(frozen=True)
class Verification:
    """The comparison of all timers, in the order of the results."""

    path: Path
    method: str
    unit: str
    operations: int  # of the trace
    shards: int
    timers: tuple[Verdict, ...]

    @property
    def passed(self) -> bool:
        """Whether there is no mismatch."""
        return not any(verdict.mismatches for verdict in self.timers)


def verify(
    results: str | os.PathLike[str],
    *,
    method: str = "compiled",
    examples: int = 5,
    master: str | None = None,
    session: SparkSession | None = None,
) -> Verification:
    """Compare all that a replay fired with what its trace says that it must fire.

    Counts the mismatches of each timer by kind (`compare.oracle.mismatches.KINDS`), and gives
    `examples` of each kind. Both methods, "compiled" and "sql", find the same.

    Raises:
        TimerError: for results that cannot be verified.
    """
    if method not in METHODS:
        raise VerifyError(f"method {method!r} is not {' or '.join(METHODS)}")
    opened = open_results(results)
    if not opened.manifest["expiries"]:
        raise VerifyError(
            f"{results} has only summaries; replay without --summaries-only to verify"
        )
    for timer, shard in opened.replays():
        if not opened.expiries_file(timer, shard).is_file():
            raise VerifyError(f"{opened.expiries_file(timer, shard)} does not exist")
    if method == "compiled":
        warm()
    else:
        _check_files(opened)
    work = _compiled if method == "compiled" else _sql
    with (
        spark_session(master, session) as spark,
        plain_failures(f"{opened.path} cannot be verified"),
        progress(spark, "verify"),
    ):
        found = list(work(spark, opened, examples))
    pairs = zip(opened.contestants, found, strict=True)
    verdicts = tuple(Verdict(**vars(verified), timer=timer.label) for timer, verified in pairs)
    trace = opened.trace
    rows, shards = trace.totals["rows"], len(trace.shards)
    return Verification(opened.path, method, trace.unit, rows, shards, verdicts)


def rounding_on_workers(timer: Contestant) -> Callable[[], AnyRounding]:
    """A function that a Spark worker can call for the timer's rounding."""
    rounding, name, parameters = timer.rounding, timer.name, dict(timer.parameters)
    if isinstance(rounding, Rounding):
        return lambda: rounding
    # The module of a rounding function is imported there.
    return lambda: contestant(name, parameters).rounding


# ---- compiled


def _compiled(spark: SparkSession, results: Results, examples: int) -> Iterator[Verified]:
    """One task for some shards of some timers; only counts and examples travel through Spark."""
    pairs = list(results.replays())
    roundings = [rounding_on_workers(timer) for timer in results.contestants]

    def work(number: int) -> pa.RecordBatch:
        timer, shard = pairs[number]
        entry = results.trace.shards[shard]
        check = Check(
            lambda: results.trace.pieces(shard),
            entry.rows,
            entry.id_space,
            lambda: read_expiries(results.expiries_file(timer, shard)),
            roundings[timer](),
            shard,
            results.manifest["drained"],
            examples,
        )
        return row_of(timer, check.run())

    done = in_tasks(spark, len(pairs), work, ROW_SCHEMA).toArrow().to_pylist()
    for timer in range(len(results.contestants)):
        yield combined((verified_of(row) for row in done if row["timer"] == timer), examples)


def read_expiries(path: Path) -> Iterator[Rows]:
    """The rows of a file of expiries, piece by piece. Raises VerifyError."""
    with _open_expiries(path) as file:
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=list(Rows._fields)):
            for name in Rows._fields:
                if batch.column(name).null_count:
                    raise VerifyError(f"{path} has a row without {name}")
            # Copied, because Arrow's memory is read-only, which is another type to jitted code.
            yield Rows(*(np.array(batch.column(name).to_numpy()) for name in Rows._fields))


@contextmanager
def _open_expiries(path: Path) -> Iterator[pq.ParquetFile]:
    """A file of expiries with the right columns. Raises VerifyError for what cannot be read."""
    with open_parquet(path, VerifyError) as file:
        found = {field.name: field.type for field in file.schema_arrow}
        if any(found.get(field.name) != field.type for field in EXPIRIES):
            columns = ", ".join(f"{name} {kind}" for name, kind in found.items())
            wanted = ", ".join(f"{field.name} {field.type}" for field in EXPIRIES)
            raise VerifyError(f"{path} has the columns ({columns}); expiries have ({wanted})")
        yield file


# ---- SQL


def _sql(spark: SparkSession, results: Results, examples: int) -> Iterator[Verified]:
    """The operations are sorted by id, and what must fire and what has fired by operation."""
    trace = results.trace
    partitions = max(trace.totals["rows"] // _ROWS_PER_PARTITION, cores(spark))
    tape = operations(spark, results)
    for timer, of_timer in enumerate(results.contestants):
        query = sql.must_fire(partitions, rearms=trace.totals["rearms"] > 0)
        expected = spark.sql(query, tape=with_due(tape, of_timer))
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


def with_due(tape: DataFrame, timer: Contestant) -> DataFrame:
    """The operations with `due`, when an arming fires; for a cancel it means nothing."""
    if isinstance(timer.rounding, Rounding):
        return tape.selectExpr("*", f"{sql.due(timer.rounding)} AS due")
    rounding = rounding_on_workers(timer)

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
    with _open_expiries(expiries_file) as file:
        return int(file.metadata.num_rows)
