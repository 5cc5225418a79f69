"""Merges the operations of many members into one tape, piece by piece, and gives out ids.

Members arrive in order, in blocks. The *horizon* is the time before which no member of a later
block arrives. All operations before the horizon are therefore known and given out. The starts are
in order already; only what follows them is sorted.
So memory holds the members under way, the operations that they still have to do, and some blocks,
however long the tape grows.
"""

# ruff: noqa: ANN001, ANN201  # compiled functions are typed by their arguments
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from compare.tapes.ids import Ids, release_id, take_id
from compare.tapes.tape import ARM, CANCEL, DTYPES, START, Tape, joined, part
from timers.kernels.jit import entry

PIECE = 1 << 20
"""Rows of a piece; the last may have fewer."""

_BATCH = 1 << 16
"""Events that are merged together: enough to hide the cost of calls; they fit in a cache."""

NEVER = 2**62 - 1
"""Later than every event."""

Int64s = npt.NDArray[np.int64]
END = ARM + 1
"""Not an operation: the member is over, and its id becomes free after this time."""


def copy(source: Iterable[Any], target: Iterable[Any]) -> None:
    """Copy columns to the beginning of others."""
    for old, new in zip(source, target, strict=True):
        new[: len(old)] = old


class Events(NamedTuple):
    """What members do after their starts: member by member, in the order of arrival.

    Each member's events are in order, and its END is the last. A moment is twice a time, plus 1 for
    an END: at one time, ids become free after all operations.
    """

    moment: Int64s
    deadline: Int64s
    member: npt.NDArray[np.int32]
    op: npt.NDArray[np.int8]

    @classmethod
    def empty(cls, size: int) -> "Events":
        """Room for so many events."""
        moment, deadline = np.empty((2, size), np.int64)
        return cls(moment, deadline, np.empty(size, np.int32), np.empty(size, np.int8))

    def first(self, size: int) -> "Events":
        """The first events."""
        return Events(self.moment[:size], self.deadline[:size], self.member[:size], self.op[:size])

    def extended(self, size: int, events: "Events", members: int) -> "Events":
        """The first events and those of further members, in this memory if they fit."""
        end, room = size + len(events.op), self
        if end > len(self.op):
            room = Events.empty(2 * end)
            copy(self.first(size), room)
        copy(events, [column[size:] for column in room])
        room.member[size:end] += members
        return room


class Block(NamedTuple):
    """The members of a block: they start at `starts`, which never decrease, with `deadlines`."""

    starts: Int64s
    deadlines: Int64s
    events: Events


_NOBODY, _NEVER = np.empty(0, np.int32), np.empty(0, np.int64)


def block_of(
    starts: Int64s,
    deadlines: Int64s,
    ends: Int64s,
    later: npt.NDArray[np.int32] = _NOBODY,
    times: Int64s = _NEVER,
    op: int = ARM,
    delay: int = 0,
) -> Block:
    """A block's members, and what they do.

    Member k starts at `starts[k]`, which never decreases, and is over at `ends[k]`. Between them
    the members `later`, which never decrease, have operations `op` at `times`, which never decrease
    within a member; the deadlines of these are `delay` later, or 0 for a cancel.
    """
    events = Events.empty(len(ends) + len(later))
    fill_events(ends, later, times, op, delay, events)
    return Block(starts, deadlines, events)


@entry
def fill_events(ends, later, times, op, delay, events):
    """Write the events of each member, in order."""
    row = k = 0
    for member in range(ends.size):
        while k < later.size and later[k] == member:
            events.moment[row] = 2 * times[k]
            events.deadline[row] = 0 if op == CANCEL else times[k] + delay
            events.member[row], events.op[row] = member, op
            k += 1
            row += 1
        events.moment[row], events.deadline[row] = 2 * ends[member] + 1, 0
        events.member[row], events.op[row] = member, END
        row += 1


