"""Turns the events of a recording into a trace."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from compare.base.files import CANNOT_WRITE, errors_as
from compare.traffic.recording.recorder import (
    FILE,
    FORMAT,
    KINDS,
    LOOPS,
    SPENT,
    TIMERS,
    VERSION,
)
from compare.traffic.tapes.blocks import BLOCK, TraceError, blocks_of
from compare.traffic.tapes.recorded import FIELDS, UNIT, Float64s, RecordedTape
from compare.traffic.tapes.trace import UnfinishedTrace, remove_unlisted
from timers.arrays import Int64s


def finish(path: str | os.PathLike[str]) -> None:
    """Complete the trace of a recorded program that was killed; anything else stays as it is.

    If this is interrupted, nothing is lost: call it again. O(events); memory for the pending
    timers, and 2 bytes for each event, 18 if there are several shards. Raises TraceError if the
    program still runs, for a damaged file, and if the trace cannot be written.
    """
    path = Path(path)
    if not (path / FILE).is_file():
        return
    with (
        errors_as(TraceError, f"{CANNOT_WRITE} the trace of the recording {path}"),
        (path / FILE).open("rb") as file,
    ):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # the kind of locks that a JVM has
        except (BlockingIOError, PermissionError):  # POSIX allows both
            raise TraceError(
                f"{path} is still being recorded, or is being completed by another process"
            ) from None
        header = _header(file, path)
        usage = _Usage(header["origin"])
        shards = _shards(file)
        header["source"] |= _timers(path, len(shards))
        unfinished = UnfinishedTrace(path, UNIT, header["source"])

        def blocks(shard: int) -> Iterator[pa.RecordBatch]:
            tape = RecordedTape(header["origin"])
            return blocks_of(shard, map(tape.add, map(usage.taken_from, shards[shard])))

        unfinished.write(0, chain.from_iterable(map(blocks, range(len(shards)))))
        unfinished.source |= usage.known
        unfinished.finish(path)
        remove_unlisted(path, unfinished.run)  # the events, and a trace that this one replaces


class _Usage:
    """What the process has spent, as the manifest has it: by the last event that says so."""

    def __init__(self, origin: float) -> None:
        self._origin = origin
        self.known: dict[str, Any] = {}

    def taken_from(self, events: Float64s) -> Float64s:
        """The events of timers alone."""
        is_spent = events[:, 0] == SPENT
        for _, moment, loops, seconds in events[is_spent][-1:].tolist():
            self.known = {
                "seconds": round(moment - self._origin, 6),
                "cpu_seconds": round(seconds, 6),
                "loops": [name for name, bit in LOOPS.items() if int(loops) & bit],
            }
        timers: Float64s = events[~is_spent]
        return timers


def _header(file: IO[bytes], path: Path) -> dict[str, Any]:
    try:
        header = json.loads(file.readline())
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise TraceError(f"{path / FILE} is not a file of recorded events")
    if header.get("version") != VERSION:
        version = header.get("version")
        raise TraceError(f"{path / FILE} has version {version!r}; this release reads {VERSION}")
    return header


def _shards(file: IO[bytes]) -> list[Iterator[Float64s]]:
    """The events of each shard, in pieces of shape (n, FIELDS).

    Without an event that was not written completely, and without zeros.
    """
    start, size = file.tell(), FIELDS * np.dtype(np.float64).itemsize
    count = (os.fstat(file.fileno()).st_size - start) // size
    if not count:
        return [iter([np.empty((0, FIELDS))])]
    events = np.memmap(file, np.float64, "r", start, (count, FIELDS))
    shards = np.empty(count, np.uint16)
    for begin in range(0, count, BLOCK):
        shards[begin : begin + BLOCK] = events[begin : begin + BLOCK, 0] // KINDS
    if not shards.max():
        return [_pieces(events, range(count))]
    order = np.argsort(shards, kind="stable")
    ends = np.cumsum(np.bincount(shards))
    return [_pieces(events, rows) for rows in np.split(order, ends[:-1])]


def _pieces(events: Float64s, rows: Int64s | range) -> Iterator[Float64s]:
    for begin in range(0, max(len(rows), 1), BLOCK):
        piece = np.array(events[rows[begin : begin + BLOCK]])
        piece[:, 0] %= KINDS
        yield piece[piece[:, 0] != 0]


def _timers(path: Path, shards: int) -> dict[str, Any]:
    """The description of each shard's timer; the last line of the file may be incomplete."""
    if not (path / TIMERS).is_file():
        return {}
    timers: list[dict[str, str]] = []
    with suppress(ValueError):
        timers += map(json.loads, (path / TIMERS).read_text(encoding="utf-8").splitlines())
    return {"timers": timers[:shards]}
