"""`HeapqDelayQueue`: the readable baseline, plain Python on the standard library's heapq.

What Python programs use today (asyncio, sched, kombu): a binary heap of (deadline, sequence,
handle), lazy removal (a cancelled timer's entry stays in the heap until it surfaces), and
compaction once stale entries outnumber the live ones.

The dictionary of live entries says what is pending; the heap is an index that can be built anew
from it. An operation that is interrupted half-way leaves the heap marked as not intact.
"""

import heapq
import sys
from collections.abc import Iterable, Mapping
from itertools import chain, compress, count, islice, repeat, tee
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from timers.errors import ClockError, InvariantError
from timers.kernels.handles import LAST_GENERATION, LOWEST_HANDLE, PLACE_BITS, PLACE_MASK
from timers.limits import LIMIT
from timers.protocol import Bools, Expired
from timers.rounding import Int64s, Rounding
from timers.schemes.base import DEFAULT_CAPACITY, LARGEST_CAPACITY, answers, nothing
from timers.schemes.undelivered import NotCopied, Undelivered
from timers.traits import Cost, Traits
from timers.validation import (
    BOOL,
    INT64,
    as_handles,
    as_integer,
    as_pairs,
    as_parameter,
    as_time,
    as_times,
)

_COMPACT_ABOVE = 64  # heaps smaller than this are not worth compacting
_GENERATION = 1 << PLACE_BITS  # added to a handle, it gives the next one at the same place
_LAST_HANDLES = LAST_GENERATION << PLACE_BITS  # from here on, a place is not used again
_NO_PARAMETERS: Mapping[str, int] = MappingProxyType({})

Entry = tuple[int, int, int]
"""(deadline, sequence number of the arming, handle)"""


class _Fired(dict[int, tuple[int, int, int]]):
    """By handle: (handle, deadline, fired_at). While the handle is armed, it has not fired yet."""

    __slots__ = ("returned",)
    returned: int  # so many of them were in an answer


