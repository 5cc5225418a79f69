"""A trace on disk: a directory with one Parquet file per shard and a manifest (docs/traces.md).

>>> import tempfile, numpy as np
>>> from compare.traffic.tapes.tape import CANCEL, START
>>> op, id = np.array([START, CANCEL], np.int8), np.zeros(2, np.int32)
>>> tape = Tape(np.array([0, 3]), op, id, deadline=np.array([5, 0]))
>>> with tempfile.TemporaryDirectory() as directory:
...     trace = write_trace(f"{directory}/example", [tape], unit="ms", source={"kind": "example"})
...     open_trace(trace.path).load().time.tolist()
[0, 3]
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from compare.base.files import (
    CANNOT_WRITE,
    MANIFEST,
    errors_as,
    has_format,
    new_directory,
    new_file,
    obstacle,
    open_parquet,
    read_manifest,
    write_json,
)
from compare.traffic.tapes.description import Counts, Describer, Description, Late, described
from compare.traffic.tapes.tape import (
    DTYPES,
    OP_COUNTS,
    Rules,
    Tape,
    TapeError,
    count_ops,
    id_space_of,
    joined,
    part,
    validate,
)
from compare.traffic.tapes.units import TAPE_UNITS
from timers import TimerError

FORMAT = "wheelwork-trace"
VERSION = 2
REJECTED = "rejected.parquet"
"""The rows of a log that were rejected; this file lies beside the shards if there are any."""
UNITS = (*TAPE_UNITS, "unit")
_UNITS = ", ".join(UNITS[:-1]) + f" or {UNITS[-1]}"

SCHEMA = pa.schema(
    pa.field(name, pa.from_numpy_dtype(dtype), nullable=False)
    for name, dtype in zip(Tape._fields, DTYPES, strict=True)
)
MAX_SHARDS = 100_000
"""File names have five digits for the shard."""
ROW_GROUP = 1 << 20
"""Rows per row group."""
PIECE = 1 << 16
"""Rows that are read at a time: 1.4 MB, which stay in the cache while they are replayed."""


class TraceError(TimerError, ValueError):
    """A trace cannot be read or written. The message is one line that names the path."""


@dataclass(frozen=True)
class Shard:
    """One entry of the manifest's `shards`."""

    file: str
    rows: int = 0
    id_space: int = 0
    first_time: int | None = None  # None for a shard without rows
    last_time: int | None = None
    starts: int = 0
    cancels: int = 0
    rearms: int = 0
    arms: int = 0
    # Not in the manifest, which has those of all shards together.
    described: Counts | None = field(default=None, compare=False, repr=False)

    @property
    def entry(self) -> dict[str, Any]:
        """The entry as JSON."""
        return {name: getattr(self, name) for name in _ENTRY}

    def followed_by(self, piece: Tape) -> "Shard":
        """Return the entry of this shard with one more piece. O(len)."""
        if not len(piece.time):
            return self
        first = int(piece.time[0]) if self.first_time is None else self.first_time
        rows, id_space = self.rows + len(piece.time), max(self.id_space, id_space_of(piece))
        counts = {name: getattr(self, name) + n for name, n in count_ops(piece).items()}
        return Shard(self.file, rows, id_space, first, int(piece.time[-1]), **counts)


_ENTRY = tuple(name for name in Shard.__dataclass_fields__ if name != "described")


