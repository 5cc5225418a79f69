"""sortedcontainers.SortedList of (deadline, operation): cancels remove the entry."""

import sys

import sortedcontainers

from compare.trial.peers import peer

DESCRIPTION = {
    "protocol": 1,
    "rearm": "cancel and start",
    "name": "python-sortedcontainers",
    "language": "Python",
    "library": "sortedcontainers",
    "version": sortedcontainers.__version__,
    "scheme": "sorted list of lists (SortedList)",
    "order": "fifo",
}


class Sorted:
    """A sorted list, and the deadline of each pending timer."""

    def __init__(self, start: int) -> None:
        self._list = sortedcontainers.SortedList()
        self._pending: dict[int, int] = {}  # by operation

    def start(self, operation: int, deadline: int) -> int:
        """Add an entry."""
        self._list.add((deadline, operation))
        self._pending[operation] = deadline
        return operation

    def cancel(self, handle: int) -> bool:
        """Remove an entry."""
        deadline = self._pending.pop(handle, None)
        if deadline is None:
            return False
        self._list.remove((deadline, handle))
        return True

    def rearm(self, handle: int, operation: int, deadline: int) -> int | None:
        """Remove an entry and add another."""
        return self.start(operation, deadline) if self.cancel(handle) else None

    def advance(self, now: int) -> peer.Fired:
        """Remove what is due from the front, at once."""
        entries = self._list
        end = entries.bisect_left((now + 1,))
        if not end:
            return ()
        fired = [(operation, deadline) for deadline, operation in entries[:end]]
        del entries[:end]
        for operation, _ in fired:
            del self._pending[operation]
        return fired

    def next_wakeup(self) -> int:
        """The first deadline."""
        return self._list[0][0]

    def __len__(self) -> int:
        return len(self._pending)


if __name__ == "__main__":
    sys.exit(peer.run_peer(DESCRIPTION, Sorted))
