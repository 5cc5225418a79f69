"""Turn a log into a trace: read it, interpret each row, sort, and write tapes.

Each stage is a function from rows to rows. Spark does the work that grows with the log. One task
makes a shard's tape from its sorted rows.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from compare.arguments import check_integer
from compare.files import CANNOT_WRITE, errors_as
from compare.logs.head import read_error
from compare.logs.parsing import FORMS
from compare.logs.readers import READERS, Log, Roles, first_form, inspect, inspect_through
from compare.pipeline.reading import NO_TIMES, Reading, TimesObserved
from compare.pipeline.rows import (
    DUPLICATE,
    LATE,
    QUOTE,
    UNREADABLE,
    Form,
    printable,
    reject_rows,
    request_rows,
    touch_rows,
)
from compare.pipeline.shards import SHARDS, UNNUMBERED, entries_of, write_shards
from compare.progress import progress
from compare.spark.session import PipelineError, is_local, plain_failures, spark_session
from compare.spark.tasks import SparkTasks
from compare.tapes.trace import (
    MAX_SHARDS,
    REJECTED,
    Shard,
    Trace,
    new_shard,
    new_trace,
    open_trace,
    shard_name,
)
from compare.tapes.units import EXPONENTS, TAPE_UNITS, parse_duration
from timers import TimerError

_EXAMPLES = 5
"""The number of rejected rows that are shown."""
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

    time: str  # the time column
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
        check_integer(IngestError, "shards", self.shards, 1, MAX_SHARDS)


@dataclass(frozen=True)
class Counts:
    """The rows of a log."""

    rows: int
    unreadable: int
    duplicate: int
    late: int
    examples: tuple[str, ...]  # the first rejected rows, as in "line 7: time 'x' is not iso"

    @property
    def left_out(self) -> int:
        """How many were rejected."""
        return self.unreadable + self.duplicate + self.late


@dataclass(frozen=True)
class Ingested(Counts):
    """The result of an ingestion. The rejected rows are in the table `trace.rejected`."""

    trace: Trace
    reading: Reading


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

    `duration` is the column with the time from start to end; no value means that no answer came.
    Numbers in it without a unit are in `duration_unit`. `timeout` is a text such as "5s". `time_is`
    says what the time column has, "start" or "end". `log` is a path, or a URI that Spark can read.
    O(n log n).

    Raises:
        TimerError: if anything is wrong; in that case nothing is left behind.
    """
    _check_choice("duration unit", duration_unit, EXPONENTS)
    _check_choice("time-is", time_is, ("start", "end"))
    meaning: dict[str, Any] = {"time_is": time_is, "duration_unit": duration_unit}
    return _ingest(
        log,
        out,
        options,
        session,
        kind="requests",
        column={"duration": duration},
        timeout=timeout,
        interpret=partial(request_rows, **meaning),
        source={"timeout": timeout, **meaning},
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
    return _ingest(
        log,
        out,
        options,
        session,
        kind="touches",
        column={"key": key},
        timeout=idle,
        interpret=touch_rows,
        source={"idle": idle},
    )


class _Written(NamedTuple):
    """The tapes of a log."""

    shards: list[Shard]
    rejected: int  # rows
    timed_out: int  # timers
    most_pending: int  # timers of one shard


def write_tapes(
    rows: DataFrame,
    times: TimesObserved,
    kind: str,
    timeout: int,
    shards: int,
    directory: Path,
    *,
    small: bool,
) -> _Written:
    """Sort rows and write one file per shard, and one for the rejected rows.

    One pass over the log, during which the times are observed. With `small` the rows are written by
    this process.
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
        "at",
        "time_zone",
    )
    divided = times.observe(divided)  # here, where the rows are at their smallest
    order = ("shard", "start", "position")

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with errors_as(PipelineError, f"{CANNOT_WRITE} to {directory.parent}"):
            yield from write_shards(
                batches, kind=kind, directory=directory, timeout=timeout, shards=shards
            )

    if small:
        # One task, and no Python workers, which take two seconds to start.
        sorted_rows = divided.coalesce(1).sortWithinPartitions(*order).toArrow()
        written = pa.Table.from_batches(write(sorted_rows.to_batches()), SHARDS)
    else:
        # One partition per shard; before Spark 4.1 some shards share a partition.
        partition = getattr(divided, "repartitionById", divided.repartition)
        ordered = partition(shards + 1, "shard").sortWithinPartitions(*order)
        written = ordered.mapInArrow(write, from_arrow_schema(SHARDS)).toArrow()
    entries = entries_of(written)
    for number in set(range(shards)) - entries.keys():
        # The hash left it without a row.
        with new_shard(directory / shard_name(number)) as writer:
            pass
        entries[number] = writer.shard
    return _Written(
        [entries[number] for number in range(shards)],
        entries[shards].rows if shards in entries else 0,
        pc.sum(written["timed_out"]).as_py() or 0,
        pc.max(written["most_pending"]).as_py() or 0,
    )


def _ingest(
    log: str | os.PathLike[str],
    out: str | os.PathLike[str],
    options: Options,
    session: SparkSession | None,
    *,
    kind: str,
    column: Roles,  # besides the time
    timeout: str,  # the timeout, or the idle period
    interpret: Callable[..., DataFrame],  # of the rows of a reader: those to write
    source: Mapping[str, Any],  # for the manifest
) -> Ingested:
    units = parse_duration(timeout, options.unit)
    late = options.in_order_within
    bound = None if late is None else parse_duration(late, options.unit)
    roles = {"time": options.time, **column}
    if options.unique is not None:
        roles["unique"] = options.unique
    name = os.fspath(log)
    made = {"kind": kind, "log": name.rstrip("/").rpartition("/")[2]}
    with new_trace(out, unit=options.unit, source=made, force=options.force) as unfinished:
        # Before Spark starts, which takes seconds.
        found, compressed = (None, False) if "://" in name else inspect(Path(name), options.format)
        if found is not None:
            found.check_columns(roles.values(), IngestError)
        small = found is not None and Path(name).stat().st_size < (
            _SMALL_COMPRESSED if compressed else _SMALL
        )
        with (
            spark_session(options.master, session, brief=small) as spark,
            plain_failures(
                f"{name}: the Spark job failed",
                {"FAILED_READ_FILE": partial(read_error, name, compressed)},
            ),
            _reachable(name, compressed, spark) as uri,
        ):
            if found is None:
                found = inspect_through(spark, uri, options.format)
                found.check_columns(roles.values(), IngestError)
            rows = found.rows(spark, uri, roles)
            _check_presence(rows, found, roles)
            form = _time_form(rows, found, options)
            rows = interpret(rows, form, unit=options.unit, shards=options.shards, timeout=units)
            rows = reject_rows(rows, options.unit, bound, options.unique)
            times = TimesObserved(options.unit, units)
            with progress("ingest", SparkTasks(spark).tasks):
                written = write_tapes(
                    rows, times, kind, units, options.shards, unfinished.directory, small=small
                )
            unfinished.shards += written.shards
            counts = _counts(written, found, spark, uri, unfinished.directory)
            _check_counts(counts, name, options.strict)
            times_seen = times.results() if counts.rows else NO_TIMES
        time_format = form.name if counts.rows else None
        described = {"format": found.format, "columns": roles, "time_format": time_format}
        if late is not None:
            described["in_order_within"] = late
        unfinished.source |= {**described, **source, **asdict(counts)}
    trace = open_trace(out)
    ends = [time for one in trace.shards for time in (one.first_time, one.last_time)]
    times_on_tape = [time for time in ends if time is not None]
    reading = Reading(
        kind=kind,
        unit=options.unit,
        timeout=timeout,
        time_format=time_format,
        guessed=form.guessed,
        rows=counts.rows - counts.left_out,
        first=min(times_on_tape, default=0),
        last=max(times_on_tape, default=0),
        timed_out=written.timed_out,
        most_pending=written.most_pending,
        times=times_seen,
    )
    return Ingested(**vars(counts), trace=trace, reading=reading)


def _counts(
    written: _Written, found: Log, session: SparkSession, uri: str, directory: Path
) -> Counts:
    """Count the rows, write the rejected ones with their numbers in the log, and describe the
    first of these.
    """
    rows = sum(shard.starts + shard.arms for shard in written.shards) + written.rejected
    if not written.rejected:
        return Counts(rows, 0, 0, 0, ())
    by_kind: Counter[str] = Counter()
    examples: list[str] = []
    with pq.ParquetFile(directory / UNNUMBERED) as file:
        last = pc.max(file.read(["block"])["block"]).as_py()
        starts, before = found.records_before(session, uri, last)
        schema = pa.schema([pa.field(found.record, pa.int64()), *list(file.schema_arrow)[2:]])
        with pq.ParquetWriter(directory / REJECTED, schema, compression="zstd") as writer:
            for batch in file.iter_batches():
                blocks, indices, kinds, problems, *texts = batch.columns
                block = np.searchsorted(starts, blocks, side="right") - 1
                numbers = pa.array(before[block] + indices.to_numpy() + 1)
                columns = [numbers, kinds, problems, *texts]
                writer.write_batch(pa.record_batch(columns, schema=schema))
                by_kind.update(kinds.to_pylist())
                left = _EXAMPLES - len(examples)
                shown = (column.slice(0, left).to_pylist() for column in (numbers, problems))
                for number, problem in zip(*shown, strict=True):
                    examples.append(f"{found.record} {number}: {printable(problem)}")
    return Counts(rows, by_kind[UNREADABLE], by_kind[DUPLICATE], by_kind[LATE], tuple(examples))


def _check_counts(counts: Counts, name: str, strict: bool) -> None:
    if counts.left_out and counts.left_out == counts.rows:
        raise IngestError(
            f"none of the {counts.rows} rows of {name} can be read; {counts.examples[0]}"
        )
    if strict and counts.left_out:
        why = "cannot be read" if counts.left_out == counts.unreadable else "cannot be used"
        which = f"{counts.left_out} of the {counts.rows} rows of {name}"
        raise IngestError(f"{which} {why}; {'; '.join(counts.examples)}")


def _time_form(rows: DataFrame, found: Log, options: Options) -> Form:
    """The time format: that of the column's type, the given one, or that of the first value."""
    implied = found.implied_form(options.time)
    if implied is not None:
        if options.time_format not in ("auto", implied):
            raise IngestError(
                f"{found.name}: column {options.time!r} holds timestamps, so its time format"
                f" cannot be {options.time_format}"
            )
        return Form(implied, guessed=False)
    if options.time_format != "auto":
        return Form(options.time_format, guessed=False)
    form = first_form(found, rows, options.time)
    if form is None:
        value = rows.where(F.col("time").isNotNull()).select("time").first()
        if value is None:  # any format will do
            return Form("iso", guessed=False)
        raise IngestError(
            f"{found.name}: {printable(value[0][:QUOTE])!r} in column {options.time!r} is not a"
            f" time in a known format ({', '.join(FORMS)})"
        )
    return Form(form, guessed=True)


def _check_choice(what: str, value: str, choices: Iterable[str]) -> None:
    if value not in choices:
        raise IngestError(f"{what} {value!r} is not one of {', '.join(choices)}")


def _check_presence(rows: DataFrame, found: Log, roles: Roles) -> None:
    """Raise IngestError for a column that no record has, if the head could not tell."""
    for role, name in roles.items():
        if name not in found.columns and not rows.where(F.col(role).isNotNull()).head(1):
            raise IngestError(found.lacks(name))


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
