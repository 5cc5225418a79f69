"""A log becomes a trace: read, understand each row, order, fold into tapes, write.

Each stage is a function from rows to rows. Spark does all that grows with the log; a shard's tape is folded from its
sorted rows in one task.
"""
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from compare.pipeline.exact import FORMS, FRACTION_DIGITS, ONE, guess_form, read_duration, read_time
from compare.pipeline.readers import READERS, Log, LogError, ParquetLog, Roles, from_lines, inspect
from compare.pipeline.shards import CANNOT_WRITE, RESULT, write_shards
from compare.pipeline.spark import PipelineError, failure, is_local, spark_session
from compare.trace import Shard, ShardWriter, Trace, new_trace, open_trace, shard_name
from compare.units import EXPONENTS, TAPE_UNITS, parse_duration
from timers import LIMIT, TimerError

_EXAMPLES = 5
"""Unreadable rows that are told in full."""
_QUOTE = 40
"""Characters of a bad value that are told."""
_SAMPLE = 1000
"""Rows among which a time must be found whose format is known."""
_BRIEF = 1 << 27
_BRIEF_PACKED = 1 << 24
"""Bytes of a log, and of one packed with gzip, below which a session pays that is ready sooner: about 2 million rows."""
MAX_SHARDS = 100_000
"""A shard's number has five digits in its file's name."""


class IngestError(TimerError, ValueError):
    """A log that cannot be made a trace as asked; one line that says what is wrong, and what would be right."""


@dataclass(frozen=True)
class Options:
    """How a log is read, whatever it is made into. Raises IngestError for a choice that there is not."""

    time: str  # the column of the time
    unit: str = "ms"  # of the tape
    format: str = "auto"  # or the name of a reader
    time_format: str = "auto"  # or one of FORMS
    shards: int = 1
    strict: bool = False  # whether a row that cannot be read is an error
    force: bool = False  # whether a trace that exists is replaced
    master: str | None = None  # Spark's; all cores of this machine if none is given

    def __post_init__(self) -> None:
        _check_choice("unit", self.unit, TAPE_UNITS)
        _check_choice("format", self.format, ("auto", *READERS))
        _check_choice("time format", self.time_format, ("auto", *FORMS))
        if not 1 <= self.shards <= MAX_SHARDS:
            raise IngestError(f"{self.shards} shards; there can be 1 to {MAX_SHARDS}")


class Ingested(NamedTuple):
    """What came of a log."""

    trace: Trace
    rows: int
    unreadable: int
    examples: tuple[str, ...]  # the first of the unreadable rows, as in "line 7: time 'x' is no iso"


class _Recipe(NamedTuple):
    """What distinguishes one kind of ingestion from another."""

    kind: str
    roles: Roles
    patience: int  # units: the timeout, or the idle period
    understand: Callable[[DataFrame, str], DataFrame]  # the readers' rows and the time format -> rows to write
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
    """Make a trace of requests: each row starts a timer, and cancels it at its end if the answer came in time.

    `duration` is the column of the time from start to end (no value: no answer came); its plain numbers are in
    `duration_unit`. `timeout` is a text such as "5s". `time_is` tells which of the two the time column
    holds, "start" or "end". `log` is a path, or a URI that Spark can read. O(n log n).

    Raises a TimerError, in one line, for everything that can be wrong; nothing is left behind then.
    """
    _check_choice("duration unit", duration_unit, EXPONENTS)
    _check_choice("time-is", time_is, ("start", "end"))
    patience = parse_duration(timeout, options.unit)
    understand = partial(
        request_rows, options=options, timeout=patience, duration_unit=duration_unit, time_is=time_is
    )
    source = {"timeout": timeout, "time_is": time_is, "duration_unit": duration_unit}
    roles = {"time": options.time, "duration": duration}
    return _ingest(log, out, options, _Recipe("requests", roles, patience, understand, source), session)


def ingest_touches(
    log: str | os.PathLike[str],
    out: str | os.PathLike[str],
    options: Options,
    *,
    key: str,
    idle: str,
    session: SparkSession | None = None,
) -> Ingested:
    """Make a trace of touches: each row re-arms the timer of its key, to fire after an idle period such as "30s".

    For the rest see `ingest_requests`.
    """
    patience = parse_duration(idle, options.unit)
    understand = partial(touch_rows, options=options, idle=patience)
    recipe = _Recipe("touches", {"time": options.time, "key": key}, patience, understand, {"idle": idle})
    return _ingest(log, out, options, recipe, session)


