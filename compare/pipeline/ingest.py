"""Turn a log into a trace: read it, interpret each row, sort, and write tapes.

Each stage is a function from rows to rows. Spark does the work that grows with the log. One task
makes a shard's tape from its sorted rows.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from compare.files import CANNOT_WRITE, errors_as
from compare.logs.head import LogError
from compare.logs.parsing import DECIMAL, FORMS, FRACTION_DIGITS, read_duration, read_time
from compare.logs.readers import (
    READERS,
    SAMPLE,
    Log,
    ParquetLog,
    Roles,
    first_form,
    from_lines,
    inspect,
)
from compare.pipeline.shards import RESULT, UNNUMBERED, write_shards
from compare.spark.progress import progress
from compare.spark.session import (
    PipelineError,
    failure,
    is_local,
    plain_failures,
    spark_session,
)
from compare.tapes.trace import (
    MAX_SHARDS,
    REJECTED,
    Shard,
    ShardWriter,
    Trace,
    new_trace,
    open_trace,
    shard_name,
)
from compare.tapes.units import EXPONENTS, TAPE_UNITS, parse_duration
from timers import LIMIT, TimerError

_EXAMPLES = 5
"""The number of rejected rows that are shown."""
_QUOTE = 40
"""The number of characters of a bad value that are shown."""
_SMALL = 1 << 23
_SMALL_COMPRESSED = 1 << 20
"""The bytes of a plain and of a compressed log below which one task is faster than several."""


class IngestError(TimerError, ValueError):
    """A log cannot be turned into a trace as asked."""


@dataclass(frozen=True)
class Options:
    """How a log is read.

    Raises:
        IngestError: if a choice does not exist.
    """

    time: str  # the column of the time
    unit: str = "ms"  # of the tape
    format: str = "auto"  # or the name of a reader
    time_format: str = "auto"  # or one of FORMS
    shards: int = 1
    strict: bool = False  # whether a row that is left out is an error
    unique: str | None = None  # a column; a row with the text of an earlier row is a duplicate
    in_order_within: str | None = None  # such as "10s"; a row further behind is late
    force: bool = False  # whether a trace that exists is replaced
    master: str | None = None  # Spark's; all cores of this machine if none is given

    def __post_init__(self) -> None:
        _check_choice("unit", self.unit, TAPE_UNITS)
        _check_choice("format", self.format, ("auto", *READERS))
        _check_choice("time format", self.time_format, ("auto", *FORMS))
        if not 1 <= self.shards <= MAX_SHARDS:
            raise IngestError(f"{self.shards} shards; there can be 1 to {MAX_SHARDS}")
        if self.in_order_within is not None:
            parse_duration(self.in_order_within, self.unit)


UNREADABLE, DUPLICATE, LATE = "unreadable", "duplicate", "late"
"""Why a row is rejected."""


class Ingested(NamedTuple):
    """The result of an ingestion. The rejected rows are in the table `trace.rejected`."""

    trace: Trace
    rows: int
    unreadable: int
    duplicate: int
    late: int
    examples: tuple[str, ...]  # the first rejected rows, as in "line 7: time 'x' is not iso"


class _Recipe(NamedTuple):
    """What distinguishes the kinds of ingestion."""

    kind: str
    roles: Roles
    patience: int  # units: the timeout, or the idle period
    # the rows of a reader and the time format -> rows to write
    interpret: Callable[[DataFrame, str], DataFrame]
    source: Mapping[str, Any]  # for the manifest


def ingest_requests(
    log: str | os.PathLike[str],
    out: str | os.PathLike[str],
    options: Options,
    *,
    duration: str,
    timeout: str,
    duration_unit: str = "s",
    time_is: str = "start",
    session: SparkSession | None = None,
) -> Ingested:
    """Turn a log of requests into a trace.

    Each row starts a timer, and cancels it at its end if the answer came in time.

    `duration` is the column of the time from start to end; no value means that no answer came.
    Numbers in it without a unit are in `duration_unit`. `timeout` is a text such as "5s". `time_is`
    says what the time column has, "start" or "end". `log` is a path, or a URI that Spark can read.
    O(n log n).

    Raises:
        TimerError: if anything is wrong; nothing is left behind then.
    """
    _check_choice("duration unit", duration_unit, EXPONENTS)
    _check_choice("time-is", time_is, ("start", "end"))
    patience = parse_duration(timeout, options.unit)
    interpret = partial(
        request_rows,
        options=options,
        timeout=patience,
        duration_unit=duration_unit,
        time_is=time_is,
    )
    source = {"timeout": timeout, "time_is": time_is, "duration_unit": duration_unit}
    roles = {"time": options.time, "duration": duration}
    if options.unique is not None:
        roles["unique"] = options.unique
    return _ingest(
        log, out, options, _Recipe("requests", roles, patience, interpret, source), session
    )


def ingest_touches(
    log: str | os.PathLike[str],
    out: str | os.PathLike[str],
    options: Options,
    *,
    key: str,
    idle: str,
    session: SparkSession | None = None,
) -> Ingested:
    """Turn a log of touches into a trace; see `ingest_requests`.

    Each row re-arms the timer of its key, to fire after an idle period such as "30s".
    """
    patience = parse_duration(idle, options.unit)
    interpret = partial(touch_rows, options=options, idle=patience)
    roles = {"time": options.time, "key": key}
    if options.unique is not None:
        roles["unique"] = options.unique
    recipe = _Recipe("touches", roles, patience, interpret, {"idle": idle})
    return _ingest(log, out, options, recipe, session)


def request_rows(
    rows: DataFrame, form: str, *, options: Options, timeout: int, duration_unit: str, time_is: str
) -> DataFrame:
    """Interpret requests: `start` and, if the answer came within `timeout` units, `end`.

    Both are rounded down to a unit. `problem` says what is wrong with a row, or is null.
    """
    unit = options.unit
    rows = rows.selectExpr("*", "time AS time_text", "duration AS duration_text")
    rows = read_duration(read_time(rows, "time", form, unit), "duration", duration_unit, unit)
    start, end = "time", "time + duration"
    if time_is == "end":
        # Rounded up: to subtract a little less could lift the start to the next unit.
        up = f"CAST(duration + IF(duration_more, 1e-{FRACTION_DIGITS}BD, 0) AS {DECIMAL})"
        start, end = f"floor(time - {up})", "time"
    rows = rows.selectExpr(
        "*",
        f"try_cast({start} AS BIGINT) AS start",
        f"try_cast({end} AS BIGINT) AS answer",
        f"IF(try_subtract(answer, start) < {timeout}, answer, NULL) AS end",
    )
    problems = {
        **_time_problems(form, unit),
        "duration_text IS NOT NULL AND duration IS NULL": (
            "duration",
            "is not a number in range",
        ),
        "duration_negative": ("duration", "is negative"),
        f"duration_text IS NULL AND '{time_is}' = 'end'": "it has no duration to tell its start",
        **_start_problems(timeout, unit),
    }
    texts = {"time": "time_text", "duration": "duration_text"}
    return _interpreted(
        rows, problems, texts, _shard(options, "time_text, duration_text"), "start", "end"
    )


def touch_rows(rows: DataFrame, form: str, *, options: Options, idle: int) -> DataFrame:
    """Interpret touches: `start`, the time rounded down to a unit, and `key`, as bytes.

    `problem` says what is wrong with a row, or is null.
    """
    rows = read_time(rows.selectExpr("*", "time AS time_text"), "time", form, options.unit)
    problems = {
        **_time_problems(form, options.unit),
        "key IS NULL": "it has no key",
        **_start_problems(idle, options.unit),
    }
    rows = rows.selectExpr("*", "try_cast(time AS BIGINT) AS start")
    # Not every key is UTF-8, and Python strings must be.
    texts = {"time": "time_text", "key": "key"}
    return _interpreted(
        rows, problems, texts, _shard(options, "key"), "start", "CAST(key AS BINARY) AS key"
    )


def write_tapes(
    rows: DataFrame, recipe_kind: str, patience: int, shards: int, directory: Path, *, small: bool
) -> tuple[list[Shard], int]:
    """Sort rows and write one file per shard, and one for the rejected rows.

    Returns the manifest's entries, in order, and the number of rejected rows. One pass over the
    log. With `small` the rows are written by this process.
    """
    value = "end" if "end" in rows.columns else "key"
    rejected = (
        "to_json(struct(block, index, kind, problem, texts.*), map('ignoreNullFields', 'false'))"
    )
    divided = rows.selectExpr(
        f"IF(kind IS NULL, shard, {shards}) AS shard",
        "IF(kind IS NULL, start, NULL) AS start",
        f"IF(kind IS NULL, {value}, NULL) AS {value}",
        "block + index AS position",
        f"IF(kind IS NULL, NULL, CAST({rejected} AS BINARY)) AS rejected",
    )
    order = ("shard", "start", "position")

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with errors_as(PipelineError, f"{CANNOT_WRITE} to {directory.parent}"):
            yield from write_shards(
                batches, kind=recipe_kind, directory=directory, patience=patience, shards=shards
            )

    if small:
        # One task, and no Python workers, which take two seconds to start.
        entries = write(divided.coalesce(1).sortWithinPartitions(*order).toArrow().to_batches())
    else:
        ordered = _partition_by_shard(divided, shards + 1).sortWithinPartitions(*order)
        entries = iter(ordered.mapInArrow(write, RESULT).toArrow().to_batches())
    written = {row.pop("number"): Shard(**row) for batch in entries for row in batch.to_pylist()}
    left_out = written.pop(shards, None)
    for number in set(range(shards)) - written.keys():
        # The hash left it without a row.
        with ShardWriter(directory / shard_name(number)) as writer:
            pass
        written[number] = writer.shard(id_space=0)
    return [written[number] for number in range(shards)], left_out.rows if left_out else 0


def _partition_by_shard(rows: DataFrame, shards: int) -> DataFrame:
    """One partition per shard; before Spark 4.1 some shards share a partition."""
    if hasattr(rows, "repartitionById"):
        return rows.repartitionById(shards, "shard")
    return rows.repartition(shards, "shard")


def _ingest(
    log: str | os.PathLike[str],
    out: str | os.PathLike[str],
    options: Options,
    recipe: _Recipe,
    session: SparkSession | None,
) -> Ingested:
    name = os.fspath(log)
    source = {"kind": recipe.kind, "log": name.rstrip("/").rpartition("/")[2]}
    with new_trace(out, unit=options.unit, source=source, force=options.force) as unfinished:
        # Before Spark starts, which takes seconds.
        found, compressed = (None, False) if "://" in name else inspect(Path(name), options.format)
        if found is not None:
            _check_columns(found, recipe.roles)
        small = found is not None and Path(name).stat().st_size < (
            _SMALL_COMPRESSED if compressed else _SMALL
        )
        with (
            spark_session(options.master, session, brief=small) as spark,
            plain_failures(f"{name}: the Spark job failed"),
            _readable(name, compressed),
            _reachable(name, compressed, spark) as uri,
        ):
            if found is None:
                found = _look(spark, uri, options.format)
                _check_columns(found, recipe.roles)
            rows = found.rows(spark, uri, recipe.roles)
            _check_presence(rows, found, recipe.roles)
            form = _time_form(rows, found, options)
            checked = reject_rows(recipe.interpret(rows, form), options)
            with progress(spark, "ingest"):
                shards, left_out = write_tapes(
                    checked,
                    recipe.kind,
                    recipe.patience,
                    options.shards,
                    unfinished.directory,
                    small=small,
                )
            unfinished.shards += shards
            counts = _counts(shards, left_out, found, spark, uri, unfinished.directory)
            _check_counts(counts, name, options.strict)
        bound = {"in_order_within": options.in_order_within} if options.in_order_within else {}
        unfinished.source |= {
            "format": found.format,
            "columns": dict(recipe.roles),
            "time_format": form,
            **bound,
            **recipe.source,
            **counts._asdict(),
        }
    return Ingested(open_trace(out), *counts)


class _Counts(NamedTuple):
    rows: int
    unreadable: int
    duplicate: int
    late: int
    examples: tuple[str, ...]

    @property
    def left_out(self) -> int:
        return self.unreadable + self.duplicate + self.late


def _counts(
    shards: list[Shard], left_out: int, found: Log, session: SparkSession, uri: str, directory: Path
) -> _Counts:
    """Count the rows and the rejected rows, and describe the first of these."""
    rows = sum(shard.starts + shard.arms for shard in shards) + left_out
    if not left_out:
        return _Counts(rows, 0, 0, 0, ())
    by_kind: Counter[str] = Counter()
    examples: list[str] = []
    for number, kind, problem in _numbered_rejects(found, session, uri, directory):
        by_kind[kind] += 1
        if len(examples) < _EXAMPLES:
            examples.append(f"{found.record} {number}: {_printable(problem)}")
    return _Counts(rows, by_kind[UNREADABLE], by_kind[DUPLICATE], by_kind[LATE], tuple(examples))


def _numbered_rejects(
    found: Log, session: SparkSession, uri: str, directory: Path
) -> Iterator[tuple[int, str, str]]:
    """Write the rejected rows with their numbers in the log; yield (number, kind, problem)."""
    with pq.ParquetFile(directory / UNNUMBERED) as file:
        last = file.read(["block"])["block"].to_numpy().max()
        numbering = found.numbering(session, uri, int(last))
        schema = pa.schema([pa.field(found.record, pa.int64()), *list(file.schema_arrow)[2:]])
        with pq.ParquetWriter(directory / REJECTED, schema, compression="zstd") as writer:
            for batch in file.iter_batches():
                blocks, indices, *others = batch.columns
                numbers = numbering(blocks.to_numpy(), indices.to_numpy())
                writer.write_batch(pa.record_batch([pa.array(numbers), *others], schema=schema))
                yield from zip(
                    numbers.tolist(), others[0].to_pylist(), others[1].to_pylist(), strict=True
                )


def _check_counts(counts: _Counts, name: str, strict: bool) -> None:
    if not counts.rows:
        raise IngestError(f"{name} has no rows")
    if counts.left_out == counts.rows:
        raise IngestError(
            f"none of the {counts.rows} rows of {name} can be read; {counts.examples[0]}"
        )
    if strict and counts.left_out:
        why = "cannot be read" if counts.left_out == counts.unreadable else "cannot be used"
        raise IngestError(
            f"{counts.left_out} of the {counts.rows} rows of {name} {why};"
            f" {'; '.join(counts.examples)}"
        )


def _time_form(rows: DataFrame, found: Log, options: Options) -> str:
    """The time format: that of the column's type, the given one, or that of the first value."""
    implied = found.implied_form(options.time)
    if implied is not None:
        if options.time_format not in ("auto", implied):
            raise IngestError(
                f"{found.name}: column {options.time!r} holds timestamps, so its time format"
                f" cannot be {options.time_format}"
            )
        return implied
    if options.time_format != "auto":
        return options.time_format
    form = first_form(found, rows, options.time)
    if form is None:
        value = rows.where(F.col("time").isNotNull()).select("time").first()
        if value is None:
            raise IngestError(f"{found.name} has no row with a time in column {options.time!r}")
        raise IngestError(
            f"{found.name}: {_printable(value[0][:_QUOTE])!r} in column {options.time!r} is not a"
            f" time in a known format ({', '.join(FORMS)})"
        )
    return form


