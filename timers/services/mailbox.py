"""The mailbox of a service: entries on their way into a timer, the timer, and what is due.

Callers append entries to the mailbox. The driver of the service applies them to the timer in
batches, collects what is due and runs it. A caller who finds the mailbox full applies it first. An
entry that is cancelled before it is applied never touches the timer.

**The rule.** The timer, its tables, `ready` and the deadlines of entries change only while `lock`
is held, but for one step: the driver removes from `ready` what has run. An entry starts only while
it is held. Callbacks run without it. The lock is re-entrant: a finalizer or a signal handler may
use the service while its own thread holds the lock (`is_held`). It then only appends to the
mailbox; the interrupted method applies what it appended.

**Two steps take no lock**, because a lock would cost as much as all the rest of them. Each is one
step of CPython, which no other thread can divide:

- To schedule is `entries.append(call)`. The caller looks at `closed` and `alarm` after it; whoever
  closes, and the driver when it sets the alarm, looks at `entries` after that. A caller only marks
  an alarm as AWAKE, after it has woken the driver.
- To cancel is `del call._callback`. This attribute is the *token* of a call: of all threads that
  delete it, one succeeds. The caller looks at `_handle` after it; whoever sets `_handle` looks at
  the state after that. An operation of a purgatory has a token of its own.

So one of the two always sees what the other did.

**Exceptions** can come anywhere, from a signal handler or for lack of memory. A method therefore
does first what can fail, and takes effect in its last step. Applying has several steps, so entries
leave the mailbox only when all of them have been applied; to apply one twice does no harm. While
the timer and the tables differ, `unsettled` is True. A method that finds it True was preceded by an
interruption, and files again what the tables hold. Locks are taken by `with` alone, so no exception
leaves one held. (One limit: CPython keeps a lock if it has no memory to call its `__exit__`.)
"""

import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from itertools import repeat
from operator import itemgetter
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
from timers.services.errors import ServiceClosedError, ServiceStateError
from timers.validation import as_parameter, shown

MAILBOX_LIMIT = 128
"""Entries of a full mailbox: a caller who finds it full applies it."""

AWAKE = -1
"""The alarm of a service whose driver will look into the mailbox anyway."""

NEVER = LIMIT + 1
"""The alarm of a service with nothing pending: above every moment."""

TRIED = -1
"""In place of the deadline of an entry in `ready` that has been asked to begin."""

NO_HANDLE = 0
"""The handle of an entry that has not been in the timer yet; timers never return 0."""

PENDING, STARTED, CANCELLED = 0, 1, 2
"""The states of an entry."""


Callback = Callable[..., object]
Args = tuple[Any, ...]
Work = tuple[Callback, Args, Context | None]
"""A callback, its arguments, and the context to run it in; None is an empty one."""


class Entry:
    """What a mailbox knows of a call."""

    __slots__ = ("_handle", "_moment", "_state")

    _state: int  # PENDING, STARTED or CANCELLED
    _moment: int  # the deadline, in nanoseconds of the clock
    _handle: int  # in the timer; NO_HANDLE before the first one, stale once it has fired

    def cancel(self) -> bool:
        """Cancel the entry, and say whether it was pending."""
        raise NotImplementedError

    def _begin(self, moment: int) -> bool:
        """With the lock held, make the entry STARTED, and say whether it waited for `moment`."""
        raise NotImplementedError

    def _work(self) -> Work | None:
        """What to run, now that the entry has begun; None if it was cancelled since."""
        raise NotImplementedError

    def _finish(self) -> None:
        """Follow the end of a run: for entries that run again."""


