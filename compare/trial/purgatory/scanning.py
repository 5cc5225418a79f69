"""`ScanningPurgatory`: the old design of purgatories, for comparison.

Source: the request purgatory of Apache Kafka before version 0.8.3. Its queue is a DelayQueue from
which nothing can be removed but the head, so completed requests stay in it.
"""

from collections.abc import Sequence

from timers.limits import LIMIT
from timers.services.calls import ScheduledCall
from timers.services.delayed_operation import DelayedOperation
from timers.services.purgatory import Purgatory
from timers.services.system_timer import SystemTimer
from timers.validation import as_parameter

_REAPER_PERIOD = 0.2
"""Maximum number of seconds between two turns of the reaper."""


class ScanningPurgatory(Purgatory):
    """A Purgatory whose completed operations stay in the queue and the lists until they are found.

    `timer` is a SystemTimer on a DelayQueue. A completed operation leaves it at its deadline, or
    when the reaper scans the queue. The reaper takes a turn after each deadline, and at least five
    times per second: it scans all lists if they have more than `limit` entries together, and the
    queue if it has more than `limit`. If more than that are really pending, every scan is wasted.

    >>> from timers import DelayQueue
    >>> from timers.services import DelayedOperation, ManualClock, SystemTimer
    >>> class Order(DelayedOperation):
    ...     def try_complete(self):
    ...         return False
    >>> orders = ScanningPurgatory("orders", SystemTimer(DelayQueue(), clock=ManualClock()))
    >>> order = Order(30)
    >>> orders.try_complete_else_watch(order, [17])
    False
    >>> order.force_complete(), orders.delayed, orders.queued, orders.watched
    (True, 0, 1, 1)
    >>> orders.purge(), orders.queued, orders.watched
    (2, 0, 0)

    Raises:
        ParameterError: for a negative limit.
    """

    def __init__(self, name: str, timer: SystemTimer, *, limit: int = 10_000) -> None:
        super().__init__(name, timer, reaper=False)
        self._limit = as_parameter(limit, "limit", 0, LIMIT)
        self._queue: dict[DelayedOperation, ScheduledCall] = {}
        self._turns = timer.schedule_every(_REAPER_PERIOD, self.reap, missed="delay")

    @property
    def queued(self) -> int:
        """The number of operations in the queue, completed ones included. O(1)."""
        return len(self._queue)

    def reap(self) -> int:
        """Take a turn of the reaper; return the number of entries removed. O(1) below the limit."""
        removed = super().purge() if self.watched > self._limit else 0
        return removed + (self._scan_queue() if self.queued > self._limit else 0)

    def purge(self) -> int:
        """Remove completed operations from the queue and all lists; returns how many entries.

        O(entries of all lists + queued).
        """
        return super().purge() + self._scan_queue()

    def shutdown(self) -> None:
        """Refuse new operations, withdraw those that are watched, and empty the queue."""
        self._turns.cancel()
        super().shutdown()
        self._scan_queue()

    def _scan_queue(self) -> int:
        completed = [op for op in list(self._queue) if op.is_completed]
        for operation in completed:
            call = self._queue.pop(operation, None)
            if call is not None:
                call.cancel()
        return len(completed)

    def _schedule(self, operations: Sequence[DelayedOperation]) -> None:
        timer = self._timer
        for operation in [each for each in operations if not each.is_completed]:
            call = timer._post(
                ScheduledCall(), operation._moment, self._pass_deadline, (operation,), None
            )
            self._queue[operation] = call
            if call.done():  # perhaps before it was in the queue
                self._queue.pop(operation, None)

    def _pass_deadline(self, operation: DelayedOperation) -> None:
        self._queue.pop(operation, None)
        try:
            if operation.force_complete():
                operation.on_expiration()
        finally:
            self.reap()