Problems = Mapping[str, str | tuple[str, str]]
"""Condition in SQL -> the problem of a row where it holds, or (the column, its problem)."""


def _time_problems(form: str, unit: str) -> Problems:
    """The problems of a row before its start is known."""
    return {
        "time_text IS NULL": "it has no time",
        "time IS NULL": ("time", f"is not {form} or is out of range"),
        "time_negative": ("time", "is before 1970"),
        "time_more": ("time", f"has more than {FRACTION_DIGITS} digits after the {unit}"),
    }


def _start_problems(patience: int, unit: str) -> Problems:
    """The problems of a row whose start is known."""
    return {
        "start IS NULL OR start < 0": "it started before 1970",
        f"start > {LIMIT - patience}": f"its deadline would be beyond 2**63 - 1 {unit}",
    }


def _interpreted(
    rows: DataFrame, problems: Problems, texts: Mapping[str, str], *columns: str
) -> DataFrame:
    """Select `columns`, the position of each row, `at`, its time, and `problem`, its first problem.

    `texts` are the names and columns that are kept of a rejected row.
    """
    whens = ["WHEN fault IS NOT NULL THEN fault"]
    for condition, problem in problems.items():
        if isinstance(problem, tuple):
            name, complaint = problem
            text = f"concat('{name} \\'', left({name}_text, {_QUOTE}), '\\' {complaint}')"
        else:
            text = f"'{problem}'"
        whens.append(f"WHEN {condition} THEN {text}")
    kept = ", ".join(f"'{name}', CAST({column} AS STRING)" for name, column in texts.items())
    unique = ["unique"] if "unique" in rows.columns else []
    return rows.selectExpr(
        "block",
        "index",
        f"CASE {' '.join(whens)} END AS problem",
        "try_cast(time AS BIGINT) AS at",
        *unique,
        *columns,
        f"named_struct({kept}) AS texts",
    )


