"""`Purgatory`: requests that wait for a condition or a timeout, as brokers keep them.

A pending operation is in the timer, and in a list of watchers for each of its keys. When it
completes it leaves the timer at once and stays in the lists. There it is found by the next look at
the list, when the list has grown, or by a purge of all lists.
"""

import math
import threading
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from itertools import islice

from timers.errors import ParameterError
from timers.limits import LIMIT
from timers.services.calls import FIRED, ScheduledCall, no_callback
from timers.services.delayed_operation import DelayedOperation, try_each
from timers.services.errors import KeyTypeError, ServiceClosedError, ServiceStateError
from timers.services.moments import NS_PER_S
from timers.services.system_timer import SystemTimer
from timers.validation import as_parameter, shown

PURGE_PERIOD = 0.05
"""Seconds between two purges of a purgatory by its timer, at least.

A purge looks at every entry of every list and wakes the timer's thread, so its cost does not grow
with the number of operations that complete within this time.
"""

_PURGE_PERIOD_NS = round(PURGE_PERIOD * NS_PER_S)
_MOST_SHARDS = 1 << 20
_FRONT = 256  # entries: each time a list has grown by so many, as many are looked at, at least


class _Watchers(list[DelayedOperation]):
    """The list of a key."""

    __slots__ = ("until_trim",)

    until_trim: int  # so many more entries, and its front is looked at


class _Shard:
    """The lists of the keys whose hash falls here.

    Adding takes no lock, so a list may be deleted as empty before something is added to it. Whoever
    adds therefore looks afterwards whether the list is still that of the key.
    """

    __slots__ = ("_busy", "_removing", "lists")

    def __init__(self) -> None:
        self.lists: dict[Hashable, _Watchers] = {}
        self._removing = threading.RLock()
        # Whether something is being removed. It is set wherever the lock is held, except within
        # statements that switch no threads: so if it is not set, the lock is free.
        self._busy = False

    def add(self, key: Hashable, operations: Sequence[DelayedOperation]) -> _Watchers:
        """Append to the list of a key, and return it."""
        lists = self.lists
        while True:
            watchers = lists.get(key)
            if watchers is None:
                watchers = _Watchers()
                watchers.until_trim = _FRONT
                watchers = lists.setdefault(key, watchers)
            watchers.extend(operations)
            if lists.get(key) is watchers:
                return watchers

    def take(self, key: Hashable) -> list[DelayedOperation]:
        """Remove the list of a key and return it."""
        with self._removing:
            if self._busy:
                return self.lists.get(key, []).copy()
            self._busy = True
            try:
                return self.lists.pop(key, [])
            finally:
                self._busy = False

    def drop_completed(self, key: Hashable, most: int = LIMIT, *, wait: bool = True) -> int:
        """Remove the completed ones of the oldest operations of a key, and its list if that leaves
        it empty. Without `wait`, do nothing while another thread removes something.
        """
        if self._busy and not wait:
            return 0
        # Without `wait` the lock is free: no threads have been switched since the look.
        with self._removing:
            if self._busy:
                return 0
            self._busy = True
            try:
                return self._drop_completed(key, most)
            finally:
                self._busy = False

    def trim(self, key: Hashable, watchers: _Watchers) -> None:
        """Look at as many of the oldest operations of a key as were added since the last time.

        So operations are freed about as fast as new ones are made. The garbage collector counts the
        difference: if purges alone freed them, thousands at a time, it would run much more often.
        """
        front = max(_FRONT, len(watchers) >> 5)  # a part of the list, as all that follows is moved
        front, watchers.until_trim = front - watchers.until_trim, front
        # Who adds never waits: the owner of the lock may be running code of users.
        self.drop_completed(key, front, wait=False)

    def _drop_completed(self, key: Hashable, most: int) -> int:
        watchers = self.lists.get(key)
        if watchers is None:
            return 0
        # Others may add to the list meanwhile, so only the part that was seen is replaced.
        seen = min(len(watchers), most)
        pending = [each for each in islice(watchers, seen) if not each._args]
        if len(pending) < seen:
            watchers[:seen] = pending
        if not watchers:
            del self.lists[key]
            if watchers:  # a key whose __eq__ is Python code let others in
                self.add(key, watchers)
        return seen - len(pending)


class _Purge(ScheduledCall):
    """The timer's purge of a purgatory: run on its driver, as an executor might refuse it."""

    __slots__ = ("_purgatory",)

    _purgatory: "Purgatory"

    def _fire(self, armed: int) -> None:
        try:
            del self._callback
        except AttributeError:
            return
        self._args = FIRED
        timer = self._purgatory._timer
        timer._run(self._purgatory._purge_if_due, (), None, propagate=timer._thread is None)


