"""A trace on disk: a directory with one Parquet file per shard and a manifest. Its meaning:
docs/traces.md.

>>> import tempfile, numpy as np
>>> from compare.tapes.tape import CANCEL, START
>>> tape = Tape(np.array([0, 3]), np.array([START, CANCEL], np.int8), np.zeros(2, np.int32), np.array([5, 0]))
>>> with tempfile.TemporaryDirectory() as directory:
...     trace = write_trace(f"{directory}/example", [tape], unit="ms", source={"kind": "example"})
...     open_trace(trace.path).load().time.tolist()
[0, 3]
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from compare.tapes.tape import (
    DTYPES,
    Counts,
    Rules,
    Tape,
    TapeError,
    count_ops,
    id_space_of,
    joined,
    validate,
)
from timers import TimerError

FORMAT = "wheelwork-trace"
VERSION = 1
MANIFEST = "manifest.json"
REJECTED = "rejected.parquet"
"""Rows of a log that did not become operations; beside the shards of a trace that has some."""
UNITS = ("us", "ms", "s", "unit")

SCHEMA = pa.schema(
    [
        pa.field(name, pa.from_numpy_dtype(dtype), nullable=False)
        for name, dtype in zip(Tape._fields, DTYPES, strict=True)
    ]
)
MAX_SHARDS = 100_000
"""A shard's number has five digits in its file's name."""
ROW_GROUP = 1 << 20
"""Rows per row group."""
PIECE = 1 << 16
"""Rows that are read at a time: 1.4 MB, which stay in the cache while they are replayed."""


class TraceError(TimerError, ValueError):
    """A trace that cannot be read or written; one line that names the path and what is wrong."""


@dataclass(frozen=True)
class Shard:
    """One entry of the manifest's `shards`."""

    file: str
    rows: int
    id_space: int
    first_time: int | None  # None for a shard without rows
    last_time: int | None
    starts: int
    cancels: int
    rearms: int
    arms: int


@dataclass(frozen=True)
class Trace:
    """An opened trace: its manifest has been checked, its shards have not been read."""

    path: Path
    manifest: Mapping[str, Any]
    shards: tuple[Shard, ...]

    @property
    def unit(self) -> str:
        """What one unit of time is: "us", "ms", "s", or "unit" where it stands for nothing."""
        return str(self.manifest["unit"])

    @property
    def source(self) -> Mapping[str, Any]:
        """What made the trace, with its parameters."""
        source: Mapping[str, Any] = self.manifest["source"]
        return source

    @property
    def manifest_digest(self) -> str:
        """SHA-256 of the manifest on disk, which has the counts and times of all shards."""
        return hashlib.sha256((self.path / MANIFEST).read_bytes()).hexdigest()

    @property
    def rejected(self) -> Path | None:
        """The table of rows that did not become operations, if there are any; see
        docs/traces.md.
        """
        path = self.path / REJECTED
        return path if path.exists() else None

    @property
    def totals(self) -> Mapping[str, int]:
        """Over all shards: `rows`, and of these `starts`, `cancels`, `rearms` and `arms`."""
        totals: Mapping[str, int] = self.manifest["totals"]
        return totals

    def load(self, shard: int = 0) -> Tape:
        """Read one shard and check it. O(rows) time and memory, 21 bytes a row; for the rest see
        `pieces`.
        """
        return joined(list(self.pieces(shard)))

    def pieces(self, shard: int = 0) -> Iterator[Tape]:
        """Read one shard piece by piece, in order, and check it. Memory: PIECE rows, and a byte for
        each id.

        The arrays are writable and contiguous. Raises TraceError for a file that is missing,
        truncated, foreign or at odds with the manifest, TapeError (with the row) for a tape that
        breaks a rule, and TraceError for a shard that does not exist; each where the reading gets
        so far.
        """
        if not 0 <= shard < len(self.shards):
            raise TraceError(f"{self.path} has no shard {shard}; it has {len(self.shards)}")
        entry = self.shards[shard]
        path = self.path / entry.file
        found = _Described(entry.file, entry.id_space)
        try:
            rules = Rules(entry.id_space)
            for piece in _read_shard(path, entry.rows):
                rules.check(piece)
                found.add(piece)
                yield piece
        except TapeError as error:
            raise TapeError(f"{path}: {error}", error.row) from None
        for name, value in asdict(found.shard()).items():
            if value != getattr(entry, name):
                raise TraceError(
                    f"{path}: {name} is {value}; the manifest says {getattr(entry, name)}"
                )


