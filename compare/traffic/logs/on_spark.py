"""The ingestion of a log on Spark: tasks read blocks with the functions that threads use.

A row of Spark is a run of rows of the log: those of a block that belong to a shard. What else is
known of the blocks is one more shard.
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain, groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from compare.base.executors import Stopping
from compare.base.files import CANNOT_WRITE, errors_as
from compare.spark.session import plain_failures
from compare.traffic.logs.blocks import Block, LogError
from compare.traffic.logs.job import FILE_BITS, About, Job, Place, Result, position_of
from compare.traffic.logs.pairs import END
from compare.traffic.logs.reading import Seen
from compare.traffic.logs.rows import DUPLICATE, NONE, UNMATCHED, Rows, mark_at, mark_late, texts_of
from timers.arrays import Int64s

if TYPE_CHECKING:
    from compare.spark.tasks import SparkTasks

_RUNS = pa.schema(
    [("shard", pa.int32()), ("first", pa.int64()), ("position", pa.int64()), ("rows", pa.binary())]
)
_TEXTS = pa.schema(
    [("shard", pa.int32()), ("text", pa.binary()), ("time", pa.int64()), ("position", pa.int64())]
)
_POSITIONS = pa.schema([("position", pa.int64())])
_REPORT = pa.schema([("number", pa.int32()), ("report", pa.binary())])
"""What is known of a written shard, pickled."""

Part = tuple[int, Block | None]
"""The number of a file, and one of its blocks; or the whole file, if it cannot be divided."""


def ingest_on_spark(job: Job, tasks: "SparkTasks") -> Result:
    """Read, sort and fold a log on Spark. All machines must see the log and the trace."""
    for log in job.logs:
        if log.source.stream is not None:
            raise LogError(f"{log.name} is a pipe, which tasks of Spark cannot read; use a file")
    logs = tuple(replace(log, source=replace(log.source, head=b"")) for log in job.logs)
    job, shards = job._replace(logs=logs), job.meaning.shards
    parts: list[Part] = [
        (number, block)
        for number, log in enumerate(logs)
        for block in (log.blocks() if log.divisible else [None])
    ]
    with plain_failures(f"{job.name}: the Spark job failed", {"LogError": LogError}):
        reader = _Reader(job, parts)
        if job.bound is not None:
            reader.latest = _latest(reader, tasks)
        if "unique" in job.meaning.roles:
            reader.marked[DUPLICATE] = _marked(reader, tasks, "unique")
        if "id" in job.meaning.roles:
            reader.marked[UNMATCHED] = _marked(reader, tasks, "id")

        def read(part: int) -> Iterator[pa.RecordBatch]:
            for place, rows in reader.rows(part):
                runs, about = job.sort_out(place, rows)
                columns = [(run.shard, run.first, pickle.dumps(run.rows)) for run in runs]
                shard, first, data = zip(*columns, (shards, 0, pickle.dumps(about)), strict=True)
                position = [position_of(place)] * len(data)
                yield pa.RecordBatch.from_arrays([shard, first, position, data], schema=_RUNS)

        def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            rows = chain.from_iterable(batch.to_pylist() for batch in batches)
            for number, runs in groupby(rows, itemgetter("shard")):
                report = pickle.dumps(_write(job, number, runs))
                yield pa.RecordBatch.from_arrays([[number], [report]], schema=_REPORT)

        order = ("shard", "first", "position")
        table = tasks.shuffle(len(parts), read, _RUNS, shards + 1, order, write, _REPORT)
    reports = {row["number"]: pickle.loads(row["report"]) for row in table.to_pylist()}
    # The hash left some without a row, or the log has no block.
    for number in set(range(shards + 1)) - reports.keys():
        reports[number] = _write(job, number, ())
    *written, rest = (reports[number] for number in range(shards + 1))
    return Result(written, *rest)


class _Reader:
    """Reads parts of a log in tasks; what is decided in the log's order is known beforehand."""

    def __init__(self, job: Job, parts: Sequence[Part]) -> None:
        self.job, self.parts = job, parts
        self.latest: Sequence[int] = ()  # the latest time before each part
        self.marked: dict[str, Int64s] = {}  # kind of rejected rows -> their positions

    def blocks(self, part: int) -> Iterator[Place]:
        """The blocks of a part."""
        number, whole = self.parts[part]
        for block in [whole] if whole is not None else self.job.logs[number].blocks():
            yield number, block

    def rows(self, part: int) -> Iterator[tuple[Place, Rows]]:
        """The rows of a part's blocks."""
        latest = self.latest[part] if self.latest else NONE
        for place in self.blocks(part):
            rows = self.job.interpret(place)
            if self.latest and self.job.bound is not None:
                latest = mark_late(rows, self.job.bound, latest)
            for kind, positions in self.marked.items():
                mark_at(rows, positions - position_of(place), kind)
            yield place, rows


def _latest(reader: _Reader, tasks: "SparkTasks") -> list[int]:
    """The latest time before each part. Reads the log once more."""

    def work(part: int, stopping: Stopping) -> int:
        latest = NONE
        for _, rows in reader.rows(part):
            latest = int(rows.time[rows.fine].max(initial=latest))
        return latest

    return [NONE, *accumulate(tasks.run(len(reader.parts), work), max)]


def _marked(reader: _Reader, tasks: "SparkTasks", role: str) -> Int64s:
    """The positions of rows that are duplicates by their texts in the column `unique`, or ends
    without a start by those in the column `id`. Reads the log once more.
    """

    def read(part: int) -> Iterator[pa.RecordBatch]:
        for place, rows in reader.rows(part):
            text, shard, chosen = texts_of(rows, role, groups)
            time, position = rows.start[chosen], reader.job.positions(place, rows)[chosen]
            position = position if role == "id" else position & ~END
            yield pa.RecordBatch.from_arrays([shard, text, time, position], schema=_TEXTS)

    def is_marked(before: tuple[bytes | None, int], row: tuple[bytes | None, int]) -> bool:
        same = row[0] == before[0]
        return row[1] >= END and not (same and before[1] < END) if role == "id" else same

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        last: tuple[bytes | None, int] = (None, 0)
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("text", "position"))
            rows = [last, *zip(*columns, strict=True)]
            marked = [is_marked(*pair) for pair in pairwise(rows)]
            yield batch.select(["position"]).filter(pa.array(marked, pa.bool_()))
            last = rows[-1]

    parts, groups = len(reader.parts), tasks.workers
    order = ("shard", "text", "time", "position") if role == "id" else ("shard", "text", "position")
    table = tasks.shuffle(parts, read, _TEXTS, groups, order, write, _POSITIONS)
    return np.asarray(table["position"]) & ~END


def _write(job: Job, number: int, runs: Iterable[dict[str, Any]]) -> Any:
    """Write a shard, or the rejected rows, and return what is known of it."""
    with errors_as(LogError, f"{CANNOT_WRITE} to {job.directory.parent}"):
        if number < job.meaning.shards:
            tables = (pickle.loads(run["rows"]) for run in runs)
            return job.write(number, tables)
        table, seen = job.rejected(), Seen()
        for run in runs:
            about: About = pickle.loads(run["rows"])
            table.add(run["position"] >> FILE_BITS, about.total, about.left_out)
            seen.merge(about.seen)
        table.close()
    return table.kinds, table.examples, seen
