"""Turn touches of keys, in the order of time, into a tape."""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from compare.logs.requests import EMPTY, Int64s
from compare.tapes.ids import Ids
from compare.tapes.tape import ARM, START, Tape


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
        self._holders: OrderedDict[bytes, tuple[int, int]] = OrderedDict()
        self._oldest = 0  # no last touch is earlier
        self._ids = Ids()

    @property
    def id_space(self) -> int:
        """The number of ids so far."""
        return self._ids.id_space

    def add(self, time: Int64s, keys: Sequence[bytes]) -> Tape:
        """Add rows in the order of time; return one operation for each. O(n)."""
        holders = self._holders
        ids = np.empty(len(time), np.int32)
        ops = np.full(len(time), ARM, np.int8)
        for row, (now, key) in enumerate(zip(time.tolist(), keys, strict=True)):
            if now - 2 * self._idle >= self._oldest:
                self._release(now)
            held = holders.pop(key, None)
            if held is not None:
                id_ = held[1]
            else:
                before = self.id_space
                id_ = self._ids.take()
                if id_ < before:
                    ops[row] = START
            holders[key] = (now, id_)
            ids[row] = id_
        return Tape(time, ops, ids, time + self._idle)

    def finish(self) -> Tape:
        """The remaining operations: none."""
        return EMPTY

    def _release(self, now: int) -> None:
        """Free the ids of the keys that have been silent for two idle periods."""
        while self._holders:
            key = next(iter(self._holders))
            self._oldest, id_ = self._holders[key]
            if self._oldest + 2 * self._idle > now:
                return
            del self._holders[key]
            self._ids.release(id_)
        self._oldest = now
