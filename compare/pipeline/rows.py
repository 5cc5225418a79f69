"""Interpret the rows of a log in SQL, and reject bad ones."""

from collections.abc import Mapping
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from compare.logs.parsing import (
    EPOCHS,
    FRACTION_DIGITS,
    ONE,
    guessed_range,
    read_duration,
    read_time,
)
from timers import LIMIT

UNREADABLE, DUPLICATE, LATE = "unreadable", "duplicate", "late"
"""Why a row is rejected."""

QUOTE = 40
"""Maximum number of characters of a bad value in a message."""


class Form(NamedTuple):
    """A time format, and whether it was guessed from the first value."""

    name: str
    guessed: bool


def request_rows(
    rows: DataFrame,
    form: Form,
    *,
    unit: str,
    shards: int,
    timeout: int,
    duration_unit: str,
    time_is: str,
) -> DataFrame:
    """Interpret requests: `start` and, if the answer came within `timeout` units, `end`.

    Both are rounded down to a unit. `problem` describes what is wrong with a row, or is null.
    """
    rows = rows.selectExpr("*", "time AS time_text", "duration AS duration_text")
    rows = read_duration(read_time(rows, "time", form.name, unit), "duration", duration_unit, unit)
    own: dict[str, Problem] = {
        "duration_text IS NOT NULL AND duration_whole IS NULL": (
            "duration",
            "is not a number in range",
        ),
        "duration_negative": ("duration", "is negative"),
    }
    # The sum of the fractions may cross one more boundary between units.
    start, end = "time_whole", "try_add(time_whole, try_add(duration_whole, crossed))"
    crossed = f"time_fraction + duration_fraction >= {ONE}"
    if time_is == "end":
        own["duration_text IS NULL"] = "it has no duration, so its start is unknown"
        start, end = "time_whole - duration_whole - crossed", "time_whole"
        crossed = "duration_fraction + CAST(duration_more AS INT) > time_fraction"
    rows = rows.selectExpr(
        "*",
        f"CAST({crossed} AS INT) AS crossed",
        f"{start} AS start",
        f"{end} AS answer",
        f"IF(try_subtract(answer, start) < {timeout}, answer, NULL) AS end",
    )
    problems = _problems(form, unit, timeout, own)
    texts = {"time": "time_text", "duration": "duration_text"}
    return _interpreted(
        rows, problems, texts, _shard(shards, "time_text, duration_text"), "start", "end"
    )


def touch_rows(rows: DataFrame, form: Form, *, unit: str, shards: int, timeout: int) -> DataFrame:
    """Interpret touches: `start`, the time rounded down to a unit, and `key`, as bytes.

    `problem` describes what is wrong with a row, or is null.
    """
    rows = read_time(rows.selectExpr("*", "time AS time_text"), "time", form.name, unit)
    problems = _problems(form, unit, timeout, {"key IS NULL": "it has no key"})
    rows = rows.selectExpr("*", "time_whole AS start")
    # A key need not be UTF-8, but Python strings must be.
    texts = {"time": "time_text", "key": "key"}
    return _interpreted(
        rows, problems, texts, _shard(shards, "key"), "start", "CAST(key AS BINARY) AS key"
    )


Problem = str | tuple[str, str]
"""A problem of a row, or (the column, the problem of its value)."""


def _problems(
    form: Form, unit: str, timeout: int, own: Mapping[str, Problem]
) -> dict[str, Problem]:
    """SQL conditions and the problems of rows that satisfy them, in order, including `own`."""
    other: dict[str, Problem] = {}
    if form.guessed and form.name in EPOCHS:
        # Otherwise, milliseconds among seconds would be read as the year 58 000.
        low, high = guessed_range(form.name, unit)
        condition = f"time_whole < {low}" + (f" OR time_whole >= {high}" if high else "")
        other = {condition: ("time", f"is not {form.name}, the format of the first time")}
    return {
        "time_text IS NULL": "it has no time",
        "time_whole IS NULL": ("time", f"is not {form.name} or is out of range"),
        **other,
        "time_negative": ("time", "is before 1970"),
        "time_more": ("time", f"has more than {FRACTION_DIGITS} digits after the {unit}"),
        **own,
        "start IS NULL OR start < 0": "it started before 1970",
        f"start > {LIMIT - timeout}": f"its deadline would be beyond 2**63 - 1 {unit}",
    }


