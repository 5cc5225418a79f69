"""Typed columns: of an Arrow stream, which DuckDB, Polars and PyArrow hand over, or of a file."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from compare.base.files import errors_as
from compare.traffic.logs.blocks import Block, LogError, Source
from compare.traffic.logs.formats.base import Layout, Log, Records, Roles

FIRST_ROWS = 1000
"""Rows that show what a log has."""
_ROWS = 1 << 18
"""Rows of a block."""
_MOST_BYTES = 1 << 30
"""Bytes of rows that are read at a time."""

_INTERVAL = np.dtype([("months", np.int32), ("days", np.int32), ("ns", np.int64)])
_DAY = 86_400 * 10**9


class ArrowStream(Protocol):
    """A table or query that hands over its rows: a DuckDB relation, a Polars frame, ..."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The stream."""


@dataclass(frozen=True, kw_only=True)
class TypedLog(Log):
    """Columns with types; one may be nested: `client.ip`."""

    schema: pa.Schema

    fault: str = "it cannot be read"
    record = "row"

    @classmethod
    def fits(cls, lines: list[str]) -> bool:
        """Never: it is not text."""
        return False

    @classmethod
    def from_head(cls, source: Source, lines: list[str], blank: int, layout: Layout) -> Log:
        """Raise LogError: text has no types."""
        raise LogError(f"{source.name} is not a {cls.format.capitalize()} file")

    def parts(self, name: str) -> tuple[str, ...]:
        """The name alone: typed columns are not joined."""
        return (name,)

    def implied_form(self, column: str) -> str | None:
        """Timestamps become decimal numbers of seconds."""
        return "epoch-s" if pa.types.is_timestamp(self.schema.field(column).type) else None

    def parse(self, data: bytes, block: Block, names: Sequence[str]) -> Records:
        """Not used: rows are not a number of bytes."""
        raise NotImplementedError

    def records(self, table: pa.Table, roles: Roles) -> Iterator[Records]:
        """Values of several types as texts that the text formats could have."""
        table = flat(table)
        for batch in table.to_batches() or [none_of(table.schema)]:
            for part in _parts(batch):
                with errors_as(LogError, f"{self.name} cannot be read"):
                    yield self._records(part, roles)

    def _records(self, batch: pa.RecordBatch, roles: Roles) -> Records:
        rows = batch.num_rows
        # An end is in the format of the times.
        typed = "time" in roles and self.implied_form(roles["time"]) is not None
        moments = ("time", "end") if typed else ()
        texts = {}
        for role, name in roles.items():
            texts[role] = _texts(batch[name], role, moments)
            if texts[role] is None:
                kind = batch.schema.field(name).type
                raise LogError(
                    f"{self.name}: column {name!r} of type {kind} cannot be read as a {role}"
                )
        return Records(np.arange(rows, dtype=np.int32), np.zeros(rows, np.bool_), texts, rows)


@dataclass(frozen=True, kw_only=True)
class ArrowLog(TypedLog):
    """An Arrow stream."""

    head: pa.RecordBatch  # the first rows; the stream has those behind them

    format: str = "arrow"
    divisible = False

    @classmethod
    def of(cls, stream: ArrowStream) -> Log:
        """Read the first rows. Raises LogError."""
        name = f"{type(stream).__module__.partition('.')[0]} {type(stream).__name__}"
        with errors_as(LogError, f"{name} cannot be read"):
            reader = pa.RecordBatchReader.from_stream(stream)
            head = next((batch for batch in reader if batch.num_rows), none_of(reader.schema))
        schema = flat(reader.schema.empty_table()).schema
        source = Source(name, None, b"", reader)
        return cls(source=source, columns=tuple(schema.names), schema=schema, head=head)

    def beginning(self) -> list[Block]:
        """The first rows."""
        return [Block(0, 0, context=self.head.slice(0, FIRST_ROWS))]

    def blocks(self) -> Iterator[Block]:
        """The rows of the stream. They can be read once."""
        first, batch = 0, self.head
        while batch is not None:
            for begin in range(0, batch.num_rows, _ROWS):
                part = batch.slice(begin, _ROWS)
                yield Block(first, part.num_rows, context=part)
                first += part.num_rows
            with errors_as(LogError, f"{self.name} cannot be read"):
                batch = next(self.source.stream, None)

    def read(self, block: Block, roles: Roles) -> Iterator[Records]:
        """The records of a block."""
        return self.records(pa.Table.from_batches([block.context]), roles)


def none_of(schema: pa.Schema) -> pa.RecordBatch:
    """No rows."""
    return pa.RecordBatch.from_pylist([], schema)


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows as batches whose texts have less than 2 GiB, the most for an array of them."""
    if batch.nbytes <= _MOST_BYTES or batch.num_rows < 2:
        yield batch
        return
    middle = batch.num_rows // 2
    for half in (batch.slice(0, middle), batch.slice(middle)):
        # A copy, because Arrow does not cast a slice of more.
        yield from _parts(half.take(np.arange(half.num_rows)))


def flat(table: pa.Table) -> pa.Table:
    """The table with the fields of structures as columns: `client.ip`."""
    while any(pa.types.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()
    return table


def _texts(values: pa.Array, role: str, moments: Collection[str]) -> pa.Array | None:
    """The values as texts, or None if their type does not suit the role."""
    types, suffix = pa.types, ""
    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if types.is_floating(kind):  # pandas writes NaN for no value
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, kind), values)
    elif role in moments and types.is_timestamp(kind):
        unit, suffix = ("ns", "e-9") if kind.unit == "ns" else ("us", "e-6")
        values = values.cast(pa.timestamp(unit, kind.tz)).cast(pa.int64())
    elif role == "duration" and types.is_duration(kind):
        values, suffix = values.cast(pa.int64()), kind.unit
    elif role == "duration" and types.is_interval(kind):
        values = _lengths(values)
    elif types.is_nested(kind) or (
        role in ("time", "end", "duration") and (types.is_temporal(kind) or types.is_boolean(kind))
    ):
        return None
    if not (types.is_binary(kind) or types.is_large_binary(kind)):
        values = values.cast(pa.string())
    return pc.binary_join_element_wise(values.cast(pa.binary()), suffix.encode(), b"")


def _lengths(intervals: pa.Array) -> pa.Array:
    """The lengths of intervals, such as `end - start` in SQL, as texts. Months have no length."""
    _, data = intervals.buffers()
    parts = np.frombuffer(data or b"", _INTERVAL)[intervals.offset :][: len(intervals)]
    length = parts["days"].astype(np.int64) * _DAY + parts["ns"]
    texts, months = (
        pc.binary_join_element_wise(pa.array(numbers).cast(pa.string()), unit, "")
        for numbers, unit in ((length, "ns"), (parts["months"], " months"))
    )
    texts = pc.if_else(pa.array(parts["months"] != 0), months, texts)
    return pc.if_else(intervals.is_valid(), texts, None)
