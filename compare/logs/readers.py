"""Readers for six formats of logs, and `inspect`, which recognizes them.

The head of a log determines its format and columns, without Spark. The log becomes a DataFrame with
one row per record. `block` and `index` are its position. `fault` says what is wrong with the whole
record, or is null. Each requested column is a text, or null where the log has no value. In text
formats a record is a line.
"""

import csv
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from compare.files import errors_as
from compare.logs.head import OTHER_COMPRESSIONS, LogError, first_bytes, head_lines
from compare.logs.parsing import guess_form
from timers.arrays import Int64s

SAMPLE = 1000
"""The number of values among which a time in a known format must occur."""

_GZIP_MAGIC = b"\x1f\x8b"
_PARQUET_MAGIC = b"PAR1"
_CSV_FIELDS = 20480
"""The least number of fields at which a line is unreadable for their number alone."""

_ACCESS_LINES = 10
"""The number of lines of which one must be a line of an access log; the first may be damaged."""

_ROW_BITS = 33
"""monotonically_increasing_id counts the rows of a partition in its lower bits."""

MISSING = ("", "-")
"""Texts that mean no value."""


Roles = Mapping[str, str]
"""What a column is for ("time", "duration", "key") -> its name in the log."""


@dataclass(frozen=True)
class Log(ABC):
    """A log whose head has been read."""

    name: str
    columns: tuple[str, ...]
    head: tuple[str, ...]  # the first lines, from the first one that is not blank

    format: ClassVar[str]
    record: ClassVar[str] = "line"
    # whether a record may have columns that the beginning does not show
    columns_vary: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def fits(cls, lines: Sequence[str]) -> bool:
        """Whether the lines of a head, the first of which is not blank, are in this format."""

    @classmethod
    @abstractmethod
    def from_head(cls, name: str, lines: Sequence[str], first: int) -> "Log":
        """The log with this head, whose first line has the index `first`.

        Raises:
            LogError: if it cannot be in this format.
        """

    @abstractmethod
    def rows(self, session: SparkSession, uri: str, roles: Roles) -> DataFrame:
        """All records: `block` and `index` bigint, `fault` text, and a text per role."""

    def check_columns(self, names: Iterable[str], error: type[Exception]) -> None:
        """Raise `error` for a column that the log does not have, or has several times."""
        for name in names:
            if self.columns.count(name) > 1:
                raise error(f"{self.name} has {self.columns.count(name)} columns named {name!r}")
            if name not in self.columns and not self.columns_vary:
                raise error(self.lacks(name))

    def lacks(self, name: str) -> str:
        """What an error says of a column that the log does not have."""
        return f"{self.name} has no column {name!r}; it has {', '.join(self.columns) or 'none'}"

    def implied_form(self, column: str) -> str | None:
        """The time format that the type of a column implies; None for text."""
        return None

    def sample(self, column: str) -> Iterator[str]:
        """The texts of a column in the head of the log; none if only Spark can find them."""
        return iter(())

    def records_before(self, session: SparkSession, uri: str, last: int) -> tuple[Int64s, Int64s]:
        """The blocks up to `last`, ascending, and the number of records before each of them.

        One pass over the log if it has more than one block.
        """
        sizes: dict[int, int] = {}
        if last:
            # Blank lines count as lines, but they are not records.
            lines = _lines(session, uri, blank=self.record == "line")
            sizes = dict(lines.where(F.col("block") < last).groupBy("block").count().collect())
        starts = sorted(sizes.keys() | {last})
        counts = [sizes.get(block, 0) for block in starts]
        return np.array(starts, np.int64), np.cumsum([0, *counts[:-1]])


