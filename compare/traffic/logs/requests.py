"""Turn requests, in the order of their starts, into a tape.

This runs on one shard, without Spark. The rows come in pieces. The memory grows with the timers
pending at once, not with the log, and the tape does not depend on how the rows are divided.
"""

from typing import NamedTuple

import numpy as np

from compare.traffic.tapes.ids import Ids
from compare.traffic.tapes.tape import CANCEL, START, Tape, joined
from timers.arrays import Bools, Int32s, Int64s

_GATHER = 1 << 16
"""Rows that are gathered before they are processed, to spread NumPy's cost per call."""

_UNSTARTED = -1  # in place of an id: the request's start has not been put on the tape yet

EMPTY = joined([])


class _Requests(NamedTuple):
    """Requests that are not finished, in the order of their starts, as arrays of one length."""

    start: Int64s
    leave: Int64s  # when its id comes free: the time of its cancel, or its deadline
    answered: Bools  # whether it is cancelled
    position: Int64s  # of its row in the log
    id: Int32s  # or _UNSTARTED


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
        self._ids = Ids()

    def add(self, start: Int64s, end: Int64s, answered: Bools, position: Int64s) -> Tape:
        """Add rows, in the order of (start, position).

        `end` counts only where `answered`, and is then in [start, start + timeout). Returns the
        next operations, none while rows are being gathered. Amortized O(log n) per row.
        """
        if not len(start):
            return EMPTY
        leave = np.where(answered, end, start + self._timeout)
        self._gathered.append(
            _Requests(start, leave, answered, position, np.full(len(start), _UNSTARTED, np.int32))
        )
        self._rows += len(start)
        # As many as are pending, because each round sorts the pending ones again.
        if self._rows < max(_GATHER, len(self._pending.start)):
            return EMPTY
        # Later rows may start at the last time too, and come before its cancels.
        return self._settle(before=int(start[-1]))

    def finish(self) -> Tape:
        """The remaining operations."""
        return self._settle(before=None)

    def _settle(self, before: int | None) -> Tape:
        """Return the operations before a time, or all of them."""
        columns = zip(self._pending, *self._gathered, strict=True)
        requests = _Requests(*map(np.concatenate, columns))
        self._gathered, self._rows = [], 0
        starting, leaving = requests.id == _UNSTARTED, np.ones(len(requests.id), np.bool_)
        if before is not None:
            starting &= requests.start < before
            leaving &= requests.leave < before
        starts, leaves = np.flatnonzero(starting), np.flatnonzero(leaving)
        request = np.concatenate((starts, leaves))
        is_start = np.arange(len(request)) < len(starts)
        time = np.concatenate((requests.start[starts], requests.leave[leaves]))
        silent = ~is_start & ~requests.answered[request]
        # At one time, the ids of due timers come free before any operation. A row's start precedes
        # its cancel, because the sort is stable.
        order = np.lexsort((requests.position[request], ~silent, time))
        request, is_start, time = request[order], is_start[order], time[order]
        begin, leave = np.flatnonzero(is_start), np.flatnonzero(~is_start)
        self._ids.assign(requests.id, request[begin], begin, request[leave], leave)

        visible = ~silent[order]
        operation = is_start[visible]
        tape = Tape(
            time[visible],
            np.where(operation, START, CANCEL).astype(np.int8),
            requests.id[request[visible]],
            np.where(operation, time[visible] + self._timeout, 0),
        )
        self._pending = _Requests._make(column[~leaving] for column in requests)
        return tape