class Purgatory:
    """Operations that wait until one of their keys makes progress, or until they time out.

    `timer` is a SystemTimer, which may serve others as well; it runs the timeouts. The lists of
    watchers, one for each key, are spread over `shards` by the hash of the key. A completed
    operation leaves the timer at once, but stays in the lists of its keys. The lists are purged
    when the estimated total of watched operations exceeds the number pending by more than
    `purge_interval`. The timer runs this purge like a call that is due, but not more often than
    once in 50 ms (`PURGE_PERIOD`). Each time a list has grown by 256 operations (by a part of its
    length, if it is long), the completed ones among as many of its oldest are removed. With
    `reaper=False` neither happens, and you call `purge`. Any thread may call any method.

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
        # `_left - _left_at_purge` is the estimated total minus the number pending.
        self._purge_above = self._interval if reaper else math.inf
        self._next_purge = timer._now()  # not before this moment
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
        until it is found to be completed. O(shards + keys).
        """
        return sum(len(each) for shard in self._shards for each in list(shard.lists.values()))

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
        shard = self._shard_of(key)
        watchers = shard.lists.get(key)
        if watchers is None:
            return 0
        operations = watchers.copy()
        completed = try_each(operations, self._report)
        if any(operation._args for operation in operations):
            shard.drop_completed(key)
        return completed

    def cancel_for_key(self, key: Hashable) -> list[DelayedOperation]:
        """Withdraw the operations that watch `key` and return them: they will neither complete nor
        time out. O(watchers).

        Raises:
            KeyTypeError: for a key that is not hashable.
        """
        watchers = self._shard_of(key).take(key)
        return [operation for operation in watchers if operation.cancel()]

    def purge(self) -> int:
        """Remove completed operations from all lists; returns the number of entries removed.

        O(entries of all lists).
        """
        # The estimate is reset first: what completes during the purge counts for the next one.
        self._left_at_purge = left = self._left
        self._purge_above = left + self._interval if self._reaper else math.inf
        self._next_purge = self._timer._now() + _PURGE_PERIOD_NS
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

    def _request_purge(self) -> None:
        """Called by operations when the estimate is too far from the number pending."""
        # No thread switch comes between the look and the assignment.
        if self._purge_asked:
            return
        self._purge_asked, self._purge_above = True, math.inf
        purge = _Purge()
        purge._purgatory = self
        with suppress(ServiceClosedError):
            self._timer._enter(purge, self._next_purge, no_callback, (), None)

    def _purge_if_due(self) -> None:
        """The purge that was asked for; in vain if the lists have been purged since."""
        self._purge_asked = False
        if self._left - self._left_at_purge > self._interval:
            self.purge()
        else:
            self._purge_above = self._left_at_purge + self._interval

    # Helpers

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
                if pending := [operation for operation in waiting if not operation._args]:
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
        if self._closed or self._timer._closed:
            raise self._is_closed()
        try:
            for operation in operations:
                if operation._purgatory is not None:
                    break
            else:
                return
        except AttributeError:
            raise ParameterError(
                f"{shown(operation)} is not a DelayedOperation on which __init__ was called"
            ) from None
        raise _is_watched(operation)

    def _report(self, operation: DelayedOperation, error: Exception) -> None:
        self._timer._report(operation.try_complete, error)

    def _is_closed(self) -> ServiceClosedError:
        return ServiceClosedError(f"purgatory {shown(self.name)} is closed")

    def _shard_of(self, key: Hashable) -> _Shard:
        try:
            return self._shards[hash(key) % len(self._shards)]
        except TypeError:
            raise KeyTypeError(f"a key must be hashable, not {shown(key)}") from None

    def _enter(
        self, operations: Sequence[DelayedOperation], waiting: list[DelayedOperation]
    ) -> None:
        """Count the operations that have not completed as pending, and append them to `waiting`."""
        for operation in operations:
            try:
                # Whoever takes the token does so before or after the following, as no thread switch
                # comes in between: the operation is counted if its end will be.
                operation._callback  # noqa: B018  # raises if the token is gone
                watched = operation._purgatory is not None
                if not watched:
                    operation._purgatory = self
                    self._entered += 1
            except AttributeError:
                continue
            if watched:
                raise _is_watched(operation)
            waiting.append(operation)

    def _watch(self, operations: Sequence[DelayedOperation], keys: Iterable[Hashable]) -> None:
        """Add operations to the lists of their keys."""
        try:
            keys = iter(keys)
        except TypeError:
            raise KeyTypeError(f"keys must be an iterable, not {shown(keys)}") from None
        added = len(operations)
        for key in keys:
            shard = self._shard_of(key)
            watchers = shard.add(key, operations)
            watchers.until_trim = left = watchers.until_trim - added
            if left <= 0 and self._reaper:
                shard.trim(key, watchers)
        if self._closed:  # `shutdown` may have looked at the lists before
            raise self._is_closed()

    def _schedule(self, operations: Sequence[DelayedOperation]) -> None:
        """Put operations into the timer, which passes over those that are completed by then."""
        timer = self._timer
        now, first = timer._now(), LIMIT
        known = moment = -1
        for operation in operations:
            delay = operation._moment
            if delay is not known:  # most often they share one int, and so the deadline
                known, moment = delay, now + delay
                if moment < first:
                    first = moment
            operation._moment = moment
        timer._post(operations, first)


def _is_watched(operation: DelayedOperation) -> ServiceStateError:
    return ServiceStateError(f"{operation!r} has been watched before; make a new one")
