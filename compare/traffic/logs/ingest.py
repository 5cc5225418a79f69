"""Turn a log into a trace: read it, interpret each row, sort, and write tapes.

A pure function reads blocks of the log, on threads of this process or on Spark.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast, overload

import pyarrow as pa

from compare.base.arguments import check_integer
from compare.base.executors import Threads
from compare.base.files import CANNOT_WRITE, errors_as
from compare.base.progress import progress
from compare.base.stages import Here
from compare.spark.engine import OnSpark, engine
from compare.spark.frames import is_frame
from compare.spark.places import TABLE, is_far
from compare.traffic.logs.blocks import (
    BLOCK,
    LONGEST_LINE,
    Block,
    EmptyError,
    expand,
    is_readable,
    printable,
)
from compare.traffic.logs.choice import parse_condition
from compare.traffic.logs.formats import FORMATS
from compare.traffic.logs.formats.arrow import ArrowLog, ArrowStream
from compare.traffic.logs.formats.base import Layout, Log, Roles
from compare.traffic.logs.inspect import SAMPLE, first_second, values, year_of_file
from compare.traffic.logs.job import Job, Result, ingest_here
from compare.traffic.logs.numbers import (
    VALID,
    Assumed,
    Year,
    check_directives,
    check_zone,
    has_day,
    lacks_year,
    read_times,
)
from compare.traffic.logs.on_spark import (
    ColumnsLog,
    Plan,
    Rows,
    alike,
    counts_of_rows,
    files_of,
    first_of,
    ingest_on_spark,
    log_of_frame,
    plain_parquet,
    rows_of_files,
    rows_of_frame,
    shipped,
    table_of,
    with_head,
)
from compare.traffic.logs.opening import ANY, open_log
from compare.traffic.logs.reading import Reading, Seen, time_text
from compare.traffic.logs.rows import KINDS, NONE, QUOTE, Meaning
from compare.traffic.logs.time_formats import EPOCHS, FORMS, guess_form, spelled_out
from compare.traffic.tapes.blocks import Shard
from compare.traffic.tapes.places import (
    Output,
    UnfinishedFarTrace,
    check_output,
    new_trace_at,
    open_trace_at,
)
from compare.traffic.tapes.trace import MAX_SHARDS, Trace, UnfinishedTrace
from compare.traffic.tapes.units import EXPONENTS, TAPE_UNITS, parse_duration
from timers import TimerError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession


MOST_BYTES = 1 << 29
"""The largest `longest_line`. Two such lines are held, and an array of texts has at most 2 GiB."""
MOST_READ = 10_000_000
"""The largest `limit`: rows that are read one block after another."""

_TYPED = "has columns of its own, so format, delimiter, columns and pattern cannot be given"

_CHOICES = ("year", "time_zone", "where", "limit", "longest_line")
"""Fields of LogOptions that the manifest records if they are given."""


class IngestError(TimerError, ValueError):
    """A log cannot be turned into a trace as asked."""


@dataclass(frozen=True)
class LogOptions:
    """Options for reading a log.

    Raises:
        IngestError: if a choice does not exist.
    """

    time: str  # the time column
    unit: str = "ms"  # of the tape
    format: str = "auto"  # or one of FORMATS
    delimiter: str | None = None  # of a CSV log
    columns: tuple[str, ...] = ()  # of a CSV log without a header
    pattern: str | None = None  # of a line, with named groups: its columns
    time_format: str = "auto"  # or one of FORMS, or a format of strptime
    year: int | None = None  # of the first line of each file; else that of its modification
    time_zone: str | None = None  # of times without one, such as "Europe/Berlin"; UTC if not given
    shards: int = 1
    strict: bool = False  # whether a rejected row is an error
    where: tuple[str, ...] = ()  # conditions such as "status = 504" for a row that is used
    limit: int | None = None  # the number of lines (with a header) or records to read
    longest_line: int = LONGEST_LINE  # bytes; a longer line is rejected
    force: bool = False  # whether to replace an existing trace
    master: str | None = None  # of Spark; None: threads of this process

    def __post_init__(self) -> None:
        _check_choice("unit", self.unit, TAPE_UNITS)
        _check_choice("format", self.format, ("auto", *FORMATS))
        if "%" in self.time_format:
            check_directives(spelled_out(self.time_format))
        else:
            _check_choice("time format", self.time_format, ("auto", *FORMS))
        if self.pattern is not None and self.format != "auto":
            raise IngestError("--pattern describes the lines, so --log-format cannot be given")
        if self.time_zone is not None:
            check_zone(self.time_zone)
        if self.year is not None:
            check_integer(IngestError, "year", self.year, 1970, 9999)
        if self.limit is not None:
            check_integer(IngestError, "limit", self.limit, 1, MOST_READ)
        check_integer(IngestError, "longest line", self.longest_line, BLOCK, MOST_BYTES)
        check_integer(IngestError, "shards", self.shards, 1, MAX_SHARDS)


@dataclass(frozen=True)
class Counts:
    """The rows of a log."""

    rows: int
    unreadable: int
    unmatched: int
    other_lines: int  # lines that a pattern does not match; no rows
    examples: tuple[str, ...]  # the first rejected rows, as in "line 7: time 'x' is not iso"

    @property
    def left_out(self) -> int:
        """The number of rejected rows."""
        return self.unreadable + self.unmatched


@dataclass(frozen=True)
class Ingested(Counts):
    """The result of an ingestion. The rejected rows are in the table `trace.rejected`."""

    trace: Trace
    reading: Reading


Places = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A log: one path, directory, pattern or URI, or several; `-` is standard input."""

