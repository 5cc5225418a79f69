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

_ENTRY = [field.name for field in fields(Shard)]
SHARDS = pa.schema(
    [("number", pa.int32())]
    + [(name, pa.string() if name == "file" else pa.int64()) for name in _ENTRY]
    + [("timed_out", pa.int64()), ("most_pending", pa.int64())]
)
"""A shard's number, its entry in the manifest, and what became of its timers (`ingest` only)."""

RESULT = ", ".join(
    f"{field.name} {'bigint' if field.type == pa.int64() else field.type}" for field in SHARDS
).replace("int32", "int")
"""The same as a Spark schema."""

UNNUMBERED = "rejected-unnumbered.parquet"
"""The file of the rejected rows before they have their numbers in the log."""

_WHERE_AND_WHY = ("block", "index", "kind", "problem")


def write_shards(
    batches: Iterable[pa.RecordBatch], *, kind: str, directory: Path, patience: int, shards: int
) -> Iterator[pa.RecordBatch]:
    """Write the rows of each shard as a file in `directory`; yield one row of SHARDS per shard.

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


def row_of(number: int, shard: Shard, timed_out: int = 0, most_pending: int = 0) -> pa.RecordBatch:
    """A row of SHARDS."""
    row = {"number": number, "timed_out": timed_out, "most_pending": most_pending} | asdict(shard)
    return pa.RecordBatch.from_pylist([row], schema=SHARDS)


def entries_of(rows: pa.Table) -> dict[int, Shard]:
    """The entries of the manifest by their numbers, from rows of SHARDS."""
    return {
        row["number"]: Shard(**{name: row[name] for name in _ENTRY}) for row in rows.to_pylist()
    }


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
        entry = self._writer.shard(self._tape.id_space)
        return row_of(self.number, entry, self._tape.timed_out, self._tape.most_pending)


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
        return row_of(self.number, Shard(UNNUMBERED, rows=self._rows))


def _request_columns(rows: pa.RecordBatch) -> tuple[Any, ...]:
    end = rows.column("end")
    answered = end.is_valid().to_numpy(zero_copy_only=False)
    start, position = rows.column("start").to_numpy(), rows.column("position").to_numpy()
    return start, end.fill_null(0).to_numpy(), answered, position


def _touch_columns(rows: pa.RecordBatch) -> tuple[Any, ...]:
    return rows.column("start").to_numpy(), rows.column("key").to_pylist()


_TAPES: Mapping[str, Callable[[int], RequestTape | TouchTape]] = {
    "requests": RequestTape,
    "touches": TouchTape,
}
_COLUMNS = {"requests": _request_columns, "touches": _touch_columns}
