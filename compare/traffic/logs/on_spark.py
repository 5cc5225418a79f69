"""The ingestion of a log on Spark: a plan of DataFrames from rows of any source to blocks.

Spark lists, splits, decompresses and reads files, and exchanges and sorts runs of rows. Rows with
types come as columns. Text comes as lines, or as the bytes of a file that lines cannot carry, and
is parsed by the same formats as on this machine: two parsers would differ in quotes and digits.
"""

import io
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain, groupby
from math import gcd
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from compare.base.datasets import Dataset
from compare.base.stages import SHARD, Batches, Stage
from compare.spark.engine import literal, uri_of
from compare.spark.failures import plain_failures
from compare.spark.frames import arrow_type, expressions, leaves, new_observation, selected
from compare.spark.places import TABLE
from compare.spark.session import sql_settings
from compare.traffic.logs.blocks import (
    HEAD_BYTES,
    Block,
    EmptyError,
    LogError,
    Source,
    decompressed,
    head_of,
    read_some,
)
from compare.traffic.logs.formats.arrow import FIRST_ROWS, ArrowLog, none_of
from compare.traffic.logs.formats.base import Layout, Log, Roles
from compare.traffic.logs.formats.parquet import MAGIC, ParquetLog, partitions_of
from compare.traffic.logs.inspect import first_second
from compare.traffic.logs.job import Job, Place, Result
from compare.traffic.logs.numbers import Year
from compare.traffic.logs.opening import log_of
from compare.traffic.logs.pairs import without_start
from compare.traffic.logs.reading import Seen
from compare.traffic.logs.rows import KINDS, NO_POSITIONS, REJECTED_ROWS, RUNS, Parsed
from compare.traffic.logs.shards import (
    EXAMPLES,
    Numbering,
    Rejected,
    example,
    fold,
    pieces,
    rejected_schema,
)
from compare.traffic.logs.sorting import in_order
from compare.traffic.tapes.places import UnfinishedFarTrace
from compare.traffic.tapes.trace import UnfinishedTrace
from timers.arrays import Int64s

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from compare.spark.engine import OnSpark

_COUNTS = ("rows", *KINDS, "without_zone", "bad_durations", "other_lines", "bounds")
_NUMBERS = (*_COUNTS, "step", "least_zone", "greatest_zone", "present")
PARSED = RUNS.append(pa.field("about", pa.struct([(name, pa.int64()) for name in _NUMBERS])))
"""Runs, and for each call of `parse` a row that has only `about`: counts, and what `Seen` has. Of
the roles in `present`, each is a bit."""
_REJECTED = pa.schema(
    [
        ("file", pa.int32()),
        ("first", pa.int64()),
        ("total", pa.int64()),
        ("rejected", pa.list_(pa.struct(list(REJECTED_ROWS)))),
    ]
)
"""A part of a block: its position, its lines or records, and the rejected ones."""
_CHUNKS = pa.schema(
    [("file", pa.int32()), ("start", pa.int64()), ("number", pa.int64()), ("data", pa.binary())]
)
"""Consecutive lines of a file: the first byte of the split that has them, and their place in it."""
_POSITIONS = pa.schema([("position", pa.int64())])

_PATH, _START = "_metadata.file_path", "_metadata.file_block_start"
_POSITION = " position"  # no column of a log is named so
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

Parts = Iterator[tuple[Place, Parsed]]
Read = Callable[[Batches], Parts]


class Rows(NamedTuple):
    """Rows of a log as Spark reads them, and what makes parts of blocks of them in a task."""

    frame: "DataFrame"
    key: tuple[str, ...]  # of the rows that one call takes
    order: tuple[str, ...]
    read: Callable[[Job, Int64s, Batches], Parts]


class Files(NamedTuple):
    """The files of a log, as tasks know them."""

    numbers: dict[str, int]  # by `path_of`
    layout: Layout | None = None  # if only the head of the first one is known: others are alike

    def number(self, uri: str) -> int:
        """The number of a file of Spark."""
        return self.numbers[path_of(uri)]


