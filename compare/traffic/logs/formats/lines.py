"""Lines of text with fields in a known order, as the table in `patterns.py` describes them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from compare.traffic.logs.blocks import Block, LogError, Source, lines_of
from compare.traffic.logs.formats.base import Layout, Log, Records
from compare.traffic.logs.formats.envelopes import without
from compare.traffic.logs.formats.patterns import EXTRAS, LINES, LONGEST, QUOTED, REST, Line

_RECOGNIZED = 10
"""The first lines, one of which must match a format; others may be damaged."""


@dataclass(frozen=True, kw_only=True)
class LineLog(Log):
    """Lines that patterns describe."""

    patterns: tuple[str, ...]
    joins: str = ""  # see `Line`

    @property
    def is_text(self) -> bool:
        """Unless a user has described all of it."""
        return self.format != "pattern"

    @property
    def divisible(self) -> bool:
        """Unless records have several lines."""
        return super().divisible and not self.joins

    def cut(self, data: bytes, last: bool) -> int:
        """Before lines that may go on."""
        size = super().cut(data, last)
        if self.joins and not last:
            plain = without(self.source.envelope, data[:size])
            for found in re.finditer(self.joins.encode(), plain):
                if found.end() == len(plain):
                    ends = [end.start() for end in re.finditer(b"\n", data[:size])]
                    return [-1, *ends][-1 - found[0].count(b"\n")] + 1
        return size

    @classmethod
    def fits(cls, lines: list[str]) -> bool:
        """One of the first lines is in a known format."""
        return _known(lines) != ""

    @classmethod
    def from_head(cls, source: Source, lines: list[str], blank: int, layout: Layout) -> Log:
        """The columns are the groups of the patterns."""
        if layout.pattern is not None:
            name, line = "pattern", _own(layout.pattern)
        else:
            name = layout.format if layout.format != "auto" else _known(lines)
            line = LINES[name]
        return cls(
            source=source,
            columns=line.columns,
            format=name,
            fault=f"it is not {line.what}",
            selects=line.selects,
            time_is=line.time_is,
            patterns=line.patterns,
            joins=line.joins,
        )

    def parse(self, data: bytes, block: Block, names: Sequence[str]) -> Records:
        """Match lines with the patterns."""
        lines = lines_of(_joined(data, self.joins))
        number = np.flatnonzero(pc.binary_length(pc.ascii_ltrim(lines.view(pa.string()), " ")))
        total, lines = len(lines), lines if len(number) == len(lines) else lines.take(number)
        groups = {REST if name in EXTRAS else name for name in names}
        group_texts, fault = _matched(lines, self.patterns, groups)
        texts = {
            name: _extra(group_texts[REST], name) if name in EXTRAS else group_texts[name]
            for name in names
        }
        return Records(number.astype(np.int32), fault, texts, total)


def _joined(data: bytes, joins: str) -> bytes:
    """The data with the lines of a record as one, and blank lines in place of the others."""
    if not joins:
        return data
    data = data.replace(b"\r\n", b"\n")

    def one_line(found: re.Match[bytes]) -> bytes:
        lines = found[0].splitlines()
        return b" ".join(lines) + b"\n" * len(lines)

    return re.sub(joins.encode(), one_line, data)


def _own(pattern: str) -> Line:
    """The format of lines that a user describes."""
    try:
        pc.extract_regex(pa.array([""]), pattern)
        re.compile(pattern)
    except (pa.ArrowInvalid, re.error) as error:
        reason = str(error).partition(": ")[2] or str(error)
        raise LogError(
            f"pattern {pattern[:80]!r}: {reason}; it is a regular expression of RE2 with named"
            " groups, such as (?P<time>[^ ]+)"
        ) from None
    return Line("a line that the pattern matches", (pattern,), "", selects=True)


def _known(lines: list[str]) -> str:
    """The name of the format of one of the first lines, or an empty text."""
    some = [line[:LONGEST] for line in lines[:_RECOGNIZED] if line.strip(" ")]
    for name, line in LINES.items():
        sign, texts = line.sign or line.patterns[-1], some
        if line.joins:
            head = "\n".join([*lines[: 2 * _RECOGNIZED], ""]).encode(errors="replace")
            texts = _joined(head, line.joins).decode().split("\n")
        found = sum(re.match(sign, text) is not None for text in texts)
        if found and (2 * found >= len(texts) or not line.most):
            return name
    return ""


def _matched(
    lines: pa.Array, patterns: Iterable[str], groups: set[str]
) -> tuple[dict[str, pa.Array], np.ndarray]:
    """The groups of each line, null where it matches no pattern; and where that is."""
    group_texts = {name: pa.nulls(len(lines), pa.binary()) for name in groups}
    missing = np.ones(len(lines), np.bool_)
    for pattern in patterns:
        if groups <= re.compile(pattern).groupindex.keys() and missing.any():
            rest = pa.array(missing)
            matches = pc.extract_regex(lines.filter(rest), capturing(pattern, frozenset(groups)))
            for name in groups:
                values = pc.struct_field(matches, name)  # with the nulls of the matches
                group_texts[name] = pc.replace_with_mask(group_texts[name], rest, values)
            missing[missing] = matches.is_null().to_numpy(zero_copy_only=False)
    return group_texts, missing


def extra_names(rests: Iterable[str]) -> dict[str, str]:
    """The columns of further fields -> what stands before their `=`, or nothing."""
    names: dict[str, str] = {}
    for rest in rests:
        fields = re.finditer(rf'(?:[^ "]|"{QUOTED}")+', rest)
        for column, field in zip(EXTRAS, fields, strict=False):
            names.setdefault(column, field[0].strip('"').rpartition("=")[0].strip('"'))
    return names


@cache
def capturing(pattern: str, groups: frozenset[str]) -> str:
    """The pattern, capturing only some of its named groups."""
    return re.sub(r"\(\?P<(\w+)>", lambda group: group[0] if group[1] in groups else "(?:", pattern)


def _extra(rest: pa.Array, name: str) -> pa.Array:
    """The field with a number, without `name=` and quotes; null if there are not as many."""
    before = EXTRAS.index(name)
    pattern = (
        rf'^ *(?:(?:[^ "]|"{QUOTED}")+ +){{{before}}}(?:[^ "]*=)?'
        rf'(?:"(?:[^ "=]*=)?(?P<one>[^ "]*)"|"(?P<text>{QUOTED})(?:"|$)|(?P<word>[^ "]*))(?: |$)'
    )
    found = pc.extract_regex(rest, pattern)
    parts = (pc.struct_field(found, part) for part in ("one", "text", "word"))
    return pc.binary_join_element_wise(*parts, b"")
