"""Open a file of a log in its format."""

from pkgutil import resolve_name

from compare.traffic.logs.blocks import EmptyError, LogError, open_source, printable
from compare.traffic.logs.formats import FORMATS
from compare.traffic.logs.formats.base import Layout, Log, head_lines
from compare.traffic.logs.formats.csv import CsvLog, TsvLog
from compare.traffic.logs.formats.lines import LineLog
from compare.traffic.logs.formats.parquet import MAGIC, ParquetLog

ANY = Layout()
"""No description of the format."""

_QUOTED = 80
"""Characters of a line in a message."""


def open_log(name: str, layout: Layout = ANY) -> Log:
    """Read the head of a file, a pipe, or standard input (`-`).

    Raises:
        LogError: if it is missing, empty, damaged, in no known format, or compressed in an unknown
            way.
    """
    source = open_source(name)
    if source.head.startswith(MAGIC) and layout.format in ("auto", ParquetLog.format):
        return ParquetLog.open(source)
    lines = head_lines(source)
    blank = next((index for index, line in enumerate(lines) if line.strip(" ")), None)
    if blank is None:
        raise EmptyError(f"{name} is empty")
    lines = lines[blank:]
    if layout.pattern is not None:
        return LineLog.from_head(source, lines, blank, layout)
    if layout.format != "auto":
        return class_of(layout.format).from_head(source, lines, blank, layout)
    if layout.delimiter or layout.columns:
        is_tsv = TsvLog.fits(lines) and layout.delimiter in (None, "\t")
        return (TsvLog if is_tsv else CsvLog).from_head(source, lines, blank, layout)
    for format_ in dict.fromkeys(map(class_of, FORMATS)):
        if format_.fits(lines):
            return format_.from_head(source, lines, blank, layout)
    line = printable(lines[0][:_QUOTED])
    raise LogError(
        f"{name} is in no known format ({', '.join(FORMATS)}); its first line is"
        f" {line!r}; give `wheelwork ingest` a --delimiter if a character separates its fields, or"
        " a --pattern that says what a line is"
    )


def class_of(name: str) -> type[Log]:
    """Import the class of a format."""
    cls: type[Log] = resolve_name(FORMATS[name])
    return cls
