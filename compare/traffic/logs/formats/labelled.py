"""Lines whose fields have names: logfmt (`name=value`) and LTSV (`name:value`, between tabs)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from compare.traffic.logs.blocks import Block, Source, lines_of
from compare.traffic.logs.formats.base import Layout, Log, Records
from compare.traffic.logs.formats.patterns import LONGEST, QUOTED

_LOOKED, _SEEN = 10, 1000
"""Lines that tell the format, and those whose names are listed as columns."""
_LEAST = 2
"""Pairs of a line that tells the format."""


@dataclass(frozen=True, kw_only=True)
class LogfmtLog(Log):
    """Pairs between spaces; a value with spaces is in quotes."""

    format: str = "logfmt"
    fault: str = "it is not a line of logfmt"
    time_is: str = "end"
    columns_vary = True

    _name: ClassVar = r'[^\s="]+'
    # Behind the first pair, a word without a value is a flag.
    _line: ClassVar = rf' *{_name}=(?:"{QUOTED}"|[^ "]*)(?: +{_name}(?:=(?:"{QUOTED}"|[^ "]*))?)* *'
    _pair: ClassVar = rf'(?:^| )({_name})=(?:"{QUOTED}"|[^ "]*)'
    _value: ClassVar = (
        rf'^ *(?:{_name}(?:=(?:"{QUOTED}"|[^ "]*))? +)*?%s='
        rf'(?:"(?P<quoted>{QUOTED})"|(?P<word>[^ "]*))(?: |$)'
    )

    @classmethod
    def fits(cls, lines: list[str]) -> bool:
        """Most lines are pairs."""
        some = [line[:LONGEST] for line in lines[:_LOOKED] if line.strip(" ")]
        fitting = [cls._is_line(line) and cls._tells(line) for line in some]
        return fitting[0] and 2 * sum(fitting) > len(fitting)

    @classmethod
    def _tells(cls, line: str) -> bool:
        """Whether a line is in this format beyond doubt: most of its words are pairs."""
        found = re.findall(cls._pair, line.strip(" "))
        rest = re.sub(cls._pair, "", line).split()
        return len(found) >= _LEAST and len(rest) < len(found)

    @classmethod
    def _is_line(cls, line: str) -> bool:
        return re.fullmatch(cls._line, line) is not None

    @classmethod
    def _names(cls, line: str) -> list[str]:
        return re.findall(cls._pair, line)

    @classmethod
    def from_head(cls, source: Source, lines: list[str], blank: int, layout: Layout) -> Log:
        """The columns are the names that are seen."""
        names = (name for line in lines[:_SEEN] if cls._is_line(line) for name in cls._names(line))
        return cls(source=source, columns=tuple(dict.fromkeys(names)))

    def parse(self, data: bytes, block: Block, names: Sequence[str]) -> Records:
        """Find the values of names."""
        lines = lines_of(data)
        total, texts = len(lines), lines.view(pa.string())
        number = np.flatnonzero(pc.binary_length(pc.ascii_trim(texts, " ")))
        lines = lines.take(number)
        whole = pc.match_substring_regex(lines, f"^(?:{self._line})$")
        columns = {}
        for name in names:
            found = pc.extract_regex(lines, self._value % re.escape(name))
            parts = [pc.fill_null(part, b"") for part in found.flatten()]
            value = pc.binary_join_element_wise(*parts, b"")
            columns[name] = pc.if_else(found.is_valid(), value, pa.scalar(None, pa.binary()))
        fault = ~np.asarray(whole)
        return Records(number.astype(np.int32), fault, columns, total)


@dataclass(frozen=True, kw_only=True)
class LtsvLog(LogfmtLog):
    """Labelled tab-separated values."""

    format: str = "ltsv"
    fault: str = "it is not a line of labelled values"

    _name = r"[0-9A-Za-z_.-]+"
    _line = rf"{_name}:[^\t]*(?:\t{_name}:[^\t]*)*"
    _pair = rf"(?:^|\t)({_name}):[^\t]*"
    _value = r"^(?:[^\t]*\t)*?%s:(?P<word>[^\t]*)(?:\t|$)"

    @classmethod
    def fits(cls, lines: list[str]) -> bool:
        """Most lines are pairs between tabs."""
        return "\t" in lines[0] and super().fits(lines)
