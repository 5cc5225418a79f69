"""The first times of a log: their format, their years, and the order of files."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from pathlib import Path

import pyarrow as pa

from compare.traffic.logs.blocks import printable
from compare.traffic.logs.formats.base import Log
from compare.traffic.logs.numbers import (
    VALID,
    Year,
    first_in_year,
    has_day,
    lacks_year,
    moment_in,
    read_times,
    with_value,
)
from compare.traffic.logs.options import IngestError, LogOptions
from compare.traffic.logs.reading import time_text
from compare.traffic.logs.rows import NONE, QUOTE, Meaning
from compare.traffic.logs.time_formats import FORMS, guess_form, spelled_out
from compare.traffic.tapes.blocks import Shard
from compare.traffic.tapes.units import EXPONENTS

SAMPLE = 1000
"""The number of values of a column to look at."""


def values(log: Log, column: str) -> Iterator[str]:
    """The values of a column at the beginning of a file."""
    for block in chain(log.beginning(), () if log.source.stream else log.blocks()):
        for records in log.read(block, {"time": column}):
            texts = records.texts["time"]
            for first in range(0, len(texts), SAMPLE):  # most callers take no more
                yield from filter(None, texts_of(texts[first : first + SAMPLE]))


def first_second(log: Log, column: str, form: str) -> int:
    """The first time without a year, in seconds since the year began, as if it were 2000; or 0."""
    for text in islice(values(log, column), SAMPLE):
        second = first_in_year(pa.array([text.encode()]), form)
        if second is not None:
            return second
    return 0


def year_of_file(log: Log, second: int) -> int | None:
    """The last year in which a time is before the modification of a file; None without a file."""
    if log.source.stream is not None or not Path(log.name).is_file():
        return None
    # Its clocks may be ahead of UTC.
    end = datetime.fromtimestamp(Path(log.name).stat().st_mtime, UTC) + timedelta(days=1)
    for year in range(end.year, end.year - 9, -1):  # eight may lie between two leap days
        if has_day(year, second) and moment_in(year, second) < end.replace(tzinfo=None):
            return year
    return None


def texts_of(column: pa.Array) -> list[str | None]:
    """The values of a column, without those that mean no value."""
    return [text and text.decode(errors="replace") for text in with_value(column).to_pylist()]


def time_form(logs: Sequence[Log], options: LogOptions) -> tuple[str, bool]:
    """Return the time format, and whether it was guessed from the first value that has one."""
    implied = logs[0].implied_form(options.time)
    if implied is not None:
        if options.time_format not in ("auto", implied):
            raise IngestError(
                f"{logs[0].name}: column {options.time!r} holds timestamps, so its time format"
                f" cannot be {options.time_format}"
            )
        return implied, False
    if options.time_format != "auto":
        return spelled_out(options.time_format), False
    first = None
    for log in logs:
        for text in islice(values(log, options.time), SAMPLE):
            first = first or text
            if form := guess_form(text) or guess_form(text.replace(log.point, ".")):
                return form, True
    if first is None:  # any format will do
        return "iso", False
    raise IngestError(
        f"{logs[0].name}: {printable(first[:QUOTE])!r} in column {options.time!r} is not a time in"
        f" a known format ({', '.join(FORMS)}); give `wheelwork ingest` a --time-format, such as"
        " '%d/%m/%Y %H:%M:%S'"
    )


def first_years(logs: Sequence[Log], options: LogOptions, form: str) -> dict[str, Year]:
    """The year of the first time of each file; none if the times have years."""
    if not lacks_year(form):
        return {}
    years = {}
    for log in logs:
        second = first_second(log, options.time, form)
        year = options.year or year_of_file(log, second)
        if not log.in_order:
            raise IngestError(f"{log.name} has rows in no order, so its times must have years")
        if year is None:
            raise IngestError(
                f"the times of {log.name} have no year, and there is no file whose time of"
                " modification has it; give --year, that of the first line"
            )
        if not has_day(year, second):
            raise IngestError(f"{log.name} begins on 29 February, which {year} does not have")
        years[log.name] = Year(year, second)
    return years


def check_years(
    logs: Sequence[Log], shards: Sequence[Shard], years: Mapping[str, Year], unit: str
) -> None:
    """Raise IngestError if the log goes on after its files were written."""
    last = max((shard.last_time or 0 for shard in shards), default=0)
    written = max(Path(log.name).stat().st_mtime for log in logs)
    if last / 10 ** EXPONENTS[unit] > written + 2 * 86_400:
        name = logs[0].name
        raise IngestError(
            f"if {name} begins in {years[name].year}, it ends on {time_text(last, unit)[:10]},"
            " after it was written; give --year, that of the first line"
        )


def in_order(logs: list[Log], meaning: Meaning, years: Mapping[str, Year]) -> list[Log]:
    """The files in the order of their first times, whatever their names."""

    def first_time(log: Log) -> tuple[int, str]:
        assumed = meaning.assumed
        if years:
            assumed = assumed._replace(year=years[log.name])
        for text in islice(values(log, meaning.roles["time"]), SAMPLE):
            texts = pa.array([text.encode()])
            time = read_times(texts, meaning.form, meaning.unit, log.point, assumed)
            if time.flags[0] == VALID:
                return int(time.whole[0]), log.name
        return NONE, log.name

    return sorted(logs, key=first_time) if len(logs) > 1 else logs
