"""Inputs of an ingestion: files, streams, tables or DataFrames, and the engine that reads them."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from compare.base.stages import Here
from compare.spark.engine import OnSpark
from compare.spark.frames import is_frame
from compare.spark.places import TABLE
from compare.traffic.logs.blocks import EmptyError, expand
from compare.traffic.logs.formats.arrow import ArrowLog, ArrowStream
from compare.traffic.logs.formats.base import Log, Roles
from compare.traffic.logs.job import Job
from compare.traffic.logs.opening import ANY, open_log
from compare.traffic.logs.options import IngestError, LogOptions
from compare.traffic.logs.spark_rows import (
    Rows,
    alike,
    files_of,
    first_of,
    log_of_frame,
    rows_of_files,
    rows_of_frame,
    table_of,
    with_head,
)

Places = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A log: one path, directory, pattern or URI, or several; `-` is standard input."""

AnyLog = Places | ArrowStream
"""A log, or an object with rows and `__arrow_c_stream__`."""

TYPED = "has columns of its own, so format, delimiter, columns and pattern cannot be given"


class Opened(NamedTuple):
    """A log that is open."""

    logs: list[Log]  # of all files
    heads: list[Log]  # those whose heads have been read
    rows: Callable[[OnSpark, Job], tuple[Rows, ...]] | None = None  # None: of files here


def open_all(
    log: Any,
    names: Sequence[str],
    streams: list[Log],
    options: LogOptions,
    roles: Roles,
    far: "Here | OnSpark | None",
) -> Opened:
    """Open a log; if it is `far`, only Spark reads it."""
    if not isinstance(far, OnSpark):
        logs = _opened(list(names), options, streams, roles)
        return Opened(logs, logs)
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
        return Opened(
            [columns], [columns], lambda _, job: (rows_of_frame(frame, job.meaning.roles),)
        )
    layout = options.layout
    files = files_of(far, names)
    first = first_of(far, files, layout, roles)
    first.source.longest_line = options.longest_line
    first.check_columns(roles.values(), IngestError)
    files = files[files.index(first.name) :]
    heads = [first, *alike(replace(first, source=replace(first.source, head=b"")), files[1:])]
    return Opened(heads, [first], partial(rows_of_files, layout=layout))


def _stream(stream: ArrowStream, options: LogOptions) -> Log:
    if options.layout != ANY:
        raise IngestError(f"an Arrow stream {TYPED}")
    return ArrowLog.of(stream)


def _opened(
    names: list[str], options: LogOptions, streams: Sequence[Log], roles: Roles
) -> list[Log]:
    """Open the files of a log and read their heads."""
    layout, logs = options.layout, list(streams)
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


def named(log: AnyLog, options: LogOptions) -> tuple[list[str], list[Log]]:
    """The names of a log's files, or of a stream; and the stream."""
    if isinstance(log, str | os.PathLike):
        return [os.fspath(log)], []
    if isinstance(log, Sequence):
        return [os.fspath(place) for place in log], []
    stream = _stream(log, options)
    return [stream.name], [stream]
