"""Long polling: answer a read as soon as there are enough bytes, or at its timeout.

>>> from timers.services import ManualClock
>>> clock = ManualClock()
>>> log = Log(SystemTimer(HierarchicalWheel(), clock=clock))
>>> log.fetch("a", minimum=10, timeout=0.5)
>>> log.fetch("b", minimum=100, timeout=0.5)
>>> log.append(b"hello")
>>> log.append(b" world")
a gets 11 bytes
>>> clock.advance(0.5)
b gets 11 bytes, at its timeout
>>> log.fetch("c", minimum=5, timeout=0.5)
c gets 11 bytes
"""

from timers import HierarchicalWheel
from timers.services import DelayedOperation, Purgatory, SystemTimer


class Fetch(DelayedOperation):
    """A read that waits for `minimum` bytes."""

    def __init__(self, name: str, log: "Log", minimum: int, timeout: float) -> None:
        super().__init__(timeout)
        self.name, self.log, self.minimum = name, log, minimum

    def enough(self) -> bool:
        """Whether the log has enough bytes."""
        return len(self.log.data) >= self.minimum

    def try_complete(self) -> bool:
        return self.enough() and self.force_complete()

    def on_complete(self) -> None:
        late = "" if self.enough() else ", at its timeout"
        print(f"{self.name} gets {len(self.log.data)} bytes{late}")


class Log:
    """Bytes that are appended and read."""

    def __init__(self, timer: SystemTimer) -> None:
        self.data = b""
        self.waiting = Purgatory("fetch", timer)

    def fetch(self, name: str, minimum: int, timeout: float) -> None:
        """Read everything as soon as there are `minimum` bytes."""
        self.waiting.try_complete_else_watch(Fetch(name, self, minimum, timeout), ["log"])

    def append(self, data: bytes) -> None:
        """Append data, and answer the reads that now have enough."""
        self.data += data
        self.waiting.check_and_complete("log")


if __name__ == "__main__":
    import time

    with SystemTimer(HierarchicalWheel()) as timer:
        log = Log(timer)
        log.fetch("a", minimum=10, timeout=0.1)
        log.fetch("b", minimum=100, timeout=0.1)
        log.append(b"hello world")
        time.sleep(0.2)
