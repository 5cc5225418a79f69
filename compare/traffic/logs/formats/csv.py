"""Values separated by commas, tabs or other characters, below a header or without one."""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

import numpy as np

from compare.traffic.logs.blocks import Block, LogError, Source
from compare.traffic.logs.formats.base import Layout, Log, Records
from compare.traffic.logs.formats.fields import QUOTE, records, split, whole_records
from compare.traffic.logs.time_formats import MISSING, guess_form, looks_like_time

_LOOKED, _FEW = 100, 10
"""Lines that tell whether a log is a table, and fewer than which may have more bad ones."""
_MOST, _HALF = 0.9, 0.5
"""Shares of lines, and of the values of a column."""
_DIGITS = "[+-]?[0-9][0-9:/.,TZ +-]*|[+-]?[.,][0-9]+"
_LEAST_FIELDS = 2
_NAME = r'[^{}="<>]{0,100}'
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
        """The lines are rows of a table."""
        return any(_is_table(lines, delimiter) for delimiter in cls._delimiters)

    @property
    def is_text(self) -> bool:
        """If it has no header, and so no names that tell a duration."""
        return self.headless

    @classmethod
    def from_head(cls, source: Source, lines: list[str], blank: int, layout: Layout) -> Log:
        """The columns are those of the header, or given."""
        present = [delimiter for delimiter in cls._delimiters if delimiter in lines[0]]
        tables = (delimiter for delimiter in present if _is_table(lines, delimiter))
        delimiters = chain(tables, present)
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


def _is_table(lines: list[str], delimiter: str) -> bool:
    """Whether lines have as many fields as the first one, and there is a header or a time.

    Free text may have commas, too. So below a header, some column has numbers or times.
    """
    some = [f"{line}\n" for line in lines[:_LOOKED]]
    # Text of messages is often cut within quotes.
    rows = [record.fields for record in records(some, delimiter, multiline=True)]
    first, *rest = [[field.strip() for field in row] for row in rows]
    if len(first) < _LEAST_FIELDS:
        return False
    body = [row for row in rest if len(row) == len(first)]
    most = _MOST if len(rest) >= _FEW else _HALF
    if len(body) < most * len(rest):
        return False
    has_header = all(re.fullmatch(_NAME, name) and not _is_typed(name) for name in first)
    if not rest:
        return has_header or any(map(_is_typed, first))
    if has_header:
        return any(map(_is_typed_column, zip(*body, strict=True)))
    # The decimals of a time may stand behind a comma, too.
    typed = sum(map(_is_typed, first))
    return (any(map(looks_like_time, first)) and typed > 1) or typed == len(first)


def _is_typed(text: str) -> bool:
    """Whether a text is a number, a time, or at least digits and signs."""
    return re.fullmatch(_DIGITS, text) is not None or guess_form(text) is not None


def _is_typed_column(texts: Sequence[str]) -> bool:
    values = [text for text in texts if text not in MISSING]
    return bool(values) and sum(map(_is_typed, values)) >= _HALF * len(values)


def _is_multiline(lines: list[str], delimiter: str, columns: int) -> bool:
    """Return whether a record with the right number of fields is longer than a line."""
    if not any(line.count(QUOTE) % 2 for line in lines if QUOTE in line):
        return False
    return any(
        record.closed and len(record.fields) == columns
        for record in records([f"{line}\n" for line in lines], delimiter, multiline=True)
        if record.behind > record.line + 1
    )
