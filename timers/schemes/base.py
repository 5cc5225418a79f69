"""Base class of all timers with a kernel: validation, growth, batches, results.

Each change of a timer is one compiled call, which nothing can interrupt. A finalizer or a signal
handler may call the timer between two bytecodes and make it grow. A compiled function that is then
called with the old arrays returns None, and `_run` repeats the call with the new ones.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NoReturn, overload

import numpy as np
import numpy.typing as npt
from numba import typeof

from timers.arrays import Bools, Int64s
from timers.errors import (
    CapacityError,
    ClockError,
    NestedCallError,
    ParameterError,
    TimeRangeError,
)
from timers.kernels import dispatch
from timers.kernels.counters import COUNTERS
from timers.kernels.dispatch import (
    ARRIVED,
    BACKWARDS,
    FILLED,
    FULL,
    LAST_SCHEDULED,
    LEGAL,
)
from timers.kernels.handles import LOWEST_HANDLE, PLACE_MASK
from timers.kernels.memory import is_reserved
from timers.kernels.operations import NONE
from timers.kernels.pool import EXPIRY, HEADER, MAX_PLACES, NOW, PENDING, ROWS, grown_capacity
from timers.limits import LIMIT
from timers.protocol import Expired
from timers.schemes.guards import NESTED, NotCopied
from timers.snapshot import Snapshot
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

DEFAULT_CAPACITY = 1024
"""The number of pending timers that a new timer can hold before it grows."""

MAX_WHEEL_SIZE = 1 << 20
"""The largest number of slots of one wheel: more would waste memory."""

_FIRST_ROWS = 256  # in the first part: enough for most advances
_GROWTH = 8  # each further part is larger by this factor
_MAX_ROWS = 1 << 16  # in one part: more do not fit into the processor's cache


@overload
def place_of(handle: int) -> int: ...
@overload
def place_of(handle: Int64s) -> Int64s: ...
def place_of(handle: Any) -> Any:
    """The place of a handle, or of each handle in an int64 array: a dense index from 0.

    A place belongs to its timer while the timer is pending, and is re-used afterwards. So you can
    keep payloads in arrays indexed by place. A stale handle has a place, too. O(1) for each handle.

    Raises TimeTypeError for what is not an integer or an array of integers, and TimeRangeError for
    a number that cannot be a handle.

    >>> from timers import DelayQueue
    >>> timer = DelayQueue()
    >>> place_of(timer.schedule(10)), place_of(timer.schedule_many([20, 30])).tolist()
    (0, [1, 2])
    """
    if isinstance(handle, np.ndarray):
        handle = as_integers(handle, "handle")
        lowest = handle.min(initial=LIMIT)
    else:
        lowest = handle = as_integer(handle, "handle")
    if lowest < LOWEST_HANDLE:
        raise TimeRangeError(f"{shown(int(lowest))} is not a handle: handles are at least 2**32")
    return handle & PLACE_MASK


def _batch_result(size: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """An array for the result of a batch. Raises CapacityError."""
    try:
        return np.empty(size, dtype)
    except MemoryError:
        raise CapacityError(f"no memory for {size} results; nothing has changed") from None


_calls_of = cache(dispatch.Calls)

_owners: dict[str, str] = {}
"""Name of a State -> its kernel. Two kernels with the same name would run each other's code."""

Part = npt.NDArray[np.void]
"""Rows of EXPIRY that one `Calls.advance` fills; the first row counts the filled ones."""


def new_part(size: int) -> Part:
    """A part with room for `size` rows; none is filled yet."""
    part = np.empty(1 + size, EXPIRY)
    part[0] = 0
    return part


def filled(part: Part) -> Part:
    """The rows of a part that are filled."""
    return part[1 : 1 + part.item(0)[0]]  # FILLED; twice as fast as by name


_NO_ROOM = new_part(0)  # with this, `advance` stops before the first timer fires
_EMPTY = np.empty(0, INT64)


def no_expiries() -> Expired:
    """An Expired without rows. Slices of an array take less time than new arrays."""
    return tuple.__new__(Expired, (_EMPTY[:], _EMPTY[:], _EMPTY[:]))


