"""`Purgatory`: requests that wait for a condition or a timeout, as brokers keep them.

A pending operation is in the timer, and in a list of watchers for each of its keys. When it
completes, it leaves the timer at once, but stays in the lists until one of its keys is checked or
all lists are purged.

Everything here changes while the lock of the timer's service is held, which is re-entrant:
finalizers, signal handlers and comparisons of keys may use the purgatory. Operations that they add
while others are being removed are kept; what they remove is left to the interrupted frame.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from timers.errors import ParameterError
from timers.limits import LIMIT
from timers.services.calls import CallScheduler, ScheduledCall
from timers.services.clock import NS_PER_S
from timers.services.delayed_operation import UNWATCHED, DelayedOperation
from timers.services.errors import (
    OverloadError,
    ServiceClosedError,
    ServiceStateError,
    check_key,
    key_list,
)
from timers.services.pending import PENDING, release
from timers.validation import as_parameter, shown

OnError = Callable[[DelayedOperation, Exception], object]

PURGE_PERIOD = 0.05
"""Minimum seconds between two automatic purges; each looks at every entry of every list."""

_KEYS = 256  # whose lists a purge looks at before it releases the lock
_NOBODY: list[DelayedOperation] = []
_NO_KEYS = (object(),)
"""Watched in place of no keys, so that `shutdown` finds the operations."""


class Purgatory:
    """Operations that wait until one of their keys makes progress, or until they time out.

    `timer` is a SystemTimer or an AsyncTimer, which may serve others as well; it runs the timeouts.
    A completed operation leaves it at once, but stays in the lists of its keys. The timer purges
    these when the estimated total of watched operations exceeds the number pending by more than
    `purge_interval`, at most once in 50 ms (`PURGE_PERIOD`). With `reaper=False` it does not, and
    you call `purge`. Any thread may call any method; on an AsyncTimer, the thread of its loop. An
    exception of `try_complete` in `check_and_complete`, or of a timeout, goes to the timer's
    `on_error` (an AsyncTimer's loop has a handler), and the others go on. See docs/services.md.

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
        ParameterError: for a negative `purge_interval`, or what is neither a SystemTimer nor an
            AsyncTimer.
    """

    def __init__(
        self, name: str, timer: CallScheduler, *, purge_interval: int = 1000, reaper: bool = True
    ) -> None:
        if not isinstance(timer, CallScheduler):
            raise ParameterError(f"timer must be a SystemTimer or AsyncTimer, not {shown(timer)}")
        self.name = name
        self._timer, self._pending = timer, timer._pending
        interval = as_parameter(purge_interval, "purge_interval", 0, LIMIT)
        self._interval = interval if reaper else math.inf
        self._closed = False
        self._lists: dict[Hashable, list[DelayedOperation]] = {}
        self._in_use = False  # whether a frame below uses the lists: then nothing is removed
        self._entered = 0  # operations that came to be watched
        self._left = 0  # of these, completed, timed out or cancelled
        self._left_at_purge = 0
        self._purge_above = self._interval  # before one more leaves, a purge is asked for
        self._next_purge = timer._pending.now()  # not before this moment
        self._purge: ScheduledCall | None = None  # the one that was asked for last

    @property
    def delayed(self) -> int:
        """The number of pending operations, exactly. O(1)."""
        with self._pending.lock:
            return self._entered - self._left

    @property
    def estimated_total(self) -> int:
        """The estimated number of operations in the lists: `delayed` as of the last purge, and one
        for each operation watched since. Those that left the lists without a purge still count.
        O(1).
        """
        with self._pending.lock:
            return self._entered - self._left_at_purge

    @property
    def watched(self) -> int:
        """The sum of the lengths of all lists: an operation counts once for each of its keys, or
        once without keys, until it is found to be completed. O(keys).
        """
        with self._pending.lock:
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
            OverloadError: if the timer refuses more.
        """
        return self.try_complete_else_watch_many((operation,), keys) > 0

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
        operations = tuple(operations)
        self._check(operations)
        claim: list[None] = [None]
        entered: list[DelayedOperation] = []
        try:
            completed = _try_all(operations)  # nobody else can find them
            if completed < len(operations):
                known: Any = keys
                if type(keys) not in (list, tuple) and _pending(operations):
                    known = key_list(keys)
                now, lock = self._pending.now(), self._pending.lock
                try:
                    lock.acquire()
                    try:
                        UNWATCHED.acquire()
                        self._enter(operations, now, claim, entered)
                    except BaseException:
                        release(UNWATCHED)
                        raise
                    UNWATCHED.release()
                    if entered:
                        self._watch(entered, known)
                except BaseException:
                    release(lock)
                    raise
                lock.release()
                completed += self._try_claimed(claim, entered)
                self._schedule(entered)
        except BaseException:
            _withdraw(operations, entered)
            raise
        finally:
            claim.clear()
        return completed

    def check_and_complete(self, key: Hashable) -> int:
        """Try the operations that watch `key`; returns how many this call completed. O(watchers).

        Raises:
            KeyTypeError: for a key that is not hashable.
        """
        check_key(key)
        claim: list[None] = [None]
        try:
            with self._pending.lock:
                watchers = self._lists.get(key)
                if watchers is None:
                    return 0
                claimed = _claim(watchers, claim)
                all_wait = len(claimed) == len(watchers)
            completed = self._try_claimed(claim, claimed, self._report)
        finally:
            claim.clear()
        if completed or not all_wait:
            self._drop_completed([key])
        return completed

    def cancel_for_key(self, key: Hashable) -> list[DelayedOperation]:
        """Withdraw the operations that watch `key` and return them: they will neither complete nor
        time out. O(watchers).

        Raises:
            KeyTypeError: for a key that is not hashable.
        """
        check_key(key)
        with self._pending.lock:
            watchers = self._lists.get(key, _NOBODY).copy()
        withdrawn = [operation for operation in watchers if operation.cancel()]
        self._drop_completed([key])
        return withdrawn

    def purge(self) -> int:
        """Remove completed operations from all lists; returns the number of entries removed.

        O(entries of all lists).
        """
        now = self._pending.now()
        with self._pending.lock:
            # The estimate is reset first: what completes during the purge counts for the next one.
            self._left_at_purge = left = self._left
            self._purge_above = left + self._interval
            self._next_purge = now + round(PURGE_PERIOD * NS_PER_S)
            keys = list(self._lists)
        # The lock is released in between, so that nobody waits for the whole.
        parts = [keys[first : first + _KEYS] for first in range(0, len(keys), _KEYS)]
        return sum([self._drop_completed(part) for part in parts])

    def shutdown(self) -> None:
        """Refuse new operations and withdraw those that are watched; the timer goes on."""
        with self._pending.lock:
            self._closed = True
            keys = list(self._lists)
        for key in keys:
            self.cancel_for_key(key)

    def _request_purge(self) -> None:
        """Called by operations, with the lock held, when `_purge_above` others have left."""
        if self._purge is None or self._purge.done():
            call, moment = ScheduledCall(), self._next_purge
            with suppress(ServiceClosedError, OverloadError):
                self._purge = self._timer._post(call, moment, self.purge, (), None)
        self._purge_above = self._left + self._interval

    def _check(self, operations: Sequence[DelayedOperation]) -> None:
        """Refuse what cannot be watched."""
        if self._closed or self._pending.closed:
            raise self._is_closed()
        for operation in operations:
            try:
                if operation._purgatory is not None:
                    raise _is_watched(operation)
            except AttributeError:
                name = type(operation).__name__
                raise ParameterError(
                    f"a {name} object is not a DelayedOperation, or did not run its __init__"
                ) from None

    def _report(self, operation: DelayedOperation, error: Exception) -> None:
        self._timer._runner.report(operation.try_complete, error)

    def _is_closed(self) -> ServiceClosedError:
        return ServiceClosedError(f"purgatory {shown(self.name)} is closed")

    def _enter(
        self,
        operations: Iterable[DelayedOperation],
        now: int,
        claim: list[None],
        entered: list[DelayedOperation],
    ) -> None:
        """Count and claim the operations that are still pending, and append them to `entered`."""
        delay = moment = -1
        for operation in operations:
            if operation._state == PENDING:
                if operation._purgatory is not None:
                    raise _is_watched(operation)
                if operation._moment != delay:
                    delay = operation._moment
                    moment = now + delay
                number = self._entered + 1
                operation._tried_by, operation._asked = claim, False
                # No call, after which a handler could complete it: it would count for ever.
                entered += (operation,)
                operation._purgatory, operation._moment, self._entered = self, moment, number

    def _watch(self, operations: Sequence[DelayedOperation], keys: Sequence[Hashable]) -> None:
        """Add operations to the lists of their keys."""
        if self._closed or self._pending.closed:
            raise self._is_closed()
        lists, in_use = self._lists, self._in_use
        try:
            self._in_use = True
            for key in keys or _NO_KEYS:
                watchers = lists.get(key)
                if watchers is None:
                    watchers = lists.setdefault(key, [])
                watchers.extend(operations)
        except TypeError:
            for key in keys:
                check_key(key)
            raise
        finally:
            self._in_use = in_use

    def _schedule(self, operations: Sequence[DelayedOperation]) -> None:
        """Put operations into the timer, which passes over those that are completed by then."""
        self._timer._admit(operations)

    def _try_claimed(
        self,
        claim: list[None],
        claimed: Sequence[DelayedOperation],
        on_error: OnError | None = None,
    ) -> int:
        """Try operations, and once more those for which somebody has asked meanwhile."""
        completed, lock = 0, self._pending.lock
        while claimed:
            completed += _try_all(claimed, on_error)
            try:
                lock.acquire()
                claimed = _release(claimed)
            except BaseException:
                release(lock)
                raise
            lock.release()
        return completed

    def _drop_completed(self, keys: Sequence[Hashable]) -> int:
        """Remove the completed operations of some keys, and lists that this leaves empty."""
        former: list[list[DelayedOperation]] = []  # freed without the lock: finalizers may run
        with self._pending.lock:
            if self._in_use:
                return 0
            try:
                self._in_use = True
                return sum([self._drop_from(key, former) for key in keys])
            finally:
                self._in_use = False

    def _drop_from(self, key: Hashable, former: list[list[DelayedOperation]]) -> int:
        lists = self._lists
        watchers = lists.get(key, _NOBODY)
        count = len(watchers)
        pending = _pending(islice(watchers, count))
        if len(pending) == count:
            return 0
        former.append(watchers)
        # A new list, as a frame below may go through the old one.
        if pending:
            lists[key] = pending
        else:
            lists.pop(key, None)
        if len(watchers) > count:  # of code that ran meanwhile, for example to compare keys
            lists.setdefault(key, []).extend(watchers[count:])
        return count - len(pending)


# Loops out of a `with` or `try`: see `no_exception_in_a_loop_skips_a_with` in the tests.


def _pending(operations: Iterable[DelayedOperation]) -> list[DelayedOperation]:
    return [operation for operation in operations if not operation._state]  # PENDING


# Only the thread that has claimed an operation runs its `try_complete`. Whoever finds it claimed
# asks for another try, as the thread may have looked too early. All this is done with the lock
# held. The claim is a list, which an interrupted call empties: then all its claims are void.


def _claim(operations: Iterable[DelayedOperation], claim: list[None]) -> list[DelayedOperation]:
    """Claim the pending operations; ask for another try of those that others have claimed."""
    claimed = []
    for operation in operations:
        if operation._state == PENDING:
            holder = operation._tried_by
            if not holder:
                operation._tried_by, operation._asked = claim, False
                claimed.append(operation)
            elif holder is not claim:  # otherwise it is in the list twice
                operation._asked = True
    return claimed


def _release(claimed: Iterable[DelayedOperation]) -> list[DelayedOperation]:
    """Give up the claims, except for the operations for which somebody has asked."""
    asked = []
    for operation in claimed:
        if operation._asked and operation._state == PENDING:
            operation._asked = False
            asked.append(operation)
        else:
            operation._tried_by = None
    return asked


def _try_all(operations: Iterable[DelayedOperation], on_error: OnError | None = None) -> int:
    """Run `try_complete` of the pending operations; return how many that completed.

    Exceptions go to `on_error`, if it is given, and the rest of the operations go on.
    KeyboardInterrupt and the like always propagate.
    """
    completed = 0
    for operation in operations:
        if operation._state == PENDING:
            try:
                lock = operation._lock
                if lock is None:
                    if operation.try_complete():
                        completed += 1
                else:
                    with lock:
                        if operation.try_complete():
                            completed += 1
            except Exception as error:
                if on_error is None:
                    raise
                on_error(operation, error)
    return completed


def _withdraw(operations: Sequence[DelayedOperation], entered: Sequence[DelayedOperation]) -> None:
    """Cancel operations, but not those that had entered a purgatory before."""
    ours = set(map(id, entered))
    for operation in operations:
        if operation._purgatory is None or id(operation) in ours:
            operation.cancel()


def _is_watched(operation: DelayedOperation) -> ServiceStateError:
    return ServiceStateError(f"{operation!r} has been watched before; make a new one")
