"""Flat tape files: a tape that a program in any language can map into memory (docs/peers.md).

All numbers are little-endian. The header has eight int64: MAGIC, VERSION, nanoseconds in a unit (0
if a unit is not a duration), operations, id space, first time, number of phases, 0. The first
operation of each phase follows as int64, and then the columns `time`, `op`, `id` and `deadline`,
each of which begins at a multiple of 8 bytes.

>>> import tempfile
>>> tape = Tape(*(np.array([value], dtype) for value, dtype in zip((5, 0, 0, 9), DTYPES)))
>>> with tempfile.TemporaryDirectory() as directory:
...     write_flat(f"{directory}/one.tape", tape, id_space=1, unit="ms")
...     flat = read_flat(f"{directory}/one.tape")
>>> flat.tape.deadline.tolist(), flat.unit, flat.phases
([9], 'ms', (0,))
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from compare.base.files import CANNOT_WRITE, errors_as, new_directory, new_file, obstacle
from compare.traffic.tapes.tape import DTYPES, Tape, TapeError, validate
from compare.traffic.tapes.trace import Trace
from compare.traffic.tapes.units import EXPONENTS, TAPE_UNITS

MAGIC = int.from_bytes(b"WHLTAPE\0", "little")
VERSION = 1
CELLS = ("magic", "version", "ns", "operations", "id_space", "first_time", "phases", "zero")
"""The header: an int64 each."""
HEADER = len(CELLS)
ALIGNMENT = 8
NANOSECONDS = {unit: 10 ** (9 - EXPONENTS[unit]) for unit in TAPE_UNITS} | {"unit": 0}
"""Nanoseconds in a unit; 0 for units that are not durations."""


@dataclass(frozen=True)
class FlatTape:
    """The contents of a flat tape file."""

    tape: Tape
    id_space: int
    unit: str
    phases: tuple[int, ...]  # the first operation of each phase, ascending


def layout(operations: int, phases: int) -> tuple[list[int], int]:
    """The offset of each column, and the size of the file, in bytes.

    >>> layout(3, 1)
    ([72, 96, 104, 120], 144)
    """
    offset, offsets = 8 * (HEADER + phases), []
    for dtype in DTYPES:
        offsets.append(offset)
        offset += -(-operations * dtype.itemsize // ALIGNMENT) * ALIGNMENT
    return offsets, offset


def write_flat(
    path: str | os.PathLike[str],
    tape: Tape,
    *,
    id_space: int,
    unit: str,
    phases: Sequence[int] = (0,),
) -> None:
    """Write a tape as a flat file. O(operations)."""
    write_pieces(path, [tape], tape.time.size, id_space, unit, phases)


def write_pieces(
    path: str | os.PathLike[str],
    pieces: Iterable[Tape],
    operations: int,
    id_space: int,
    unit: str,
    phases: Sequence[int] = (0,),
) -> None:
    """Write a tape that comes in pieces. The file appears when it is complete."""
    offsets, size = layout(operations, len(phases))
    header = [MAGIC, VERSION, NANOSECONDS[unit], operations, id_space, 0, len(phases), 0]
    done = 0
    with new_file(path) as temporary, temporary.open("wb") as file:
        file.truncate(size)
        for piece in pieces:
            if not done and piece.time.size:
                header[5] = int(piece.time[0])
            for name, offset, dtype in zip(Tape._fields, offsets, DTYPES, strict=True):
                file.seek(offset + done * dtype.itemsize)
                column = getattr(piece, name).astype(dtype.newbyteorder("<"), copy=False)
                file.write(column.tobytes())
            done += piece.time.size
        file.seek(0)
        file.write(np.array([*header, *phases], "<i8").tobytes())


def read_flat(path: str | os.PathLike[str]) -> FlatTape:
    """Read and check a flat tape file. O(operations).

    Raises TapeError, in one line with the path, for another kind or version of file, a file that is
    cut short, and a tape that breaks a rule.
    """
    with errors_as(TapeError, f"cannot read {path}"):
        data = np.fromfile(path, np.uint8)
    if data.size < 8 * HEADER:
        raise TapeError(f"{path} is not a tape: it has {data.size} bytes")
    header = data[: 8 * HEADER].view("<i8").tolist()
    magic, version, nanoseconds, operations, id_space, _, phases, _ = header
    if magic != MAGIC:
        raise TapeError(f"{path} is not a tape: it begins with {data[:8].tobytes()!r}")
    if version != VERSION:
        raise TapeError(f"{path} is a tape of version {version}; this release reads {VERSION}")
    units = {number: unit for unit, number in NANOSECONDS.items()}
    if min(operations, phases) < 0 or nanoseconds not in units:
        raise TapeError(f"{path} has a damaged header: {header}")
    offsets, size = layout(operations, phases)
    if data.size != size:
        raise TapeError(f"{path} is cut short: it has {data.size} bytes of {size}")
    columns = (
        data[offset : offset + operations * dtype.itemsize]
        .view(dtype.newbyteorder("<"))
        .astype(dtype)
        for offset, dtype in zip(offsets, DTYPES, strict=True)
    )
    tape = Tape(*columns)
    try:
        validate(tape, id_space)
    except TapeError as error:
        raise TapeError(f"{path}: {error}", error.row) from None
    firsts = data[8 * HEADER : offsets[0]].view("<i8").tolist()
    return FlatTape(tape, id_space, units[nanoseconds], tuple(firsts))


def tape_name(shard: int) -> str:
    """The file name of a shard."""
    return f"shard-{shard:05d}.tape"


def export(trace: Trace, out: str | os.PathLike[str]) -> list[Path]:
    """Write each shard of a trace as a flat file in a new directory, and return the files.

    Memory: a piece of a shard. The directory appears complete or not at all. Raises TapeError if it
    exists or cannot be written.
    """
    target = Path(out)
    if target.exists():
        raise TapeError(f"{out} exists; choose another path")
    if problem := obstacle(target.parent):
        raise TapeError(f"{CANNOT_WRITE} {out}: {problem}")
    with errors_as(TapeError, f"{CANNOT_WRITE} {out}"), new_directory(target) as directory:
        for number, shard in enumerate(trace.shards):
            path = directory / tape_name(number)
            write_pieces(path, trace.pieces(number), shard.rows, shard.id_space, trace.unit)
    return [target / tape_name(number) for number in range(len(trace.shards))]
