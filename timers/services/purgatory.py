"""`Purgatory`: requests that wait for a condition or a timeout, as brokers keep them.

A pending operation is in the timer, and in a list of watchers for each of its keys. When it
completes it leaves the timer at once and stays in the lists. There it is found by the next look at
the list, when the list has grown, or by a purge of all lists.
"""

import math
import threading
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress

from timers.errors import ParameterError
from timers.limits import LIMIT
from timers.services.calls import ScheduledCall
from timers.services.delayed_operation import UNWATCHED, DelayedOperation, try_each
from timers.services.errors import KeyTypeError, ServiceClosedError, ServiceStateError, check_key
from timers.services.mailbox import PENDING, Run
from timers.services.moments import NS_PER_S
from timers.services.system_timer import SystemTimer
from timers.validation import as_parameter, shown

PURGE_PERIOD = 0.05
"""Minimum number of seconds between two automatic purges.

A purge looks at every entry of every list and wakes the timer's thread, so its cost does not grow
with the number of operations that complete within this time.
"""

_PURGE_PERIOD_NS = round(PURGE_PERIOD * NS_PER_S)
_FRONT = 256  # entries: each time a list has grown by so many, as many are looked at, at least


class _Watchers(list[DelayedOperation]):
    """The list of a key."""

    __slots__ = ("until_trim",)

    until_trim: int  # so many more entries, and its front is looked at


class _Purge(ScheduledCall):
    """The timer's purge of a purgatory: run on its driver, as an executor might refuse it."""

    __slots__ = ("_purgatory",)

    _purgatory: "Purgatory"

    def _start(self, run: Run) -> None:
        timer = self._purgatory._timer
        timer._run(self._purgatory._purge_if_due, (), None, None, propagate=timer._thread is None)