def path_of(uri: str) -> str:
    """The path of a URI of Spark on this machine, or a URI as people write it."""
    return unquote(re.sub("^file:/+", "/", uri))


# ---- in a task: from rows of a log to parts of blocks


def _of_columns(files: Files, job: Job, unmatched: Int64s, batches: Batches) -> Parts:
    """The parts of rows with types: consecutive positions of a file."""
    for batch in batches:
        position = np.asarray(batch[_POSITION])
        breaks, numbers, which = np.diff(position) != 1, [0], np.zeros(len(position), np.int32)
        if files.numbers:
            paths = batch["file_path"].dictionary_encode()
            numbers, which = list(map(files.number, paths.dictionary.to_pylist())), paths.indices
            breaks |= np.diff(which) != 0
        ends = [*(np.flatnonzero(breaks) + 1).tolist(), batch.num_rows]
        for begin, end in zip([0, *ends], ends, strict=False):
            if begin < end:
                file = numbers[int(which[begin])]
                rows = _named(batch.slice(begin, end - begin), job.logs[file], job.meaning.roles)
                place = Place(file, Block(int(position[begin]), end - begin, context=rows))
                yield from ((place, parsed) for parsed in job.read(place, unmatched))


def _named(batch: pa.RecordBatch, log: Any, roles: Roles) -> pa.RecordBatch:
    """The columns of roles, by their names in the log.

    They have the types that Arrow notes beside those of Parquet, which Spark ignores.
    """
    columns = {}
    for name, column in zip(dict.fromkeys(roles.values()), batch.columns, strict=False):
        kind = log.schema.field(name).type
        is_noted = pa.types.is_int64(column.type) and pa.types.is_temporal(kind)
        columns[name] = column.cast(kind) if is_noted else column
    return pa.RecordBatch.from_pydict(columns)


def _of_lines(
    files: Files, line_end: bytes, job: Job, unmatched: Int64s, batches: Batches
) -> Parts:
    """The parts of splits, whose lines are rows."""
    for (file, start), chunks in groupby(
        _joined(files, line_end, batches), lambda chunk: chunk[:2]
    ):
        lines = _Stream(data for _, _, data in chunks)
        yield from _of_stream(files, job, unmatched, file, lines, start)


def _joined(files: Files, line_end: bytes, batches: Batches) -> Iterator[tuple[int, int, bytes]]:
    """Lines as bytes, with the number of their file and the start of the split."""
    for batch in batches:
        file, start = files.number(batch["file_path"][0].as_py()), batch["file_block_start"][0]
        lines = pa.ListArray.from_arrays(pa.array([0, batch.num_rows], pa.int32()), batch["value"])
        data: bytes = pc.binary_join(lines.cast(pa.list_(pa.binary())), line_end)[0].as_py()
        yield file, start.as_py(), data + line_end