def merge(
    block: Callable[[int], Block],
    horizon: Callable[[int], int],
    blocks: int,
    operations: int | None = None,
) -> Iterator[Tape]:
    """The operations of all members, in order, with ids, PIECE at a time, and of the rest the last.

    They end after so many `operations`, or with the members.

    `block(k)` makes block k, and is called for blocks 0 to `blocks - 1` in order, as they are
    needed. No member of block k or a later one starts before `horizon(k)`, which is NEVER if no
    block follows. At one time, members act in the order of arrival.
    """
    # The events to come of the members under way, which are the first in `room`, and their ids.
    # Memory is used again: pages that are new cost more than what is done with them.
    room, left, ids, free_ids = Events.empty(0), 0, np.empty(0, np.int32), Ids()
    remain = NEVER if operations is None else operations
    rows, filled = joined([]), 0
    made = batch = 0
    while made < blocks:
        # Twice as many as before: a short tape needs few blocks, and a long one must not go
        # through the members under way again and again.
        batch = min(max(2 * batch, 1), max(_BATCH, left))
        starts, deadlines = [_NEVER], [_NEVER]
        new = size = 0
        while made < blocks and size < batch:
            added = block(made)
            starts.append(added.starts)
            deadlines.append(added.deadlines)
            room = room.extended(left, added.events, len(ids) + new)
            left += len(added.events.op)
            new += len(added.starts)
            size += len(added.starts) + len(added.events.op)
            made += 1
        pool = room.first(left)
        ids = np.concatenate([ids, np.empty(new, np.int32)])
        free_ids.reserve(new)
        # At the horizon itself these members precede those to come; but who ends there may still
        # be followed by a start.
        last = 2 * horizon(made)
        moments, places = _in_order(pool.moment, last)
        rows = with_room(rows, filled, new + len(places))
        began = np.concatenate(starts), np.concatenate(deadlines)
        state = free_ids.ring, free_ids.state
        filled = fill_rows(*began, moments, places, pool, ids, *state, rows, filled)
        while filled >= (size := min(PIECE, remain)):
            yield part(rows, 0, size)
            remain -= size
            if remain == 0:
                return
            rows, filled = with_room(part(rows, size), filled - size, PIECE), filled - size
        left, members = keep_later(pool, ids, last)
        ids = ids[:members]
    if filled:
        # A copy, or a few rows would keep the memory of many.
        yield joined([part(rows, 0, filled), part(rows, 0, 0)])


def with_room(rows: Tape, filled: int, more: int) -> Tape:
    """The first rows, and room for so many more: in the same memory if they fit."""
    if filled + more <= len(rows.time):
        return rows
    room = Tape(*(np.empty(max(PIECE, filled) + more, dtype) for dtype in DTYPES))
    copy(part(rows, 0, filled), room)
    return room


def _in_order(moments: Int64s, last: int) -> tuple[Int64s, Int64s]:
    """The moments up to the last, in order, and their places; those of one moment as they stand."""
    keys, bits = np.empty(len(moments), np.int64), len(moments).bit_length()
    first, last = int(moments.min()), min(last, int(moments.max()))
    if (last - first).bit_length() + bits > 63:
        places = np.argsort(moments, kind="stable")[: np.count_nonzero(moments <= last)]
        return moments[places], places
    # Integers that hold moment and place are sorted twice as fast.
    found = keys[: pack_keys(moments, first, last, bits, keys)]
    if (found[1:] < found[:-1]).any():
        found.sort()
    return (found >> bits) + first, found & ((1 << bits) - 1)


@entry
def pack_keys(moments, first, last, bits, keys):
    """Fill `keys` with the moments up to the last, from `first`, above their places; count them."""
    found = 0
    for k in range(moments.size):
        keys[found] = (moments[k] - first) << bits | k
        found += moments[k] <= last
    return found


@entry
def keep_later(events, ids, last):
    """Move the events after this moment to the front, and the ids of the members that have some.

    Returns how many events and members these are; the members are renumbered.
    """
    row = members = 0
    for k in range(events.moment.size):
        if events.moment[k] > last:
            member, op = events.member[k], events.op[k]
            events.moment[row], events.deadline[row] = events.moment[k], events.deadline[k]
            events.member[row], events.op[row] = members, op
            row += 1
            if op == END:
                ids[members] = ids[member]
                members += 1
    return row, members


@entry
def fill_rows(starts, deadlines, moments, places, events, ids, ring, state, rows, row):
    """Write the starts and the operations among the events, merged, from `row` on.

    Returns the row after the last.

    `moments` are those of the events at `places`, in order. `ids` has the id of each member that
    has started; the last are for those of `starts`. `ring` and `state` are those of `Ids`.
    """
    s = k = 0
    under_way = ids.size - starts.size
    while s < starts.size or k < places.size:
        is_start = k == places.size
        if not is_start and s < starts.size:
            # Its own start precedes what a member does in the same moment.
            is_start = 2 * starts[s] < moments[k] or (
                2 * starts[s] == moments[k] and under_way + s <= events.member[places[k]]
            )
        if is_start:
            identity = take_id(ring, state)
            ids[under_way + s] = identity
            rows.time[row], rows.op[row] = starts[s], START
            rows.id[row], rows.deadline[row] = identity, deadlines[s]
            s += 1
            row += 1
            continue
        moment, place = moments[k], places[k]
        identity = ids[events.member[place]]
        k += 1
        if moment & 1:  # an END
            release_id(ring, state, identity)
            continue
        rows.time[row], rows.op[row] = moment >> 1, events.op[place]
        rows.id[row], rows.deadline[row] = identity, events.deadline[place]
        row += 1
    return row
