"""What all timers with a kernel have in common: validation, growth, batches, results."""

from collections.abc import Mapping
from functools import cache
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from timers.errors import CapacityError, ClockError
from timers.kernels import dispatch
from timers.kernels.counters import COUNTERS, allocate_counters
from timers.kernels.handles import PLACE_MASK
from timers.kernels.pool import BASE, EXPIRY, MOST_PLACES, NONE, NOW, PENDING, RETIRED
from timers.limits import LIMIT
from timers.protocol import Bools, Expired
from timers.rounding import Int64s
from timers.traits import Traits
from timers.validation import as_integer, as_integers, as_pairs, as_parameter, as_time, as_times

DEFAULT_CAPACITY = 1024
"""Pending timers for which a new timer has room before it grows."""

LARGEST_CAPACITY = MOST_PLACES
"""The most timers that can be pending in one timer."""

LARGEST_WHEEL = 1 << 20
"""The most slots of one wheel: more would be memory without use."""

_FIRST_ROWS = 256  # rows that most advances return at most: one small buffer kept for good
_MORE_ROWS = 1 << 16  # rows fetched at a time once the first buffer was full


@overload
def place_of(handle: int) -> int: ...
@overload
def place_of(handle: Int64s) -> Int64s: ...
def place_of(handle: Any) -> Any:
    """The place of a handle, or an int64 array with the place of each: dense indices from 0.

    A place belongs to its timer while that is pending, and is re-used afterwards; so payloads can
    be kept in arrays beside the timer. No handle is checked. O(1) for each.

    >>> from timers import DelayQueue
    >>> timer = DelayQueue()
    >>> place_of(timer.schedule(10)), place_of(timer.schedule_many([20, 30])).tolist()
    (0, [1, 2])
    """
    return handle & PLACE_MASK


@cache
def _calls_of(state_class: type) -> dispatch.Calls:
    return dispatch.Calls(state_class)


def _expired(parts: list[npt.NDArray[np.void]]) -> Expired:
    """The columns of EXPIRY rows that came in parts."""
    if len(parts) == 1:
        [rows] = parts
        return Expired(rows["handle"].copy(), rows["deadline"].copy(), rows["fired_at"].copy())
    columns = ("handle", "deadline", "fired_at")
    return Expired(*(np.concatenate([part[column] for part in parts]) for column in columns))


