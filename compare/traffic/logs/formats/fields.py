"""Lines and their fields: by Arrow, or where it refuses a block, one by one by Python's `csv`.

Lines end with LF, CR or both. Quotes are those of RFC 4180.
"""

import csv
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from compare.traffic.logs.blocks import count_byte
from timers.arrays import Bools, Int32s

QUOTE = '"'
LONGEST_QUOTE = 1000
"""Lines of a quoted field. A quote that is not closed within these damages one line."""

_BLANK = " \r\n"
_MOST_COLUMNS = 1 << 14
"""Of lines that Arrow splits."""

csv.field_size_limit(2**31 - 1)  # Arrow reads fields of any size, too


class Fields(NamedTuple):
    """The lines of some data that are not blank, and some of their fields."""

    line: Int32s  # its number, from 0
    fault: Bools  # the number of fields is another one, or a quote is not closed
    texts: list[pa.Array]  # by column; bytes, or null
    lines: int  # with the blank ones


class Record(NamedTuple):
    """A record that is read by itself."""

    line: int  # its first one
    behind: int  # the number of the next record's first line
    fields: list[str]
    closed: bool  # whether all quotes are


def split(
    data: bytes,
    delimiter: str,
    count: int,
    columns: Sequence[int],
    *,
    quotes: bool = True,
    multiline: bool = False,
) -> Fields:
    """Split lines into `count` fields, and keep those in `columns`.

    With `multiline`, quotes may contain line ends.
    """
    fields = _by_arrow(data, delimiter, count, columns, quotes=quotes)
    if fields is None:
        fields = _one_by_one(data, delimiter, count, columns, quotes=quotes, multiline=multiline)
    return fields


def _by_arrow(
    data: bytes, delimiter: str, count: int, columns: Sequence[int], *, quotes: bool
) -> Fields | None:
    """The fields, or None if there may be line ends in quotes. Bad lines are read one by one."""
    lines = count_byte(data, b"\n")
    if b"\r" in data:
        lines += count_byte(data, b"\r") - data.count(b"\r\n")
    lines += not data.endswith((b"\n", b"\r"))
    names = [str(column) for column in range(count)]
    # A line of spaces is blank, but a field to Arrow, which takes a kilobyte for each column.
    if count == 1 or count > _MOST_COLUMNS or not columns:
        return None
    last = data[max(data.rfind(b"\n", 0, -2), data.rfind(b"\r", 0, -2)) + 1 :].splitlines()[-1:]
    if quotes and not all(record.closed for record in records(_texts(last), delimiter)):
        return None  # Arrow would close the quote
    bad: list[int] = []

    def skip(row: Any) -> str:
        bad.append(row.number - 1)
        return "skip"

    try:
        table = pyarrow.csv.read_csv(
            pa.py_buffer(data),
            pyarrow.csv.ReadOptions(
                use_threads=False, block_size=len(data) + 1, column_names=names
            ),
            pyarrow.csv.ParseOptions(
                delimiter=delimiter,
                quote_char=QUOTE if quotes else False,
                # Arrow decodes a bad line as UTF-8.
                invalid_row_handler=skip if _is_utf8(data) else None,
                ignore_empty_lines=False,
            ),
            pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.binary()),
                include_columns=[names[column] for column in columns],
            ),
        )
    except pa.ArrowInvalid:
        return None
    if len(table) + len(bad) != lines:
        return None
    texts = [column.combine_chunks() for column in table.columns]
    line = np.delete(np.arange(lines, dtype=np.int32), bad)
    is_empty = np.all([np.asarray(pc.binary_length(text)) == 0 for text in texts], axis=0)
    fault = np.zeros(len(line), np.bool_)
    if not bad and not is_empty.any():
        return Fields(line, fault, texts, lines)
    # The fields of a line without any are empty, and so may be those of others.
    every = data.splitlines()
    is_empty[is_empty] = [not every[number] for number in line[is_empty].tolist()]
    refused = _one_by_one(
        b"\n".join([every[number] for number in bad]),
        *(delimiter, count, columns),
        quotes=quotes,
        multiline=False,
    )
    row = np.flatnonzero(~is_empty)
    line = np.concatenate([line[row], np.array(bad, np.int32)[refused.line]])
    fault = np.concatenate([fault[row], refused.fault])
    order = np.argsort(line)
    pairs = zip(texts, refused.texts, strict=True)
    texts = [pa.concat_arrays([text.take(row), other]).take(order) for text, other in pairs]
    return Fields(line[order], fault[order], texts, lines)


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _one_by_one(
    data: bytes,
    delimiter: str,
    count: int,
    columns: Sequence[int],
    *,
    quotes: bool,
    multiline: bool,
) -> Fields:
    lines = _texts(data.splitlines(keepends=True))
    numbers, faults = [], []
    kept: list[list[bytes | None]] = [[] for _ in columns]
    for number, _, fields, closed in records(lines, delimiter, quotes=quotes, multiline=multiline):
        numbers.append(number)
        faults.append(not closed or len(fields) != count)
        for column, texts in zip(columns, kept, strict=True):
            texts.append(fields[column].encode("latin-1") if column < len(fields) else None)
    return Fields(
        np.array(numbers, np.int32),
        np.array(faults, np.bool_),
        [pa.array(texts, pa.binary()) for texts in kept],
        len(lines),
    )


def records(
    lines: list[str], delimiter: str, *, quotes: bool = True, multiline: bool = False
) -> Iterator[Record]:
    """The records of lines that are not blank."""
    number = 0
    while number < len(lines):
        line, behind = lines[number], number + 1
        if line.strip(_BLANK):
            fields, closed = line.rstrip("\r\n").split(delimiter), True
            if quotes and QUOTE in line:
                taken = lines[number : number + (LONGEST_QUOTE if multiline else 1)]
                # One more line is read if a quote is still open.
                reader = csv.reader([*taken, ""], delimiter=delimiter)
                fields = next(reader)
                closed = reader.line_num <= len(taken)
                if closed:
                    behind = number + reader.line_num
                else:
                    fields = next(csv.reader([line.rstrip("\r\n")], delimiter=delimiter))
            yield Record(number, behind, fields, closed)
        number = behind


def whole_records(data: bytes, delimiter: str) -> int:
    """The bytes at the beginning of some data that are whole records with line ends in quotes."""
    lines = data.splitlines(keepends=True)
    whole = 0
    for number, behind, _, closed in records(_texts(lines), delimiter, multiline=True):
        # More data may close the quote, or continue the line.
        is_open = not closed and number + LONGEST_QUOTE > len(lines)
        if is_open or (behind == len(lines) and not data.endswith(b"\n")):
            break
        whole = behind
    return sum(map(len, lines[:whole]))


def _texts(lines: list[bytes]) -> list[str]:
    """A character per byte, so that no byte is lost."""
    return [line.decode("latin-1") for line in lines]
