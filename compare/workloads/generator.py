"""Merges the operations of many members into one tape, piece by piece, and gives out ids.

Members arrive in order, in blocks. The *horizon* is the time before which no member of a later
block arrives. All operations before the horizon are therefore known: they are sorted and given out.
So memory holds the members under way, the operations that they still have to do, and some blocks,
however long the tape grows.
"""

# ruff: noqa: ANN001, ANN201  # compiled functions are typed by their arguments
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from compare.tapes.ids import Ids, release_id, take_id
from compare.tapes.tape import DTYPES, START, Tape
from timers.kernels.jit import entry

PIECE = 1 << 20
"""Rows of a piece; the last may have fewer."""

_BATCH = 1 << 17
"""Operations that are sorted together: enough to hide the cost of calls; they fit in a cache."""

NEVER = 2**63 - 2
"""Later than every operation and every end."""

Int64s = npt.NDArray[np.int64]


class Events(NamedTuple):
    """What the members of a block do: each starts once, and may have later operations."""

    starts: Int64s  # (members,), units, in the order of arrival; never decreases
    deadlines: Int64s  # (members,), set by the start
    ends: Int64s  # (members,), when it is over and its id free; not before any of its operations
    # (later operations,), whose each is: a position in `starts`; never decreases
    owner: npt.NDArray[np.int32]
    time: Int64s  # of each later operation; not before its start; never decreases within a member
    op: npt.NDArray[np.int8]
    deadline: Int64s