class KernelTimer:
    """A timer whose work is done by a kernel; see `timers.protocol` for the contract.

    The cost of each operation is declared in `traits.costs`. `counting=True` keeps cost counters
    (property `counters`) at about 1 ns per operation.
    """

    traits: Traits  # of the class
    _kernel: Any  # the module, of the class

    def __init__(
        self, parameters: Mapping[str, int], *, start: int, capacity: int, counting: bool
    ) -> None:
        start = as_time(start, "start")
        capacity = as_parameter(capacity, "capacity", 1, LARGEST_CAPACITY)
        counters = allocate_counters() if counting else None
        self._parameters = dict(parameters)
        try:
            self.state = self._kernel.allocate(start, capacity, self._parameters, counters)
        except MemoryError:
            raise CapacityError(
                f"no memory for capacity {capacity} with {self._parameters}"
            ) from None
        self._call = _calls_of(type(self.state))  # type: ignore[arg-type]  # a class is hashable
        self._room = 0  # so many places are free for certain: timers only leave between looks
        self._out = np.zeros(_FIRST_ROWS, EXPIRY)

    @property
    def now(self) -> int:
        """The clock: the argument of the last `advance`, at first `start`. O(1).

        >>> from timers import DelayQueue
        >>> DelayQueue(start=5).now
        5
        """
        return int(self.state.cells[NOW])

    @property
    def parameters(self) -> Mapping[str, int]:
        """The scheme's parameters of this instance. O(1).

        >>> from timers import HashedWheel
        >>> HashedWheel(tick=100, wheel_size=8).parameters
        {'tick': 100, 'wheel_size': 8}
        """
        return self._parameters

    @property
    def nbytes(self) -> int:
        """Bytes held, all bookkeeping included: at most 32 per place, and the buckets. O(1).

        >>> from timers import DelayQueue
        >>> DelayQueue(capacity=1000).nbytes
        24080
        """
        return sum(array.nbytes for array in self.state if array is not None)

    @property
    def counters(self) -> dict[str, int] | None:
        """Cost counters since construction by name; None unless `counting`. O(1).

        `timers.kernels.counters` says what each counts.

        >>> from timers import DelayQueue
        >>> timer = DelayQueue(counting=True)
        >>> handles = timer.schedule_many([30, 10, 20])
        >>> timer.counters["comparisons"]
        2
        """
        if self.state.counters is None:
            return None
        return dict(zip(COUNTERS, self.state.counters.tolist(), strict=True))

    def __len__(self) -> int:
        """The number of pending timers. O(1).

        >>> from timers import DelayQueue
        >>> timer = DelayQueue()
        >>> handle = timer.schedule(10)
        >>> len(timer)
        1
        """
        return int(self.state.cells[PENDING])

    def __repr__(self) -> str:
        arguments = [f"{name}={value}" for name, value in self._parameters.items()]
        arguments.append(f"start={self.now}")
        return f"{type(self).__name__}({', '.join(arguments)})  # {len(self)} pending"

    def reserve(self, extra: int) -> None:
        """Make room for `extra` more pending timers. O(capacity) if it grows, else O(1).

        The capacity doubles until there is room. `schedule` and `schedule_many` do this on their
        own; call it to choose the moment.

        Raises:
            TimeTypeError: `extra` is not an integer.
            CapacityError: memory or handles do not suffice; nothing has changed.

        >>> from timers import DelayQueue
        >>> timer = DelayQueue(capacity=10)
        >>> timer.reserve(1000)
        """
        if type(extra) is not int:
            extra = as_integer(extra, "extra")
        self._room = 0  # the caller may use up the room behind our back, on `state` itself
        try:
            self.state = self._kernel.reserve(self.state, extra)
        except MemoryError:
            raise CapacityError(
                f"no memory for {extra} more timers beside {len(self)} pending"
            ) from None

    def schedule(self, deadline: int) -> int:
        """Add a timer for an absolute deadline and return its handle.

        A deadline that has passed is due at once: the next `advance` delivers it.

        Raises:
            TimeTypeError: the deadline is not an integer.
            TimeRangeError: it is outside [0, 2**63 - 1].
            CapacityError: there is no memory for another timer.

        >>> from timers import DelayQueue
        >>> timer = DelayQueue()
        >>> handle = timer.schedule(10)
        >>> timer.advance(10).handles.tolist() == [handle]
        True
        """
        if type(deadline) is not int or not 0 <= deadline <= LIMIT:
            deadline = as_time(deadline, "deadline")
        if not self._room:
            self._make_room()
        self._room -= 1
        handle: int = self._call.schedule(*self.state, deadline)
        return handle

    def schedule_after(self, delay: int) -> int:
        """Add a timer for now + delay and return its handle.

        A negative delay is due at once. `now + delay` is clamped to [0, 2**63 - 1].

        Raises:
            TimeTypeError: the delay is not an integer.
            CapacityError: there is no memory for another timer.

        >>> from timers import DelayQueue
        >>> timer = DelayQueue(start=100)
        >>> handle = timer.schedule_after(10)
        >>> timer.next_expiry()
        110
        """
        return self.schedule(min(max(self.now + as_integer(delay, "delay"), 0), LIMIT))

    def cancel(self, handle: int) -> bool:
        """Remove a pending timer, and say whether it was pending.

        False if it fired, was cancelled or never existed. A timer that is due but not yet delivered
        is still pending.

        Raises:
            TimeTypeError: the handle is not an integer.

        >>> from timers import DelayQueue
        >>> timer = DelayQueue()
        >>> handle = timer.schedule(10)
        >>> timer.cancel(handle), timer.cancel(handle)
        (True, False)
        """
        if type(handle) is not int:
            handle = as_integer(handle, "handle")
        if not 0 < handle <= LIMIT:
            return False
        cancelled: bool = self._call.cancel(*self.state, handle)
        return cancelled

    def reschedule(self, handle: int, deadline: int) -> bool:
        """Give a pending timer a new deadline, and say whether it was pending.

        It keeps its handle. False exactly where `cancel` gives False. For the order among equal
        deadlines, a re-arm counts as a new arming.

        Raises:
            TimeTypeError: the handle or the deadline is not an integer.
            TimeRangeError: the deadline is outside [0, 2**63 - 1].

        >>> from timers import DelayQueue
        >>> timer = DelayQueue()
        >>> handle = timer.schedule(10)
        >>> timer.reschedule(handle, 20), timer.next_expiry()
        (True, 20)
        """
        handle, deadline = as_integer(handle, "handle"), as_time(deadline, "deadline")
        if not 0 < handle <= LIMIT:
            return False
        rescheduled: bool = self._call.reschedule(*self.state, handle, deadline)
        return rescheduled

    def advance(self, now: int) -> Expired:
        """Move the clock to `now` and return the timers that fired, ordered by `fired_at`.

        The same `now` again delivers what has been scheduled overdue since.

        Raises:
            TimeTypeError: `now` is not an integer.
            TimeRangeError: it is outside [0, 2**63 - 1].
            ClockError: it lies before the timer's clock.

        >>> from timers import DelayQueue
        >>> timer = DelayQueue()
        >>> handles = timer.schedule_many([30, 10, 20])
        >>> expired = timer.advance(25)
        >>> expired.deadlines, expired.fired_at
        (array([10, 20]), array([10, 20]))
        """
        now = as_time(now, "now")
        if now < self.now:
            raise ClockError(f"now {now} lies before the timer's clock {self.now}")
        rows, done = self._call.advance(*self.state, now, self._out)
        parts = [self._out[:rows]]
        while not done:
            out = np.zeros(min(_MORE_ROWS, max(len(self), 1)), EXPIRY)
            rows, done = self._call.advance(*self.state, now, out)
            parts.append(out[:rows])
        return _expired(parts)

    def next_expiry(self) -> int | None:
        """A lower bound of the next `fired_at`; exact where `traits.exact_next_expiry`.

        The bound is not before `now`, and is `now` when something is due already. None if and only
        if nothing is pending.

        >>> from timers import DelayQueue
        >>> timer = DelayQueue()
        >>> timer.next_expiry() is None
        True
        >>> handle = timer.schedule(10)
        >>> timer.next_expiry()
        10
        """
        moment = self._call.next_expiry(*self.state)
        return None if moment == NONE else moment

    def next_wakeup(self) -> int | None:
        """When the structure itself wants the next `advance`; None if never.

        That may be earlier than the next expiry: timers move to a finer wheel on the way. It may
        also be the time of a bucket whose timers were all cancelled.

        >>> from timers import HierarchicalWheel
        >>> timer = HierarchicalWheel(tick=1, wheel_size=20)
        >>> handle = timer.schedule(450)
        >>> timer.next_wakeup()
        400
        """
        moment = self._call.next_wakeup(*self.state)
        return None if moment == NONE else moment

    def schedule_many(self, deadlines: npt.ArrayLike) -> Int64s:
        """Add a timer for each deadline of a 1-D array or sequence of integers.

        Returns their handles: int64, of the same length. After an error, none was scheduled.

        Raises:
            TimeTypeError: an element is not an integer; the message names the first.
            TimeRangeError: an element is outside [0, 2**63 - 1]; the message names the first.
            CapacityError: there is no memory for so many more timers.

        >>> from timers import DelayQueue
        >>> timer = DelayQueue()
        >>> timer.schedule_many([30, 10]).size
        2
        """
        deadlines = as_times(deadlines, "deadlines")
        self.reserve(deadlines.size)
        handles = np.empty(deadlines.size, np.int64)
        dispatch.schedule_many(self.state, deadlines, handles)
        return handles

    def cancel_many(self, handles: npt.ArrayLike) -> Bools:
        """`cancel` for each handle of a 1-D array or sequence of integers, in order.

        Returns an array of bool, of the same length. A handle that comes twice is False the second
        time.

        Raises:
            TimeTypeError: an element is not an integer; the message names the first.
            TimeRangeError: an element is not an int64; the message names the first.

        >>> from timers import DelayQueue
        >>> timer = DelayQueue()
        >>> handles = timer.schedule_many([30, 10])
        >>> timer.cancel_many([*handles, 12345])
        array([ True,  True, False])
        """
        handles = as_integers(handles, "handles")
        cancelled = np.empty(handles.size, np.bool_)
        dispatch.cancel_many(self.state, handles, cancelled)
        return cancelled

    def reschedule_many(self, handles: npt.ArrayLike, deadlines: npt.ArrayLike) -> Bools:
        """`reschedule` for each pair of a handle and a deadline, in order.

        Takes two 1-D arrays or sequences of integers of one length; returns an array of bool.

        Raises:
            TimeTypeError: an element is not an integer; the message names the first.
            TimeRangeError: a handle is not an int64, a deadline is outside [0, 2**63 - 1], or the
                lengths differ.

        >>> from timers import DelayQueue
        >>> timer = DelayQueue()
        >>> handles = timer.schedule_many([30, 10])
        >>> timer.reschedule_many(handles, [5, 15])
        array([ True,  True])
        >>> timer.next_expiry()
        5
        """
        handles, deadlines = as_pairs(handles, deadlines)
        rescheduled = np.empty(handles.size, np.bool_)
        dispatch.reschedule_many(self.state, handles, deadlines, rescheduled)
        return rescheduled

    def locate(self, handle: int) -> dict[str, int | str]:
        """Where the structure holds a pending timer: its level and slot, say, or its heap index.

        Empty if the timer is not pending. For learning and for tests. O(capacity).

        Raises:
            TimeTypeError: the handle is not an integer.

        >>> from timers import CascadingWheel
        >>> timer = CascadingWheel()
        >>> timer.locate(timer.schedule(300))
        {'level': 1, 'slot': 1}
        """
        handle = as_integer(handle, "handle")
        found: dict[str, int | str] = {}
        if 0 < handle <= LIMIT:
            found = self._kernel.locate(self.state, handle)
        return found

    def check(self) -> None:
        """Check every structural invariant. O(capacity).

        Raises:
            InvariantError: one does not hold; the message has a dump of the state.

        >>> from timers import DelayQueue
        >>> DelayQueue().check()
        """
        self._kernel.check(self.state)

    def _make_room(self) -> None:
        self.reserve(1)
        nodes, cells, _ = self.state
        self._room = int(nodes.size - cells[BASE] - cells[PENDING] - cells[RETIRED])
