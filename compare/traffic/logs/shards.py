"""Write the files of a trace: the tape of each shard, and the table of rejected rows."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from compare.traffic.logs.pairs import Piece, paired
from compare.traffic.logs.requests import RequestTape
from compare.traffic.logs.rows import NONE, Meaning, RejectedRow
from compare.traffic.logs.touches import TouchTape
from compare.traffic.tapes.tape import Tape
from compare.traffic.tapes.trace import Shard, new_shard, shard_name

EXAMPLES = 5
"""The number of rejected rows in a message."""
_ROWS_AT_ONCE = 1 << 16

_PIECE = 1 << 18
"""Rows that are folded at a time."""

_GROUP = 1 << 20
"""Rows whose keys are numbered at a time, which take 20 MB."""


def in_order(runs: Iterable[Piece]) -> Iterator[Piece]:
    """The rows of runs, which are in the order of their earliest starts, by start and position.

    Memory: _PIECE rows, and as many as overlap later runs.
    """
    held: list[Piece] = []  # the first one is sorted, and the others have come since
    rows = 0
    for piece in chain(runs, [None]):
        # As many as are left, because each round sorts those again.
        if held and (piece is None or rows >= max(_PIECE, len(held[0][0]))):
            start, value, position = map(np.concatenate, zip(*held, strict=True))
            order = np.lexsort((position, start))
            # All later rows start after these.
            ready = len(order) if piece is None else int((start < piece[0].min()).sum())
            for first in range(0, ready, _PIECE):
                part = order[first : min(first + _PIECE, ready)]
                yield start[part], value[part], position[part]
            rest = order[ready:]
            held, rows = [(start[rest], value[rest], position[rest])], 0
        if piece is not None:
            held.append(piece)
            rows += len(piece[0])


def pieces(runs: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
    """The rows of each run of a shard (see `by_shard`). Equal keys become equal small numbers."""
    known: dict[bytes, int] = {}
    for group in _groups(runs):
        numbers = None
        if "key" in group.column_names:
            keys = group["key"].chunk(0).dictionary.to_pylist()
            numbers = np.array([known.setdefault(key, len(known)) for key in keys], np.int32)
        for run in group.to_batches():
            _, start, value, position = run.columns
            if numbers is not None:
                value = numbers[np.asarray(value.indices)]
            yield np.asarray(start), np.asarray(value), np.asarray(position)


def _groups(runs: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Consecutive runs, about _GROUP rows together, with one dictionary of keys.

    Most keys are in several runs. Arrow finds them faster than Python.
    """
    group: list[pa.RecordBatch] = []
    rows = 0
    for run in runs:
        group.append(run)
        rows += run.num_rows
        if rows >= _GROUP:
            yield pa.Table.from_batches(group).unify_dictionaries()
            group, rows = [], 0
    if group:
        yield pa.Table.from_batches(group).unify_dictionaries()


def write_shard(number: int, directory: Path, meaning: Meaning, rows: Iterable[Piece]) -> Shard:
    """Write the tape of a shard, whose rows are in the order of (start, position).

    Memory: the pending timers, some pieces and a row group.
    """
    timeout = meaning.timeout
    tape = TouchTape(timeout) if meaning.value == "key" else RequestTape(timeout)
    if meaning.value == "id":
        rows = paired(rows, timeout)
    with new_shard(directory / shard_name(number)) as writer, _behind(writer.append) as append:
        for start, values, position in rows:
            if isinstance(tape, TouchTape):
                append(tape.add(start, values))
            else:
                append(tape.add(start, values, values != NONE, position))
        append(tape.finish())
    return writer.shard


@contextmanager
def _behind(append: Callable[[Tape], None]) -> Iterator[Callable[[Tape], None]]:
    """Run a function on another thread, at most one call behind."""
    with ThreadPoolExecutor(1) as pool:
        running: list[Future[None]] = []

        def submit(tape: Tape) -> None:
            if running:
                running.pop().result()
            running.append(pool.submit(append, tape))

        yield submit
        for last in running:
            last.result()


class Rejected:
    """Write the table of rejected rows. If no row is rejected, no file is written."""

    def __init__(
        self, path: Path, files: Sequence[str], record: str, columns: Sequence[str]
    ) -> None:
        names = [("file", pa.string())] if len(files) > 1 else []
        names += [(record, pa.int64())]
        self._schema = pa.schema(
            names + [(name, pa.string()) for name in ("kind", "problem", *columns)]
        )
        self._path, self._files, self._record = path, files, record
        self._before = [0] * len(files)  # lines or records in the blocks of each file
        self._rows: list[tuple[Any, ...]] = []
        self._writer: pq.ParquetWriter | None = None
        self.kinds: Counter[str] = Counter()
        self.examples: list[str] = []

    def add(self, file: int, total: int, rows: Iterable[RejectedRow]) -> None:
        """Add the rejected rows of the next block of a file, which has `total` lines or records."""
        for row in rows:
            self.kinds[row.kind] += 1
            number = self._before[file] + row.number + 1
            place: tuple[Any, ...] = (number,)
            where = f"{self._record} {number}"
            if len(self._files) > 1:
                place, where = (self._files[file], number), f"{self._files[file]}, {where}"
            if len(self.examples) < EXAMPLES:
                self.examples.append(f"{where}: {row.problem}")
            self._rows.append((*place, *row[1:]))
        self._before[file] += total
        if len(self._rows) >= _ROWS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, self._schema, compression="zstd")
        columns = zip(*self._rows, strict=True)
        arrays = [pa.array(*pair) for pair in zip(columns, self._schema.types, strict=True)]
        self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._rows = []

    def close(self) -> None:
        """Complete the file."""
        if self._rows:
            self._flush()
        if self._writer is not None:
            self._writer.close()
