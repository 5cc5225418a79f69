"""Acknowledge a write when the replicas of all its partitions have it, or report which do not.

A request that appends to several partitions waits until each partition's high watermark (the last
record that all replicas have) has reached the last record it wrote there.

>>> from timers.services import ManualClock
>>> clock = ManualClock()
>>> broker = Broker(SystemTimer(HierarchicalWheel(), clock=clock))
>>> broker.produce("r1", {"orders": 10, "payments": 4}, timeout=0.5)
>>> broker.replicated("orders", 10)
>>> broker.replicated("payments", 7)
r1 acknowledged
>>> broker.produce("r2", {"orders": 12, "payments": 9}, timeout=0.5)
>>> broker.replicated("payments", 9)
>>> clock.advance(0.5)
r2 timed out: orders
>>> broker.produce("r3", {"payments": 9}, timeout=0.5)
r3 acknowledged
"""

from timers import HierarchicalWheel
from timers.services import DelayedOperation, Purgatory, SystemTimer


class Produce(DelayedOperation):
    """A write; `offsets` is the last record it wrote in each partition."""

    def __init__(
        self, name: str, offsets: dict[str, int], watermarks: dict[str, int], timeout: float
    ) -> None:
        super().__init__(timeout)
        self.name, self.offsets, self.watermarks = name, offsets, watermarks

    def missing(self) -> list[str]:
        """The partitions whose replicas are behind."""
        return [name for name, last in self.offsets.items() if self.watermarks.get(name, -1) < last]

    def try_complete(self) -> bool:
        return not self.missing() and self.force_complete()

    def on_complete(self) -> None:
        missing = self.missing()
        print(self.name, f"timed out: {', '.join(missing)}" if missing else "acknowledged")


class Broker:
    """Partitions with their high watermarks."""

    def __init__(self, timer: SystemTimer) -> None:
        self.watermarks: dict[str, int] = {}
        self.waiting = Purgatory("produce", timer)

    def produce(self, name: str, offsets: dict[str, int], timeout: float) -> None:
        """Accept a write; it waits under each of its partitions."""
        operation = Produce(name, offsets, self.watermarks, timeout)
        self.waiting.try_complete_else_watch(operation, offsets)

    def replicated(self, partition: str, watermark: int) -> None:
        """Note that the replicas of a partition have caught up."""
        self.watermarks[partition] = watermark
        self.waiting.check_and_complete(partition)


if __name__ == "__main__":
    import time

    with SystemTimer(HierarchicalWheel()) as timer:
        broker = Broker(timer)
        broker.produce("r1", {"orders": 10, "payments": 4}, timeout=0.1)
        broker.produce("r2", {"orders": 11}, timeout=0.1)
        broker.replicated("orders", 10)
        broker.replicated("payments", 4)
        time.sleep(0.2)
