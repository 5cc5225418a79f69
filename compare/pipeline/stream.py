"""Idle connections in an unbounded stream of (time, key) events: Structured Streaming with a timer
per shard as state.

The rules, and what they cost, are in docs/streaming.md.
"""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from compare.bench.contestant import Contestant, parse_contestant
from compare.logs.parsing import FORMS, guess_form, read_time
from compare.logs.readers import Log, inspect
from compare.pipeline.idle import (
    FINE,
    FOUND,
    HEARTBEAT,
    LATE,
    NO_KEY,
    NO_TIME,
    OUT_OF_RANGE,
    PACKED,
    PROBLEMS,
    STATE,
    Settings,
    detect,
    pack,
)
from compare.spark.session import PipelineError, cores, held_interrupts, plain_failures
from compare.tapes.trace import MAX_SHARDS
from compare.tapes.units import parse_duration
from timers import LIMIT, TimerError

DEFAULT_TIMER = "hierarchical-wheel"
DEFAULT_SHARDS = 8
METRICS = "idle_connections"
"""The name of the counts in a query's progress: `progress.observedMetrics[METRICS]`, with EXPIRED,
LATE_EVENTS, UNUSABLE.
"""
EXPIRED, LATE_EVENTS, UNUSABLE = "expired", "late", "unusable"

_LOOK_EVERY = 0.5
"""Seconds between looks at a query's progress, of which Spark keeps a hundred micro-batches."""
_SAMPLE = 1000
"""Rows among which a time must be found whose format is known."""
_BEATING = "RateStream"
"""How Spark's description of the source of `heartbeat` begins."""
_WATERMARK = "spark.watermarkDelayMs"
"""The key of a column's metadata by which Spark knows that its plan has a watermark."""


class StreamError(TimerError, ValueError):
    """A stream that cannot be watched as asked; one line that says why."""


def idle_connections(
    events: DataFrame,
    *,
    time: str,
    key: str,
    idle: str,
    delay: str | None = None,
    shards: int = DEFAULT_SHARDS,
    timer: str = DEFAULT_TIMER,
    rejected: bool = False,
    heartbeats: DataFrame | None = None,
) -> DataFrame:
    """The connections of a stream that have fallen idle: a streaming DataFrame for any query in
    append mode.

    Rows: `key`; `first_time` and `last_time` of the connection's events; `expired_at`, the last +
    the idle period; `events`, their number. They are those of `session_window(time, idle)`, and
    come when the watermark, the latest time of the stream less `delay` (such as "10s"; none by
    default), has passed `expired_at`.

    An event exactly `idle` after the last one still belongs to the connection. An event older than
    the watermark of its micro-batch is late, and does not count, nor does one without key or time
    or with a time before 1970. Their numbers are in the query's progress, under METRICS; with
    `rejected` they come as rows themselves, with a further column `problem`, null for connections,
    and `expired_at` null.

    `time` is a timestamp column and `key` one of any plain type. `heartbeats` are rows of another
    stream whose first column, a timestamp, moves the watermark while there are no events: see
    `heartbeat`. `timer` is a name with parameters as in `hierarchical-wheel/tick=1`. Neither it nor
    `idle`, but `shards`, is bound to a checkpoint.

    Raises a TimerError, in one line, for what does not fit. Cost of a micro-batch: O(events log
    events + open connections).
    """
    settings = Settings(parse_duration(idle, "us"), _checked_shards(shards), _punctual(timer))
    patience = "0 seconds" if delay is None else f"{parse_duration(delay, 'ms')} milliseconds"
    if not events.isStreaming:
        raise StreamError(
            "the events are no stream; session_window gives the idle connections of a table"
        )
    if heartbeats is not None and not heartbeats.isStreaming:
        raise StreamError("the heartbeats are no stream")
    kind = _column_type(events, key)
    rows = _usable(events, time, key, kind, settings)
    if heartbeats is not None:
        rows = rows.unionByName(_beats(heartbeats))
    packed = rows.withWatermark("clock", patience).drop("clock").mapInArrow(pack, PACKED)
    # What is older than the last micro-batch's watermark Spark would leave out, and only count: by
    # the column that its metadata says is the time. One that is null is never older, so that all
    # events come to be told.
    watched = packed.withColumn("clock", F.lit(None).cast("timestamp")).withMetadata(
        "clock", {_WATERMARK: 0}
    )
    found = watched.groupBy("shard").applyInPandasWithState(
        partial(detect, settings=settings), FOUND, STATE, "append", "EventTimeTimeout"
    )
    is_late = F.col("problem") == PROBLEMS[LATE]
    found = found.observe(
        METRICS,
        F.count_if(F.col("problem").isNull()).alias(EXPIRED),
        F.count_if(is_late).alias(LATE_EVENTS),
        F.count_if(F.col("problem").isNotNull() & ~is_late).alias(UNUSABLE),
    )
    told = found.select(
        _from_bytes(F.col("key"), kind).alias("key"),
        _moment("first").alias("first_time"),
        _moment("last").alias("last_time"),
        F.when(F.col("problem").isNull(), F.timestamp_micros(F.col("last") + settings.idle)).alias(
            "expired_at"
        ),
        "events",
        "problem",
    )
    return told if rejected else told.where("problem IS NULL").drop("problem")


