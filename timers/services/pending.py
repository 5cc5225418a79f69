"""The pending calls of a service: on their way into its timer, in the timer, and due.

**The rule.** Everything here changes while `lock` is held. The lock is re-entrant. A service of one
thread has none. The state of a call changes at once; only the timer lags behind: new calls and the
handles of those that left are gathered, and applied in batches. Callbacks run without the lock.

**Interruptions.** A finalizer or a signal handler may use the service while its own thread is in
here. It then changes states and appends; while `busy`, nothing is applied. What an interrupted
`apply` has filed already is looked at once more, in case its state has changed.

**Exceptions** can come anywhere, from a signal handler or for lack of memory. So what is gathered
is removed from its list in the last step: an exception before that applies it again. The handle of
a call says which row of the timer is its own. Rows that an exception left behind belong to no
call; they are ignored when they fire. After an `advance` that was interrupted, all calls are filed
again.
"""

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from itertools import repeat
from operator import attrgetter
from typing import Any, NoReturn

import numpy as np

from timers.arrays import Int64s
from timers.errors import ClockError, ParameterError
from timers.kernels.handles import PLACE_MASK
from timers.limits import LIMIT
from timers.protocol import Timer
from timers.schemes.base import load_code
from timers.schemes.unordered_list import UnorderedList
from timers.services.clock import Clock
from timers.services.errors import OverloadError, ServiceClosedError, ServiceStateError
from timers.validation import as_parameter, shown

BATCH = 128
"""Calls or handles that are gathered before they are applied."""

AWAKE = -1
"""The alarm while the driver is awake: it will look at new calls anyway."""

NEVER = LIMIT + 1
"""The alarm while nothing is pending."""

PENDING, STARTED, FINISHED, CANCELLED = range(4)
"""The states of a call. It runs, or an executor has it, while STARTED."""

UNFILED, DUE = 0, -1
"""The handles of calls that are not in the timer; handles of timers are positive."""

_LOOKS = 50  # of a caller at a lock that another thread holds, before it waits for it

_moment_of = attrgetter("_moment")


class Entry:
    """A call or an operation, as `Pending` sees it."""

    __slots__ = ("_handle", "_moment", "_state")

    _state: int
    _moment: int  # the deadline, in nanoseconds of the clock
    _handle: int  # in the timer, or UNFILED or DUE

    def cancel(self) -> Any:
        """Cancel the entry, if it is pending."""
        raise NotImplementedError


