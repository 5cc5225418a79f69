"""The contract of a timer: held by every implementation, by the model in the tests, and by yours.

**Time** is an integer count of *units* in [0, 2**63 - 1]. You say what a unit is; 1 ms is the usual
reading. A timer never reads a clock: `advance(now)` tells it the time. Timers are not thread-safe.

**Deadlines and delays.** `schedule` takes an absolute deadline, `schedule_after` a delay relative
to the timer's `now`. A deadline that has passed is legal, and so is a negative delay: the next
`advance` delivers the timer, even an advance to the same `now`. `now + delay` is clamped to the
range; it never wraps.

**Firing.** The moment at which a timer fires is a closed form of its deadline, of the clock when it
was last armed, and of the scheme's parameters: `due_at` of the traits' rounding. `advance` returns all timers with
due_at <= now, ordered by `fired_at`; one big jump and many small ones return the same rows. A timer
that is due but not yet delivered is still pending: it can be cancelled or re-armed.

**Handles** are positive int64 values. A handle dies when its timer fires or is cancelled; a dead or
foreign handle is harmless: `cancel` and `reschedule` return False. `place_of(handle)` is a dense
index from 0, stable while the timer is pending, so that callers can keep payloads in arrays beside
the timer. A handle of another timer instance cannot be told from one's own.

**Errors** derive from TimerError and from the nearest builtin. An operation that raises has changed
nothing.
"""

import operator
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from timers.errors import TimeRangeError, TimeTypeError
from timers.limits import LIMIT
from timers.traits import Traits

_MOST_BITS_SHOWN = 256  # of an integer in an error message

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Expired(NamedTuple):
    """Timers that fired, ordered by `fired_at`; three fresh int64 arrays of one length."""

    handles: Int64s
    deadlines: Int64s
    fired_at: Int64s


@runtime_checkable
class Timer(Protocol):
    """What every timer can do. `start` (the clock's first value) and `capacity` are constructor
    keywords.
    """

    @property
    def now(self) -> int:
        """The clock: the argument of the last `advance`, at first `start`."""

    @property
    def traits(self) -> Traits:
        """What is declared about the scheme."""

    @property
    def parameters(self) -> Mapping[str, int]:
        """The scheme's parameters of this instance, e.g. {"tick": 1, "wheel_size": 20}."""

    @property
    def nbytes(self) -> int:
        """Bytes held, all bookkeeping included."""

    def schedule(self, deadline: int) -> int:
        """Add a timer for an absolute deadline and return its handle."""

    def schedule_after(self, delay: int) -> int:
        """Add a timer for now + delay (clamped to the range) and return its handle."""

    def cancel(self, handle: int) -> bool:
        """Remove a pending timer; False if it fired, was cancelled or never existed."""

    def reschedule(self, handle: int, deadline: int) -> bool:
        """Give a pending timer a new deadline, keeping its handle; False exactly where cancel gives
        False.
        """

    def advance(self, now: int) -> Expired:
        """Move the clock to `now` and return the timers that fired."""

    def next_expiry(self) -> int | None:
        """A lower bound of the next `fired_at` (exact where the traits say so); None if nothing is
        pending.
        """

    def next_wakeup(self) -> int | None:
        """When the structure itself wants the next `advance`; None if never."""

    def __len__(self) -> int:
        """The number of pending timers."""

    def schedule_many(self, deadlines: npt.ArrayLike) -> Int64s:
        """`schedule` for each element; all or nothing."""

    def cancel_many(self, handles: npt.ArrayLike) -> Bools:
        """`cancel` for each element, in order."""

    def reschedule_many(self, handles: npt.ArrayLike, deadlines: npt.ArrayLike) -> Bools:
        """`reschedule` for each pair, in order."""

    def check(self) -> None:
        """Raise InvariantError if a structural invariant does not hold."""


def as_time(value: Any, name: str) -> int:
    """`value` as a moment in [0, LIMIT]; `name` is what the error calls it."""
    moment = as_integer(value, name)
    if not 0 <= moment <= LIMIT:
        raise TimeRangeError(f"{name} {shown(moment)} is outside [0, 2**63 - 1]")
    return moment


def as_integer(value: Any, name: str) -> int:
    """`value` as a Python int; bool, float and whatever else has no exact integer are refused."""
    if type(value) is int:
        return value
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TimeTypeError(
            f"{name} must be an integer, not {type(value).__name__} ({shown(value)})"
        ) from None


def shown(value: Any) -> str:
    """A refused value for an error's one line: arrays have several, and Python prints no int of
    thousands of digits.
    """
    if isinstance(value, int):
        return (
            str(value)
            if value.bit_length() <= _MOST_BITS_SHOWN
            else f"of {value.bit_length()} bits"
        )
    return f"{' '.join(repr(value).split()):.60}"


def as_times(values: npt.ArrayLike, name: str) -> Int64s:
    """`values` as a 1-D int64 array of moments in [0, LIMIT]; the error names the first bad
    position.
    """
    array = as_integers(values, name)
    if array.size and array.min() < 0:
        position = int(np.argmax(array < 0))
        raise TimeRangeError(f"{name}[{position}] = {array[position]} is outside [0, 2**63 - 1]")
    return array


def as_integers(values: npt.ArrayLike, name: str) -> Int64s:
    """`values` as a 1-D int64 array; the error names the first position that is no int64."""
    array = values if isinstance(values, np.ndarray) else _array_of(values, name)
    if array.ndim != 1:
        raise TimeTypeError(f"{name} must be one-dimensional, not of shape {array.shape}")
    if array.size == 0 and array.dtype.kind in "fO":  # what numpy makes of an empty list
        return np.empty(0, np.int64)
    if array.dtype.kind == "O":
        for position, value in enumerate(array):
            _in_int64(as_integer(value, f"{name}[{position}]"), f"{name}[{position}]")
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TimeTypeError(
            f"{name} must hold integers, not {array.dtype} ({name}[0] = {array[:1].tolist()})"
        )
    if array.dtype == np.uint64 and array.size and array.max() > LIMIT:
        position = int(np.argmax(array > LIMIT))
        raise TimeRangeError(f"{name}[{position}] = {array[position]} is outside [0, 2**63 - 1]")
    return np.ascontiguousarray(array, np.int64)


def _array_of(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    """A sequence as an array that keeps each element as it is, so that the first bad one can be
    named.
    """
    try:
        items = list(values)  # type: ignore[arg-type]  # what is no sequence raises here
    except TypeError:
        raise TimeTypeError(
            f"{name} must be a 1-D array of integers, not {type(values).__name__}"
        ) from None
    array = np.empty(len(items), object)
    array[:] = items
    return array


def _in_int64(value: int, name: str) -> None:
    if not -LIMIT - 1 <= value <= LIMIT:
        raise TimeRangeError(f"{name} = {shown(value)} is outside [0, 2**63 - 1]")