def heartbeat(session: SparkSession, rows_per_second: int = 1) -> DataFrame:
    """A stream of the machine's own time, for `heartbeats`: for events whose times are those of a
    clock, as they happen.

    With it the watermark follows the clock, so that `delay` is the longest that an event may take
    to arrive.
    """
    rows = session.readStream.format("rate").option("rowsPerSecond", rows_per_second).load()
    return rows.select(F.col("timestamp").alias("time"))


def _checked_shards(shards: int) -> int:
    if not 1 <= shards <= MAX_SHARDS:
        raise StreamError(f"{shards} shards; there can be 1 to {MAX_SHARDS}")
    return shards


def _punctual(name: str) -> Contestant:
    """The timer of this name. Refused where it fires early: the event that keeps a connection alive
    may still come.
    """
    timer = parse_contestant(name)
    if timer.rounding.bounds()[0] < 0:
        raise StreamError(
            f"{name} fires early ({timer.precision()}), while a connection may still have an event"
        )
    return timer


def _column_type(events: DataFrame, name: str) -> T.DataType:
    if name not in events.columns:
        raise StreamError(
            f"the events have no column {name!r}; they have {', '.join(events.columns) or 'none'}"
        )
    return events.schema[name].dataType


def _usable(
    events: DataFrame, time: str, key: str, kind: T.DataType, settings: Settings
) -> DataFrame:
    """Events as the shards take them: `shard`, `key`, `at`, `problem`, and `clock`, which moves the
    watermark.
    """
    if not isinstance(_column_type(events, time), T.TimestampType):
        raise StreamError(
            f"column {time!r} is of type {events.schema[time].dataType.simpleString()}, not timestamp"
        )
    if isinstance(kind, (T.ArrayType, T.MapType, T.StructType, T.VariantType)):
        raise StreamError(f"column {key!r} of type {kind.simpleString()} cannot be a key")
    when, who = F.col(_quoted(time)), F.col(_quoted(key))
    at = F.unix_micros(when)
    fault = (
        F.when(when.isNull(), NO_TIME)
        .when(who.isNull(), NO_KEY)
        .when((at < 0) | (at > LIMIT - settings.idle), OUT_OF_RANGE)
        .otherwise(FINE)
    )
    # Bytes, for not every key is UTF-8, and Python would insist.
    rows = events.select(
        who.cast("string").cast("binary").alias("key"),
        F.coalesce(at, F.lit(0)).cast("bigint").alias("at"),
        fault.cast("tinyint").alias("fault"),
        when.alias("time"),
    )
    return rows.select(
        F.pmod(F.xxhash64("key"), F.lit(settings.shards)).cast("int").alias("shard"),
        "key",
        "at",
        "fault",
        F.when(F.col("fault") == FINE, F.col("time"))
        .otherwise(F.timestamp_micros(F.lit(0)))
        .alias("clock"),
    )


def _beats(heartbeats: DataFrame) -> DataFrame:
    if not heartbeats.columns or not isinstance(heartbeats.schema[0].dataType, T.TimestampType):
        raise StreamError("the first column of the heartbeats is no timestamp")
    clock = F.coalesce(F.col(_quoted(heartbeats.columns[0])), F.timestamp_micros(F.lit(0)))
    # They are left out only after the watermark, which else would not hear of them.
    return heartbeats.select(
        F.lit(0).alias("shard"),
        F.lit(None).cast("binary").alias("key"),
        F.lit(0).cast("bigint").alias("at"),
        F.lit(HEARTBEAT).cast("tinyint").alias("fault"),
        clock.alias("clock"),
    )


def _from_bytes(column: "F.Column", kind: T.DataType) -> "F.Column":
    return column if isinstance(kind, T.BinaryType) else column.cast("string").cast(kind)


def _moment(name: str) -> "F.Column":
    return F.when(
        F.col("problem").isNull() | (F.col("problem") != PROBLEMS[NO_TIME]),
        F.timestamp_micros(name),
    )


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


FORMATS = ("csv", "tsv", "jsonl", "parquet")
"""What the files of a directory may be."""

_SETTINGS = "wheelwork.json"
"""In a checkpoint: what it is of."""