def request_rows(
    rows: DataFrame, form: str, *, options: Options, timeout: int, duration_unit: str, time_is: str
) -> DataFrame:
    """Understand requests: `start` and, where the answer came within `timeout` units, `end`.

    Both are rounded down to a unit. `problem` says what is wrong with a row, and is null where nothing is.
    """
    unit = options.unit
    rows = rows.selectExpr("*", "time AS time_text", "duration AS duration_text")
    rows = read_duration(read_time(rows, "time", form, unit), "duration", duration_unit, unit)
    if time_is == "start":
        start = "time_whole"
        # Together the fractions may reach one boundary between units more than the wholes do.
        crossed = f"time_fraction + duration_fraction >= {ONE}"
    else:
        start = "try_subtract(time_whole, elapsed)"
        crossed = "duration_fraction > time_fraction OR (duration_fraction = time_fraction AND duration_more)"
    rows = rows.selectExpr(
        "*",
        f"try_add(duration_whole, CAST({crossed} AS BIGINT)) AS elapsed",
        f"{start} AS start",
        f"IF(elapsed < {timeout}, try_add(start, elapsed), NULL) AS end",
    )
    problems = {
        **_time_problems(form, unit),
        "duration_text IS NOT NULL AND duration_whole IS NULL": ("duration", "is no number in range"),
        "duration_negative": ("duration", "is negative"),
        f"duration_text IS NULL AND '{time_is}' = 'end'": "it has no duration to tell its start",
        **_start_problems(timeout, unit),
    }
    return _understood(rows, problems, _shard(options, "time_text, duration_text"), "start", "end")


def touch_rows(rows: DataFrame, form: str, *, options: Options, idle: int) -> DataFrame:
    """Understand touches: `start`, the time rounded down to a unit, and `key`, as bytes.

    `problem` says what is wrong with a row, and is null where nothing is.
    """
    rows = read_time(rows.selectExpr("*", "time AS time_text"), "time", form, options.unit)
    problems = {
        **_time_problems(form, options.unit),
        "key IS NULL": "it has no key",
        **_start_problems(idle, options.unit),
    }
    rows = rows.selectExpr("*", "time_whole AS start")
    # The key as bytes, for not every log is UTF-8, and Python would insist.
    return _understood(rows, problems, _shard(options, "key"), "start", "CAST(key AS BINARY) AS key")


def write_tapes(rows: DataFrame, recipe_kind: str, patience: int, shards: int, directory: Path) -> list[Shard]:
    """Order understood rows, fold them, and write one file per shard; returns the manifest's entries, in order."""
    ordered = (
        rows.withColumn("position", F.col("block") + F.col("index"))
        .drop("block", "index")
        .repartition(shards, "shard")
        .sortWithinPartitions("shard", "start", "position")
    )
    write = partial(write_shards, kind=recipe_kind, directory=str(directory), patience=patience)
    written = {
        row["number"]: Shard(**{name: row[name] for name in Shard.__dataclass_fields__})
        for row in ordered.mapInArrow(lambda batches: write(batches), RESULT).collect()
    }
    for number in set(range(shards)) - written.keys():
        # The hash left it without a row.
        with ShardWriter(directory / shard_name(number)) as writer:
            pass
        written[number] = writer.shard(id_space=0)
    return [written[number] for number in range(shards)]


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
        found, packed = (None, False) if _is_uri(name) else inspect(Path(name), options.format)
        if found is not None:
            _check_columns(found, recipe.roles)
        brief = found is not None and Path(name).stat().st_size < (_BRIEF_PACKED if packed else _BRIEF)
        with (
            spark_session(options.master, session, brief=brief) as spark,
            _plain_failures(name, packed),
            _reachable(name, packed, spark) as uri,
        ):
            if found is None:
                found = _look(spark, uri, options.format)
                _check_columns(found, recipe.roles)
            rows = found.rows(spark, uri, recipe.roles)
            _check_presence(rows, found, recipe.roles)
            form = _time_form(rows, found, options)
            understood = recipe.understand(rows, form)
            seen = Observation()
            readable = (
                understood.observe(seen, F.count(F.lit(1)).alias("rows"), F.count("problem").alias("unreadable"))
                .where(F.col("problem").isNull())
                .drop("problem")
            )
            unfinished.shards += write_tapes(
                readable, recipe.kind, recipe.patience, options.shards, unfinished.directory
            )
            counts = _counts(understood, seen, unfinished.shards, found, spark, uri)
            _check_counts(counts, name, options.strict)
        unfinished.source |= {
            "format": found.format,
            "columns": dict(recipe.roles),
            "time_format": form,
            **recipe.source,
            **counts._asdict(),
        }
    return Ingested(open_trace(out), *counts)


