"""`HeapqDelayQueue`: heapq in plain Python, as in asyncio and sched."""

import heapq
import sys
from itertools import count

import numpy as np
import numpy.typing as npt

from timers.arrays import Bools, Int64s
from timers.errors import ClockError, InvariantError, NestedCallError
from timers.kernels.handles import LOWEST_HANDLE, PLACE_MASK
from timers.kernels.pool import MAX_PLACES
from timers.limits import LIMIT
from timers.protocol import Expired, Timer
from timers.rounding import Rounding
from timers.schemes.base import no_expiries
from timers.schemes.guards import NESTED, NotCopied
from timers.snapshot import Snapshot, Waiting
from timers.traits import READS, Cost, Load, Traits
from timers.validation import as_handles, as_integer, as_parameter, as_time, as_times


class HeapqDelayQueue(NotCopied, Timer):
    """A delay queue on heapq with lazy removal; FIFO among equal deadlines.

    >>> timer = HeapqDelayQueue()
    >>> timer.schedule_many([20, 10]).size, timer.advance(30).deadlines.tolist()
    (2, [10, 20])
    """

    traits = Traits(
        name="heapq-delay-queue",
        scheme="binary heap in plain Python (heapq)",
        summary="heapq with lazy removal and compaction: what Python programs use today",
        rounding=lambda parameters: Rounding("exact"),
        order="fifo",
        exact_next_expiry=True,
        costs=(
            Cost("schedule", "N", "1", Load.RANDOM_DEADLINES, "comparisons"),
            Cost("schedule", "N", "log", Load.FALLING_DEADLINES, "comparisons"),
            Cost("cancel", "N", "1", Load.ALL_CANCELLED, "comparisons"),
            Cost("reschedule", "N", "1", Load.IDLE_TIMEOUTS, "comparisons"),
            Cost("expiry", "N", "log", Load.ANY, "comparisons"),
            Cost("next_wakeup", "N", "1", Load.ANY, READS),
        ),
        jumps="straight to the earliest deadline",
        suits="a few thousand timers in a Python program, with nothing to install",
        drawback="Python objects: no faster in batches, and ten times the memory of others",
        source="heapq in the Python standard library; asyncio.base_events (_timer_cancelled_count)",
        interruptible=False,
    )
    now, parameters = 0, traits.defaults

    def __init__(self, *, start: int = 0, capacity: int = 1) -> None:
        as_parameter(capacity, "capacity", 1, MAX_PLACES)
        self.now, self._busy = as_time(start, "start"), False
        self._heap: list[tuple[int, int, int]] = []  # deadline, number of the arming, handle
        self._armed: dict[int, tuple[int, int, int]] = {}  # handle -> its live entry
        self._numbers, self._handles = count(1), count(LOWEST_HANDLE)
        self._free: list[int] = []  # for each released place, its next handle

    @property
    def nbytes(self) -> int:  # estimated: the containers; a tuple and three ints for each entry
        containers = sum(map(sys.getsizeof, (self._heap, self._armed, self._free)))
        return containers + len(self._heap) * (sys.getsizeof((0, 0, 0)) + 3 * sys.getsizeof(LIMIT))

    def __len__(self) -> int:
        return len(self._armed)

    def schedule(self, deadline: int) -> int:
        return self._change(None, as_time(deadline, "deadline"))

    def cancel(self, handle: int) -> bool:
        return self._change(as_integer(handle, "handle"), None) > 0

    def reschedule(self, handle: int, deadline: int) -> bool:
        return self._change(as_integer(handle, "handle"), as_time(deadline, "deadline")) > 0

    def advance(self, now: int, limit: int | None = None) -> Expired:
        now = as_time(now, "now")
        limit = LIMIT if limit is None else as_parameter(limit, "limit", 1, LIMIT)
        if self._busy:
            raise NestedCallError(NESTED)
        self._busy = True
        try:
            if now < self.now:
                raise ClockError(f"now {now} is before the timer's clock {self.now}")
            if 2 * len(self._armed) < len(self._heap) > 64:  # most are stale; asyncio does the same
                self._heap = list(self._armed.values())
                heapq.heapify(self._heap)
            rows = self._fire(now, limit)
            self.now = now if len(rows) < limit else rows[-1][2]
        finally:
            self._busy = False
        return Expired(*np.array(rows, np.int64).T.copy()) if rows else no_expiries()

    def next_expiry(self) -> int | None:
        if self._busy:
            raise NestedCallError(NESTED)
        self._busy = True
        try:
            entry = self._earliest()
            return entry and (entry[0] if entry[0] > self.now else self.now)
        finally:
            self._busy = False

    def schedule_many(self, deadlines: npt.ArrayLike) -> Int64s:
        moments = as_times(deadlines, "deadlines").tolist()
        return np.array([self._change(None, moment) for moment in moments], np.int64)

    def cancel_many(self, handles: npt.ArrayLike) -> Bools:
        pending = as_handles(handles, "handles").tolist()
        return np.array([self._change(handle, None) for handle in pending], np.bool_)

    def snapshot(self) -> Snapshot:
        heap = [Waiting(e[2], e[0], pending=self._armed.get(e[2]) is e) for e in self._heap]
        return Snapshot(self.now, heap=tuple(heap))

    def check(self) -> None:
        live = {entry[2]: entry for entry in self._heap if self._armed.get(entry[2]) is entry}
        places = [handle & PLACE_MASK for handle in (*self._armed, *self._free)]
        ordered = all(self._heap[(k - 1) // 2] <= entry for k, entry in enumerate(self._heap) if k)
        if live != self._armed or not ordered or len(places) != len(set(places)):
            raise InvariantError(f"heap {self._heap}, armed {self._armed}, free {self._free}")

    def _change(self, handle: int | None, deadline: int | None) -> int:
        """Schedule (no handle), cancel (no deadline) or reschedule. Returns the handle, or 0."""
        if self._busy:
            raise NestedCallError(NESTED)
        self._busy = True
        try:
            if handle is None:
                handle = self._free.pop() if self._free else next(self._handles)
            elif handle not in self._armed:
                return 0
            if deadline is None:
                self._release(handle)
            else:
                self._armed[handle] = entry = (deadline, next(self._numbers), handle)
                heapq.heappush(self._heap, entry)
            return handle
        finally:
            self._busy = False

    def _fire(self, now: int, limit: int) -> list[tuple[int, int, int]]:
        rows: list[tuple[int, int, int]] = []
        while len(rows) < limit and (entry := self._earliest()) and entry[0] <= now:
            deadline, _, handle = heapq.heappop(self._heap)
            self._release(handle)
            rows.append((handle, deadline, max(self.now, deadline)))
        return rows

    def _earliest(self) -> tuple[int, int, int] | None:  # removes the stale entries before it
        while self._heap and self._armed.get(self._heap[0][2]) is not self._heap[0]:
            heapq.heappop(self._heap)
        return self._heap[0] if self._heap else None

    def _release(self, handle: int) -> None:
        del self._armed[handle]
        if (following := handle + LOWEST_HANDLE) <= LIMIT:  # else the place is retired
            self._free.append(following)
