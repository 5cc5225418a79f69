"""Both designs of a purgatory in plain Python, tick by tick: what the kernels must do and count."""

from collections import Counter

from compare.purgatory.kernels import COMPLETED, COUNTERS, EXPIRED, TICK, WAITING


class Purgatory:
    """The state of either design between two events."""

    def __init__(self, traffic):
        self.traffic = traffic
        self.lists = {}  # key -> requests
        self.queue = {}  # request in the timer -> tick of its deadline
        self.fate = [WAITING] * len(traffic.keys)
        self.ended_at = [0] * len(traffic.keys)
        self.counts = Counter(dict.fromkeys(COUNTERS, 0))

    @property
    def watched(self):
        return sum(map(len, self.lists.values()))

    def purge(self):
        self.counts["purges"] += 1
        self.counts["lists_walked"] += len(self.lists)
        self.counts["entries_scanned"] += self.watched
        waiting = {
            key: [r for r in requests if self.fate[r] == WAITING]
            for key, requests in self.lists.items()
        }
        self.lists = {key: requests for key, requests in waiting.items() if requests}

    def expire(self, tick):
        pending = self.fate.count(WAITING) - self.to_come
        for name, value in (
            ("most_watched", self.watched),
            ("most_queued", len(self.queue)),
            ("most_pending", pending),
        ):
            self.counts[name] = max(self.counts[name], value)
        for r in [r for r, deadline in self.queue.items() if deadline <= tick]:
            deadline = self.queue.pop(r)
            if self.fate[r] == WAITING:
                self.fate[r], self.ended_at[r] = EXPIRED, deadline * TICK

    def run(self, look, left):
        """`look` is called after the clock has moved, `left` for each request that completes."""
        clock = 0
        self.to_come = len(self.fate)
        for now, r in zip(self.traffic.time.tolist(), self.traffic.request.tolist(), strict=True):
            if now // TICK > clock:
                clock = now // TICK
                self.expire(clock)
                look()
            if r == len(self.fate) - self.to_come:
                self.to_come -= 1
                for key in self.traffic.keys[r].tolist():
                    self.lists.setdefault(key, []).append(r)
                self.queue[r] = -((now + self.traffic.timeout) // -TICK)
            else:
                self.fate[r], self.ended_at[r] = COMPLETED, now
                left(r)
        self.expire(clock)
        self.expire(2**62)
        return self


def purging(traffic, interval):
    """The new design: the estimated total is what was watched since, or pending at, a purge."""
    purgatory = Purgatory(traffic)
    at_purge = 0  # requests that had left when the lists were last purged

    def look():
        nonlocal at_purge
        gone = len(purgatory.fate) - purgatory.fate.count(WAITING)
        if gone - at_purge > interval:
            at_purge = gone
            purgatory.purge()

    return purgatory.run(look, purgatory.queue.pop)


def scanning(traffic, limit):
    """The old design: a completed request stays in the queue."""
    purgatory = Purgatory(traffic)

    def look():
        queue = purgatory.queue
        if len(queue) > limit:
            purgatory.counts["queue_scanned"] += len(queue)
            purgatory.queue = {
                r: deadline for r, deadline in queue.items() if purgatory.fate[r] == WAITING
            }
        if purgatory.watched > limit:
            purgatory.purge()

    return purgatory.run(look, lambda r: None)