def reject_rows(understood: DataFrame, options: Options) -> DataFrame:
    """Set `kind` to UNREADABLE, DUPLICATE or LATE, or to null; `problem` has the details."""
    rows = understood.withColumn("kind", F.when(F.col("problem").isNotNull(), UNREADABLE))
    if options.in_order_within is not None:
        rows = _reject_late(
            rows, parse_duration(options.in_order_within, options.unit), options.unit
        )
    if options.unique is not None:
        rows = _reject_duplicates(rows, options.unique)
    return rows


def _reject_late(rows: DataFrame, bound: int, unit: str) -> DataFrame:
    """Reject rows whose time is more than `bound` behind the latest time before them in the log."""
    times = F.when(F.col("kind").isNull(), F.col("at"))
    blocks = rows.groupBy("block").agg(F.max(times).alias("latest"))
    # One row per block: few enough for a single task.
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
    """Reject rows whose text in the column `unique` an earlier row of the log has as well."""
    first = Window.partitionBy("unique", "group").orderBy("block", "index")
    # Rows that cannot be duplicates are spread, or they would be one large group.
    has_text = F.col("kind").isNull() & F.col("unique").isNotNull()
    rows = rows.withColumn("group", F.when(~has_text, F.col("block") + F.col("index"))).withColumn(
        "before", F.row_number().over(first) - 1
    )
    is_duplicate = has_text & (F.col("before") > 0)
    quoted = F.concat(F.lit("'"), F.left("unique", F.lit(_QUOTE)), F.lit("'"))
    problem = F.concat(F.lit(f"{_printable(name)} "), quoted, F.lit(" is that of an earlier row"))
    return _mark(rows, is_duplicate, DUPLICATE, problem).drop("group", "before")


