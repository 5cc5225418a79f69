"""A list of buckets that fires timers early, and its fix: a model of a bug in a chat server.

    wheelwork check -- python docs/examples/list_of_buckets.py wrong
    wheelwork check -- python docs/examples/list_of_buckets.py fixed

The list has a bucket for each tick, without gaps, so a bucket is found by its distance from the
first. docs/case-synapse.md tells the story.
"""

import random
import sys

from compare import run_peer

TICK = 5  # units of a bucket


class ListOfBuckets:
    """Buckets in a list. A bucket has a key, the tick at whose start it fires, and its timers."""

    cancel = rearm = None  # it has neither

    def __init__(self, start, gap=0):
        self._now, self._gap = start, gap
        self._keys, self._buckets = [], []

    def start(self, operation, deadline):
        """File a timer, and append buckets to the list until there is one for it."""
        key = max(deadline // TICK, self._now // TICK) + 1
        if not self._keys or key > self._keys[-1]:
            # The first new key: that of the last bucket itself, unless `gap` is 1.
            first = self._keys[-1] + self._gap if self._keys else self._now // TICK + 1
            for new in range(first, key + 1):
                self._keys.append(new)
                self._buckets.append([])
        self._buckets[key - self._keys[0]].append(operation)

    def advance(self, now):
        """Take out the buckets whose keys have been reached."""
        self._now, fired = now, []
        while self._keys and self._keys[0] <= now // TICK:
            moment = self._keys.pop(0) * TICK
            fired += [(operation, moment) for operation in self._buckets.pop(0)]
        return fired

    def next_wakeup(self):
        """When the first bucket fires."""
        return self._keys[0] * TICK

    def __len__(self):
        return sum(map(len, self._buckets))


RULES = {"wrong": 0, "fixed": 1}
DESCRIPTION = {
    "protocol": 1,
    "name": "list-of-buckets",
    "language": "Python",
    "scheme": "a list of buckets",
    "rounding": {"kind": "up", "tick": TICK},
    "cannot": ["cancel", "re-arm"],
    # A bucket is made for each tick until a deadline.
    "limits": {"time": 2**62, "delay": 250_000, "step": 250_000},
}


def early(rule, timers=4_000, longest=10_000):
    """By how many units each timer that is too early fires: one timer is started in each unit."""
    chance, buckets = random.Random(2024), ListOfBuckets(0, RULES[rule])
    deadlines, found = {}, []
    for now in range(timers + longest + TICK):
        moments = [deadlines.pop(timer) for timer, _ in buckets.advance(now)]
        found += [deadline - now for deadline in moments if deadline > now]
        if now < timers:
            deadlines[now] = now + chance.randrange(1, longest)
            buckets.start(now, deadlines[now])
    return found


if __name__ == "__main__":
    if sys.argv[1:]:
        rule, *command = sys.argv[1:]
        make = lambda start: ListOfBuckets(start, RULES[rule])  # noqa: E731
        sys.exit(run_peer({**DESCRIPTION, "name": f"list-of-buckets, {rule}"}, make, command))
    for rule in RULES:
        units = early(rule)
        print(f"{rule}: {len(units):,} of 4,000 timers are early, by up to {max(units, default=0)}")
