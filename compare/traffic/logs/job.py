"""The ingestion of a log: what both engines share, and the one in this process."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from compare.base.datasets import part_name, write_part
from compare.base.executors import Stopping, Threads, even_shares, until_stopping
from compare.traffic.logs.blocks import Block
from compare.traffic.logs.formats.base import Log, Records
from compare.traffic.logs.numbers import Year, year_behind
from compare.traffic.logs.pairs import without_start
from compare.traffic.logs.reading import Seen
from compare.traffic.logs.rows import NO_POSITIONS, Meaning, Parsed, interpret
from compare.traffic.logs.shards import Rejected, Runs, rejected_schema, shard_blocks
from compare.traffic.logs.sorting import Scratch
from compare.traffic.tapes.trace import UnfinishedTrace
from timers.arrays import Int64s

ROWS_IN_MEMORY = 1 << 22
"""Rows that are held in memory: 100 MB, and three times that while they are sorted. The others wait
in a temporary file.
"""
PARTS = 64
"""Files of a trace that are written here, if it has as many shards."""
FILE_BITS = 40
"""The position of a row: the number of its file above these bits, and its place in the file below,
which is the first byte of its block plus its number in the block."""


class Place(NamedTuple):
    """A block of a file."""

    file: int  # its number
    block: Block

    @property
    def position(self) -> int:
        """The position of the first row."""
        return (self.file << FILE_BITS) + self.block.first


class Job(NamedTuple):
    """An ingestion, independent of the engine."""

    name: str
    logs: tuple[Log, ...]  # files
    meaning: Meaning
    limit: int | None = None  # lines or records that are read, in this process alone
    years: tuple[Year, ...] = ()  # of the first line of each file, if times have no year

    def blocks(self) -> Iterator[Place]:
        """All blocks of all files."""
        for file in range(len(self.logs)):
            yield from self.blocks_of(file)

    def blocks_of(self, file: int) -> Iterator[Place]:
        """All blocks of a file."""
        log, year = self.logs[file], self.years[file] if self.years else None
        before: Block | None = None
        for block in log.blocks():
            if before is not None and year is not None:  # the order of the log decides: read it
                for records in log.read(before, {"time": self.meaning.roles["time"]}):
                    year = year_behind(records.texts["time"], self.meaning.form, year)
            before = block
            yield Place(file, block._replace(year=year))

    def read(
        self, place: Place, unmatched: Int64s = NO_POSITIONS, limit: int | None = None
    ) -> Iterator[Parsed]:
        """Read the parts of a block; see `interpret`."""
        log, first, year = self.logs[place.file], place.position, place.block.year
        before: Records | None = None
        for records in log.read(place.block, self.meaning.roles):
            if before is not None and year is not None:
                year = year_behind(before.texts["time"], self.meaning.form, year)
            before = records
            yield interpret(log, records, self.meaning, first, unmatched, limit, year)
            first += records.total
            if limit is not None:
                limit -= records.total

    def rejected(self) -> Rejected:
        """The rejected rows."""
        several, record = len(self.logs) > 1, self.logs[0].record
        return Rejected(rejected_schema(several, record, self.meaning.value))


class Result(NamedTuple):
    """Counts and statistics of the log that was read."""

    kinds: Mapping[str, int]  # rejected rows by kind
    examples: Sequence[str]
    seen: Seen


def ingest_here(job: Job, threads: Threads, trace: UnfinishedTrace) -> Result:
    """Read, sort and fold a log on threads of this process."""
    table, seen, meaning = job.rejected(), Seen(), job.meaning
    unmatched = NO_POSITIONS
    if meaning.value == "id":
        with closing(Scratch(trace.directory)) as scratch:
            unmatched = _unmatched(job, threads, scratch)
    with closing(Scratch(trace.directory)) as scratch:
        shards = [Runs(scratch) for _ in range(meaning.shards)]

        def rejected() -> Iterator[pa.RecordBatch]:
            for place, parsed in _divided(_parsed(job, threads, unmatched), shards):
                seen.merge(parsed.seen)
                rows = table.number(job.logs[place.file].name, parsed.total, parsed.rejected)
                if rows.num_rows:
                    yield rows

        if (first := next(waiting := rejected(), None)) is not None:
            trace.rejected.mkdir()
            write_part(trace.rejected / part_name(0), table.schema, chain([first], waiting))
        parts = even_shares(meaning.shards, PARTS)

        def work(part: int, stopping: Stopping) -> None:
            blocks = (
                shard_blocks(shard, meaning, shards[shard].in_order(), scratch, stopping)
                for shard in parts[part]
            )
            trace.write(part, chain.from_iterable(blocks))

        threads.run(len(parts), work)
    return Result(table.kinds, table.examples, seen)


def _unmatched(job: Job, threads: Threads, scratch: Scratch) -> Int64s:
    """The positions of ends without a start. Reads the log once more."""
    shards = [Runs(scratch) for _ in range(job.meaning.shards)]
    for _ in _divided(_parsed(job, threads), shards):
        pass

    def work(shard: int, stopping: Stopping) -> Int64s:
        return without_start(until_stopping(shards[shard].in_order(), stopping))

    return np.concatenate(threads.run(job.meaning.shards, work))


def _divided(
    blocks: Iterable[tuple[Place, Parsed]], shards: Sequence[Runs]
) -> Iterator[tuple[Place, Parsed]]:
    """Give the runs of all parts to their shards."""
    rows = 0
    for place, parsed in blocks:
        for number, shard in enumerate(parsed.runs["shard"].to_pylist()):
            shards[shard].add(parsed.runs.slice(number, 1))
        rows += parsed.rows
        if rows >= ROWS_IN_MEMORY:
            for runs in shards:
                runs.set_aside()
            rows = 0
        yield place, parsed


def _parsed(
    job: Job, threads: Threads, unmatched: Int64s = NO_POSITIONS
) -> Iterator[tuple[Place, Parsed]]:
    """The parts of all blocks, or of those up to the limit."""
    if job.limit is None:
        blocks = threads.in_order(job.blocks(), lambda place: list(job.read(place, unmatched)))
    else:
        blocks = _up_to(job, job.limit, unmatched)
    for place, parts in blocks:
        for parsed in parts:
            yield place, parsed


def _up_to(job: Job, limit: int, unmatched: Int64s) -> Iterator[tuple[Place, list[Parsed]]]:
    for place in job.blocks():
        parts = list(job.read(place, unmatched, limit))
        yield place, parts
        limit -= sum(parsed.total for parsed in parts)
        if limit <= 0:
            return