AnyLog = Places | ArrowStream
"""A log, or an object with rows and `__arrow_c_stream__`."""


@overload
def ingest_requests(
    log: "DataFrame",
    out: None = None,
    options: LogOptions | None = None,
    *,
    timeout: str,
    duration: str | None = None,
    end: str | None = None,
    duration_unit: str = "s",
    time_is: str = "start",
    id: str | None = None,
    event: str | None = None,
    starts: str | None = None,
    ends: str | None = None,
    observation: "Observation | None" = None,
    **choices: Any,
) -> "DataFrame": ...


@overload
def ingest_requests(
    log: "AnyLog | DataFrame",
    out: Output,
    options: LogOptions | None = None,
    *,
    timeout: str,
    duration: str | None = None,
    end: str | None = None,
    duration_unit: str = "s",
    time_is: str = "start",
    id: str | None = None,
    event: str | None = None,
    starts: str | None = None,
    ends: str | None = None,
    session: "SparkSession | None" = None,
    **choices: Any,
) -> Ingested: ...


def ingest_requests(
    log: "AnyLog | DataFrame",
    out: Output | None = None,
    options: LogOptions | None = None,
    *,
    timeout: str,
    duration: str | None = None,
    end: str | None = None,
    duration_unit: str = "s",
    time_is: str = "start",
    id: str | None = None,
    event: str | None = None,
    starts: str | None = None,
    ends: str | None = None,
    session: "SparkSession | None" = None,
    observation: "Observation | None" = None,
    **choices: Any,
) -> "Ingested | DataFrame":
    """Turn a log of requests into a trace.

    `log` names files, or `table:catalog.db.name`; or it is a DataFrame of Spark, or an object with
    `__arrow_c_stream__`: a DuckDB relation, a Polars frame or a table of PyArrow. Its times may be
    timestamps, and its durations durations or intervals. The `choices` are fields of LogOptions.

    A DataFrame without `out` becomes a DataFrame of blocks, as in a trace; Spark computes it when
    it must. It leaves out the rows that cannot be used: with `strict` they are an error, and an
    `observation` has their number. Rows with the same time are in the order of Spark's partitions.

    Each row starts a timer, and cancels it at its end if the answer came in time.

    Either `duration` is the column with the time from start to end, or `end` the column with the
    time of the end; a missing value means that no answer came. Durations without a unit are in
    `duration_unit`. `timeout` is a text such as "5s". The time column has the "start" or the "end"
    of a request, as `time_is` says.

    With `id`, a request has two rows with the same text in that column; the column `event` has
    `starts` in one and `ends` in the other. The files of a log may be in any order. With a
    `session`, Spark reads them. O(n log n).

    Raises:
        TimerError: if the log cannot be read as asked; nothing is left behind.
    """
    settings = _chosen(options, choices)
    _check_choice("duration unit", duration_unit, EXPONENTS)
    _check_choice("time-is", time_is, ("start", "end"))
    values = {"duration": duration, "end": end, "id": id}
    roles = {role: column for role, column in values.items() if column is not None}
    if len(roles) != 1:
        raise IngestError(
            "a log of requests needs exactly one of --duration, --end and --id, with a column"
        )
    if duration is None and time_is != "start":
        raise IngestError("with --end and --id, --time is the start, so --time-is cannot be end")
    events = {"event": event, "starts": starts, "ends": ends}
    if [value is not None for value in events.values()] != [id is not None] * 3:
        raise IngestError("--id needs --event, a column, and --starts and --ends, its texts")
    rules = {"time_is": time_is, "duration_unit": duration_unit}
    if id is not None and event is not None:
        if starts == ends:
            raise IngestError(f"starts and ends are both {starts!r}")
        roles["event"] = event
        rules |= {"starts": str(starts), "ends": str(ends)}
    asked = _Asked("requests", _roles(settings, roles), timeout, rules)
    return _ingest(log, out, settings, session, observation, asked)


