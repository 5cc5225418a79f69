"""Verification of a grid replay: each timer fired what it had to, when it had to, and nothing else.

Two ways that have nothing in common but the closed forms' names and the words for what is wrong:

- **merge**, the fast one: tape and expiries of a cell side by side in one task,
  `compare.oracle.merge`;
- **join**: an oracle in Spark SQL, from the trace's files to the armings that must fire, in a full
  outer join with what was fired.

The oracle, for the operations k on one id of one shard in the order of the tape, with p the
operation before k and n the one after it: `due(k)` is the closed form of k's deadline and time. A
start or arm arms a timer. A re-arm does if p armed one that is still pending: due(p) > time(k). So
with *broken* for a re-arm whose p is a cancel or not pending any more, a re-arm arms exactly if no
re-arm has been broken since the last start or arm. What k armed fires at due(k) unless n is a
cancel, re-arm or arm before that moment; a start leaves the former timer of its id alone.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from compare.bench.contestant import Contestant
from compare.files import parquet_errors
from compare.oracle.merge import (
    COLUMNS,
    EXACT,
    FOREIGN,
    KINDS,
    RESULT,
    ROUND_DOWN,
    ROUND_UP,
    Cell,
    Form,
    Mismatch,
    VerifyError,
    due_by,
    mismatch_order,
    open_expiries,
    row_of,
    verify_cell,
    warm,
)
from compare.pipeline.results import Results, open_results
from compare.spark.progress import progress
from compare.spark.session import cores, plain_failures, spark_session
from compare.spark.tasks import in_tasks
from compare.tapes.tape import ARM, CANCEL, REARM, START
from compare.tapes.trace import SCHEMA, shard_name
from timers.limits import LIMIT
from timers.rounding import Rounding

METHODS = ("merge", "join")
_ROWS_PER_PARTITION = 1 << 22
"""Rows of a partition that is sorted: some 200 MB, which fit in a core's share of 2 GB."""


@dataclass(frozen=True)
class Verdict:
    """What came of one timer, all shards together."""

    timer: str  # its label
    expected: int  # timers that had to fire
    fired: int  # rows that it fired
    counts: Mapping[str, int]  # mismatches by kind; each of KINDS is there
    examples: tuple[Mismatch, ...]  # the lowest of each kind, in the order of shard and operation

    @property
    def mismatches(self) -> int:
        """All kinds together."""
        return sum(self.counts.values())


@dataclass(frozen=True)
class Verification:
    """What came of all timers, in the order of the results."""

    path: Path
    method: str
    unit: str
    operations: int  # of the trace
    shards: int
    timers: tuple[Verdict, ...]

    @property
    def right(self) -> bool:
        """Whether there is no mismatch."""
        return not any(verdict.mismatches for verdict in self.timers)


def verify(
    results: str | os.PathLike[str],
    *,
    method: str = "merge",
    examples: int = 5,
    master: str | None = None,
    session: SparkSession | None = None,
) -> Verification:
    """Hold all that a grid replay fired against what the trace says that it had to fire.

    Counts every mismatch by timer and kind (`compare.oracle.merge.KINDS`), and tells `examples`
    of each. `method` is "merge" or "join"; both find the same. Raises a TimerError in one line for
    results that cannot be verified.
    """
    if method not in METHODS:
        raise VerifyError(f"there is no method {method!r}; there are {', '.join(METHODS)}")
    opened = open_results(results)
    if not opened.manifest["expiries"]:
        raise VerifyError(
            f"{results} has no expiries to verify, only summaries: replay again and keep them"
        )
    for timer, shard in opened.replays():
        if not opened.expiries_file(timer, shard).is_file():
            raise VerifyError(f"{opened.expiries_file(timer, shard)} does not exist")
    if method == "join":
        _check_files(opened)
    else:
        warm()
    work = _merge if method == "merge" else _join
    with (
        spark_session(master, session) as spark,
        plain_failures(f"{opened.path} cannot be verified"),
        progress(spark, "verify"),
    ):
        verdicts = tuple(work(spark, opened, examples))
    totals = opened.trace.totals
    return Verification(
        opened.path, method, opened.trace.unit, totals["rows"], len(opened.trace.shards), verdicts
    )


