"""`HeapqDelayQueue`: the readable baseline, plain Python on the standard library's heapq.

What Python programs use today (asyncio, sched, kombu): a binary heap of (deadline, sequence,
handle), lazy removal (a cancelled timer's entry stays in the heap until it surfaces), and
compaction once stale entries outnumber the live ones.
"""

import heapq
import sys
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from timers.errors import ClockError, InvariantError
from timers.kernels.handles import FIRST_GENERATION, LAST_GENERATION, PLACE_BITS, PLACE_MASK
from timers.limits import LIMIT
from timers.protocol import Bools, Expired
from timers.rounding import Int64s, Rounding
from timers.schemes.base import DEFAULT_CAPACITY, LARGEST_CAPACITY
from timers.traits import Cost, Traits
from timers.validation import as_integer, as_integers, as_pairs, as_parameter, as_time, as_times

_COMPACT_ABOVE = 64  # heaps smaller than this are not worth compacting


class HeapqDelayQueue:
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
        self._heap: list[
            tuple[int, int, int]
        ] = []  # (deadline, sequence, handle), stale entries included
        self._armed: dict[int, int] = {}  # handle of a pending timer -> sequence of its live entry
        self._sequence = 0
        self._generations: list[int] = []  # by place: of its present or next use
        self._free: list[int] = []  # places, last released last

    @property
    def now(self) -> int:
        """The clock: the argument of the last `advance`, at first `start`."""
        return self._now

    @property
    def parameters(self) -> Mapping[str, int]:
        """The scheme has no parameters."""
        return {}

    @property
    def nbytes(self) -> int:
        """Bytes held, estimated: the containers, and a tuple and three ints for each heap entry."""
        containers = (self._heap, self._armed, self._generations, self._free)
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
        if self._free:
            place = self._free.pop()
        else:
            place = len(self._generations)
            self._generations.append(FIRST_GENERATION)
        handle = (self._generations[place] << PLACE_BITS) | place
        self._arm(handle, deadline)
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
        if handle not in self._armed:
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
        if handle not in self._armed:
            return False
        self._arm(handle, deadline)
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
        rows: list[tuple[int, int, int]] = []
        while self._heap and self._heap[0][0] <= now:
            deadline, sequence, handle = heapq.heappop(self._heap)
            if self._armed.get(handle) == sequence:
                rows.append((handle, deadline, max(deadline, self._now)))
                self._release(handle)
        self._now = now
        if not rows:  # most advances of a sparse timer: a third of the time of building columns
            return Expired(*(np.empty(0, np.int64) for _ in range(3)))
        return Expired(*np.array(rows, np.int64).T.copy())

    def next_expiry(self) -> int | None:
        """The next `fired_at`; None if nothing is pending. O(log n) for each stale entry on top."""
        while self._heap and self._armed.get(self._heap[0][2]) != self._heap[0][1]:
            heapq.heappop(self._heap)
        return max(self._heap[0][0], self._now) if self._heap else None

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
        return np.array([self.schedule(moment) for moment in moments], np.int64)

    def cancel_many(self, handles: npt.ArrayLike) -> Bools:
        """`cancel` for each handle, in order; an array of bool of the same length.

        Raises:
            TimeTypeError: an element is not an integer; the message names the first.
            TimeRangeError: an element is not an int64; the message names the first.
        """
        some = as_integers(handles, "handles").tolist()
        return np.array([self.cancel(handle) for handle in some], np.bool_)

    def reschedule_many(self, handles: npt.ArrayLike, deadlines: npt.ArrayLike) -> Bools:
        """`reschedule` for each pair, in order; an array of bool of the same length.

        Raises:
            TimeTypeError: an element is not an integer; the message names the first.
            TimeRangeError: a handle is not an int64, a deadline is outside [0, 2**63 - 1], or the
                lengths differ.
        """
        some, moments = as_pairs(handles, deadlines)
        pairs = zip(some.tolist(), moments.tolist(), strict=True)
        return np.array([self.reschedule(*pair) for pair in pairs], np.bool_)

    def check(self) -> None:
        """Check every structural invariant. O(n).

        Raises:
            InvariantError: one does not hold; the message has a dump of the state.
        """
        live = {
            handle: sequence
            for _, sequence, handle in self._heap
            if self._armed.get(handle) == sequence
        }
        places = [handle & PLACE_MASK for handle in self._armed] + self._free
        broken = {
            "a pending timer has no entry": live != self._armed,
            "the heap is out of order": any(
                self._heap[(k - 1) // 2] > self._heap[k] for k in range(1, len(self._heap))
            ),
            "a place is in two uses": len(places) != len(set(places)),
            "a handle is of another generation": any(
                self._generations[handle & PLACE_MASK] != handle >> PLACE_BITS
                for handle in self._armed
            ),
        }
        for rule, is_broken in broken.items():
            if is_broken:
                raise InvariantError(
                    f"{rule}: heap {self._heap}, armed {self._armed}, free {self._free}"
                )

    def _arm(self, handle: int, deadline: int) -> None:
        self._sequence += 1
        self._armed[handle] = self._sequence
        heapq.heappush(self._heap, (deadline, self._sequence, handle))

    def _release(self, handle: int) -> None:
        del self._armed[handle]
        place = handle & PLACE_MASK
        if self._generations[place] < LAST_GENERATION:  # else the place is retired
            self._generations[place] += 1
            self._free.append(place)

    def _compact(self) -> None:
        if len(self._heap) > max(_COMPACT_ABOVE, 2 * len(self._armed)):
            self._heap = [entry for entry in self._heap if self._armed.get(entry[2]) == entry[1]]
            heapq.heapify(self._heap)
