"""Write sorted rows as shard files; `ingest` does so in Spark's Python workers."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from compare.files import new_file
from compare.logs.requests import RequestTape
from compare.logs.touches import TouchTape
from compare.tapes.trace import Shard, new_shard, shard_name

_ENTRY = [field.name for field in fields(Shard)]
SHARDS = pa.schema(
    [("number", pa.int32())]
    + [(name, pa.string() if name == "file" else pa.int64()) for name in _ENTRY]
    + [("timed_out", pa.int64()), ("most_pending", pa.int64())]
)
"""A shard's number, its entry in the manifest, and counts of its timers (`ingest` only)."""

UNNUMBERED = "rejected-unnumbered.parquet"
"""The file of rejected rows, before their numbers in the log are known."""


def write_shards(
    batches: Iterable[pa.RecordBatch], *, kind: str, directory: Path, timeout: int, shards: int
) -> Iterator[pa.RecordBatch]:
    """Write the rows of each shard to a file in `directory`; yield one row of SHARDS per shard.

    Rows of "requests" are (shard, start, end or null, position), ordered by shard, start and
    position. Rows of "touches" are (shard, start, key), ordered by shard, start and position in the
    log. `timeout` is the timeout or the idle period. The rejected rows are in shard number
    `shards`, as JSON in the column `rejected`; they are written to the file UNNUMBERED. Memory: the
    pending timers and a row group.
    """
    for number, runs in groupby(_runs(batches), itemgetter(0)):
        pieces = map(itemgetter(1), runs)
        if number == shards:
            yield _write_rejected(number, pieces, directory)
        else:
            yield _write_shard(number, pieces, kind, directory, timeout)


def _runs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield consecutive rows of the same shard, with its number."""
    for batch in batches:
        numbers = batch.column("shard").to_numpy()
        cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        for begin, end in pairwise(cuts):
            if begin < end:
                yield int(numbers[begin]), batch.slice(begin, end - begin)


def _write_shard(
    number: int, pieces: Iterable[pa.RecordBatch], kind: str, directory: Path, timeout: int
) -> pa.RecordBatch:
    tape = RequestTape(timeout) if kind == "requests" else TouchTape(timeout)
    with new_shard(directory / shard_name(number)) as writer:
        for rows in pieces:
            start = rows.column("start").to_numpy()
            if isinstance(tape, TouchTape):
                writer.append(tape.add(start, rows.column("key").to_pylist()))
                continue
            end, position = rows.column("end"), rows.column("position").to_numpy()
            answered = end.is_valid().to_numpy(zero_copy_only=False)
            writer.append(tape.add(start, end.fill_null(0).to_numpy(), answered, position))
        writer.append(tape.finish())
    return row_of(number, writer.shard, tape.timed_out, tape.most_pending)


def _write_rejected(
    number: int, pieces: Iterable[pa.RecordBatch], directory: Path
) -> pa.RecordBatch:
    writer, total = None, 0
    with new_file(directory / UNNUMBERED) as path:
        for rows in pieces:
            texts = rows.column("rejected").to_pylist()
            # A log need not be UTF-8.
            rejected = [json.loads(text.decode(errors="replace")) for text in texts]
            schema = pa.schema(
                (name, pa.int64() if name in ("block", "index") else pa.string())
                for name in rejected[0]
            )
            writer = writer or pq.ParquetWriter(path, schema, compression="zstd")
            writer.write_table(pa.Table.from_pylist(rejected, schema=schema))
            total += len(rejected)
        assert writer is not None  # `pieces` is never empty
        writer.close()
    return row_of(number, Shard(UNNUMBERED, rows=total))


def row_of(number: int, shard: Shard, timed_out: int = 0, most_pending: int = 0) -> pa.RecordBatch:
    """Return a batch of one row of SHARDS."""
    row = {"number": number, "timed_out": timed_out, "most_pending": most_pending} | asdict(shard)
    return pa.RecordBatch.from_pylist([row], schema=SHARDS)


def entries_of(rows: pa.Table) -> dict[int, Shard]:
    """Return the entries of the manifest by number, from rows of SHARDS."""
    return {
        row["number"]: Shard(**{name: row[name] for name in _ENTRY}) for row in rows.to_pylist()
    }