def form_of(timer: Contestant) -> Form:
    """The closed form by which a timer fires."""
    rounding = timer.rounding
    if isinstance(rounding, Rounding):
        return Form(rounding.direction, rounding.tick)
    return Form(FOREIGN, 1, timer.name, tuple(timer.parameters.items()))


# ---- merge
# --------------------------------------------------------------------------------------------------------


def _merge(spark: SparkSession, results: Results, examples: int) -> Iterator[Verdict]:
    """One task for some cells each; only counts and examples travel through Spark."""
    forms = [form_of(timer) for timer in results.contestants]
    cells = [
        Cell(
            timer,
            shard,
            str(results.trace.path.resolve()),
            results.manifest["trace"]["digest"],
            str(results.expiries_file(timer, shard).resolve()),
            forms[timer],
            results.manifest["drained"],
            examples,
        )
        for timer, shard in results.replays()
    ]
    done = in_tasks(
        spark, len(cells), lambda number: row_of(verify_cell(cells[number])), RESULT
    ).collect()
    for timer, contestant in enumerate(results.contestants):
        rows = [row for row in done if row["timer"] == timer]
        found = [Mismatch(**example.asDict()) for row in rows for example in row["examples"]]
        counts = [sum(row["counts"][kind] for row in rows) for kind in range(len(KINDS))]
        yield Verdict(
            contestant.label,
            sum(row["expected"] for row in rows),
            sum(row["fired"] for row in rows),
            dict(zip(KINDS, counts, strict=True)),
            _lowest(found, examples),
        )


def _lowest(found: Sequence[Mismatch], examples: int) -> tuple[Mismatch, ...]:
    """The lowest of each kind."""
    ordered = sorted(found, key=mismatch_order)
    kept = [
        [mismatch for mismatch in ordered if mismatch.kind == kind][:examples] for kind in KINDS
    ]
    return tuple(sorted((mismatch for of_kind in kept for mismatch in of_kind), key=mismatch_order))


# ---- join
# ---------------------------------------------------------------------------------------------------------


def _join(spark: SparkSession, results: Results, examples: int) -> Iterator[Verdict]:
    """Expected and fired, side by side: the operations are sorted by id, and both sides by
    operation.
    """
    for timer in range(len(results.contestants)):
        yield _join_timer(spark, results, timer, examples)