@dataclass(frozen=True)
class Watch:
    """A directory of files that grows, and what is looked for in it."""

    source: str
    time: str
    key: str
    idle: str
    checkpoint: str
    out: str
    delay: str | None = None
    shards: int = DEFAULT_SHARDS
    timer: str = DEFAULT_TIMER
    format: str = "auto"
    time_format: str = "auto"
    out_format: str = "parquet"
    batch_files: int = 100  # at most, in a micro-batch
    follow: bool = False
    heartbeat: bool = False


class Seen(NamedTuple):
    """What a query has done, from its progress."""

    rows: int
    expired: int
    late: int
    unusable: int


def start(session: SparkSession, watch: Watch) -> Any:
    """Start a query that writes `kind=idle/` and `kind=rejected/` below `watch.out`: a
    StreamingQuery.

    It reads what is there, and with `follow` whatever comes. Started again with the same
    checkpoint, it goes on where it was. Raises a TimerError, in one line, before anything is
    written, for what can be told by then.
    """
    check(watch)
    found = idle_connections(
        directory_events(session, watch),
        time="time",
        key="key",
        idle=watch.idle,
        delay=watch.delay,
        shards=watch.shards,
        timer=watch.timer,
        rejected=True,
        heartbeats=heartbeat(session) if watch.heartbeat else None,
    )
    _claim(watch)
    kinds = found.withColumn(
        "kind", F.when(F.col("problem").isNull(), "idle").otherwise("rejected")
    )
    # A task for each core; the number is kept in the checkpoint.
    session.conf.set("spark.sql.shuffle.partitions", str(min(watch.shards, cores(session))))
    writer = (
        kinds.writeStream.format(watch.out_format)
        .partitionBy("kind")
        .option("path", str(Path(watch.out).absolute()))
        .option("header", "true")  # of CSV; the others have names anyway
        .option("checkpointLocation", str(Path(watch.checkpoint).absolute()))
        .outputMode("append")
    )
    with plain_failures("the stream cannot start"):
        return (writer if watch.follow else writer.trigger(availableNow=True)).start()


def follow(query: Any, tell: Callable[[Seen], None] | None = None) -> tuple[Seen, bool]:
    """Wait until a query ends; returns what it has done, and whether it was interrupted.

    Interrupted, it stops the query: what has not been finished comes again at the next start.
    Raises PipelineError, in one line, when the query fails.
    """
    counted: dict[int, Seen] = {}

    def look() -> Seen:
        for progress in query.recentProgress:
            observed = progress.observedMetrics.get(METRICS, (0, 0, 0))
            if (
                "values" in observed
            ):  # a field's name: through Connect the row comes with its schema
                observed = observed["values"]
            events = sum(
                source.numInputRows
                for source in progress.sources
                if not source.description.startswith(_BEATING)
            )
            seen = Seen(events, *(number or 0 for number in observed))
            counted[progress.batchId] = max(counted.get(progress.batchId, seen), seen)
        return (
            Seen(*(sum(column) for column in zip(*counted.values(), strict=True)))
            if counted
            else Seen(0, 0, 0, 0)
        )

    try:
        with held_interrupts() as interrupts:
            while not query.awaitTermination(_LOOK_EVERY) and not interrupts:
                seen = look()
                if tell is not None:
                    tell(seen)
            if query.isActive:
                query.stop()
    except PySparkException as error:
        raise PipelineError(_plain(error)) from None
    finally:
        if query.isActive:
            query.stop()
    return look(), bool(interrupts)


def check(watch: Watch) -> None:
    """Raise a TimerError, in one line, for what can be told without Spark; nothing is written."""
    parse_duration(watch.idle, "us")
    if watch.delay is not None:
        parse_duration(watch.delay, "ms")
    _checked_shards(watch.shards)
    _punctual(watch.timer)
    if watch.heartbeat and not watch.follow:
        raise StreamError("heartbeats are for a stream that is followed: they are times of now")
    _columns(watch)
    _held(watch)


