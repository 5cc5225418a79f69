"""Sort more rows than memory holds: sorted runs wait in a temporary file, and are merged.

A row has a time, a value and a position, and rows are in the order of (time, position).
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from heapq import heappop, heappush
from io import SEEK_END
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import Any

import numpy as np

from timers.arrays import Int64s

Piece = tuple[Int64s, Any, Int64s]
"""Some rows: their times, values (of integers) and positions."""
Key = tuple[int, int]
"""The time and the position of a row."""

CHUNK = 1 << 14
"""Rows that are read from a file at a time. In the worst case, one chunk of each run is held."""
_PIECE = 1 << 16
"""Rows that are merged at a time."""

_ROW = np.dtype([("time", np.int64), ("value", np.int64), ("position", np.int64)])


def by_time(time: Int64s, position: Int64s) -> Int64s:
    """The order by time and position; in linear time if the rows are almost in order."""
    order = np.argsort(time, kind="stable")
    times, places = time[order], position[order]
    equal = times[1:] == times[:-1]
    if (equal & (places[1:] < places[:-1])).any():
        tied = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
        rows = order[tied]
        order[tied] = rows[np.lexsort((position[rows], time[rows]))]
    return order


def before(time: Int64s, position: Int64s, key: Key) -> int:
    """How many rows, which are in order, come before a key. O(log n)."""
    first, end = (int(np.searchsorted(time, key[0], side)) for side in ("left", "right"))
    return first + int(np.searchsorted(position[first:end], key[1]))


def joined_pieces(pieces: Iterable[Piece]) -> Piece:
    """The rows of one or more pieces."""
    time, value, position = map(np.concatenate, zip(*pieces, strict=True))
    return time, value, position


def in_order(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The rows of pieces in order; the pieces are in the order of their first and least rows.

    Memory: _PIECE rows, and as many as overlap later pieces.
    """
    held: list[Piece] = []  # the first one is sorted, and the others have come since
    rows = 0
    for piece in chain(pieces, [None]):
        # As many as are left, because each round sorts those again.
        if held and (piece is None or rows >= max(_PIECE, len(held[0][0]))):
            time, value, position = joined_pieces(held)
            order = by_time(time, position)
            ready = len(order)
            if piece is not None:
                ready = before(time[order], position[order], (piece[0][0], piece[2][0]))
            for first in range(0, ready, _PIECE):
                part = order[first : min(first + _PIECE, ready)]
                yield time[part], value[part], position[part]
            rest = order[ready:]
            held, rows = [(time[rest], value[rest], position[rest])], 0
        if piece is not None:
            held.append(piece)
            rows += len(piece[0])


class Scratch:
    """A temporary file of rows, which threads may share. It has no name, so no process leaves it
    behind. Without a directory, it is where this machine has its temporary files.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self._file: Any = None  # until there are rows
        self._lock = Lock()

    def write(self, rows: Any) -> int:
        """Add rows, and return the place of the first. Raises OSError."""
        with self._lock:
            if self._file is None:
                self._file = TemporaryFile(dir=self._directory)  # noqa: SIM115  # see `close`
            place: int = self._file.seek(0, SEEK_END)
            self._file.write(rows.view(np.uint8))
        return place

    def read(self, place: int, rows: int) -> Any:
        """Read rows from a place. Raises OSError."""
        data = np.empty(rows, _ROW)
        with self._lock:
            self._file.seek(place)
            self._file.readinto(data.view(np.uint8))
        return data

    def close(self) -> None:
        """Give the space back. After an error, what is not written yet does not matter."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()


class Waiting:
    """Sorted runs in a temporary file, read by chunks. Memory: about 200 bytes for each chunk."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._chunks: list[tuple[Key, int, int]] = []  # a heap: first row, place, number of rows

    def add(self, run: Piece) -> None:
        """Add rows in order."""
        time, _, position = run
        rows = np.empty(len(time), _ROW)
        for name, column in zip(_ROW.names or (), run, strict=True):
            rows[name] = column
        place = self._scratch.write(rows)
        for first in range(0, len(time), CHUNK):
            key = int(time[first]), int(position[first])
            size = min(CHUNK, len(time) - first)
            heappush(self._chunks, (key, place + first * _ROW.itemsize, size))

    @property
    def first(self) -> Key | None:
        """The key of the first row."""
        return self._chunks[0][0] if self._chunks else None

    def take(self) -> Piece:
        """Take the chunk with the first row; others may overlap it."""
        _, place, size = heappop(self._chunks)
        rows = self._scratch.read(place, size)
        return rows["time"], rows["value"], rows["position"]

    def __iter__(self) -> Iterator[Piece]:
        """Take all chunks, in the order of their first rows."""
        while self._chunks:
            yield self.take()
