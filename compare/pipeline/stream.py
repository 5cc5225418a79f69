"""Detection of idle connections in an unbounded stream of events, with Structured Streaming.

docs/streaming.md has the rules and the figures.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from compare.arguments import check_integer
from compare.logs.parsing import FORMS, read_time
from compare.logs.readers import Log, column_named, first_form, inspect
from compare.pipeline.idle import (
    FOUND,
    GROUPED,
    HEARTBEAT,
    LATE,
    NO_KEY,
    NO_TIME,
    OUT_OF_RANGE,
    PROBLEMS,
    STATE,
    VALID,
    detect,
    group_by_shard,
)
from compare.spark.session import cores, held_interrupts, plain_failures
from compare.tapes.trace import MAX_SHARDS
from compare.tapes.units import parse_duration
from timers import LIMIT, TimerError

DEFAULT_SHARDS = 8
METRICS = "idle_connections"
"""The name of the counts EXPIRED, LATE_EVENTS and UNUSABLE in a query's progress:
`progress.observedMetrics[METRICS]`.
"""
EXPIRED, LATE_EVENTS, UNUSABLE = "expired", "late", "unusable"

_POLL_EVERY = 0.5
"""Seconds between looks at a query's progress. Spark keeps the last hundred micro-batches."""
_RATE_SOURCE = "RateStream"
"""The beginning of Spark's description of the source of `heartbeat`."""
_WATERMARK = "spark.watermarkDelayMs"
"""The key in a column's metadata that tells Spark that its plan has a watermark."""


class StreamError(TimerError, ValueError):
    """A stream cannot be watched as asked."""


def idle_connections(
    events: DataFrame,
    *,
    time: str,
    key: str,
    idle: str,
    delay: str | None = None,
    shards: int = DEFAULT_SHARDS,
    rejected: bool = False,
    heartbeats: DataFrame | None = None,
) -> DataFrame:
    """Return the connections of a stream that have fallen idle, for any query in append mode.

    The rows have `key`; `first_time` and `last_time` of the connection's events; `expired_at`, the
    last time plus the idle period; and `events`, their number. They are the same as those of
    `session_window(time, idle)`. A row appears when the watermark has passed its `expired_at`. The
    watermark is the latest time of the stream minus `delay`, such as "10s" (default: none).

    An event exactly `idle` after the last one still belongs to the connection. An event older than
    the watermark of its micro-batch is late and does not count, nor does an event without a key or
    a time, or with a time before 1970. The query's progress has their numbers, under METRICS. With
    `rejected` they are returned as well: the rows then have a column `problem`, which is null for
    connections, and `expired_at` is null for rejected events.

    `time` is a timestamp column, and `key` a column of any plain type. `heartbeats` is a stream
    whose first column, a timestamp, moves the watermark while there are no events; see
    `heartbeat`. A checkpoint can be resumed with another `idle`, but not with other `shards`.

    Cost of a micro-batch: O(events log events + open connections).

    Raises:
        TimerError: if an argument is invalid.
    """
    check_integer(StreamError, "shards", shards, 1, MAX_SHARDS)
    period = parse_duration(idle, "us")
    lateness = "0 seconds" if delay is None else f"{parse_duration(delay, 'ms')} milliseconds"
    if not events.isStreaming:
        raise StreamError("the events are not a stream; for a table use session_window")
    if heartbeats is not None and not heartbeats.isStreaming:
        raise StreamError("the heartbeats are not a stream")
    kind = _column_type(events, key)
    rows = _usable(events, time, key, kind, period, shards)
    if heartbeats is not None:
        rows = rows.unionByName(_heartbeat_rows(heartbeats))
    rows = rows.withWatermark("clock", lateness).drop("clock")
    grouped = rows.mapInArrow(group_by_shard, GROUPED)
    # Spark drops rows that are older than the watermark of the last micro-batch, and only counts
    # them. It looks at the column whose metadata marks it as the time. A null is never older, so
    # all events arrive and the late ones can be listed.
    undroppable = grouped.withColumn("clock", F.lit(None).cast("timestamp")).withMetadata(
        "clock", {_WATERMARK: 0}
    )
    found = undroppable.groupBy("shard").applyInPandasWithState(
        partial(detect, idle=period, shards=shards), FOUND, STATE, "append", "EventTimeTimeout"
    )
    is_idle = F.col("problem").isNull()
    is_late = F.col("problem") == PROBLEMS[LATE]
    has_time = is_idle | (F.col("problem") != PROBLEMS[NO_TIME])
    found = found.observe(
        METRICS,
        F.count_if(is_idle).alias(EXPIRED),
        F.count_if(is_late).alias(LATE_EVENTS),
        F.count_if(~is_idle & ~is_late).alias(UNUSABLE),
    )
    text = F.col("key") if isinstance(kind, T.BinaryType) else F.col("key").cast("string")
    result = found.select(
        text.cast(kind).alias("key"),
        F.when(has_time, F.timestamp_micros("first")).alias("first_time"),
        F.when(has_time, F.timestamp_micros("last")).alias("last_time"),
        F.when(is_idle, F.timestamp_micros(F.col("last") + period)).alias("expired_at"),
        "events",
        "problem",
    )
    return result if rejected else result.where("problem IS NULL").drop("problem")


