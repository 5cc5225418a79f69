"""Turn requests, in the order of their starts, into a tape.

The rows of a shard come in pieces. The memory grows with the timers pending at once, not with the
log, and the tape does not depend on how the rows are divided.
"""

# ruff: noqa: ANN001, ANN202  # compiled functions are typed by their arguments
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from typing import NamedTuple

import numpy as np

from compare.traffic.tapes.tape import CANCEL, DTYPES, START, Tape, joined
from timers.arrays import Bools, Int32s, Int64s
from timers.kernels.jit import long_entry
from timers.limits import LIMIT

_GATHER = 1 << 16
"""Rows that are gathered before they are processed, to spread NumPy's cost per call."""

EMPTY = joined([])


class _Requests(NamedTuple):
    """Requests in the order of their starts, as arrays of one length."""

    start: Int64s
    leave: Int64s  # when its id comes free: the time of its cancel, or its deadline
    answered: Bools  # whether it is cancelled
    position: Int64s  # of its row in the log
    id: Int32s  # of its timer, once that has started


class RequestTape:
    """The tape of requests: each row starts a timer, and an answer in time cancels it.

    At one time, operations stand in the order of the log's rows, and a row's start precedes its
    cancel. An id comes free when its timer is cancelled or due, since no later operation refers to
    it. A start may take it over at that time. Ids are reused in the order in which they came free,
    so there are exactly as many as are in use at once.
    """

    def __init__(self, timeout: int) -> None:
        self._timeout = timeout
        self._gathered: list[_Requests] = []
        self._rows = 0
        none = np.empty(0, np.int64)
        self._pending = _Requests(none, none, none.astype(bool), none, none.astype(np.int32))
        self._free = none.astype(np.int32)  # ids, in the order in which they came free
        self._id_space = 0

    def add(self, start: Int64s, end: Int64s, answered: Bools, position: Int64s) -> Tape:
        """Add rows, in the order of (start, position).

        `end` counts only where `answered`, and is then in [start, start + timeout). Returns the
        next operations, none while rows are being gathered. Amortized O(log n) per row.
        """
        if not len(start):
            return EMPTY
        leave = np.where(answered, end, start + self._timeout)
        ids = np.empty(len(start), np.int32)
        self._gathered.append(_Requests(start, leave, answered, position, ids))
        self._rows += len(start)
        # As many as are pending, because each round sorts the pending ones again.
        if self._rows < max(_GATHER, len(self._pending.start)):
            return EMPTY
        return self._settle(last=False)

    def finish(self) -> Tape:
        """The remaining operations."""
        return self._settle(last=True)

    def _settle(self, *, last: bool) -> Tape:
        """Start the timers that were gathered, and end those that end before the last start.

        After the last rows, end all.
        """
        columns = zip(self._pending, *self._gathered, strict=True)
        requests = _Requests(*map(np.concatenate, columns))
        started = len(self._pending.start)
        self._gathered, self._rows = [], 0
        answers, deadlines = map(np.flatnonzero, (requests.answered, ~requests.answered))
        answers = answers[by_time(requests.leave[answers], requests.position[answers])]
        tape = Tape._make(np.empty(2 * len(requests.start), dtype) for dtype in DTYPES)
        free = np.concatenate([self._free, np.empty(len(requests.start), np.int32)])
        ids = free, len(self._free), self._id_space
        written, answered, passed, taken, freed, self._id_space = _merge(
            requests, answers, deadlines, started, self._timeout, last, *ids, *tape
        )
        self._free = free[taken:freed]
        left = np.sort(np.concatenate([answers[answered:], deadlines[passed:]]))
        self._pending = _Requests._make(column[left] for column in requests)
        return Tape._make(column[:written] for column in tape)


def by_time(time: Int64s, position: Int64s) -> Int64s:
    """The order by time and position; in linear time if the times are almost in order."""
    order = np.argsort(time, kind="stable")
    equal = np.diff(time[order], prepend=LIMIT, append=LIMIT) == 0
    tied = np.flatnonzero(equal[1:] | equal[:-1])
    rows = order[tied]
    order[tied] = rows[np.lexsort((position[rows], time[rows]))]
    return order


@long_entry
def _merge(
    requests, answers, deadlines, started, timeout, last, free, freed, id_space, time, op, id, due
):
    """Fill in the operations up to the last start, or all of them.

    `answers` are the places of requests in the order of their cancels, and `deadlines` in the order
    of their deadlines. Returns how many operations there are, how many cancels and deadlines have
    come, how many free ids were taken and came, and how many ids there are.
    """
    start, leave, _, position, ids = requests
    written = answered = passed = taken = 0
    for row in range(started, start.size + last):
        now = place = LIMIT
        if row < start.size:
            now, place = start[row], position[row]
        while True:
            cancel = end = LIMIT
            owner = holder = 0
            if answered < answers.size:
                owner = answers[answered]
                cancel = leave[owner]
            if passed < deadlines.size:
                holder = deadlines[passed]
                end = leave[holder]
            # At one time, the ids of due timers come free before any operation.
            if passed < deadlines.size and end <= now and end <= cancel:
                free[freed] = ids[holder]
                passed += 1
            elif answered < answers.size and (
                cancel < now or (cancel == now and position[owner] < place)
            ):
                free[freed] = ids[owner]
                time[written], op[written], id[written] = cancel, CANCEL, ids[owner]
                due[written] = 0
                written += 1
                answered += 1
            else:
                break
            freed += 1
        if row == start.size:
            break
        if taken < freed:
            ids[row] = free[taken]
            taken += 1
        else:
            ids[row] = id_space
            id_space += 1
        time[written], op[written], id[written] = now, START, ids[row]
        due[written] = now + timeout
        written += 1
    return written, answered, passed, taken, freed, id_space
