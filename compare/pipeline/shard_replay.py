"""A shard replay: one shard of a trace through one timer. This runs in Spark's Python workers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from compare.bench.contestant import COMPILED, Contestant
from compare.files import CANNOT_WRITE, errors_as, new_file
from compare.pipeline.results import EXPIRIES, Results, ShardReplay, contestant_of, outcome_table
from compare.replay.engine import Buffers, Rows, loop_for, operations_of
from compare.replay.lateness import Lateness
from compare.tapes.tape import CANCEL, Tape
from timers.arrays import Int64s

BATCHES_AT_ONCE = 16
"""Batches that a timer takes in a row when several share them: a row group's, 25 MB."""


class _Batch(NamedTuple):
    """Some operations of a shard, as all timers need them."""

    operations: Rows  # of dtype OPERATION
    overdue: Int64s  # the indices on the tape of those that arm a timer after its deadline
    armed_at: Int64s  # when they do


def run_side_by_side(results: Results, replays: Sequence[ShardReplay]) -> int:
    """Replay one shard through several timers and write their files; returns the operations.

    The shard is read once for all of them, and what is finished is not replayed again. Memory: a
    row group, and the pending timers of all.
    """
    shard = replays[0].shard
    # Spark may give a task up for lost after it has finished some of them.
    todo = [one for one in replays if not results.outcome_file(*one).exists()]
    # A timer alone takes a batch while it is in the cache. Several take turns so seldom that it
    # hardly matters that each finds the caches full of the others' timers.
    at_once = 1 if len(todo) == 1 else BATCHES_AT_ONCE
    with errors_as(OSError, f"{CANNOT_WRITE} to {results.path}"), ExitStack() as stack:
        adding = [stack.enter_context(_running(results, one)) for one in todo]
        batches = _batches(results.trace.pieces(shard)) if todo else iter(())
        while at_hand := list(islice(batches, at_once)):
            for add in adding:
                for batch in at_hand:
                    add(batch)
            at_hand.clear()  # or there would be two row groups while the next one is read
    return results.trace.shards[shard].rows * len(replays)


def _batches(pieces: Iterable[Tape]) -> Iterator[_Batch]:
    first = 0
    for piece in pieces:
        overdue = np.flatnonzero((piece.deadline < piece.time) & (piece.op != CANCEL))
        yield _Batch(operations_of(piece, 0, piece.time.size), overdue + first, piece.time[overdue])
        first += piece.time.size


@contextmanager
def _running(results: Results, one: ShardReplay) -> Iterator[Callable[[_Batch], None]]:
    """A function that takes the batches in order; the files are complete after the block."""
    manifest, shard = results.manifest, results.trace.shards[one.shard]
    timer = contestant_of(manifest["timers"][one.timer])
    counting = manifest["counting"] and timer.engine == COMPILED
    made = timer.new(shard.first_time or 0, counting=counting)
    with ExitStack() as stack:
        writer = None
        if manifest["expiries"]:
            path = stack.enter_context(new_file(results.expiries_file(*one)))
            writer = stack.enter_context(pq.ParquetWriter(path, EXPIRIES, **_WRITING))
        expiries = _Expiries(writer)
        loop = loop_for(made, Buffers(shard.id_space), expiries.take)

        def add(batch: _Batch) -> None:
            expiries.note(batch)
            loop.run(batch.operations)

        yield add
        if manifest["drained"]:
            loop.drain()
        outcome = replace(loop.finish(), lateness=expiries.lateness)
    with new_file(results.outcome_file(*one)) as path:
        pq.write_table(outcome_table(*one, timer.engine, outcome), path, write_page_checksum=True)


_WRITING: dict[str, Any] = {
    # Moments hardly differ from row to row. Their differences take 2.9 bytes a row where 50 million
    # timers fire exactly; zstd on top would make it 2.8, for a fifth more time.
    "compression": "none",
    "use_dictionary": False,
    "column_encoding": dict.fromkeys(EXPIRIES.names, "DELTA_BINARY_PACKED"),
    "write_page_checksum": True,
    "write_statistics": False,  # nothing asks for a range of them
}


class _Expiries:
    """Takes what fires: writes it, and sums up how late it is.

    Lateness is `fired_at - max(deadline, armed_at)`, but the operation that armed a timer has gone
    by when it fires. Hardly any timer is armed after its deadline, so only those operations are
    kept, until they fire.
    """

    def __init__(self, writer: pq.ParquetWriter | None) -> None:
        self.lateness = Lateness()
        self._writer = writer
        self._overdue = np.empty(0, np.int64)  # indices of operations, ascending
        self._armed_at = np.empty(0, np.int64)

    def note(self, batch: _Batch) -> None:
        """Learn of operations before any of their timers fires."""
        self._overdue = np.concatenate([self._overdue, batch.overdue])
        self._armed_at = np.concatenate([self._armed_at, batch.armed_at])

    def take(self, rows: Rows) -> None:
        """Take rows of dtype FIRED."""
        columns = [np.ascontiguousarray(rows[name]) for name in EXPIRIES.names]
        operation, deadline, fired_at = columns
        late = fired_at - deadline
        if self._overdue.size:
            self._count_from_arming(operation, fired_at, late)
        self.lateness += Lateness.of(late).coarse()
        if self._writer is not None:  # one row group, while it is still in the cache
            self._writer.write_batch(pa.record_batch(columns, schema=EXPIRIES))

    def _count_from_arming(self, operation: Int64s, fired_at: Int64s, late: Int64s) -> None:
        """Change `late` where a timer was armed after its deadline."""
        at = np.searchsorted(self._overdue, operation)
        at[at == self._overdue.size] = 0
        known = self._overdue[at] == operation
        late[known] = fired_at[known] - self._armed_at[at[known]]
        # What is armed overdue fires at that moment, and rows come in the order of `fired_at`.
        kept = self._armed_at >= fired_at[-1]
        self._overdue, self._armed_at = self._overdue[kept], self._armed_at[kept]


def warm(timer: Contestant, counting: bool) -> None:
    """Compile what a replay through this timer needs, so that workers find it in the disk cache."""
    if timer.engine == COMPILED:
        loop_for(timer.new(counting=counting), Buffers(1), lambda rows: None)
