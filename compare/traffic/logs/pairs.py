"""Requests: answers that come too late, and those whose start and end are two rows with one id.

In the order of time, the end of a request is the next row of its id, if that is an end. A start
without one is a request that is not answered; an end without a start is rejected.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from compare.traffic.logs.rows import END, NO_POSITIONS, NONE
from compare.traffic.logs.sorting import Piece
from compare.traffic.tapes.description import Late
from timers.arrays import Int64s

_GATHER = 1 << 18
"""Rows that are gathered before they are paired."""


def in_time(pieces: Iterable[Piece], timeout: int) -> Iterator[tuple[Piece, Late]]:
    """Rows of requests with NONE for ends after the timeout, and these late answers."""
    for start, end, position in pieces:
        wait = end - start
        late = (end != NONE) & (wait >= timeout)
        until = max(start.max(initial=0), end.max(initial=0))
        yield (start, np.where(late, NONE, end), position), Late(wait[late], int(until))


def without_start(pieces: Iterable[Piece]) -> Int64s:
    """The positions of ends without a start, of rows in order of (time, position), without END.

    Memory: a byte for each id, and what is found.
    """
    started = np.empty(0, np.bool_)  # id -> whether its last row so far is a start
    found = [NO_POSITIONS]
    for _, ids, position in pieces:
        started = np.pad(started, (0, max(0, int(ids.max(initial=-1)) + 1 - len(started))))
        order = np.argsort(ids, kind="stable")
        ids, position = ids[order], position[order]
        is_end = position >= END
        before = np.append(False, ~is_end[:-1])
        first, last = (np.diff(ids, **{side: -1}) != 0 for side in ("prepend", "append"))
        before[first] = started[ids[first]]
        started[ids[last]] = ~is_end[last]
        found.append(position[is_end & ~before] - END)
    return np.sort(np.concatenate(found))


def paired(pieces: Iterable[Piece], timeout: int) -> Iterator[tuple[Piece, Late]]:
    """Rows in the order of (time, position) as requests: start, end or NONE, position of the start.

    An end after the timeout is NONE, and is among the late answers. Memory: as many rows as there
    are within the timeout, and 8 bytes for each id.
    """
    none = np.empty(0, np.int64)
    held: Piece = (none, none.astype(np.int32), none)
    started = none  # id -> its last start, if that is no longer held and has no answer yet
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
        end[row] = time[behind]
        # Later rows cannot answer these starts in time.
        ready = len(time) if piece is None else np.searchsorted(time, time[-1] - timeout, "right")
        starts = np.flatnonzero(~is_end[:ready])
        more = int(ids.max(initial=-1)) + 1 - len(started)
        if more > 0:
            started = np.concatenate([started, np.full(more + len(started), NONE)])
        first = order[np.diff(ids[order], prepend=-1) != 0]
        ends = first[is_end[first] & (started[ids[first]] != NONE)]
        waits = time[ends] - started[ids[ends]]
        started[ids[first]] = NONE
        last = order[np.diff(ids[order], append=-1) != 0]
        last = last[(last < ready) & ~is_end[last]]
        started[ids[last]] = time[last]
        for requests, late in in_time([(time[starts], end[starts], position[starts])], timeout):
            waits = np.concatenate([waits, late.waits])
            yield requests, Late(waits, int(time.max(initial=0)))
        held, gathered, rows = (time[ready:], ids[ready:], position[ready:]), [], 0
