"""Options for reading a log."""

from collections.abc import Iterable
from dataclasses import dataclass

from compare.base.arguments import check_integer
from compare.traffic.logs.blocks import BLOCK, LONGEST_LINE
from compare.traffic.logs.formats import FORMATS
from compare.traffic.logs.formats.base import Layout
from compare.traffic.logs.numbers import check_directives, check_zone
from compare.traffic.logs.time_formats import FORMS, spelled_out
from compare.traffic.tapes.trace import MAX_SHARDS
from compare.traffic.tapes.units import TAPE_UNITS
from timers import TimerError

MOST_BYTES = 1 << 29
"""The largest `longest_line`. Two such lines are held, and an array of texts has at most 2 GiB."""
MOST_READ = 10_000_000
"""The largest `limit`: rows that are read one block after another."""


class IngestError(TimerError, ValueError):
    """A log cannot be turned into a trace as asked."""


@dataclass(frozen=True)
class LogOptions:
    """Options for reading a log.

    Raises:
        IngestError: if a choice does not exist.
    """

    time: str  # the time column
    unit: str = "ms"  # of the tape
    format: str = "auto"  # or one of FORMATS
    delimiter: str | None = None  # of a CSV log
    columns: tuple[str, ...] = ()  # of a CSV log without a header
    pattern: str | None = None  # of a line, with named groups: its columns
    time_format: str = "auto"  # or one of FORMS, or a format of strptime
    year: int | None = None  # of the first line of each file; else that of its modification
    time_zone: str | None = None  # of times without one, such as "Europe/Berlin"; UTC if not given
    shards: int = 1
    strict: bool = False  # whether a rejected row is an error
    where: tuple[str, ...] = ()  # conditions such as "status = 504" for a row that is used
    limit: int | None = None  # the number of lines (with a header) or records to read
    longest_line: int = LONGEST_LINE  # bytes; a longer line is rejected
    force: bool = False  # whether to replace an existing trace
    master: str | None = None  # of Spark; None: threads of this process

    def __post_init__(self) -> None:
        check_choice("unit", self.unit, TAPE_UNITS)
        check_choice("format", self.format, ("auto", *FORMATS))
        if "%" in self.time_format:
            check_directives(spelled_out(self.time_format))
        else:
            check_choice("time format", self.time_format, ("auto", *FORMS))
        if self.pattern is not None and self.format != "auto":
            raise IngestError("--pattern describes the lines, so --log-format cannot be given")
        if self.time_zone is not None:
            check_zone(self.time_zone)
        if self.year is not None:
            check_integer(IngestError, "year", self.year, 1970, 9999)
        if self.limit is not None:
            check_integer(IngestError, "limit", self.limit, 1, MOST_READ)
        check_integer(IngestError, "longest line", self.longest_line, BLOCK, MOST_BYTES)
        check_integer(IngestError, "shards", self.shards, 1, MAX_SHARDS)

    @property
    def layout(self) -> Layout:
        """The format of the log, as far as it is described."""
        return Layout(self.format, self.delimiter, self.columns, self.pattern)


def check_choice(what: str, value: str, choices: Iterable[str]) -> None:
    """Raise IngestError for a value that is none of the choices."""
    if value not in choices:
        raise IngestError(f"{what} {value!r} is not one of {', '.join(choices)}")
