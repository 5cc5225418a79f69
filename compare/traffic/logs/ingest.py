"""Turn a log into a trace: read it, interpret each row, sort, and write tapes.

A pure function reads blocks of the log, on threads of this process or on Spark.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from compare.base.arguments import check_integer
from compare.base.executors import Threads
from compare.base.files import CANNOT_WRITE, errors_as
from compare.base.progress import progress
from compare.spark.executor import executor
from compare.spark.failures import plain_failures
from compare.spark.session import spark_session
from compare.traffic.logs.blocks import (
    BLOCK,
    LONGEST_LINE,
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
from compare.traffic.logs.on_spark import ingest_on_spark
from compare.traffic.logs.opening import ANY, open_log
from compare.traffic.logs.reading import Reading, Seen, time_text
from compare.traffic.logs.rows import KINDS, NONE, QUOTE, Meaning
from compare.traffic.logs.time_formats import EPOCHS, FORMS, guess_form, spelled_out
from compare.traffic.tapes.trace import MAX_SHARDS, Trace, UnfinishedTrace, new_trace, open_trace
from compare.traffic.tapes.units import EXPONENTS, TAPE_UNITS, parse_duration
from timers import TimerError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


MOST_BYTES = 1 << 29
"""The largest `longest_line`. Two such lines are held, and an array of texts has at most 2 GiB."""
MOST_READ = 10_000_000
"""The largest `limit`: rows that are read one block after another."""

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


def ingest_requests(
    log: AnyLog,
    out: str | os.PathLike[str],
    options: LogOptions,
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
) -> Ingested:
    """Turn a log of requests into a trace.

    `log` names files, or is an object with `__arrow_c_stream__`: a DuckDB relation, a Polars frame
    or a table of PyArrow. Its times may be timestamps, and its durations durations or intervals.

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
    return _ingest(log, out, options, session, _Asked("requests", roles, timeout, rules))


def ingest_touches(
    log: AnyLog,
    out: str | os.PathLike[str],
    options: LogOptions,
    *,
    key: str,
    idle: str,
    session: "SparkSession | None" = None,
) -> Ingested:
    """Turn a log of touches into a trace; see `ingest_requests`.

    Each row re-arms the timer of its key, to fire after an idle period such as "30s".
    """
    return _ingest(log, out, options, session, _Asked("touches", {"key": key}, idle, {}))


class _Asked(NamedTuple):
    """The meaning of a log's rows."""

    kind: str  # "requests" or "touches"
    roles: Roles  # of their columns, without those of conditions
    timeout: str  # or the idle period
    rules: Mapping[str, Any]  # fields of Meaning

    @property
    def source(self) -> dict[str, Any]:
        """Its entries in the manifest."""
        return {"timeout" if self.kind == "requests" else "idle": self.timeout, **self.rules}


def _ingest(
    log: AnyLog,
    out: str | os.PathLike[str],
    options: LogOptions,
    session: "SparkSession | None",
    asked: _Asked,
) -> Ingested:
    timeout = parse_duration(asked.timeout, options.unit)
    conditions = tuple(map(parse_condition, options.where))
    roles = {"time": options.time, **asked.roles}
    roles |= {f"where{number}": condition.column for number, condition in enumerate(conditions)}
    names, streams = _named(log, options)
    short = [name.rstrip("/").rpartition("/")[2] for name in names]
    source = {"kind": asked.kind, "log": short[0] if len(short) == 1 else short}
    with (
        new_trace(out, unit=options.unit, source=source, force=options.force) as unfinished,
        _within_reach(names, options.master, session) as files,
    ):
        logs = _opened(files, options, streams, roles)
        form, guessed = _time_form(logs, options)
        years = _first_years(logs, options, form, names)
        meaning = Meaning(
            roles=roles,
            unit=options.unit,
            timeout=timeout,
            form=form,
            guessed=guessed,
            shards=options.shards,
            where=conditions,
            assumed=Assumed(zone=options.time_zone or ""),
            **asked.rules,
        )
        logs = _in_order(logs, meaning, years)
        name = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        of_files = tuple(years[log.name] for log in logs) if years else ()
        job = Job(name, tuple(logs), meaning, unfinished.directory, options.limit, of_files)
        with errors_as(IngestError, f"{CANNOT_WRITE} to {unfinished.directory.parent}"):
            result = _run(job, unfinished, *((options.master, session) if files == names else ()))
        counts = _counted(result)
        _check_presence(logs, roles, result.seen)
        if years and options.year is None:
            _check_years(logs, result, years, options.unit)
        _check_counts(counts, name, options)
        unfinished.shards += result.shards
        unfinished.source |= _described(job, options, counts) | asked.source | asdict(counts)
    trace = open_trace(out)
    reading = _reading(asked.kind, asked.timeout, meaning, trace, counts, result.seen)
    return Ingested(**vars(counts), trace=trace, reading=reading)