@overload
def ingest_touches(
    log: "DataFrame",
    out: None = None,
    options: LogOptions | None = None,
    *,
    key: str,
    idle: str,
    observation: "Observation | None" = None,
    **choices: Any,
) -> "DataFrame": ...


@overload
def ingest_touches(
    log: "AnyLog | DataFrame",
    out: Output,
    options: LogOptions | None = None,
    *,
    key: str,
    idle: str,
    session: "SparkSession | None" = None,
    **choices: Any,
) -> Ingested: ...


def ingest_touches(
    log: "AnyLog | DataFrame",
    out: Output | None = None,
    options: LogOptions | None = None,
    *,
    key: str,
    idle: str,
    session: "SparkSession | None" = None,
    observation: "Observation | None" = None,
    **choices: Any,
) -> "Ingested | DataFrame":
    """Turn a log of touches into a trace; see `ingest_requests`.

    Each row re-arms the timer of its key, to fire after an idle period such as "30s".
    """
    settings = _chosen(options, choices)
    asked = _Asked("touches", _roles(settings, {"key": key}), idle, {})
    return _ingest(log, out, settings, session, observation, asked)


class _Asked(NamedTuple):
    """The meaning of a log's rows."""

    kind: str  # "requests" or "touches"
    roles: Roles  # of their columns
    timeout: str  # or the idle period
    rules: Mapping[str, Any]  # fields of Meaning

    @property
    def source(self) -> dict[str, Any]:
        """Its entries in the manifest."""
        return {"timeout" if self.kind == "requests" else "idle": self.timeout, **self.rules}


def _roles(options: LogOptions, roles: Roles) -> Roles:
    """The roles of all columns."""
    conditions = map(parse_condition, options.where)
    where = {f"where{number}": condition.column for number, condition in enumerate(conditions)}
    return {"time": options.time, **roles, **where}


def _chosen(options: LogOptions | None, choices: dict[str, Any]) -> LogOptions:
    return LogOptions(**choices) if options is None else replace(options, **choices)


