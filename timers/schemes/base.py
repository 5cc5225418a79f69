"""What all timers with a kernel have in common: validation, growth, batches, results."""

from collections.abc import Mapping
from functools import cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from timers.errors import CapacityError, ClockError, ParameterError, TimeRangeError
from timers.kernels import dispatch
from timers.kernels.counters import COUNTERS, allocate_counters
from timers.kernels.handles import place_of
from timers.kernels.pool import BASE, EXPIRY, MOST_PLACES, NONE, NOW, PENDING, RETIRED
from timers.limits import LIMIT
from timers.protocol import (
    Bools,
    Expired,
    Int64s,
    as_integer,
    as_integers,
    as_time,
    as_times,
    shown,
)
from timers.traits import Traits

DEFAULT_CAPACITY = 1024
"""Pending timers for which a new timer has room before it grows."""

LARGEST_CAPACITY = MOST_PLACES
"""The most timers that can be pending in one timer."""

LARGEST_WHEEL = 1 << 20
"""The most slots of one wheel: more would be memory without use."""

_FIRST_ROWS = 256  # rows that most advances return at most: one small buffer kept for good
_MORE_ROWS = 1 << 16  # rows fetched at a time once the first buffer was full


@cache
def _calls_of(state_class: type) -> dispatch.Calls:
    return dispatch.Calls(state_class)