class _Counts(NamedTuple):
    rows: int
    unreadable: int
    examples: tuple[str, ...]


def _counts(
    understood: DataFrame, seen: Observation, shards: list[Shard], found: Log, session: SparkSession, uri: str
) -> _Counts:
    """How many rows there are, how many of them cannot be read, and what is wrong with the first of these."""
    written = sum(shard.starts + shard.arms for shard in shards)
    # Spark drops what was observed of a plan that turns out to have no result.
    rows, unreadable = (seen.get["rows"], seen.get["unreadable"]) if written else (0, 0)
    if not written or rows - unreadable != written:
        # The second: it counts a task twice that it had to do again, since a machine was lost with what it had done.
        again = understood.agg(F.count(F.lit(1)), F.count("problem")).first()
        rows, unreadable = tuple(again) if again else (0, 0)
    if not unreadable:
        return _Counts(rows, 0, ())
    # In the order of the log, since the parts of a file are read in order until there are enough.
    bad = understood.where(F.col("problem").isNotNull()).select("block", "index", "problem").limit(_EXAMPLES)
    first = sorted(tuple(row) for row in bad.collect())
    numbers = found.numbers(session, uri, [(block, index) for block, index, _ in first])
    examples = (
        f"{found.record} {number}: {_printable(problem)}"
        for number, (_, _, problem) in zip(numbers, first, strict=True)
    )
    return _Counts(rows, unreadable, tuple(examples))


def _check_counts(counts: _Counts, name: str, strict: bool) -> None:
    if not counts.rows:
        raise IngestError(f"{name} has no rows")
    if counts.unreadable == counts.rows:
        raise IngestError(f"none of the {counts.rows} rows of {name} can be read; {counts.examples[0]}")
    if strict and counts.unreadable:
        raise IngestError(
            f"{counts.unreadable} of the {counts.rows} rows of {name} cannot be read; {'; '.join(counts.examples)}"
        )


def _time_form(rows: DataFrame, found: Log, options: Options) -> str:
    """The time format: that of the column's type, the one asked for, or that of the first value that has one."""
    implied = found.time_form(options.time)
    if implied is not None:
        if options.time_format not in ("auto", implied):
            raise IngestError(
                f"{found.name}: column {options.time!r} holds timestamps, so that its time format cannot be"
                f" {options.time_format}"
            )
        return implied
    if options.time_format != "auto":
        return options.time_format
    sample = rows.where(F.col("time").isNotNull()).select("time").limit(_SAMPLE).collect()
    forms = (guess_form(row["time"]) for row in sample)
    form = next((form for form in forms if form is not None), None)
    if form is None:
        if not sample:
            raise IngestError(f"{found.name} has no row with a time in column {options.time!r}")
        raise IngestError(
            f"{found.name}: {_printable(sample[0]['time'][:_QUOTE])!r} in column {options.time!r} is no time in a"
            f" known format ({', '.join(FORMS)})"
        )
    return form


Problems = Mapping[str, str | tuple[str, str]]
"""Condition in SQL -> what is wrong with a row where it holds, or (the column that is, and what is)."""


def _time_problems(form: str, unit: str) -> Problems:
    """What can be wrong with a row before its start is known."""
    return {
        "time_text IS NULL": "it has no time",
        "time_whole IS NULL": ("time", f"is no {form} in range"),
        "time_negative": ("time", "is before 1970"),
        "time_more": ("time", f"has more than {FRACTION_DIGITS} digits after the {unit}"),
    }


