"""What all timers with a kernel have in common: validation, growth, batches, results.

What changes a timer is done by one compiled call each, which nothing can interrupt. Between two
bytecodes anything may happen to the timer: a finalizer or a signal handler may call it. If that
made it grow, the arrays at hand are not the timer's any more; the compiled function says so with
None, and is called again with the new ones.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, overload

import numpy as np
import numpy.typing as npt
from numba import typeof

from timers.arrays import Bools, Int64s
from timers.errors import CapacityError, ClockError, TimeRangeError
from timers.kernels import dispatch
from timers.kernels.counters import COUNTERS, allocate_counters
from timers.kernels.dispatch import ARRIVED, BACKWARDS, CLOSED, FILLED, FULL
from timers.kernels.handles import LOWEST_HANDLE, PLACE_MASK
from timers.kernels.operations import NONE
from timers.kernels.pool import BASE, EXPIRY, MOST_PLACES, NOW, PENDING, RETIRED, grown
from timers.limits import LIMIT
from timers.protocol import Expired
from timers.schemes.guards import NotCopied
from timers.schemes.undelivered import Undelivered
from timers.traits import Traits
from timers.validation import (
    BOOL,
    INT64,
    as_handles,
    as_integer,
    as_integers,
    as_pairs,
    as_parameter,
    as_time,
    as_times,
    shown,
)

Rows = npt.NDArray[np.void]
"""An array of EXPIRY."""

DEFAULT_CAPACITY = 1024
"""Pending timers for which a new timer has room before it grows."""

LARGEST_CAPACITY = MOST_PLACES
"""The most timers that can be pending in one timer."""

LARGEST_WHEEL = 1 << 20
"""The most slots of one wheel: more would be memory without use."""

_FIRST_ROWS = 256  # rows that most advances return at most
_MORE_ROWS = 8  # times as many rows in the next part, once one is full
_MOST_ROWS = 1 << 16  # rows of one part: more do not fit into the processor's cache


@overload
def place_of(handle: int) -> int: ...
@overload
def place_of(handle: Int64s) -> Int64s: ...
def place_of(handle: Any) -> Any:
    """The place of a handle, or an int64 array with the place of each: dense indices from 0.

    A place belongs to its timer while that is pending, and is re-used afterwards; so payloads can
    be kept in arrays beside the timer. A stale handle has a place, too. O(1) for each.

    Raises TimeRangeError for a number that no timer returns as a handle.

    >>> from timers import DelayQueue
    >>> timer = DelayQueue()
    >>> place_of(timer.schedule(10)), place_of(timer.schedule_many([20, 30])).tolist()
    (0, [1, 2])
    """
    lowest = handle.min(initial=LIMIT) if isinstance(handle, np.ndarray) else handle
    if lowest < LOWEST_HANDLE:
        raise TimeRangeError(f"{shown(int(lowest))} is not a handle: handles are at least 2**32")
    return handle & PLACE_MASK


_calls_of = cache(dispatch.Calls)


def _part(rows: int) -> Rows:
    """Room for so many rows of what fires, as `Calls.advance` fills it."""
    part = np.empty(1 + rows, EXPIRY)
    part[0] = 0
    return part


def _filled(part: Rows) -> Rows:
    """The rows that have been written."""
    return part[1 : 1 + part.item(0)[0]]  # FILLED; twice as fast as by name


def _expired(parts: list[Rows]) -> Expired:
    """The columns of parts."""
    if not parts:
        return nothing()
    if len(parts) == 1:
        rows = _filled(parts[0])
        columns = (rows["handle"].copy(), rows["deadline"].copy(), rows["fired_at"].copy())
        return tuple.__new__(Expired, columns)
    filled, names = list(map(_filled, parts)), ("handle", "deadline", "fired_at")
    return Expired(*(np.concatenate([part[name] for part in filled]) for name in names))


def nothing() -> Expired:
    """An Expired without rows; `tuple.__new__` is twice as fast as the class of a named tuple."""
    empty = (np.empty(0, INT64), np.empty(0, INT64), np.empty(0, INT64))
    return tuple.__new__(Expired, empty)


def answers(size: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """An array for the answers of a batch. Raises CapacityError."""
    try:
        return np.empty(size, dtype)
    except MemoryError:
        raise CapacityError(f"no memory for {size} answers; nothing has changed") from None


_NO_ROOM = _part(0)  # the clock moves as far as nothing fires


class KernelTimer(NotCopied):
    """A timer whose work is done by a kernel; see `timers.protocol` for the contract.

    The cost of each operation is declared in `traits.costs`. `counting=True` keeps cost counters
    (property `counters`) at about 1 ns per operation.
    """

    traits: Traits  # of the class
    _kernel: Any  # the module, of the class

    def __init__(
        self,
        *,
        start: int = 0,
        capacity: int = DEFAULT_CAPACITY,
        counting: bool = False,
        **parameters: int,  # of the scheme
    ) -> None:
        declared = self.traits.parameters
        if unknown := parameters.keys() - declared.keys():
            raise TypeError(f"{type(self).__name__} has no parameter {min(unknown)}")
        self._parameters = {name: declared[name].check(parameters[name], name) for name in declared}
        start = as_time(start, "start")
        capacity = as_parameter(capacity, "capacity", 1, LARGEST_CAPACITY)
        counters = allocate_counters() if counting else None
        try:
            state = self._kernel.allocate(start, capacity, self._parameters, counters)
        except MemoryError:
            raise CapacityError(
                f"no memory for capacity {capacity} with {self._parameters}"
            ) from None
        # By capacity: the present State, and while the timer grows the larger one that is to be.
        self._states: dict[int, Any] = {capacity: state}
        # The arrays of the present State; or, after an interruption, of one that has been replaced.
        self._arrays: tuple[Any, Any, Any] = tuple(state)
        self._call = _calls_of(type(state), tuple(map(typeof, state)))  # type: ignore[arg-type]  # a class is hashable
        self._undelivered: Undelivered[Rows] = Undelivered()

    @property
    def state(self) -> Any:
        """The arrays; larger ones replace them when the timer grows."""
        while True:
            for state in tuple(self._states.values()):
                if state.cells[NOW] != NONE:  # it has not been replaced
                    return state

    @property
    def now(self) -> int:
        """The clock: the argument of the last `advance`, at first `start`. O(1).

        >>> from timers import DelayQueue
        >>> DelayQueue(start=5).now
        5
        """
        now: int = self._arrays[1].item(NOW)
        return now if now != NONE else int(self.state.cells[NOW])

    @property
    def parameters(self) -> Mapping[str, int]:
        """The scheme's parameters of this instance, read-only. O(1).

        >>> from timers import HashedWheel
        >>> dict(HashedWheel(tick=100, wheel_size=8).parameters)
        {'tick': 100, 'wheel_size': 8}
        """
        return MappingProxyType(self._parameters)

    @property
    def nbytes(self) -> int:
        """Bytes held, all bookkeeping included: 24 for each place and each bucket. O(1).

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
        counters = self._arrays[2]
        if counters is None:
            return None
        return dict(zip(COUNTERS, counters.tolist(), strict=True))

    def __len__(self) -> int:
        """The number of pending timers. O(1).

        >>> from timers import DelayQueue
        >>> timer = DelayQueue()
        >>> handle = timer.schedule(10)
        >>> len(timer)
        1
        """
        pending: int = self._arrays[1].item(PENDING)
        return pending if pending != NONE else int(self.state.cells[PENDING])

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
        self._grow(extra)

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
        while True:
            nodes, cells, counters = self._arrays
            handle: int | None = self._call.schedule(nodes, cells, counters, deadline)
            if handle is not None:
                return handle
            self._grow(1)

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
        while True:
            nodes, cells, counters = self._arrays
            cancelled: bool | None = self._call.cancel(nodes, cells, counters, handle)
            if cancelled is not None:
                return cancelled
            self._refresh()

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
        if type(handle) is not int or type(deadline) is not int or not 0 <= deadline <= LIMIT:
            handle, deadline = as_integer(handle, "handle"), as_time(deadline, "deadline")
        if not 0 < handle <= LIMIT:
            return False
        while True:
            nodes, cells, counters = self._arrays
            rescheduled: bool | None = self._call.reschedule(
                nodes, cells, counters, handle, deadline
            )
            if rescheduled is not None:
                return rescheduled
            self._refresh()

    def advance(self, now: int) -> Expired:
        """Move the clock to `now` and return the timers that fired, ordered by `fired_at`.

        The same `now` again delivers what has been scheduled overdue since.

        Raises:
            TimeTypeError: `now` is not an integer.
            TimeRangeError: it is outside [0, 2**63 - 1].
            ClockError: it lies before the timer's clock.
            CapacityError: there is no memory for what has fired; the next `advance` returns it.

        >>> from timers import DelayQueue
        >>> timer = DelayQueue()
        >>> handles = timer.schedule_many([30, 10, 20])
        >>> expired = timer.advance(25)
        >>> expired.deadlines, expired.fired_at
        (array([10, 20]), array([10, 20]))
        """
        if type(now) is not int or not 0 <= now <= LIMIT:
            now = as_time(now, "now")
        while True:
            nodes, cells, counters = self._arrays
            outcome: int | None = self._call.advance(nodes, cells, counters, now, _NO_ROOM)
            if outcome == ARRIVED and not self._undelivered:
                return nothing()
            if outcome == BACKWARDS:
                raise ClockError(f"now {now} lies before the timer's clock {self.now}")
            if outcome is not None:
                return self._deliver(now, outcome)
            self._refresh()

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
        return self._moment(self._call.next_expiry)

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
        return self._moment(self._call.next_wakeup)

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
        deadlines = as_integers(deadlines, "deadlines")
        handles = answers(deadlines.size, INT64)
        while True:
            nodes, cells, counters = self._arrays
            legal: int | None = self._call.schedule_many(nodes, cells, counters, deadlines, handles)
            if legal == handles.size:
                return handles
            if legal is not None:
                as_times(deadlines, "deadlines")  # names the first that is negative
            self._grow(handles.size)

    def cancel_many(self, handles: npt.ArrayLike) -> Bools:
        """`cancel` for each handle of a 1-D array or sequence of integers, in order.

        Returns an array of bool, of the same length. A handle that comes twice is False the second
        time.

        Raises:
            TimeTypeError: an element is not an integer; the message names the first.

        >>> from timers import DelayQueue
        >>> timer = DelayQueue()
        >>> handles = timer.schedule_many([30, 10])
        >>> timer.cancel_many([*handles, 12345])
        array([ True,  True, False])
        """
        handles = as_handles(handles, "handles")
        cancelled = answers(handles.size, BOOL)
        while True:
            nodes, cells, counters = self._arrays
            if self._call.cancel_many(nodes, cells, counters, handles, cancelled) is not None:
                return cancelled
            self._refresh()

    def reschedule_many(self, handles: npt.ArrayLike, deadlines: npt.ArrayLike) -> Bools:
        """`reschedule` for each pair of a handle and a deadline, in order.

        Takes two 1-D arrays or sequences of integers of one length; returns an array of bool.

        Raises:
            TimeTypeError: an element is not an integer; the message names the first.
            TimeRangeError: a deadline is outside [0, 2**63 - 1], or the lengths differ.

        >>> from timers import DelayQueue
        >>> timer = DelayQueue()
        >>> handles = timer.schedule_many([30, 10])
        >>> timer.reschedule_many(handles, [5, 15])
        array([ True,  True])
        >>> timer.next_expiry()
        5
        """
        handles, deadlines = as_pairs(handles, deadlines)
        rescheduled = answers(handles.size, BOOL)
        while True:
            nodes, cells, counters = self._arrays
            legal: int | None = self._call.reschedule_many(
                nodes, cells, counters, handles, deadlines, rescheduled
            )
            if legal == handles.size:
                return rescheduled
            if legal is not None:
                as_times(deadlines, "deadlines")  # names the first that is negative
            self._refresh()

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
            found = self._kernel.locate(self._snapshot(), handle)
        return found

    def check(self) -> None:
        """Check every structural invariant. O(capacity).

        Raises:
            InvariantError: one does not hold; the message has a dump of the state.

        >>> from timers import DelayQueue
        >>> DelayQueue().check()
        """
        self._kernel.check(self._snapshot())

    def _refresh(self) -> None:
        """Take the present State's arrays after a nested call has replaced those at hand."""
        self._arrays = tuple(self.state)

    def _moment(self, call: Any) -> int | None:
        """A moment that a compiled function returns, or `now` if an interrupted advance has left
        something for the next one.
        """
        while True:
            nodes, cells, counters = self._arrays
            moment: int | None = call(nodes, cells, counters)
            if moment is not None:
                break
            self._refresh()
        if self._undelivered and any(part[0][FILLED] > 0 for part in self._undelivered.parts()):
            return self.now
        return None if moment == NONE else moment

    def _grow(self, extra: int) -> None:
        """Make room for `extra` more timers, if there is none.

        The larger arrays are listed before anything moves, and the compiled `move_all` makes them
        the timer's: interrupted at any point, exactly one State of the list has not been replaced.
        Of two that have one capacity the first one listed serves both callers.
        """
        while True:
            state = self.state
            nodes, cells, _ = state
            self._arrays = tuple(state)
            capacity, used = nodes.size - int(cells[BASE]), int(cells[PENDING] + cells[RETIRED])
            if capacity - used >= extra:
                break
            try:
                wanted = grown(capacity, used, extra)
                larger = self._states.setdefault(wanted, self._kernel.enlarged(state, wanted))
                if not self._call.move_all(*state, larger.nodes, larger.cells):
                    continue  # a nested call has moved it
                # Whatever is smaller than a State that has been filled is of no use any more.
                for smaller in sorted(self._states):
                    if smaller < wanted:
                        self._states.pop(smaller, None)
            except MemoryError:
                raise CapacityError(
                    f"no memory for {extra} more timers beside {len(self)} pending"
                ) from None

    def _deliver(self, now: int, outcome: int) -> Expired:
        """The rest of an `advance` at whose first stop something is due or undelivered."""
        if self._undelivered:
            for part in self._undelivered.parts():
                part[0][CLOSED] = 1  # what an interrupted advance was about to fill
        rows, key = _FIRST_ROWS, -1
        while outcome == FULL:
            try:
                part = _part(rows)
            except MemoryError:
                raise CapacityError(f"no memory for {rows} more timers that fire") from None
            key = self._undelivered.add(part)
            while True:
                nodes, cells, counters = self._arrays
                again: int | None = self._call.advance(nodes, cells, counters, now, part)
                if again is not None:
                    break
                self._refresh()
            outcome = again  # BACKWARDS: a nested advance has gone further
            rows = min(rows * _MORE_ROWS, _MOST_ROWS)
        return self._undelivered.take(_expired, key)

    def _snapshot(self) -> Any:
        """A copy of the present State."""
        while True:
            state = self.state
            nodes, cells = state.nodes.copy(), state.cells.copy()
            # Unless a nested call has changed or replaced it between the two.
            unchanged = (nodes == state.nodes).all() and (cells == state.cells).all()
            if unchanged and cells[NOW] != NONE:
                return state._replace(nodes=nodes, cells=cells)


def load_code(timer: object) -> None:
    """Load what a timer of this library compiles, where its first use would come at a bad time."""
    if isinstance(timer, KernelTimer):
        timer._call.load_all()