def directory_events(session: SparkSession, watch: Watch) -> DataFrame:
    """The events of a directory's files as a stream of `time`, a timestamp, and `key`; the first
    file tells their form.
    """
    first, found = _columns(watch)

    def read(reader: Any, path: Path) -> DataFrame:
        uri = f"file:{path.absolute()}"
        if found.format == "parquet":
            return reader.schema(kinds).parquet(uri)
        if found.format == "jsonl":
            return reader.schema(
                T.StructType([T.StructField(name, T.StringType()) for name in columns])
            ).json(uri)
        texts = T.StructType([T.StructField(name, T.StringType()) for name in found.columns])
        sep = "\t" if found.format == "tsv" else ","
        # With the header held against the first file's: another order of columns must not go
        # unnoticed.
        return reader.schema(texts).csv(uri, sep=sep, header=True, enforceSchema=False, escape='"')

    columns = list(dict.fromkeys((watch.time, watch.key)))
    kinds = None
    if found.format == "parquet":
        kinds = (
            session.read.parquet(f"file:{first.absolute()}").select(*map(_quoted, columns)).schema
        )
    reader = session.readStream.option("maxFilesPerTrigger", watch.batch_files)
    events = read(reader, Path(watch.source))
    when, who = F.col(_quoted(watch.time)), F.col(_quoted(watch.key))
    if isinstance(events.schema[watch.time].dataType, T.TimestampType):
        return events.select(when.alias("time"), who.alias("key"))
    rows = events.select(when.cast("string").alias("time"), who.alias("key"))
    form = watch.time_format
    if form == "auto":
        sample = (
            read(session.read, first)
            .select(when.cast("string").alias("time"))
            .where("time IS NOT NULL")
            .limit(_SAMPLE)
        )
        forms = (guess_form(row["time"]) for row in sample.collect())
        form = next((form for form in forms if form is not None), "")
        if not form:
            raise StreamError(
                f"{first}: no value of column {watch.time!r} is a time in a known format ({', '.join(FORMS)})"
            )
    whole = "timestamp_micros(IF(time_negative, -time_whole, time_whole)) AS time"
    return read_time(rows, "time", form, "us").selectExpr(whole, "key")


def _columns(watch: Watch) -> tuple[Path, Log]:
    """The first file, and what it looks like; it has the columns."""
    first = _first_file(watch.source)
    found, _ = inspect(first, watch.format)
    if found.format not in FORMATS:
        raise StreamError(
            f"{first} is in format {found.format}; a stream's files are {', '.join(FORMATS)}"
        )
    for name in (watch.time, watch.key):
        if name not in found.columns and not found.columns_vary:
            raise StreamError(
                f"{first} has no column {name!r}; it has {', '.join(found.columns) or 'none'}"
            )
    return first, found


def _first_file(source: str) -> Path:
    directory = Path(source)
    if not directory.is_dir():
        raise StreamError(
            f"{source} is no directory" if directory.exists() else f"{source} does not exist"
        )
    # Spark passes over the others, too.
    files = sorted(
        path
        for path in directory.iterdir()
        if path.is_file() and not path.name.startswith(("_", "."))
    )
    if not files:
        raise StreamError(f"{source} has no file yet, from which to learn its columns")
    return files[0]


def _bound(watch: Watch) -> dict[str, Any]:
    """What cannot change while a checkpoint goes on."""
    names = ("source", "time", "key", "shards", "out", "out_format", "heartbeat")
    paths = {name: str(Path(getattr(watch, name)).absolute()) for name in ("source", "out")}
    return {name: getattr(watch, name) for name in names} | paths


def _held(watch: Watch) -> bool:
    """Whether there is a checkpoint, made for this. Raises StreamError if it is for something
    else.
    """
    settings = Path(watch.checkpoint, _SETTINGS)
    if settings.exists():
        before = json.loads(settings.read_text())
        for name, value in _bound(watch).items():
            if before.get(name) != value:
                raise StreamError(
                    f"the checkpoint {watch.checkpoint} is for {name} {before.get(name)}, not {value}"
                )
        return True
    if settings.parent.exists() and (
        not settings.parent.is_dir() or any(settings.parent.iterdir())
    ):
        raise StreamError(f"{watch.checkpoint} is not empty, and no checkpoint of this command")
    # Spark would take the sink's earlier batches for its own, and leave its first ones out.
    if Path(watch.out).exists() and (
        not Path(watch.out).is_dir() or any(Path(watch.out).iterdir())
    ):
        raise StreamError(f"{watch.out} is not empty, and the checkpoint is new")
    return False


def _claim(watch: Watch) -> None:
    """Make the directories, and write down what a new checkpoint is for."""
    settings, out = Path(watch.checkpoint, _SETTINGS), Path(watch.out)
    settings.parent.mkdir(parents=True, exist_ok=True)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError:
        with suppress(OSError):  # it is not empty
            settings.parent.rmdir()
        raise
    if not settings.exists():
        settings.write_text(json.dumps(_bound(watch), indent=1))


def _plain(error: PySparkException) -> str:
    """What made a query fail, in a line."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # From a Python worker: its exception; from Java: what it was caused by.
    thrown = [
        line for line in lines if re.match(r"(?:[\w.]+\.)?\w*(?:Error|Exception|Invalid): ", line)
    ]
    line = re.sub(r"^[\w.]+: ", "", thrown[-1]) if thrown else lines[0]
    return f"the stream failed: {re.sub(r' SQLSTATE: .*', '', line)}"
