"""Parts of blocks of a log, from its rows as Spark hands them to a task.

Text comes as lines, or as the bytes of a file that lines cannot carry, and is parsed by the same
formats as on this machine: two parsers would differ in quotes and digits.
"""

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from compare.base.stages import Batches
from compare.traffic.logs.blocks import HEAD_BYTES, Block, LogError, decompressed, read_some
from compare.traffic.logs.first_times import first_second
from compare.traffic.logs.formats.base import Layout, Log, Roles
from compare.traffic.logs.job import Job, Place
from compare.traffic.logs.numbers import Year
from compare.traffic.logs.opening import log_of
from compare.traffic.logs.rows import Parsed
from timers.arrays import Int64s

POSITION = " position"  # no column of a log is named so
CHUNKS = pa.schema(
    [("file", pa.int32()), ("start", pa.int64()), ("number", pa.int64()), ("data", pa.binary())]
)
"""Consecutive lines of a file: the first byte of the split that has them, and their place in it."""

Parts = Iterator[tuple[Place, Parsed]]


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


def of_columns(files: Files, job: Job, unmatched: Int64s, batches: Batches) -> Parts:
    """The parts of rows with types: consecutive positions of a file."""
    for batch in batches:
        position = np.asarray(batch[POSITION])
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


def of_lines(files: Files, line_end: bytes, job: Job, unmatched: Int64s, batches: Batches) -> Parts:
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


def in_chunks(files: Files, line_end: bytes, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The lines of a split, as CHUNKS."""
    for number, (file, start, data) in enumerate(_joined(files, line_end, batches)):
        values = ([file], [start], [number], [data])
        columns = [pa.array(each, kind) for each, kind in zip(values, CHUNKS.types, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=CHUNKS)


def of_chunks(files: Files, job: Job, unmatched: Int64s, batches: Batches) -> Parts:
    """The parts of a whole file, whose chunks are rows."""
    first = next(batches)
    data = (data for batch in chain([first], batches) for data in batch["data"].to_pylist())
    yield from _of_stream(files, job, unmatched, first["file"][0].as_py(), _Stream(data))


def of_blocks(
    places: Sequence[Place], directory: str, job: Job, unmatched: Int64s, batches: Batches
) -> Parts:
    """The parts of the blocks with some numbers, in files that the task opens itself."""
    for batch in batches:
        for place in map(places.__getitem__, batch["id"].to_pylist()):
            log = job.logs[place.file]
            source = replace(log.source, name=str(Path(directory, log.name)))
            there = _with_log(job, place.file, replace(log, source=source))
            yield from ((place, parsed) for parsed in there.read(place, unmatched))


def of_bytes(files: Files, job: Job, unmatched: Int64s, batches: Batches) -> Parts:
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
    job = _with_log(job, file, replace(log, source=source))._replace(years=years)
    for place in job.blocks_of(file):
        there = place._replace(block=place.block._replace(first=start + place.block.first))
        yield from ((there, parsed) for parsed in job.read(there, unmatched))


def _with_log(job: Job, file: int, log: Log) -> Job:
    return job._replace(logs=(*job.logs[:file], log, *job.logs[file + 1 :]))


def _alike(log: Log, layout: Layout, first: Log) -> Log:
    """The log as its own head shows it. Raises LogError if the first file has other columns."""
    found = log_of(log.source, layout)
    if (found.format, found.columns) != (first.format, first.columns):
        raise LogError(
            f"{log.name} is {found.format} with the columns {found.listed}, and {first.name} is"
            f" {first.format} with {first.listed}; files that only Spark reads must be alike"
        )
    return found
