"""Parquet files; their columns have types."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from compare.base.files import errors_as
from compare.traffic.logs.blocks import Block, LogError, Source
from compare.traffic.logs.formats.arrow import FIRST_ROWS, TypedLog, flat
from compare.traffic.logs.formats.base import Log, Records, Roles

MAGIC = b"PAR1"
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def partitions_of(name: str) -> tuple[str, dict[str, str | None]]:
    """The columns that the directories of a file are, as in `dt=2026-11-28/hour=03/part-0.parquet`.

    Their values are texts. The first value is the directory above them; it is empty without any.
    """
    parts = name.split("/")[:-1]
    first = next((place for place, part in enumerate(parts) if "=" in part), None)
    if first is None:
        return "", {}
    pairs = (part.split("=", 1) for part in parts[first:] if "=" in part)
    values = {unquote(name): unquote(text) for name, text in pairs}
    base = "/".join(parts[:first]) or "."
    return base, {name: None if text == _NO_VALUE else text for name, text in values.items()}


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
        for column in partitions_of(source.name)[1].keys() - set(schema.names):
            schema = schema.append(pa.field(column, pa.string()))
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
            partitions = partitions_of(self.source.name)[1]
            columns = flat(file.schema_arrow.empty_table()).column_names
            names = [name for name in set(roles.values()) if name in columns]
            if block.context is not None:
                batch = next(file.iter_batches(block.context, columns=names), None)
                none = file.schema_arrow.empty_table()
                table = none if batch is None else pa.Table.from_batches([batch])
            else:
                table = file.read_row_group(block.length, names, use_threads=False)
        for column in set(roles.values()) - set(names):
            values = pa.repeat(pa.scalar(partitions[column], pa.string()), table.num_rows)
            table = table.append_column(column, values)
        return self.records(table, roles)