@dataclass(frozen=True)
class CsvLog(Log):
    """Comma-separated values with a header, quoted as in RFC 4180; no value has line breaks."""

    header: int  # index of its line

    format = "csv"
    delimiter: ClassVar[str] = ","

    @classmethod
    def fits(cls, lines: Sequence[str]) -> bool:
        """The header has a delimiter."""
        return cls.delimiter in lines[0]

    @classmethod
    def from_head(cls, name: str, lines: Sequence[str], first: int) -> Log:
        """The columns are those of the header."""
        header = next(csv.reader([lines[0].removeprefix("\ufeff")], delimiter=cls.delimiter))
        columns = tuple(column.strip() for column in header)
        return cls(name, columns, tuple(lines), first)

    def sample(self, column: str) -> Iterator[str]:
        """The fields of the lines below the header."""
        position = self.columns.index(column)
        for line in self.head[1:]:
            for fields in csv.reader([line], delimiter=self.delimiter):
                yield from fields[position : position + 1]

    def rows(self, session: SparkSession, uri: str, roles: Roles) -> DataFrame:
        """Split lines into fields, most of them without a parser."""
        rows = _lines(session, uri).where((F.col("block") > 0) | (F.col("index") > self.header))
        # By position, because a header may have any names, and one name twice.
        names = [f"c{position}" for position in range(len(self.columns))]
        most = max(_CSV_FIELDS, 2 * len(names))
        options = {
            "sep": self.delimiter,
            "quote": '"',
            "escape": '"',
            "columnNameOfCorruptRecord": "corrupt",
            "maxColumns": str(most),
        }
        # Lines without a quote do not need the parser, which is many times slower. A line with too
        # many fields would make it fail the job.
        quoted = F.contains("value", F.lit('"')) & (_occurrences("value", self.delimiter) < most)
        schema = F.lit(", ".join(f"{name} STRING" for name in [*names, "corrupt"]))
        # Separate columns, because the parser's argument is not compiled and the parts are used
        # several times.
        rows = rows.withColumn("quoted", F.when(quoted, F.col("value")))
        is_plain = F.col("quoted").isNull()
        rows = rows.select(
            "block",
            "index",
            F.when(is_plain, F.split("value", self.delimiter)).alias("parts"),
            F.when(~is_plain, F.from_csv("quoted", schema, options)).alias("record"),
        )
        # `corrupt` is set where the number of fields differs, too.
        unfit = F.when(F.col("record").isNull(), F.size("parts") != len(names)).otherwise(
            F.col("record.corrupt").isNotNull()
        )
        fault = F.when(unfit, f"it does not have the {len(names)} fields of the header")
        positions = {role: self.columns.index(column) for role, column in roles.items()}
        values = {
            role: F.coalesce(F.get("parts", F.lit(position)), F.col(f"record.{names[position]}"))
            for role, position in positions.items()
        }
        return _records(rows, fault, values)


class TsvLog(CsvLog):
    """The same with tabs."""

    format = "tsv"
    delimiter = "\t"


class JsonLog(Log):
    """One JSON object per line; a column is a key of the object."""

    format = "jsonl"
    record = "record"
    columns_vary = True

    @classmethod
    def fits(cls, lines: Sequence[str]) -> bool:
        """The first line begins an object."""
        return lines[0].lstrip().startswith("{")

    @classmethod
    def from_head(cls, name: str, lines: Sequence[str], first: int) -> Log:
        """The columns are the keys that are seen."""
        columns: dict[str, None] = {}
        for line in lines:
            with suppress(ValueError, RecursionError):
                record = json.loads(line)
                columns |= dict.fromkeys(record if isinstance(record, dict) else ())
        return cls(name, tuple(columns), tuple(lines))

    def sample(self, column: str) -> Iterator[str]:
        """The values of the lines that are objects."""
        for line in self.head:
            with suppress(ValueError, RecursionError):
                record = json.loads(line, parse_int=str, parse_float=str, parse_constant=str)
                if isinstance(record, dict) and isinstance(record.get(column), str):
                    yield record[column]

    def rows(self, session: SparkSession, uri: str, roles: Roles) -> DataFrame:
        """Read objects; numbers keep their digits."""
        corrupt = "corrupt"
        while corrupt in roles.values():
            corrupt += "_"
        schema = T.StructType(
            [T.StructField(name, T.StringType()) for name in {*roles.values(), corrupt}]
        )
        # Only the reader of JSON files keeps the digits of numbers; from_json does not.
        read = session.read.schema(schema).option("columnNameOfCorruptRecord", corrupt)
        objects = read.json(uri)
        fault = F.when(column_named(corrupt).isNotNull(), "it is not a JSON object")
        values = {role: column_named(name) for role, name in roles.items()}
        return _records(objects, fault, values, _position(objects))


