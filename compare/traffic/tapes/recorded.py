"""The tape of timer events that were observed: by the recorder, or printed by a kernel."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

from compare.traffic.tapes.ids import Ids
from compare.traffic.tapes.tape import CANCEL, DTYPES, REARM, START, Tape
from timers.arrays import Int64s

Float64s = npt.NDArray[np.float64]

FIELDS = 4
"""Numbers of an event: its kind, the time in seconds, the timer, and the delay from then to the
deadline in seconds, 0 for a cancel."""
STARTED, CANCELLED, MOVED = 1.0, 2.0, 3.0
"""Kinds of events. The recorder, which imports nothing of ours, writes the same numbers."""

UNIT = "us"
_NS_PER_UNIT = 1_000
_LONGEST_DELAY = 9e9
"""Seconds, 285 years: in nanoseconds it fits into int64, with any time added."""
_FEW = 1024  # entries of the queue of deadlines, below which it is not cleaned


class RecordedTape:
    """The tape of recorded events; `origin` is the clock at time 0, in seconds.

    Times are rounded down to a unit and deadlines up. A time is at least that of the event before:
    a thread may be suspended after it has read the clock. A timer has fired at its deadline: a
    cancel from then on is left out, a re-arm is a start, and its id is free.
    """

    def __init__(self, origin: float) -> None:
        self._origin = _ns(np.array(origin))
        self._ids = Ids()
        self._now = 0
        self._pending: dict[int, tuple[int, int]] = {}  # timer -> id and deadline
        self._due: list[tuple[int, int]] = []  # deadlines and timers, a heap; some are outdated

    def add(self, events: Float64s) -> Tape:
        """The next operations."""
        kinds, times, timers, delays = events.T
        now = _ns(times) - self._origin
        delay = _ns(np.clip(np.nan_to_num(delays), -_LONGEST_DELAY, _LONGEST_DELAY))
        columns = kinds, now, timers.astype(np.int64), now + delay
        rows = list(self._rows(zip(*(column.tolist() for column in columns), strict=True)))
        time, op, ids, deadline = np.array(rows, np.int64).reshape(-1, FIELDS).T
        deadline = np.where(op == CANCEL, 0, np.maximum(-(-deadline // _NS_PER_UNIT), 0))
        named = zip((time // _NS_PER_UNIT, op, ids, deadline), DTYPES, strict=True)
        return Tape._make(column.astype(dtype) for column, dtype in named)

    def _rows(self, events: Iterator[tuple[float, int, int, int]]) -> Iterator[tuple[int, ...]]:
        """Operations in nanoseconds."""
        ids, pending = self._ids, self._pending
        for kind, time, timer, deadline in events:
            now = self._now = max(time, self._now)
            self._expire(now)
            number, _ = pending.get(timer, (None, 0))
            if kind == CANCELLED:
                if number is not None:
                    del pending[timer]
                    ids.release(number)
                    yield now, CANCEL, number, 0
                continue
            op = REARM
            if number is None or kind != MOVED:
                if number is not None:  # it disappeared with its loop
                    ids.release(number)
                op, number = START, ids.take()
            pending[timer] = number, deadline
            heappush(self._due, (deadline, timer))
            yield now, op, number, deadline

    def _expire(self, now: int) -> None:
        """Free the ids of timers that are due."""
        due, pending = self._due, self._pending
        if len(due) > 2 * len(pending) + _FEW:
            due[:] = [(deadline, timer) for timer, (_, deadline) in pending.items()]
            heapify(due)
        while due and due[0][0] <= now:
            ended, timer = heappop(due)
            number, deadline = pending.get(timer, (None, None))
            if number is not None and deadline == ended:
                del pending[timer]
                self._ids.release(number)


def _ns(seconds: Float64s) -> Int64s:
    return np.rint(seconds * 1e9).astype(np.int64)
