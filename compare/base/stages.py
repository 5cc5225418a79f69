"""Stages: pure functions from Arrow batches of one key to Arrow batches, and the engine of threads.

An engine applies stages to rows, and knows nothing of what they mean. `Here` runs them on threads
of this process, over Parquet datasets; `compare.spark.engine.OnSpark` is the other one. Rows are
read when they are written or collected, not before.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from compare.base.datasets import Dataset, part_name, write_part
from compare.base.executors import Stopping, Threads, even_shares, until_stopping

Result = TypeVar("Result")
Batches = Iterator[pa.RecordBatch]
SHARD = "shard"
PARTS = 64
"""Parts into which the shards are divided here, if there are as many."""


@dataclass(frozen=True)
class Stage:
    """A function, and the rows that it takes."""

    name: str
    #: the columns whose values rows have in common that one call of the function takes
    key: tuple[str, ...]
    #: the columns by which these rows are ordered; null comes first. If there are none, the rows of
    #: each key are together already.
    order: tuple[str, ...]
    output: pa.Schema
    function: Callable[[Batches], Iterable[pa.RecordBatch]]

    def apply(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        """Apply the function to rows of several keys, which are in order."""
        for rows in _by(self.key, batches):
            yield from self.function(rows)


def _by(key: tuple[str, ...], batches: Iterable[pa.RecordBatch]) -> Iterator[Batches]:
    """The rows of each key. Those of one must be taken before the next."""

    def value(batch: pa.RecordBatch) -> tuple[Any, ...]:
        return tuple(batch[name][0].as_py() for name in key)

    def slices() -> Batches:
        for batch in batches:
            if batch.num_rows:
                ends = [*(np.flatnonzero(_changes(key, batch)) + 1).tolist(), batch.num_rows]
                for start, end in zip([0, *ends], ends, strict=False):
                    yield batch.slice(start, end - start)

    for _, rows in groupby(slices(), value):
        yield rows


def _changes(key: tuple[str, ...], batch: pa.RecordBatch) -> Any:
    """Whether each row but the last has another key than the next."""
    differs = np.zeros(batch.num_rows - 1, np.bool_)
    for name in key:
        column = batch[name]
        differs |= np.asarray(pc.not_equal(column[:-1], column[1:]).fill_null(True))
    return differs


class Engine(Protocol):
    """Runs stages. `Rows` are its own: a DataFrame of Spark, for example."""

    @property
    def made_by(self) -> Mapping[str, Any]:
        """The entry `made_by` of a manifest: executor, master and versions."""

    @property
    def workers(self) -> int:
        """The number of tasks that can run at a time, or a higher number."""

    def numbers(self, shards: int) -> Any:
        """Rows with the numbers of shards in the column `shard`."""

    def read(self, dataset: Dataset, shards: int) -> Any:
        """The rows of a dataset."""

    def values(self, dataset: Dataset, column: str, shards: int) -> Any:
        """The rows of a dataset that have a value in a column: it, and the columns of the key."""

    def apply(self, stage: Stage, *inputs: Any) -> Any:
        """The results of a stage. Rows of several inputs lack the columns of the others."""

    def union(self, *rows: Any) -> Any:
        """The rows of all."""

    def write(self, rows: Any, path: str, description: str) -> None:
        """Write rows as a dataset. The description is for people who watch the engine."""

    def collect(self, rows: Any, description: str) -> pa.Table:
        """All rows, in any order."""

    def send_module(self, file: str) -> None:
        """Make a Python file importable where the stages run."""

    def tasks(self) -> tuple[int, int]:
        """The number of tasks of the current run that have ended, and of all its tasks."""


Read = Callable[[range, Stopping], Batches]


@dataclass(frozen=True)
class Rows:
    """Rows of `Here`: functions that read those of some shards."""

    schema: pa.Schema
    shards: int
    branches: tuple[Read, ...]


class Here:
    """The engine of threads. Compiled code and Arrow release the GIL."""

    def __init__(self) -> None:
        self._threads = Threads()
        self.workers, self.made_by = self._threads.workers, self._threads.made_by
        self.tasks, self.send_module = self._threads.tasks, self._threads.send_module

    def numbers(self, shards: int) -> Rows:
        """See `Engine`."""
        schema = pa.schema([(SHARD, pa.int32())])

        def read(part: range, _: Stopping) -> Batches:
            yield pa.RecordBatch.from_arrays([pa.array(part, pa.int32())], schema=schema)

        return Rows(schema, shards, (read,))

    def read(self, dataset: Dataset, shards: int) -> Rows:
        """See `Engine`."""
        numbers = dataset.index.keys[SHARD].to_numpy()
        bounds = np.searchsorted(numbers, np.arange(shards + 1))

        def read(part: range, stopping: Stopping) -> Batches:
            start, stop = bounds[[part.start, part.stop]].tolist()
            return until_stopping(dataset.rows(start, stop, dataset.schema.names), stopping)

        return Rows(dataset.schema, shards, (read,))

    def values(self, dataset: Dataset, column: str, shards: int) -> Rows:
        """See `Engine`."""
        table = dataset.column(column)

        def read(part: range, _: Stopping) -> Batches:
            inside = pc.and_(
                pc.greater_equal(table[SHARD], part.start), pc.less(table[SHARD], part.stop)
            )
            yield from table.filter(inside).to_batches()

        return Rows(table.schema, shards, (read,))

    def apply(self, stage: Stage, *inputs: Rows) -> Rows:
        """See `Engine`. With another key than shards, all rows are held, and sorted."""
        (shards,) = {rows.shards for rows in inputs}
        by_shard, schema = stage.key[0] == SHARD, pa.unify_schemas([r.schema for r in inputs])

        def applied(readers: tuple[Read, ...]) -> Read:
            def apply(part: range, stopping: Stopping) -> Batches:
                if by_shard:
                    streams = [read(part, stopping) for read in readers]
                    return stage.apply(_merged(streams, schema, (*stage.key, *stage.order)))
                if part.start:
                    return iter(())
                batches = [batch for read in readers for batch in read(range(shards), stopping)]
                table = pa.Table.from_batches(batches, inputs[0].schema)
                order = [(name, "ascending") for name in (*stage.key, *stage.order)]
                return stage.apply(table.sort_by(order).to_batches())

            return apply

        branches = zip(*(rows.branches for rows in inputs), strict=True)
        return Rows(stage.output, shards, tuple(map(applied, branches)))

    def union(self, *rows: Rows) -> Rows:
        """See `Engine`."""
        branches = tuple(read for each in rows for read in each.branches)
        return Rows(rows[0].schema, rows[0].shards, branches)

    def write(self, rows: Rows, path: str, description: str) -> None:
        """See `Engine`."""

        def write(number: int, batches: Batches) -> None:
            write_part(Path(path, part_name(number)), rows.schema, batches)

        self._run(rows, write)

    def collect(self, rows: Rows, description: str) -> pa.Table:
        """See `Engine`."""
        found = self._run(rows, lambda _, batches: list(batches))
        return pa.Table.from_batches([each for batches in found for each in batches], rows.schema)

    def _run(self, rows: Rows, work: Callable[[int, Batches], Result]) -> list[Result]:
        """Work on each part of each branch; parts of the same shards are neighbours."""
        parts = [(read, part) for part in even_shares(rows.shards, PARTS) for read in rows.branches]

        def run(number: int, stopping: Stopping) -> Result:
            read, part = parts[number]
            # A stage without input is stopped, too.
            return work(number, until_stopping(read(part, stopping), stopping))

        return self._threads.run(len(parts), run)


def _merged(streams: list[Batches], schema: pa.Schema, order: tuple[str, ...]) -> Batches:
    """The rows of ordered streams in order, one by one if there are several; null comes first.

    A column that a stream lacks is null.
    """
    if len(streams) == 1:
        return streams[0]

    def padded(batch: pa.RecordBatch) -> pa.RecordBatch:
        names = batch.schema.names
        columns = [
            batch[field.name] if field.name in names else pa.nulls(batch.num_rows, field.type)
            for field in schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def keyed(stream: Batches) -> Iterator[tuple[tuple[Any, ...], pa.RecordBatch]]:
        for batch in stream:
            whole = padded(batch)
            for row in range(batch.num_rows):
                one = whole.slice(row, 1)
                values = [one[name][0].as_py() for name in order]
                yield tuple((value is not None, value) for value in values), one

    return (batch for _, batch in merge(*map(keyed, streams), key=lambda pair: pair[0]))
