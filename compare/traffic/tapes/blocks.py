"""Blocks: the rows of a trace. Each has some consecutive operations of a shard as arrays.

The last block of a shard also says what the shard has, so that a missing block is noticed.

>>> tape = Tape(*(np.array([value], dtype) for value, dtype in zip((5, 0, 0, 9), DTYPES)))
>>> [block] = blocks_of(3, [tape])
>>> block.select(["shard", "block", "time", "deadline"]).to_pylist()
[{'shard': 3, 'block': 0, 'time': [5], 'deadline': [9]}]
>>> [tape.id.tolist() for tape in Tapes("example", 3).of([block])]
[[0]]
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa

from compare.base.records import arrow_type, record_of, row_of
from compare.traffic.tapes.description import Counts, Describer, Late
from compare.traffic.tapes.tape import (
    DTYPES,
    MAX_ID_SPACE,
    Rules,
    Tape,
    TapeError,
    count_ops,
    id_space_of,
    joined,
    part,
)
from timers import TimerError

BLOCK = 1 << 16
"""Operations of a block, unless it is the last of its shard: 1.4 MB, which stay in the cache while
they are replayed. With fewer, each row costs Spark more than its operations."""


class TraceError(TimerError, ValueError):
    """A trace cannot be read or written. The message is one line that names the path."""


@dataclass(frozen=True)
class Shard:
    """Counts and bounds of a shard: the column `end` of its last block."""

    rows: int = 0
    id_space: int = 0
    first_time: int | None = None  # None for a shard without rows
    last_time: int | None = None
    starts: int = 0
    cancels: int = 0
    rearms: int = 0
    arms: int = 0
    described: Counts | None = field(default=None, compare=False, repr=False)

    def followed_by(self, piece: Tape) -> "Shard":
        """Return the shard with one more piece. O(len)."""
        if not len(piece.time):
            return self
        first = int(piece.time[0]) if self.first_time is None else self.first_time
        rows, id_space = self.rows + len(piece.time), max(self.id_space, id_space_of(piece))
        counts = {name: getattr(self, name) + n for name, n in count_ops(piece).items()}
        return Shard(rows, id_space, first, int(piece.time[-1]), **counts)


_LISTS = [
    (name, pa.list_(pa.from_numpy_dtype(t))) for name, t in zip(Tape._fields, DTYPES, strict=True)
]
BLOCKS = pa.schema(
    [("shard", pa.int32()), ("block", pa.int32()), *_LISTS, ("end", arrow_type(Shard))]
)
"""A row for each block (docs/file-formats.md). `end` is null but in the last block of a shard."""
KEY = ("shard", "block")


def blocks_of(
    shard: int, pieces: Iterable[Tape | tuple[Tape, Late | None]]
) -> Iterator[pa.RecordBatch]:
    """The blocks of a shard, a batch of one row each. The pieces are not validated.

    A piece may come with late answers that it lacks. Memory: two blocks and a piece, and 16 bytes
    for each id.
    """
    about, describer = Shard(), Describer()
    held: list[Tape] = []
    size = number = 0
    for each in pieces:
        piece, late = (each, None) if isinstance(each, Tape) else each
        about = about.followed_by(piece)
        describer.add(piece, late)
        held.append(piece)
        size += len(piece.time)
        while size > BLOCK:  # the last block is known only at the end
            tape = joined(held)
            yield _block(shard, number, part(tape, 0, BLOCK))
            held, size, number = [part(tape, BLOCK)], size - BLOCK, number + 1
    yield _block(shard, number, joined(held), replace(about, described=describer.counts()))


def check_blocks(tape: Tape) -> None:
    """Raise TapeError unless the blocks of a tape can be read; see `Rules`. O(n)."""
    rules = Rules(MAX_ID_SPACE, dense=True)
    for begin in range(0, max(len(tape.time), 1), BLOCK):
        rules.check(part(tape, begin, begin + BLOCK))


def _block(shard: int, number: int, tape: Tape, end: Shard | None = None) -> pa.RecordBatch:
    offsets = pa.array([0, len(tape.time)], pa.int32())
    lists = [pa.ListArray.from_arrays(offsets, pa.array(column)) for column in tape]
    ends = [None if end is None else row_of(end)]
    columns = [pa.array([shard], pa.int32()), pa.array([number], pa.int32()), *lists]
    columns.append(pa.array(ends, BLOCKS.field("end").type))
    return pa.RecordBatch.from_arrays(columns, schema=BLOCKS)


def shard_of(end: dict[str, Any]) -> Shard:
    """A shard from the column `end`."""
    return record_of(Shard, end)


class Tapes:
    """Reads and checks the blocks of one shard, in order.

    The blocks must be complete, and the tape must follow the rules; nothing is assumed. Memory: a
    block, and a byte for each id.
    """

    def __init__(self, name: str, shard: int) -> None:
        self._name, self._number = name, shard
        self._rules, self._blocks, self._ended = Rules(MAX_ID_SPACE, dense=True), 0, False
        self.shard = Shard()
        """The counts and bounds of the blocks so far."""

    def of(self, blocks: Iterable[pa.RecordBatch]) -> Iterator[Tape]:
        """The tapes of all blocks; see `take` and `finish`, whose errors it raises."""
        for batch in blocks:
            for row in range(batch.num_rows):
                yield self.take(batch, row)
        self.finish()

    def take(self, batch: pa.RecordBatch, row: int) -> Tape:
        """The tape of the next block, which is a row of a batch. Its arrays are writable.

        Raises TraceError for a block that is missing, twice or out of order, or if the shard is not
        what its last block says; TapeError, with the row, for a tape that breaks a rule.
        """
        for name in KEY:
            if not batch[name][row].is_valid:
                raise TraceError(f"{self._name} has a row without {name}")
        self._check_number(batch["block"][row].as_py())
        tape = Tape(*(self._column(batch, name, row) for name in Tape._fields))
        try:
            self._rules.check(tape)
        except TapeError as error:
            raise TapeError(f"{self._text}: {error}", error.row) from None
        self._blocks, self.shard = self._blocks + 1, self.shard.followed_by(tape)
        if batch["end"][row].is_valid:
            self._ended = True
            self._check_end(shard_of(batch["end"][row].as_py()))
        return tape

    def _column(self, batch: pa.RecordBatch, name: str, row: int) -> Any:
        values = batch[name][row].values
        if values is None or values.null_count:
            raise TraceError(f"{self._text}: block {self._blocks} lacks a value of {name}")
        # Arrow's memory is read-only, which is another type to jitted code: copy it.
        return np.array(values)

    def finish(self) -> None:
        """Raise TraceError if blocks are missing at the end."""
        if not self._ended:
            last = f"ends after block {self._blocks - 1}" if self._blocks else "has no blocks"
            raise TraceError(f"{self._text} {last}: others are missing")

    @property
    def _text(self) -> str:
        return f"shard {self._number} of {self._name}"

    def _check_number(self, number: int) -> None:
        expected = self._blocks
        if number < expected:
            raise TraceError(f"{self._text} has block {number} twice")
        if self._ended:
            raise TraceError(f"{self._text} has block {number} after its last one")
        if number != expected:
            raise TraceError(f"{self._text} lacks block {expected}")

    def _check_end(self, declared: Shard) -> None:
        for each in fields(Shard):
            value, said = getattr(self.shard, each.name), getattr(declared, each.name)
            if each.compare and value != said:
                raise TraceError(
                    f"{self._text}: {each.name} is {value}; its last block says {said}"
                )
