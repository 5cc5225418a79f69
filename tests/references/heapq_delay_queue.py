"""What asyncio does with `heapq`: a cancelled timer's entry stays until it surfaces, or until most
are stale.

Entries are lists (deadline, number of the arming, timer or None once stale); the number makes them
unequal.
"""

import heapq
from itertools import count

MOST_STALE = 64  # entries that are never worth a compaction


class LazyHeap:
    def __init__(self, start: int) -> None:
        self.now = start
        self.heap: list[list] = []
        self.live: dict[object, list] = {}
        self.numbers = count(1)

    def schedule(self, timer: object, deadline: int) -> None:
        self.live[timer] = [deadline, next(self.numbers), timer]
        heapq.heappush(self.heap, self.live[timer])

    def cancel(self, timer: object) -> None:
        self.compact()
        self.live.pop(timer)[2] = None

    def reschedule(self, timer: object, deadline: int) -> None:
        self.compact()
        self.live[timer][2] = None
        self.schedule(timer, deadline)

    def advance(self, now: int) -> list[object]:
        fired = []
        while self.heap and self.heap[0][0] <= now:
            _, _, timer = heapq.heappop(self.heap)
            if timer is not None:
                del self.live[timer]
                fired.append(timer)
        self.now = now
        return fired

    def compact(self) -> None:
        if len(self.heap) > max(MOST_STALE, 2 * len(self.live)):
            self.heap = list(self.live.values())
            heapq.heapify(self.heap)
