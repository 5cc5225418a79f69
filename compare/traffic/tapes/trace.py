"""A trace on disk: a directory with a manifest and a dataset of blocks (docs/file-formats.md).

    TRACE/manifest.json                   the description
    TRACE/RUN/blocks/part-00000.parquet   the blocks, in one file or several

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
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from compare.base.datasets import Dataset, part_name, write_part
from compare.base.files import (
    CANNOT_WRITE,
    MANIFEST,
    errors_as,
    has_format,
    json_text,
    manifest_text,
    new_directory,
    new_file,
    obstacle,
    parse_manifest,
)
from compare.spark.places import dataset_path, is_far, other_path
from compare.traffic.tapes.blocks import (
    BLOCKS,
    KEY,
    Shard,
    Tapes,
    blocks_of,
    check_blocks,
    shard_of,
)
from compare.traffic.tapes.blocks import TraceError as TraceError  # where users look for it
from compare.traffic.tapes.description import Describer, Description, Late, described
from compare.traffic.tapes.tape import OP_COUNTS, Tape, TapeError, joined, part
from compare.traffic.tapes.units import TAPE_UNITS

FORMAT = "wheelwork-trace"
VERSION = 3
BLOCKS_IN, REJECTED_IN = "blocks", "rejected"
"""The datasets of a trace: the blocks, and the rejected rows of a log, if there are any."""
UNITS = (*TAPE_UNITS, "unit")
_UNITS = ", ".join(UNITS[:-1]) + f" or {UNITS[-1]}"

MAX_SHARDS = 100_000


@dataclass(frozen=True)
class About:
    """The description of a trace, which is read without reading its blocks."""

    unit: str  #: the unit of time: ns, us, ms, s, or "unit" if it is not a duration
    source: Mapping[str, Any]  #: where the trace comes from, with parameters
    #: over all shards: shards, rows, starts, cancels, rearms and arms; the largest id_space; the
    #: first_time and last_time, which are None without operations
    totals: Mapping[str, Any]
    description: Description  #: delays, answers and pending timers
    run: str  #: the directory of the datasets, in that of the trace
    manifest_digest: str  #: SHA-256 of the manifest, which includes the counts and times

    @property
    def span(self) -> int:
        """Units from the first operation to the last, over all shards; 0 without operations."""
        return (self.totals["last_time"] or 0) - (self.totals["first_time"] or 0)

    @property
    def has_rejected(self) -> bool:
        """Whether rows of the log were rejected."""
        return any(self.source.get(name) for name in ("unreadable", "unmatched"))

    @classmethod
    def parse(cls, text: str, place: str) -> "About":
        """Read a manifest. Raises TraceError if it is damaged, or of another format or version."""
        entries = {"unit": str, "source": dict, "totals": dict, "description": dict, "run": str}
        manifest = parse_manifest(text, place, "a trace", FORMAT, VERSION, entries, TraceError)
        if manifest["unit"] not in UNITS:
            raise TraceError(f"{place}: unit {manifest['unit']!r} is not {_UNITS}")
        if not re.fullmatch(r"run-[0-9a-f]+", manifest["run"]):
            raise TraceError(f"{place}: run {manifest['run']!r} is not the name of a run")
        _check_totals(manifest["totals"], place)
        kinds = {name: type(value) for name, value in asdict(Description()).items()}
        if {name: type(value) for name, value in manifest["description"].items()} != kinds:
            raise TraceError(f"{place}: description must have {', '.join(kinds)}")
        return cls(
            **{name: manifest[name] for name in ("unit", "source", "totals", "run")},
            description=Description(**manifest["description"]),
            manifest_digest=hashlib.sha256(text.encode()).hexdigest(),
        )


def new_manifest(
    unit: str,
    source: Mapping[str, Any],
    shards: Sequence[Shard],
    run: str,
    place: str | os.PathLike[str],
    made_by: Mapping[str, Any] | None = None,
) -> str:
    """The manifest of a trace of these shards. Raises TraceError."""
    if not shards:
        raise TraceError(f"a trace needs at least one shard; {place} would have none")
    if len(shards) > MAX_SHARDS:
        raise TraceError(f"{place} would have {len(shards)} shards; the maximum is {MAX_SHARDS}")
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        **({"made_by": made_by} if made_by else {}),
        "unit": unit,
        "source": source,
        "run": run,
        "totals": totals_of(shards),
        "description": asdict(
            described((shard.described for shard in shards if shard.described), unit)
        ),
    }
    try:
        return json_text(manifest)
    except (TypeError, ValueError) as error:
        raise TraceError(f"source cannot be written as JSON: {error}") from None


def totals_of(shards: Sequence[Shard]) -> dict[str, Any]:
    """The entry `totals` of a manifest."""
    counts = {name: sum(getattr(each, name) for each in shards) for name in ("rows", *OP_COUNTS)}
    used = [each for each in shards if each.rows]
    return {
        "shards": len(shards),
        **counts,
        "id_space": max((each.id_space for each in shards), default=0),
        "first_time": min((each.first_time or 0 for each in used), default=None),
        "last_time": max((each.last_time or 0 for each in used), default=None),
    }


def _check_totals(totals: Mapping[str, Any], place: str) -> None:
    for name in totals_of([]):
        value = totals.get(name)
        may_be_none = name in ("first_time", "last_time") and totals.get("rows") == 0
        if not (value is None if may_be_none else type(value) is int and value >= 0):
            raise TraceError(f"{place}: totals.{name} is {value!r}; it must be an integer from 0")


def blocks_dataset(path: str) -> Dataset:
    """The dataset of blocks in a directory."""
    return Dataset(path, BLOCKS, KEY, TraceError)


def shards_of(ends: pa.Table, place: str) -> tuple[Shard, ...]:
    """The shards from the column `end` of the blocks, ordered by shard. Raises TraceError."""
    numbers = ends["shard"].to_pylist()
    for expected, number in enumerate([*numbers, len(numbers)]):
        if number != expected:
            problem = f"lacks shard {expected}"
            if number < expected:
                problem = f"has shard {number} twice"
            raise TraceError(f"{place} {problem}: blocks are missing, or from two runs")
    shards = tuple(map(shard_of, ends["end"].to_pylist()))
    for number, shard in enumerate(shards):
        # A replay allocates a table of all ids.
        if shard.id_space > shard.rows:
            raise TraceError(
                f"{place}: id_space of shard {number} is {shard.id_space}; it must not exceed the"
                f" {shard.rows} rows"
            )
    return shards


@dataclass(frozen=True)
class Trace(About):
    """An open trace: its manifest has been checked, its blocks were not read.

    A trace at a place that only Spark reads has the same attributes; what reads blocks raises
    TraceError there.
    """

    place: str  #: a directory, or a URI or table of Spark

    @property
    def path(self) -> Path:
        """The directory."""
        return Path(self.place)

    def __getstate__(self) -> dict[str, Any]:
        """Only the fields: what was read stays here."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def blocks(self) -> Dataset:
        """The dataset of the blocks."""
        return blocks_dataset(dataset_path(self.place, self.run, BLOCKS_IN))

    @cached_property
    def shards(self) -> tuple[Shard, ...]:
        """What each shard has. O(blocks); the first time it reads the ends of the shards.

        Raises TraceError for a shard that is missing, or if they contradict the manifest.
        """
        shards = shards_of(self.blocks.column("end"), str(self.path))
        for name, total in totals_of(shards).items():
            if self.totals[name] != total:
                raise TraceError(
                    f"{self.path / MANIFEST}: totals.{name} is {self.totals[name]}; its shards have"
                    f" {total}"
                )
        return shards

    @property
    def rejected(self) -> Path | str | None:
        """The dataset of rejected rows of the log, if there are any; see docs/logs.md."""
        if is_far(self.place):
            return other_path(self.place, self.run, REJECTED_IN) if self.has_rejected else None
        path = self.path / self.run / REJECTED_IN
        return path if path.exists() else None

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
        """Read and check one shard, block by block; see `Tapes.of`. Memory: a row group.

        Raises TraceError for a shard that does not exist, for files that are missing, damaged or
        foreign, and as `Tapes.of` does. Errors are raised when reading reaches them.
        """
        number = self.totals["shards"]
        if not 0 <= shard < number:
            raise TraceError(f"{self.path} has no shard {shard}; it has {number}")
        yield from Tapes(str(self.path), shard).of(self.rows(shard, shard + 1))

    def rows(self, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """The blocks of the shards from `start` to `stop`, in order. Raises TraceError."""
        first, end = self._bounds[[start, stop]].tolist()
        yield from self.blocks.rows(first, end, BLOCKS.names)

    @cached_property
    def _bounds(self) -> npt.NDArray[np.int64]:
        """The first row of each shard in the index of the blocks, and the end."""
        numbers = self.blocks.index.keys["shard"].to_numpy()
        return np.searchsorted(numbers, np.arange(self.totals["shards"] + 1))


def open_trace(path: str | os.PathLike[str]) -> Trace:
    """Open the trace in the directory `path`. O(1); no block is read.

    Raises TraceError for a path that is missing or not a directory, or if the manifest is missing,
    damaged, or of another format or version.
    """
    path = Path(path)
    about = About.parse(manifest_text(path, "a trace", TraceError), str(path / MANIFEST))
    return Trace(**vars(about), place=str(path))


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

    def blocks() -> Iterator[pa.RecordBatch]:
        for number, tape in enumerate(tapes):
            try:
                check_blocks(tape)
            except TapeError as error:
                raise TapeError(f"shard {number}: {error}", error.row) from None
            yield from blocks_of(number, [tape])

    with new_trace(path, unit=unit, source=source, force=force) as unfinished:
        unfinished.write(0, blocks())
    return open_trace(path)


@dataclass
class UnfinishedTrace:
    """A trace under construction. The blocks are files in `blocks`; `write` writes one."""

    directory: Path
    unit: str
    source: dict[str, Any]
    made_by: Mapping[str, Any] | None = None  # see `compare.base.stages.Engine.made_by`
    run: str = field(default_factory=lambda: f"run-{uuid.uuid4().hex}")

    def __post_init__(self) -> None:
        self.blocks.mkdir(parents=True)

    @property
    def blocks(self) -> Path:
        """The directory of the blocks."""
        return self.directory / self.run / BLOCKS_IN

    @property
    def rejected(self) -> Path:
        """The directory of rejected rows; it may be created."""
        return self.directory / self.run / REJECTED_IN

    def write(self, number: int, blocks: Iterable[pa.RecordBatch]) -> None:
        """Write a file of blocks; see `blocks_of`."""
        write_part(self.blocks / part_name(number), BLOCKS, blocks)

    @cached_property
    def shards(self) -> tuple[Shard, ...]:
        """The shards, after all blocks have been written."""
        return shards_of(blocks_dataset(str(self.blocks)).column("end"), str(self.blocks))

    def finish(self, path: str | os.PathLike[str]) -> None:
        """Write the manifest, which completes the trace. `path` is where errors say that it is."""
        text = new_manifest(self.unit, self.source, self.shards, self.run, path, self.made_by)
        with new_file(self.directory / MANIFEST) as temporary:
            temporary.write_text(text, encoding="utf-8")


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
    """Create a trace from the blocks that the block writes; it may also extend `source`.

    The directory appears complete or not at all. Raises TraceError before the block if a trace
    cannot be created at `path`.
    """
    target = new_target(path, force=force)
    check_unit(unit)
    # Compiled into the disk cache, where workers look.
    Describer().add(joined([]), Late(np.empty(0, np.int64), 0))
    with (
        errors_as(TraceError, f"{CANNOT_WRITE} {path}"),
        new_directory(target, replace=force) as directory,
    ):
        unfinished = UnfinishedTrace(directory, unit, dict(source))
        yield unfinished
        unfinished.finish(path)


def check_unit(unit: str) -> None:
    """Raise TraceError if a trace cannot have this unit."""
    if unit not in UNITS:
        raise TraceError(f"unit {unit!r} is not {_UNITS}")


def remove_unlisted(directory: Path, run: str) -> None:
    """Remove all but the manifest and a run."""
    for entry in directory.iterdir():
        if entry.name not in (MANIFEST, run):
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink()


def _is_trace(path: Path) -> bool:
    """Whether `path` is a trace without other files, which would be lost with it."""
    return has_format(path / MANIFEST, FORMAT) and all(
        entry.name == MANIFEST or entry.match("run-*") for entry in path.iterdir()
    )
