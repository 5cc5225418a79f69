"""Parquet datasets on this machine: files of rows that a key puts in order.

A file may hold the rows of several keys, and the rows of a key may be in several files: the same
files come from Spark. What reads them finds the order by the key; it does not assume it.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from compare.base.files import errors_as, open_parquet
from timers.arrays import Int64s

ROW_GROUP_BYTES = 1 << 24
"""Bytes of a row group before it is encoded, or a little more: what a reader holds at least."""
_ROWS_OF_A_GROUP = 1 << 12


def part_name(number: int) -> str:
    """Return the file name of a part."""
    return f"part-{number:05d}.parquet"


def write_part(path: str | Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a file of a dataset. Raises OSError.

    Numbers in lists are stored as differences. Of the columns that a key has, the least and the
    greatest value of each row group are stored, too.
    """
    lists = [field.name for field in schema if pa.types.is_list(field.type)]
    deltas = [name for name in lists if pa.types.is_integer(schema.field(name).type.value_type)]
    with pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        use_dictionary=False,
        # Of the encodings that Spark reads, this is fast and small: 4 to 5 bytes an operation.
        column_encoding={f"{name}.list.element": "DELTA_BINARY_PACKED" for name in deltas},
        write_statistics=[field.name for field in schema if not pa.types.is_nested(field.type)],
        # With a checksum, a damaged byte is an error, not another number.
        write_page_checksum=True,
    ) as file:
        for group in row_groups(batches):
            file.write_table(pa.Table.from_batches(group, schema))


def row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Consecutive batches that together are a row group."""
    group: list[pa.RecordBatch] = []
    size = rows = 0
    for batch in batches:
        group.append(batch)
        size, rows = size + batch.get_total_buffer_size(), rows + batch.num_rows
        if size >= ROW_GROUP_BYTES or rows >= _ROWS_OF_A_GROUP:
            yield group
            group, size, rows = [], 0, 0
    if group:
        yield group


@dataclass(frozen=True)
class Dataset:
    """A directory of Parquet files with a schema. The columns of the key put its rows in order.

    Only `path`, `schema` and `key` concern Spark, for which the path may be a URI. Errors are those
    of `error`, in one line that names the file.
    """

    path: str
    schema: pa.Schema
    key: tuple[str, ...]
    error: type[Exception]

    def ordered_by(self, key: tuple[str, ...]) -> "Dataset":
        """The same files in another order."""
        return replace(self, key=key)

    @cached_property
    def files(self) -> list[Path]:
        """The files, in order of their names. Raises `error` if there is no such directory."""
        if not Path(self.path).is_dir():
            raise self.error(f"{self.path} is not a directory of this machine")
        with errors_as(self.error, f"cannot read {self.path}"):
            names = sorted(Path(self.path).iterdir())
        # As in Spark, a file whose name begins with a dot or an underscore is not data.
        return [path for path in names if path.name[0] not in "._"]

    @cached_property
    def index(self) -> "Index":
        """Where the rows are. O(rows); it reads the columns of the key."""
        tables, places = [], []
        for number, path in enumerate(self.files):
            with open_parquet(path, self.error) as file:
                self._check(file, path)
                for group in range(file.num_row_groups):
                    table = file.read_row_group(group, columns=list(self.key), use_threads=False)
                    for name in self.key:
                        if table[name].null_count:
                            raise self.error(f"{path} has a row without {name}")
                    rows = np.arange(table.num_rows)
                    places.append(np.stack([np.full_like(rows, number), rows * 0 + group, rows]))
                    tables.append(table)
        if not tables:
            return Index(self.schema.empty_table().select(self.key), np.empty((3, 0), np.int64))
        keys = pa.concat_tables(tables).combine_chunks()
        order = keys.append_column("row", pa.array(np.arange(keys.num_rows))).sort_by(
            [(name, "ascending") for name in (*self.key, "row")]
        )["row"]
        return Index(keys.take(order), np.concatenate(places, axis=1)[:, np.asarray(order)])

    def column(self, name: str) -> pa.Table:
        """The rows that have a value in a column, with their keys, in order; only that is read."""
        names = [*self.key, name]
        tables = [self.schema.empty_table().select(names)]
        for path in self.files:
            with open_parquet(path, self.error) as file:
                self._check(file, path)
                table = file.read(columns=names, use_threads=False)
                tables.append(table.filter(table[name].is_valid()).cast(tables[0].schema))
        return pa.concat_tables(tables).sort_by([(key, "ascending") for key in self.key])

    def rows(self, start: int, stop: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of the index from `start` to `stop`, in order. Memory: a row group."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        places = self.index.places[:, start:stop]
        if not places.size:
            return
        # Where the next row is not the next one of the same row group.
        breaks = (np.diff(places[:2]) != 0).any(axis=0) | (np.diff(places[2]) != 1)
        begins = [0, *(np.flatnonzero(breaks) + 1).tolist()]
        opened: int | None = None
        held: tuple[int, int] | None = None
        with ExitStack() as stack:
            for begin, end in zip(begins, [*begins[1:], places.shape[1]], strict=True):
                number, group, row = places[:, begin].tolist()
                if number != opened:
                    stack.close()
                    file = stack.enter_context(open_parquet(self.files[number], self.error))
                    opened, held = number, None
                if held != (number, group):
                    table = file.read_row_group(group, columns=list(columns), use_threads=False)
                    table, held = table.cast(schema), (number, group)
                yield from table.slice(row, end - begin).to_batches()

    def _check(self, file: pq.ParquetFile, path: Path) -> None:
        found = file.schema_arrow
        if [(field.name, field.type) for field in found] != [
            (field.name, field.type) for field in self.schema
        ]:
            raise self.error(
                f"{path} has the columns ({columns_text(found)}); it must have"
                f" ({columns_text(self.schema)})"
            )


@dataclass(frozen=True)
class Index:
    """The keys of all rows, in order, and where each row is."""

    keys: pa.Table
    places: Int64s  # shape (3, rows): the number of the file, the row group, and the row in that


def columns_text(schema: pa.Schema) -> str:
    """Describe the columns of a schema for a message."""
    return ", ".join(f"{field.name} {field.type}" for field in schema)