@dataclass(frozen=True)
class ParquetLog(Log):
    """A Parquet file; its columns have types."""

    schema: Any  # pyarrow.Schema

    format = "parquet"
    record = "row"

    @classmethod
    def fits(cls, lines: Sequence[str]) -> bool:
        """Never: it is recognized by its first bytes."""
        return False

    @classmethod
    def from_head(cls, name: str, lines: Sequence[str], first: int) -> Log:
        """Raise LogError: text is not Parquet."""
        raise LogError(f"{name} is not a Parquet file")

    @classmethod
    def open(cls, name: str, source: Any) -> Log:
        """Read the schema of a file, given as what pyarrow can open."""
        with errors_as(LogError, f"{name} is not a readable Parquet file"):
            schema = pq.read_schema(source)
        return cls(name, tuple(schema.names), (), schema)

    def implied_form(self, column: str) -> str | None:
        """Timestamps become decimal numbers of seconds."""
        return "epoch-s" if pa.types.is_timestamp(self.schema.field(column).type) else None

    def rows(self, session: SparkSession, uri: str, roles: Roles) -> DataFrame:
        """Values of several types to texts that the text formats could have."""
        frame = session.read.parquet(uri)
        index = frame.metadataColumn("_metadata")["row_index"]
        position = F.lit(0).cast("bigint").alias("block"), index.alias("index")
        texts = {role: self._as_text(frame, role, name) for role, name in roles.items()}
        return _records(frame, F.lit(None).cast("string"), texts, position)

    def _as_text(self, frame: DataFrame, role: str, name: str) -> Column:
        kind = self.schema.field(name).type
        column = column_named(name)
        text = column.cast("string")
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return text
        if role == "key" and not pa.types.is_nested(kind):
            return text
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            # pandas writes NaN for no value.
            return F.when(text != "NaN", text)
        if role == "time" and pa.types.is_timestamp(kind):
            # Nanoseconds are numbers here, because Spark has no type for them.
            if isinstance(frame.schema[name].dataType, T.LongType):
                return F.concat(text, F.lit("e-9"))
            return F.concat(F.unix_micros(column.cast("timestamp")).cast("string"), F.lit("e-6"))
        if role == "duration" and pa.types.is_duration(kind):
            return F.concat(text, F.lit(kind.unit))
        raise LogError(f"{self.name}: column {name!r} of type {kind} cannot be read as a {role}")


class ZeekLog(Log):
    """Zeek's format, in which lines such as #fields describe the lines that follow."""

    format = "zeek"

    @classmethod
    def fits(cls, lines: Sequence[str]) -> bool:
        """It begins with a header."""
        return lines[0].startswith(("#separator", "#fields"))

    @classmethod
    def from_head(cls, name: str, lines: Sequence[str], first: int) -> Log:
        """The columns are those of the first header."""
        sections = _zeek_sections((line, (0, index)) for index, line in enumerate(lines, first))
        if not sections:
            raise LogError(f"{name} is not a Zeek log: it has no #fields line at its beginning")
        return cls(name, sections[0].fields, tuple(lines))

    def sample(self, column: str) -> Iterator[str]:
        """The fields of the lines below the first header."""
        section, *others = _zeek_sections((line, (0, k)) for k, line in enumerate(self.head))
        if not others and column in section.fields:
            position = section.fields.index(column)
            for line in self.head:
                if not line.startswith("#"):
                    yield from line.split(section.separator)[position : position + 1]

    def rows(self, session: SparkSession, uri: str, roles: Roles) -> DataFrame:
        """Split lines into fields, by the header above them."""
        lines = _lines(session, uri)
        header = F.col("value").startswith("#")
        # Concatenated logs have several headers, each of which describes the lines below it.
        found = lines.where(header).orderBy("block", "index").collect()
        sections = _zeek_sections((row["value"], (row["block"], row["index"])) for row in found)
        columns: dict[str, Column] = {}
        for section in sections:
            place = (F.lit(number).cast("bigint") for number in section.place)
            since = F.struct("block", "index") >= F.struct(*place)
            described = {
                "parts": F.split("value", rf"\Q{section.separator}\E"),
                "expected": F.lit(len(section.fields)),
                "unset": F.lit(section.unset),
            }
            for role, name in roles.items():
                position = section.fields.index(name) if name in section.fields else None
                described[role] = F.lit(position).cast("int")
            columns = {
                name: F.when(since, value).otherwise(columns.get(name, F.lit(None)))
                for name, value in described.items()
            }
        rows = lines.where(~header).withColumns(columns)
        unfit = F.col("parts").isNull() | (F.size("parts") != F.col("expected"))
        fault = F.when(unfit, "it does not have the fields of the header above it")
        values = {role: F.nullif(F.get("parts", F.col(role)), F.col("unset")) for role in roles}
        return _records(rows, fault, values)