@dataclass(frozen=True)
class Trace:
    """An open trace: its manifest has been checked, its shards have not been read."""

    path: Path
    unit: str  #: the unit of time: ns, us, ms, s, or "unit" if it is not a duration
    source: Mapping[str, Any]  #: where the trace comes from, with parameters
    totals: Mapping[str, int]  #: over all shards: rows, starts, cancels, rearms and arms
    shards: tuple[Shard, ...]
    description: Description  #: delays, answers and pending timers

    @property
    def manifest_digest(self) -> str:
        """SHA-256 of the manifest on disk, which includes the counts and times of all shards."""
        return hashlib.sha256((self.path / MANIFEST).read_bytes()).hexdigest()

    @property
    def rejected(self) -> Path | None:
        """The table of rejected rows of the log, if there are any; see docs/logs.md."""
        path = self.path / REJECTED
        return path if path.exists() else None

    @property
    def span(self) -> int:
        """Units from the first operation to the last, over all shards; 0 without operations."""
        ends = [time for shard in self.shards for time in (shard.first_time, shard.last_time)]
        times = [time for time in ends if time is not None]
        return max(times, default=0) - min(times, default=0)

    def load(self, shard: int = 0) -> Tape:
        """Read and check one shard; see `pieces`. O(rows) time and memory, 21 bytes per row."""
        return joined(list(self.pieces(shard)))

    def beginning(self, operations: int, shard: int = 0) -> Tape:
        """Read and check the first operations of a shard, or all of fewer; see `pieces`."""
        pieces: list[Tape] = []
        for piece in self.pieces(shard):
            pieces.append(part(piece, 0, operations))
            operations -= pieces[-1].time.size
            if not operations:
                break
        return joined(pieces)

    def pieces(self, shard: int = 0) -> Iterator[Tape]:
        """Read and check one shard, piece by piece. Memory: PIECE rows, and a byte per id.

        The arrays are writable and contiguous. Raises TraceError for a shard that does not exist,
        for a file that is missing, truncated or foreign or contradicts the manifest, and TapeError
        (with the row) for a tape that breaks a rule. Errors are raised when reading reaches them.
        """
        with self.open_shard(shard) as file:
            entry = self.shards[shard]
            path, actual = self.path / entry.file, Shard(entry.file, 0, entry.id_space)
            try:
                rules = Rules(entry.id_space)
                for batch in file.iter_batches(PIECE, use_threads=False):
                    # Arrow's memory is read-only, which is another type to jitted code: copy it.
                    columns = (batch.column(name).to_numpy() for name in Tape._fields)
                    piece = Tape(*map(np.array, columns))
                    rules.check(piece)
                    actual = actual.followed_by(piece)
                    yield piece
            except TapeError as error:
                raise TapeError(f"{path}: {error}", error.row) from None
        for name, value in actual.entry.items():
            declared = getattr(entry, name)
            if value != declared:
                raise TraceError(f"{path}: {name} is {value}; the manifest says {declared}")

    @contextmanager
    def open_shard(self, shard: int) -> Iterator[pq.ParquetFile]:
        """Open a shard's file, and check its columns and its number of rows. Raises TraceError."""
        if not 0 <= shard < len(self.shards):
            raise TraceError(f"{self.path} has no shard {shard}; it has {len(self.shards)}")
        path, rows = self.path / self.shards[shard].file, self.shards[shard].rows
        with open_parquet(path, TraceError) as file:
            if not file.schema_arrow.equals(SCHEMA):
                raise TraceError(
                    f"{path} has the columns ({columns_text(file.schema_arrow)}); a tape has"
                    f" ({columns_text(SCHEMA)}), none nullable"
                )
            if file.metadata.num_rows != rows:
                actual = file.metadata.num_rows
                raise TraceError(f"{path} has {actual} rows; the manifest says {rows}")
            yield file


def open_trace(path: str | os.PathLike[str]) -> Trace:
    """Open the trace in the directory `path`. O(shards); no shard is read.

    Raises TraceError for a path that is missing or not a directory, or if the manifest is missing,
    damaged, or of another format or version.
    """
    path = Path(path)
    manifest_path = path / MANIFEST
    entries = {"unit": str, "source": dict, "shards": list, "totals": dict, "description": dict}
    manifest = read_manifest(path, "a trace", FORMAT, VERSION, entries, TraceError)
    if manifest["unit"] not in UNITS:
        raise TraceError(f"{manifest_path}: unit {manifest['unit']!r} is not {_UNITS}")
    shards = tuple(_parse_shard(entry, manifest_path) for entry in manifest["shards"])
    if not shards:
        raise TraceError(f"{manifest_path} lists no shard")
    totals = _totals(shards)
    for name, total in totals.items():
        declared = manifest["totals"].get(name)
        if declared != total:
            raise TraceError(
                f"{manifest_path}: totals.{name} is {declared}; its shards add up to {total}"
            )
    kinds = {name: type(value) for name, value in asdict(Description()).items()}
    if {name: type(value) for name, value in manifest["description"].items()} != kinds:
        raise TraceError(f"{manifest_path}: description must have {', '.join(kinds)}")
    description = Description(**manifest["description"])
    return Trace(path, manifest["unit"], manifest["source"], totals, shards, description)