def heartbeat(session: SparkSession, rows_per_second: int = 1) -> DataFrame:
    """Return a stream of the machine's time, to be used as `heartbeats`.

    The watermark then follows the clock, and `delay` is the longest time that an event may take to
    arrive.
    """
    rows = session.readStream.format("rate").option("rowsPerSecond", rows_per_second).load()
    return rows.select(F.col("timestamp").alias("time"))


def _column_type(events: DataFrame, name: str) -> T.DataType:
    if name not in events.columns:
        raise StreamError(
            f"the events have no column {name!r}; they have {', '.join(events.columns) or 'none'}"
        )
    return events.schema[name].dataType


def _usable(
    events: DataFrame, time: str, key: str, kind: T.DataType, idle: int, shards: int
) -> DataFrame:
    """Select `shard`, `key`, `at`, `fault`, and `clock`, which moves the watermark."""
    found = _column_type(events, time)
    if not isinstance(found, T.TimestampType):
        raise StreamError(f"column {time!r} has the type {found.simpleString()}, not timestamp")
    if isinstance(kind, (T.ArrayType, T.MapType, T.StructType, T.VariantType)):
        raise StreamError(f"column {key!r} of type {kind.simpleString()} cannot be a key")
    when, who = column_named(time), column_named(key)
    at = F.unix_micros(when)
    fault = (
        F.when(when.isNull(), NO_TIME)
        .when(who.isNull(), NO_KEY)
        .when((at < 0) | (at > LIMIT - idle), OUT_OF_RANGE)
        .otherwise(VALID)
    )
    # Not every key is UTF-8, and Python strings must be.
    name = who.cast("string").cast("binary")
    return events.select(
        F.pmod(F.xxhash64(name), F.lit(shards)).cast("int").alias("shard"),
        name.alias("key"),
        F.coalesce(at, F.lit(0)).cast("bigint").alias("at"),
        fault.cast("tinyint").alias("fault"),
        F.when(fault == VALID, when).otherwise(F.timestamp_micros(F.lit(0))).alias("clock"),
    )


def _heartbeat_rows(heartbeats: DataFrame) -> DataFrame:
    if not heartbeats.columns or not isinstance(heartbeats.schema[0].dataType, T.TimestampType):
        raise StreamError("the first column of the heartbeats is not a timestamp")
    clock = F.coalesce(column_named(heartbeats.columns[0]), F.timestamp_micros(F.lit(0)))
    # They must reach the watermark, so they are dropped only after it.
    return heartbeats.select(
        F.lit(0).alias("shard"),
        F.lit(None).cast("binary").alias("key"),
        F.lit(0).cast("bigint").alias("at"),
        F.lit(HEARTBEAT).cast("tinyint").alias("fault"),
        clock.alias("clock"),
    )


FORMATS = ("csv", "tsv", "jsonl", "parquet")
"""The formats that the files of a directory may have."""

_SETTINGS = "wheelwork.json"
"""The file in a checkpoint that says what it belongs to."""


