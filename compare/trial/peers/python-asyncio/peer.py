"""asyncio's own timers: an event loop whose clock the peer sets, and whose selector never waits.

The loop runs what is due before its time plus the resolution of its clock, which is one unit here.
Its time is an int instead of a float, so that it is exact beyond 2**53.
"""

import asyncio
import platform
import selectors
import sys

from compare.trial.peers import peer

DESCRIPTION = {
    "protocol": 1,
    "rearm": "cancel and start",
    "name": "python-asyncio",
    "language": "Python",
    "library": "asyncio",
    "version": platform.python_version(),
    "scheme": "binary heap with tombstones (asyncio.call_at)",
    "order": "unspecified",  # heapq does not keep the order of equal keys
    "notes": {"cancel": "leaves a tombstone; half of all entries are removed at once"},
}


class NoWaiting(selectors.SelectSelector):
    """A selector that has no files to wait for."""

    def select(self, timeout: float | None = None) -> list:
        """Return at once."""
        return []


class Loop(asyncio.SelectorEventLoop):
    """An event loop on virtual time."""

    def __init__(self, start: int) -> None:
        super().__init__(NoWaiting())
        self._clock_resolution = 1
        self.now = start

    def time(self) -> int:
        """The virtual time."""
        return self.now


class Timers:
    """The timers of a loop."""

    def __init__(self, start: int) -> None:
        self._loop = Loop(start)
        self._pending: dict[int, asyncio.TimerHandle] = {}
        self._fired: list[tuple[int, int]] = []

    def start(self, operation: int, deadline: int) -> int:
        """Schedule a call."""
        self._pending[operation] = self._loop.call_at(deadline, self._fire, operation, deadline)
        return operation

    def cancel(self, handle: int) -> bool:
        """Cancel a call."""
        timer = self._pending.pop(handle, None)
        if timer is None:
            return False
        timer.cancel()
        return True

    def rearm(self, handle: int, operation: int, deadline: int) -> int | None:
        """Cancel a call and schedule another, as programs do with asyncio."""
        return self.start(operation, deadline) if self.cancel(handle) else None

    def advance(self, now: int) -> peer.Fired:
        """Run one round of the loop."""
        self._loop.now = now
        self._fired = []
        self._loop._run_once()
        return self._fired

    def next_wakeup(self) -> int:
        """The first deadline in the loop's heap, which may be that of a tombstone."""
        return self._loop._scheduled[0].when()

    def __len__(self) -> int:
        return len(self._pending)

    def _fire(self, operation: int, deadline: int) -> None:
        del self._pending[operation]
        self._fired.append((operation, deadline))


if __name__ == "__main__":
    sys.exit(peer.run_peer(DESCRIPTION, Timers))
