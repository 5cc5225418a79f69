"""Blocks of members, each with a life of operations, woven into one tape, piece by piece, with ids.

Members arrive in order, and a block's before the next one's. So whatever comes before the moment at
which the next block may begin, the *horizon*, is known once the blocks before it are: it is put in
order and given out. What is held is the members under way, what they have still to do, and some
blocks, however long the tape grows.
"""

# ruff: noqa: ANN001, ANN201  # compiled functions are typed by their arguments
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from compare.tapes.tape import START, Tape
from timers.kernels.jit import entry

PIECE = 1 << 20
"""Rows of a piece; the last may have fewer."""

_BATCH = 1 << 17
"""Operations that are put in order together: enough that calls cost nothing, few enough for a
processor's cache.
"""

NEVER = 2**63 - 2
"""Later than every operation and every end."""

Int64s = npt.NDArray[np.int64]


class Events(NamedTuple):
    """What a block's members do: each starts once, and then does what it does later, if
    anything.
    """

    starts: Int64s  # (members,), units, in the order of arrival; never decreases
    deadlines: Int64s  # (members,), set by the start
    ends: Int64s  # (members,), when it is over and its id free; not before any of its operations
    # (later operations,), whose each is: a position in `starts`; never decreases
    owner: npt.NDArray[np.int32]
    time: Int64s  # of each later operation; not before its start; never decreases within a member
    op: npt.NDArray[np.int8]
    deadline: Int64s


