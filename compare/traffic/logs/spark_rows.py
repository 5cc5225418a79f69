"""The rows of a log: Spark lists, splits, decompresses and reads files, tables and DataFrames."""

import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from compare.base.stages import Batches, Stage
from compare.spark.engine import PARTITIONS_PER_CORE, literal, uri_of
from compare.spark.failures import plain_failures
from compare.spark.frames import arrow_type, leaves, selected
from compare.spark.places import TABLE
from compare.spark.session import sql_settings
from compare.traffic.logs.blocks import Block, EmptyError, LogError, Source, head_of
from compare.traffic.logs.formats.arrow import FIRST_ROWS, ArrowLog, none_of
from compare.traffic.logs.formats.base import Layout, Log, Roles
from compare.traffic.logs.formats.parquet import MAGIC, ParquetLog, partitions_of
from compare.traffic.logs.job import Job, Place
from compare.traffic.logs.opening import log_of
from compare.traffic.logs.spark_parts import (
    CHUNKS,
    POSITION,
    Files,
    Parts,
    in_chunks,
    of_blocks,
    of_bytes,
    of_chunks,
    of_columns,
    of_lines,
    path_of,
)
from timers.arrays import Int64s

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from compare.spark.engine import OnSpark

_PATH, _START = "_metadata.file_path", "_metadata.file_block_start"
_LINES_IN = {".gz": "gzip", ".bz2": "bzip2"}
"""Compressed files that Spark reads as lines: it knows them by the ends of their names."""
_OTHERS = (".deflate", ".lz4", ".snappy", ".zst", ".zstd", ".xz")
"""Ends of names by which Spark would decompress, with libraries that it may lack."""
_MOST_OF_A_HEAD = 1 << 24
"""Bytes of the largest file whose head is read with the rest of it."""
_LINES_OF_A_HEAD = 10_000
WHOLE = 1 << 26
"""Bytes of a file that is read as one row, which a task holds: a row for each line costs Spark more
than what is then made of it."""
_TEXTS_OF_PARTITIONS = {"spark.sql.sources.partitionColumnTypeInference.enabled": "false"}


class Rows(NamedTuple):
    """Rows of a log as Spark reads them, and what makes parts of blocks of them in a task."""

    frame: "DataFrame"
    key: tuple[str, ...]  # of the rows that one call takes
    order: tuple[str, ...]
    read: Callable[[Job, Int64s, Batches], Parts]


@dataclass(frozen=True, kw_only=True)
class ColumnsLog(ArrowLog):
    """Columns whose rows are Spark's; of them, only the first may be known here."""

    in_order = False

    def blocks(self) -> Iterator[Block]:
        """None: they are read by tasks."""
        return iter(())


def log_of_frame(frame: "DataFrame", name: str, form: str, roles: Roles) -> ColumnsLog:
    """The log of a DataFrame's columns; one may be nested: `client.ip`. Raises LogError."""
    kinds = leaves(frame)
    columns = [column for column, _ in kinds]
    types = {}
    for role, column in roles.items():
        if columns.count(column) == 1:
            kind = kinds[columns.index(column)][1]
            types[column] = arrow_type(kind)
            if types[column] is None:
                raise LogError(
                    f"{name}: column {column!r} of type {kind.simpleString()} cannot be read as a"
                    f" {role.rstrip('0123456789')}"
                )
    schema = pa.schema(list(types.items()))
    return ColumnsLog(
        source=Source(name, None, b""),
        columns=tuple(columns),
        schema=schema,
        head=none_of(schema),
        format=form,
    )


def with_head(log: ColumnsLog, frame: "DataFrame", roles: Roles, engine: "OnSpark") -> ColumnsLog:
    """The log with its first times: a job, unless their type tells how they are to be read."""
    if log.implied_form(roles["time"]) is not None:
        return log
    rows = frame.selectExpr(*selected(frame, [roles["time"]])).limit(FIRST_ROWS)
    table = engine.collect(rows, f"ingest: the first times of {log.name}").combine_chunks()
    batches = table.rename_columns([roles["time"]]).to_batches()
    return replace(log, head=batches[0]) if batches else log