class Pending:
    """The pending calls of a service.

    `wake(moment)` is called with the lock held, if a call is due before the driver looks next, and,
    while the service is `ending`, if one is cancelled. It returns the new alarm: only a call with
    an earlier deadline has to wake the driver again. With `shared=False` there is no lock.
    """

    lock: Any  # a re-entrant one, or one that does nothing

    def __init__(
        self,
        timer: Timer,
        unit_ns: int,
        clock: Clock,
        wake: Callable[[int], int],
        name: str,
        max_pending: int | None = None,
        shared: bool = False,
    ) -> None:
        self.unit_ns = as_parameter(unit_ns, "unit_ns", 1, 10**18)
        if isinstance(timer, type) or not callable(getattr(timer, "advance", None)):
            raise ParameterError(
                f"timer must be a timer object, such as CascadingWheel(), not {shown(timer)}"
            )
        if len(timer):
            raise ParameterError(f"the timer must be empty; it has {len(timer)} pending")
        self.timer = timer
        self.closed = False  # refuses new calls
        self.runs_rest = False  # closed, but what is pending still runs
        owner = _owners.get(id(timer))
        if owner is not None and owner.timer is timer and not owner.closed:
            raise ParameterError("the timer belongs to another service")
        if max_pending is not None:
            max_pending = as_parameter(max_pending, "max_pending", 1, LIMIT)
        self.max_pending = max_pending
        self.guarded = max_pending is not None  # whether new calls have to be checked
        # Otherwise the first caller to use it would wait, and all others for the lock.
        load_code(timer, "move_all", "schedule_many", "cancel_many", "advance", "next_wakeup")
        self.clock, self.now, self.wake, self.name = clock, clock.now, wake, name
        self.start_unit = timer.now
        self.origin = self.latest = clock.now()  # the latest moment to which the timer was advanced
        self.alarm = AWAKE  # a call with an earlier deadline wakes the driver
        self.wakeup: int | None = None  # of the timer, or NEVER; None after a change of the timer
        self.ending = False  # whether somebody waits until nothing is pending
        self.new: list[Entry] = []  # to be filed
        self.gone: list[int] = []  # handles to be cancelled
        self.due: deque[Entry] = deque()  # by deadline; those with another handle than DUE left
        self.calls: list[Entry | None] = []  # in the timer, by place
        self.filed = 0  # pending calls that are in the timer or due
        self.busy = False  # whether a frame below uses the timer
        self.unsettled = False  # whether an `advance` was interrupted
        self.failed = False  # whether the last attempt to apply failed; then the driver repeats it
        self.shared = shared
        self.check_thread: Callable[[], object] = _any_thread  # refuses another than the loop's
        self.renew_lock()
        _owners[id(timer)] = self

    def renew_lock(self) -> None:
        """Make a lock that nobody holds."""
        self.lock = threading.RLock() if self.shared else _NoLock()

    @property
    def is_held(self) -> bool:
        """Whether a frame below this one holds the lock, on this thread, or uses the timer: so this
        is a finalizer or a signal handler that interrupted it.
        """
        return bool(self.lock._is_owned()) if self.shared else self.busy  # as Condition does

    def refuse(self) -> NoReturn:
        """Raise ServiceClosedError."""
        raise ServiceClosedError(f"{self.name} is closed")

    def refuse_more(self) -> NoReturn:
        """Raise OverloadError."""
        raise OverloadError(f"{self.name} is full: max_pending is {self.max_pending}")

    def close(self, runs_rest: bool = False) -> None:
        """Refuse new calls, and cancel what is pending unless the driver `runs_rest`."""
        with self.lock:
            self.runs_rest = runs_rest and (self.runs_rest or not self.closed)
            self.closed = self.guarded = True
            self.ending = self.runs_rest
        if not self.runs_rest:
            self.cancel_rest()

    def cancel_rest(self) -> None:
        """Cancel everything, without the lock: finalizers of what the calls drop may run."""
        for entry in self.entries():
            entry.cancel()
        with self.lock:
            self.apply()

    def entries(self) -> list[Entry]:
        """All pending entries, in no order. O(pending)."""
        with self.lock:
            everything = [*self.new, *self.calls, *self.due]
        pending = [each for each in everything if each is not None and each._state == PENDING]
        return list({id(each): each for each in pending}.values())

    def abandon(self) -> None:
        """Forget everything, in a forked child: the thread that held the lock does not exist."""
        self.closed = self.guarded = True
        self.runs_rest = self.busy = self.unsettled = False
        self.renew_lock()
        for entry in [*self.calls, *self.due]:
            if entry is not None:
                entry._handle = UNFILED
        self.timer, self.wakeup = UnorderedList(start=self.timer.now), None
        self.new, self.gone, self.filed = [], [], 0
        self.calls = [None] * len(self.calls)
        self.due.clear()

    # With the lock held

    def __len__(self) -> int:
        """The number of pending calls. O(1)."""
        new = {id(each) for each in self.new if each._state == PENDING and each._handle == UNFILED}
        return self.filed + len(new)

    def is_full(self) -> bool:
        """Whether `max_pending` calls are pending."""
        most = self.max_pending
        # At first without a look at each of the new ones, some of which may be cancelled.
        return most is not None and self.filed + len(self.new) >= most and len(self) >= most

    def add(self, entries: Iterable[Entry]) -> None:
        """Take new entries, but not those that have left. Raises ServiceClosedError."""
        if self.closed:
            if all(entry._state != PENDING for entry in entries):
                return
            self.refuse()
        new, alarm = self.new, self.alarm
        for entry in entries:
            if entry._state == PENDING:
                if entry._moment < alarm:
                    self.alarm = alarm = self.wake(entry._moment)
                    new.append(entry)
                    if self.closed:  # by a finalizer or a signal handler
                        entry.cancel()
                else:
                    new.append(entry)

    def leave(self, entry: Entry, state: int) -> None:
        """Give a pending entry another state."""
        handle = entry._handle
        # Nothing that can fail comes in between: it counts until here.
        entry._state = state
        if handle:
            self.filed -= 1
            if handle > 0:
                self.remove(handle)
        if self.ending:
            self.alarm = self.wake(self.latest)

    def begin(self, entry: Entry) -> bool:
        """Start an entry that is due; False if it was cancelled or moved."""
        if entry._state != PENDING or entry._handle != DUE:
            return False
        entry._state = STARTED
        self.filed -= 1
        return True

    def remove(self, handle: int) -> None:
        """Take a call out of the timer."""
        self.calls[handle & PLACE_MASK] = None
        self.gone.append(handle)
        if len(self.gone) >= BATCH and not self.failed:
            self.apply()

    def move(self, entry: Entry, moment: int, state: int = PENDING) -> bool:
        """Make an entry that is in this state pending, with a new deadline; False if it is in
        another state.
        """
        if moment < self.alarm:
            self.alarm = self.wake(moment)
        if entry._state == state == PENDING and entry._handle == UNFILED:
            entry._moment = moment
            return True
        busy = self.busy
        try:
            self.busy = True  # a frame that interrupts this one must not file it yet
            self.new.append(entry)
            if entry._state != state:
                return False
            handle = entry._handle
            # Nothing that can fail comes in between: its row, or its place in `due`, is void.
            if state == PENDING and handle:
                self.filed -= 1
            entry._handle, entry._moment, entry._state = UNFILED, moment, PENDING
        finally:
            self.busy = busy
        if handle > 0:
            self.remove(handle)
        return True

    def apply(self, now: int = -1) -> None:
        """Bring the timer up to date, unless a frame below uses it: except for what is due `now`,
        which never enters it.
        """
        if self.busy or not (self.new or self.gone or self.unsettled):
            return
        self.check_thread()
        try:
            self.busy = True
            self._apply(now)
        finally:
            self.busy = False

    def collect(self, now: int) -> bool:
        """Advance the timer towards the moment `now`, and append what is due to `due`.

        In a burst it stops after BATCH entries, so that what their callbacks ask for is not behind
        the whole burst, and `due` stays short. Within a unit it does not stop: there, the entries
        are sorted. Returns whether the timer has arrived.

        Raises:
            ClockError: if `now` is earlier than the last one.
        """
        if self.busy:
            raise ServiceStateError(f"this {self.name} is being advanced already")
        if now < self.latest:
            raise ClockError(f"the clock stepped back from {self.latest} to {now}")
        try:
            self.busy = True
            self._apply(now)
            unit = min((now - self.origin) // self.unit_ns, LIMIT - self.start_unit)
            self.latest = reached = now
            timer, target, handles = self.timer, self.start_unit + unit, []
            if self.wakeup is None or target >= self.wakeup:
                self.unsettled, self.wakeup = True, None
                handles = timer.advance(target, BATCH).handles.tolist()
                if len(handles) == BATCH:
                    handles += timer.advance(timer.now).handles.tolist()
                    if timer.now < target:
                        reached = self.moment_of(timer.now)
            self._take(handles, reached)
            self.unsettled = False
            return reached == now
        finally:
            self.busy = False

    def next_moment(self, now: int) -> int | None:
        """The moment at which the driver has to look next; None if nothing is pending.

        That is when the next call is due, or earlier: when the timer has to move calls to a finer
        wheel. To search a wheel's slot for its earliest call could take milliseconds. The alarm is
        set for that moment.
        """
        while True:
            self.apply(now)
            if self.wakeup is None:
                self._ask_for_wakeup()
            wakeup = self.wakeup
            moments = [entry._moment for entry in (*self.due, *self.new)]  # due now, or soon
            if wakeup is not None and wakeup != NEVER:
                moments.append(self.moment_of(wakeup))
            moment = min(moments, default=None)
            self.alarm = self.alarm_for(moment)
            # Otherwise a handler has changed the timer, or calls came before the alarm was set.
            if self.wakeup == wakeup is not None and (not self.new or now >= self.alarm):
                return moment

    def _ask_for_wakeup(self) -> None:
        """Ask the timer for the unit in which it has work next."""
        try:
            self.busy = True
            unit = self.timer.next_wakeup()
            self.wakeup = NEVER if unit is None else unit
        finally:
            self.busy = False

    def moment_of(self, unit: int) -> int:
        """The moment at which a unit of the timer begins."""
        return self.origin + (unit - self.start_unit) * self.unit_ns

    def alarm_for(self, moment: int | None) -> int:
        """The alarm if the driver looks next at the beginning of a unit: calls that are due before
        it wake the driver.
        """
        return NEVER if moment is None else moment - self.unit_ns + 1

    def due_at(self, deadline: int) -> int:
        """The moment at which the unit begins to which a deadline is rounded up."""
        return self.origin - (self.origin - deadline) // self.unit_ns * self.unit_ns

    # While `busy`

    def _apply(self, now: int = -1) -> None:
        self.failed = True  # until the end
        if self.unsettled:
            for entry in [each for each in self.calls if each is not None]:
                if entry._state == PENDING and entry._handle > 0:
                    self.move(entry, entry._moment)
            self.unsettled = False
        if gone := self.gone.copy():
            self.wakeup = None
            self.timer.cancel_many(np.array(gone, np.int64))
            del self.gone[: len(gone)]
        if new := self.new.copy():
            # PENDING and UNFILED
            self._file([e for e in new if e._moment > now and not (e._state or e._handle)])
            self.new[: len(new)] = [e for e in new if not (e._state or e._handle)]
        self.failed = False

    def _file(self, entries: list[Entry]) -> None:
        """Schedule entries."""
        if not entries:
            return
        moments = [entry._moment for entry in entries]
        self.wakeup = None
        array = self.timer.schedule_many(self._units_of(moments))
        try:
            self._enter(entries, moments, array)
        except BaseException:
            # An attempt that is repeated must not leave rows behind each time.
            with suppress(MemoryError, SystemError):
                self._take_back(entries, array)
            raise

    def _take_back(self, entries: list[Entry], handles: Int64s) -> None:
        """Take out of the timer what no entry has the handle of."""
        rows = zip(entries, handles.tolist(), strict=True)
        unused = [handle for entry, handle in rows if entry._handle != handle]
        self.timer.cancel_many(np.array(unused, np.int64))

    def _enter(self, entries: list[Entry], moments: list[int], handles: Int64s) -> None:
        """Give entries their handles."""
        places, calls = (handles & PLACE_MASK).tolist(), self.calls
        calls.extend(repeat(None, max(places) + 1 - len(calls)))
        rows = zip(entries, moments, handles.tolist(), places, strict=True)
        for entry, moment, handle, place in rows:
            calls[place] = entry
            if not entry._handle:
                self.filed += 1
            else:  # it was moved while it was taken from `new`, and came twice
                self.remove(entry._handle)
            entry._handle = handle
            # Whoever changed the entry before this could not tell by its handle.
            if entry._state != PENDING:
                self.filed -= 1
                self.remove(handle)
            elif entry._moment != moment:
                self.move(entry, entry._moment)

    def _take(self, handles: list[int], reached: int) -> None:
        """Append to `due` what the timer has returned, and what is new and due at the moment that
        it has reached: by nanoseconds.
        """
        calls = self.calls
        due = [each for each in self.new if each._moment <= reached and not each._handle]
        if not (due or handles):
            return
        for handle in handles:
            place = handle & PLACE_MASK
            entry = calls[place] if place < len(calls) else None
            # After an `advance` without memory, the next one returns rows of entries that have
            # been filed again since.
            if entry is not None and entry._handle == handle:
                due.append(entry)
        if self.due:  # not all of it has run
            self.due = deque(sorted([*self.due, *due], key=_moment_of))
        else:
            due.sort(key=_moment_of)
            self.due.extend(due)
        for entry in due:
            handle = entry._handle
            if handle > 0:
                entry._handle = DUE
                calls[handle & PLACE_MASK] = None
            elif entry._moment <= reached and not (entry._state or handle):
                self.filed += 1
                entry._handle = DUE
        if new := self.new.copy():
            self.new[: len(new)] = [each for each in new if not each._handle]

    def _units_of(self, moments: list[int]) -> Int64s:
        """For each moment, the first unit that does not begin before it."""
        try:
            before = self.origin - np.array(moments, np.int64)
            before //= self.unit_ns  # how many units before `origin`, rounded down
            np.minimum(before, 0, out=before)
            np.maximum(before, self.start_unit - LIMIT, out=before)  # the timer's end
            return np.subtract(self.start_unit, before, out=before)
        except OverflowError:  # beyond the end of the clock
            return self._units_of([min(moment, LIMIT) for moment in moments])
        except SystemError as error:  # of a ufunc without memory
            raise MemoryError(str(error)) from None


def _any_thread() -> None:
    """The check of the thread for a service that all threads may use."""


class _NoLock(nullcontext[None]):
    """In place of a lock, for a service of one thread."""

    def acquire(self) -> None:
        """Do nothing."""

    def release(self) -> None:
        """Do nothing."""


def wait_for(lock: Any) -> None:
    """Acquire a lock that another thread holds.

    A thread that waits in `acquire` owns the lock before it has the GIL. The one that has the GIL
    then waits in turn, and so each call of several threads would cost a change of threads. So this
    one lets the others go on, and looks again.
    """
    for _ in range(_LOOKS):
        time.sleep(0)
        if lock.acquire(False):
            return
    lock.acquire()


def release(lock: Any) -> None:
    """Release a lock after an exception, if this frame has acquired it.

    `with` would take twice the time of `acquire` and `release`, a fifth of that of a whole call.
    If a frame below holds the lock, this one cannot have failed to acquire it.
    """
    with suppress(RuntimeError):  # it was not acquired
        lock.release()


_owners: "weakref.WeakValueDictionary[int, Pending]" = weakref.WeakValueDictionary()
"""By the id of a timer, the last one that had it."""