def open_trace(path: str | os.PathLike[str]) -> Trace:
    """Open the trace in the directory `path`. O(shards); no shard is read.

    Raises TraceError for a path that is missing or no directory, and for a manifest that is
    missing, foreign, of another version or damaged.
    """
    path = Path(path)
    manifest_path = path / MANIFEST
    try:
        text = manifest_path.read_text(encoding="utf-8")
    except FileNotFoundError:
        what = f"is no trace: it has no {MANIFEST}" if path.is_dir() else "does not exist"
        raise TraceError(f"{path} {what}") from None
    except NotADirectoryError:
        raise TraceError(f"{path} is no trace: a trace is a directory") from None
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"cannot read {manifest_path}: {_reason(error)}") from None
    manifest = _parse_manifest(text, manifest_path)
    shards = tuple(_parse_shard(entry, manifest_path) for entry in manifest["shards"])
    if not shards:
        raise TraceError(f"{manifest_path} lists no shard")
    for name, total in _totals(shards).items():
        said = manifest["totals"].get(name)
        if said != total:
            raise TraceError(
                f"{manifest_path}: totals.{name} is {said}; its shards add up to {total}"
            )
    return Trace(path, manifest, shards)


@lru_cache(maxsize=8)
def known_trace(path: str, manifest_digest: str) -> Trace:
    """`open_trace` of the trace with this manifest, which is read once by a process.

    Raises TraceError as that does, and where another trace has taken its place.
    """
    trace = open_trace(path)
    if trace.manifest_digest != manifest_digest:
        raise TraceError(f"{path} is being used, and has been replaced by another trace")
    return trace


def write_trace(
    path: str | os.PathLike[str],
    tapes: Iterable[Tape],
    *,
    unit: str,
    source: Mapping[str, Any],
    force: bool = False,
) -> Trace:
    """Write one shard per tape and open the result. O(rows); tapes are taken one at a time.

    The directory appears complete or not at all. `source` is anything that JSON can hold. An
    existing path is refused with TraceError, unless it is a trace and `force` is given: then the
    new trace replaces it. A tape that breaks a rule is a TapeError that names shard and row.
    """
    with new_trace(path, unit=unit, source=source, force=force) as unfinished:
        for number, tape in enumerate(tapes):
            try:
                id_space = id_space_of(tape)
                validate(tape, id_space)
            except TapeError as error:
                raise TapeError(f"shard {number}: {error}", error.row) from None
            with ShardWriter(unfinished.directory / shard_name(number)) as writer:
                writer.append(tape)
            unfinished.shards.append(writer.shard(id_space))
    return open_trace(path)


@dataclass
class UnfinishedTrace:
    """A trace under construction: write shards into `directory` and list them, in order, in
    `shards`.
    """

    directory: Path
    unit: str
    source: dict[str, Any]
    shards: list[Shard]


@contextmanager
def new_trace(
    path: str | os.PathLike[str], *, unit: str, source: Mapping[str, Any], force: bool = False
) -> Iterator[UnfinishedTrace]:
    """Make a trace of shards that the block writes, which may also add to `source` until it ends.

    The shards are written into a sibling of `path`, renamed into place when the block ends, removed
    when it fails. Raises TraceError before the block when `path` cannot become a trace.
    """
    target = _check_target(path, force)
    if unit not in UNITS:
        raise TraceError(f"unit {unit!r} is none of {', '.join(UNITS)}")
    try:
        directory = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.partial-"))
    except OSError as error:
        raise TraceError(f"cannot write {path}: {_reason(error)}") from None
    try:
        unfinished = UnfinishedTrace(directory, unit, dict(source), [])
        yield unfinished
        _finish(unfinished, target)
    except (OSError, pa.ArrowException) as error:
        raise TraceError(f"cannot write {path}: {_reason(error)}") from None
    finally:
        # Gone already when all went well.
        shutil.rmtree(directory, ignore_errors=True)


