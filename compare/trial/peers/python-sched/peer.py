"""sched.scheduler of the standard library, whose clock the peer sets."""

import platform
import sched
import sys

from compare.trial.peers import peer

DESCRIPTION = {
    "protocol": 1,
    "rearm": "cancel and start",
    "name": "python-sched",
    "language": "Python",
    "library": "sched",
    "version": platform.python_version(),
    "scheme": "binary heap (sched.scheduler)",
    "order": "fifo",
    "notes": {"cancel": "searches the list of all events, O(n)"},
}


class Scheduler:
    """A scheduler on virtual time."""

    def __init__(self, start: int) -> None:
        self._now = start
        self._scheduler = sched.scheduler(lambda: self._now, lambda delay: None)
        self._pending: dict[int, sched.Event] = {}
        self._fired: list[tuple[int, int]] = []

    def start(self, operation: int, deadline: int) -> int:
        """Enter an event."""
        event = self._scheduler.enterabs(deadline, 0, self._fire, (operation, deadline))
        self._pending[operation] = event
        return operation

    def cancel(self, handle: int) -> bool:
        """Cancel an event."""
        event = self._pending.pop(handle, None)
        if event is None:
            return False
        self._scheduler.cancel(event)
        return True

    def rearm(self, handle: int, operation: int, deadline: int) -> int | None:
        """Cancel an event and enter another: events are immutable."""
        return self.start(operation, deadline) if self.cancel(handle) else None

    def advance(self, now: int) -> peer.Fired:
        """Run what is due."""
        self._now, self._fired = now, []
        self._scheduler.run(blocking=False)
        return self._fired

    def next_wakeup(self) -> int:
        """The time of the first event."""
        return self._scheduler._queue[0].time  # the public `queue` sorts a copy

    def __len__(self) -> int:
        return len(self._pending)

    def _fire(self, operation: int, deadline: int) -> None:
        del self._pending[operation]
        self._fired.append((operation, deadline))


if __name__ == "__main__":
    sys.exit(peer.run_peer(DESCRIPTION, Scheduler))