@dataclass(frozen=True)
class Watch:
    """A growing directory of files, and how to find idle connections in it."""

    source: str
    time: str
    key: str
    idle: str
    checkpoint: str
    out: str
    delay: str | None = None
    shards: int = DEFAULT_SHARDS
    format: str = "auto"
    time_format: str = "auto"
    out_format: str = "parquet"
    batch_files: int = 100  # the most in one micro-batch
    follow: bool = False
    heartbeat: bool = False


class Seen(NamedTuple):
    """What a query has done so far."""

    rows: int
    expired: int
    late: int
    unusable: int


def start(session: SparkSession, watch: Watch) -> Any:
    """Start a StreamingQuery that writes `kind=idle/` and `kind=rejected/` below `watch.out`.

    It reads the files that are there and, with `follow`, the files that come. Started again with
    the same checkpoint, it continues where it stopped.

    Raises:
        TimerError: if a setting is invalid; nothing has been written then.
    """
    check(watch)
    found = idle_connections(
        directory_events(session, watch),
        time="time",
        key="key",
        idle=watch.idle,
        delay=watch.delay,
        shards=watch.shards,
        rejected=True,
        heartbeats=heartbeat(session) if watch.heartbeat else None,
    )
    _create_directories(watch)
    kinds = found.withColumn(
        "kind", F.when(F.col("problem").isNull(), "idle").otherwise("rejected")
    )
    # One task per core. The checkpoint keeps the number.
    session.conf.set("spark.sql.shuffle.partitions", str(min(watch.shards, cores(session))))
    writer = (
        kinds.writeStream.format(watch.out_format)
        .partitionBy("kind")
        .option("path", str(Path(watch.out).absolute()))
        .option("header", "true")  # CSV alone looks at it
        .option("checkpointLocation", str(Path(watch.checkpoint).absolute()))
        .outputMode("append")
    )
    with plain_failures("the stream cannot start"):
        return (writer if watch.follow else writer.trigger(availableNow=True)).start()


def follow(query: Any, tell: Callable[[Seen], None] | None = None) -> tuple[Seen, bool]:
    """Wait until a query ends; return what it has done, and whether it was interrupted.

    An interrupt stops the query. The next start repeats the micro-batch that was not finished.
    `tell` is called about twice a second.

    Raises:
        PipelineError: if the query fails.
    """
    counted: dict[int, Seen] = {}

    def look() -> Seen:
        for progress in query.recentProgress:
            observed = progress.observedMetrics.get(METRICS, (0, 0, 0))
            if "values" in observed:  # Spark Connect wraps the row
                observed = observed["values"]
            events = sum(
                source.numInputRows
                for source in progress.sources
                if not source.description.startswith(_RATE_SOURCE)
            )
            seen = Seen(events, *(number or 0 for number in observed))
            counted[progress.batchId] = max(counted.get(progress.batchId, seen), seen)
        return Seen(
            *(sum(column) for column in zip(Seen(0, 0, 0, 0), *counted.values(), strict=True))
        )

    with plain_failures("the stream failed"), held_interrupts() as interrupts:
        try:
            while not query.awaitTermination(_POLL_EVERY) and not interrupts:
                seen = look()
                if tell is not None:
                    tell(seen)
        finally:
            if query.isActive:
                query.stop()
    return look(), bool(interrupts)


def check(watch: Watch) -> None:
    """Check the settings without Spark; nothing is written.

    Raises:
        TimerError: if a setting is invalid.
    """
    parse_duration(watch.idle, "us")
    if watch.delay is not None:
        parse_duration(watch.delay, "ms")
    check_integer(StreamError, "shards", watch.shards, 1, MAX_SHARDS)
    if watch.heartbeat and not watch.follow:
        raise StreamError("--heartbeat needs --follow: heartbeats have the present time")
    _columns(watch)
    _check_directories(watch)