class AccessLog(Log):
    """The common or combined format of Apache and nginx, and further fields extra1 to extra9."""

    format = "access"
    # Quoted parts are unrolled and possessive, because Java recurses for an alternation under a
    # star, and a long line would overflow the stack. A user agent may be cut off.
    _QUOTED: ClassVar[str] = r'[^"\\]*+(?:\\.[^"\\]*+)*+'
    _LINE: ClassVar[str] = (
        r'^(\S+) (\S+) (.*?) \[([^\]]+)\] "(.*?)" (\d{3}|-) (\d+|-)'
        rf'(?: "({_QUOTED})"(?: "({_QUOTED})(?:"|$))?)?(.*)$'
    )
    _FIRST: ClassVar[tuple[str, ...]] = ("client", "ident", "user", "time", "request")
    _LAST: ClassVar[tuple[str, ...]] = ("status", "bytes", "referrer", "agent")
    _GROUPS: ClassVar[tuple[str, ...]] = _FIRST + _LAST
    _REQUEST: ClassVar[tuple[str, ...]] = ("method", "path", "protocol")
    _EXTRAS: ClassVar[tuple[str, ...]] = tuple(f"extra{number}" for number in range(1, 10))

    @classmethod
    def fits(cls, lines: Sequence[str]) -> bool:
        """One of the first lines is in the format."""
        return any(re.match(cls._LINE, line) for line in lines[:_ACCESS_LINES])

    @classmethod
    def from_head(cls, name: str, lines: Sequence[str], first: int) -> Log:
        """The columns are always the same."""
        columns = cls._FIRST + cls._REQUEST + cls._LAST + cls._EXTRAS
        return cls(name, columns, tuple(lines))

    def sample(self, column: str) -> Iterator[str]:
        """The groups of the lines that are in the format."""
        if column in self._GROUPS:
            for line in self.head:
                if found := re.match(self._LINE, line):
                    yield found[self._GROUPS.index(column) + 1]

    def rows(self, session: SparkSession, uri: str, roles: Roles) -> DataFrame:
        """Match lines with the format's pattern."""
        fault = F.when(~F.col("value").rlike(self._LINE), "it is not a line of an access log")
        values = {role: self._part(name) for role, name in roles.items()}
        return _records(_lines(session, uri), fault, values)

    def _part(self, name: str) -> Column:
        if name in self._REQUEST:
            request = F.split(self._part("request"), " ")
            part = F.get(request, F.lit(self._REQUEST.index(name)))
            return F.when(F.size(request) == len(self._REQUEST), part)
        if name in self._EXTRAS:
            # nginx users write `rt=0.005` as well as `0.005`.
            extras = F.split(F.trim(self._group(len(self._GROUPS) + 1)), " +")
            extra = F.get(extras, F.lit(self._EXTRAS.index(name)))
            return F.translate(F.substring_index(extra, "=", -1), '"', "")
        return self._group(self._GROUPS.index(name) + 1)

    def _group(self, number: int) -> Column:
        return F.regexp_extract("value", self._LINE, number)


READERS: Mapping[str, type[Log]] = {
    reader.format: reader for reader in (ZeekLog, JsonLog, AccessLog, TsvLog, CsvLog, ParquetLog)
}
"""By name, in the order in which a log is tried on them."""


def inspect(path: Path, format_: str = "auto") -> tuple[Log, bool]:
    """Read the head of a file; return the log and whether it is compressed with gzip.

    Raises:
        LogError: if the file is missing, not a plain file, empty, damaged, in no known format,
            or compressed with something else than gzip.
    """
    start = first_bytes(path)
    compressed = start.startswith(_GZIP_MAGIC)
    if start.startswith(_PARQUET_MAGIC) and format_ in ("auto", ParquetLog.format):
        return ParquetLog.open(str(path), path), compressed
    for magic, name in OTHER_COMPRESSIONS.items():
        if start.startswith(magic):
            raise LogError(
                f"{path} is compressed with {name}; a log is plain or compressed with gzip"
            )
    return from_lines(str(path), head_lines(path, compressed), format_), compressed


def inspect_through(session: SparkSession, uri: str, format_: str) -> Log:
    """Read the head of a log that only Spark can reach. Raises LogError as `inspect` does."""
    files = session.read.text(uri).inputFiles()
    if len(files) != 1:
        raise LogError(f"{uri} is {len(files)} files; a log is one")
    if format_ == ParquetLog.format or (format_ == "auto" and uri.endswith(".parquet")):
        return ParquetLog.open(uri, uri)
    lines = session.read.text(uri).limit(SAMPLE).collect()
    return from_lines(uri, [line["value"] for line in lines], format_)