def _ingest(
    log: Any,
    out: Output | None,
    options: LogOptions,
    session: "SparkSession | None",
    observation: "Observation | None",
    asked: _Asked,
) -> "Ingested | DataFrame":
    if is_frame(log) and _layout(options) != ANY:
        raise IngestError(f"a DataFrame {_TYPED}")
    if out is None:
        if not is_frame(log):
            raise IngestError("out, the place of the trace, is missing; a DataFrame needs none")
        return _planned(log, options, observation, asked)
    if observation is not None:
        raise IngestError("an observation is of a DataFrame; with out, the result has the counts")
    check_output(out, force=options.force)
    streams: list[Log] = []
    if is_frame(log):
        session, names, far = log.sparkSession, ["DataFrame"], ["DataFrame"]
    else:
        names, streams = _named(log, options)
        far = [name for name in names if name.startswith(TABLE) or not is_readable(name)]
        if far and options.limit is not None:
            raise IngestError(
                f"limit is of a log that this machine reads, and Spark reads {far[0]}"
            )
    short = [name.rstrip("/").rpartition("/")[2] for name in names]
    source = {"kind": asked.kind, "log": short[0] if len(short) == 1 else short}
    # Up to a limit, a log is read in its order.
    is_here = options.limit is not None and not is_far(out) and not is_frame(log)
    where = nullcontext(Here()) if is_here else engine(options.master, session, [out, *far])
    with where as chosen:
        with new_trace_at(
            chosen, out, unit=options.unit, source=source, force=options.force
        ) as unfinished:
            unfinished.made_by = chosen.made_by
            read = _open(log, names, streams, options, asked.roles, chosen if far else None)
            result, meaning, counts = _written(read, names, out, options, asked, chosen, unfinished)
        trace = open_trace_at(chosen, out)
    reading = _reading(asked.kind, asked.timeout, meaning, trace, counts, result.seen)
    return Ingested(**vars(counts), trace=trace, reading=reading)


def _written(
    read: "_Read",
    names: Sequence[str],
    out: Output,
    options: LogOptions,
    asked: _Asked,
    chosen: "Here | OnSpark",
    unfinished: UnfinishedTrace | UnfinishedFarTrace,
) -> tuple[Result, Meaning, Counts]:
    """Write the trace of a log that is open."""
    form, guessed = _time_form(read.heads, options)
    years = _first_years(read.heads, options, form)
    meaning = _meaning(options, asked, form, guessed)
    logs = _in_order(read.heads, meaning, years) if read.rows is None else read.logs
    name = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    # Of files that only Spark reads, the first time of the others is found by tasks.
    of_files = tuple(years.get(log.name, years[logs[0].name]) for log in logs) if years else ()
    job = Job(name, tuple(logs), meaning, options.limit, of_files)
    with errors_as(IngestError, f"{CANNOT_WRITE} to {out}"):
        result = _run(job, chosen, read, unfinished)
    counts = _counted(result, unfinished.shards)
    _check_presence(logs, meaning.roles, result.seen)
    if years and options.year is None:
        _check_years(logs, unfinished.shards, years, options.unit)
    _check_counts(counts, name, options)
    unfinished.source |= _described(job, options, counts) | asked.source | asdict(counts)
    return result, meaning, counts


def _planned(
    frame: "DataFrame", options: LogOptions, observation: "Observation | None", asked: _Asked
) -> "DataFrame":
    """The blocks of a DataFrame, as a plan."""
    log = log_of_frame(frame, "DataFrame", "dataframe", asked.roles)
    log.check_columns(asked.roles.values(), IngestError)
    if log.implied_form(options.time) is None and options.time_format == "auto":
        raise IngestError(
            f"column {options.time!r} does not hold timestamps, so its time format must be given;"
            " a plan reads no rows"
        )
    form, guessed = _time_form([log], options)
    _first_years([log], options, form)
    meaning = _meaning(options, asked, form, guessed)
    list(log.read(Block(0, 0, context=log.head), meaning.roles))  # checks the types
    rows = frame if options.limit is None else frame.limit(options.limit)
    source = rows_of_frame(rows, meaning.roles)
    plan = Plan(OnSpark(frame.sparkSession), Job("DataFrame", (log,), meaning), (source,))
    parsed = plan.parsed(strict=options.strict)
    if observation is not None:
        parsed = parsed.observe(observation, *counts_of_rows())
    return plan.blocks(parsed)