def _mark(rows: DataFrame, condition: Column, kind: str, problem: Column) -> DataFrame:
    return rows.withColumns(
        {
            "kind": F.when(condition, kind).otherwise(F.col("kind")),
            "problem": F.when(condition, problem).otherwise(F.col("problem")),
        }
    )


def _shard(options: Options, columns: str) -> str:
    """The shard of a row, from a hash that does not depend on the machine or the partitions."""
    number = f"pmod(xxhash64({columns}), {options.shards})" if options.shards > 1 else "0"
    return f"CAST({number} AS INT) AS shard"


def _check_choice(what: str, value: str, choices: Iterable[str]) -> None:
    if value not in choices:
        raise IngestError(f"{what} {value!r} is not one of {', '.join(choices)}")


def _check_columns(found: Log, roles: Roles) -> None:
    for name in roles.values():
        if found.columns.count(name) > 1:
            raise IngestError(
                f"{found.name} has {found.columns.count(name)} columns named {name!r}"
            )
        if name not in found.columns and not found.columns_vary:
            raise _no_column(found, name)


def _check_presence(rows: DataFrame, found: Log, roles: Roles) -> None:
    """Raise IngestError for a column that no record has, if the head could not tell."""
    for role, name in roles.items():
        if name not in found.columns and not rows.where(F.col(role).isNotNull()).head(1):
            raise _no_column(found, name)


