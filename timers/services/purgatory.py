"""`Purgatory`: requests that wait for a condition or a timeout, as brokers keep them.

A pending operation is in the timer, and in a list of watchers for each of its keys. When it
completes it leaves the timer at once and stays in the lists. There it is found by the next look at
the list, or by a purge of all lists.
"""

import threading
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from timers.errors import ParameterError
from timers.limits import LIMIT
from timers.services.delayed_operation import DelayedOperation
from timers.services.errors import KeyTypeError, ServiceClosedError, ServiceStateError
from timers.services.system_timer import SystemTimer
from timers.validation import as_parameter, shown

_MOST_SHARDS = 1 << 20
_NO_KEY = object()  # the key of operations that are watched under none


class _Shard:
    """The lists of the keys whose hash falls here. `lock` is held to look one up and change it."""

    __slots__ = ("lists", "lock")

    def __init__(self) -> None:
        self.lists: dict[Hashable, list[DelayedOperation]] = {}
        self.lock = threading.RLock()

    def add(self, key: Hashable, operations: Sequence[DelayedOperation]) -> None:
        with self.lock:
            watchers = self.lists.get(key)
            if watchers is None:
                self.lists[key] = list(operations)
            else:
                watchers.extend(operations)

    def drop_completed(self, key: Hashable) -> int:
        """Remove the completed operations of a key, and its list if that leaves it empty."""
        with self.lock:
            watchers = self.lists.get(key)
            if watchers is None:
                return 0
            # A finalizer may add to the list meanwhile, so only the part that was seen is replaced.
            seen = len(watchers)
            pending = [each for each in islice(watchers, seen) if not each._args]
            if len(pending) < seen:
                watchers[:seen] = pending
            if not watchers:
                del self.lists[key]
            return seen - len(pending)


