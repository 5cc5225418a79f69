r"""Formats in which lines such as #fields describe the lines below them: Zeek's and W3C's."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from compare.traffic.logs.blocks import Block, LogError, Source
from compare.traffic.logs.formats.base import Layout, Log, Records, plain_head
from compare.traffic.logs.formats.fields import Fields, split

WHITE_SPACE = " \t"
"""Instead of a separator: any number of these characters."""
_MICROSOFT = re.compile(rb"^#Software:[ \t]*Microsoft", re.MULTILINE)
_OTHER_SPACE = re.compile(rb"^ +| +(?=\r?$)|(?<= ) +", re.MULTILINE)
_OTHER_SPACE_OR_TEXT = re.compile(rb'"[^"\n]*"|' + _OTHER_SPACE.pattern, re.MULTILINE)
_AROUND_TAB = re.compile(rb"^ +| *(\t) *| +(?=\r?$)", re.MULTILINE)
_LINE = re.compile(rb"^#[^\n]*\n?", re.MULTILINE)
_HEADER_LINE = re.compile(rb"^#(?:separator|unset_field|[fF]ields)[^\n]*", re.MULTILINE)


class Header(NamedTuple):
    """A header block, which describes the lines below it."""

    separator: str = "\t"
    unset: str = "-"
    fields: tuple[str, ...] = ()

    def followed_by(self, text: bytes) -> "Header":
        """The header with one more line."""
        line = text.decode(errors="replace").rstrip("\r\n")
        if line.startswith("#separator "):  # written as in `\x09`
            code = re.sub(r"\\x(..)", lambda code: chr(int(code[1], 16)), line.split(" ", 1)[1])
            return self._replace(separator=code)
        if line.startswith("#Fields:"):
            return self._replace(separator=WHITE_SPACE, fields=tuple(line.split()[1:]))
        name, *values = line.split(self.separator)
        if name == "#unset_field" and values:
            return self._replace(unset=values[0])
        return self._replace(fields=tuple(values)) if name == "#fields" else self


@dataclass(frozen=True, kw_only=True)
class ZeekLog(Log):
    """Lines below a header. Joined logs have several headers."""

    format: str = "zeek"
    duration_unit: str | None = "s"
    fault: str = "it does not have the fields of the header above it"
    quotes: bool = False  # whether a value with spaces is in quotes
    what: ClassVar = "Zeek"
    marker: ClassVar = "#fields"
    divisible = False  # a block must know the header above it

    @classmethod
    def fits(cls, lines: list[str]) -> bool:
        """It begins with a header."""
        return lines[0].startswith(("#separator", cls.marker))

    @classmethod
    def from_head(cls, source: Source, lines: list[str], blank: int, layout: Layout) -> Log:
        """The columns are those of the first header."""
        header = Header()
        for line in _LINE.findall(plain_head(source)):
            header = header.followed_by(line)
            if header.fields:
                return cls(source=source, columns=header.fields)
        raise LogError(
            f"{source.name} is not a {cls.what} log: it has no {cls.marker} line at its beginning"
        )

    def blocks(self) -> Iterator[Block]:
        """The blocks of the stream, each with the header above it."""
        header = Header()
        for block in self.stream():
            described = block._replace(context=header)
            yield described
            header = self.behind(described, self.source.utf8(block.data or b"")).context

    def behind(self, block: Block, data: bytes) -> Block:
        """The rest of a block, with the header above it."""
        lines = (line[0] for line in _HEADER_LINE.finditer(data))
        header = reduce(Header.followed_by, lines, block.context or Header())
        return super().behind(block, data)._replace(context=header)

    def parse(self, data: bytes, block: Block, names: Sequence[str]) -> Records:
        """Split the lines below each header into fields."""
        header = block.context or Header()
        parts: list[Fields] = []
        begin = lines = 0
        for match in [*_LINE.finditer(data), None]:
            first, end = match.span() if match else (len(data), len(data))
            if begin < first:
                fields = _section(data[begin:first], header, names, quotes=self.quotes)
                parts.append(fields._replace(line=fields.line + lines))
                lines += fields.lines
            if match:
                header, begin, lines = header.followed_by(match[0]), end, lines + 1
        parts = parts or [_section(b"", header, names, quotes=False)]
        number, fault = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        columns = zip(*(part.texts for part in parts), strict=True)
        texts = dict(zip(names, map(pa.concat_arrays, columns), strict=True))
        return Records(number, fault, texts, lines)


@dataclass(frozen=True, kw_only=True)
class W3cLog(ZeekLog):
    """The W3C's extended log file format, which IIS and CloudFront write."""

    format: str = "w3c"
    duration_unit: str | None = None
    time_is: str = "end"
    what = "W3C"
    marker = "#Fields"

    @classmethod
    def fits(cls, lines: list[str]) -> bool:
        """It begins with directives."""
        return lines[0].startswith((cls.marker, "#Software:", "#Version:"))

    @classmethod
    def from_head(cls, source: Source, lines: list[str], blank: int, layout: Layout) -> Log:
        """The unit of durations is that of the software: Microsoft's is milliseconds."""
        log = super().from_head(source, lines, blank, layout)
        is_microsoft = _MICROSOFT.search(source.head) is not None
        # It writes a + for a space, and no quotes.
        about = {"duration_unit": "ms"} if is_microsoft else {"quotes": True}
        return replace(log, **about)


def _section(data: bytes, header: Header, names: Sequence[str], *, quotes: bool) -> Fields:
    """Split the lines below a header."""
    places = {name: place for place, name in enumerate(header.fields) if name in names}
    separator = header.separator
    if separator == WHITE_SPACE:
        separator, data = _separated(data, len(header.fields) - 1, quotes=quotes)
    fields = split(data, separator, len(header.fields), list(places.values()), quotes=quotes)
    unset, none = pa.scalar(header.unset.encode()), pa.scalar(None, pa.binary())
    known = {
        name: pc.if_else(pc.equal(text, unset), none, text)
        for name, text in zip(places, fields.texts, strict=True)
    }
    # A header may lack a column that another one has.
    absent = pa.nulls(len(fields.line), pa.binary())
    texts = [known.get(name, absent) for name in names]
    return fields._replace(texts=texts)


def _separated(data: bytes, separators: int, *, quotes: bool) -> tuple[str, bytes]:
    """The character that separates the fields, and the data with no other space between them.

    A line with a tab between any two fields may have spaces in its values.
    """
    if b"\t" in data:
        lines = data.splitlines(keepends=True)
        tabs = [line.count(b"\t") == separators and separators > 0 for line in lines]
        if any(tabs):
            pairs = zip(lines, tabs, strict=True)
            rows = (
                _AROUND_TAB.sub(b"\\1", line) if whole else b"\t".join(_words(line, quotes=quotes))
                for line, whole in pairs
            )
            return "\t", b"".join(rows)
        data = data.replace(b"\t", b" ")
    if any(space in data for space in (b"  ", b" \n", b" \r", b"\n ")) or data[:1] == b" ":
        space = _OTHER_SPACE_OR_TEXT if quotes and b'"' in data else _OTHER_SPACE
        data = space.sub(lambda found: found[0] if found[0][:1] == b'"' else b"", data)
    return " ", data


def _words(line: bytes, *, quotes: bool) -> list[bytes]:
    """The fields of a line that space separates, the last one with the line end."""
    end = line[len(line.rstrip(b"\r\n")) :]
    words = re.findall(rb'"[^"]*"|[^ \t\r\n]+' if quotes else rb"[^ \t\r\n]+", line)
    return [*words[:-1], b"".join(words[-1:]) + end]
