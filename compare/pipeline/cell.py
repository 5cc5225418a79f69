"""Cells of a grid replay, each a shard through a timer: what runs in Spark's Python workers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from compare.bench.contestant import COMPILED, Contestant, contestant
from compare.files import CANNOT_WRITE, NewFile, errors_as
from compare.pipeline.results import CELL, EXPIRIES
from compare.replay.engine import Replaying, Totals, operations_of, replay
from compare.replay.loops import FIRED, OPERATION
from compare.replay.quantiles import Sketch
from compare.tapes.tape import CANCEL, Tape
from compare.tapes.trace import Shard, known_trace
from timers.kernels.counters import COUNTERS
from timers.kernels.jit import entry
from timers.protocol import Timer

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[Any]

BATCHES_AT_ONCE = 16
"""Batches that a timer takes in a row when several share them: a row group's, 25 MB."""


class Cell(NamedTuple):
    """What a worker needs to know. Small: it is sent to each."""

    trace: str  # path, for every machine the same
    digest: str  # of its manifest
    name: str
    parameters: tuple[tuple[str, int], ...]
    timer: int
    shard: int
    summary: str  # the file that says that the cell is finished
    expiries: str | None  # the file for what fires, if it is kept
    drained: bool
    counting: bool


class _Batch(NamedTuple):
    """Some operations of a shard, as all its cells need them."""

    operations: Rows  # of dtype OPERATION
    overdue: Int64s  # those, counted on the tape, that arm a timer after its deadline
    armed_at: Int64s  # when they do


def run_cells(cells: Sequence[Cell]) -> int:
    """Replay cells of one shard side by side, and write their files; returns their operations.

    The shard is read once for all of them. A cell that is finished is not replayed again. Memory: a
    row group, and the pending timers of all.
    """
    trace, number = known_trace(cells[0].trace, cells[0].digest), cells[0].shard
    shard = trace.shards[number]
    todo = [
        cell for cell in cells if not Path(cell.summary).exists()
    ]  # else done by a task that was given up for lost
    # A timer alone takes a batch while it is in the cache. Several take turns so seldom that the
    # caches, which each finds full of the others' timers, hardly tell in its time.
    at_once = 1 if len(todo) == 1 else BATCHES_AT_ONCE
    with (
        errors_as(OSError, f"{CANNOT_WRITE} to {Path(cells[0].summary).parents[2]}"),
        ExitStack() as stack,
    ):
        adding = [stack.enter_context(_replaying(cell, shard)) for cell in todo]
        batches = _batches(trace.pieces(number)) if todo else iter(())
        while at_hand := list(islice(batches, at_once)):
            for add in adding:
                for batch in at_hand:
                    add(batch)
            at_hand.clear()  # or there would be two row groups while the next one is read
    return shard.rows * len(cells)


def _batches(pieces: Iterable[Tape]) -> Iterator[_Batch]:
    first = 0
    for piece in pieces:
        overdue = np.flatnonzero((piece.deadline < piece.time) & (piece.op != CANCEL))
        yield _Batch(operations_of(piece, 0, piece.time.size), overdue + first, piece.time[overdue])
        first += piece.time.size


@contextmanager
def _replaying(cell: Cell, shard: Shard) -> Iterator[Callable[[_Batch], None]]:
    """Hands out what takes the batches of the cell's shard, in order; writes the cell's files when
    the block ends.
    """
    timer = contestant(cell.name, dict(cell.parameters))
    made = timer.new(shard.first_time or 0, counting=cell.counting and timer.engine == COMPILED)
    with _expiries_writer(cell) as writer:
        fired = _Fired(writer)
        engine = Replaying if timer.engine == COMPILED else _Collecting
        replaying = engine(made, shard.id_space, fired.take)

        def add(batch: _Batch) -> None:
            fired.note(batch)
            replaying.add(batch.operations)

        yield add
        totals = replaying.finish(drain_timer=cell.drained)
    sketch = fired.lateness
    row = (
        {"timer": cell.timer, "shard": cell.shard, "engine": timer.engine}
        | totals._asdict()
        | {"fired": fired.rows, "pending": len(made), "nbytes": int(made.nbytes)}
        | (getattr(made, "counters", None) or dict.fromkeys(COUNTERS))
        | {"lateness_min": sketch.least, "lateness_max": sketch.greatest}
        | {"lateness_edges": sketch.edges.tolist(), "lateness_counts": sketch.counts.tolist()}
    )
    with NewFile(cell.summary) as path:
        pq.write_table(pa.Table.from_pylist([row], schema=CELL), path)