def _divided(parts: list[Part], limit: int) -> tuple[list[Part], list[Part]]:
    """Divide parts after `limit` filled rows."""
    for k, part in enumerate(parts):
        rows = filled(part)
        if rows.size > limit:
            first, rest = new_part(limit), new_part(rows.size - limit)
            first[1:], rest[1:] = rows[:limit], rows[limit:]
            first[0][FILLED], rest[0][FILLED] = limit, rows.size - limit
            return [*parts[:k], first], [rest, *parts[k + 1 :]]
        limit -= rows.size
    return parts, []


def _joined(parts: list[Part]) -> Expired:
    """The filled rows of parts, in order."""
    if len(parts) == 1:  # usually; copies take less time than `concatenate`
        rows = filled(parts[0])
        columns = (rows["handle"].copy(), rows["deadline"].copy(), rows["fired_at"].copy())
        return tuple.__new__(Expired, columns)
    all_rows = [filled(part) for part in parts]
    names = ("handle", "deadline", "fired_at")
    return Expired(*(np.concatenate([rows[name] for rows in all_rows]) for name in names))


class KernelTimer(NotCopied):
    """A timer implemented by a kernel; see `timers.protocol` for the contract.

    The cost of each operation is declared in `traits.costs`. `counting=True` keeps cost counters
    (property `counters`) at about 1 ns per operation.
    """

    traits: Traits
    _kernel: Any  # a module; set by the class, like the traits

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if hasattr(cls, "_kernel"):
            state = cls._kernel.State
            owner = _owners.setdefault(state.__name__, state.__module__)
            if owner != state.__module__:
                raise ParameterError(
                    f"{state.__module__} and {owner} both call their State {state.__name__}:"
                    " rename one, because compiled code is found by that name"
                )

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
        capacity = as_parameter(capacity, "capacity", 1, MAX_PLACES)
        counters = np.zeros(len(COUNTERS), INT64) if counting else None
        try:
            state = self._kernel.allocate(start, capacity, self._parameters, counters)
        except MemoryError:
            raise CapacityError(
                f"no memory for capacity {capacity} with {self._parameters}"
            ) from None
        # The arrays in use, or older ones; and a list, to which a growth adds the next such tuple.
        self._arrays: tuple[Any, Any, Any, list[Any]] = (*state, [])
        self._call = _calls_of(type(state), tuple(map(typeof, state)))  # type: ignore[arg-type]  # a class is hashable
        self._fired: list[Part] = []  # rows that have left the structure and were not returned
        self._advancing = False

    @property
    def state(self) -> Any:
        """The arrays; larger ones replace them when the timer grows."""
        nodes, cells, counters, _ = self._current()
        return self._kernel.State(nodes, cells, counters)

    @property
    def now(self) -> int:
        """The clock: where the last `advance` took it, initially `start`. O(1).

        >>> from timers import DelayQueue
        >>> DelayQueue(start=5).now
        5
        """
        now: int = self._arrays[1].item(NOW)
        while now == NONE:
            now = self._current()[1].item(NOW)
        return now

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
        """Bytes held, all bookkeeping included. O(1).

        >>> from timers import DelayQueue
        >>> DelayQueue(capacity=1000).nbytes
        24080
        """
        return sum(array.nbytes for array in self.state if array is not None)

    @property
    def counters(self) -> dict[str, int] | None:
        """Cost counters since construction, by name; None unless `counting`. O(1).

        `timers.kernels.counters` describes each counter.

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
        while pending == NONE:
            pending = self._current()[1].item(PENDING)
        return pending

    def __repr__(self) -> str:
        arguments = [f"{name}={value}" for name, value in self._parameters.items()]
        arguments.append(f"start={self.now}")
        return f"{type(self).__name__}({', '.join(arguments)})  # {len(self)} pending"

    def reserve(self, extra: int) -> None:
        """Make room for `extra` more pending timers. O(`extra`), or O(1) if there is room.

        `schedule` and `schedule_many` do this themselves; call it to choose when. A small timer is
        copied when it grows: O(capacity), and the capacity doubles. From 1 MiB on, an array grows
        where it is, without a copy, if the system allows it (`timers.kernels.memory`). Room is
        never given back: to do so, start the pending timers in a new one.

        Raises:
            TimeTypeError: `extra` is not an integer.
            CapacityError: there is not enough memory, or not enough handles; nothing has changed.

        >>> from timers import DelayQueue
        >>> timer = DelayQueue(capacity=10)
        >>> timer.reserve(1000)
        """
        self._grow(as_integer(extra, "extra"))

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
        nodes, cells, counters, _ = self._arrays
        try:
            handle: int | None = self._call.schedule(nodes, cells, counters, deadline)
        except MemoryError:
            self._take_back()
        return self._run(1, self._schedule, deadline) if handle is None else handle

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
        """Remove a pending timer, and return whether it was pending.

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
        nodes, cells, counters, _ = self._arrays
        cancelled: bool | None = self._call.cancel(nodes, cells, counters, handle)
        return self._run(0, self._call.cancel, handle) if cancelled is None else cancelled

    def reschedule(self, handle: int, deadline: int) -> bool:
        """Give a pending timer a new deadline, and return whether it was pending.

        It keeps its handle. False exactly when `cancel` would return False. For the order among
        equal deadlines, a re-arm counts as a new arming.

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
        nodes, cells, counters, _ = self._arrays
        moved: bool | None = self._call.reschedule(nodes, cells, counters, handle, deadline)
        return self._run(0, self._call.reschedule, handle, deadline) if moved is None else moved

    def advance(self, now: int, limit: int | None = None) -> Expired:
        """Move the clock to `now` and return the timers that fired, ordered by `fired_at`.

        A second call with the same `now` returns timers that were scheduled overdue in between.
        With a `limit`, at most so many timers fire. When so many have, the clock stays at the
        `fired_at` of the last. The others are still pending, and the next call goes on with them.

        Raises:
            TimeTypeError: `now` or the limit is not an integer.
            TimeRangeError: `now` is outside [0, 2**63 - 1].
            ParameterError: the limit is below 1.
            ClockError: `now` is before the timer's clock.
            CapacityError: no memory for the expired timers; the next `advance` returns them.
            NestedCallError: a finalizer or signal handler calls it in the middle of another.

        >>> from timers import DelayQueue
        >>> timer = DelayQueue()
        >>> handles = timer.schedule_many([30, 10, 20])
        >>> expired = timer.advance(25)
        >>> expired.deadlines, expired.fired_at
        (array([10, 20]), array([10, 20]))
        >>> handles = timer.schedule_many([40, 41, 42])
        >>> timer.advance(50, limit=2).deadlines, timer.now, timer.next_expiry()
        (array([30, 40]), 40, 41)
        """
        if type(now) is not int or not 0 <= now <= LIMIT:
            now = as_time(now, "now")
        if limit is None:
            limit = LIMIT
        elif type(limit) is not int or not 1 <= limit <= LIMIT:
            limit = as_parameter(limit, "limit", 1, LIMIT)
        if self._advancing:
            raise NestedCallError(NESTED)
        try:
            self._advancing = True
            nodes, cells, counters, _ = self._arrays
            outcome = self._call.advance(nodes, cells, counters, now, _NO_ROOM)
            if outcome == ARRIVED and not self._fired:
                return no_expiries()
            expired, rest = self._fire(now, outcome, limit)
            self._fired = rest  # Python runs nothing else between this step and `return`
            return expired
        finally:
            self._advancing = False

    def next_expiry(self) -> int | None:
        """A lower bound of the next `fired_at`, exact if `traits.exact_next_expiry`.

        The bound is never before `now`, and is `now` if something is already due. None if and only
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
        """When `advance` should next be called, even if nothing expires then; None if never.

        This may be earlier than the next expiry: timers move to a finer wheel on the way. It may
        also be the time of a bucket in which all timers have been cancelled.

        >>> from timers import HierarchicalWheel
        >>> timer = HierarchicalWheel(tick=1, wheel_size=20)
        >>> handle = timer.schedule(450)
        >>> timer.next_wakeup()
        400
        """
        return self._moment(self._call.next_wakeup)

    def schedule_many(self, deadlines: npt.ArrayLike) -> Int64s:
        """Add a timer for each deadline of a 1-D array or sequence of integers.

        Returns their handles: int64, of the same length. If it raises, none has been scheduled.

        Raises:
            TimeTypeError: an element is not an integer; the message names the first.
            TimeRangeError: an element is outside [0, 2**63 - 1]; the message names the first.
            CapacityError: there is no memory for that many more timers.

        >>> from timers import DelayQueue
        >>> timer = DelayQueue()
        >>> timer.schedule_many([30, 10]).size
        2
        """
        deadlines = as_integers(deadlines, "deadlines")
        handles = _batch_result(deadlines.size, INT64)
        nodes, cells, counters, _ = self._arrays
        negative = self._call.schedule_many(nodes, cells, counters, deadlines, handles)
        if negative is None:
            negative = self._run(handles.size, self._call.schedule_many, deadlines, handles)
        if negative != LEGAL:
            as_times(deadlines, "deadlines")  # names the first that is negative
        return handles

    def cancel_many(self, handles: npt.ArrayLike) -> Bools:
        """`cancel` for each handle of a 1-D array or sequence of integers, in order.

        Returns an array of bool, of the same length: False for the second occurrence of a handle.

        Raises:
            TimeTypeError: an element is not an integer; the message names the first.

        >>> from timers import DelayQueue
        >>> timer = DelayQueue()
        >>> handles = timer.schedule_many([30, 10])
        >>> timer.cancel_many([*handles, 12345])
        array([ True,  True, False])
        """
        handles = as_handles(handles, "handles")
        cancelled = _batch_result(handles.size, BOOL)
        nodes, cells, counters, _ = self._arrays
        if self._call.cancel_many(nodes, cells, counters, handles, cancelled) is None:
            self._run(0, self._call.cancel_many, handles, cancelled)
        return cancelled

    def reschedule_many(self, handles: npt.ArrayLike, deadlines: npt.ArrayLike) -> Bools:
        """`reschedule` for each pair of a handle and a deadline, in order.

        Takes two 1-D arrays or sequences of integers of equal length; returns an array of bool.

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
        rescheduled = _batch_result(handles.size, BOOL)
        nodes, cells, counters, _ = self._arrays
        call = self._call.reschedule_many
        negative = call(nodes, cells, counters, handles, deadlines, rescheduled)
        if negative is None:
            negative = self._run(0, call, handles, deadlines, rescheduled)
        if negative != LEGAL:
            as_times(deadlines, "deadlines")  # names the first that is negative
        return rescheduled

    def locate(self, handle: int) -> dict[str, int | str]:
        """Where the structure holds a pending timer: for example its level and slot.

        Empty if the timer is not pending. For learning and for tests. O(capacity).

        Raises:
            TimeTypeError: the handle is not an integer.

        >>> from timers import CascadingWheel
        >>> timer = CascadingWheel()
        >>> timer.locate(timer.schedule(300))
        {'level': 2, 'slot': 1}
        """
        handle = as_integer(handle, "handle")
        places = self.snapshot().places()
        return next((place for timer, place in places if timer.handle == handle), {})

    def snapshot(self) -> Snapshot:
        """Return the contents of the structure: wheels, lists, a heap. O(capacity).

        For drawings, for learning and for tests.

        >>> from timers import DelayQueue
        >>> timer = DelayQueue()
        >>> handles = timer.schedule_many([30, 10, 20])
        >>> [timer.deadline for timer in timer.snapshot().heap]
        [10, 30, 20]
        """
        snapshot: Snapshot = self._kernel.snapshot(self._copy())
        return snapshot

    def check(self) -> None:
        """Check every structural invariant. O(capacity).

        Raises:
            InvariantError: one does not hold; the message includes a dump of the state.

        >>> from timers import DelayQueue
        >>> DelayQueue().check()
        """
        self._kernel.check(self._copy())

    def _current(self) -> tuple[Any, Any, Any, list[Any]]:
        """The arrays in use, which `_arrays` then holds."""
        arrays = self._arrays
        while arrays[0].size != arrays[1].item(ROWS):  # a growth has replaced them
            arrays = self._arrays = arrays[3][0]
        return arrays

    def _run(self, extra: int, call: Any, *arguments: Any) -> Any:
        """Repeat a compiled call until its result is not None: with room for `extra` more timers,
        and with the arrays in use.
        """
        while True:
            nodes, cells, counters, _ = self._arrays
            result = call(nodes, cells, counters, *arguments)
            if result is not None:
                return result
            self._grow(extra)

    def _grow(self, extra: int) -> None:
        """Make room for `extra` more timers, if there is none.

        The larger arrays are listed beside the old ones; then the compiled `move_all` moves the
        timers to the first of the list, in one step. If a nested call has done so before, it does
        nothing.
        """
        while True:
            nodes, cells, counters, larger = self._current()
            _, _, pending, retired, base, _, rows, _ = cells[:HEADER].tolist()
            if nodes.size != rows:  # a nested call has made it grow since
                continue
            capacity, used = nodes.size - base, pending + retired
            if capacity - used >= extra:
                return
            try:
                if not larger:
                    in_place = is_reserved(nodes)
                    capacity = grown_capacity(capacity, used, extra, in_place=in_place)
                    state = self._kernel.State(nodes, cells, counters)
                    larger.append((*self._kernel.enlarged(state, capacity), []))
                self._call.move_all(nodes, cells, counters, *larger[0][:2])
            except MemoryError:
                raise CapacityError(
                    f"no memory for {extra} more timers besides the {len(self)} pending"
                ) from None

    def _fire(self, now: int, outcome: int | None, limit: int) -> tuple[Expired, list[Part]]:
        """The rest of an `advance`, if something is due or has fired before.

        Returns the result, and what an interrupted `advance` has left beyond the limit.
        """
        if outcome is None:
            outcome = self._run(0, self._call.advance, now, _NO_ROOM)
        if outcome == BACKWARDS:
            raise ClockError(f"now {now} is before the timer's clock {self.now}")
        room = limit
        if self._fired:  # by an advance that was interrupted
            room -= sum([part.item(0)[0] for part in self._fired])
        rows = _FIRST_ROWS if room > _FIRST_ROWS else room
        while outcome == FULL and room > 0:
            try:
                part = new_part(rows)
                self._fired.append(part)  # before it is filled, so that no row can be lost
            except MemoryError:
                raise CapacityError(f"no memory for {rows} more expired timers") from None
            outcome = self._run(0, self._call.advance, now, part)
            room -= rows
            rows = min(rows * _GROWTH, _MAX_ROWS, room)
        try:
            parts, rest = (self._fired, []) if room >= 0 else _divided(self._fired, limit)
            return (_joined(parts) if parts else no_expiries()), rest
        except MemoryError:
            raise CapacityError(
                "no memory for the expired timers; the next advance returns them"
            ) from None

    def _schedule(self, nodes: Any, cells: Any, counters: Any, deadline: int) -> int | None:
        """The compiled `schedule`, which leaves nothing behind if there is no memory."""
        try:
            handle: int | None = self._call.schedule(nodes, cells, counters, deadline)
        except MemoryError:
            self._take_back()
        return handle

    def _take_back(self) -> NoReturn:
        """Cancel the timer that was scheduled last: there was no memory to return its handle."""
        self._run(0, self._call.cancel, LAST_SCHEDULED)
        raise CapacityError("no memory for a handle; nothing has changed") from None

    def _moment(self, call: Any) -> int | None:
        """The moment that a compiled function returns, or `now` if timers of an interrupted
        advance wait for the next one.
        """
        if self._fired and any(part[0][FILLED] for part in self._fired):
            return self.now
        nodes, cells, counters, _ = self._arrays
        moment: int | None = call(nodes, cells, counters)
        if moment is None:
            moment = self._run(0, call)
        return None if moment == NONE else moment

    def _copy(self) -> Any:
        """A copy of the current State."""
        while True:
            state = self.state
            nodes, cells = map(np.ndarray.copy, state[:2])  # in one bytecode
            if cells[ROWS] == nodes.size:
                return state._replace(nodes=nodes, cells=cells)


def load_code(timer: object, *methods: str) -> None:
    """Load the timer's compiled code now, so that the first call does not stall: that of these
    methods, or all.
    """
    if isinstance(timer, KernelTimer):
        timer._call.load(*methods)
