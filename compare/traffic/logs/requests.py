"""Turn requests, in the order of their starts, into a tape.

The rows of a shard come in pieces. The memory does not grow with the log: when many timers are
pending at once, most of them wait in a file. The tape does not depend on how the rows are divided.
"""

# ruff: noqa: ANN001, ANN202  # compiled functions are typed by their arguments
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from compare.traffic.logs.rows import END
from compare.traffic.logs.sorting import Key, Piece, Waiting, before, by_time, joined_pieces
from compare.traffic.tapes.tape import CANCEL, DTYPES, START, Tape, joined
from timers.arrays import Bools, Int32s, Int64s
from timers.kernels.jit import long_entry
from timers.kernels.operations import NONE
from timers.limits import LIMIT

_GATHER = 1 << 16
"""Rows that are gathered before they are processed, to spread NumPy's cost per call."""
_PENDING = 1 << 19
"""Pending timers that are held in memory: 12 MB, and several times that while they are sorted."""

EMPTY = joined([])
_NONE: Piece = (np.empty(0, np.int64),) * 3


class _Rows(NamedTuple):
    """Requests in the order of their starts, as arrays of one length."""

    start: Int64s
    leave: Int64s  # when its id comes free: the time of its cancel, or its deadline
    rank: Int64s  # its position in the log, with END if it is cancelled at that time


class RequestTape:
    """The tape of requests: each row starts a timer, and an answer in time cancels it.

    At one time, operations stand in the order of the log's rows, and a row's start precedes its
    cancel. An id comes free when its timer is cancelled or due, since no later operation refers to
    it. A start may take it over at that time. Ids are reused in the order in which they came free,
    so there are exactly as many as are in use at once.

    Pending timers are rows whose time is that at which they leave, whose value is their id, and
    whose position is their rank: at one time, the ids of due timers come free before any operation.
    """

    def __init__(self, timeout: int, waiting: Waiting) -> None:
        self._timeout = timeout
        self._gathered: list[_Rows] = []
        self._rows = 0
        self._pending: Piece = _NONE  # in order
        self._waiting = waiting  # more of them
        self._free: deque[Int32s] = deque()  # ids, in the order in which they came free
        self._id_space = 0

    def add(self, start: Int64s, end: Int64s, answered: Bools, position: Int64s) -> Iterator[Tape]:
        """Add rows, in the order of (start, position).

        `end` counts only where `answered`, and is then in [start, start + timeout). Yields the next
        operations, none while rows are being gathered. Amortized O(log n) per row.
        """
        if not len(start):
            return
        leave = np.where(answered, end, start + self._timeout)
        self._gathered.append(_Rows(start, leave, position + END * answered))
        self._rows += len(start)
        # As many as are pending, because each round sorts the pending ones again.
        if self._rows >= max(_GATHER, len(self._pending[0])):
            yield from self._settle(last=False)

    def finish(self) -> Iterator[Tape]:
        """The remaining operations."""
        if self._gathered or len(self._pending[0]) or self._waiting.first:
            yield from self._settle(last=True)

    def _settle(self, *, last: bool) -> Iterator[Tape]:
        """Start the timers that were gathered, and end those that end before the last start.

        After the last rows, end all.
        """
        columns = zip(_NONE, *self._gathered, strict=True)
        rows = _Rows._make(map(np.concatenate, columns))
        self._gathered, self._rows = [], 0
        until = LIMIT if last else int(rows.start[-1])
        while True:
            horizon = self._load(until)
            tape, started = self._merged(rows, horizon, last=last)
            yield tape
            rows = _Rows._make(column[started:] for column in rows)
            if horizon is None:
                break
        if len(self._pending[0]) >= _PENDING:
            self._waiting.add(self._pending)
            self._pending = _NONE

    def _load(self, until: int) -> Key | None:
        """Load timers that leave up to a time; return the key of the first that is left, if any."""
        loaded, rows = [self._pending], 0
        while (first := self._waiting.first) is not None and first[0] <= until:
            if rows >= _PENDING:
                break
            loaded.append(self._waiting.take())
            rows += len(loaded[-1][0])
        else:
            first = None
        self._pending = joined_pieces(loaded)
        return first

    def _merged(self, rows: _Rows, horizon: Key | None, *, last: bool) -> tuple[Tape, int]:
        """The operations of rows and pending timers, and how many rows have started.

        With a horizon, timers that leave from there on are not all known.
        """
        pending, count = len(self._pending[0]), len(rows.start)
        leave = np.concatenate([self._pending[0], rows.leave])
        ids = np.concatenate([self._pending[1], np.empty(count, np.int64)])
        rank = np.concatenate([self._pending[2], rows.rank])
        order = by_time(leave, rank)
        known = len(order) if horizon is None else before(leave[order], rank[order], horizon)
        front: list[Int32s] = []
        while self._free and sum(map(len, front)) < count:
            front.append(self._free.popleft())
        free = np.concatenate([*front, np.empty(known, np.int32)])
        tape = Tape._make(np.empty(count + known, dtype) for dtype in DTYPES)
        limits = known, NONE if horizon is None else horizon[0], self._timeout, last
        kept = free, len(free) - known, self._id_space
        written, started, left, taken, freed, self._id_space = _merge(
            rows.start, leave, rank, ids, order, *limits, *kept, *tape
        )
        behind = max(taken, len(free) - known)
        self._free.appendleft(free[taken:behind].copy())
        if not last or started < count:
            self._free.append(free[behind:freed].copy())
        rest = order[left:]
        rest = rest[rest < pending + started]
        self._pending = leave[rest], ids[rest], rank[rest]
        return Tape._make(column[:written] for column in tape), started


@long_entry
def _merge(
    start,
    leave,
    rank,
    ids,
    order,
    known,
    horizon,
    timeout,
    last,
    free,
    freed,
    id_space,
    time,
    op,
    id,
    due,
):
    """Fill in the operations up to the last start, or all of them, as far as they are known.

    `leave`, `rank` and `ids` have the pending timers and then one for each start. `order` is that
    in which they leave. Its first ones are known, up to the horizon if there is one. Returns how
    many operations there are, how many rows have started, how many timers have left, how many free
    ids were taken and came, and how many ids there are.
    """
    written = left = taken = row = 0
    pending = leave.size - start.size
    while row < start.size + last:
        now = place = LIMIT
        if row < start.size:
            now, place = start[row], rank[pending + row] & (END - 1)
        while left < known:
            owner = order[left]
            end, answered = leave[owner], rank[owner] >= END
            if end > now or (answered and end == now and rank[owner] - END >= place):
                break
            if answered:
                time[written], op[written], id[written] = end, CANCEL, ids[owner]
                due[written] = 0
                written += 1
            free[freed] = ids[owner]
            freed += 1
            left += 1
        is_unknown = left == known and horizon != NONE and horizon <= now
        if is_unknown or row == start.size:
            break
        if taken < freed:
            ids[pending + row] = free[taken]
            taken += 1
        else:
            ids[pending + row] = id_space
            id_space += 1
        time[written], op[written], id[written] = now, START, ids[pending + row]
        due[written] = now + timeout
        written += 1
        row += 1
    return written, row, left, taken, freed, id_space