@contextmanager
def _expiries_writer(cell: Cell) -> Iterator[pq.ParquetWriter | None]:
    """A writer of the cell's expiries, if they are kept."""
    if cell.expiries is None:
        yield None
        return
    with (
        NewFile(cell.expiries) as path,
        pq.ParquetWriter(path, EXPIRIES, **_WRITING) as writer,
    ):
        yield writer


_WRITING: dict[str, Any] = {
    # Moments that hardly differ from row to row: their differences, packed into 2.9 bytes a row
    # where 50 million timers fire exactly. With zstd on top it would be 2.8, for a fifth more time.
    "compression": "none",
    "use_dictionary": False,
    "column_encoding": dict.fromkeys(EXPIRIES.names, "DELTA_BINARY_PACKED"),
    "write_page_checksum": True,
    "write_statistics": False,  # nobody asks for a range of them
}


class _Fired:
    """Takes what fires in a cell: counts it, writes it, and sums up how late it is.

    That is `fired_at - max(deadline, armed_at)`, when the operation is no longer at hand. Hardly
    any timer is armed with a deadline that has passed; only those operations are kept in mind,
    until they fire.
    """

    def __init__(self, writer: pq.ParquetWriter | None) -> None:
        self.rows = 0
        self.lateness = Sketch()
        self._writer = writer
        self._overdue = np.empty(
            0, np.int64
        )  # operations, ascending, that armed a timer after its deadline
        self._armed_at = np.empty(0, np.int64)

    def note(self, batch: _Batch) -> None:
        """Learn of operations before any of them fires."""
        self._overdue = np.concatenate([self._overdue, batch.overdue])
        self._armed_at = np.concatenate([self._armed_at, batch.armed_at])

    def take(self, rows: Rows) -> None:
        """Take rows of dtype FIRED."""
        if not rows.size:
            return
        self.rows += rows.size
        operation, deadline, fired_at, late = _columns(rows)
        if self._overdue.size:
            self._count_from_arming(operation, fired_at, late)
        self.lateness.add(late)
        if self._writer is not None:
            columns = [pa.array(column) for column in (operation, deadline, fired_at)]
            self._writer.write_batch(
                pa.record_batch(columns, schema=EXPIRIES)
            )  # a row group, still in the cache

    def _count_from_arming(self, operation: Int64s, fired_at: Int64s, late: Int64s) -> None:
        """Change `late` where a timer was armed after its deadline."""
        at = np.searchsorted(self._overdue, operation)
        at[at == self._overdue.size] = 0
        known = self._overdue[at] == operation
        late[known] = fired_at[known] - self._armed_at[at[known]]
        # What is armed overdue fires at that moment, and rows come in the order of `fired_at`.
        kept = self._armed_at >= fired_at[-1]
        self._overdue, self._armed_at = self._overdue[kept], self._armed_at[kept]


@entry
def _unpack(rows: Any, operation: Any, deadline: Any, fired_at: Any, late: Any) -> None:
    """Rows of dtype FIRED as columns, and how late each is, in one pass: NumPy would take eight."""
    for k in range(rows.size):
        operation[k], deadline[k], fired_at[k] = (
            rows[k]["operation"],
            rows[k]["deadline"],
            rows[k]["fired_at"],
        )
        late[k] = rows[k]["fired_at"] - rows[k]["deadline"]


def _columns(rows: Rows) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """`operation`, `deadline` and `fired_at` of fired rows, contiguous, and `fired_at -
    deadline`.
    """
    columns = np.empty((4, rows.size), np.int64)
    _unpack(rows, *columns)
    operation, deadline, fired_at, late = columns
    return operation, deadline, fired_at, late


class _Collecting:
    """As `Replaying`, for a timer without kernel: the operations are collected, and replayed at the
    end.
    """

    def __init__(self, timer: Timer, id_space: int, take: Callable[[Rows], None]) -> None:
        self._timer, self._id_space, self._take = timer, id_space, take
        self._operations = [np.empty(0, OPERATION)]

    def add(self, operations: Rows) -> None:
        self._operations.append(operations)

    def finish(self, *, drain_timer: bool = True) -> Totals:
        operations = np.concatenate(self._operations)
        self._operations.clear()
        tape = Tape(*(np.ascontiguousarray(operations[name]) for name in Tape._fields))
        del operations  # a tape is long, and the loop has lists of it
        done = replay(self._timer, tape, self._id_space, drain_timer=drain_timer)
        self._take(done.fired)
        return Totals(*(getattr(done, name) for name in Totals._fields))


def warm(timer: Contestant, counting: bool) -> None:
    """Compile what a cell of this timer needs, or load it from the cache on disk, so that the
    workers find it there.
    """
    _columns(np.empty(0, FIRED))
    if timer.engine == COMPILED:
        Replaying(timer.new(counting=counting), 0, lambda rows: None)
