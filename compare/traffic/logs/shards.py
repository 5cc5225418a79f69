"""Fold runs of rows into the blocks of a trace, and number the rejected rows."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from compare.base.executors import Stopping, never_stopping, until_stopping
from compare.base.stages import SHARD, Batches, Stage
from compare.traffic.logs.pairs import in_time, paired
from compare.traffic.logs.requests import EMPTY, RequestTape
from compare.traffic.logs.rows import NONE, RUNS, Meaning
from compare.traffic.logs.sorting import Piece, Scratch, Waiting, by_time, in_order, joined_pieces
from compare.traffic.logs.touches import TouchTape
from compare.traffic.tapes.blocks import BLOCKS, blocks_of
from compare.traffic.tapes.description import Late
from compare.traffic.tapes.tape import Tape
from timers.arrays import Int32s

Made = TypeVar("Made")

EXAMPLES = 5
"""The number of rejected rows in a message."""

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


def shard_blocks(
    number: int,
    meaning: Meaning,
    rows: Iterable[Piece],
    scratch: Scratch,
    stopping: Stopping = never_stopping,
) -> Iterator[pa.RecordBatch]:
    """The blocks of a shard, whose rows are in order. Raises Stopped if the work should stop.

    Memory: some pieces and two blocks, and 16 bytes for each timer that is pending at once; for
    touches, 52 for each key.
    """
    tapes = until_stopping(_tapes(meaning, rows, scratch), stopping)
    yield from blocks_of(number, _ahead(tapes))


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


def _ahead(pieces: Iterator[Made]) -> Iterator[Made]:
    """The pieces; another thread makes the next one while the caller works on one."""
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, pieces, None)
        while (piece := following.result()) is not None:
            following = pool.submit(next, pieces, None)
            yield piece


def fold(meaning: Meaning) -> Stage:
    """Turn the runs of each shard into its blocks. A shard without runs has a row without one.

    Ids are dense and used again, so a shard is folded by one task, in the order of its rows.
    """
    return Stage("fold", (SHARD,), ("first", "place"), BLOCKS, partial(_folded, meaning))


def _folded(meaning: Meaning, batches: Batches) -> Iterator[pa.RecordBatch]:
    number: list[int] = []

    def runs() -> Batches:
        for batch in batches:
            number[:] = batch[SHARD][:1].to_pylist()
            yield batch.filter(batch["first"].is_valid()).select(RUNS.names)

    first, rest = next(waiting := runs()), waiting
    with closing(Scratch()) as scratch:
        rows = in_order(pieces(chain([first], rest), Numbering()))
        yield from shard_blocks(number[0], meaning, rows, scratch)


def rejected_schema(several: bool, record: str, value: str) -> pa.Schema:
    """The columns of rejected rows, of one file or several; `value` is a role."""
    files = [("file", pa.string())] if several else []
    texts = ((name, pa.string()) for name in ("kind", "problem", "time", value))
    return pa.schema([*files, (record, pa.int64()), *texts])


class Rejected:
    """Numbers the rejected rows of one file after the other."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.kinds: Counter[str] = Counter()
        self.examples: list[str] = []
        self._before: Counter[str] = Counter()  # lines or records in the blocks of each file

    def number(self, file: str, total: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rejected rows of the next block of a file, which has `total` lines or records."""
        first, self._before[file] = self._before[file] + 1, self._before[file] + total
        numbers, *columns = rows.columns
        columns.insert(0, pc.add(numbers, first))
        if several := self.schema.names[0] == "file":
            columns.insert(0, pa.repeat(file, rows.num_rows))
        numbered = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        self.kinds.update(rows["kind"].to_pylist())
        for row in numbered.slice(0, EXAMPLES - len(self.examples)).to_pylist():
            self.examples.append(example(row, self.schema.names[several]))
        return numbered


def example(row: Mapping[str, Any], record: str) -> str:
    """A rejected row in a message."""
    place = f"{row['file']}, " if "file" in row else ""
    return f"{place}{record} {row[record]}: {row['problem']}"
