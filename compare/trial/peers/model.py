"""The model of a timer: the contract, written so that it can be seen to be right.

It has the timers' method names and boundary semantics, keeps the pending timers in a dict, and
looks at all of them whenever it is asked anything. It makes no handles: the caller passes the
handle that the real timer returned.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from timers.errors import ClockError
from timers.limits import LIMIT
from timers.traits import Parameters, Traits


class Row(NamedTuple):
    """One timer that fired."""

    handle: int
    deadline: int
    fired_at: int


class Pending(NamedTuple):
    """One timer that is pending."""

    deadline: int
    due_at: int
    arming: int  # how many armings came before: FIFO order goes by it


class Model:
    """Pending timers of one scheme; they fire by the rounding that the traits declare."""

    def __init__(self, traits: Traits, parameters: Parameters, start: int = 0) -> None:
        self.rounding = traits.rounding(parameters)
        self.now = start
        self.pending: dict[int, Pending] = {}
        self._armings = 0

    def __len__(self) -> int:
        """Return the number of pending timers."""
        return len(self.pending)

    def schedule(self, deadline: int, handle: int) -> None:
        """Add a timer, for which the real one returned `handle`."""
        assert handle not in self.pending, f"handle {handle} is already pending"
        self._arm(handle, deadline)

    def schedule_after(self, delay: int, handle: int) -> None:
        """Add a timer, for which the real one returned `handle`."""
        self.schedule(self.deadline_after(delay), handle)

    def deadline_after(self, delay: int) -> int:
        """Return now + delay, clamped to [0, LIMIT]."""
        return min(max(self.now + delay, 0), LIMIT)

    def cancel(self, handle: int) -> bool:
        """Remove a timer; False if it is not pending."""
        return self.pending.pop(handle, None) is not None

    def reschedule(self, handle: int, deadline: int) -> bool:
        """Arm a timer again; False if it is not pending."""
        if handle not in self.pending:
            return False
        self._arm(handle, deadline)
        return True

    def schedule_many(self, deadlines: Sequence[int], handles: Sequence[int]) -> None:
        """Schedule one after the other."""
        for deadline, handle in zip(deadlines, handles, strict=True):
            self.schedule(deadline, handle)

    def cancel_many(self, handles: Iterable[int]) -> list[bool]:
        """Cancel one after the other."""
        return [self.cancel(handle) for handle in handles]

    def reschedule_many(self, handles: Sequence[int], deadlines: Sequence[int]) -> list[bool]:
        """Re-arm one after the other."""
        return [self.reschedule(*pair) for pair in zip(handles, deadlines, strict=True)]

    def advance(self, now: int, limit: int | None = None, first: Collection[int] = ()) -> list[Row]:
        """Return the rows that fire in FIFO order: by fired_at, then deadline, then last arming.

        At one moment, the timers with the handles `first` come first. In an unspecified order,
        these are the ones that the real timer chose at its limit.
        """
        if now < self.now:
            raise ClockError(f"now {now} lies before {self.now}")
        due = sorted(
            (t.due_at, handle not in first, t.deadline, t.arming, handle)
            for handle, t in self.pending.items()
            if t.due_at <= now
        )
        fired = [Row(handle, deadline, due_at) for due_at, _, deadline, _, handle in due[:limit]]
        self.now = fired[-1].fired_at if len(fired) == limit else now
        for row in fired:
            del self.pending[row.handle]
        return fired

    def next_expiry(self) -> int | None:
        """Return the next fired_at, exactly."""
        return min((timer.due_at for timer in self.pending.values()), default=None)

    def _arm(self, handle: int, deadline: int) -> None:
        self._armings += 1
        due_at = self.rounding.due_at(deadline, self.now)
        self.pending[handle] = Pending(deadline, due_at, self._armings)