def first_form(log: Log, rows: DataFrame, column: str) -> str | None:
    """The time format of the first value that has one, among the first SAMPLE values.

    The head of the log usually has such a value; if not, the column `time` of `rows` is searched,
    which takes a job of Spark's.
    """
    values = islice(log.sample(column), SAMPLE)
    found = next(filter(None, map(guess_form, values)), None)
    if found is None:
        sample = rows.where(F.col("time").isNotNull()).select("time").limit(SAMPLE).collect()
        found = next(filter(None, (guess_form(row["time"]) for row in sample)), None)
    return found


def from_lines(name: str, lines: Sequence[str], format_: str = "auto") -> Log:
    """The log that begins with these lines.

    Raises:
        LogError: if there are none or they are in no known format.
    """
    first = next((index for index, line in enumerate(lines) if line.strip(" ")), None)
    if first is None:
        raise LogError(f"{name} is empty")
    lines = lines[first:]
    if format_ != "auto":
        return READERS[format_].from_head(name, lines, first)
    for reader in READERS.values():
        if reader.fits(lines):
            return reader.from_head(name, lines, first)
    raise LogError(
        f"{name} is in no known format ({', '.join(READERS)}); name it with --log-format"
    )


class _ZeekSection(NamedTuple):
    """The description of the lines below a header."""

    place: tuple[int, int]
    separator: str
    unset: str
    fields: tuple[str, ...]


def _zeek_sections(lines: Iterable[tuple[str, tuple[int, int]]]) -> list[_ZeekSection]:
    """The sections that header lines begin, from lines with their places; others are ignored.

    A header like the one before it begins no section.
    """
    separator, unset = "\t", "-"
    sections: list[_ZeekSection] = []
    for line, place in lines:
        if line.startswith("#separator "):
            # Written as in `\x09`.
            separator = re.sub(
                r"\\x([0-9a-fA-F]{2})", lambda code: chr(int(code[1], 16)), line.split(" ", 1)[1]
            )
            continue
        name, *values = line.split(separator)
        if name == "#unset_field" and values:
            unset = values[0]
        elif name == "#fields":
            section = _ZeekSection(place, separator, unset, tuple(values))
            if not sections or section._replace(place=sections[-1].place) != sections[-1]:
                sections.append(section)
    return sections


def _lines(session: SparkSession, uri: str, *, blank: bool = False) -> DataFrame:
    """The lines as `block`, `index` and `value`: those that are not blank, or all."""
    text = session.read.text(uri)
    lines = text.select(*_position(text), "value")
    return lines if blank else lines.where(F.trim("value") != "")


def _position(frame: DataFrame) -> tuple[Column, Column]:
    """The position of each record in the one file: `block` and `index`, bigint, from 0.

    `block` is the first byte of the split that one task reads, and `index` counts the records of
    the split. Both grow along the file, and so does their sum, which is unique because a record has
    at least one byte, its line end. Spark never reads two splits of one file in one task unless all
    splits are smaller than a task may take, which only the last one is.
    """
    index = F.monotonically_increasing_id().bitwiseAND((1 << _ROW_BITS) - 1)
    block = frame.metadataColumn("_metadata")["file_block_start"]
    return block.alias("block"), index.alias("index")


def _records(
    rows: DataFrame,
    fault: Column,
    values: Mapping[str, Column],
    position: Iterable[Column | str] = ("block", "index"),
) -> DataFrame:
    """The records with their position, their fault and, for each role, a value that is no text
    of MISSING, or null.
    """
    named = [value.alias(role) for role, value in values.items()]
    found = rows.select(*position, fault.alias("fault"), *named)
    # In a further step, or each value would be computed twice.
    return found.withColumns(
        {role: F.when(~F.trim(role).isin(*MISSING), F.col(role)) for role in values}
    )


def _occurrences(column: str, character: str) -> Column:
    """How often an ASCII character is in a text."""
    return F.octet_length(column) - F.octet_length(
        F.replace(F.col(column), F.lit(character), F.lit(""))
    )


def column_named(name: str) -> Column:
    """A column by its name, which may have any characters."""
    return F.col("`" + name.replace("`", "``") + "`")