def _no_column(found: Log, name: str) -> IngestError:
    return IngestError(
        f"{found.name} has no column {name!r}; it has {', '.join(found.columns) or 'none'}"
    )


def _look(session: SparkSession, uri: str, format_: str) -> Log:
    """Read the head of a log that only Spark can reach."""
    files = session.read.text(uri).inputFiles()
    if len(files) != 1:
        raise LogError(f"{uri} is {len(files)} files; a log is one")
    if format_ == ParquetLog.format or (format_ == "auto" and uri.endswith(".parquet")):
        return ParquetLog.open(uri, uri)
    lines = session.read.text(uri).limit(SAMPLE).collect()
    return from_lines(uri, [line["value"] for line in lines], format_)


@contextmanager
def _reachable(name: str, compressed: bool, session: SparkSession) -> Iterator[str]:
    """The URI by which Spark can read the log."""
    if "://" in name:
        yield name
    elif not is_local(session):
        # All machines must see the same path. Its ending tells Spark whether it is compressed.
        yield f"file:{Path(name).absolute()}"
    else:
        # A link, because Spark takes brackets and stars for patterns, ignores names that begin with
        # a dot or an underscore, and recognizes compression by the ending.
        with tempfile.TemporaryDirectory(prefix="wheelwork-") as directory:
            link = Path(directory, "log.gz" if compressed else "log")
            link.symlink_to(Path(name).absolute())
            yield f"file:{link}"


@contextmanager
def _readable(name: str, compressed: bool) -> Iterator[None]:
    """Name the log in the error if Spark fails to read it."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        if "FAILED_READ_FILE" not in str(error):
            raise
        what = "is damaged: its gzip data" if compressed else "cannot be read:"
        raise LogError(f"{name} {what} {failure(error)}") from None


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)
