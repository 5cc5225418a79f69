"""The ingestion of a log: what both executors share, and the one in this process."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from compare.base.executors import Stopping, Threads, until_stopping
from compare.traffic.logs.blocks import Block
from compare.traffic.logs.formats.base import Log
from compare.traffic.logs.numbers import with_value
from compare.traffic.logs.pairs import END, without_start
from compare.traffic.logs.reading import Seen
from compare.traffic.logs.rows import (
    NONE,
    UNMATCHED,
    Meaning,
    RejectedRow,
    Rows,
    interpret,
    leave_out_from,
    mark_at,
    mark_duplicates,
    mark_late,
    rejected,
    texts_of,
)
from compare.traffic.logs.shards import Rejected, Written, in_order, write_shard
from compare.traffic.tapes.trace import REJECTED
from timers.arrays import Int64s

MOST_ROWS = 40_000_000
"""Rows that are sorted in the memory of this process, which takes 2 GB. Above, Spark sorts them."""
FILE_BITS = 40
"""The position of a row: the number of its file above these bits, and its place in the file below,
which is the first byte of its block plus its number in the block."""

Place = tuple[int, Block]
"""The number of a file, and one of its blocks."""


class TooManyRows(Exception):  # not an error: Spark takes over
    """A log has more rows than are sorted in memory; the argument says how many are."""


class Run(NamedTuple):
    """The rows of a block that belong to a shard."""

    shard: int
    first: int  # the earliest start
    rows: pa.Table  # start, value and position


class About(NamedTuple):
    """What else is known of a block."""

    total: int  # lines or records
    seen: Seen
    left_out: list[RejectedRow]


class Job(NamedTuple):
    """What is done with a log; nothing in it depends on where."""

    name: str
    logs: tuple[Log, ...]  # files
    meaning: Meaning
    bound: int | None  # units by which a row may be behind another
    directory: Path  # of the trace
    limit: int | None = None  # lines or records that are read, in this process alone

    def blocks(self) -> Iterator[Place]:
        """All blocks, each with the number of its file."""
        for number, log in enumerate(self.logs):
            for block in log.blocks():
                yield number, block

    def interpret(self, place: Place) -> Rows:
        """Read a block."""
        return interpret(self.logs[place[0]], place[1], self.meaning)

    def sort_out(self, place: Place, rows: Rows) -> tuple[list[Run], About]:
        """Divide the rows of a block by shards, and note what else it shows."""
        log, fine, texts = self.logs[place[0]], rows.fine, rows.records.texts
        keyed = self.meaning.value in ("key", "id")
        value = texts[self.meaning.value] if keyed else rows.end
        position = self.positions(place, rows)
        table = pa.table({"start": rows.start, "value": value, "position": position})
        order = np.flatnonzero(fine)
        order = order[np.argsort(rows.shard[order], kind="stable")]
        parts = np.split(order, np.flatnonzero(np.diff(rows.shard[order])) + 1)
        runs = []
        for part in filter(len, parts):
            run = table.take(part)
            if keyed:  # each run has its own keys alone
                run = run.set_column(1, "value", run["value"].dictionary_encode())
            runs.append(Run(int(rows.shard[part[0]]), int(rows.start[part].min()), run))
        seen = Seen()
        seen.add(rows.time[fine], rows.zone[fine])
        for role, name in self.meaning.roles.items():
            if not log.has(name) and len(with_value(texts[role].filter(fine)).drop_null()):
                seen.present |= {role}
        return runs, About(rows.records.total, seen, list(rejected(rows, self.meaning)))

    def positions(self, place: Place, rows: Rows) -> Int64s:
        """The positions of a block's rows; with END for the end of a request in two rows."""
        position = position_of(place) + rows.records.number.astype(np.int64)
        return position + END * (rows.end != NONE) if self.meaning.value == "id" else position

    def write(self, shard: int, runs: Iterable[pa.Table]) -> Written:
        """Write a shard, whose runs are in the order of their earliest starts."""
        meaning, pieces = self.meaning, in_order(runs)
        return write_shard(shard, self.directory, meaning.value, meaning.timeout, pieces)

    def rejected(self) -> Rejected:
        """The table of rejected rows."""
        columns = ("time", self.meaning.value)
        names = [log.name for log in self.logs]
        return Rejected(self.directory / REJECTED, names, self.logs[0].record, columns)


def position_of(place: Place) -> int:
    """The position of the first row of a block."""
    return (place[0] << FILE_BITS) + place[1].first


class Result(NamedTuple):
    """What has been written."""

    shards: Sequence[Written]
    kinds: Mapping[str, int]  # rejected rows by kind
    examples: Sequence[str]
    seen: Seen


def ingest_here(job: Job, threads: Threads) -> Result:
    """Read, sort and fold a log on threads of this process.

    Raises:
        TooManyRows: if it is too large.
    """
    table, seen, shards = job.rejected(), Seen(), job.meaning.shards
    kept: list[list[Run]] = [[] for _ in range(shards)]
    roles = job.meaning.roles
    # Texts that are kept take several times the memory of a row.
    row_limit = MOST_ROWS // 4 if {"unique", "id"} & roles.keys() else MOST_ROWS
    unmatched = _unmatched(job, threads, row_limit) if "id" in roles else np.empty(0, np.int64)
    for place, rows in _decided(job, threads, row_limit):
        if len(unmatched):
            mark_at(rows, unmatched - position_of(place), UNMATCHED)
        runs, about = job.sort_out(place, rows)
        table.add(place[0], about.total, about.left_out)
        seen.merge(about.seen)
        for run in runs:
            kept[run.shard].append(run)
    table.close()

    def work(shard: int, stopping: Stopping) -> Written:
        runs, kept[shard] = sorted(kept[shard], key=attrgetter("first")), []
        return job.write(shard, until_stopping((run.rows for run in runs), stopping))

    written = threads.run(shards, work)
    return Result(written, table.kinds, table.examples, seen)


def _decided(job: Job, threads: Threads, row_limit: int) -> Iterator[tuple[Place, Rows]]:
    """The rows of all blocks, with what is decided in their order. Raises TooManyRows."""
    latest, texts, left, rows_kept = NONE, set[bytes](), job.limit, 0
    for place, rows in threads.in_order(job.blocks(), job.interpret):
        if left is not None:
            leave_out_from(rows, left)
            left -= rows.records.total
        if job.bound is not None:
            latest = mark_late(rows, job.bound, latest)
        if "unique" in job.meaning.roles:
            mark_duplicates(rows, texts)
        rows_kept += int(np.count_nonzero(rows.fine))
        if rows_kept > row_limit:
            raise TooManyRows(f"{row_limit:,}")
        yield place, rows
        if left is not None and left <= 0:
            return


def _unmatched(job: Job, threads: Threads, row_limit: int) -> Int64s:
    """The positions of ends without a start. Reads the log once more."""
    known: dict[bytes, int] = {}
    none = np.empty(0, np.int64)
    columns = [(none, none.astype(np.int32), none)]
    for place, rows in _decided(job, threads, row_limit):
        texts, _, chosen = texts_of(rows, "id", 1)
        ids = np.array([known.setdefault(text, len(known)) for text in texts.to_pylist()], np.int32)
        columns.append((rows.start[chosen], ids, job.positions(place, rows)[chosen]))
    return without_start(*map(np.concatenate, zip(*columns, strict=True)))