class Mailbox:
    """Entries that are new or have changed, the timer that holds the others, and what is due.

    `wake` is called, on any thread, if an entry is due before the moment at which the driver looks
    next (the `alarm`).
    """

    def __init__(
        self, timer: Timer, unit_ns: int, clock: Clock, wake: Callable[[], object], name: str
    ) -> None:
        if not getattr(sys, "_is_gil_enabled", lambda: True)():
            raise ServiceStateError(f"{name} needs the GIL, which this Python runs without")
        self.unit_ns = as_parameter(unit_ns, "unit_ns", 1, 10**18)
        if isinstance(timer, type) or not callable(getattr(timer, "advance", None)):
            raise ParameterError(f"timer must be a timer, not {shown(timer)}")
        if len(timer):
            raise ParameterError(f"the timer must be empty; it has {len(timer)} pending")
        self.timer = timer
        self.closed = False  # refuses new entries
        self.runs_rest = False  # closed, but what is pending still runs
        owner = _owners.get(id(timer))
        if owner is not None and owner.timer is timer and not owner.closed:
            raise ParameterError("the timer belongs to another service")
        # Otherwise the first caller to use it would wait, and all others for the lock.
        load_code(timer, "move_all", "schedule_many", "cancel_many", "advance", "next_expiry")
        self.clock, self.now, self.wake, self.name = clock, clock.now, wake, name
        self.start_unit = timer.now
        self.origin = self.latest = clock.now()  # the latest moment to which the timer was advanced
        self.alarm = [AWAKE]  # a new list with each turn: see `hurry`
        self.has_thread = False  # whether the driver has a thread of its own
        self.in_callback = False  # whether it runs one
        self.entries: list[Entry] = []  # to be applied, in this order
        # Due, in order, with their deadlines. The driver removes each after its run, without the
        # lock, so whoever goes through them takes a copy, which is one step.
        self.ready: deque[tuple[Entry, int]] = deque()
        # By place: the entry that the timer holds there, and the deadline for which it is filed.
        self._held: list[Entry | None] = []
        self._filed: list[int] = []
        self._strays = 0  # handles in the timer that an interruption kept from their entries
        self.unsettled = False
        self.lock = threading.RLock()
        _owners[id(timer)] = self

    # What callers use

    @property
    def is_held(self) -> bool:
        """Whether a frame below this one holds the lock, on this thread: so this is a finalizer or
        a signal handler that interrupted it.
        """
        return self.lock._is_owned()  # type: ignore[attr-defined, no-any-return]  # as Condition does

    def post(self, *entries: Entry) -> None:
        """Add new entries. Raises ServiceClosedError."""
        if len(self.entries) >= MAILBOX_LIMIT:
            self.make_room()
        self.entries.extend(entries)
        if self.closed:
            self.refuse(*entries)
        for entry in entries:
            if entry._moment < self.alarm[0]:
                self.hurry()

    def make_room(self) -> None:
        """Apply the mailbox if it is full. Callers do this first, and so wait their turn.

        While the driver's thread is late or at work, but runs no callback, they let it go first:
        it needs the GIL, too, which each of them would keep for 5 ms.
        """
        if not self.is_held:
            if self.has_thread and not self.in_callback and self.alarm[0] < self.now():
                time.sleep(0.001)
            with self.lock:
                if len(self.entries) >= MAILBOX_LIMIT:
                    with suppress(MemoryError):  # the driver tries again, and reports it
                        self.apply()

    def refuse(self, *entries: Entry) -> NoReturn:
        """Withdraw entries from a mailbox that was closed before they came, or just then."""
        for entry in entries:
            entry.cancel()
        raise ServiceClosedError(f"{self.name} is closed")

    def hurry(self) -> None:
        """Wake the driver, which would sleep beyond the deadline of an entry that came."""
        alarm = self.alarm
        self.wake()
        alarm[0] = AWAKE  # nobody else has to wake it; an alarm that it has set meanwhile stays

    def size(self) -> int:
        """The number of pending entries. O(entries in the mailbox + due)."""
        held = self.is_held
        with self.lock:
            if not held:
                self.apply()
            due = self.ready.copy()
            waiting = [each._state == PENDING and each._moment == moment for each, moment in due]
            return len(self.timer) - self._strays + sum(waiting)

    def close(self, runs_rest: bool = False) -> bool:
        """Refuse new entries, and cancel what is pending unless the driver `runs_rest`.

        False if a frame below holds the lock: the timer follows when the mailbox is next applied.
        """
        held = self.is_held
        with self.lock:
            self.runs_rest = runs_rest and (self.runs_rest or not self.closed)
            self.closed = True
        self._cancel_rest(apply=not held)
        return not held

    def abandon(self) -> None:
        """Forget everything, in a forked child: the thread that held the lock does not exist."""
        self.closed, self.runs_rest = True, False
        self.lock = threading.RLock()
        self.timer = UnorderedList(start=self.timer.now)
        self.entries, self._held = [], [None] * len(self._held)
        self.ready.clear()
        self._strays, self.unsettled = 0, False

    # What drivers use. No frame below holds the lock.

    def turn(self, run: Callable[[Entry], object]) -> int | None:
        """Run what is due; returns the moment of the next turn, None if nothing is pending."""
        with self.lock:
            self.alarm = [AWAKE]
            self._collect()
        self._cancel_rest()
        self._run_ready(run)
        return self.next_turn()

    def next_turn(self) -> int | None:
        """When to take a turn; publishes it as the alarm, so that callers `hurry` the driver for
        earlier deadlines.

        Deadlines are rounded up to a unit: most that lie shortly before the moment are due then.
        """
        with self.lock:
            self.apply()
            expiry, moment = self.timer.next_expiry(), None
            if self.ready:
                moment = self.latest
            elif expiry is not None:
                moment = self.origin + (expiry - self.start_unit) * self.unit_ns
            self.alarm = [NEVER if moment is None else moment - self.unit_ns + 1]
            if self.entries:  # perhaps they came before the alarm was published
                self.alarm[0], moment = AWAKE, self.latest
            return moment

    def _run_ready(self, run: Callable[[Entry], object]) -> None:
        """Run what is due, without the lock. An entry stays in `ready` until it has run."""
        ready = self.ready
        while ready:
            entry, moment = ready[0]
            with self.lock:
                starts = entry._begin(moment)
                ready[0] = entry, TRIED  # what is filed from now on, for the same moment, is new
            if starts:
                self.in_callback = True
                run(entry)
                self.in_callback = False
            elif entry._state == STARTED:
                entry._finish()  # an exception came before the end of its run
            if ready:  # as in all processes but a child that a callback has forked
                ready.popleft()

    def _cancel_rest(self, apply: bool = True) -> None:
        """Cancel what a closed mailbox has pending, unless it is to run.

        Without the lock, as finalizers of what the entries drop may run.
        """
        if self.closed and not self.runs_rest:
            with self.lock:
                rest = [*self.entries, *self._held, *[entry for entry, _ in self.ready.copy()]]
            for entry in rest:
                if entry is not None:
                    entry.cancel()
            if apply:
                with self.lock:
                    self.apply()

    # With the lock held

    def apply(self) -> None:
        """Bring the timer up to date with the entries."""
        unsettled, self.unsettled = self.unsettled, True
        if unsettled:  # whatever is not in the timer will be filed again
            self.entries.extend([entry for entry in self._held if entry is not None])
            self._held = [None] * len(self._held)
        entries = self.entries.copy()  # others may append meanwhile
        new, changed, gone = [], {}, []
        for entry in entries:
            if entry._handle == NO_HANDLE:
                if entry._state == PENDING:
                    new.append(entry)
            else:
                if entry._state == PENDING:
                    changed[id(entry)] = entry
                gone.append(entry)
        self._remove(gone)
        if changed:
            due = {(id(entry), moment) for entry, moment in self.ready.copy()}
            new += [each for each in changed.values() if (id(each), each._moment) not in due]
        self._file(new)
        del self.entries[: len(entries)]
        if unsettled:
            self._count_strays()
        self.unsettled = False

    def _collect(self) -> None:
        """Apply, advance the timer to the clock's time, and append what is due to `ready`."""
        self.apply()
        now = self.now()
        if now < self.latest:
            raise ClockError(f"the clock stepped back from {self.latest} to {now}")
        self.latest = now
        unit = min((now - self.origin) // self.unit_ns, LIMIT - self.start_unit)
        self.unsettled = True
        handles = self.timer.advance(self.start_unit + unit).handles
        if handles.size:
            self._take(handles)
        self.unsettled = False

    def _file(self, entries: list[Entry]) -> None:
        """Schedule entries that are not in the timer."""
        if not entries:
            return
        moments = [entry._moment for entry in entries]
        handles = self.timer.schedule_many(self._units_of(moments))
        try:
            self._note(entries, moments, handles)
        except BaseException:
            # Otherwise they would stay until their deadline.
            self.timer.cancel_many(handles)
            raise

    def _note(self, entries: list[Entry], moments: list[int], array: Int64s) -> None:
        """Enter in the tables what has been scheduled.

        A method of its own: see `no_exception_in_a_loop_skips_a_with` in the tests.
        """
        handles, places = array.tolist(), (array & PLACE_MASK).tolist()
        self._held.extend(repeat(None, max(places) + 1 - len(self._held)))
        self._filed.extend(repeat(0, len(self._held) - len(self._filed)))
        held, filed, cancelled = self._held, self._filed, []
        for entry, moment, handle, place in zip(entries, moments, handles, places, strict=True):
            entry._handle = handle
            held[place] = entry
            filed[place] = moment
            # Whoever changed the entry before this could not tell by its handle.
            if entry._state == CANCELLED:
                cancelled.append(entry)
            elif entry._moment != moment:
                self.entries.append(entry)
        self._remove(cancelled)

    def _remove(self, entries: list[Entry]) -> None:
        """Cancel entries in the timer; those that left it by themselves are passed over."""
        if not entries:
            return
        handles = [entry._handle for entry in entries]
        self.timer.cancel_many(np.array(handles, np.int64))
        for entry, handle in zip(entries, handles, strict=True):
            if self._held[handle & PLACE_MASK] is entry:
                self._held[handle & PLACE_MASK] = None

    def _take(self, handles: Int64s) -> None:
        """Move what the timer has returned to `ready`: within a unit, by nanoseconds."""
        held, filed = self._held, self._filed
        due = []
        for handle in handles.tolist():
            place = handle & PLACE_MASK
            entry = held[place] if place < len(held) else None
            # After an `advance` without memory, the next one returns handles of entries that have
            # been filed again since.
            if entry is not None and entry._handle == handle:
                due.append((entry, filed[place]))
        due.sort(key=itemgetter(1))
        self.ready.extend(due)
        for entry, _ in due:
            held[entry._handle & PLACE_MASK] = None
        if len(due) < handles.size:
            self._count_strays()

    def _count_strays(self) -> None:
        self._strays = len(self.timer) - sum([entry is not None for entry in self._held])

    def _units_of(self, moments: list[int]) -> Int64s:
        """For each moment, the first unit that does not begin before it."""
        origin, unit_ns, start = self.origin, self.unit_ns, self.start_unit
        units = [
            start - (origin - moment) // unit_ns if moment > origin else start for moment in moments
        ]
        if max(units) > LIMIT:  # the timer has nearly reached its end
            units = [min(unit, LIMIT) for unit in units]
        return np.array(units, np.int64)


_owners: "weakref.WeakValueDictionary[int, Mailbox]" = weakref.WeakValueDictionary()
"""By the id of a timer, the last mailbox that had it."""
