"""Sorted rows to shard files: what runs in Spark's Python workers, one task per shard or some."""
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from compare.pipeline.fold import RequestFold, TouchFold
from compare.trace import Shard, ShardWriter, shard_name

CANNOT_WRITE = "cannot write"
"""How the message of a failure to write begins."""

_RESULT_ARROW = pa.schema(
    [("number", pa.int32())]
    + [(field.name, pa.string() if field.name == "file" else pa.int64()) for field in fields(Shard)]
)
RESULT = ", ".join(
    f"{name} {'string' if kind == pa.string() else 'int' if kind == pa.int32() else 'bigint'}"
    for name, kind in zip(_RESULT_ARROW.names, _RESULT_ARROW.types, strict=True)
)
"""One row per shard: its number, and its entry in the manifest; a Spark schema."""


def write_shards(
    batches: Iterable[pa.RecordBatch], *, kind: str, directory: str, patience: int
) -> Iterator[pa.RecordBatch]:
    """Write the rows of each shard as a file in `directory`; yields one row of RESULT per shard.

    Rows of "requests" are (shard, start, end or null, position), ordered by shard, start and position; rows of
    "touches" are (shard, start, key), ordered by shard, start and place in the log. `patience` is the timeout or the
    idle period. Memory: the pending timers and a row group.
    """
    shard: _Shard | None = None
    try:
        for batch in batches:
            numbers = batch.column("shard").to_numpy()
            cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
            for begin, end in pairwise(cuts):
                if begin == end:
                    continue
                number = int(numbers[begin])
                if shard is None or number != shard.number:
                    if shard is not None:
                        yield shard.close()
                    shard = _Shard(number, kind, directory, patience)
                shard.add(batch.slice(begin, end - begin))
        if shard is not None:
            yield shard.close()
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OSError(f"{CANNOT_WRITE} to {Path(directory).parent}: {reason}") from None


class _Shard:
    """One shard being written."""

    def __init__(self, number: int, kind: str, directory: str, patience: int) -> None:
        self.number = number
        self._path = Path(directory, shard_name(number))
        # A task that Spark tries twice must not write into the file of its other self.
        self._unfinished = self._path.with_name(f"{self._path.name}.{uuid.uuid4().hex}")
        self._writer = ShardWriter(self._unfinished)
        self._fold: RequestFold | TouchFold
        self._fold, self._columns = _FOLDS[kind](patience), _COLUMNS[kind]

    def add(self, rows: pa.RecordBatch) -> None:
        self._writer.append(self._fold.add(*self._columns(rows)))

    def close(self) -> pa.RecordBatch:
        self._writer.append(self._fold.finish())
        self._writer.close()
        self._unfinished.rename(self._path)
        entry = replace(self._writer.shard(self._fold.id_space), file=self._path.name)
        return pa.RecordBatch.from_pylist([{"number": self.number} | asdict(entry)], schema=_RESULT_ARROW)


def _request_columns(rows: pa.RecordBatch) -> tuple[Any, ...]:
    end = rows.column("end")
    answered = end.is_valid().to_numpy(zero_copy_only=False)
    times = (column.to_numpy() for column in (rows.column("start"), end.fill_null(0), rows.column("position")))
    start, end, position = times
    return start, end, answered, position


def _touch_columns(rows: pa.RecordBatch) -> tuple[Any, ...]:
    return rows.column("start").to_numpy(), rows.column("key").to_pylist()


_FOLDS: Mapping[str, Callable[[int], RequestFold | TouchFold]] = {"requests": RequestFold, "touches": TouchFold}
_COLUMNS = {"requests": _request_columns, "touches": _touch_columns}
