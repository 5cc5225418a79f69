"""Write sorted rows as shard files: what `ingest` runs in Spark's Python workers."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from compare.files import NewFile
from compare.logs.requests import RequestTape
from compare.logs.touches import TouchTape
from compare.tapes.trace import Shard, ShardWriter, shard_name

RESULT_ARROW = pa.schema(
    [("number", pa.int32())]
    + [(field.name, pa.string() if field.name == "file" else pa.int64()) for field in fields(Shard)]
)
RESULT = ", ".join(
    f"{name} {'string' if kind == pa.string() else 'int' if kind == pa.int32() else 'bigint'}"
    for name, kind in zip(RESULT_ARROW.names, RESULT_ARROW.types, strict=True)
)
"""The Spark schema of a shard's number and its entry in the manifest."""
WRITTEN = f"{RESULT}, timed_out bigint, most_pending bigint"
"""The same, and what became of its timers."""

UNNUMBERED = "rejected-unnumbered.parquet"
"""The file of the rejected rows before they have their numbers in the log."""

_WHERE_AND_WHY = ("block", "index", "kind", "problem")


def write_shards(
    batches: Iterable[pa.RecordBatch], *, kind: str, directory: Path, patience: int, shards: int
) -> Iterator[pa.RecordBatch]:
    """Write the rows of each shard as a file in `directory`; yield one row of WRITTEN per shard.

    Rows of "requests" are (shard, start, end or null, position), ordered by shard, start and
    position; rows of "touches" are (shard, start, key), ordered by shard, start and place in the
    log. `patience` is the timeout or the idle period. Shard number `shards` has the rejected
    rows, as JSON in the column `rejected`; they go to the file UNNUMBERED. Memory: the pending
    timers and a row group.
    """
    shard: _Shard | _Rejected | None = None
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
                shard = (
                    _Rejected(number, directory)
                    if number == shards
                    else _Shard(number, kind, directory, patience)
                )
            shard.add(batch.slice(begin, end - begin))
    if shard is not None:
        yield shard.close()


def row_of(number: int, shard: Shard) -> pa.RecordBatch:
    """A shard's number and entry, as a row of RESULT."""
    return pa.RecordBatch.from_pylist([{"number": number} | asdict(shard)], schema=RESULT_ARROW)


class _Shard:
    """One shard being written."""

    def __init__(self, number: int, kind: str, directory: Path, patience: int) -> None:
        self.number = number
        self._writer = ShardWriter(directory / shard_name(number))
        self._tape: RequestTape | TouchTape
        self._tape, self._columns = _TAPES[kind](patience), _COLUMNS[kind]

    def add(self, rows: pa.RecordBatch) -> None:
        self._writer.append(self._tape.add(*self._columns(rows)))

    def close(self) -> pa.RecordBatch:
        self._writer.append(self._tape.finish())
        self._writer.close()
        row = row_of(self.number, self._writer.shard(self._tape.id_space))
        return _written(row, self._tape.timed_out, self._tape.most_pending)


class _Rejected:
    """The rejected rows, being written."""

    def __init__(self, number: int, directory: Path) -> None:
        self.number = number
        self._file = NewFile(directory / UNNUMBERED)
        self._writer: pq.ParquetWriter | None = None
        self._rows = 0

    def add(self, rows: pa.RecordBatch) -> None:
        # Not every log is UTF-8.
        rejected = [
            json.loads(text.decode(errors="replace"))
            for text in rows.column("rejected").to_pylist()
        ]
        texts = [name for name in rejected[0] if name not in _WHERE_AND_WHY]
        schema = pa.schema(
            [("block", pa.int64()), ("index", pa.int64())]
            + [(name, pa.string()) for name in (*_WHERE_AND_WHY[2:], *texts)]
        )
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file.temporary, schema, compression="zstd")
        self._writer.write_table(pa.Table.from_pylist(rejected, schema=schema))
        self._rows += len(rejected)

    def close(self) -> pa.RecordBatch:
        assert self._writer is not None  # there is a row, or there were no rows at all
        self._writer.close()
        self._file.commit()
        entry = {field.name: 0 for field in fields(Shard)} | {
            "file": UNNUMBERED,
            "rows": self._rows,
        }
        row = pa.RecordBatch.from_pylist([{"number": self.number} | entry], schema=RESULT_ARROW)
        return _written(row, 0, 0)


def _written(row: pa.RecordBatch, timed_out: int, most_pending: int) -> pa.RecordBatch:
    """A row of RESULT as one of WRITTEN."""
    row = row.append_column("timed_out", pa.array([timed_out]))
    return row.append_column("most_pending", pa.array([most_pending]))


def _request_columns(rows: pa.RecordBatch) -> tuple[Any, ...]:
    end = rows.column("end")
    answered = end.is_valid().to_numpy(zero_copy_only=False)
    times = (
        column.to_numpy()
        for column in (rows.column("start"), end.fill_null(0), rows.column("position"))
    )
    start, end, position = times
    return start, end, answered, position


def _touch_columns(rows: pa.RecordBatch) -> tuple[Any, ...]:
    return rows.column("start").to_numpy(), rows.column("key").to_pylist()


_TAPES: Mapping[str, Callable[[int], RequestTape | TouchTape]] = {
    "requests": RequestTape,
    "touches": TouchTape,
}
_COLUMNS = {"requests": _request_columns, "touches": _touch_columns}
