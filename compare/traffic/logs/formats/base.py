"""The interface of all formats of logs."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from compare.traffic.logs.blocks import (
    Block,
    LogError,
    Source,
    count_byte,
    file_blocks,
    load,
    printable,
    stream_blocks,
)
from compare.traffic.logs.formats.envelopes import is_joined, whole, without
from compare.traffic.logs.time_formats import guess_form
from timers.arrays import Bools, Int32s

Roles = Mapping[str, str]
"""Role of a column ("time", "duration", "key", ...) -> its name in the log."""

BOM = b"\xef\xbb\xbf"
MOST_LINES = 1 << 18
"""Lines that are read at a time, besides those up to the header. A block of short lines is read in
parts, because what is known of a line takes more than a few bytes."""
_LISTED, _QUOTED = 20, 40
"""The number of columns that a message lists, and of the characters of each."""


class Layout(NamedTuple):
    """The user's description of the format of a log."""

    format: str = "auto"
    delimiter: str | None = None
    columns: tuple[str, ...] = ()  # of a log without a header
    pattern: str | None = None  # of a line


class Records(NamedTuple):
    """The records of a part of a block."""

    number: Int32s  # of its line or record in the part, from 0
    fault: Bools  # whether it is damaged
    texts: Mapping[str, pa.Array]  # by role, or by column as a format parses it; bytes, or null
    total: int  # lines or records in the block, with the blank lines
    too_long: bool = False  # whether it is one line, which is not read
    nul: Bools | None = None  # whether it has a NUL byte, if any line has one


