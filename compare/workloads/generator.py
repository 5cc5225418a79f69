"""Merges the operations of many members into one tape, piece by piece, and gives out ids.

Members arrive in order, in blocks. The *horizon* is the time before which no member of a later
block arrives. All operations before the horizon are therefore known: they are sorted and given out.
So memory holds the members under way, the operations that they still have to do, and some blocks,
however long the tape grows.
"""

# ruff: noqa: ANN001, ANN201  # compiled functions are typed by their arguments
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from compare.tapes.ids import Ids, release_id, take_id
from compare.tapes.tape import ARM, CANCEL, DTYPES, START, Tape, joined, part
from timers.kernels.jit import entry

PIECE = 1 << 20
"""Rows of a piece; the last may have fewer."""

_BATCH = 1 << 17
"""Events that are sorted together: enough to hide the cost of calls; they fit in a cache."""

NEVER = 2**62 - 1
"""Later than every event."""

Int64s = npt.NDArray[np.int64]
END = ARM + 1
"""Not an operation: the member is over, and its id becomes free after this time."""


class Events(NamedTuple):
    """What members do: member by member, in the order of arrival, and each member's in its order.

    It starts first and ends last. A moment is twice a time, plus 1 for an END: at one time, ids
    become free after all operations.
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


_NOBODY, _NEVER = np.empty(0, np.int32), np.empty(0, np.int64)


def events_of(
    starts: Int64s,
    deadlines: Int64s,
    ends: Int64s,
    later: npt.NDArray[np.int32] = _NOBODY,
    times: Int64s = _NEVER,
    op: int = ARM,
    delay: int = 0,
) -> Events:
    """The events of a block's members.

    Member k starts at `starts[k]`, which never decreases, and is over at `ends[k]`. Between them
    the members `later`, which never decrease, have operations `op` at `times`, which never decrease
    within a member; the deadlines of these are `delay` later, or 0 for a cancel.
    """
    events = Events.empty(2 * len(starts) + len(later))
    fill_events(starts, deadlines, ends, later, times, op, delay, events)
    return events


@entry
def fill_events(starts, deadlines, ends, later, times, op, delay, events):
    """Write the events of each member, in order."""
    row = k = 0
    for member in range(starts.size):
        events.moment[row], events.deadline[row] = 2 * starts[member], deadlines[member]
        events.member[row], events.op[row] = member, START
        row += 1
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
    block: Callable[[int], Events], horizon: Callable[[int], int], blocks: int
) -> Iterator[Tape]:
    """The operations of all members, in order, with ids; as many at a time as suits.

    `block(k)` makes the events of block k, and is called for blocks 0 to `blocks - 1` in order, as
    they are needed. No member of block k or a later one starts before `horizon(k)`, which is NEVER
    if no block follows. At one time, members act in the order of arrival.
    """
    # The events to come of the members under way, and the ids of these.
    pool, ids, free_ids = Events.empty(0), np.empty(0, np.int32), Ids()
    made = batch = 0
    while made < blocks:
        # Twice as many as before: a short tape needs few blocks, and a long one must not go
        # through the members under way again and again.
        batch = min(max(2 * batch, 1), max(_BATCH, len(pool.op)))
        added: list[Events] = []
        members = len(ids)
        while made < blocks and sum(len(events.op) for events in added) < batch:
            events = block(made)
            added.append(events._replace(member=events.member + np.int32(members)))
            members = int(added[-1].member[-1]) + 1
            made += 1
        pool = Events(*map(np.concatenate, zip(pool, *added, strict=True)))
        ids = np.concatenate([ids, np.empty(members - len(ids), np.int32)])
        free_ids.reserve(members)
        # At the horizon itself these members precede those to come; but who ends there may still
        # be followed by a start.
        last = 2 * horizon(made)
        order = _in_order(pool.moment, last)
        rows = Tape(*(np.empty(len(order), dtype) for dtype in DTYPES))
        filled = fill_rows(pool, order, ids, free_ids.ring, free_ids.state, rows)
        yield part(rows, 0, filled)
        left, members = keep_later(pool, ids, last)
        pool, ids = pool.first(left), ids[:members]


def _in_order(moments: Int64s, last: int) -> npt.NDArray[np.int64]:
    """The places of the moments up to the last, by moment; those of one moment as they stand."""
    keys, bits = np.empty(len(moments), np.int64), len(moments).bit_length()
    first, last = int(moments.min()), min(last, int(moments.max()))
    if (last - first).bit_length() + bits > 63:
        return np.argsort(moments, kind="stable")[: np.count_nonzero(moments <= last)]
    # Integers that hold moment and place are sorted twice as fast.
    found = keys[: pack_keys(moments, first, last, bits, keys)]
    found.sort()
    found &= (1 << bits) - 1
    return found


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
def fill_rows(events, order, ids, ring, state, rows):
    """Write the operations among the events, in this order, and return how many there are.

    `ids` holds the id of each member that has started; `ring` and `state` are those of `Ids`.
    """
    row = 0
    for k in order:
        member, op = events.member[k], events.op[k]
        if op == END:
            release_id(ring, state, ids[member])
            continue
        if op == START:
            ids[member] = take_id(ring, state)
        rows.time[row], rows.op[row] = events.moment[k] >> 1, op
        rows.id[row], rows.deadline[row] = ids[member], events.deadline[k]
        row += 1
    return row


def in_pieces(tapes: Iterable[Tape], operations: int | None) -> Iterator[Tape]:
    """The operations of tapes that follow each other, PIECE at a time, and of the rest the last.

    They end after so many `operations`, or with the tapes.
    """
    held: list[Tape] = []
    rows = 0
    for tape in tapes:
        rows += len(tape.time)
        while rows >= (size := PIECE if operations is None else min(PIECE, operations)):
            cut = len(tape.time) - (rows - size)
            yield joined([*held, part(tape, 0, cut)])
            held, tape, rows = [], part(tape, cut), rows - size
            if operations is not None:
                operations -= size
                if operations == 0:
                    return
        held.append(tape)
    if rows:
        yield joined(held)