class ShardWriter:
    """Writes one shard, piece by piece, in order; for writers whose tape is longer than their
    memory.

    A context manager. A partial row group is held in memory, at most 21 MB. The pieces are not
    validated.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pieces: list[Tape] = []
        self._held = 0
        self._written = _Described(path.name)
        self._writer = pq.ParquetWriter(
            path,
            SCHEMA,
            compression="zstd",
            # Measured as the smallest, at 2.5 bytes a row: sorted times as differences, the rest
            # left to zstd.
            use_dictionary=["op"],
            column_encoding={"time": "DELTA_BINARY_PACKED"},
            # So that a damaged byte is an error and not another number.
            write_page_checksum=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
            return
        # The file is lost already; that it cannot even be closed (disk full) must not hide why.
        with suppress(OSError, pa.ArrowException):
            self._writer.close()

    def close(self) -> None:
        """Complete the file."""
        self._flush()
        self._writer.close()

    def append(self, piece: Tape) -> None:
        """Add operations that follow the ones before. O(len)."""
        if not len(piece.time):
            return
        self._written.add(piece)
        self._pieces.append(piece)
        self._held += len(piece.time)
        if self._held >= ROW_GROUP:
            self._flush()

    def shard(self, id_space: int) -> Shard:
        """The manifest's entry for what was written."""
        return replace(self._written.shard(), id_space=id_space)

    def _flush(self) -> None:
        if self._pieces:
            columns = joined(self._pieces)
            self._writer.write_table(
                pa.table(list(columns), schema=SCHEMA), row_group_size=ROW_GROUP
            )
            self._pieces, self._held = [], 0


def shard_name(number: int) -> str:
    """The file of shard `number`."""
    return f"shard-{number:05d}.parquet"


class _Described:
    """Describes a tape that comes in pieces, in order."""

    def __init__(self, file: str, id_space: int = 0) -> None:
        self._file, self._id_space = file, id_space
        self._rows = 0
        self._first_time: int | None = None
        self._last_time: int | None = None
        self._counts = Counts(0, 0, 0, 0)

    def add(self, piece: Tape) -> None:
        """Take a piece into account. O(len)."""
        if not len(piece.time):
            return
        if self._first_time is None:
            self._first_time = int(piece.time[0])
        self._last_time = int(piece.time[-1])
        self._counts = Counts(*map(sum, zip(self._counts, count_ops(piece), strict=True)))
        self._rows += len(piece.time)

    def shard(self) -> Shard:
        """The manifest's entry for all pieces so far."""
        ends = (self._first_time, self._last_time)
        return Shard(self._file, self._rows, self._id_space, *ends, *self._counts)


def _totals(shards: Iterable[Shard]) -> dict[str, int]:
    shards = list(shards)
    return {
        name: sum(getattr(shard, name) for shard in shards) for name in ("rows", *Counts._fields)
    }


def _read_shard(path: Path, rows: int) -> Iterator[Tape]:
    """A shard's file, which must have so many rows, in pieces of up to PIECE rows."""
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            if not file.schema_arrow.equals(SCHEMA):
                found = ", ".join(f"{field.name} {field.type}" for field in file.schema_arrow)
                wanted = ", ".join(f"{field.name} {field.type}" for field in SCHEMA)
                raise TraceError(
                    f"{path} has the columns ({found}); a tape has ({wanted}), none nullable"
                )
            if file.metadata.num_rows != rows:
                raise TraceError(
                    f"{path} has {file.metadata.num_rows} rows; the manifest says {rows}"
                )
            for batch in file.iter_batches(PIECE, use_threads=False):
                # A copy, because Arrow's own memory is read-only, which jitted code takes for
                # another type.
                yield Tape(*(np.array(batch.column(name).to_numpy()) for name in Tape._fields))
    except FileNotFoundError:
        raise TraceError(f"{path} does not exist, though the manifest lists it") from None
    except (OSError, pa.ArrowException) as error:
        raise TraceError(f"{path} is no readable Parquet file: {_reason(error)}") from None


