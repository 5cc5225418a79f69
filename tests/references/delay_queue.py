"""A binary heap of (deadline, number of the arming) in which each entry knows its index.

The heap and its index are Williams's and Sedgewick & Wayne's. Ours is the use of Wegener's sift: an
entry is removed as in his bottom-up heapsort, where its hole sinks to a leaf, always towards the
smaller child, and the heap's last entry is put there and rises; a re-arm moves the entry itself the
same way. Java's PriorityQueue sinks the last entry itself.
"""

from collections.abc import Mapping
from itertools import count

from tests.references.common import Armed, Reference


class DelayQueue(Reference):
    def __init__(self, parameters: Mapping[str, int], start: int) -> None:
        super().__init__(parameters, start)
        self.heap: list[Armed] = []
        self.numbers = count()

    def arm(self, timer: Armed) -> None:
        timer.number = next(self.numbers)
        self.heap.append(timer)
        self.rise(len(self.heap) - 1, timer)

    def cancel(self, timer: Armed) -> None:
        last = self.heap.pop()
        if last is not timer:
            self.rise(self.sink(timer.index), last)  # ours

    def reschedule(self, timer: Armed, deadline: int) -> None:
        # Ours. Equal or later means down, since a re-arm is the newest of its deadline.
        hole = self.sink(timer.index) if deadline >= timer.deadline else timer.index
        timer.deadline, timer.number = deadline, next(self.numbers)
        self.rise(hole, timer)

    def run(self, until: int) -> None:
        while self.heap and self.heap[0].deadline <= until:
            first = self.heap[0]
            if first.deadline > self.now:
                self.now = first.deadline
                self.count("clock_visits")
            self.cancel(first)
            self.deliver([first])

    def has_due(self) -> bool:
        return bool(self.heap) and self.heap[0].deadline <= self.now

    def put(self, k: int, timer: Armed) -> None:
        self.heap[k] = timer
        timer.index = k

    def rise(self, k: int, timer: Armed) -> None:
        """Put a timer at index k or above, below the first ancestor that precedes it."""
        while k > 0 and not self.precedes(self.heap[(k - 1) // 2], timer):
            self.put(k, self.heap[(k - 1) // 2])
            k = (k - 1) // 2
        self.put(k, timer)

    def sink(self, k: int) -> int:
        """Move the hole at index k down to a leaf; the leaf's index."""
        while 2 * k + 1 < len(self.heap):
            child = 2 * k + 1
            if child + 1 < len(self.heap) and self.precedes(self.heap[child + 1], self.heap[child]):
                child += 1
            self.put(k, self.heap[child])
            k = child
        return k

    def precedes(self, a: Armed, b: Armed) -> bool:
        self.count("comparisons")
        return (a.deadline, a.number) < (b.deadline, b.number)

    def place(self, timer: Armed) -> dict[str, int]:
        return {"index": timer.index}