def directory_events(session: SparkSession, watch: Watch) -> DataFrame:
    """Return the events in a directory's files as a stream of `time`, a timestamp, and `key`.

    The first file determines the format and the time format of all.
    """
    first, found = _columns(watch)
    columns = list(dict.fromkeys((watch.time, watch.key)))
    if found.format == "parquet":
        whole = session.read.parquet(f"file:{first.absolute()}")
        schema = whole.select(*map(column_named, columns)).schema
    else:
        names = columns if found.format == "jsonl" else found.columns
        schema = T.StructType([T.StructField(name, T.StringType()) for name in names])

    def read(reader: Any, path: Path) -> Any:
        uri = f"file:{path.absolute()}"
        if found.format == "parquet":
            return reader.schema(schema).parquet(uri)
        if found.format == "jsonl":
            return reader.schema(schema).json(uri)
        sep = "\t" if found.format == "tsv" else ","
        # The header of each file is compared with that of the first one.
        return reader.schema(schema).csv(uri, sep=sep, header=True, enforceSchema=False, escape='"')

    reader = session.readStream.option("maxFilesPerTrigger", watch.batch_files)
    events: DataFrame = read(reader, Path(watch.source))
    when, who = column_named(watch.time), column_named(watch.key)
    if isinstance(events.schema[watch.time].dataType, T.TimestampType):
        return events.select(when.alias("time"), who.alias("key"))
    rows = events.select(when.cast("string").alias("time"), who.alias("key"))
    form = watch.time_format
    if form == "auto":
        texts = read(session.read, first).select(when.cast("string").alias("time"))
        form = first_form(found, texts, watch.time) or ""
        if not form:
            raise StreamError(
                f"{first}: no value of column {watch.time!r} is a time in a known format"
                f" ({', '.join(FORMS)})"
            )
    micros = "timestamp_micros(IF(time_negative, -time_whole, time_whole)) AS time"
    return read_time(rows, "time", form, "us").selectExpr(micros, "key")


def _columns(watch: Watch) -> tuple[Path, Log]:
    """The first file and its format. Raises StreamError if it lacks a column."""
    first = _first_file(watch.source)
    found, _ = inspect(first, watch.format)
    if found.format not in FORMATS:
        raise StreamError(
            f"{first} is in format {found.format}; a stream's files are {', '.join(FORMATS)}"
        )
    found.check_columns((watch.time, watch.key), StreamError)
    return first, found


def _first_file(source: str) -> Path:
    directory = Path(source)
    if not directory.is_dir():
        raise StreamError(
            f"{source} is not a directory" if directory.exists() else f"{source} does not exist"
        )
    # Spark ignores the others as well.
    files = sorted(path for path in directory.glob("[!_.]*") if path.is_file())
    if not files:
        raise StreamError(f"{source} has no file yet that shows its columns")
    return files[0]


def _fixed_settings(watch: Watch) -> dict[str, Any]:
    """The settings that cannot change when a checkpoint is resumed."""
    names = ("source", "time", "key", "shards", "out", "out_format", "heartbeat")
    paths = {name: str(Path(getattr(watch, name)).absolute()) for name in ("source", "out")}
    return {name: getattr(watch, name) for name in names} | paths


def _check_directories(watch: Watch) -> None:
    """Raise StreamError unless there is a checkpoint with these settings or room for a new one."""
    checkpoint, out = Path(watch.checkpoint), Path(watch.out)
    settings = checkpoint / _SETTINGS
    if settings.exists():
        before = json.loads(settings.read_text())
        for name, value in _fixed_settings(watch).items():
            if before.get(name) != value:
                raise StreamError(
                    f"the checkpoint {watch.checkpoint} is for {name} {before.get(name)},"
                    f" not {value}"
                )
        return
    if checkpoint.exists() and (not checkpoint.is_dir() or any(checkpoint.iterdir())):
        raise StreamError(
            f"{watch.checkpoint} is not empty and is not a checkpoint of this command"
        )
    # Spark would take the batches of another query for its own and skip as many.
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise StreamError(f"{watch.out} is not empty but the checkpoint is new")


def _create_directories(watch: Watch) -> None:
    """Create the directories, and store the settings in a new checkpoint."""
    settings, out = Path(watch.checkpoint, _SETTINGS), Path(watch.out)
    settings.parent.mkdir(parents=True, exist_ok=True)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError:
        with suppress(OSError):  # it is not empty
            settings.parent.rmdir()
        raise
    if not settings.exists():
        settings.write_text(json.dumps(_fixed_settings(watch), indent=1))