def _meaning(options: LogOptions, asked: _Asked, form: str, guessed: bool) -> Meaning:
    return Meaning(
        roles=asked.roles,
        unit=options.unit,
        timeout=parse_duration(asked.timeout, options.unit),
        form=form,
        guessed=guessed,
        shards=options.shards,
        where=tuple(map(parse_condition, options.where)),
        assumed=Assumed(zone=options.time_zone or ""),
        **asked.rules,
    )


def _named(log: AnyLog, options: LogOptions) -> tuple[list[str], list[Log]]:
    """The names of a log's files, or of a stream; and the stream."""
    if isinstance(log, str | os.PathLike):
        return [os.fspath(log)], []
    if isinstance(log, Sequence):
        return [os.fspath(place) for place in log], []
    stream = _stream(log, options)
    return [stream.name], [stream]


def _counted(result: Result, shards: Sequence[Shard]) -> Counts:
    """The rows of a log that has been read."""
    kinds = {kind: result.kinds.get(kind, 0) for kind in KINDS}
    rows = sum(shard.starts + shard.arms for shard in shards) + sum(kinds.values())
    examples = tuple(map(printable, result.examples))
    return Counts(rows, **kinds, other_lines=result.seen.other_lines, examples=examples)


def _described(job: Job, options: LogOptions, counts: Counts) -> dict[str, Any]:
    """The manifest's record of how a log was read."""
    roles = job.meaning.roles.items()
    columns = {role: name for role, name in roles if not role.startswith("where")}
    form = job.meaning.form if counts.rows else None
    choices = {name: getattr(options, name) for name in _CHOICES}
    choices = {name: value for name, value in choices.items() if value != getattr(LogOptions, name)}
    return {"format": job.logs[0].format, "columns": columns, "time_format": form, **choices}


def _reading(
    kind: str, timeout: str, meaning: Meaning, trace: Trace, counts: Counts, seen: Seen
) -> Reading:
    """A description of how a log was read, for people."""
    units = {role: EPOCHS[meaning.form] for role in ("time", "end") if meaning.form in EPOCHS}
    units["duration"] = meaning.duration_unit
    return Reading(
        kind=kind,
        unit=meaning.unit,
        timeout=timeout,
        time_format=meaning.form if counts.rows else None,
        guessed=meaning.guessed,
        rows=counts.rows - counts.left_out,
        first=trace.totals["first_time"] or 0,
        last=trace.totals["last_time"] or 0,
        timed_out=trace.description.timed_out,
        pending=trace.description.pending,
        rejected=counts.left_out,
        bad_durations=seen.bad_durations,
        bounds=seen.bounds,
        times=seen.times(meaning.unit, meaning.timeout),
        units=tuple(
            (meaning.roles[role], unit) for role, unit in units.items() if role in meaning.roles
        ),
    )


def _run(
    job: Job,
    chosen: "Here | OnSpark",
    read: "_Read",
    unfinished: UnfinishedTrace | UnfinishedFarTrace,
) -> Result:
    """Read the log here, or on Spark if that was chosen."""
    if isinstance(chosen, OnSpark):
        return _run_on_spark(job, chosen, read, unfinished)
    threads = Threads()
    with progress("ingest", threads.tasks):
        return ingest_here(job, threads, cast(UnfinishedTrace, unfinished))