class HeapqDelayQueue(NotCopied):
    """A delay queue on heapq with lazy removal; FIFO among equal deadlines.

    >>> timer = HeapqDelayQueue()
    >>> first, second = timer.schedule_many([20, 10])
    >>> timer.cancel(first)
    True
    >>> timer.advance(30).deadlines.tolist()
    [10]
    """

    traits: ClassVar[Traits] = Traits(
        name="heapq-delay-queue",
        scheme="binary heap in plain Python (heapq)",
        summary="heapq with lazy removal and compaction: what Python programs use today",
        rounding=lambda parameters: Rounding("exact"),
        order="fifo",
        defaults={},
        exact_next_expiry=True,
        costs=(
            Cost("schedule", "N", "1", "random deadlines, on average", "comparisons"),
            Cost("schedule", "N", "log", "falling deadlines, the worst case", "comparisons"),
            Cost("cancel", "N", "1", "any, amortised over compactions", "comparisons"),
            Cost(
                "reschedule",
                "N",
                "1",
                "idle timeouts: the earliest timer becomes the latest",
                "comparisons",
            ),
            Cost("expiry", "N", "log", "any", "comparisons"),
        ),
        horizon="none: any deadline",
        jumps="straight to the earliest deadline",
        suits="some thousand timers in a Python program, with nothing to install",
        drawback="Python objects: no faster in batches, and about ten times the memory",
        source="heapq in the Python standard library; asyncio.base_events (_timer_cancelled_count)",
    )

    def __init__(self, *, start: int = 0, capacity: int = DEFAULT_CAPACITY) -> None:
        as_parameter(capacity, "capacity", 1, LARGEST_CAPACITY)
        self._now = as_time(start, "start")
        self._armed: dict[int, Entry] = {}  # handle of a pending timer -> its live entry
        self._heap: list[Entry] = []  # of entries, stale ones included
        self._intact = True  # False while a live entry may be missing from the heap
        self._new_sequence = count(1).__next__
        self._new_handle = count(LOWEST_HANDLE).__next__  # at a place that has not been used yet
        self._free: list[int] = []  # the next handles of places, last released last
        self._ended: dict[int, int] = {}  # by place: its last handle that is pending no more
        self._undelivered: Undelivered[_Fired] = Undelivered()

    @property
    def now(self) -> int:
        """The clock: the argument of the last `advance`, at first `start`."""
        return self._now

    @property
    def parameters(self) -> Mapping[str, int]:
        """The scheme has no parameters."""
        return _NO_PARAMETERS

    @property
    def nbytes(self) -> int:
        """Bytes held, estimated: the containers, and a tuple and three ints for each heap entry."""
        containers = (self._heap, self._armed, self._ended, self._free)
        entry = sys.getsizeof((0, 0, 0)) + 3 * sys.getsizeof(LIMIT)
        return sum(map(sys.getsizeof, containers)) + entry * len(self._heap)

    def __len__(self) -> int:
        """The number of pending timers. O(1)."""
        return len(self._armed)

    def __repr__(self) -> str:
        return f"HeapqDelayQueue(start={self._now})  # {len(self)} pending"

    def schedule(self, deadline: int) -> int:
        """Add a timer for an absolute deadline and return its handle. O(log n).

        A deadline that has passed is due at once: the next `advance` delivers it.

        Raises:
            TimeTypeError: the deadline is not an integer.
            TimeRangeError: it is outside [0, 2**63 - 1].
        """
        deadline = as_time(deadline, "deadline")
        try:
            handle = self._free.pop() if self._free else self._new_handle()
        except IndexError:
            handle = self._new_handle()  # a nested call has taken the last one
        entry = (deadline, self._new_sequence(), handle)
        intact, self._intact = self._intact, False
        self._armed[handle] = entry
        heapq.heappush(self._heap, entry)
        self._intact = intact
        return handle

    def schedule_after(self, delay: int) -> int:
        """Add a timer for now + delay and return its handle. O(log n).

        A negative delay is due at once. `now + delay` is clamped to [0, 2**63 - 1].

        Raises:
            TimeTypeError: the delay is not an integer.
        """
        return self.schedule(min(max(self._now + as_integer(delay, "delay"), 0), LIMIT))

    def cancel(self, handle: int) -> bool:
        """Remove a pending timer, and say whether it was pending. O(1), amortised.

        False if it fired, was cancelled or never existed.

        Raises:
            TimeTypeError: the handle is not an integer.
        """
        handle = as_integer(handle, "handle")
        if self._undelivered:
            self._forget_unfired((handle,))
        if self._armed.pop(handle, None) is None:
            return False
        self._release(handle)
        self._compact()
        return True

    def reschedule(self, handle: int, deadline: int) -> bool:
        """Give a pending timer a new deadline, and say whether it was pending. O(log n).

        It keeps its handle. False exactly where `cancel` gives False.

        Raises:
            TimeTypeError: the handle or the deadline is not an integer.
            TimeRangeError: the deadline is outside [0, 2**63 - 1].
        """
        handle, deadline = as_integer(handle, "handle"), as_time(deadline, "deadline")
        if self._undelivered:
            self._forget_unfired((handle,))
        if handle not in self._armed:
            return False
        entry = (deadline, self._new_sequence(), handle)
        intact, self._intact = self._intact, False
        if handle not in self._armed:
            self._intact = intact
            return False
        self._armed[handle] = entry
        heapq.heappush(self._heap, entry)
        self._intact = intact
        if self._ended.get(handle & PLACE_MASK, 0) >= handle:
            # It is dead: either a nested call has ended it since, or it was before we revived it.
            return self._armed.pop(handle, None) is not entry
        self._compact()
        return True

    def advance(self, now: int) -> Expired:
        """Move the clock to `now` and return the timers that fired. O(log n) for each.

        Raises:
            TimeTypeError: `now` is not an integer.
            TimeRangeError: it is outside [0, 2**63 - 1].
            ClockError: it lies before the timer's clock.
        """
        now = as_time(now, "now")
        if now < self._now:
            raise ClockError(f"now {now} lies before the timer's clock {self._now}")
        if not self._intact:
            self._restore()
        heap = self._heap
        if not self._undelivered and (not heap or heap[0][0] > now):
            self._now = now
            return nothing()
        fired = _Fired()
        key = self._undelivered.add(fired)
        self._fire(now, fired)
        if key not in self._undelivered and not any(
            part is fired for part in self._undelivered.parts()
        ):  # a nested advance returns what had fired so far
            self._undelivered.add(_Fired(islice(fired.items(), fired.returned, None)))
        return self._undelivered.take(_expired, key)

    def _fire(self, now: int, fired: _Fired) -> None:
        """Move what is due from the heap to `fired`, and the clock to `now`."""
        heap, armed = self._heap, self._armed
        try:
            while heap and heap[0][0] <= now:
                self._intact = False
                # First the clock: what a nested call schedules before this moment is overdue.
                clock = self._now
                if heap[0][0] > clock:
                    self._now = clock = heap[0][0]
                entry = heapq.heappop(heap)
                deadline, _, handle = entry
                if deadline > now:  # a nested call has taken the one that was due
                    heapq.heappush(heap, entry)
                    break
                if armed.get(handle) is not entry:
                    continue
                if deadline > clock:
                    self._now = clock = deadline
                fired[handle] = (handle, deadline, clock)
                popped = armed.pop(handle, None)
                if popped is entry:
                    self._release(handle)
                    continue
                fired.pop(handle, None)  # a nested call has cancelled or re-armed it
                if popped is not None:
                    armed[handle] = popped
        except IndexError:
            pass  # a nested call has emptied the heap after we looked
        self._now = max(self._now, now)
        self._intact = True

    def next_expiry(self) -> int | None:
        """The next `fired_at`; None if nothing is pending. O(log n) for each stale entry on top."""
        if not self._intact:
            self._restore()
        if self._undelivered and any(self._undelivered.parts()):
            return self._now
        heap = self._heap
        try:
            while heap:
                entry = heap[0]
                if self._armed.get(entry[2]) is entry:
                    return max(entry[0], self._now)
                self._intact = False
                if heapq.heappop(heap) is not entry:  # a nested call has put another one on top
                    self._restore()
                self._intact = True
        except IndexError:
            pass  # a nested call has emptied the heap after we looked
        return None

    def next_wakeup(self) -> int | None:
        """When the next `advance` is due: `next_expiry`."""
        return self.next_expiry()

    def schedule_many(self, deadlines: npt.ArrayLike) -> Int64s:
        """`schedule` for each deadline, in order; int64 handles of the same length. O(n log n).

        Raises:
            TimeTypeError: an element is not an integer; the message names the first.
            TimeRangeError: an element is outside [0, 2**63 - 1]; the message names the first.
        """
        moments = as_times(deadlines, "deadlines").tolist()
        # An unused handle is not used again if this is interrupted.
        made = [(moment, self._new_sequence(), self._next_handle()) for moment in moments]
        entries = {entry[2]: entry for entry in made}
        handles = answers(len(entries), INT64)
        handles[:] = list(entries)
        intact, self._intact = self._intact, False
        self._armed.update(entries)
        for entry in made:
            heapq.heappush(self._heap, entry)
        self._intact = intact
        return handles

    def cancel_many(self, handles: npt.ArrayLike) -> Bools:
        """`cancel` for each handle, in order; an array of bool of the same length.

        Raises:
            TimeTypeError: an element is not an integer; the message names the first.
        """
        some = as_handles(handles, "handles").tolist()
        cancelled = answers(len(some), BOOL)
        if self._undelivered:
            self._forget_unfired(some)
        popped = list(map(self._armed.pop, some, repeat(None)))
        for k, entry in enumerate(popped):
            cancelled[k] = entry is not None
            if entry is not None:
                self._release(entry[2])
        self._compact()
        return cancelled

    def reschedule_many(self, handles: npt.ArrayLike, deadlines: npt.ArrayLike) -> Bools:
        """`reschedule` for each pair, in order; an array of bool of the same length.

        Raises:
            TimeTypeError: an element is not an integer; the message names the first.
            TimeRangeError: a deadline is outside [0, 2**63 - 1], or the lengths differ.
        """
        some, moments = as_pairs(handles, deadlines)
        as_times(moments, "deadlines")
        rescheduled = answers(some.size, BOOL)
        if self._undelivered:
            self._forget_unfired(some.tolist())
        made = [
            (moment, self._new_sequence(), handle)
            for handle, moment in zip(some.tolist(), moments.tolist(), strict=True)
            if handle in self._armed
        ]
        entries = {entry[2]: entry for entry in made}
        intact, self._intact = self._intact, False
        # What a nested call has cancelled meanwhile stays cancelled.
        pending, still_pending = tee(map(self._armed.__contains__, entries))
        self._armed.update(compress(entries.items(), pending))
        for entry in made:
            heapq.heappush(self._heap, entry)
        self._intact = intact
        self._compact()
        found = dict(zip(entries, still_pending, strict=True))
        for k, handle in enumerate(some.tolist()):
            rescheduled[k] = found.get(handle, False)
        return rescheduled

    def check(self) -> None:
        """Check every structural invariant. O(n).

        Raises:
            InvariantError: one does not hold; the message has a dump of the state.
        """
        if not self._intact:
            self._restore()
        while True:
            heap, armed, free = self._heap.copy(), self._armed.copy(), self._free.copy()
            ended = self._ended.copy()
            if (heap, armed, free, ended) == (self._heap, self._armed, self._free, self._ended):
                break  # no nested call has changed them meanwhile
        live = {entry[2]: entry for entry in heap if armed.get(entry[2]) is entry}
        places = [handle & PLACE_MASK for handle in chain(armed, free)]
        broken = {
            "a pending timer has no entry": live != armed,
            "the heap is out of order": any(
                heap[(k - 1) // 2] > heap[k] for k in range(1, len(heap))
            ),
            "a place is in two uses": len(places) != len(set(places)),
            "a handle is of another generation": any(
                ended.get(handle & PLACE_MASK, 0) >= handle for handle in chain(armed, free)
            ),
        }
        for rule, is_broken in broken.items():
            if is_broken:
                raise InvariantError(f"{rule}: heap {heap}, armed {armed}, free {free}")

    def _next_handle(self) -> int:
        try:
            return self._free.pop() if self._free else self._new_handle()
        except IndexError:
            return self._new_handle()  # a nested call has taken the last one

    def _release(self, handle: int) -> None:
        """Give the place of a handle back that is armed no more."""
        self._ended[handle & PLACE_MASK] = handle
        if handle < _LAST_HANDLES:  # else the place is retired
            self._free.append(handle + _GENERATION)

    def _compact(self) -> None:
        size = len(self._heap)
        if size > _COMPACT_ABOVE and size > 2 * len(self._armed):
            self._restore()

    def _restore(self) -> None:
        """Build the heap anew from the live entries."""
        self._intact = False
        if self._undelivered:
            self._forget_unfired(list(self._armed))
        self._heap[:] = self._armed.values()
        heapq.heapify(self._heap)
        self._intact = True

    def _forget_unfired(self, handles: Iterable[int]) -> None:
        """Remove those of some handles that an interrupted advance was about to fire."""
        for part in self._undelivered.parts():
            for handle in handles:
                if handle in self._armed:
                    part.pop(handle, None)


def _expired(parts: list[_Fired]) -> Expired:
    """The columns of all rows; notes how many of each part there are."""
    rows: list[tuple[int, int, int]] = []
    for part in parts:
        rows += part.values()
        part.returned = len(part)
    if not rows:
        return nothing()
    handles, deadlines, moments = zip(*rows)  # noqa: B905  # strict=True costs 200 ns
    column = np.fromiter
    columns = (column(handles, INT64), column(deadlines, INT64), column(moments, INT64))
    return tuple.__new__(Expired, columns)
