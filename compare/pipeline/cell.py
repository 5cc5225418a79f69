"""One cell of a grid replay, a shard through a timer: what runs in Spark's Python workers."""
import os
import uuid
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from compare.contestants import COMPILED, Contestant, contestant
from compare.loops import FIRED
from compare.pipeline.quantiles import Sketch
from compare.pipeline.results import CELL, EXPIRIES
from compare.pipeline.spark import CANNOT_WRITE
from compare.replay import Totals, replay, replay_pieces
from compare.tape import CANCEL, Tape, joined
from compare.trace import Trace, open_trace
from timers.kernels.counters import COUNTERS
from timers.kernels.jit import entry

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[Any]


class Cell(NamedTuple):
    """What a worker needs to know. Small: it is sent to each."""

    trace: str  # path, for every machine the same
    name: str
    parameters: tuple[tuple[str, int], ...]
    timer: int
    shard: int
    summary: str  # the file that says that the cell is finished
    expiries: str | None  # the file for what fires, if it is kept
    drained: bool
    counting: bool


@cache
def _trace(path: str) -> Trace:
    return open_trace(path)


def run_cell(cell: Cell) -> int:
    """Replay a cell and write its files; returns its operations. A cell that is finished is not replayed again.

    Memory: the pages of a row group, and the pending timers.
    """
    summary_file = Path(cell.summary)
    trace = _trace(cell.trace)
    entry = trace.shards[cell.shard]
    if summary_file.exists():  # by another task, which was given up for lost
        return entry.rows
    timer = contestant(cell.name, dict(cell.parameters))
    lateness = _Lateness()
    pieces = lateness.watched(trace.pieces(cell.shard))
    start = entry.first_time or 0
    try:
        if cell.expiries is None:
            summary = _replayed(timer, start, pieces, entry.id_space, lateness, None, cell)
        else:
            with unfinished(Path(cell.expiries)) as path, pq.ParquetWriter(path, EXPIRIES, **_WRITING) as writer:
                summary = _replayed(timer, start, pieces, entry.id_space, lateness, writer, cell)
        row = {"timer": cell.timer, "shard": cell.shard, "engine": timer.engine} | summary
        with unfinished(summary_file) as path:
            pq.write_table(pa.Table.from_pylist([row], schema=CELL), path)
    except OSError as error:  # what fails to be read is a TraceError
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OSError(f"{CANNOT_WRITE} to {summary_file.parents[2]}: {reason}") from None
    return entry.rows


_WRITING: dict[str, Any] = {
    # Moments that hardly differ from row to row: their differences, packed into 2.9 bytes a row where 50 million timers
    # fire exactly. With zstd on top it would be 2.8, for a fifth more time.
    "compression": "none",
    "use_dictionary": False,
    "column_encoding": dict.fromkeys(EXPIRIES.names, "DELTA_BINARY_PACKED"),
    "write_page_checksum": True,
    "write_statistics": False,  # nobody asks for a range of them
}


