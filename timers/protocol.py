"""The contract of a timer, which every implementation and the model in the tests keep.

**Time** is an integer count of *units* in [0, 2**63 - 1]. You say what a unit is; 1 ms is the usual
choice. A timer never reads a clock: you pass the time to `advance(now)`.

**Threads.** A timer belongs to one thread at a time. Two threads that use one timer at once can
crash the interpreter. This is not checked: looking up the thread id alone costs 50 ns, a quarter of
a call for a single timer. `timers.services.SystemTimer` takes calls from any thread.

**Deadlines and delays.** `schedule` takes an absolute deadline, `schedule_after` a delay relative
to the timer's `now`. A deadline that has passed is legal, and so is a negative delay: the next
`advance` delivers the timer, even an advance to the same `now`. `now + delay` is clamped to the
range; it never wraps.

**Firing.** The moment at which a timer fires is a closed form of its deadline, the clock when it
was last armed and the scheme's parameters: `due_at` of the traits' rounding. `advance` returns all
timers with due_at <= now, ordered by `fired_at`; one big jump and many small ones return the same
rows. A timer that is due but not yet delivered is still pending: it can be cancelled or re-armed.

**A limit.** `advance(now, limit)` returns at most `limit` rows, so a burst can be divided. When
that number is reached, the clock stays at the `fired_at` of the last row. Whatever else is due by
`now` is still pending, and the next `advance` goes on with it. There may be more if
`timer.now < now`, and there is if `next_expiry() == timer.now`.

**Handles** are positive int64 values. A handle dies when its timer fires or is cancelled. A dead or
unknown handle is harmless: `cancel` and `reschedule` return False. A timer cannot recognise handles
that belong to another timer. The function `place_of` (`from timers import place_of`) returns a
handle's place: a dense index from 0, stable while the timer is pending. Keep payloads in arrays
indexed by it.

**Inspection.** The timers of this package also have `snapshot`, which returns the contents of the
structure (`timers.snapshot`), and those with a kernel have `locate`, which returns the place of a
timer in it. A timer of your own needs neither; with `snapshot` it can be drawn (`wheelwork
anatomy`).

**Errors** derive from `timers.TimerError` and from the nearest builtin. An operation that raises
has changed nothing. Timers can be neither copied nor pickled.

**Interruptions.** Python runs finalizers and signal handlers between any two bytecodes. In the
middle of a call they may call the same timer: all methods are allowed, except that an `advance` in
the middle of another raises NestedCallError. A signal handler may raise. Each method takes effect
in its last step, so a call that is interrupted before it has changed nothing. Only timers that an
interrupted `advance` has taken out, or one without memory for its result, stay out: the next
`advance` returns them first, with `fired_at` unchanged; they count towards its limit. Until then,
`now` is the moment that the clock had reached, and `next_expiry` and `next_wakeup` return `now`.
These timers are not pending: `len` does not count them, and `cancel` and `reschedule` return False.

A timer whose traits are not `interruptible`, such as the baseline in plain Python, refuses every
nested call, and an exception raised in the middle of a call may lose the timers of that call.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from timers.arrays import Bools, Int64s
from timers.limits import LIMIT
from timers.traits import Traits
from timers.validation import as_handles, as_integer, as_pairs, as_times


class Expired(NamedTuple):
    """The timers that fired in one `advance`, ordered by `fired_at`.

    Three new int64 arrays of equal length, with one row per timer.
    """

    handles: Int64s
    deadlines: Int64s
    fired_at: Int64s


@runtime_checkable
class Timer(Protocol):
    """The interface of every timer.

    A constructor takes the scheme's parameters, and the keywords `start` (the clock's first value)
    and `capacity` (the number of pending timers for which it initially has room).

    A timer of your own may inherit from this class. It then inherits `schedule_after`,
    `next_wakeup` (the next expiry), the batch forms (made of single calls) and a `check` that does
    nothing. All other methods are required. `now` and `parameters` may be class attributes that
    instances replace.
    """

    @property
    @abstractmethod
    def now(self) -> int:
        """The clock: where the last `advance` took it; initially `start`."""

    @property
    @abstractmethod
    def traits(self) -> Traits:
        """The declared properties of the scheme."""

    @property
    @abstractmethod
    def parameters(self) -> Mapping[str, int]:
        """This instance's parameters of the scheme, e.g. {"tick": 1, "wheel_size": 20}."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes held, including all bookkeeping."""

    @abstractmethod
    def schedule(self, deadline: int) -> int:
        """Add a timer for an absolute deadline and return its handle."""

    def schedule_after(self, delay: int) -> int:
        """Add a timer for now + delay and return its handle."""
        return self.schedule(min(max(self.now + as_integer(delay, "delay"), 0), LIMIT))

    @abstractmethod
    def cancel(self, handle: int) -> bool:
        """Remove a pending timer; False if it fired, was cancelled or never existed."""

    @abstractmethod
    def reschedule(self, handle: int, deadline: int) -> bool:
        """Give a pending timer a new deadline; it keeps its handle. False if it is not pending."""

    @abstractmethod
    def advance(self, now: int, limit: int | None = None) -> Expired:
        """Move the clock to `now` and return the timers that fired, at most `limit` of them.

        At the limit, the clock stays at the `fired_at` of the last.
        """

    @abstractmethod
    def next_expiry(self) -> int | None:
        """A lower bound of the next `fired_at`, or None if nothing is pending."""

    def next_wakeup(self) -> int | None:
        """The moment of the next useful `advance`, even if nothing expires then; None if never."""
        return self.next_expiry()

    @abstractmethod
    def __len__(self) -> int:
        """The number of pending timers."""

    def schedule_many(self, deadlines: npt.ArrayLike) -> Int64s:
        """`schedule` for each element; all or nothing."""
        return np.array([*map(self.schedule, as_times(deadlines, "deadlines").tolist())], np.int64)

    def cancel_many(self, handles: npt.ArrayLike) -> Bools:
        """`cancel` for each element, in order."""
        return np.array([*map(self.cancel, as_handles(handles, "handles").tolist())], np.bool_)

    def reschedule_many(self, handles: npt.ArrayLike, deadlines: npt.ArrayLike) -> Bools:
        """`reschedule` for each pair, in order."""
        handles, deadlines = as_pairs(handles, deadlines)
        as_times(deadlines, "deadlines")
        return np.array([*map(self.reschedule, handles.tolist(), deadlines.tolist())], np.bool_)

    def check(self) -> None:
        """Raise InvariantError if a structural invariant does not hold."""
