"""Both designs of a purgatory in plain Python, tick by tick: what the kernels must do and count."""

from collections import Counter

from compare.trial.purgatory.kernels import (
    COMPLETED,
    COUNTERS,
    EXPIRED,
    PURGE_TICKS,
    REAPER_PERIOD,
    TICK,
    WAITING,
)


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

    def expire(self, tick, passed):
        pending = self.fate.count(WAITING) - self.to_come
        for name, value in (
            ("most_watched", self.watched),
            ("most_queued", len(self.queue)),
            ("most_pending", pending),
        ):
            self.counts[name] = max(self.counts[name], value)
        while due := [
            (deadline_tick, r) for r, deadline_tick in self.queue.items() if deadline_tick <= tick
        ]:
            deadline, r = min(due)
            del self.queue[r]
            if self.fate[r] == WAITING:
                self.fate[r], self.ended_at[r] = EXPIRED, deadline * TICK
            passed()

    def run(self, passed=lambda: None, moved=lambda tick: None, completed=lambda r: None):
        """`passed` is called after each deadline, `moved` after each move of the clock, `completed`
        for each request that completes.
        """
        clock = 0
        self.to_come = len(self.fate)
        for now, r in zip(self.traffic.time.tolist(), self.traffic.request.tolist(), strict=True):
            if now // TICK > clock:
                clock = now // TICK
                self.expire(clock, passed)
                moved(clock)
            if r == len(self.fate) - self.to_come:
                self.to_come -= 1
                for key in self.traffic.keys[r].tolist():
                    self.lists.setdefault(key, []).append(r)
                self.queue[r] = -((now + self.traffic.timeout) // -TICK)
            else:
                self.fate[r], self.ended_at[r] = COMPLETED, now
                completed(r)
        self.expire(2**62, lambda: None)
        return self


def purging(traffic, interval):
    """The new design: the estimated total is what was watched since, or pending at, a purge."""
    purgatory = Purgatory(traffic)
    at_purge = 0  # requests that had left when the lists were last purged
    last_purge = -PURGE_TICKS

    def moved(tick):
        nonlocal at_purge, last_purge
        gone = len(purgatory.fate) - purgatory.fate.count(WAITING)
        if gone - at_purge > interval and tick - last_purge >= PURGE_TICKS:
            at_purge, last_purge = gone, tick
            purgatory.purge()

    return purgatory.run(moved=moved, completed=purgatory.queue.pop)


def scanning(traffic, limit):
    """The old design: a completed request stays in the queue."""
    purgatory = Purgatory(traffic)
    next_turn = REAPER_PERIOD

    def turn():
        if purgatory.watched > limit:
            purgatory.purge()
        queue = purgatory.queue
        if len(queue) > limit:
            purgatory.counts["queue_scanned"] += len(queue)
            purgatory.queue = {
                r: deadline for r, deadline in queue.items() if purgatory.fate[r] == WAITING
            }

    def moved(tick):
        nonlocal next_turn
        if tick >= next_turn:
            turn()
            next_turn = tick + REAPER_PERIOD

    return purgatory.run(passed=turn, moved=moved)
