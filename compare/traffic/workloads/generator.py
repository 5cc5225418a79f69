"""Merge the operations of many members into one tape, piece by piece, and assign ids.

Members arrive in order, in blocks. The *horizon* is the time before which no member of a later
block arrives. All operations before it are therefore known and can be yielded. Starts are already
in order; only later operations are sorted. Memory holds the pending members, their remaining
operations and a few blocks, regardless of the length of the tape.
"""

# ruff: noqa: ANN001, ANN201  # compiled functions are typed by their arguments
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from compare.traffic.tapes.ids import Ids
from compare.traffic.tapes.tape import ARM, CANCEL, DTYPES, START, Tape, part
from timers.arrays import Int8s, Int32s, Int64s
from timers.kernels.jit import long_entry

PIECE = 1 << 20
"""Maximum number of rows of a piece."""

BATCH = 1 << 16
"""Operations to merge at a time: enough to hide the cost of calls, few enough for a cache."""

NEVER = 2**63 - 2
"""Later than every operation and every end."""


_NO_MEMBERS, _NO_TIMES = np.empty(0, np.int32), np.empty(0, np.int64)


class Block(NamedTuple):
    """The members of a block: each starts once, and may have later operations."""

    starts: Int64s  # (members,), in order of arrival; never decreases
    deadlines: Int64s  # (members,), set by the start
    ends: Int64s  # (members,), when the id becomes free; not before the member's last operation
    later: Int32s = _NO_MEMBERS  # (later operations,), the member of each; never decreases
    times: Int64s = _NO_TIMES  # of each later operation; never decreases within a member
    ops: int | Int8s = ARM  # of the later operations: one for all, or of each
    delays: int | Int64s = 0  # from each later operation to its deadline; 0 for cancels


def merge(
    block: Callable[[int], Block],
    horizon: Callable[[int], int],
    blocks: int,
    operations: int | None = None,
) -> Iterator[Tape]:
    """Yield the operations of all members, in order, with ids, in pieces of up to PIECE.

    Stops after this many `operations`, or with the last member.

    `block(k)` returns block k, and is called for blocks 0 to `blocks - 1` in order, as they are
    needed. No member of block k or a later one starts before `horizon(k)`, which is NEVER if no
    block follows. At the same time, members act in the order of arrival.
    """
    # Of the pending members, and of their remaining operations.
    ends, ids = np.empty(0, np.int64), np.empty(0, np.int32)
    later, times, ops, delays = _NO_MEMBERS, _NO_TIMES, np.empty(0, np.int8), _NO_TIMES
    free_ids, remaining = Ids(), NEVER if operations is None else operations
    drawn = batch = 0  # blocks, operations
    while drawn < blocks:
        # Twice as many as before: a short tape needs few blocks, and a long one must not go
        # through the pending members again and again.
        batch = min(max(2 * batch, 1), max(BATCH, len(ends) + len(times)))
        members, size = len(ends), 0
        added = []
        while drawn < blocks and size < batch:
            new = block(drawn)
            added.append(new._replace(later=new.later + np.int32(members)))
            members += len(new.starts)
            size += len(new.starts) + len(new.times)
            drawn += 1
        starts = np.concatenate([new.starts for new in added])
        deadlines = np.concatenate([new.deadlines for new in added])
        ends = np.concatenate([ends, *(new.ends for new in added)])
        later = np.concatenate([later, *(new.later for new in added)])
        times = np.concatenate([times, *(new.times for new in added)])
        ops = np.concatenate(
            [ops, *(np.broadcast_to(np.int8(new.ops), new.times.size) for new in added)]
        )
        delays = np.concatenate(
            [delays, *(np.broadcast_to(new.delays, new.times.size) for new in added)]
        )
        ids = np.concatenate([ids, np.empty(len(starts), np.int32)])
        # Operations at the horizon itself precede those of later members. A member that ends there
        # keeps its id, because a start may follow at the same time.
        last = horizon(drawn)
        ended, leaving = _in_order(ends, last - 1)
        free_ids.assign(ids, np.arange(members - len(starts), members), starts, leaving, ended)
        due, places = _in_order(times, last)
        rows = Tape(*(np.empty(len(starts) + len(due), dtype) for dtype in DTYPES))
        columns = later[places], ids, ops[places], delays[places]
        fill_rows(starts, deadlines, due, *columns, rows)
        for first in range(0, len(rows.time), PIECE):
            piece = part(rows, first, first + min(PIECE, remaining))
            remaining -= len(piece.time)
            yield piece
            if remaining == 0:
                return
        pending, undone = np.flatnonzero(ends >= last), np.flatnonzero(times > last)
        ends, ids = ends[pending], ids[pending]
        place = np.empty(members, np.int32)
        place[pending] = np.arange(len(pending))
        later, times = place[later[undone]], times[undone]
        ops, delays = ops[undone], delays[undone]


def _in_order(times: Int64s, last: int) -> tuple[Int64s, Int64s]:
    """Return the times up to `last`, sorted, and their places; the sort is stable."""
    places = np.flatnonzero(times <= last)
    keys = times[places]
    if (keys[1:] >= keys[:-1]).all():
        return keys, places
    first, bits = keys.min(), len(times).bit_length()
    if int(keys.max() - first).bit_length() + bits > 63:
        order = np.argsort(keys, kind="stable")
        return keys[order], places[order]
    # Sorting integers that hold time and place is several times as fast.
    keys -= first
    keys <<= bits
    keys |= places
    keys.sort()
    return (keys >> bits) + first, keys & ((1 << bits) - 1)


@long_entry
def fill_rows(starts, deadlines, times, later, ids, ops, delays, rows):
    """Merge the starts and the later operations into `rows`.

    `later`, `ops` and `delays` are those of the operations in `times`; `ids` has the id of each
    member. The last members are those of `starts`.
    """
    s = k = 0
    old = ids.size - starts.size
    for row in range(rows.time.size):
        # At the same time, a member's start precedes its later operations.
        if k == times.size or (
            s < starts.size
            and (starts[s] < times[k] or (starts[s] == times[k] and old + s <= later[k]))
        ):
            rows.time[row], rows.op[row] = starts[s], START
            rows.id[row], rows.deadline[row] = ids[old + s], deadlines[s]
            s += 1
        else:
            rows.time[row], rows.op[row] = times[k], ops[k]
            rows.id[row] = ids[later[k]]
            rows.deadline[row] = 0 if ops[k] == CANCEL else times[k] + delays[k]
            k += 1
