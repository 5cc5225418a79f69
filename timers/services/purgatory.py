"""`Purgatory`: requests that wait for a condition or a timeout, as brokers keep them.

A pending operation is in the timer, and in a list of watchers for each of its keys. When it
completes, it leaves the timer at once, but stays in the lists until one of its keys is checked or
all lists are purged.
"""

import math
import threading
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from itertools import repeat
from operator import length_hint

from timers.errors import ParameterError
from timers.limits import LIMIT
from timers.services.calls import ScheduledCall
from timers.services.clock import NS_PER_S
from timers.services.delayed_operation import UNWATCHED, DelayedOperation, try_each
from timers.services.errors import ServiceClosedError, ServiceStateError, check_key, key_list
from timers.services.mailbox import PENDING
from timers.services.system_timer import SystemTimer
from timers.validation import as_parameter, shown

PURGE_PERIOD = 0.05
"""Minimum seconds between two automatic purges; each looks at every entry of every list."""

_NO_KEYS = (object(),)
"""Watched in place of no keys, so that `shutdown` finds the operations."""


class Purgatory:
    """Operations that wait until one of their keys makes progress, or until they time out.

    `timer` is a SystemTimer, which may serve others as well; it runs the timeouts. A completed
    operation leaves it at once, but stays in the lists of its keys. The timer purges these when the
    estimated total of watched operations exceeds the number pending by more than `purge_interval`,
    at most once in 50 ms (`PURGE_PERIOD`). With `reaper=False` it does not, and you call `purge`.
    Any thread may call any method. An exception of `try_complete` in `check_and_complete`, or of a
    timeout, goes to the timer's `on_error`, and the others go on. See docs/services.md.

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
    >>> order.paid = True
    >>> orders.check_and_complete(17)
    shipped
    1

    Raises:
        ParameterError: for a negative `purge_interval`, or what is not a SystemTimer.
    """

    def __init__(
        self, name: str, timer: SystemTimer, *, purge_interval: int = 1000, reaper: bool = True
    ) -> None:
        if not isinstance(timer, SystemTimer):
            raise ParameterError(f"timer must be a SystemTimer, not {shown(timer)}")
        self.name = name
        self._timer, self._mailbox = timer, timer._mailbox
        interval = as_parameter(purge_interval, "purge_interval", 0, LIMIT)
        self._interval = interval if reaper else math.inf
        self._closed = False
        # What follows changes while the lock of the timer's mailbox is held, which is re-entrant:
        # finalizers, handlers and comparisons of keys may use the purgatory. What they add while
        # something is being removed is kept; what they remove is left to the interrupted frame.
        self._lists: dict[Hashable, list[DelayedOperation]] = {}
        self._removing = threading.Lock()  # held within `_drop_completed`
        self._entered = 0  # operations that came to be watched
        # For each of these that completes, times out or is cancelled, `next` takes one None from
        # `_ends`, without the lock: it is one step of CPython, and needs no memory.
        self._ends = repeat(None, LIMIT)
        self._ends_at_purge = LIMIT  # how many were left
        self._purge_below = LIMIT - self._interval  # if no more are left, a purge is asked for
        self._next_purge = timer._mailbox.now()  # not before this moment
        self._purge: ScheduledCall | None = None  # the one that was asked for last

    @property
    def delayed(self) -> int:
        """The number of pending operations, exactly. O(1)."""
        return self._entered - LIMIT + length_hint(self._ends)

    @property
    def estimated_total(self) -> int:
        """The estimated number of operations in the lists: `delayed` as of the last purge, and one
        for each operation watched since. Those that left the lists without a purge still count.
        O(1).
        """
        return self._entered - LIMIT + self._ends_at_purge

    @property
    def watched(self) -> int:
        """The sum of the lengths of all lists: an operation counts once for each of its keys, or
        once without keys, until it is found to be completed. O(keys).
        """
        return sum(map(len, list(self._lists.values())))

    def try_complete_else_watch(
        self, operation: DelayedOperation, keys: Iterable[Hashable]
    ) -> bool:
        """Try to complete an operation, and watch it until it completes or times out.

        True if this call completed it. Its condition is tried once more after it has been added to
        the lists, so that progress in between is not missed. Without keys, only its timeout and
        `force_complete` complete it. An error withdraws the operation, unless it could not be
        watched at all. O(keys).

        Raises:
            KeyTypeError: for a key that is not hashable, and keys that are not iterable.
            ParameterError: for what is not a DelayedOperation, or one without its `__init__`.
            ServiceStateError: if a purgatory watches it already; that one goes on.
            ServiceClosedError: after `shutdown`, or after `close` of the timer.
        """
        return self.try_complete_else_watch_many([operation], keys) > 0

    def try_complete_else_watch_many(
        self, operations: Iterable[DelayedOperation], keys: Iterable[Hashable]
    ) -> int:
        """`try_complete_else_watch` for many operations that watch the same keys.

        Returns the number of them that this call completed. If none of them waits, `keys` is not
        looked at. If the purgatory is closed, or one of them cannot be watched, nothing happens to
        any of them. A later error withdraws them all. O(operations * keys).

        Raises:
            As `try_complete_else_watch`.
        """
        operations = list(operations)
        self._check(operations)
        waiting: list[DelayedOperation] = []
        try:
            completed = try_each(operations)
            if pending := _pending(operations):
                self._watch(pending, _checked(keys), waiting)
                completed += try_each(waiting)
                if pending := _pending(waiting):
                    self._schedule(pending)
        except BaseException:
            _withdraw(operations, waiting)
            raise
        return completed

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
        if len(_pending(operations)) < len(operations):
            self._drop_completed(key)
        return completed

    def cancel_for_key(self, key: Hashable) -> list[DelayedOperation]:
        """Withdraw the operations that watch `key` and return them: they will neither complete nor
        time out. O(watchers).

        Raises:
            KeyTypeError: for a key that is not hashable.
        """
        check_key(key)
        watchers = self._lists.get(key, []).copy()
        withdrawn = [operation for operation in watchers if operation.cancel()]
        self._drop_completed(key)
        return withdrawn

    def purge(self) -> int:
        """Remove completed operations from all lists; returns the number of entries removed.

        O(entries of all lists).
        """
        now = self._mailbox.now()
        # The estimate is reset first: what completes during the purge counts for the next one.
        with self._mailbox.lock:
            self._ends_at_purge = left = length_hint(self._ends)
            self._purge_below = left - self._interval
            self._next_purge = now + round(PURGE_PERIOD * NS_PER_S)
        return sum([self._drop_completed(key) for key in list(self._lists)])

    def shutdown(self) -> None:
        """Refuse new operations and withdraw those that are watched; the timer goes on."""
        with self._mailbox.lock:
            self._closed = True
        for key in list(self._lists):
            self.cancel_for_key(key)

    def _request_purge(self) -> None:
        """Called by operations when no more than `_purge_below` are left in `_ends`."""
        with self._mailbox.lock:
            if self._purge is None or self._purge.done():
                call, moment = ScheduledCall(), self._next_purge
                with suppress(ServiceClosedError):
                    self._purge = self._timer._post(call, moment, self.purge, (), None)
            self._purge_below = length_hint(self._ends) - self._interval

    def _check(self, operations: Sequence[DelayedOperation]) -> None:
        """Refuse what cannot be watched."""
        self._check_open()
        for operation in operations:
            if not hasattr(operation, "_purgatory"):
                name = type(operation).__name__
                raise ParameterError(
                    f"a {name} object is not a DelayedOperation, or did not run its __init__"
                )
            if operation._purgatory is not None:
                raise _is_watched(operation)

    def _report(self, operation: DelayedOperation, error: Exception) -> None:
        self._timer._report(operation.try_complete, error)

    def _check_open(self) -> None:
        if self._closed or self._mailbox.closed:
            raise ServiceClosedError(f"purgatory {shown(self.name)} is closed")

    def _watch(
        self,
        operations: Sequence[DelayedOperation],
        keys: Sequence[Hashable],
        waiting: list[DelayedOperation],
    ) -> None:
        """Append the operations that have not completed to `waiting`, count them, and add them to
        the lists of their keys.
        """
        now = self._mailbox.now()
        with self._mailbox.lock:
            self._check_open()
            with UNWATCHED:
                for operation in operations:
                    if operation._state != PENDING:
                        continue
                    if operation._purgatory is not None:
                        raise _is_watched(operation)
                    entered, moment = self._entered + 1, now + operation._moment
                    # No call, after which a handler could complete it: it would count for ever.
                    waiting += (operation,)
                    operation._purgatory, operation._moment, self._entered = self, moment, entered
            for key in keys or _NO_KEYS:
                self._lists.setdefault(key, []).extend(waiting)

    def _schedule(self, operations: Sequence[DelayedOperation]) -> None:
        """Put operations into the timer, which passes over those that are completed by then."""
        self._mailbox.post(*operations)

    def _drop_completed(self, key: Hashable) -> int:
        """Remove the completed operations of a key, and its list if that leaves it empty."""
        with self._mailbox.lock:
            watchers = self._lists.get(key)
            if watchers is None or self._removing.locked():
                return 0
            with self._removing:
                seen = watchers.copy()  # freed without the lock: finalizers may run
                pending = _pending(seen)
                if len(pending) < len(seen):
                    watchers[: len(seen)] = pending
                if not watchers:
                    self._lists.pop(key, None)
                    if watchers:  # of code that ran when keys were compared
                        self._lists.setdefault(key, []).extend(watchers)
        return len(seen) - len(pending)


def _checked(keys: Iterable[Hashable]) -> list[Hashable]:
    checked = key_list(keys)
    for key in checked:
        check_key(key)
    return checked


# Loops out of a `with` or `try`: see `no_exception_in_a_loop_skips_a_with` in the tests.


def _pending(operations: Sequence[DelayedOperation]) -> list[DelayedOperation]:
    return [operation for operation in operations if operation._state == PENDING]


def _withdraw(operations: Sequence[DelayedOperation], entered: Sequence[DelayedOperation]) -> None:
    """Cancel operations, but not those that had entered a purgatory before."""
    ours = set(map(id, entered))
    for operation in operations:
        if operation._purgatory is None or id(operation) in ours:
            operation.cancel()


def _is_watched(operation: DelayedOperation) -> ServiceStateError:
    return ServiceStateError(f"{operation!r} has been watched before; make a new one")