def _chunks(files: Files, line_end: bytes, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The lines of a split, as _CHUNKS."""
    for number, (file, start, data) in enumerate(_joined(files, line_end, batches)):
        values = ([file], [start], [number], [data])
        columns = [pa.array(each, kind) for each, kind in zip(values, _CHUNKS.types, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=_CHUNKS)


def _of_chunks(files: Files, job: Job, unmatched: Int64s, batches: Batches) -> Parts:
    """The parts of a whole file, whose chunks are rows."""
    first = next(batches)
    data = (data for batch in chain([first], batches) for data in batch["data"].to_pylist())
    yield from _of_stream(files, job, unmatched, first["file"][0].as_py(), _Stream(data))


def _of_bytes(files: Files, job: Job, unmatched: Int64s, batches: Batches) -> Parts:
    """The parts of files, each of which is a row."""
    for batch in batches:
        for uri, content in zip(batch["file_path"].to_pylist(), batch["content"], strict=True):
            if data := content.as_py():
                file = files.number(uri)
                stream = decompressed(io.BufferedReader(io.BytesIO(data)), job.logs[file].source)
                yield from _of_stream(files, job, unmatched, file, stream)


class _Stream:
    """Chunks of bytes as a file."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._held = chunks, b""

    def read(self, size: int) -> bytes:
        """Read `size` bytes, fewer only at the end."""
        parts, held = [self._held], len(self._held)
        while held < size and (chunk := next(self._chunks, None)) is not None:
            parts.append(chunk)
            held += len(chunk)
        data = b"".join(parts)
        self._held = data[size:]
        return data[:size]


def _of_stream(
    files: Files, job: Job, unmatched: Int64s, file: int, stream: Any, start: int = 0
) -> Parts:
    """The parts of lines that begin at a byte of a file."""
    log, years = job.logs[file], job.years
    source = replace(log.source, head=b"", stream=stream)
    if files.layout is not None and file and not start:
        source.head = read_some(stream, source, HEAD_BYTES)
        found = _alike(replace(log, source=source), files.layout, job.logs[0])
        if years:
            second = first_second(found, job.meaning.roles["time"], job.meaning.form)
            years = tuple(Year(year.year, second) for year in years)
    logs = (*job.logs[:file], replace(log, source=source), *job.logs[file + 1 :])
    job = job._replace(logs=logs, years=years)
    for place in job.blocks_of(file):
        there = place._replace(block=place.block._replace(first=start + place.block.first))
        yield from ((there, parsed) for parsed in job.read(there, unmatched))


def _alike(log: Log, layout: Layout, first: Log) -> Log:
    """The log as its own head shows it. Raises LogError if the first file has other columns."""
    found = log_of(log.source, layout)
    if (found.format, found.columns) != (first.format, first.columns):
        raise LogError(
            f"{log.name} is {found.format} with the columns {found.listed}, and {first.name} is"
            f" {first.format} with {first.listed}; files that only Spark reads must be alike"
        )
    return found


# ---- in a task: from parts to rows


def _parse(
    read: Callable[[Job, Int64s, Batches], Parts],
    job: Job,
    unmatched: Int64s,
    strict: bool,
    batches: Batches,
) -> Iterator[pa.RecordBatch]:
    """PARSED rows. With `strict`, raises LogError for a row that cannot be used."""
    seen, counts = Seen(), dict.fromkeys(("rows", *KINDS), 0)
    for place, parsed in read(job, unmatched, batches):
        runs = parsed.runs
        if runs.num_rows:
            nothing = pa.nulls(runs.num_rows, PARSED.field("about").type)
            yield runs.append_column(PARSED.field("about"), nothing)
        counts["rows"] += parsed.rows
        for kind in parsed.rejected["kind"].to_pylist():
            counts[kind] += 1
        if strict and parsed.rejected.num_rows:
            problem = parsed.rejected["problem"][0].as_py()
            raise LogError(f"a row of {job.logs[place.file].name} cannot be used: {problem}")
        seen.merge(parsed.seen)
    present = sum(1 << bit for bit, role in enumerate(job.meaning.roles) if role in seen.present)
    numbers = {name: getattr(seen, name) for name in _NUMBERS if name not in counts}
    yield pa.RecordBatch.from_pylist([{"about": numbers | counts | {"present": present}}], PARSED)


def _rejected(
    read: Callable[[Job, Int64s, Batches], Parts], job: Job, unmatched: Int64s, batches: Batches
) -> Iterator[pa.RecordBatch]:
    """_REJECTED rows."""
    last, first = None, 0
    for place, parsed in read(job, unmatched, batches):
        first = first if place is last else place.position
        row = {"file": place.file, "first": first, "total": parsed.total}
        row["rejected"] = parsed.rejected.to_pylist()
        yield pa.RecordBatch.from_pylist([row], _REJECTED)
        last, first = place, first + parsed.total


def _numbered(
    names: Sequence[str], schema: pa.Schema, batches: Batches
) -> Iterator[pa.RecordBatch]:
    """The rejected rows of a file, with the numbers of their lines or records."""
    table = Rejected(schema)
    for batch in batches:
        for row in batch.to_pylist():
            rows = pa.RecordBatch.from_pylist(row["rejected"], REJECTED_ROWS)
            numbered = table.number(names[row["file"]], row["total"], rows)
            if numbered.num_rows:
                yield numbered


def _without_start(batches: Batches) -> Iterator[pa.RecordBatch]:
    """The positions of the ends of a shard that have no start."""
    rows = in_order(pieces((batch.select(RUNS.names) for batch in batches), Numbering()))
    yield pa.RecordBatch.from_arrays([without_start(rows)], schema=_POSITIONS)


# ---- the rows of a log, as Spark reads them


@dataclass(frozen=True, kw_only=True)
class ColumnsLog(ArrowLog):
    """Columns whose rows are Spark's; of them, only the first may be known here."""

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
    position = f"monotonically_increasing_id() AS `{_POSITION}`"
    rows = frame.selectExpr(*selected(frame, dict.fromkeys(roles.values())), position)
    return Rows(rows, (), (), partial(_of_columns, Files({})))


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
    for log in job.logs:
        if isinstance(log, ColumnsLog):
            key = "columns", partitions_of(_absolute(log.name))[0]
        else:
            key = _way(log, has_year=not job.years), log.source.line_end.decode()
        ways.setdefault(key, []).append(literal(uri_of(log.name)))
    rows = []
    for (way, detail), uris in ways.items():
        if way == "columns":
            frame = frame_of_parquet(engine, uris, detail)
            rows.append(_rows_of_parquet(frame, job.meaning.roles, files))
        else:
            rows.append(_rows_of_text(engine, way, detail, uris, files))
    return tuple(rows)


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
    position = f"_metadata.row_index AS `{_POSITION}`"
    rows = frame.selectExpr(*selected(frame, dict.fromkeys(roles.values())), position, _PATH)
    return Rows(rows, (), (), partial(_of_columns, files))


def _way(log: Log, *, has_year: bool) -> str:
    """How Spark reads a file: as "lines" of splits, as all lines of "files", or as "bytes"."""
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
            return Rows(contents, ("file_path",), (), partial(_of_bytes, files))
        # Without a separator, Spark would take the returns from the ends of lines.
        lines = reader.option("lineSep", line_end).text(list(uris))
    lines = lines.selectExpr("CAST(value AS BINARY) AS value", _PATH, _START)
    if way == "lines":
        return Rows(lines, split, (), partial(_of_lines, files, line_end.encode()))
    # What is in a line depends on those before it, so that a file is read in order, by one task.
    stage = Stage("chunks", split, (), _CHUNKS, partial(_chunks, files, line_end.encode()))
    chunks = engine.apply(stage, lines)
    return Rows(chunks, ("file",), ("start", "number"), partial(_of_chunks, files))


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


# ---- plans


class Plan(NamedTuple):
    """The ingestion of a log as DataFrames."""

    engine: "OnSpark"
    job: Job
    sources: tuple[Rows, ...]

    def parsed(self, unmatched: Int64s = NO_POSITIONS, *, strict: bool = False) -> "DataFrame":
        """PARSED rows."""

        def function(rows: Rows) -> Any:
            return partial(_parse, rows.read, self.job, unmatched, strict)

        return self._each("parse", PARSED, function)

    def blocks(self, parsed: "DataFrame") -> "DataFrame":
        """The blocks of the trace, from PARSED rows."""
        runs = parsed.where("about IS NULL").drop("about")
        numbers = self.engine.numbers(self.job.meaning.shards)
        return self.engine.apply(fold(self.job.meaning), runs, numbers)

    def unmatched(self) -> Int64s:
        """The positions of ends without a start: a job of its own, before they are rejected."""
        if self.job.meaning.value != "id":
            return NO_POSITIONS
        runs = self.parsed().where("about IS NULL").drop("about")
        stage = Stage("unmatched", (SHARD,), ("first", "place"), _POSITIONS, _without_start)
        text = f"ingest: ends without a start in {self.job.name}"
        return np.sort(np.asarray(self.engine.collect(self.engine.apply(stage, runs), text)[0]))

    def rejected(self, unmatched: Int64s) -> "DataFrame":
        """The rejected rows."""

        def function(rows: Rows) -> Any:
            return partial(_rejected, rows.read, self.job, unmatched)

        parts, names = self._each("reject", _REJECTED, function), [x.name for x in self.job.logs]
        schema = rejected_schema(len(names) > 1, self.job.logs[0].record, self.job.meaning.value)
        stage = Stage("number", ("file",), ("first",), schema, partial(_numbered, names, schema))
        return self.engine.apply(stage, parts)

    def _each(self, name: str, output: pa.Schema, function: Callable[[Rows], Any]) -> "DataFrame":
        """The results of a stage for the rows of all sources."""
        apply = self.engine.apply
        results = [
            apply(Stage(name, rows.key, rows.order, output, function(rows)), rows.frame)
            for rows in self.sources
        ]
        return self.engine.union(*results)


def counts_of_rows() -> "list[Column]":
    """Columns that aggregate `about` of PARSED rows, for a job or for `observe`."""
    sums = [f"sum(about.{name}) AS {name}" for name in _COUNTS]
    others = [
        "array_join(collect_set(cast(about.step AS string)), ' ') AS steps",
        "min(about.least_zone) AS least_zone",
        "max(about.greatest_zone) AS greatest_zone",
        "bit_or(about.present) AS present",
    ]
    return expressions([*sums, *others])


def ingest_on_spark(plan: Plan, trace: UnfinishedTrace | UnfinishedFarTrace) -> Result:
    """Write the blocks of a log, and the rejected rows if there are any.

    One job writes the blocks and counts. Only if rows are rejected, others read the log again.
    """
    engine, job = plan.engine, plan.job
    unmatched, observation = plan.unmatched(), new_observation()
    parsed = plan.parsed(unmatched)
    blocks = plan.blocks(parsed.observe(observation, *counts_of_rows()))
    engine.write(blocks, str(trace.blocks), f"ingest: {job.name}, {job.meaning.shards} shards")
    found = observation.get
    used = sum(shard.starts + shard.arms for shard in trace.shards)
    if job.meaning.value != "id" and found.get("rows") != used:
        # A stage of which a part ran again observes its rows again.
        counted = parsed.agg(*counts_of_rows())
        (found,) = engine.collect(counted, f"ingest: count rows of {job.name}").to_pylist()
    kinds = {kind: found[kind] or 0 for kind in KINDS}
    examples: list[str] = []
    if any(kinds.values()):
        rows, text = plan.rejected(unmatched), f"ingest: rejected rows of {job.name}"
        engine.write(rows, str(trace.rejected), text)
        examples = _examples(plan, str(trace.rejected))
    return Result(kinds, examples, _seen(found, job))


def _seen(found: Mapping[str, Any], job: Job) -> Seen:
    seen = Seen(step=reduce(gcd, map(int, (found["steps"] or "0").split())))
    for name in ("least_zone", "greatest_zone", *_COUNTS[1 + len(KINDS) :]):
        if found[name] is not None:
            setattr(seen, name, found[name])
    roles, bits = enumerate(job.meaning.roles), found["present"] or 0
    seen.present = frozenset(role for bit, role in roles if bits >> bit & 1)
    return seen


def _examples(plan: Plan, path: str) -> list[str]:
    """The first rejected rows, in the order of the log."""
    names, record = [log.name for log in plan.job.logs], plan.job.logs[0].record
    schema = rejected_schema(len(names) > 1, record, plan.job.meaning.value)
    rows = plan.engine.read(Dataset(path, schema, (record,), LogError), 0)
    found = [rows]
    if len(names) > 1:
        files = {row[0] for row in rows.select("file").distinct().collect()}
        some = [name for name in names if name in files][:EXAMPLES]
        found = [rows.where(rows["file"] == name) for name in some]
    examples: list[str] = []
    for of_file in found:
        first = of_file.orderBy(record).limit(EXAMPLES - len(examples)).collect()
        examples += [example(row.asDict(), record) for row in first]
    return examples