def _run_on_spark(
    job: Job, chosen: OnSpark, read: "_Read", unfinished: UnfinishedTrace | UnfinishedFarTrace
) -> Result:
    for log in job.logs:
        if log.source.stream is not None:
            raise IngestError(
                f"{log.name} can be read once, and by this machine alone; for Spark, write it to a"
                " file"
            )
    job = job._replace(logs=tuple(shipped(log, job.meaning.roles) for log in job.logs))
    with progress("ingest", chosen.tasks), plain_parquet(chosen):
        sources = (read.rows or rows_of_files)(chosen, job)
        return ingest_on_spark(Plan(chosen, job, sources), unfinished)


# ---- what is read


class _Read(NamedTuple):
    """A log that is open."""

    logs: list[Log]  # of all files
    heads: list[Log]  # those whose heads have been read
    rows: Callable[[OnSpark, Job], tuple[Rows, ...]] | None = None  # None: of files here


def _open(
    log: Any,
    names: Sequence[str],
    streams: list[Log],
    options: LogOptions,
    roles: Roles,
    far: "Here | OnSpark | None",
) -> _Read:
    """Open a log; if it is `far`, only Spark reads it."""
    if not isinstance(far, OnSpark):
        logs = _opened(list(names), options, streams, roles)
        return _Read(logs, logs)
    is_table = names[0].startswith(TABLE)
    if is_frame(log) or is_table:
        if len(names) > 1:
            raise IngestError(f"{names[0]} is a table, and a log of tables has one")
        frame, form = log, "dataframe"
        if is_table:
            frame, form = table_of(far, names[0]), "table"
        if options.limit is not None:
            frame = frame.limit(options.limit)
        columns = log_of_frame(frame, names[0], form, roles)
        columns.check_columns(roles.values(), IngestError)
        columns = with_head(columns, frame, roles, far)
        return _Read(
            [columns], [columns], lambda _, job: (rows_of_frame(frame, job.meaning.roles),)
        )
    layout = _layout(options)
    files = files_of(far, names)
    first = first_of(far, files, layout, roles)
    first.source.longest_line = options.longest_line
    first.check_columns(roles.values(), IngestError)
    files = files[files.index(first.name) :]
    heads = [first, *alike(replace(first, source=replace(first.source, head=b"")), files[1:])]
    return _Read(heads, [first], partial(rows_of_files, layout=layout))


def _layout(options: LogOptions) -> Layout:
    return Layout(options.format, options.delimiter, options.columns, options.pattern)


def _stream(stream: ArrowStream, options: LogOptions) -> Log:
    if _layout(options) != ANY:
        raise IngestError(f"an Arrow stream {_TYPED}")
    return ArrowLog.of(stream)


def _opened(
    names: list[str], options: LogOptions, streams: Sequence[Log], roles: Roles
) -> list[Log]:
    """Open the files of a log and read their heads."""
    layout, logs = _layout(options), list(streams)
    files = [] if streams else expand(names)
    for name in files:
        try:
            logs.append(open_log(name, layout))
            logs[-1].source.longest_line = options.longest_line
        except EmptyError:
            if not logs and name == files[-1]:  # others are empty, too
                raise
    for other in logs:
        if other.format != logs[0].format:
            raise IngestError(
                f"{logs[0].name} is {logs[0].format} and {other.name} is {other.format}; the files"
                " of a log have one format"
            )
        other.check_columns(roles.values(), IngestError)
        if "id" in roles and other.source.stream is not None:
            raise IngestError(
                f"{other.name} can be read only once, and a log with ids is read twice; write it to"
                " a file"
            )
    return logs


def _time_form(logs: Sequence[Log], options: LogOptions) -> tuple[str, bool]:
    """Return the time format, and whether it was guessed from the first value that has one."""
    implied = logs[0].implied_form(options.time)
    if implied is not None:
        if options.time_format not in ("auto", implied):
            raise IngestError(
                f"{logs[0].name}: column {options.time!r} holds timestamps, so its time format"
                f" cannot be {options.time_format}"
            )
        return implied, False
    if options.time_format != "auto":
        return spelled_out(options.time_format), False
    first = None
    for log in logs:
        for text in islice(values(log, options.time), SAMPLE):
            first = first or text
            if form := guess_form(text) or guess_form(text.replace(log.point, ".")):
                return form, True
    if first is None:  # any format will do
        return "iso", False
    raise IngestError(
        f"{logs[0].name}: {printable(first[:QUOTE])!r} in column {options.time!r} is not a time in"
        f" a known format ({', '.join(FORMS)}); give `wheelwork ingest` a --time-format, such as"
        " '%d/%m/%Y %H:%M:%S'"
    )


