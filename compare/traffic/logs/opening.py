"""Open a file of a log in its format."""

from pkgutil import resolve_name

from compare.traffic.logs.blocks import EmptyError, LogError, Source, open_source, printable
from compare.traffic.logs.formats import FORMATS
from compare.traffic.logs.formats.base import Layout, Log, head_lines
from compare.traffic.logs.formats.csv import CsvLog, TsvLog
from compare.traffic.logs.formats.envelopes import envelope_of
from compare.traffic.logs.formats.lines import LineLog
from compare.traffic.logs.formats.parquet import MAGIC, ParquetLog
from compare.traffic.logs.formats.zeek import ZeekLog

ANY = Layout()
"""No description of the format."""

_QUOTED, _LOOKED = 80, 100
"""Characters of a line in a message; lines that are compared with the first one."""
_NAMES_OF = {",": "commas", ";": "semicolons", "|": "bars", "\t": "tabs"}


class UnknownFormatError(LogError):
    """A file is in no known format."""

    def __init__(self, name: str, lines: list[str]) -> None:
        line = printable(lines[0][:_QUOTED])
        self.what = f"{name} is in no known format; its first line is {line!r}{_uneven(lines)}"
        self.lines = lines
        super().__init__(
            f"{name} is in no known format ({', '.join(FORMATS)}); its first line is"
            f" {line!r}{_uneven(lines)}; give `wheelwork ingest` a --delimiter if a character"
            " separates its fields, or a --pattern that says what a line is"
        )


def _uneven(lines: list[str]) -> str:
    """What speaks against a table."""
    first, *rest = [line for line in lines[:_LOOKED] if line.strip(" ")]
    for delimiter, name in _NAMES_OF.items():
        count = first.count(delimiter)
        alike = sum(line.count(delimiter) == count for line in rest)
        if count and alike < len(rest):
            return f", and {alike} of {len(rest)} lines below it have as many {name}"
    return ""


def open_log(name: str, layout: Layout = ANY) -> Log:
    """Read the head of a file, a pipe, or standard input (`-`).

    Raises:
        LogError: if it is missing, empty, damaged, in no known format, or compressed in an unknown
            way.
    """
    return log_of(open_source(name), layout)


def log_of(source: Source, layout: Layout = ANY) -> Log:
    """A log whose head has been read; see `open_log`."""
    name = source.name
    if source.head.startswith(MAGIC) and layout.format in ("auto", ParquetLog.format):
        return ParquetLog.open(source)
    lines = head_lines(source)
    blank = next((index for index, line in enumerate(lines) if line.strip(" ")), None)
    if blank is None:
        raise EmptyError(f"{name} is empty")
    lines = lines[blank:]
    if layout.pattern is not None:
        return LineLog.from_head(source, lines, blank, layout)
    if (log := _inside(source, lines, layout)) is not None:
        return log
    if layout.format != "auto":
        return class_of(layout.format).from_head(source, lines, blank, layout)
    if layout.delimiter or layout.columns:
        is_tsv = TsvLog.fits(lines) and layout.delimiter in (None, "\t")
        return (TsvLog if is_tsv else CsvLog).from_head(source, lines, blank, layout)
    for format_ in dict.fromkeys(map(class_of, FORMATS)):
        if format_.fits(lines):
            return format_.from_head(source, lines, blank, layout)
    raise UnknownFormatError(name, lines)


def _inside(source: Source, lines: list[str], layout: Layout) -> Log | None:
    """The log whose lines are in envelopes, if it is in a format of lines."""
    source.envelope = envelope_of(lines)
    if source.envelope and not (layout.delimiter or layout.columns):
        inner = head_lines(source)
        blank = next((index for index, line in enumerate(inner) if line.strip(" ")), len(inner))
        names = FORMATS if layout.format == "auto" else [layout.format]
        for format_ in dict.fromkeys(map(class_of, names)):
            is_lines = not issubclass(format_, (CsvLog, ZeekLog, ParquetLog))
            if is_lines and inner[blank:] and format_.fits(inner[blank:]):
                log = format_.from_head(source, inner[blank:], blank, layout)
                if log.has_lines:
                    return log
    source.envelope = ""
    return None


def class_of(name: str) -> type[Log]:
    """Import the class of a format."""
    cls: type[Log] = resolve_name(FORMATS[name])
    return cls