def _start_problems(patience: int, unit: str) -> Problems:
    """What can be wrong with a row whose start is known."""
    return {
        "start IS NULL OR start < 0": "it started before 1970",
        f"start > {LIMIT - patience}": f"its deadline would be beyond 2**63 - 1 {unit}",
    }


def _understood(rows: DataFrame, problems: Problems, *columns: str) -> DataFrame:
    """The columns given, where each row stands, and `problem`, the first that it has."""
    whens = ["WHEN fault IS NOT NULL THEN fault"]
    for condition, problem in problems.items():
        if isinstance(problem, tuple):
            name, complaint = problem
            text = f"concat('{name} \\'', left({name}_text, {_QUOTE}), '\\' {complaint}')"
        else:
            text = f"'{problem}'"
        whens.append(f"WHEN {condition} THEN {text}")
    return rows.selectExpr("block", "index", f"CASE {' '.join(whens)} END AS problem", *columns)


def _shard(options: Options, columns: str) -> str:
    """Its shard, from a hash that is the same on every machine and for every partitioning."""
    number = f"pmod(xxhash64({columns}), {options.shards})" if options.shards > 1 else "0"
    return f"CAST({number} AS INT) AS shard"


def _check_choice(what: str, value: str, choices: Iterable[str]) -> None:
    if value not in choices:
        raise IngestError(f"{what} {value!r} is none of {', '.join(choices)}")


def _check_columns(found: Log, roles: Roles) -> None:
    for name in roles.values():
        if found.columns.count(name) > 1:
            raise IngestError(f"{found.name} has {found.columns.count(name)} columns named {name!r}")
        if name not in found.columns and not found.columns_vary:
            raise _no_column(found, name)


def _check_presence(rows: DataFrame, found: Log, roles: Roles) -> None:
    """Refuse a column that no record has, where the beginning alone could not tell."""
    for role, name in roles.items():
        if name not in found.columns and not rows.where(F.col(role).isNotNull()).head(1):
            raise _no_column(found, name)


def _no_column(found: Log, name: str) -> IngestError:
    return IngestError(f"{found.name} has no column {name!r}; it has {', '.join(found.columns) or 'none'}")


def _is_uri(name: str) -> bool:
    return "://" in name


def _look(session: SparkSession, uri: str, format_: str) -> Log:
    """Look at the beginning of a log that only Spark can reach."""
    files = session.read.text(uri).inputFiles()
    if len(files) != 1:
        raise LogError(f"{uri} is {len(files)} files; a log is one")
    if format_ == ParquetLog.format or (format_ == "auto" and uri.endswith(".parquet")):
        return ParquetLog.open(uri, uri)
    lines = session.read.text(uri).limit(_SAMPLE).collect()
    return from_lines(uri, [line["value"] for line in lines], format_)


@contextmanager
def _reachable(name: str, packed: bool, session: SparkSession) -> Iterator[str]:
    """What Spark can read the log by."""
    if _is_uri(name):
        yield name
    elif not is_local(session):
        # All machines must see the same path; Spark tells by its ending whether it is packed.
        yield f"file:{Path(name).absolute()}"
    else:
        # By a name of our own: Spark takes brackets and stars for patterns, hides names that begin with a dot or
        # an underscore, and goes by the ending to tell what is packed.
        with tempfile.TemporaryDirectory(prefix="escapement-") as directory:
            link = Path(directory, "log.gz" if packed else "log")
            link.symlink_to(Path(name).absolute())
            yield f"file:{link}"


@contextmanager
def _plain_failures(name: str, packed: bool) -> Iterator[None]:
    """Say in one line what a failed Spark job says in a hundred."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        reason = failure(error)
        if "FAILED_READ_FILE" in str(error):
            what = "is damaged: its gzip data" if packed else "cannot be read:"
            raise LogError(f"{name} {what} {reason}") from None
        if reason.startswith(CANNOT_WRITE):
            raise PipelineError(reason) from None
        if "ModuleNotFoundError" in str(error):
            reason += "; the workers need this package installed, too"
        raise PipelineError(f"{name}: the Spark job failed: {reason}") from None


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)
