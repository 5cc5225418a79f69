"""Write the files of a trace: the tape of each shard, and the table of rejected rows."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from compare.base.executors import Stopping, never_stopping, until_stopping
from compare.traffic.logs.pairs import in_time, paired
from compare.traffic.logs.requests import EMPTY, RequestTape
from compare.traffic.logs.rows import NONE, Meaning
from compare.traffic.logs.sorting import Piece, Scratch, Waiting, by_time, in_order, joined_pieces
from compare.traffic.logs.touches import TouchTape
from compare.traffic.tapes.description import Late
from compare.traffic.tapes.tape import Tape
from compare.traffic.tapes.trace import Shard, new_shard, shard_name
from timers.arrays import Int32s

EXAMPLES = 5
"""The number of rejected rows in a message."""
_ROWS_AT_ONCE = 1 << 16

_GROUP = 1 << 20
"""Rows whose keys are numbered at a time, which take 24 MB."""


class Numbering(dict[bytes, int]):
    """Small numbers of the keys of a shard: equal keys have equal ones."""

    def of(self, texts: Iterable[bytes]) -> Int32s:
        """The numbers of keys."""
        return np.array([self.setdefault(text, len(self)) for text in texts], np.int32)


def pieces(runs: Iterable[pa.RecordBatch], numbering: Numbering) -> Iterator[Piece]:
    """The rows of runs (see `RUNS`), about _GROUP at a time, with numbers for keys."""
    for group in _groups(runs):
        start, value, position = (
            np.asarray(pc.list_flatten(group[name])) for name in ("start", "value", "position")
        )
        if group["keys"].null_count == 0:
            # Most keys are in several runs. Arrow finds them faster than Python.
            keys = pc.list_flatten(group["keys"]).combine_chunks().dictionary_encode()
            numbers = numbering.of(keys.dictionary.to_pylist())
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


class Runs:
    """The runs of one shard in any order. The rest of them waits in a file; see `set_aside`."""

    def __init__(self, scratch: Scratch) -> None:
        self._runs: list[pa.RecordBatch] = []
        self._numbering = Numbering()
        self._waiting = Waiting(scratch)

    def add(self, run: pa.RecordBatch) -> None:
        """Add a run."""
        self._runs.append(run)

    def set_aside(self) -> None:
        """Sort the runs that are in memory as one, and write it to the file. O(n log n)."""
        if self._runs:
            runs, self._runs = self._runs, []
            time, value, position = joined_pieces(pieces(runs, self._numbering))
            order = by_time(time, position)
            self._waiting.add((time[order], value[order], position[order]))

    def in_order(self) -> Iterator[Piece]:
        """Take all rows in order."""
        if self._waiting.first is not None:
            self.set_aside()
            yield from in_order(self._waiting)
            return
        runs = sorted(
            self._runs, key=lambda run: (run["first"][0].as_py(), run["place"][0].as_py())
        )
        self._runs = []
        yield from in_order(pieces(runs, self._numbering))


def write_shard(
    number: int,
    directory: Path,
    meaning: Meaning,
    rows: Iterable[Piece],
    stopping: Stopping = never_stopping,
) -> Shard:
    """Write the tape of a shard, whose rows are in order. Raises Stopped if the work should stop.

    Memory: some pieces and a row group, and 16 bytes for each timer that is pending at once; for
    touches, 52 for each key.
    """
    with (
        closing(Scratch(directory)) as scratch,
        new_shard(directory / shard_name(number)) as writer,
        _behind(writer.append) as append,
    ):
        for tape, late in until_stopping(_tapes(meaning, rows, scratch), stopping):
            append(tape, late)
    return writer.shard


def _tapes(
    meaning: Meaning, rows: Iterable[Piece], scratch: Scratch
) -> Iterator[tuple[Tape, Late | None]]:
    """The tape of rows that are in order, in pieces, and late answers or touches that it lacks."""
    if meaning.value == "key":
        touches = TouchTape(meaning.timeout)
        yield from (touches.add(start, keys) for start, keys, _ in rows)
        return
    requests = RequestTape(meaning.timeout, Waiting(scratch))
    pairing = partial(paired, waiting=Waiting(scratch)) if meaning.value == "id" else in_time
    for (start, end, position), late in pairing(rows, meaning.timeout):
        yield EMPTY, late
        yield from ((tape, None) for tape in requests.add(start, end, end != NONE, position))
    yield from ((tape, None) for tape in requests.finish())


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