def _parse_manifest(text: str, path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(text)
    except ValueError as error:
        raise TraceError(f"{path} is no JSON: {_reason(error)}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise TraceError(f'{path} is no manifest of a trace: it does not say "format": "{FORMAT}"')
    if manifest.get("version") != VERSION:
        raise TraceError(
            f"{path} is of version {manifest.get('version')!r}; this release reads {VERSION}"
        )
    if manifest.get("unit") not in UNITS:
        raise TraceError(f"{path}: unit {manifest.get('unit')!r} is none of {', '.join(UNITS)}")
    for name, kind in (("source", dict), ("shards", list), ("totals", dict)):
        if not isinstance(manifest.get(name), kind):
            raise TraceError(
                f"{path}: {name} is missing or no {'list' if kind is list else 'object'}"
            )
    return manifest


def _parse_shard(entry: object, path: Path) -> Shard:
    fields = Shard.__dataclass_fields__
    if not isinstance(entry, dict) or not fields.keys() <= entry.keys():
        raise TraceError(f"{path}: each shard is an object with {', '.join(fields)}")
    file = entry["file"]
    if not isinstance(file, str) or not file or Path(file).name != file:
        raise TraceError(f"{path}: shard file {file!r} is no plain file name")
    for name in fields.keys() - {"file"}:
        value = entry[name]
        may_be_none = name in ("first_time", "last_time") and entry["rows"] == 0
        if not (value is None if may_be_none else type(value) is int and value >= 0):
            raise TraceError(f"{path}: {name} of {file} is {value!r}; it must be an integer from 0")
    return Shard(**{name: entry[name] for name in fields})


def _check_target(path: str | os.PathLike[str], force: bool) -> Path:
    """The real path that the trace will have. Raises TraceError when something stands there."""
    target = Path(path).resolve()
    if not target.parent.is_dir():
        raise TraceError(f"cannot write {path}: the directory {target.parent} does not exist")
    if not target.exists():
        return target
    if not _is_trace(target):
        raise TraceError(f"{path} exists and is no trace; choose another path")
    if not force:
        raise TraceError(
            f"{path} exists; say force to replace the trace there (--force on the command line)"
        )
    return target


def _is_trace(path: Path) -> bool:
    """Whether `path` is a trace's directory and nothing else is in it that replacing it would
    lose.
    """
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        strangers = [
            entry
            for entry in path.iterdir()
            if entry.name not in (MANIFEST, REJECTED) and not entry.match("shard-*.parquet")
        ]
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("format") == FORMAT and not strangers


def _finish(unfinished: UnfinishedTrace, target: Path) -> None:
    """Write the manifest and move the directory to its place, over the trace that may be there."""
    directory = unfinished.directory
    if not unfinished.shards:
        raise TraceError(f"a trace has at least one shard; {target} would have none")
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "unit": unfinished.unit,
        "source": unfinished.source,
        "shards": [asdict(shard) for shard in unfinished.shards],
        "totals": _totals(unfinished.shards),
    }
    try:
        text = json.dumps(manifest, indent=1, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise TraceError(f"source is not fit for JSON: {_reason(error)}") from None
    (directory / MANIFEST).write_text(text + "\n", encoding="utf-8")
    listed = {shard.file for shard in unfinished.shards} | {MANIFEST, REJECTED}
    for stray in directory.iterdir():
        # Left by a task that was tried twice.
        if stray.name not in listed:
            stray.unlink()
    # mkdtemp gave it to its owner alone.
    directory.chmod(0o777 & ~_umask())
    if not target.exists():
        directory.rename(target)
        return
    old = target.with_name(directory.name + ".old")
    target.rename(old)
    try:
        directory.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _umask() -> int:
    # There is no other way to read it than to set it.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _reason(error: Exception) -> str:
    """The first line of what an error says, without the path that the caller names itself."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.splitlines()[0]
    return (str(error) or type(error).__name__).splitlines()[0]