def _first_years(logs: Sequence[Log], options: LogOptions, form: str) -> dict[str, Year]:
    """The year of the first time of each file; none if the times have years."""
    if not lacks_year(form):
        return {}
    years = {}
    for log in logs:
        second = first_second(log, options.time, form)
        year = options.year or year_of_file(log, second)
        if isinstance(log, ColumnsLog):
            raise IngestError(f"{log.name} has rows in no order, so its times must have years")
        if year is None:
            raise IngestError(
                f"the times of {log.name} have no year, and there is no file whose time of"
                " modification has it; give --year, that of the first line"
            )
        if not has_day(year, second):
            raise IngestError(f"{log.name} begins on 29 February, which {year} does not have")
        years[log.name] = Year(year, second)
    return years


def _check_years(
    logs: Sequence[Log], shards: Sequence[Shard], years: Mapping[str, Year], unit: str
) -> None:
    """Raise IngestError if the log goes on after its files were written."""
    last = max((shard.last_time or 0 for shard in shards), default=0)
    written = max(Path(log.name).stat().st_mtime for log in logs)
    if last / 10 ** EXPONENTS[unit] > written + 2 * 86_400:
        name = logs[0].name
        raise IngestError(
            f"if {name} begins in {years[name].year}, it ends on {time_text(last, unit)[:10]},"
            " after it was written; give --year, that of the first line"
        )


def _in_order(logs: list[Log], meaning: Meaning, years: Mapping[str, Year]) -> list[Log]:
    """The files in the order of their first times, whatever their names."""

    def first_time(log: Log) -> tuple[int, str]:
        assumed = meaning.assumed
        if years:
            assumed = assumed._replace(year=years[log.name])
        for text in islice(values(log, meaning.roles["time"]), SAMPLE):
            texts = pa.array([text.encode()])
            time = read_times(texts, meaning.form, meaning.unit, log.point, assumed)
            if time.flags[0] == VALID:
                return int(time.whole[0]), log.name
        return NONE, log.name

    return sorted(logs, key=first_time) if len(logs) > 1 else logs


def _check_presence(logs: Sequence[Log], roles: Roles, seen: Seen) -> None:
    """Raise IngestError for a column that no record has, if the head could not tell."""
    for role, name in roles.items():
        if role not in seen.present and not any(log.has(name) for log in logs):
            raise IngestError(logs[0].lacks(name))


def _check_counts(counts: Counts, name: str, options: LogOptions) -> None:
    if counts.other_lines and not counts.rows:
        raise IngestError(f"the pattern matches none of the {counts.other_lines:,} lines of {name}")
    if options.where and counts.left_out == counts.rows:
        raise IngestError(f"{name} has no row that can be read with {' and '.join(options.where)}")
    if counts.left_out and counts.left_out == counts.rows:
        raise IngestError(
            f"no row of {name} can be read; {counts.examples[0]}"
            " (`wheelwork inspect` shows how it is read)"
        )
    if options.strict and counts.left_out:
        why = "cannot be read" if counts.left_out == counts.unreadable else "cannot be used"
        which = f"{counts.left_out} of the {counts.rows} rows of {name}"
        raise IngestError(f"{which} {why}; {'; '.join(counts.examples)}")


def _check_choice(what: str, value: str, choices: Iterable[str]) -> None:
    if value not in choices:
        raise IngestError(f"{what} {value!r} is not one of {', '.join(choices)}")