class Purgatory:
    """Operations that wait until one of their keys makes progress, or until they time out.

    `timer` is a SystemTimer, which may serve others as well; it runs the timeouts. The lists of
    watchers, one for each key, are spread over `shards` by the hash of the key. A completed
    operation leaves the timer at once, but stays in the lists of its keys. The lists are purged
    when the estimated total of watched operations exceeds the number pending by more than
    `purge_interval`. The timer runs this purge like a call that is due; with `reaper=False`, you
    call `purge`. Any thread may call any method.

    An exception of `try_complete` in `check_and_complete`, and those of timeouts, go to the timer's
    `on_error`, and the others go on.

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
        ParameterError: for a negative `purge_interval`, or `shards` outside [1, 2**20].
    """

    def __init__(
        self,
        name: str,
        timer: SystemTimer,
        *,
        purge_interval: int = 1000,
        shards: int = 512,
        reaper: bool = True,
    ) -> None:
        if not isinstance(timer, SystemTimer):
            raise ParameterError(f"timer must be a SystemTimer, not {shown(timer)}")
        self.name = name
        self._timer = timer
        self._interval = as_parameter(purge_interval, "purge_interval", 0, LIMIT)
        self._shards = [_Shard() for _ in range(as_parameter(shards, "shards", 1, _MOST_SHARDS))]
        self._reaper = reaper
        self._closed = False
        # Integers that are only ever changed by statements within which CPython switches no
        # threads: it does so at calls and jumps alone.
        self._entered = 0  # operations that came to be watched
        self._left = 0  # of these, completed, timed out or cancelled
        self._left_at_purge = 0
        self._purge_is_due = False

    @property
    def delayed(self) -> int:
        """The number of pending operations, exactly. O(1)."""
        return self._entered - self._left

    @property
    def estimated_total(self) -> int:
        """The estimated number of operations in the lists: `delayed` as of the last purge, and one
        for each operation watched since. O(1).
        """
        return self._entered - self._left_at_purge

    @property
    def watched(self) -> int:
        """The sum of the lengths of all lists: an operation counts once for each of its keys, and
        until it is found to be completed. O(shards + keys).
        """
        return sum(len(each) for shard in self._shards for each in list(shard.lists.values()))

    def try_complete_else_watch(
        self, operation: DelayedOperation, keys: Iterable[Hashable]
    ) -> bool:
        """Try to complete an operation, and watch it until it completes or times out.

        True if this call completed it. Its condition is tried once more after it has been added to
        the lists, so that progress in between is not missed. If `try_complete` raises, the
        operation is withdrawn. O(keys).

        Raises:
            KeyTypeError: for a key that is not hashable; the operation is not touched.
            ParameterError: for what is not a DelayedOperation, or without its `__init__`.
            ServiceStateError: if a purgatory watches it already.
            ServiceClosedError: after `shutdown`, or after `close` of the timer.
        """
        return bool(self.try_complete_else_watch_many((operation,), keys))

    def try_complete_else_watch_many(
        self, operations: Iterable[DelayedOperation], keys: Iterable[Hashable]
    ) -> int:
        """`try_complete_else_watch` for many operations that watch the same keys.

        Returns the number of them that this call completed. All are checked before the first is
        touched.

        Raises:
            As `try_complete_else_watch`. If one `try_complete` raises, all are withdrawn.
        """
        self._check_open()
        keys = list(keys) or [_NO_KEY]
        shards = [self._shard_of(key) for key in keys]
        operations = list(operations)
        for operation in operations:
            _check(operation)
        completed = 0
        waiting = []
        try:
            for operation in operations:
                if _try(operation):
                    completed += 1
                elif self._enter(operation):
                    waiting.append(operation)
            for key, shard in zip(keys, shards, strict=True):
                shard.add(key, waiting)
            self._check_open()  # `shutdown` withdraws what it finds in the lists
            for operation in waiting:
                completed += _try(operation)
                if not operation._args:
                    self._schedule(operation)
        except BaseException:
            for operation in operations:
                operation.cancel()
            raise
        return completed

    def check_and_complete(self, key: Hashable) -> int:
        """Try the operations that watch `key`; returns how many this call completed. O(watchers).

        Raises:
            KeyTypeError: for a key that is not hashable.
        """
        shard = self._shard_of(key)
        watchers = shard.lists.get(key)
        if watchers is None:
            return 0
        completed = stale = 0
        for operation in watchers.copy():
            if not operation._args:
                try:
                    completed += _try(operation)
                except Exception as error:
                    self._timer._report(operation.try_complete, error)
            stale += bool(operation._args)
        if stale:
            shard.drop_completed(key)
        return completed

    def cancel_for_key(self, key: Hashable) -> list[DelayedOperation]:
        """Withdraw the operations that watch `key` and return them: they will neither complete nor
        time out. O(watchers).

        Raises:
            KeyTypeError: for a key that is not hashable.
        """
        shard = self._shard_of(key)
        with shard.lock:
            watchers = shard.lists.pop(key, [])
        return [operation for operation in watchers if operation.cancel()]

    def purge(self) -> int:
        """Remove completed operations from all lists; returns the number of entries removed.

        O(entries of all lists).
        """
        # The estimate is reset first: what completes during the purge counts for the next one.
        self._left_at_purge = self._left
        self._purge_is_due = False
        return sum(
            shard.drop_completed(key)
            for shard in self._shards
            if shard.lists
            for key in list(shard.lists)
        )

    def shutdown(self) -> None:
        """Refuse new operations and withdraw those that are watched; the timer goes on."""
        self._closed = True
        for shard in self._shards:
            for key in list(shard.lists):
                self.cancel_for_key(key)

    # What operations call

    def _one_left(self) -> None:
        self._left += 1
        # The estimated total minus the number pending.
        if self._left - self._left_at_purge > self._interval and self._reaper:
            self._request_purge()

    def _request_purge(self) -> None:
        if not self._purge_is_due and not self._closed:
            self._purge_is_due = True
            with suppress(ServiceClosedError):
                self._timer.schedule_after(0, self.purge)

    # Helpers

    def _check_open(self) -> None:
        if self._closed or self._timer._closed:
            raise ServiceClosedError(f"purgatory {shown(self.name)} is closed")

    def _shard_of(self, key: Hashable) -> _Shard:
        try:
            return self._shards[hash(key) % len(self._shards)]
        except TypeError as error:
            raise KeyTypeError(f"a key must be hashable, not {shown(key)}") from error

    def _enter(self, operation: DelayedOperation) -> bool:
        """Count an operation as pending, unless it completed before."""
        try:
            # Whoever takes the token does so before or after the following, as no thread switch
            # comes in between: the operation is counted if its end will be.
            operation._callback  # noqa: B018
            if operation._purgatory is None:
                operation._purgatory = self
                self._entered += 1
                return True
        except AttributeError:
            return False
        raise _watched_already(operation)

    def _schedule(self, operation: DelayedOperation) -> None:
        """Put an operation in the timer. If it has completed since, the timer passes it over."""
        timer: Any = self._timer
        operation._service = timer
        operation._moment = min(timer._now() + operation._delay, LIMIT)
        timer._arrivals.append(operation)
        if operation._moment < timer._alarm or len(timer._arrivals) > timer._limit:
            timer._attend(operation)


def _check(operation: DelayedOperation) -> None:
    """Refuse what cannot be watched."""
    try:
        taken = operation._purgatory is not None
    except AttributeError:
        raise ParameterError(
            f"{shown(operation)} is not a DelayedOperation on which __init__ was called"
        ) from None
    if taken:
        raise _watched_already(operation)


def _watched_already(operation: DelayedOperation) -> ServiceStateError:
    return ServiceStateError(f"{operation!r} is watched already")


def _try(operation: DelayedOperation) -> bool:
    """`try_complete` with the operation's lock held."""
    with operation._lock:
        return not operation._args and bool(operation.try_complete())
