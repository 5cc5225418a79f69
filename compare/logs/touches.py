"""Turn touches of keys, in the order of time, into a tape."""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from compare.logs.requests import EMPTY
from compare.tapes.ids import Ids
from compare.tapes.tape import ARM, START, Tape
from timers.arrays import Int64s


class TouchTape:
    """The tape of touches: each row re-arms the timer of its key.

    A key keeps its id until it has been silent for two idle periods. The first one ends at the
    deadline. In the second one, a timer that fires late may still be pending, and a touch must find
    it under the same id. The id then goes to the next new key. The first touch of that key is a
    start instead of an arm, because it must not re-arm the timer of the former holder.
    """

    def __init__(self, idle: int) -> None:
        self._idle = idle
        # key -> time of the last touch, id; oldest first
        self._pending: OrderedDict[bytes, tuple[int, int]] = OrderedDict()
        self._silent: OrderedDict[bytes, tuple[int, int]] = OrderedDict()  # after the deadline
        self._next = 0  # no key falls silent and no id comes free earlier
        self._ids = Ids()
        self.timed_out = 0
        """Timers that fire, if they are exact, also after the last row."""
        self.most_pending = 0
        """The largest number of timers that are pending at once."""

    def add(self, time: Int64s, keys: Sequence[bytes]) -> Tape:
        """Add rows in the order of time; return one operation for each. O(n)."""
        pending = self._pending
        ids = np.empty(len(time), np.int32)
        ops = np.full(len(time), ARM, np.int8)
        for row, (now, key) in enumerate(zip(time.tolist(), keys, strict=True)):
            if now >= self._next:
                self._expire(now)
            held = pending.pop(key, None)
            if held is None:
                self.timed_out += 1
                held = self._silent.pop(key, None)
            if held is not None:
                id_ = held[1]
            else:
                before = self._ids.id_space
                id_ = self._ids.take()
                if id_ < before:
                    ops[row] = START
            pending[key] = (now, id_)
            ids[row] = id_
            if len(pending) > self.most_pending:
                self.most_pending = len(pending)
        return Tape(time, ops, ids, time + self._idle)

    def finish(self) -> Tape:
        """The remaining operations: none."""
        return EMPTY

    def _expire(self, now: int) -> None:
        """Note which keys are silent, and free the ids after two idle periods."""
        self._next = now + self._idle
        while self._pending:
            key, (last, _) = next(iter(self._pending.items()))
            if last + self._idle > now:
                self._next = last + self._idle
                break
            self._silent[key] = self._pending.pop(key)
        while self._silent:
            key, (last, id_) = next(iter(self._silent.items()))
            if last + 2 * self._idle > now:
                self._next = min(self._next, last + 2 * self._idle)
                return
            del self._silent[key]
            self._ids.release(id_)