class Weaver:
    """An iterator of a tape's pieces, of PIECE operations each; the last may have fewer.

    `block(k)` makes the events of block k; blocks `0 .. blocks - 1` are asked for, in order, as
    they are needed. No member of block k or a later one starts before `horizon(k)`, which is NEVER
    where no block follows. At one time members take their turns as they arrived. It ends after the
    first `operations`, or all that come up to the last horizon. After a piece, `id_space` is the
    number of ids in it and the ones before, and `rows` that of operations.
    """

    def __init__(
        self,
        block: Callable[[int], Events],
        horizon: Callable[[int], int],
        blocks: int,
        operations: int | None = None,
    ) -> None:
        self.rows = self.id_space = 0
        self._block, self._horizon, self._blocks, self._operations = (
            block,
            horizon,
            blocks,
            operations,
        )
        self._pieces = self._weave()

    def __iter__(self) -> Iterator[Tape]:
        return self

    def __next__(self) -> Tape:
        return next(self._pieces)

    def _weave(self) -> Iterator[Tape]:
        pool, place = _Pool(), np.zeros(_PLACES, np.int64)
        room, filled = self._room(), 0
        made = batch = 0
        while made < self._blocks:
            # Twice as many as before, so that a short tape is not made from a long one; and not so
            # few that what is under way would be looked through again and again.
            batch = min(max(2 * batch, 1), max(_BATCH, pool.size // 2))
            events: list[Events] = []
            while made < self._blocks and sum(len(e.starts) + len(e.time) for e in events) < batch:
                events.append(self._block(made))
                made += 1
            horizon = self._horizon(made)
            pool.add(events, horizon, place)
            done = False
            while not done:
                done = pool.weave(place, filled, room)
                self.rows += int(place[_FILLED]) - filled
                filled = int(place[_FILLED])
                self.id_space = int(place[_ID_SPACE])
                if filled == len(room.time):
                    yield room
                    room, filled = self._room(), 0
                    if not len(room.time):
                        return
            pool.drop(horizon, place)
        if filled:
            # A copy, or a few rows would keep the memory of many.
            time, op, ids, deadline = room
            yield Tape(
                time[:filled].copy(),
                op[:filled].copy(),
                ids[:filled].copy(),
                deadline[:filled].copy(),
            )

    def _room(self) -> Tape:
        size = PIECE if self._operations is None else min(PIECE, self._operations - self.rows)
        return Tape(
            np.empty(size, np.int64),
            np.empty(size, np.int8),
            np.empty(size, np.int32),
            np.empty(size, np.int64),
        )


_NEXT_START, _NEXT_LATER, _NEXT_LEAVER, _FREE, _ID_SPACE, _FILLED, _UNDER_WAY, _TO_DO, _PLACES = (
    range(9)
)
"""Where the weaving stands, in one array, so that compiled code can go on from there."""


class _Pool:
    """The members under way, with those of the blocks at hand behind them, and what they have still
    to do.
    """

    def __init__(self) -> None:
        self._ends, self._ids = np.empty(0, np.int64), np.empty(0, np.int32)
        self._owner, self._time = np.empty(0, np.int32), np.empty(0, np.int64)
        self._op, self._deadline = np.empty(0, np.int8), np.empty(0, np.int64)
        self._starts = self._deadlines = self._leavers = self._due = np.empty(0, np.int64)
        self._leaving = self._later = np.empty(0, np.int32)
        self._free = np.empty(0, np.int32)

    @property
    def size(self) -> int:
        return len(self._ends) + len(self._time)

    def add(self, events: list[Events], horizon: int, place: npt.NDArray[np.int64]) -> None:
        """Take in further blocks, and put in order what comes before the horizon."""
        before = len(self._ends)
        members = np.cumsum([before, *(len(e.starts) for e in events)]).tolist()
        self._starts = np.concatenate([e.starts for e in events])
        self._deadlines = np.concatenate([e.deadlines for e in events])
        self._ends = np.concatenate([self._ends, *(e.ends for e in events)])
        self._ids = np.concatenate([self._ids, np.empty(len(self._starts), np.int32)])
        owners = (e.owner + np.int32(first) for e, first in zip(events, members[:-1], strict=True))
        self._owner = np.concatenate([self._owner, *owners])
        self._time = np.concatenate([self._time, *(e.time for e in events)])
        self._op = np.concatenate([self._op, *(e.op for e in events)])
        self._deadline = np.concatenate([self._deadline, *(e.deadline for e in events)])
        # As these stand by member, and a member's operations in their order, sorting them by time
        # alone will do. At the horizon itself these members precede those to come; but who ends
        # there may still be followed by a start.
        self._later, self._due = _in_order(self._time, horizon + 1)
        self._leaving, self._leavers = _in_order(self._ends, horizon)
        ids = int(place[_ID_SPACE]) + len(self._starts)
        if len(self._free) < ids:
            self._free = np.concatenate([self._free, np.empty(2 * ids - len(self._free), np.int32)])
        place[[_NEXT_START, _NEXT_LATER, _NEXT_LEAVER]] = 0

    def weave(self, place: npt.NDArray[np.int64], filled: int, room: Tape) -> bool:
        """Fill `room` from row `filled` on; returns whether all that is in order has found room."""
        place[_FILLED] = filled
        done = weave_rows(
            self._starts,
            self._deadlines,
            self._ids,
            self._leavers,
            self._leaving,
            self._due,
            self._later,
            self._owner,
            self._op,
            self._deadline,
            self._free,
            place,
            *room,
        )
        return bool(done)

    def drop(self, horizon: int, place: npt.NDArray[np.int64]) -> None:
        """Forget what is over at the horizon."""
        moved = np.empty(len(self._ends), np.int32)
        drop_rows(
            self._ends,
            self._ids,
            self._owner,
            self._time,
            self._op,
            self._deadline,
            horizon,
            moved,
            place,
        )
        members, operations = int(place[_UNDER_WAY]), int(place[_TO_DO])
        self._ends, self._ids = self._ends[:members], self._ids[:members]
        self._owner, self._time = self._owner[:operations], self._time[:operations]
        self._op, self._deadline = self._op[:operations], self._deadline[:operations]


def _in_order(times: Int64s, horizon: int) -> tuple[npt.NDArray[np.int32], Int64s]:
    """The positions of the times before the horizon, by time, those of one time as they stand; and
    these times.
    """
    room, spare = (
        (np.empty(len(times), np.int32), np.empty(len(times), np.int64)) for _ in range(2)
    )
    found = sort_before(times, horizon, *room, *spare, np.empty(1 << _DIGIT, np.int64))
    return room[0][:found], room[1][:found]


_DIGIT = 11
"""Bits by which a pass of the radix sort divides: a table of 16 kB stays in a processor's first
cache.
"""


@entry
def sort_before(times, horizon, positions, keys, spare_positions, spare_keys, counts):
    """Fill `positions` and `keys`, the times themselves, and return how many there are. A stable
    radix sort.
    """
    found = 0
    lowest = highest = before = 0
    is_sorted = True
    for k in range(times.size):
        t = times[k]
        if t < horizon:
            if found == 0:
                lowest = highest = t
            elif t < before:
                is_sorted = False
            lowest, highest = min(lowest, t), max(highest, t)
            before = t
            keys[found] = t
            positions[found] = k
            found += 1
    if is_sorted:
        return found
    bits = 0
    while (highest - lowest) >> bits > 0:
        bits += 1
    # An even number of passes ends where it began.
    passes = 2 * -(-bits // (2 * _DIGIT))
    digit = -(-bits // passes)
    mask = (1 << digit) - 1
    for number in range(passes):
        shift = number * digit
        counts[:] = 0
        for k in range(found):
            counts[((keys[k] - lowest) >> shift) & mask] += 1
        total = 0
        for value in range(mask + 1):
            here = counts[value]
            counts[value] = total
            total += here
        for k in range(found):
            value = ((keys[k] - lowest) >> shift) & mask
            spare_keys[counts[value]] = keys[k]
            spare_positions[counts[value]] = positions[k]
            counts[value] += 1
        keys, spare_keys = spare_keys, keys
        positions, spare_positions = spare_positions, positions
    return found


@entry
def weave_rows(
    starts,
    deadlines,
    ids,
    leavers,
    leaving,
    due,
    later,
    owner,
    op,
    deadline,
    free,
    place,
    out_time,
    out_op,
    out_id,
    out_deadline,
):
    """Fill the four columns from row `place[_FILLED]` on; returns whether all is done, else there
    was no room left.

    A member takes the id that was freed last, or a new one. An id is free after the moment in which
    its member ends: only then has every operation on it been seen, and every exact timer fired.
    `leavers` are the ends before the horizon, of the members `leaving`; `due` are the times of the
    operations `later`; `free` is a stack of ids.
    """
    s, k, left, row = place[_NEXT_START], place[_NEXT_LATER], place[_NEXT_LEAVER], place[_FILLED]
    top, id_space = place[_FREE], place[_ID_SPACE]
    old = ids.size - starts.size
    while row < out_time.size and (s < starts.size or k < due.size):
        # Its own start precedes what a member does in the same moment.
        is_start = k == due.size
        if not is_start and s < starts.size:
            is_start = starts[s] < due[k] or (starts[s] == due[k] and old + s <= owner[later[k]])
        t = starts[s] if is_start else due[k]
        while left < leavers.size and leavers[left] < t:
            free[top] = ids[leaving[left]]
            top += 1
            left += 1
        out_time[row] = t
        if is_start:
            if top > 0:
                top -= 1
                ids[old + s] = free[top]
            else:
                ids[old + s] = id_space
                id_space += 1
            out_op[row] = START
            out_id[row] = ids[old + s]
            out_deadline[row] = deadlines[s]
            s += 1
        else:
            place_in_pool = later[k]
            out_op[row] = op[place_in_pool]
            out_id[row] = ids[owner[place_in_pool]]
            out_deadline[row] = deadline[place_in_pool]
            k += 1
        row += 1
    is_done = s == starts.size and k == due.size
    if is_done:
        # What follows is beyond the horizon, and these ends are before it.
        while left < leavers.size:
            free[top] = ids[leaving[left]]
            top += 1
            left += 1
    place[_NEXT_START], place[_NEXT_LATER], place[_NEXT_LEAVER], place[_FILLED] = s, k, left, row
    place[_FREE], place[_ID_SPACE] = top, id_space
    return is_done


@entry
def drop_rows(ends, ids, owner, time, op, deadline, horizon, moved, place):
    """Move the members that do not end before the horizon, and operations beyond it, to the front
    of their arrays.

    `moved` is room for the members' new places.
    """
    members = 0
    for k in range(ends.size):
        moved[k] = members
        if ends[k] >= horizon:
            ends[members] = ends[k]
            ids[members] = ids[k]
            members += 1
    operations = 0
    for k in range(time.size):
        if time[k] > horizon:
            owner[operations] = moved[owner[k]]
            time[operations] = time[k]
            op[operations] = op[k]
            deadline[operations] = deadline[k]
            operations += 1
    place[_UNDER_WAY], place[_TO_DO] = members, operations