def write_trace(
    path: str | os.PathLike[str],
    tapes: Iterable[Tape],
    *,
    unit: str,
    source: Mapping[str, Any],
    force: bool = False,
) -> Trace:
    """Write one shard per tape and open the trace. O(rows); tapes are taken one at a time.

    The directory appears complete or not at all. `source` may hold anything that JSON can. With
    `force` an existing trace is replaced. Raises TraceError if the path exists otherwise, and
    TapeError, which names shard and row, for a tape that breaks a rule.
    """
    with new_trace(path, unit=unit, source=source, force=force) as unfinished:
        for number, tape in enumerate(tapes):
            try:
                validate(tape, id_space_of(tape))
            except TapeError as error:
                raise TapeError(f"shard {number}: {error}", error.row) from None
            unfinished.shards.append(write_shard(unfinished.directory, number, [tape]))
    return open_trace(path)


@dataclass
class UnfinishedTrace:
    """A trace under construction: write shards to `directory` and list them in `shards`."""

    directory: Path
    source: dict[str, Any]
    shards: list[Shard]
    made_by: Mapping[str, Any] | None = None  # see `compare.base.executors.Executor.made_by`


def new_target(path: str | os.PathLike[str], *, force: bool) -> Path:
    """The absolute path of a new trace. Raises TraceError if none can be created there."""
    target = Path(os.path.realpath(path))  # `resolve` refuses a loop of links
    if problem := obstacle(target.parent):
        raise TraceError(f"{CANNOT_WRITE} {path}: {problem}")
    if target.exists():
        if not _is_trace(target):
            raise TraceError(f"{path} exists and is not a trace; choose another path")
        if not force:
            raise TraceError(f"{path} exists; pass --force (in Python, force=True) to replace it")
    return target


@contextmanager
def new_trace(
    path: str | os.PathLike[str], *, unit: str, source: Mapping[str, Any], force: bool = False
) -> Iterator[UnfinishedTrace]:
    """Create a trace from the shards that the block writes; the block may also extend `source`.

    The directory appears complete or not at all. Raises TraceError before the block if a trace
    cannot be created at `path`.
    """
    target = new_target(path, force=force)
    if unit not in UNITS:
        raise TraceError(f"unit {unit!r} is not {_UNITS}")
    # Compiled into the disk cache, where workers look.
    Describer().add(joined([]), Late(np.empty(0, np.int64), 0))
    with (
        errors_as(TraceError, f"{CANNOT_WRITE} {path}"),
        new_directory(target, replace=force) as directory,
    ):
        unfinished = UnfinishedTrace(directory, dict(source), [])
        yield unfinished
        shards = unfinished.shards
        write_manifest(directory, unit, unfinished.source, shards, path, unfinished.made_by)
        remove_unlisted(directory, shards)  # left by a task that Spark ran twice


def write_manifest(
    directory: Path,
    unit: str,
    source: Mapping[str, Any],
    shards: Sequence[Shard],
    path: str | os.PathLike[str],
    made_by: Mapping[str, Any] | None = None,
) -> None:
    """Write the manifest of a trace of these shards, which is complete then.

    `path` is where errors say that the trace is. Raises TraceError.
    """
    if not shards:
        raise TraceError(f"a trace needs at least one shard; {path} would have none")
    for shard in shards:
        _check_id_space(shard, path)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        **({"made_by": made_by} if made_by else {}),
        "unit": unit,
        "source": source,
        "shards": [shard.entry for shard in shards],
        "totals": _totals(shards),
        "description": asdict(
            described((shard.described for shard in shards if shard.described), unit)
        ),
    }
    try:
        write_json(directory / MANIFEST, manifest)
    except (TypeError, ValueError) as error:
        raise TraceError(f"source cannot be written as JSON: {error}") from None


def remove_unlisted(directory: Path, shards: Sequence[Shard]) -> None:
    """Remove all files but the manifest, these shards and the rejected rows."""
    listed = {shard.file for shard in shards} | {MANIFEST, REJECTED}
    for entry in directory.iterdir():
        if entry.name not in listed:
            entry.unlink()


