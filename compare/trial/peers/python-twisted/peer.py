"""Twisted's Clock, on which programs test what they give to a reactor. A start sorts its list."""

import sys
from importlib.metadata import version
from typing import Any

from twisted.internet.task import Clock

from compare.trial.peers import peer

DESCRIPTION = {
    "protocol": 1,
    "rearm": "in place",
    "name": "python-twisted",
    "language": "Python",
    "library": "Twisted",
    "version": version("Twisted"),
    "scheme": "sorted list (task.Clock)",
    "limits": {"time": 2**53, "equal": 10_000},
    "notes": {"start": "sorts the list of all calls, O(n)", "re-arm": "DelayedCall.reset"},
}


class Calls:
    """A clock, and the operation that last armed each call."""

    def __init__(self, start: int) -> None:
        self._clock = Clock()
        self._clock.rightNow = float(start)
        self._fired: list[tuple[int, int]] = []

    def start(self, operation: int, deadline: int) -> Any:
        """Call later."""
        state = [operation]
        return self._clock.callLater(
            max(deadline - self._clock.rightNow, 0), self._fire, state
        ), state

    def cancel(self, handle: Any) -> bool:
        """Cancel a call."""
        call, _ = handle
        if not call.active():
            return False
        call.cancel()
        return True

    def rearm(self, handle: Any, operation: int, deadline: int) -> Any:
        """Reset a call."""
        call, state = handle
        if not call.active():
            return None
        state[0] = operation
        call.reset(max(deadline - self._clock.rightNow, 0))
        return handle

    def advance(self, now: int) -> peer.Fired:
        """Advance the clock to a moment."""
        self._fired = []
        self._clock.advance(now - self._clock.rightNow)
        return self._fired

    def next_wakeup(self) -> int:
        """The time of the first call."""
        return int(min(call.getTime() for call in self._clock.calls))

    def __len__(self) -> int:
        return len(self._clock.calls)

    def _fire(self, state: list[int]) -> None:
        self._fired.append((state[0], int(self._clock.rightNow)))


if __name__ == "__main__":
    sys.exit(peer.run_peer(DESCRIPTION, Calls))