class KernelTimer:
    """A timer whose work is done by a kernel; see `timers.protocol` for the contract.

    `counting=True` keeps cost counters (property `counters`) at about 1 ns per operation.
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
        """The clock: the argument of the last `advance`, at first `start`."""
        return int(self.state.cells[NOW])

    @property
    def parameters(self) -> Mapping[str, int]:
        """The scheme's parameters of this instance."""
        return self._parameters

    @property
    def nbytes(self) -> int:
        """Bytes held, all bookkeeping included. At most 32 per place, plus the geometry."""
        return sum(array.nbytes for array in self.state if array is not None)

    @property
    def counters(self) -> dict[str, int] | None:
        """Cost counters since construction by name (`timers.kernels.counters`); None unless
        `counting`.
        """
        if self.state.counters is None:
            return None
        return dict(zip(COUNTERS, self.state.counters.tolist(), strict=True))

    def __len__(self) -> int:
        """The number of pending timers. O(1)."""
        return int(self.state.cells[PENDING])

    def __repr__(self) -> str:
        arguments = [f"{name}={value}" for name, value in self._parameters.items()]
        return f"{type(self).__name__}({', '.join([*arguments, f'start={self.now}'])})  # {len(self)} pending"

    def reserve(self, extra: int) -> None:
        """Make room for `extra` more pending timers; capacity grows by doubling.

        Raises CapacityError when memory or handles do not suffice; nothing has changed then.
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

        [A deadline that has passed is due at once: the next advance delivers it.] Cost: see
        `traits.costs`. Raises TimeTypeError, TimeRangeError, CapacityError.
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

        [A negative delay is due at once; now + delay is clamped to the range.] Raises
        TimeTypeError, CapacityError.
        """
        return self.schedule(min(max(self.now + as_integer(delay, "delay"), 0), LIMIT))

    def cancel(self, handle: int) -> bool:
        """Remove a pending timer.

        [False if it fired, was cancelled or never existed; True if due but not yet delivered.]
        Raises TimeTypeError.
        """
        if type(handle) is not int:
            handle = as_integer(handle, "handle")
        if not 0 < handle <= LIMIT:
            return False
        cancelled: bool = self._call.cancel(*self.state, handle)
        return cancelled

    def reschedule(self, handle: int, deadline: int) -> bool:
        """Give a pending timer a new deadline, keeping its handle.

        [False exactly where `cancel` gives False; counts as a new arming for the order.]
        Raises TimeTypeError, TimeRangeError.
        """
        handle, deadline = as_integer(handle, "handle"), as_time(deadline, "deadline")
        if not 0 < handle <= LIMIT:
            return False
        rescheduled: bool = self._call.reschedule(*self.state, handle, deadline)
        return rescheduled

    def advance(self, now: int) -> Expired:
        """Move the clock to `now` and return the timers that fired, ordered by `fired_at`.

        [The same `now` again delivers what has been scheduled overdue since.]
        Raises TimeTypeError, TimeRangeError, and ClockError for a `now` before the clock.
        """
        now = as_time(now, "now")
        if now < self.now:
            raise ClockError(f"now {now} lies before the timer's clock {self.now}")
        rows, done = self._call.advance(*self.state, now, self._out)
        first = self._out[:rows]
        if done:
            return Expired(*(first[column].copy() for column in EXPIRY.names or ()))
        parts = [first]
        while not done:
            out = np.zeros(min(_MORE_ROWS, max(len(self), 1)), EXPIRY)
            rows, done = self._call.advance(*self.state, now, out)
            parts.append(out[:rows])
        return Expired(
            *(np.concatenate([part[column] for part in parts]) for column in EXPIRY.names or ())
        )

    def next_expiry(self) -> int | None:
        """A bound of the next `fired_at`: now <= bound <= it, equal where
        `traits.exact_next_expiry`.

        [None if and only if nothing is pending; `now` when something is due already.]
        """
        moment = self._call.next_expiry(*self.state)
        return None if moment == NONE else moment

    def next_wakeup(self) -> int | None:
        """When the structure wants the next `advance`, cascades and emptied buckets included; None
        if never.
        """
        moment = self._call.next_wakeup(*self.state)
        return None if moment == NONE else moment

    def schedule_many(self, deadlines: npt.ArrayLike) -> Int64s:
        """Add a timer for each deadline; int64 handles of the same length.

        Raises TimeTypeError or TimeRangeError naming the first bad position; then nothing was
        scheduled.
        """
        deadlines = as_times(deadlines, "deadlines")
        self.reserve(deadlines.size)
        handles = np.empty(deadlines.size, np.int64)
        dispatch.schedule_many(self.state, deadlines, handles)
        return handles

    def cancel_many(self, handles: npt.ArrayLike) -> Bools:
        """`cancel` for each handle in order; a bool array. Raises TimeTypeError naming the first
        bad position.
        """
        handles = as_integers(handles, "handles")
        cancelled = np.empty(handles.size, np.bool_)
        dispatch.cancel_many(self.state, handles, cancelled)
        return cancelled

    def reschedule_many(self, handles: npt.ArrayLike, deadlines: npt.ArrayLike) -> Bools:
        """`reschedule` for each pair in order; a bool array. Raises like `schedule_many`; nothing
        has changed then.
        """
        handles, deadlines = as_integers(handles, "handles"), as_times(deadlines, "deadlines")
        if handles.size != deadlines.size:
            raise TimeRangeError(
                f"{handles.size} handles do not go with {deadlines.size} deadlines"
            )
        rescheduled = np.empty(handles.size, np.bool_)
        dispatch.reschedule_many(self.state, handles, deadlines, rescheduled)
        return rescheduled

    def _make_room(self) -> None:
        self.reserve(1)
        nodes, cells, _ = self.state
        self._room = int(nodes.size - cells[BASE] - cells[PENDING] - cells[RETIRED])

    def locate(self, handle: int) -> dict[str, int | str]:
        """Where the structure holds a pending timer: level, slot, rounds or heap index by name. For
        learning, tests.
        """
        handle = as_integer(handle, "handle")
        return cast(
            "dict[str, int | str]",
            self._kernel.locate(self.state, handle) if 0 < handle <= LIMIT else {},
        )

    def check(self) -> None:
        """Raise InvariantError, with a dump of the state, if a structural invariant does not hold.
        O(capacity).
        """
        self._kernel.check(self.state)


def as_parameter(value: Any, name: str, lowest: int, highest: int) -> int:
    """A constructor's integer parameter in [lowest, highest]."""
    value = as_integer(value, name)
    if not lowest <= value <= highest:
        raise ParameterError(f"{name} must lie in [{lowest}, {highest}], not {shown(value)}")
    return int(value)


__all__ = ["DEFAULT_CAPACITY", "KernelTimer", "as_parameter", "place_of"]
