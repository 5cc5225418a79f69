"""Requests: answers that come too late, and those whose start and end are two rows with one id.

In the order of time, the end of a request is the next row of its id, if that is an end. A start
without one is a request that is not answered; an end without a start is rejected.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np

from compare.traffic.logs.rows import END, NO_POSITIONS, NONE
from compare.traffic.logs.sorting import Piece, Waiting, by_time, in_order, joined_pieces
from compare.traffic.tapes.description import Late
from timers.arrays import Bools, Int64s

_GATHER = 1 << 20
"""Rows that are gathered before they are paired."""


def in_time(pieces: Iterable[Piece], timeout: int) -> Iterator[tuple[Piece, Late]]:
    """Rows of requests with NONE for ends after the timeout, and these late answers."""
    for start, end, position in pieces:
        wait = end - start
        late = (end != NONE) & (wait >= timeout)
        until = max(start.max(initial=0), end.max(initial=0))
        yield (start, np.where(late, NONE, end), position), Late(wait[late], int(until))


def without_start(pieces: Iterable[Piece]) -> Int64s:
    """The positions, without END, of ends without a start; see `paired` for the rows."""
    ends = (rows.position[rows.is_end & ~rows.answers] - END for rows in _by_id(pieces))
    return np.sort(np.concatenate([NO_POSITIONS, *ends]))


def paired(pieces: Iterable[Piece], timeout: int, waiting: Waiting) -> Iterator[tuple[Piece, Late]]:
    """Requests as from `in_time`, of rows in the order of (id, position): id, time, position.

    They wait in a file until they are in the order of their starts. Memory: _GATHER rows, or those
    of one id.
    """
    for rows in _by_id(pieces):
        end = np.where(rows.answers, rows.time, NONE)
        end = np.append(end[1:], NONE)[~rows.is_end]
        start, position = rows.time[~rows.is_end], rows.position[~rows.is_end]
        order = by_time(start, position)
        waiting.add((start[order], end[order], position[order]))
    yield from in_time(in_order(waiting), timeout)


class _Rows(NamedTuple):
    """All rows of some ids, in the order of (id, time, position)."""

    time: Int64s
    position: Int64s
    is_end: Bools
    answers: Bools  # whether it is an end, and the row before it a start of the same id


def _by_id(pieces: Iterable[Piece]) -> Iterator[_Rows]:
    """The rows of pieces that are in the order of (id, position)."""
    held: list[Piece] = []
    count = most = 0
    for piece in chain(pieces, [None]):
        if piece is not None:
            held.append(piece)
            count += len(piece[0])
            if count < max(_GATHER, most):
                continue
        if not held:
            continue
        rows = joined_pieces(held)
        # More rows of the last id may follow.
        ready = len(rows[0]) if piece is None else int(np.searchsorted(rows[0], rows[0][-1]))
        if ready:
            yield _in_turn(*(column[:ready] for column in rows))
        held = [(rows[0][ready:], rows[1][ready:], rows[2][ready:])]
        count = len(held[0][0])
        most = 2 * count  # because each round joins those again


def _in_turn(ids: Int64s, time: Int64s, position: Int64s) -> _Rows:
    """Rows in the order of (id, position), in that of (id, time, position)."""
    is_same = ids[1:] == ids[:-1]
    if (is_same & (time[1:] < time[:-1])).any():
        order = np.lexsort((position, time, ids))
        time, position = time[order], position[order]
    is_end = position >= END
    answers = np.append(False, is_same & is_end[1:] & ~is_end[:-1])
    return _Rows(time, position, is_end, answers)
