"""Write the files of a trace: the tape of each shard, and the table of rejected rows."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from compare.traffic.logs.pairs import Piece, in_time, paired, without_start
from compare.traffic.logs.requests import RequestTape, by_time
from compare.traffic.logs.rows import NO_POSITIONS, NONE, Meaning
from compare.traffic.logs.touches import TouchTape
from compare.traffic.tapes.description import Late
from compare.traffic.tapes.tape import Tape
from compare.traffic.tapes.trace import Shard, new_shard, shard_name
from timers.arrays import Int64s

EXAMPLES = 5
"""The number of rejected rows in a message."""
_ROWS_AT_ONCE = 1 << 16

_PIECE = 1 << 16
"""Rows that are folded at a time."""

_GROUP = 1 << 20
"""Rows whose keys are numbered at a time, which take 24 MB."""


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
            order = by_time(start, position)
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
    """The rows of runs (see `RUNS`), about _GROUP at a time.

    Equal keys become equal small numbers.
    """
    known: dict[bytes, int] = {}
    for group in _groups(runs):
        start, value, position = (
            np.asarray(pc.list_flatten(group[name])) for name in ("start", "value", "position")
        )
        if group["keys"].null_count == 0:
            # Most keys are in several runs. Arrow finds them faster than Python.
            keys = pc.list_flatten(group["keys"]).combine_chunks().dictionary_encode()
            texts = keys.dictionary.to_pylist()
            numbers = np.array([known.setdefault(text, len(known)) for text in texts], np.int32)
            rows, sizes = (
                np.asarray(pc.list_value_length(group[name])) for name in ("start", "keys")
            )
            value = value + np.repeat(np.cumsum(sizes) - sizes, rows)
            value = numbers[np.asarray(keys.indices)[value]]
        yield start, value, position


def _groups(runs: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Consecutive runs, about _GROUP rows together."""
    group: list[pa.RecordBatch] = []
    rows = 0
    for some in runs:
        group.append(some)
        rows += len(some["start"].flatten())
        if rows >= _GROUP:
            yield pa.Table.from_batches(group)
            group, rows = [], 0
    if group:
        yield pa.Table.from_batches(group)


def ends_without_start(runs: Iterable[pa.RecordBatch]) -> Int64s:
    """The positions of ends without a start, of all runs of an id in any order."""
    rows = list(pieces(runs))
    return without_start(*map(np.concatenate, zip(*rows, strict=True))) if rows else NO_POSITIONS


def write_shard(
    number: int, directory: Path, meaning: Meaning, runs: Iterable[pa.RecordBatch]
) -> Shard:
    """Write the tape of a shard, whose runs are in the order of their first starts.

    Memory: the pending timers, runs that overlap, some pieces and a row group.
    """
    timeout, rows = meaning.timeout, in_order(pieces(runs))
    tape = TouchTape(timeout) if meaning.value == "key" else RequestTape(timeout)
    with new_shard(directory / shard_name(number)) as writer, _behind(writer.append) as append:
        if isinstance(tape, TouchTape):
            for start, keys, _ in rows:
                append(*tape.add(start, keys))
        else:
            requests = paired if meaning.value == "id" else in_time
            for (start, end, position), late in requests(rows, timeout):
                append(tape.add(start, end, end != NONE, position), late)
        append(tape.finish())
    return writer.shard


@contextmanager
def _behind(append: Callable[..., None]) -> Iterator[Callable[..., None]]:
    """Run a function on another thread, at most one call behind."""
    with ThreadPoolExecutor(1) as pool:
        running: list[Future[None]] = []

        def submit(tape: Tape, late: Late | None = None) -> None:
            if running:
                running.pop().result()
            running.append(pool.submit(append, tape, late))

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
        self._rows: list[pa.RecordBatch] = []  # not written yet
        self._writer: pq.ParquetWriter | None = None
        self.kinds: Counter[str] = Counter()
        self.examples: list[str] = []

    def add(self, file: int, total: int, rows: pa.RecordBatch) -> None:
        """Add the rejected rows of the next block of a file, which has `total` lines or records."""
        first, self._before[file] = self._before[file] + 1, self._before[file] + total
        if not rows.num_rows:
            return
        self.kinds.update(
            {each["values"]: each["counts"] for each in rows["kind"].value_counts().to_pylist()}
        )
        numbers, *columns = rows.columns
        numbers = pc.add(numbers, first)
        place = f"{self._files[file]}, " if len(self._files) > 1 else ""
        more = slice(EXAMPLES - len(self.examples))
        for number, problem in zip(numbers[more], rows["problem"][more], strict=True):
            self.examples.append(f"{place}{self._record} {number}: {problem}")
        if place:
            columns.insert(0, pa.repeat(self._files[file], len(numbers)))
        columns.insert(bool(place), numbers)
        rows = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        self._rows.append(rows)
        if sum(each.num_rows for each in self._rows) >= _ROWS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, self._schema, compression="zstd")
        self._writer.write_table(pa.Table.from_batches(self._rows))
        self._rows = []

    def close(self) -> None:
        """Complete the file."""
        if self._rows:
            self._flush()
        if self._writer is not None:
            self._writer.close()