def _join_timer(spark: SparkSession, results: Results, timer: int, examples: int) -> Verdict:
    trace = results.trace
    contestant = results.contestants[timer]
    partitions = max(trace.totals["rows"] // _ROWS_PER_PARTITION, cores(spark))
    tape = operations(spark, results)
    expected = must_fire(tape, form_of(contestant), partitions, rearms=trace.totals["rearms"] > 0)
    if not results.manifest["drained"]:
        expected = _due_in_time(spark, results, expected)
    fired = expiries(spark, results, timer)
    wrong = mismatches(expected, fired, partitions).persist()
    try:
        counts = dict.fromkeys(KINDS, 0)
        rows = timers = 0
        sums = (
            "count(*) AS number",
            "count(fired_at) AS fired",
            "count_if(is_first AND expected IS NOT NULL) AS timers",
        )
        for of_kind in wrong.groupBy("kind").agg(*map(F.expr, sums)).collect():
            rows, timers = rows + of_kind["fired"], timers + of_kind["timers"]
            if of_kind["kind"] is not None:
                counts[of_kind["kind"]] = of_kind["number"]
        found = _examples(tape, wrong, examples) if any(counts.values()) else []
    finally:
        wrong.unpersist()
    all_rows = sum(
        _rows_of(results.expiries_file(timer, shard)) for shard in range(len(trace.shards))
    )
    # What is not wrong is a right row each of a timer that had to fire.
    return Verdict(
        contestant.label, all_rows - rows + timers, all_rows, counts, _lowest(found, examples)
    )


def operations(spark: SparkSession, results: Results) -> DataFrame:
    """The trace's files as (shard, operation, time, op, id, deadline); `operation` is the row in
    the shard's file.
    """
    trace = results.trace
    files = [str(trace.path.resolve() / shard.file) for shard in trace.shards]
    rows = _read(spark, files, "time BIGINT, op TINYINT, id INT, deadline BIGINT")
    return rows.selectExpr(
        _shard_of(trace.path, files),
        "_metadata.row_index AS operation",
        "time",
        "op",
        "id",
        "deadline",
    )


def expiries(spark: SparkSession, results: Results, timer: int) -> DataFrame:
    """What a timer fired as (shard, operation, said, fired_at); `said` is the deadline."""
    shards = range(len(results.trace.shards))
    files = [str(results.expiries_file(timer, shard).resolve()) for shard in shards]
    rows = _read(spark, files, ", ".join(f"{name} BIGINT" for name in COLUMNS))
    return rows.selectExpr(
        _shard_of(results.path, files), "operation", "deadline AS said", "fired_at"
    )


def must_fire(tape: DataFrame, form: Form, partitions: int, *, rearms: bool = True) -> DataFrame:
    """The oracle: (shard, operation, id, deadline, expected) of each arming that fires, `expected`
    being when.

    Of rows as those of `operations`, in whatever order. `rearms`: whether some may be re-arms.
    """
    by_id = "PARTITION BY shard, id ORDER BY operation"
    so_far = f"{by_id} ROWS UNBOUNDED PRECEDING"
    rows = with_due(tape, form).repartition(partitions, "shard", "id")
    rows = rows.selectExpr(
        "*",
        f"lead(op) OVER ({by_id}) AS next_op",
        f"lead(time) OVER ({by_id}) AS next_time",
        *(
            [f"lag(op) OVER ({by_id}) AS last_op", f"lag(due) OVER ({by_id}) AS last_due"]
            if rearms
            else []
        ),
    )
    if rearms:
        # Whether every re-arm since the last start or arm has found its timer pending.
        is_broken = f"op = {REARM} AND NOT coalesce(last_op <> {CANCEL} AND last_due > time, FALSE)"
        rows = rows.selectExpr("*", f"count_if({is_broken}) OVER ({so_far}) AS broken")
        rows = rows.selectExpr(
            "*", f"max(IF(op IN ({START}, {ARM}), broken, NULL)) OVER ({so_far}) AS broken_before"
        )
        arms = f"op IN ({START}, {ARM}) OR op = {REARM} AND broken = broken_before"
    else:
        arms = f"op IN ({START}, {ARM})"
    ended = f"next_op <> {START} AND next_time < due"
    return rows.where(f"({arms}) AND NOT coalesce({ended}, FALSE)").selectExpr(
        "shard", "operation", "id", "deadline", "due AS expected"
    )


def mismatches(expected: DataFrame, fired: DataFrame, partitions: int) -> DataFrame:
    """Everything that is not one right row of one timer, with its `kind`, and `is_first` among the
    rows of its timer.

    One of several rows may be right; it is there, too, and its kind is null.
    """
    by_operation = "PARTITION BY shard, operation"
    # Counted before the join, where the rows are ordered as the join needs them.
    fired = fired.repartition(partitions, "shard", "operation").selectExpr(
        "*", f"count(*) OVER ({by_operation}) AS times"
    )
    expected = expected.repartition(partitions, "shard", "operation")
    is_right = (
        "expected IS NOT NULL AND fired_at IS NOT NULL AND fired_at = expected AND said = deadline"
    )
    rows = expected.join(fired, ["shard", "operation"], "full_outer").selectExpr(
        "*", f"({is_right}) AS is_right"
    )
    rows = rows.where("NOT (is_right AND times = 1)").selectExpr(
        "*",
        f"row_number() OVER ({by_operation} ORDER BY is_right DESC, fired_at, said) = 1 AS is_first",
    )
    kind = """CASE WHEN fired_at IS NULL THEN 'missing'
        WHEN expected IS NULL THEN 'spurious'
        WHEN NOT is_first THEN 'double'
        WHEN fired_at < expected THEN 'early'
        WHEN fired_at > expected THEN 'late'
        WHEN said <> deadline THEN 'altered' END AS kind"""
    return rows.selectExpr("*", kind)


def _examples(tape: DataFrame, wrong: DataFrame, examples: int) -> list[Mismatch]:
    order = "PARTITION BY kind ORDER BY shard, operation, fired_at, said"
    lowest = wrong.where("kind IS NOT NULL").selectExpr(
        "*", f"row_number() OVER ({order}) AS number"
    )
    rows = lowest.where(f"number <= {examples}").drop("id", "deadline")
    # What the tape says, also where nothing was expected.
    rows = tape.select("shard", "operation", "id", "deadline").join(
        F.broadcast(rows), ["shard", "operation"], "right"
    )
    return [
        Mismatch(**{name: row[name] for name in Mismatch.__dataclass_fields__})
        for row in rows.collect()
    ]


def _due_in_time(spark: SparkSession, results: Results, expected: DataFrame) -> DataFrame:
    """Of a run that was not drained: what is due by the last operation, which is followed by no
    advance itself.
    """
    shards = results.trace.shards
    ends = [(number, shard.rows - 1, shard.last_time or 0) for number, shard in enumerate(shards)]
    last = spark.createDataFrame(ends, "shard BIGINT, last BIGINT, last_time BIGINT")
    kept = expected.join(F.broadcast(last), "shard").where(
        "expected <= last_time AND operation <> last"
    )
    return kept.drop("last", "last_time")


def with_due(tape: DataFrame, form: Form) -> DataFrame:
    """The operations and `due`: the closed form, in integers that never leave int64; of a cancel it
    means nothing.
    """
    tick = f"{form.tick}L"
    sql = {
        EXACT: "greatest(deadline, time)",
        ROUND_DOWN: f"greatest(deadline - deadline % {tick}, time)",
        ROUND_UP: f"IF(deadline <= time, time, least(deadline - deadline % {tick}, {LIMIT}L - {tick}) + {tick})",
    }
    if form.kind in sql:
        return tape.selectExpr("*", f"{sql[form.kind]} AS due")

    def add_due(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        due_at = due_by(form)
        for batch in batches:
            deadline, time = (batch.column(name).to_numpy() for name in ("deadline", "time"))
            yield batch.append_column("due", pa.array(due_at(deadline, time)))

    schema = ", ".join(f"{name} {kind}" for name, kind in tape.dtypes)
    return tape.mapInArrow(add_due, f"{schema}, due bigint")


def _read(spark: SparkSession, files: Sequence[str], schema: str) -> DataFrame:
    # A damaged byte is an error and not another number.
    reader = spark.read.schema(schema).option("parquet.page.verify-checksum.enabled", "true")
    # Spark takes brackets and stars for patterns.
    return reader.parquet(*("file:" + re.sub(r"[][{}*?\\]", r"\\\g<0>", file) for file in files))


def _shard_of(path: Path, files: Sequence[str]) -> str:
    """The shard as an SQL expression of the file's name."""
    for number, file in enumerate(files):
        if Path(file).name != shard_name(number):
            raise VerifyError(
                f"shard {number} of {path} is {Path(file).name}; the join takes only {shard_name(number)}"
            )
    return "CAST(substring(_metadata.file_name, 7, 5) AS BIGINT) AS shard"


def _check_files(results: Results) -> None:
    """What Spark would take for rows of nulls, or for fewer rows, is an error."""
    trace = results.trace
    for shard in trace.shards:
        path = trace.path / shard.file
        with parquet_errors(path, VerifyError), pq.ParquetFile(path) as file:
            fits = file.schema_arrow.equals(SCHEMA) and file.metadata.num_rows == shard.rows
        if not fits:
            raise VerifyError(f"{path} is not what the trace's manifest says of it")
    for cell in results.replays():
        _rows_of(results.expiries_file(*cell))


def _rows_of(expiries_file: Path) -> int:
    with open_expiries(expiries_file) as file:
        return int(file.metadata.num_rows)
