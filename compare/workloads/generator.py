"""Merges the operations of many members into one tape, piece by piece, and gives out ids.

Members arrive in order, in blocks. The *horizon* is the time before which no member of a later
block arrives. All operations before the horizon are therefore known and given out. The starts are
in order already; only what follows them is sorted.
So memory holds the members under way, the operations that they still have to do, and some blocks,
however long the tape grows.
"""

# ruff: noqa: ANN001, ANN201  # compiled functions are typed by their arguments
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from compare.tapes.ids import Ids
from compare.tapes.tape import ARM, CANCEL, DTYPES, START, Tape, part
from timers.arrays import Int32s, Int64s
from timers.kernels.jit import long_entry

PIECE = 1 << 20
"""The most rows of a piece."""

_BATCH = 1 << 16
"""Operations that are merged together: enough to hide the cost of calls; they fit in a cache."""

NEVER = 2**63 - 2
"""Later than every operation and every end."""


_NO_MEMBERS, _NO_TIMES = np.empty(0, np.int32), np.empty(0, np.int64)


class Block(NamedTuple):
    """What the members of a block do: each starts once, and may have later operations."""

    starts: Int64s  # (members,), in the order of arrival; never decreases
    deadlines: Int64s  # (members,), set by the start
    ends: Int64s  # (members,), when it is over and its id free; not before any of its operations
    later: Int32s = _NO_MEMBERS  # (later operations,), whose each is; never decreases
    times: Int64s = _NO_TIMES  # of each later operation; never decreases within a member
    op: int = ARM  # that all of them are, in all blocks
    delay: int = 0  # from each of them to its deadline; a cancel has none


def merge(
    block: Callable[[int], Block],
    horizon: Callable[[int], int],
    blocks: int,
    operations: int | None = None,
) -> Iterator[Tape]:
    """The operations of all members, in order, with ids, in pieces of up to PIECE.

    They end after so many `operations`, or with the members.

    `block(k)` makes block k, and is called for blocks 0 to `blocks - 1` in order, as they are
    needed. No member of block k or a later one starts before `horizon(k)`, which is NEVER if no
    block follows. At one time, members act in the order of arrival.
    """
    # Of the members under way, and of the operations that they still have to do.
    ends, ids = np.empty(0, np.int64), np.empty(0, np.int32)
    later, times = _NO_MEMBERS, _NO_TIMES
    free_ids, to_come = Ids(), NEVER if operations is None else operations
    made = batch = 0
    while made < blocks:
        # Twice as many as before: a short tape needs few blocks, and a long one must not go
        # through the members under way again and again.
        batch = min(max(2 * batch, 1), max(_BATCH, len(ends) + len(times)))
        members, size = len(ends), 0
        added = []
        while made < blocks and size < batch:
            one = block(made)
            added.append(one._replace(later=one.later + np.int32(members)))
            members += len(one.starts)
            size += len(one.starts) + len(one.times)
            made += 1
        kind = added[0].op, added[0].delay
        starts = np.concatenate([one.starts for one in added])
        deadlines = np.concatenate([one.deadlines for one in added])
        ends = np.concatenate([ends, *(one.ends for one in added)])
        later = np.concatenate([later, *(one.later for one in added)])
        times = np.concatenate([times, *(one.times for one in added)])
        ids = np.concatenate([ids, np.empty(len(starts), np.int32)])
        # At the horizon itself these members precede those to come; but who ends there may still
        # be followed by a start.
        last = horizon(made)
        ended, leaving = _in_order(ends, last - 1)
        free_ids.assign(ids, np.arange(members - len(starts), members), starts, leaving, ended)
        due, places = _in_order(times, last)
        rows = Tape(*(np.empty(len(starts) + len(due), dtype) for dtype in DTYPES))
        fill_rows(starts, deadlines, due, later[places], ids, *kind, rows)
        for first in range(0, len(rows.time), PIECE):
            piece = part(rows, first, first + min(PIECE, to_come))
            to_come -= len(piece.time)
            yield piece
            if to_come == 0:
                return
        stay, remain = np.flatnonzero(ends >= last), np.flatnonzero(times > last)
        ends, ids = ends[stay], ids[stay]
        place = np.empty(members, np.int32)
        place[stay] = np.arange(len(stay))
        later, times = place[later[remain]], times[remain]


def _in_order(times: Int64s, last: int) -> tuple[Int64s, Int64s]:
    """The times up to the last, in order, and their places; those of one time as they stand."""
    places = np.flatnonzero(times <= last)
    keys = times[places]
    if (keys[1:] >= keys[:-1]).all():
        return keys, places
    first, bits = keys.min(), len(times).bit_length()
    if int(keys.max() - first).bit_length() + bits > 63:
        order = np.argsort(keys, kind="stable")
        return keys[order], places[order]
    # Integers that hold time and place are sorted several times as fast.
    keys -= first
    keys <<= bits
    keys |= places
    keys.sort()
    return (keys >> bits) + first, keys & ((1 << bits) - 1)


@long_entry
def fill_rows(starts, deadlines, times, later, ids, op, delay, rows):
    """Write the starts and the later operations, merged.

    `later` are the members whose operations come at `times`. `ids` has the id of each member; the
    last are those of `starts`.
    """
    s = k = 0
    old = ids.size - starts.size
    for row in range(rows.time.size):
        # Its own start precedes what a member does in the same moment.
        if k == times.size or (
            s < starts.size
            and (starts[s] < times[k] or (starts[s] == times[k] and old + s <= later[k]))
        ):
            rows.time[row], rows.op[row] = starts[s], START
            rows.id[row], rows.deadline[row] = ids[old + s], deadlines[s]
            s += 1
        else:
            rows.time[row], rows.op[row] = times[k], op
            rows.id[row] = ids[later[k]]
            rows.deadline[row] = 0 if op == CANCEL else times[k] + delay
            k += 1
