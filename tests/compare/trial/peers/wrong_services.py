"""A timer for threads, right or wrong in one way: python wrong_services.py FAULT COMMAND ..."""

import heapq
import itertools
import sys
import threading
import time

from compare.trial.peers import peer
from tests.compare.trial.peers import wrong


class Entry:
    """A call, and what became of it."""

    def __init__(self, due, call):
        self.due, self.call, self.is_pending = due, call, True


class Right:
    """A heap under one lock; a thread looks each millisecond."""

    drivers = 1

    def __init__(self):
        self.lock, self.heap, self.number, self.ends = (
            threading.Lock(),
            [],
            itertools.count(),
            False,
        )
        for _ in range(self.drivers):
            threading.Thread(target=self.drive, daemon=True).start()

    def start(self, delay, call):
        entry = Entry(time.monotonic() + delay / 1000, call)
        with self.lock:
            self.push(entry)
        return entry

    def push(self, entry):
        heapq.heappush(self.heap, (entry.due, next(self.number), entry))

    def cancel(self, entry):
        with self.lock:
            was_pending, entry.is_pending = entry.is_pending, False
        return was_pending

    def drive(self):
        while not self.ends:
            for entry in self.take(time.monotonic()):
                entry.call()
            time.sleep(0.001)

    def take(self, now):
        """What is due at `now`, which is no longer pending."""
        taken = []
        with self.lock:
            while self.heap and self.heap[0][0] <= now:
                entry = heapq.heappop(self.heap)[2]
                if entry.is_pending:
                    entry.is_pending = False
                    taken.append(entry)
        return taken

    def close(self):
        self.ends = True


class Loses(Right):
    """starts go into a list that two threads replace at once"""

    waiting = ()

    def start(self, delay, call):
        waiting = self.waiting
        entry = Entry(time.monotonic() + delay / 1000, call)
        if delay < 100:
            time.sleep(0)  # another thread runs
        self.waiting = (*waiting, entry)
        return entry

    def take(self, now):
        with self.lock:
            waiting, self.waiting = self.waiting, ()
            for entry in waiting:
                self.push(entry)
        return super().take(now)


class Doubles(Right):
    """a cancel comes between the look at a timer and its call"""

    def take(self, now):
        with self.lock:
            due = [entry for _, _, entry in self.heap if entry.due <= now and entry.is_pending]
            self.heap = [item for item in self.heap if item[0] > now]
            heapq.heapify(self.heap)
        time.sleep(0.001)
        for entry in due:
            entry.is_pending = False
        return due


class Twice(Right):
    """two threads take what is due, and remove it later"""

    drivers = 2

    def take(self, now):
        with self.lock:
            due = [item for item in self.heap if item[0] <= now and item[2].is_pending]
        time.sleep(0.001)
        with self.lock:
            for item in due:
                item[2].is_pending = False
            self.heap = [item for item in self.heap if item[0] > now]
            heapq.heapify(self.heap)
        return [entry for _, _, entry in due]


class Refuses(Right):
    """a cancel gives up when another thread has the lock"""

    def cancel(self, entry):
        if not self.lock.acquire(blocking=False):
            return False
        self.lock.release()
        return super().cancel(entry)

    def take(self, now):
        with self.lock:
            time.sleep(0.001)
        return super().take(now)


class Early(Right):
    """deadlines are multiples of 5 ms, rounded down"""

    def start(self, delay, call):
        return super().start(delay // 5 * 5, call)


CLASSES = {each.__name__.lower(): each for each in (Right, Loses, Doubles, Twice, Refuses, Early)}
RULES = {
    "loses": "missing",
    "doubles": "cancelled",
    "twice": "twice",
    "refuses": "refused",
    "early": "early",
}
"""Each wrong timer, with the rule that catches it."""


def main(fault, *arguments):
    sys.setswitchinterval(1e-5)
    description = wrong.DESCRIPTION | {"name": fault, "real_time": True, "threads": "once"}
    return peer.run_peer(description, wrong.Right, [*arguments], serve=CLASSES[fault])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
