"""Give up on requests that are not answered in time, with one SystemTimer for all of them.

>>> from timers.services import ManualClock
>>> clock = ManualClock()
>>> requests = Requests(SystemTimer(HierarchicalWheel(), clock=clock), timeout=0.2)
>>> requests.send("a")
>>> requests.send("b")
>>> clock.advance(0.1)
>>> requests.answered("a")
True
>>> clock.advance(0.2)
b timed out
>>> requests.answered("b")
False
"""

from timers import HierarchicalWheel
from timers.services import ScheduledCall, SystemTimer


class Requests:
    """Requests in flight; each is either answered or times out, never both."""

    def __init__(self, timer: SystemTimer, timeout: float) -> None:
        self.timer, self.timeout = timer, timeout
        self.calls: dict[str, ScheduledCall] = {}

    def send(self, name: str) -> None:
        """Send a request."""
        self.calls[name] = self.timer.schedule_after(self.timeout, self.give_up, name)

    def answered(self, name: str) -> bool:
        """Take an answer; return False if the request has already timed out."""
        call = self.calls.pop(name, None)
        return call is not None and call.cancel()

    def give_up(self, name: str) -> None:
        """Runs on the timer's thread."""
        self.calls.pop(name, None)
        print(name, "timed out")


if __name__ == "__main__":
    import time

    with SystemTimer(HierarchicalWheel()) as timer:
        requests = Requests(timer, timeout=0.2)
        requests.send("a")
        requests.send("b")
        requests.answered("a")
        time.sleep(0.3)
