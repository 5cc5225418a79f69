"""Turn a log into a trace: read it, interpret each row, sort, and write tapes.

A pure function reads blocks of the log, on threads of this process or on Spark.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast, overload

from compare.base.executors import Threads
from compare.base.files import CANNOT_WRITE, errors_as
from compare.base.progress import progress
from compare.base.stages import Here
from compare.spark.engine import OnSpark, engine
from compare.spark.frames import is_frame
from compare.spark.places import TABLE, is_far
from compare.traffic.logs.blocks import Block, is_readable, printable
from compare.traffic.logs.choice import parse_condition
from compare.traffic.logs.first_times import check_years, first_years, in_order, time_form
from compare.traffic.logs.formats.base import Log, Roles
from compare.traffic.logs.inputs import TYPED, AnyLog, Opened, named, open_all
from compare.traffic.logs.job import Job, Result, ingest_here
from compare.traffic.logs.numbers import Assumed
from compare.traffic.logs.on_spark import Plan, counts_of_rows, ingest_on_spark
from compare.traffic.logs.opening import ANY
from compare.traffic.logs.options import IngestError, LogOptions, check_choice
from compare.traffic.logs.reading import Reading, Seen
from compare.traffic.logs.rows import KINDS, Meaning
from compare.traffic.logs.spark_rows import (
    log_of_frame,
    plain_parquet,
    rows_of_files,
    rows_of_frame,
    shipped,
)
from compare.traffic.logs.time_formats import EPOCHS
from compare.traffic.tapes.blocks import Shard
from compare.traffic.tapes.places import (
    Output,
    UnfinishedFarTrace,
    check_output,
    new_trace_at,
    open_trace_at,
)
from compare.traffic.tapes.trace import Trace, UnfinishedTrace
from compare.traffic.tapes.units import EXPONENTS, parse_duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession


_CHOICES = ("year", "time_zone", "where", "limit", "longest_line")
"""Fields of LogOptions that the manifest records if they are given."""


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


@overload
def ingest_requests(
    log: "DataFrame",
    out: None = None,
    options: LogOptions | None = None,
    *,
    timeout: str,
    **given: Any,
) -> "DataFrame": ...


@overload
def ingest_requests(
    log: "AnyLog | DataFrame",
    out: Output,
    options: LogOptions | None = None,
    *,
    timeout: str,
    **given: Any,
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
    check_choice("duration unit", duration_unit, EXPONENTS)
    check_choice("time-is", time_is, ("start", "end"))
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
    **given: Any,
) -> "DataFrame": ...


@overload
def ingest_touches(
    log: "AnyLog | DataFrame",
    out: Output,
    options: LogOptions | None = None,
    *,
    key: str,
    idle: str,
    **given: Any,
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
    if is_frame(log) and options.layout != ANY:
        raise IngestError(f"a DataFrame {TYPED}")
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
        names, streams = named(log, options)
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
            read = open_all(log, names, streams, options, asked.roles, chosen if far else None)
            result, meaning, counts = _written(read, names, out, options, asked, chosen, unfinished)
        trace = open_trace_at(chosen, out)
    reading = _reading(asked.kind, asked.timeout, meaning, trace, counts, result.seen)
    return Ingested(**vars(counts), trace=trace, reading=reading)


def _written(
    read: Opened,
    names: Sequence[str],
    out: Output,
    options: LogOptions,
    asked: _Asked,
    chosen: "Here | OnSpark",
    unfinished: UnfinishedTrace | UnfinishedFarTrace,
) -> tuple[Result, Meaning, Counts]:
    """Write the trace of a log that is open."""
    form, guessed = time_form(read.heads, options)
    years = first_years(read.heads, options, form)
    meaning = _meaning(options, asked, form, guessed)
    logs = in_order(read.heads, meaning, years) if read.rows is None else read.logs
    name = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    # Of files that only Spark reads, the first time of the others is found by tasks.
    of_files = tuple(years.get(log.name, years[logs[0].name]) for log in logs) if years else ()
    job = Job(name, tuple(logs), meaning, options.limit, of_files)
    with errors_as(IngestError, f"{CANNOT_WRITE} to {out}"):
        result = _run(job, chosen, read, unfinished)
    counts = _counted(result, unfinished.shards)
    _check_presence(logs, meaning.roles, result.seen)
    if years and options.year is None:
        check_years(logs, unfinished.shards, years, options.unit)
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
    form, guessed = time_form([log], options)
    first_years([log], options, form)
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
    read: Opened,
    unfinished: UnfinishedTrace | UnfinishedFarTrace,
) -> Result:
    """Read the log here, or on Spark if that was chosen."""
    if isinstance(chosen, OnSpark):
        return _run_on_spark(job, chosen, read, unfinished)
    threads = Threads()
    with progress("ingest", threads.tasks):
        return ingest_here(job, threads, cast(UnfinishedTrace, unfinished))


def _run_on_spark(
    job: Job, chosen: OnSpark, read: Opened, unfinished: UnfinishedTrace | UnfinishedFarTrace
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
