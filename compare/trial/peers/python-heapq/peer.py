"""heapq with tombstones: an entry stays in the heap when its timer is cancelled or armed again."""

import heapq
import platform
import sys

from compare.trial.peers import peer

DESCRIPTION = {
    "protocol": 1,
    "rearm": "cancel and start",
    "name": "python-heapq",
    "language": "Python",
    "library": platform.python_implementation(),
    "version": platform.python_version(),
    "scheme": "binary heap with tombstones (heapq)",
    "order": "fifo",
    "notes": {"cancel": "leaves a tombstone until its deadline"},
}


class Heap:
    """A heap of lists: deadline, operation, and whether the entry is live. A list is the handle."""

    def __init__(self, start: int) -> None:
        self._heap: list[list[int]] = []
        self._pending = 0

    def start(self, operation: int, deadline: int) -> list[int]:
        """Push an entry."""
        entry = [deadline, operation, True]
        heapq.heappush(self._heap, entry)
        self._pending += 1
        return entry

    def cancel(self, entry: list[int]) -> bool:
        """Make the entry a tombstone."""
        was_live = bool(entry[2])
        entry[2] = False
        self._pending -= was_live
        return was_live

    def rearm(self, entry: list[int], operation: int, deadline: int) -> list[int] | None:
        """Push another entry."""
        return self.start(operation, deadline) if self.cancel(entry) else None

    def advance(self, now: int) -> peer.Fired:
        """Pop what is due."""
        heap, fired = self._heap, []
        while heap and heap[0][0] <= now:
            entry = heapq.heappop(heap)
            if self.cancel(entry):
                fired.append((entry[1], entry[0]))
        return fired

    def next_wakeup(self) -> int:
        """The first deadline; tombstones above it are removed."""
        while not self._heap[0][2]:
            heapq.heappop(self._heap)
        return self._heap[0][0]

    def __len__(self) -> int:
        return self._pending


if __name__ == "__main__":
    sys.exit(peer.run_peer(DESCRIPTION, Heap))
