"""Values separated by commas, tabs or other characters, below a header or without one."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from compare.traffic.logs.blocks import Block, LogError, Source
from compare.traffic.logs.formats.base import Layout, Log, Records
from compare.traffic.logs.formats.fields import QUOTE, records, split, whole_records

_DELIMITERS = ",;|"
"""The characters that may separate values, the most likely one first."""


@dataclass(frozen=True, kw_only=True)
class CsvLog(Log):
    """Values separated by a character, quoted as in RFC 4180."""

    delimiter: str
    multiline: bool  # whether quotes in the head contain line ends

    format: str = "csv"
    _delimiters: ClassVar[str] = _DELIMITERS

    @classmethod
    def fits(cls, lines: list[str]) -> bool:
        """The first line has a delimiter."""
        return any(delimiter in lines[0] for delimiter in cls._delimiters)

    @classmethod
    def from_head(cls, source: Source, lines: list[str], blank: int, layout: Layout) -> Log:
        """The columns are those of the header, or given."""
        delimiters = (delimiter for delimiter in cls._delimiters if delimiter in lines[0])
        delimiter = layout.delimiter or next(delimiters, cls._delimiters[0])
        delimiter = "\t" if delimiter == r"\t" else delimiter
        if len(delimiter.encode()) != 1 or delimiter in "\r\n" + QUOTE:
            raise LogError(f"delimiter {delimiter!r} is not one character of ASCII, such as ; or |")
        columns = layout.columns or tuple(next(csv.reader(lines[:1], delimiter=delimiter)))
        names = tuple(column.strip() for column in columns)
        described = "of --columns" if layout.columns else "of the header"
        return cls(
            source=source,
            columns=names,
            fault=f"it does not have the {len(names)} fields {described}",
            # Where a semicolon separates values, numbers have a decimal comma.
            point="," if delimiter == ";" else ".",
            delimiter=delimiter,
            header=-1 if layout.columns else blank,
            multiline=_is_multiline(lines, delimiter, len(names)),
        )

    @property
    def divisible(self) -> bool:
        """Unless quotes contain line ends."""
        return super().divisible and not self.multiline

    def cut(self, data: bytes, last: bool) -> int:
        """Behind a line end outside of quotes."""
        if last or not self.multiline:
            return super().cut(data, last)
        return whole_records(data, self.delimiter)

    def parse(self, data: bytes, block: Block, names: Sequence[str]) -> Records:
        """Split lines into fields."""
        columns = [self.columns.index(name) for name in names]
        fields = split(data, self.delimiter, len(self.columns), columns, multiline=self.multiline)
        first = 0 if block.first else int(np.searchsorted(fields.line, self.header, side="right"))
        texts = {role: column[first:] for role, column in zip(names, fields.texts, strict=True)}
        return Records(fields.line[first:], fields.fault[first:], texts, fields.lines)


@dataclass(frozen=True, kw_only=True)
class TsvLog(CsvLog):
    """The same with tabs."""

    format: str = "tsv"
    _delimiters = "\t"


def _is_multiline(lines: list[str], delimiter: str, columns: int) -> bool:
    """Return whether a record with the right number of fields is longer than a line."""
    if not any(line.count(QUOTE) % 2 for line in lines if QUOTE in line):
        return False
    return any(
        record.closed and len(record.fields) == columns
        for record in records([f"{line}\n" for line in lines], delimiter, multiline=True)
        if record.behind > record.line + 1
    )
