"""An adapter for a timer in Python. Put your timer in the place of the dict, and call it here."""

import sys

import peer

# "order": "unspecified" if equal deadlines may come in any order; other members: docs/peers.md.
DESCRIPTION = {
    "protocol": 1,
    "name": "my-timer",
    "language": "Python",
    "scheme": "list",
    "rounding": {"kind": "exact"},
    "order": "fifo",
}


class Naive:
    """Looks at all timers."""

    def __init__(self, start: int) -> None:
        self._now, self._timers = start, {}  # operation -> deadline

    def start(self, operation: int, deadline: int) -> int:
        """Start a timer, and return its handle."""
        self._timers[operation] = deadline
        return operation

    def cancel(self, handle: int) -> bool:
        """Cancel a timer; False if it is not pending."""
        return self._timers.pop(handle, None) is not None

    def rearm(self, handle: int, operation: int, deadline: int) -> int | None:
        """Re-arm a timer and return its new handle; None if it is not pending."""
        return self.start(operation, deadline) if self.cancel(handle) else None

    def advance(self, now: int) -> peer.Fired:
        """Return (operation, when it fires) of what is due, in order."""
        due = sorted((at, operation) for operation, at in self._timers.items() if at <= now)
        for _, operation in due:
            del self._timers[operation]
        return [(operation, at) for at, operation in due]

    def next_wakeup(self) -> int:
        """When to advance next; something is pending."""
        return min(self._timers.values())

    def __len__(self) -> int:
        return len(self._timers)


if __name__ == "__main__":
    sys.exit(peer.run_peer(DESCRIPTION, Naive))