@contextmanager
def new_shard(path: Path) -> Iterator["ShardWriter"]:
    """Write one shard in the block. The file appears when it is complete."""
    with (
        new_file(path) as temporary,
        pq.ParquetWriter(
            temporary,
            SCHEMA,
            compression="zstd",
            # Of the encodings that Spark reads, these are fast and small: 4 to 5 bytes per row.
            use_dictionary=False,
            column_encoding=dict.fromkeys(("time", "op", "id"), "DELTA_BINARY_PACKED"),
            write_statistics=["time"],  # a query can skip row groups by their times alone
            # With a checksum, a damaged byte is an error, not another number.
            write_page_checksum=True,
        ) as file,
    ):
        writer = ShardWriter(path.name, file)
        yield writer
        writer.flush()


def write_shard(directory: Path, number: int, pieces: Iterable[Tape]) -> Shard:
    """Write one shard piece by piece, and return its entry in the manifest."""
    with new_shard(directory / shard_name(number)) as writer:
        for piece in pieces:
            writer.append(piece)
    return writer.shard


class ShardWriter:
    """Writes one shard piece by piece.

    A partial row group is held in memory, at most 21 MB. The pieces are not validated.
    """

    def __init__(self, name: str, file: pq.ParquetWriter) -> None:
        self._file = file
        self._held = SCHEMA.empty_table()
        self._describer = Describer()
        self.shard = Shard(name)
        """The manifest's entry for the pieces so far."""

    def append(self, piece: Tape, late: Late | None = None) -> None:
        """Add the next operations, and late answers that they lack. O(len)."""
        self.shard = self.shard.followed_by(piece)
        self._describer.add(piece, late)
        self._held = pa.concat_tables([self._held, pa.table(list(piece), schema=SCHEMA)])
        self._write(self._held.num_rows // ROW_GROUP * ROW_GROUP)

    def flush(self) -> None:
        """Write the rows that are still held."""
        self._write(self._held.num_rows)
        self.shard = replace(self.shard, described=self._describer.counts())

    def _write(self, rows: int) -> None:
        if rows:
            self._file.write_table(self._held.slice(0, rows), row_group_size=ROW_GROUP)
            self._held = self._held.slice(rows)


def shard_name(number: int) -> str:
    """Return the file name of shard `number`."""
    return f"shard-{number:05d}.parquet"


def _totals(shards: Sequence[Shard]) -> dict[str, int]:
    return {name: sum(getattr(shard, name) for shard in shards) for name in ("rows", *OP_COUNTS)}


def columns_text(schema: pa.Schema) -> str:
    """Describe the columns of a schema for a message."""
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _parse_shard(entry: object, path: Path) -> Shard:
    if not isinstance(entry, dict) or not {*_ENTRY} <= entry.keys():
        raise TraceError(f"{path}: each shard must be an object with {', '.join(_ENTRY)}")
    file = entry["file"]
    if not isinstance(file, str) or not file or Path(file).name != file:
        raise TraceError(f"{path}: shard file {file!r} is not a plain file name")
    for name in set(_ENTRY) - {"file"}:
        value = entry[name]
        may_be_none = name in ("first_time", "last_time") and entry["rows"] == 0
        if not (value is None if may_be_none else type(value) is int and value >= 0):
            raise TraceError(f"{path}: {name} of {file} is {value!r}; it must be an integer from 0")
    shard = Shard(**{name: entry[name] for name in _ENTRY})
    _check_id_space(shard, path)
    return shard


def _check_id_space(shard: Shard, path: str | os.PathLike[str]) -> None:
    """Raise TraceError for more ids than rows: a replay allocates a table of all ids."""
    if shard.id_space > shard.rows:
        raise TraceError(
            f"{path}: id_space of {shard.file} is {shard.id_space}; it must not exceed the"
            f" {shard.rows} rows"
        )


def _is_trace(path: Path) -> bool:
    """Whether `path` is a trace without other files, which would be lost with it."""
    return has_format(path / MANIFEST, FORMAT) and all(
        entry.name in (MANIFEST, REJECTED) or entry.match("shard-*.parquet")
        for entry in path.iterdir()
    )