class Purgatory:
    """Operations that wait until one of their keys makes progress, or until they time out.

    `timer` is a SystemTimer, which may serve others as well; it runs the timeouts. A completed
    operation leaves it at once, but stays in the lists of its keys. The timer purges these when the
    estimated total of watched operations exceeds the number pending by more than `purge_interval`,
    at most once in 50 ms (`PURGE_PERIOD`). Each time a list has grown by 256 operations (by a part
    of its length, if it is long), the completed ones among as many of its oldest are removed. With
    `reaper=False` neither happens, and you call `purge`. Any thread may call any method. An
    exception of `try_complete` in `check_and_complete`, or of a timeout, goes to the timer's
    `on_error`, and the others go on. See docs/services.md.

    >>> from timers import HierarchicalWheel
    >>> from timers.services import DelayedOperation, ManualClock, SystemTimer
    >>> class Order(DelayedOperation):
    ...     paid = False
    ...     def try_complete(self):
    ...         return self.paid and self.force_complete()
    ...     def on_complete(self):
    ...         print("shipped" if self.paid else "given up")
    >>> clock = ManualClock()
    >>> orders = Purgatory("orders", SystemTimer(HierarchicalWheel(), clock=clock))
    >>> order = Order(30)
    >>> orders.try_complete_else_watch(order, [17])
    False
    >>> orders.watched, orders.delayed
    (1, 1)
    >>> order.paid = True
    >>> orders.check_and_complete(17)
    shipped
    1

    Raises:
        ParameterError: for a negative `purge_interval`, or what is not a SystemTimer.
    """

    def __init__(
        self,
        name: str,
        timer: SystemTimer,
        *,
        purge_interval: int = 1000,
        reaper: bool = True,
    ) -> None:
        if not isinstance(timer, SystemTimer):
            raise ParameterError(f"timer must be a SystemTimer, not {shown(timer)}")
        self.name = name
        self._timer, self._mailbox = timer, timer._mailbox
        self._interval = as_parameter(purge_interval, "purge_interval", 0, LIMIT)
        # The lists change only while this lock is held. It is re-entrant, as finalizers, handlers
        # and comparisons of keys may use the purgatory. What they add while something is being
        # removed is kept; what they remove is left to the frame that is removing.
        self._lock = threading.RLock()
        self._removing = threading.Lock()  # held within `_drop_completed`, by the lock's owner
        self._lists: dict[Hashable, _Watchers] = {}
        self._reaper = reaper
        self._closed = False
        # These change while the mailbox's lock is held.
        self._entered = 0  # operations that came to be watched
        self._left = 0  # of these, completed, timed out or cancelled
        self._left_at_purge = 0
        # `_left - _left_at_purge` is the estimated total minus the number pending.
        self._purge_above = self._interval if reaper else math.inf
        self._next_purge = timer._mailbox.now()  # not before this moment
        self._purge_asked = False  # whether the timer has a purge to run

    @property
    def delayed(self) -> int:
        """The number of pending operations, exactly. O(1)."""
        return self._entered - self._left

    @property
    def estimated_total(self) -> int:
        """The estimated number of operations in the lists: `delayed` as of the last purge, and one
        for each operation watched since. Those that left the lists without a purge still count.
        O(1).
        """
        return self._entered - self._left_at_purge

    @property
    def watched(self) -> int:
        """The sum of the lengths of all lists: an operation counts once for each of its keys, and
        until it is found to be completed. O(keys).
        """
        return sum(map(len, list(self._lists.values())))

    def try_complete_else_watch(
        self, operation: DelayedOperation, keys: Iterable[Hashable]
    ) -> bool:
        """Try to complete an operation, and watch it until it completes or times out.

        True if this call completed it. Its condition is tried once more after it has been added to
        the lists, so that progress in between is not missed. Without keys, only its timeout and
        `force_complete` complete it. An error withdraws the operation. O(keys).

        Raises:
            KeyTypeError: for a key that is not hashable, and keys that are not iterable.
            ParameterError: for what is not a DelayedOperation, or one without its `__init__`.
            ServiceStateError: if a purgatory watches it already; that one goes on.
            ServiceClosedError: after `shutdown`, or after `close` of the timer.
        """
        return self._try_else_watch([operation], keys) > 0

    def try_complete_else_watch_many(
        self, operations: Iterable[DelayedOperation], keys: Iterable[Hashable]
    ) -> int:
        """`try_complete_else_watch` for many operations that watch the same keys.

        Returns the number of them that this call completed. If none of them waits, `keys` is not
        looked at. An error withdraws all of them. O(operations * keys).

        Raises:
            As `try_complete_else_watch`.
        """
        return self._try_else_watch(list(operations), keys)

    def check_and_complete(self, key: Hashable) -> int:
        """Try the operations that watch `key`; returns how many this call completed. O(watchers).

        Raises:
            KeyTypeError: for a key that is not hashable.
        """
        check_key(key)
        watchers = self._lists.get(key)
        if watchers is None:
            return 0
        operations = watchers.copy()
        completed = try_each(operations, self._report)
        if [operation for operation in operations if operation._state != PENDING]:
            self._drop_completed(key)
        return completed

    def cancel_for_key(self, key: Hashable) -> list[DelayedOperation]:
        """Withdraw the operations that watch `key` and return them: they will neither complete nor
        time out. O(watchers).

        Raises:
            KeyTypeError: for a key that is not hashable.
        """
        check_key(key)
        with self._lock:
            if self._removing.locked():
                watchers = self._lists.get(key, []).copy()
            else:
                watchers = self._lists.pop(key, [])
        return [operation for operation in watchers if operation.cancel()]

    def purge(self) -> int:
        """Remove completed operations from all lists; returns the number of entries removed.

        O(entries of all lists).
        """
        now = self._mailbox.now()
        # The estimate is reset first: what completes during the purge counts for the next one.
        with self._mailbox.lock:
            self._left_at_purge = left = self._left
            self._purge_above = left + self._interval if self._reaper else math.inf
            self._next_purge = now + _PURGE_PERIOD_NS
        return sum([self._drop_completed(key) for key in list(self._lists)])

    def shutdown(self) -> None:
        """Refuse new operations and withdraw those that are watched; the timer goes on."""
        self._closed = True
        for key in list(self._lists):
            self.cancel_for_key(key)

    def _request_purge(self) -> None:
        """Called by operations, with the mailbox's lock held, when the estimate is too far from the
        number pending.
        """
        if not self._purge_asked:
            purge = _Purge()
            purge._purgatory = self
            with suppress(ServiceClosedError):
                self._timer._post(purge, self._next_purge, _no_callback, (), None)
        self._purge_asked, self._purge_above = True, math.inf

    def _purge_if_due(self) -> None:
        """The purge that was asked for; in vain if the lists have been purged since."""
        with self._mailbox.lock:
            self._purge_asked = False
            self._purge_above = self._left_at_purge + self._interval
            due = self._left > self._purge_above
        if due:
            self.purge()

    def _try_else_watch(
        self, operations: Sequence[DelayedOperation], keys: Iterable[Hashable]
    ) -> int:
        self._check(operations)
        waiting: list[DelayedOperation] = []
        try:
            completed = try_each(operations)
            self._enter(operations, waiting)
            if waiting:
                self._watch(waiting, keys)
                completed += try_each(waiting)
                if pending := [op for op in waiting if op._state == PENDING]:
                    self._schedule(pending)
        except BaseException:
            entered = set(map(id, waiting))
            for operation in operations:
                if operation._purgatory is None or id(operation) in entered:
                    operation.cancel()
            raise
        return completed

    def _check(self, operations: Sequence[DelayedOperation]) -> None:
        """Refuse what cannot be watched."""
        if self._closed or self._mailbox.closed:
            raise self._is_closed()
        try:
            for operation in operations:
                if operation._purgatory is not None:
                    break
            else:
                return
        except AttributeError:
            raise ParameterError(
                f"a {type(operation).__name__} is not a DelayedOperation whose __init__ was called"
            ) from None
        raise _is_watched(operation)

    def _report(self, operation: DelayedOperation, error: Exception) -> None:
        self._timer._report(operation.try_complete, error)

    def _is_closed(self) -> ServiceClosedError:
        return ServiceClosedError(f"purgatory {shown(self.name)} is closed")

    def _enter(
        self, operations: Sequence[DelayedOperation], waiting: list[DelayedOperation]
    ) -> None:
        """Count the operations that have not completed as pending, and append them to `waiting`."""
        now = self._mailbox.now()
        with self._mailbox.lock, UNWATCHED:
            for operation in operations:
                if operation._state != PENDING:
                    continue
                if operation._purgatory is not None:
                    raise _is_watched(operation)
                waiting.append(operation)
                entered, moment = self._entered + 1, now + operation._moment
                operation._purgatory, operation._moment, self._entered = self, moment, entered

    def _watch(self, operations: Sequence[DelayedOperation], keys: Iterable[Hashable]) -> None:
        """Add operations to the lists of their keys."""
        if isinstance(keys, (str, bytes)):
            raise KeyTypeError(f"keys must be an iterable of keys, not {shown(keys)}; use a list")
        try:
            keys = iter(keys)
        except TypeError:
            raise KeyTypeError(f"keys must be an iterable, not {shown(keys)}") from None
        for key in keys:
            check_key(key)
            self._add(key, operations)
        if self._closed:  # `shutdown` may have looked at the lists before
            raise self._is_closed()

    def _schedule(self, operations: Sequence[DelayedOperation]) -> None:
        """Put operations into the timer, which passes over those that are completed by then."""
        self._mailbox.post(*operations)

    # The lists

    def _add(self, key: Hashable, operations: Sequence[DelayedOperation]) -> None:
        """Append to the list of a key.

        When it has grown enough, as many of the oldest operations are looked at as were added. So
        operations are freed about as fast as new ones are made. The garbage collector counts the
        difference: if purges alone freed them, thousands at a time, it would run much more often.
        """
        with self._lock:
            watchers = self._lists.get(key)
            if watchers is None:
                watchers = _Watchers()
                watchers.until_trim = _FRONT
                watchers = self._lists.setdefault(key, watchers)
            watchers.extend(operations)
            watchers.until_trim -= len(operations)
        if watchers.until_trim <= 0 and self._reaper:
            front = max(_FRONT, len(watchers) >> 5)  # a part, as all that follows is moved
            front, watchers.until_trim = front - watchers.until_trim, front
            self._drop_completed(key, front)

    def _drop_completed(self, key: Hashable, limit: int = LIMIT) -> int:
        """Remove the completed ones of the oldest operations of a key, and its list if that leaves
        it empty.
        """
        with self._lock:
            watchers = self._lists.get(key)
            if watchers is None or self._removing.locked():
                return 0
            with self._removing:
                seen = watchers[:limit]  # freed without the lock: finalizers may run
                pending = [operation for operation in seen if operation._state == PENDING]
                if len(pending) < len(seen):
                    watchers[: len(seen)] = pending
                if not watchers:
                    self._lists.pop(key, None)
                    if watchers:  # of code that ran when keys were compared
                        self._add(key, watchers)
        return len(seen) - len(pending)


def _no_callback() -> None:
    """A purge runs a method of the purgatory instead."""


def _is_watched(operation: DelayedOperation) -> ServiceStateError:
    return ServiceStateError(f"{operation!r} has been watched before; make a new one")
