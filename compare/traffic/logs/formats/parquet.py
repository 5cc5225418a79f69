"""Parquet files; their columns have types."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from compare.base.files import errors_as
from compare.traffic.logs.blocks import Block, LogError, Source
from compare.traffic.logs.formats.arrow import FIRST_ROWS, TypedLog, flat
from compare.traffic.logs.formats.base import Log, Records, Roles

MAGIC = b"PAR1"


@dataclass(frozen=True, kw_only=True)
class ParquetLog(TypedLog):
    """A Parquet file; it is recognized by its first bytes."""

    format: str = "parquet"
    divisible = True

    @classmethod
    def open(cls, source: Source) -> Log:
        """Read the schema."""
        if not source.seekable:
            raise LogError(f"{source.name} is a pipe; Parquet can only be read from a file")
        with errors_as(LogError, f"{source.name} is not a readable Parquet file"):
            schema = flat(pq.read_schema(source.name).empty_table()).schema
        return cls(source=source, columns=tuple(schema.names), schema=schema)

    def beginning(self) -> list[Block]:
        """The first rows; a row group may be large."""
        return [Block(0, 0, context=FIRST_ROWS)]

    def blocks(self) -> Iterator[Block]:
        """The row groups."""
        with errors_as(LogError, f"{self.name} is not a readable Parquet file"):
            metadata = pq.read_metadata(self.source.name)
        first = 0
        for number in range(metadata.num_row_groups):
            yield Block(first, number)
            first += metadata.row_group(number).num_rows

    def read(self, block: Block, roles: Roles) -> Iterator[Records]:
        """The rows of a block."""
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
        return self.records(table, roles)