def _named(log: AnyLog, options: LogOptions) -> tuple[list[str], list[Log]]:
    """The names of a log's files, or of a stream; and the stream."""
    if isinstance(log, str | os.PathLike):
        return [os.fspath(log)], []
    if isinstance(log, Sequence):
        return [os.fspath(place) for place in log], []
    stream = _stream(log, options)
    return [stream.name], [stream]


def _counted(result: Result) -> Counts:
    """The rows of a log that has been read."""
    kinds = {kind: result.kinds.get(kind, 0) for kind in KINDS}
    rows = sum(shard.starts + shard.arms for shard in result.shards) + sum(kinds.values())
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
    ends = [time for shard in trace.shards for time in (shard.first_time, shard.last_time)]
    times = [time for time in ends if time is not None]
    return Reading(
        kind=kind,
        unit=meaning.unit,
        timeout=timeout,
        time_format=meaning.form if counts.rows else None,
        guessed=meaning.guessed,
        rows=counts.rows - counts.left_out,
        first=min(times, default=0),
        last=max(times, default=0),
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


@contextmanager
def _within_reach(
    names: list[str], master: str | None, session: "SparkSession | None"
) -> Iterator[list[str]]:
    """Replace URIs that Arrow cannot read by copies that Spark makes, at most 2 GB a file."""
    far = [name for name in names if not is_readable(name)]
    if not far:
        yield names
        return
    with TemporaryDirectory(prefix="wheelwork-") as directory:
        files = [name for name in names if name not in far]
        with (
            spark_session(master, session) as spark,
            plain_failures(f"{', '.join(far)} cannot be read"),
        ):
            for row in spark.read.format("binaryFile").load(far).toLocalIterator():
                files.append(str(Path(directory, row["path"].rpartition("/")[2])))
                Path(files[-1]).write_bytes(row["content"])
        yield files


def _run(
    job: Job,
    unfinished: UnfinishedTrace,
    master: str | None = None,
    session: "SparkSession | None" = None,
) -> Result:
    """Read the log here, or on Spark if that is asked for."""
    # Up to a limit, a log is read in its order.
    here = nullcontext(Threads()) if job.limit is not None else executor(master, session)
    with here as chosen, progress("ingest", chosen.tasks):
        unfinished.made_by = chosen.made_by
        if not isinstance(chosen, Threads):
            return ingest_on_spark(job, chosen)
        return ingest_here(job, chosen)


# ---- what is read


def _layout(options: LogOptions) -> Layout:
    return Layout(options.format, options.delimiter, options.columns, options.pattern)


def _stream(stream: ArrowStream, options: LogOptions) -> Log:
    if _layout(options) != ANY:
        raise IngestError(
            "an Arrow stream has columns of its own, so format, delimiter, columns and pattern"
            " cannot be given"
        )
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


def _first_years(
    logs: Sequence[Log], options: LogOptions, form: str, names: Sequence[str]
) -> dict[str, Year]:
    """The year of the first time of each file; none if the times have years."""
    if not lacks_year(form):
        return {}
    years = {}
    for log in logs:
        second = first_second(log, options.time, form)
        year = options.year or year_of_file(log, second)
        # A copy of a file elsewhere has another time.
        if year is None or (options.year is None and log.name not in expand(list(names))):
            raise IngestError(
                f"the times of {log.name} have no year, and there is no file whose time of"
                " modification has it; give --year, that of the first line"
            )
        if not has_day(year, second):
            raise IngestError(f"{log.name} begins on 29 February, which {year} does not have")
        years[log.name] = Year(year, second)
    return years


def _check_years(logs: Sequence[Log], result: Result, years: Mapping[str, Year], unit: str) -> None:
    """Raise IngestError if the log goes on after its files were written."""
    last = max((shard.last_time or 0 for shard in result.shards), default=0)
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
