"""Parquet files; their columns have types."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from compare.base.files import errors_as
from compare.traffic.logs.blocks import Block, LogError, Source
from compare.traffic.logs.formats.base import Layout, Log, Records, Roles

MAGIC = b"PAR1"
_FIRST_ROWS = 1000


@dataclass(frozen=True, kw_only=True)
class ParquetLog(Log):
    """A Parquet file; a column may be nested: `client.ip`."""

    schema: pa.Schema

    format: str = "parquet"
    fault: str = "it cannot be read"
    record = "row"
    divisible = True

    @classmethod
    def fits(cls, lines: list[str]) -> bool:
        """Never: it is recognized by its first bytes."""
        return False

    @classmethod
    def from_head(cls, source: Source, lines: list[str], blank: int, layout: Layout) -> Log:
        """Raise LogError: text is not Parquet."""
        raise LogError(f"{source.name} is not a Parquet file")

    @classmethod
    def open(cls, source: Source) -> Log:
        """Read the schema."""
        if not source.seekable:
            raise LogError(f"{source.name} is a pipe; Parquet can only be read from a file")
        with errors_as(LogError, f"{source.name} is not a readable Parquet file"):
            schema = _flat(pq.read_schema(source.name).empty_table()).schema
        return cls(source=source, columns=tuple(schema.names), schema=schema)

    def parts(self, name: str) -> tuple[str, ...]:
        """One: what has a type is not joined."""
        return (name,)

    def implied_form(self, column: str) -> str | None:
        """Timestamps become decimal numbers of seconds."""
        return "epoch-s" if pa.types.is_timestamp(self.schema.field(column).type) else None

    def beginning(self) -> list[Block]:
        """The first rows; a row group may be large."""
        return [Block(0, 0, context=_FIRST_ROWS)]

    def blocks(self) -> Iterator[Block]:
        """The row groups."""
        with errors_as(LogError, f"{self.name} is not a readable Parquet file"):
            metadata = pq.read_metadata(self.source.name)
        first = 0
        for number in range(metadata.num_row_groups):
            yield Block(first, number)
            first += metadata.row_group(number).num_rows

    def read(self, block: Block, roles: Roles) -> Records:
        """Values of several types as texts that the text formats could have."""
        with (
            errors_as(LogError, f"{self.name} is not a readable Parquet file"),
            pq.ParquetFile(self.source.name) as file,
        ):
            names = list(set(roles.values()))
            if block.context is not None:
                batch = next(file.iter_batches(block.context, columns=names), None)
                none = file.schema_arrow.empty_table()
                table = none if batch is None else pa.Table.from_batches([batch])
            else:
                table = file.read_row_group(block.length, names, use_threads=False)
            table = _flat(table)
        texts = {role: self._texts(table[name], role, name) for role, name in roles.items()}
        rows = table.num_rows
        return Records(np.arange(rows, dtype=np.int32), np.zeros(rows, np.bool_), texts, rows)

    def parse(self, data: bytes, block: Block, names: Sequence[str]) -> Records:
        """Not used: a row group is not a number of bytes."""
        raise NotImplementedError

    def _texts(self, column: pa.ChunkedArray, role: str, name: str) -> pa.Array:
        values, types = column.combine_chunks(), pa.types
        if types.is_dictionary(values.type):
            values = values.dictionary_decode()
        kind, suffix = values.type, ""
        if types.is_floating(kind):  # pandas writes NaN for no value
            values = pc.if_else(pc.is_nan(values), pa.scalar(None, kind), values)
        elif role == "time" and types.is_timestamp(kind):
            unit, suffix = ("ns", "e-9") if kind.unit == "ns" else ("us", "e-6")
            values = values.cast(pa.timestamp(unit, kind.tz)).cast(pa.int64())
        elif role == "duration" and types.is_duration(kind):
            values, suffix = values.cast(pa.int64()), kind.unit
        elif types.is_nested(kind) or (
            role in ("time", "duration") and (types.is_temporal(kind) or types.is_boolean(kind))
        ):
            raise LogError(
                f"{self.name}: column {name!r} of type {kind} cannot be read as a {role}"
            )
        if not types.is_binary(kind):
            values = values.cast(pa.string())
        return pc.binary_join_element_wise(values.cast(pa.binary()), suffix.encode(), b"")


def _flat(table: pa.Table) -> pa.Table:
    """The table with the fields of structures as columns: `client.ip`."""
    while any(pa.types.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()
    return table
