"""Turns the events of a recording into a trace."""

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from compare.base.files import CANNOT_WRITE, errors_as
from compare.traffic.recording.recorder import FILE, FORMAT, LOOPS, SPENT, VERSION
from compare.traffic.tapes.blocks import BLOCK, TraceError, blocks_of
from compare.traffic.tapes.recorded import FIELDS, UNIT, Float64s, RecordedTape
from compare.traffic.tapes.trace import UnfinishedTrace, remove_unlisted


def finish(path: str | os.PathLike[str]) -> None:
    """Complete the trace of a recorded program that was killed; anything else stays as it is.

    If this is interrupted, nothing is lost: call it again. O(events); memory for the pending
    timers. Raises TraceError if the program still runs, for a damaged file, and if the trace cannot
    be written.
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
        except BlockingIOError:
            raise TraceError(
                f"{path} is still being recorded, or is being completed by another process"
            ) from None
        header = _header(file, path)
        tape, usage = RecordedTape(header["origin"]), _Usage(header["origin"])
        unfinished = UnfinishedTrace(path, UNIT, header["source"])
        pieces = map(tape.add, map(usage.taken_from, _pieces(file)))
        unfinished.write(0, blocks_of(0, pieces))
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


def _pieces(file: IO[bytes]) -> Iterator[Float64s]:
    """The events, without one that was not written completely. Shape (n, FIELDS)."""
    size = FIELDS * np.dtype(np.float64).itemsize
    while data := file.read(BLOCK * size):
        whole = len(data) // size * size
        yield np.frombuffer(data[:whole]).reshape(-1, FIELDS)
