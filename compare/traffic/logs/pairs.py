"""Requests whose start and end are two rows with the same id.

In the order of time, the end of a request is the next row of its id, if that is an end. A start
without one is a request that is not answered; an end without a start is rejected.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from compare.traffic.logs.rows import END, NONE
from timers.arrays import Int32s, Int64s

_GATHER = 1 << 18
"""Rows that are gathered before they are paired."""

Piece = tuple[Int64s, Any, Int64s]
"""Rows: start, end (of requests) or key or id (as a small number), position in the log."""


def without_start(time: Int64s, ids: Int32s, position: Int64s) -> Int64s:
    """The positions of ends without a start, of all rows in any order, without END. O(n log n)."""
    order = np.lexsort((position, time, ids))
    ids, position = ids[order], position[order]
    is_end = position >= END
    started = np.zeros(len(ids), np.bool_)
    started[1:] = (ids[1:] == ids[:-1]) & ~is_end[:-1]
    return np.sort(position[is_end & ~started] - END)


def paired(pieces: Iterable[Piece], timeout: int) -> Iterator[Piece]:
    """Rows in the order of (time, position) as requests: start, end or NONE, position of the start.

    An end after the timeout is NONE. Memory: as many rows as there are within the timeout.
    """
    none = np.empty(0, np.int64)
    held: Piece = (none, none.astype(np.int32), none)
    gathered: list[Piece] = []
    rows = 0
    for piece in chain(pieces, [None]):
        if piece is not None:
            gathered.append(piece)
            rows += len(piece[0])
            # As many as are held, because each round sorts those again.
            if rows < max(_GATHER, len(held[0])):
                continue
        time, ids, position = map(np.concatenate, zip(held, *gathered, strict=True))
        is_end, end = position >= END, np.full(len(time), NONE, np.int64)
        order = np.argsort(ids, kind="stable")
        row, behind = order[:-1], order[1:]
        answers = (ids[row] == ids[behind]) & ~is_end[row] & is_end[behind]
        row, behind = row[answers], behind[answers]
        in_time = time[behind] - time[row] < timeout
        end[row[in_time]] = time[behind[in_time]]
        # Later rows cannot answer these starts in time.
        ready = len(time) if piece is None else np.searchsorted(time, time[-1] - timeout, "right")
        starts = np.flatnonzero(~is_end[:ready])
        yield time[starts], end[starts], position[starts]
        held, gathered, rows = (time[ready:], ids[ready:], position[ready:]), [], 0