class TapeGenerator:
    """An iterator of a tape's pieces, of PIECE operations each; the last may have fewer.

    `block(k)` makes the events of block k, and is called for blocks 0 to `blocks - 1` in order, as
    they are needed. No member of block k or a later one starts before `horizon(k)`, which is NEVER
    if no block follows. At one time, members act in the order of arrival. The tape ends after
    `operations`, or at the last horizon. After a piece, `id_space` and `rows` count the ids and the
    operations so far.
    """

    def __init__(
        self,
        block: Callable[[int], Events],
        horizon: Callable[[int], int],
        blocks: int,
        operations: int | None = None,
    ) -> None:
        self.rows = self.id_space = 0
        self._block, self._horizon = block, horizon
        self._blocks, self._operations = blocks, operations
        self._pieces = self._generate()

    def __iter__(self) -> Iterator[Tape]:
        return self

    def __next__(self) -> Tape:
        return next(self._pieces)

    def _generate(self) -> Iterator[Tape]:
        pool, cursor = _Pool(), np.zeros(_CELLS, np.int64)
        buffer, filled = self._buffer(), 0
        made = batch = 0
        while made < self._blocks:
            # Twice as many as before: a short tape needs few blocks, and a long one must not go
            # through the members under way again and again.
            batch = min(max(2 * batch, 1), max(_BATCH, pool.size // 2))
            events: list[Events] = []
            while made < self._blocks and sum(len(e.starts) + len(e.time) for e in events) < batch:
                events.append(self._block(made))
                made += 1
            horizon = self._horizon(made)
            pool.add(events, horizon, cursor)
            done = False
            while not done:
                done = pool.merge(cursor, filled, buffer)
                self.rows += int(cursor[_FILLED]) - filled
                filled = int(cursor[_FILLED])
                self.id_space = pool.id_space
                if filled == len(buffer.time):
                    yield buffer
                    buffer, filled = self._buffer(), 0
                    if not len(buffer.time):
                        return
            pool.drop(horizon, cursor)
        if filled:
            # A copy, or a few rows would keep the memory of many.
            time, op, ids, deadline = buffer
            yield Tape(
                time[:filled].copy(),
                op[:filled].copy(),
                ids[:filled].copy(),
                deadline[:filled].copy(),
            )

    def _buffer(self) -> Tape:
        size = PIECE if self._operations is None else min(PIECE, self._operations - self.rows)
        return Tape(*(np.empty(size, dtype) for dtype in DTYPES))


_NEXT_START, _NEXT_LATER, _NEXT_LEAVER, _FILLED, _UNDER_WAY, _TO_DO, _CELLS = range(7)
"""Cells of the cursor: how far the merge has come, from which compiled code resumes."""


class _Pool:
    """The members under way, followed by those of the new blocks, and their later operations."""

    def __init__(self) -> None:
        self._ends, self._ids = np.empty(0, np.int64), np.empty(0, np.int32)
        self._owner, self._time = np.empty(0, np.int32), np.empty(0, np.int64)
        self._op, self._deadline = np.empty(0, np.int8), np.empty(0, np.int64)
        self._starts = self._deadlines = self._leavers = self._due = np.empty(0, np.int64)
        self._leaving = self._later = np.empty(0, np.int32)
        self._free_ids = Ids()

    @property
    def id_space(self) -> int:
        """The number of ids so far."""
        return self._free_ids.id_space

    @property
    def size(self) -> int:
        return len(self._ends) + len(self._time)

    def add(self, events: list[Events], horizon: int, cursor: npt.NDArray[np.int64]) -> None:
        """Add blocks, and sort what comes before the horizon."""
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
        self._free_ids.reserve(len(self._starts))
        cursor[[_NEXT_START, _NEXT_LATER, _NEXT_LEAVER]] = 0

    def merge(self, cursor: npt.NDArray[np.int64], filled: int, buffer: Tape) -> bool:
        """Fill `buffer` from row `filled` on; returns whether all that is sorted was written."""
        cursor[_FILLED] = filled
        done = merge_rows(
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
            self._free_ids.ring,
            self._free_ids.state,
            cursor,
            *buffer,
        )
        return bool(done)

    def drop(self, horizon: int, cursor: npt.NDArray[np.int64]) -> None:
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
            cursor,
        )
        members, operations = int(cursor[_UNDER_WAY]), int(cursor[_TO_DO])
        self._ends, self._ids = self._ends[:members], self._ids[:members]
        self._owner, self._time = self._owner[:operations], self._time[:operations]
        self._op, self._deadline = self._op[:operations], self._deadline[:operations]


def _in_order(times: Int64s, horizon: int) -> tuple[npt.NDArray[np.int32], Int64s]:
    """The positions of the times before the horizon, by time, those of one time as they stand; and
    these times.
    """
    buffer, spare = (
        (np.empty(len(times), np.int32), np.empty(len(times), np.int64)) for _ in range(2)
    )
    found = sort_before(times, horizon, *buffer, *spare, np.empty(1 << _DIGIT, np.int64))
    return buffer[0][:found], buffer[1][:found]


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
def merge_rows(
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
    ring,
    state,
    cursor,
    out_time,
    out_op,
    out_id,
    out_deadline,
):
    """Fill the columns from row `cursor[_FILLED]` on; returns whether all is done or they are full.

    An id is freed after the time at which its member ends. By then every operation on it has been
    done, and every exact timer has fired.
    `leavers` are the ends before the horizon, of the members `leaving`; `due` are the times of the
    operations `later`; `ring` and `state` are those of `Ids`.
    """
    s, k, left, row = (
        cursor[_NEXT_START],
        cursor[_NEXT_LATER],
        cursor[_NEXT_LEAVER],
        cursor[_FILLED],
    )
    old = ids.size - starts.size
    while row < out_time.size and (s < starts.size or k < due.size):
        # Its own start precedes what a member does in the same moment.
        is_start = k == due.size
        if not is_start and s < starts.size:
            is_start = starts[s] < due[k] or (starts[s] == due[k] and old + s <= owner[later[k]])
        t = starts[s] if is_start else due[k]
        while left < leavers.size and leavers[left] < t:
            release_id(ring, state, ids[leaving[left]])
            left += 1
        out_time[row] = t
        if is_start:
            ids[old + s] = take_id(ring, state)
            out_op[row] = START
            out_id[row] = ids[old + s]
            out_deadline[row] = deadlines[s]
            s += 1
        else:
            row_in_pool = later[k]
            out_op[row] = op[row_in_pool]
            out_id[row] = ids[owner[row_in_pool]]
            out_deadline[row] = deadline[row_in_pool]
            k += 1
        row += 1
    is_done = s == starts.size and k == due.size
    if is_done:
        # What follows is beyond the horizon, and these ends are before it.
        while left < leavers.size:
            release_id(ring, state, ids[leaving[left]])
            left += 1
    cursor[_NEXT_START], cursor[_NEXT_LATER], cursor[_NEXT_LEAVER], cursor[_FILLED] = (
        s,
        k,
        left,
        row,
    )
    return is_done


@entry
def drop_rows(ends, ids, owner, time, op, deadline, horizon, moved, cursor):
    """Move the members that do not end before the horizon, and operations beyond it, to the front
    of their arrays.

    `moved` is scratch space for the members' new places.
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
    cursor[_UNDER_WAY], cursor[_TO_DO] = members, operations