@dataclass(frozen=True, kw_only=True)
class Log(ABC):
    """A file of a log; its head has been read."""

    source: Source
    columns: tuple[str, ...]

    format: str
    fault: str  # the problem of a damaged record, for messages
    duration_unit: str | None = None  # if the format has one
    time_is: str = ""  # "start" or "end" if the format has one
    selects: bool = False  # whether a damaged line is something else than a row
    header: int = -1  # the index of its line; -1 without one, and if lines below have others
    point: str = "."  # also accepted as the decimal point of numbers

    record: ClassVar[str] = "line"
    # whether a record may have columns that the head does not show
    columns_vary: ClassVar[bool] = False
    in_order: ClassVar[bool] = True  # whether the order of the records says anything

    @property
    def is_text(self) -> bool:
        """Whether a line may tell more than its columns."""
        return False

    @property
    def has_lines(self) -> bool:
        """Whether records end with lines."""
        return True

    @classmethod
    @abstractmethod
    def fits(cls, lines: list[str]) -> bool:
        """Return whether these lines, which begin with one that is not blank, have this format."""

    @classmethod
    @abstractmethod
    def from_head(cls, source: Source, lines: list[str], blank: int, layout: Layout) -> "Log":
        """The log that begins with these lines, after a number of blank ones.

        Raises:
            LogError: if it cannot be in this format.
        """

    @abstractmethod
    def parse(self, data: bytes, block: Block, names: Sequence[str]) -> Records:
        """The records of a block's bytes, with these columns. A pure function of these."""

    @property
    def name(self) -> str:
        """The path of the file."""
        return self.source.name

    @property
    def divisible(self) -> bool:
        """True if blocks can be read independently of each other."""
        return self.source.seekable and not is_joined(self.source.envelope)

    def cut(self, data: bytes, last: bool) -> int:
        """Cut a stream; see `Cut`."""
        if last:
            return len(data)
        return whole(self.source.envelope, data[: data.rfind(self.source.line_end) + 1])

    def blocks(self) -> Iterator[Block]:
        """The blocks of the file, in order."""
        return file_blocks(self.source) if self.divisible else self.stream()

    def stream(self) -> Iterator[Block]:
        """The blocks of the file as one stream."""
        return stream_blocks(self.source, self.cut, lines=self.has_lines)

    def beginning(self) -> list[Block]:
        """The first records as a block of their own, if they are known before the file is read."""
        head = self.source.head
        size = self.cut(head, not self.source.cut_off)
        return [Block(0, size, head[:size])]

    def read(self, block: Block, roles: Roles) -> Iterator[Records]:
        """The records of a block, MOST_LINES lines at a time; at least one part."""
        too_long, data = block.too_long, block.data
        if data is None:
            data, too_long = load(self.source, block)
        data = without(self.source.envelope, self.source.utf8(data))
        if not block.first:
            data = data.removeprefix(BOM)
        while True:
            most = MOST_LINES if block.first else MOST_LINES + self.header + 1
            part = data[: self._part(data, most)]
            yield self._read(part, block, roles)
            block, data = self.behind(block, part), data[len(part) :]
            if not data:
                break
        if too_long:
            nothing = dict.fromkeys(roles, pa.nulls(1, pa.binary()))
            yield Records(np.zeros(1, np.int32), np.ones(1, np.bool_), nothing, 1, too_long=True)

    def behind(self, block: Block, data: bytes) -> Block:
        """The rest of a block behind some data, with its context."""
        return block._replace(first=block.first + len(data))

    def _part(self, data: bytes, most: int) -> int:
        """The bytes of the first lines, as whole records if possible."""
        line_end = self.source.line_end
        if count_byte(data, line_end) <= most:
            return len(data)
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord(line_end))
        size = int(ends[most - 1]) + 1
        return self.cut(data[:size], False) or size

    def _read(self, data: bytes, block: Block, roles: Roles) -> Records:
        names = dict.fromkeys(chain.from_iterable(map(self.parts, roles.values())))
        records = self.parse(data, block, list(names))
        texts = {}
        for role, joined in roles.items():
            columns = [records.texts[name] for name in self.parts(joined)]
            several = len(columns) > 1
            texts[role] = pc.binary_join_element_wise(*columns, b" ") if several else columns[0]
        records = records._replace(texts=texts)
        has_nul = self.record == "line" and b"\0" in data
        return self._with_nul(data, records) if has_nul else records

    def _with_nul(self, data: bytes, records: Records) -> Records:
        """The records, of which those with a NUL byte are damaged."""
        characters = np.frombuffer(data.replace(b"\r\n", b"\n"), np.uint8)
        ends = np.flatnonzero((characters == ord("\n")) | (characters == ord("\r")))
        lines = np.unique(np.searchsorted(ends, np.flatnonzero(characters == 0)))
        # A record ends before the next one begins.
        places = np.searchsorted(records.number, lines, side="right") - 1
        nul = np.zeros(len(records.number), np.bool_)
        nul[places[places >= 0]] = True
        return records._replace(nul=nul, fault=records.fault | nul)

    def parts(self, name: str) -> tuple[str, ...]:
        """The columns with a name; `date,time` stands for two, whose texts are joined."""
        return (name,) if name in self.columns or "," not in name else tuple(name.split(","))

    def has(self, name: str) -> bool:
        """Return whether the head shows the columns with a name."""
        return all(part in self.columns for part in self.parts(name))

    def implied_form(self, column: str) -> str | None:
        """The time format that the type of a column implies; None for text."""
        return None

    def check_columns(self, names: Iterable[str], error: type[Exception]) -> None:
        """Raise `error` for a column that the log does not have, or has several times."""
        for name in chain.from_iterable(map(self.parts, names)):
            if self.columns.count(name) > 1:
                raise error(f"{self.name} has {self.columns.count(name)} columns named {name!r}")
            if name not in self.columns and not self.columns_vary:
                raise error(self.lacks(name))

    def lacks(self, name: str) -> str:
        """The message of an error about a missing column."""
        use = "; give `wheelwork ingest` the --columns if its first line is not a header"
        hint = use if self.headless else ""
        return f"{self.name} has no column {name!r}; it has {self.listed}{hint}"

    @property
    def headless(self) -> bool:
        """True if names of columns look like values."""
        return any(guess_form(name) for name in self.columns)

    @property
    def listed(self) -> str:
        """The names of the first columns, for a message."""
        names = ", ".join(printable(name[:_QUOTED]) for name in self.columns[:_LISTED])
        more = len(self.columns) - _LISTED
        return f"{names} and {more:,} more" if more > 0 else names or "none"


def plain_head(source: Source) -> bytes:
    """The head in UTF-8, without a mark at its beginning and without the envelope of each line."""
    return without(source.envelope, source.utf8(source.head).removeprefix(BOM))


def head_lines(source: Source) -> list[str]:
    """The whole lines of the head; those with a NUL byte are empty.

    Raises LogError if they are not text.
    """
    if source.head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise LogError(
            f"{source.name} is compressed UTF-16; convert it to UTF-8, for example with iconv"
        )
    # Python's splitlines has more line ends, and a regular expression takes ten times as long.
    text = plain_head(source).decode(errors="replace")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if b"\0" in source.head:
        damaged = [number for number, line in enumerate(lines) if "\0" in line]
        if 2 * len(damaged) >= sum(map(bool, lines)):
            raise LogError(f"{source.name} is neither text nor a Parquet file")
        for number in damaged:
            lines[number] = ""
    return lines[:-1] if source.cut_off and len(lines) > 1 else lines