class unfinished:
    """A name to write a file under, which is renamed to its own when the block ends, and removed when it fails.

    A task that is tried twice never writes into the file of its other self.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._other = path.with_name(f".{path.name}.{uuid.uuid4().hex}")

    def __enter__(self) -> Path:
        return self._other

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._other.replace(self._path)
        else:
            with suppress(OSError):
                self._other.unlink()


class _Lateness:
    """The lateness of what fires, `fired_at - max(deadline, armed_at)`, without the operations at hand any more.

    Hardly any timer is armed with a deadline that has passed; only those operations are kept in mind, until they fire.
    """

    def __init__(self) -> None:
        self.sketch = Sketch()
        self._operations = 0
        self._overdue = np.empty(0, np.int64)  # operations, ascending, that armed a timer after its deadline
        self._armed_at = np.empty(0, np.int64)

    def watched(self, pieces: Iterator[Tape]) -> Iterator[Tape]:
        """The same pieces, of which this learns as they are asked for."""
        for piece in pieces:
            overdue = np.flatnonzero((piece.deadline < piece.time) & (piece.op != CANCEL))
            self._overdue = np.concatenate([self._overdue, overdue + self._operations])
            self._armed_at = np.concatenate([self._armed_at, piece.time[overdue]])
            self._operations += piece.time.size
            yield piece

    def add(self, operation: Int64s, fired_at: Int64s, late: Int64s) -> None:
        """Count rows that have fired, `late` after their deadlines; it is changed where a timer was armed after that."""
        if self._overdue.size:
            at = np.searchsorted(self._overdue, operation)
            at[at == self._overdue.size] = 0
            known = self._overdue[at] == operation
            late[known] = fired_at[known] - self._armed_at[at[known]]
            # What is armed overdue fires at that moment, and rows come in the order of `fired_at`.
            kept = self._armed_at >= fired_at[-1]
            self._overdue, self._armed_at = self._overdue[kept], self._armed_at[kept]
        self.sketch.add(late)


@entry
def _unpack(rows: Any, operation: Any, deadline: Any, fired_at: Any, late: Any) -> None:
    """Rows of dtype FIRED as columns, and how late each is, in one pass: NumPy would take eight."""
    for k in range(rows.size):
        operation[k], deadline[k], fired_at[k] = rows[k]["operation"], rows[k]["deadline"], rows[k]["fired_at"]
        late[k] = rows[k]["fired_at"] - rows[k]["deadline"]


def _columns(rows: Rows) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """`operation`, `deadline` and `fired_at` of fired rows, contiguous, and `fired_at - deadline`."""
    columns = np.empty((4, rows.size), np.int64)
    _unpack(rows, *columns)
    operation, deadline, fired_at, late = columns
    return operation, deadline, fired_at, late


def _replayed(
    timer: Contestant,
    start: int,
    pieces: Iterator[Tape],
    id_space: int,
    lateness: _Lateness,
    writer: pq.ParquetWriter | None,
    cell: Cell,
) -> dict[str, Any]:
    """Replay, hand on what fires, and sum up."""
    fired = 0

    def take(rows: Rows) -> None:
        nonlocal fired
        if not rows.size:
            return
        fired += rows.size
        operation, deadline, fired_at, late = _columns(rows)
        lateness.add(operation, fired_at, late)
        if writer is not None:
            columns = [pa.array(column) for column in (operation, deadline, fired_at)]
            writer.write_batch(pa.record_batch(columns, schema=EXPIRIES))  # a row group, still in the cache

    made = timer.new(start, counting=cell.counting and timer.engine == COMPILED)
    totals = _run(timer, made, pieces, id_space, take, cell.drained)
    counters = getattr(made, "counters", None) or dict.fromkeys(COUNTERS)
    sketch = lateness.sketch
    return (
        totals._asdict()
        | {"fired": fired, "pending": len(made), "nbytes": int(made.nbytes)}
        | counters
        | {"lateness_min": sketch.least, "lateness_max": sketch.greatest}
        | {"lateness_edges": sketch.edges.tolist(), "lateness_counts": sketch.counts.tolist()}
    )


def _run(
    timer: Contestant, made: Any, pieces: Iterator[Tape], id_space: int, take: Any, drained: bool
) -> Totals:
    if timer.engine == COMPILED:
        return replay_pieces(made, pieces, id_space, take, drain_timer=drained)
    done = replay(made, joined(list(pieces)), id_space, drain_timer=drained)  # all in memory
    take(done.fired)
    return Totals(*(getattr(done, name) for name in Totals._fields))


def warm(timer: Contestant, counting: bool) -> None:
    """Compile what a cell of this timer needs, or load it from the cache on disk, so that the workers find it there."""
    _columns(np.empty(0, FIRED))
    if timer.engine == COMPILED:
        replay_pieces(timer.new(counting=counting), [], 0, lambda rows: None)