def _interpreted(
    rows: DataFrame, problems: Mapping[str, Problem], texts: Mapping[str, str], *columns: str
) -> DataFrame:
    """Select `columns`, each row's position, its time `at`, and its first `problem`.

    `texts` has the names and columns that are kept of a rejected row.
    """
    whens = ["WHEN fault IS NOT NULL THEN fault"]
    for condition, problem in problems.items():
        if isinstance(problem, tuple):
            name, complaint = problem
            text = f"concat('{name} \\'', left({name}_text, {QUOTE}), '\\' {complaint}')"
        else:
            text = f"'{problem}'"
        whens.append(f"WHEN {condition} THEN {text}")
    strings = ", ".join(f"'{name}', CAST({column} AS STRING)" for name, column in texts.items())
    unique = ["unique"] if "unique" in rows.columns else []
    return rows.selectExpr(
        "block",
        "index",
        f"CASE {' '.join(whens)} END AS problem",
        "time_whole AS at",
        "time_zone",
        *unique,
        *columns,
        f"named_struct({strings}) AS texts",
    )


def _shard(shards: int, columns: str) -> str:
    """The shard of a row: a hash that does not depend on the machine or the partitions."""
    number = f"pmod(xxhash64({columns}), {shards})" if shards > 1 else "0"
    return f"CAST({number} AS INT) AS shard"


def reject_rows(
    rows: DataFrame, unit: str, in_order_within: int | None, unique: str | None
) -> DataFrame:
    """Set `kind` to UNREADABLE, DUPLICATE or LATE, or to null; `problem` has the details."""
    rows = rows.withColumn("kind", F.when(F.col("problem").isNotNull(), UNREADABLE))
    if in_order_within is not None:
        rows = _reject_late(rows, in_order_within, unit)
    if unique is not None:
        rows = _reject_duplicates(rows, unique)
    return rows


def _reject_late(rows: DataFrame, bound: int, unit: str) -> DataFrame:
    """Reject rows that are older than a preceding row by more than `bound`."""
    times = F.when(F.col("kind").isNull(), F.col("at"))
    blocks = rows.groupBy("block").agg(F.max(times).alias("latest"))
    # One row per block is few enough for a single task.
    earlier = Window.orderBy("block").rowsBetween(Window.unboundedPreceding, -1)
    blocks = blocks.select("block", F.max("latest").over(earlier).alias("before_block"))
    within = Window.partitionBy("block").orderBy("index").rowsBetween(Window.unboundedPreceding, -1)
    rows = rows.join(F.broadcast(blocks), "block").withColumn(
        "behind", F.greatest("before_block", F.max(times).over(within)) - F.col("at")
    )
    is_late = F.col("kind").isNull() & (F.col("behind") > bound)
    problem = F.concat(
        F.lit("it is "), F.col("behind").cast("string"), F.lit(f" {unit} behind the rows before it")
    )
    return _mark(rows, is_late, LATE, problem).drop("before_block", "behind")


def _reject_duplicates(rows: DataFrame, name: str) -> DataFrame:
    """Reject rows whose value in the column `unique` has occurred before."""
    first = Window.partitionBy("unique", "group").orderBy("block", "index")
    # Rows that cannot be duplicates are spread; otherwise they would form one large group.
    has_text = F.col("kind").isNull() & F.col("unique").isNotNull()
    rows = rows.withColumn("group", F.when(~has_text, F.col("block") + F.col("index"))).withColumn(
        "before", F.row_number().over(first) - 1
    )
    is_duplicate = has_text & (F.col("before") > 0)
    quoted = F.concat(F.lit("'"), F.left("unique", F.lit(QUOTE)), F.lit("'"))
    problem = F.concat(F.lit(f"{printable(name)} "), quoted, F.lit(" is that of an earlier row"))
    return _mark(rows, is_duplicate, DUPLICATE, problem).drop("group", "before")


def _mark(rows: DataFrame, condition: Column, kind: str, problem: Column) -> DataFrame:
    return rows.withColumns(
        {
            "kind": F.when(condition, kind).otherwise(F.col("kind")),
            "problem": F.when(condition, problem).otherwise(F.col("problem")),
        }
    )


def printable(text: str) -> str:
    """Replace the characters of a log's text that cannot be printed."""
    return "".join(character if character.isprintable() else "?" for character in text)