def rows_of_frame(frame: "DataFrame", roles: Roles) -> Rows:
    """The rows of a DataFrame. Spark gives them no order but that of partitions and places."""
    position = f"monotonically_increasing_id() AS `{POSITION}`"
    rows = frame.selectExpr(*selected(frame, dict.fromkeys(roles.values())), position)
    return Rows(rows, (), (), partial(of_columns, Files({})))


def table_of(engine: "OnSpark", place: str) -> "DataFrame":
    """The rows of a table of a catalog. Raises PipelineError."""
    with plain_failures(f"cannot read {place}"):
        frame = engine.session.table(place.removeprefix(TABLE))
        frame.schema  # noqa: B018  # asks for it: Spark Connect would fail later
    return frame


def plain_parquet(engine: "OnSpark") -> AbstractContextManager[None]:
    """Until the block ends, Spark reads nanoseconds, as numbers; see `_named`."""
    return sql_settings(engine.session, {"spark.sql.legacy.parquet.nanosAsLong": "true"})


def rows_of_files(engine: "OnSpark", job: Job, layout: Layout | None = None) -> tuple[Rows, ...]:
    """The rows of files. With a layout, only the head of the first one has been read."""
    files = Files({_absolute(log.name): number for number, log in enumerate(job.logs)}, layout)
    ways: dict[tuple[str, str], list[str]] = {}
    places: list[Place] = []
    for number, log in enumerate(job.logs):
        if layout is None and is_near(log.name) and log.divisible and not job.years:
            places += job.blocks_of(number)
            continue
        if isinstance(log, ColumnsLog):
            key = "columns", partitions_of(_absolute(log.name))[0]
        else:
            key = _way(log, has_year=not job.years), log.source.line_end.decode()
        ways.setdefault(key, []).append(literal(uri_of(log.name)))
    rows = [_rows_of_blocks(engine, places)] if places else []
    for (way, detail), uris in ways.items():
        if way == "columns":
            frame = frame_of_parquet(engine, uris, detail)
            rows.append(_rows_of_parquet(frame, job.meaning.roles, files))
        else:
            rows.append(_rows_of_text(engine, way, detail, uris, files))
    return tuple(rows)


def is_near(name: str) -> bool:
    """Whether a task can open a file by its name, as this process does."""
    return "://" not in name


def _rows_of_blocks(engine: "OnSpark", places: Sequence[Place]) -> Rows:
    """The numbers of blocks. Rows of bytes, or of lines, would pass through Java."""
    tasks = min(len(places), PARTITIONS_PER_CORE * engine.workers)
    numbers = engine.session.range(0, len(places), 1, tasks)
    return Rows(numbers, ("id",), (), partial(of_blocks, places, str(Path.cwd())))


def _absolute(name: str) -> str:
    """A name as `path_of` has it."""
    return name if "://" in name else os.path.normpath(Path(name).absolute())


def frame_of_parquet(engine: "OnSpark", uris: Sequence[str], base: str) -> "DataFrame":
    """Parquet files; the values of partitions below a directory are texts."""
    with (
        plain_failures(f"cannot read {path_of(uris[0])}"),
        sql_settings(engine.session, _TEXTS_OF_PARTITIONS),
    ):
        reader = engine.session.read
        return (reader.option("basePath", uri_of(base)) if base else reader).parquet(*uris)


def _rows_of_parquet(frame: "DataFrame", roles: Roles, files: Files) -> Rows:
    position = f"_metadata.row_index AS `{POSITION}`"
    rows = frame.selectExpr(*selected(frame, dict.fromkeys(roles.values())), position, _PATH)
    return Rows(rows, (), (), partial(of_columns, files))


def _way(log: Log, *, has_year: bool) -> str:
    """How a file is read by Spark: "lines" of splits, whole "files" of lines, or "bytes"."""
    suffix = PurePath(log.name).suffix
    if log.source.compression != _LINES_IN.get(suffix) or suffix in _OTHERS:
        return "bytes"
    if "://" not in log.name and Path(log.name).stat().st_size <= WHOLE:
        return "bytes"
    if suffix == ".gz":  # cannot be split
        return "lines"
    plain = replace(log, source=replace(log.source, compression=None))
    # The lines of a split may be more than its bytes, which are compressed.
    return "lines" if plain.divisible and has_year and suffix != ".bz2" else "files"


