"""heapq with tombstones: an entry stays in the heap when its timer is cancelled or armed again."""

import heapq
import platform
import sys

from compare.trial.peers import peer

DESCRIPTION = {
    "protocol": 1,
    "name": "python-heapq",
    "language": "Python",
    "library": platform.python_implementation(),
    "version": platform.python_version(),
    "scheme": "binary heap with tombstones (heapq)",
    "order": "fifo",
    "notes": {"cancel": "leaves a tombstone until its deadline"},
}


class Heap:
    """A heap of [deadline, operation, whether it is no tombstone]."""

    def __init__(self, start: int) -> None:
        self._heap: list[list[int]] = []
        self._pending: dict[int, list[int]] = {}

    def start(self, operation: int, deadline: int) -> int:
        """Push an entry; its operation is the handle."""
        entry = [deadline, operation, True]
        self._pending[operation] = entry
        heapq.heappush(self._heap, entry)
        return operation

    def cancel(self, handle: int) -> bool:
        """Make the entry a tombstone."""
        entry = self._pending.pop(handle, None)
        if entry is None:
            return False
        entry[2] = False
        return True

    def rearm(self, handle: int, operation: int, deadline: int) -> int | None:
        """Push another entry."""
        return self.start(operation, deadline) if self.cancel(handle) else None

    def advance(self, now: int) -> peer.Fired:
        """Pop what is due."""
        heap, fired = self._heap, []
        while heap and heap[0][0] <= now:
            deadline, operation, is_live = heapq.heappop(heap)
            if is_live:
                del self._pending[operation]
                fired.append((operation, deadline))
        return fired

    def next_wakeup(self) -> int:
        """The first deadline; tombstones above it are removed."""
        while not self._heap[0][2]:
            heapq.heappop(self._heap)
        return self._heap[0][0]

    def __len__(self) -> int:
        return len(self._pending)


if __name__ == "__main__":
    sys.exit(peer.main(DESCRIPTION, Heap))