def _rows_of_text(
    engine: "OnSpark", way: str, line_end: str, uris: Sequence[str], files: Files
) -> Rows:
    # Not as partitions: directories are no columns of text.
    reader = engine.session.read.option("recursiveFileLookup", "true")
    split = ("file_path", "file_block_start")
    with plain_failures(f"cannot read {path_of(uris[0])}"):
        if way == "bytes":
            contents = reader.format("binaryFile").load(list(uris)).selectExpr("content", _PATH)
            return Rows(contents, ("file_path",), (), partial(of_bytes, files))
        # Without a separator, Spark would take the returns from the ends of lines.
        lines = reader.option("lineSep", line_end).text(list(uris))
    lines = lines.selectExpr("CAST(value AS BINARY) AS value", _PATH, _START)
    if way == "lines":
        return Rows(lines, split, (), partial(of_lines, files, line_end.encode()))
    # What is in a line depends on those before it, so that a file is read in order, by one task.
    stage = Stage("chunks", split, (), CHUNKS, partial(in_chunks, files, line_end.encode()))
    chunks = engine.apply(stage, lines)
    return Rows(chunks, ("file",), ("start", "number"), partial(of_chunks, files))


def files_of(engine: "OnSpark", names: Sequence[str]) -> list[str]:
    """The files of URIs, directories and patterns that Spark reads, in order. Raises LogError."""
    files: dict[str, None] = {}
    for name in names:
        base, stars, last = name.partition("/**/")
        reader = engine.session.read.format("binaryFile")
        if stars:
            settings = {"recursiveFileLookup": "true", "pathGlobFilter": last}
            reader = reader.options(**settings)
        with plain_failures(f"{name} cannot be read"):
            found = reader.load(uri_of(base)).inputFiles()
        if not found:
            raise LogError(f"no file matches {name}")
        files |= dict.fromkeys(sorted(map(path_of, found)))
    return list(files)


def first_of(engine: "OnSpark", names: Sequence[str], layout: Layout, roles: Roles) -> Log:
    """The log of the first file of several that has data. Raises LogError."""
    for name in names:
        head, suffix = _head(engine, name), PurePath(name).suffix
        if head.startswith(MAGIC) and layout.format in ("auto", ParquetLog.format):
            uris = [literal(uri_of(each)) for each in names]
            frame = frame_of_parquet(engine, uris, partitions_of(name)[0])
            return with_head(log_of_frame(frame, name, "parquet", roles), frame, roles, engine)
        if head:
            source, _ = head_of(name, io.BufferedReader(io.BytesIO(head)))
            source.compression = source.compression or _LINES_IN.get(suffix)
            return log_of(source, layout)
    raise EmptyError(f"{names[0]} is empty")


def alike(first: Log, names: Sequence[str]) -> list[Log]:
    """The logs of files of which only the first was opened."""
    of_first = first.source.compression
    by_name = PurePath(first.name).suffix in _LINES_IN
    logs = []
    for name in names:
        compression = _LINES_IN.get(PurePath(name).suffix, None if by_name else of_first)
        logs.append(
            replace(first, source=replace(first.source, name=name, compression=compression))
        )
    return logs


def _head(engine: "OnSpark", name: str) -> bytes:
    """The beginning of a file, or all of a small one as it is stored."""
    reader, uri = engine.session.read, literal(uri_of(name))
    with plain_failures(f"{name} cannot be read"):
        file = reader.format("binaryFile").load(uri)
        sizes = file.select("length").collect()
        if not sizes:  # Spark leaves out a file without data
            return b""
        if sizes[0][0] <= _MOST_OF_A_HEAD and PurePath(name).suffix not in _LINES_IN:
            return bytes(file.select("content").collect()[0][0])
        lines = reader.text(uri).selectExpr("CAST(value AS BINARY)").limit(_LINES_OF_A_HEAD)
        return b"".join(bytes(row[0]) + b"\n" for row in lines.collect())


def shipped(log: Log, roles: Roles) -> Log:
    """The log without what tasks do not need."""
    source = replace(log.source, head=b"")
    if not isinstance(log, ParquetLog | ColumnsLog):
        return replace(log, source=source)
    fields = [log.schema.field(name) for name in dict.fromkeys(roles.values())]
    schema = pa.schema(fields)
    return ColumnsLog(
        source=source,
        columns=tuple(schema.names),
        schema=schema,
        head=none_of(schema),
        format=log.format,
    )
