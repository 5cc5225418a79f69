"""Rebalance a group when all members have rejoined, or at a timeout without those that have not.

The operation shares a lock with the group, because members join on other threads. `try_complete`
runs with the lock held; a timeout acquires it.

>>> from timers.services import ManualClock
>>> clock = ManualClock()
>>> group = Group(SystemTimer(HierarchicalWheel(), clock=clock), {"ann", "bob"})
>>> group.rebalance(timeout=5)
>>> group.join("bob")
>>> group.join("ann")
generation 1: ann, bob
>>> group.rebalance(timeout=5)
>>> group.join("ann")
>>> clock.advance(5)
bob left
generation 2: ann
"""

import threading

from timers import HierarchicalWheel
from timers.services import DelayedOperation, Purgatory, SystemTimer


class Rebalance(DelayedOperation):
    """Waits until every known member has joined."""

    def __init__(self, group: "Group", timeout: float) -> None:
        super().__init__(timeout, group.lock)
        self.group = group

    def try_complete(self) -> bool:
        return self.group.members <= self.group.joined and self.force_complete()

    def on_complete(self) -> None:
        self.group.begin_generation()


class Group:
    """Members that share work, and rebalance it when one joins or leaves."""

    def __init__(self, timer: SystemTimer, members: set[str]) -> None:
        self.lock = threading.RLock()
        self.members, self.joined, self.generation = members, set[str](), 0
        self.waiting = Purgatory("rebalance", timer)

    def rebalance(self, timeout: float) -> None:
        """Ask all members to join again."""
        with self.lock:
            self.joined = set()
        self.waiting.try_complete_else_watch(Rebalance(self, timeout), ["group"])

    def join(self, member: str) -> None:
        """Add a member; may be called on any thread."""
        with self.lock:
            self.joined.add(member)
        self.waiting.check_and_complete("group")

    def begin_generation(self) -> None:
        """Continue with those that have joined."""
        with self.lock:
            for member in sorted(self.members - self.joined):
                print(member, "left")
            self.members, self.generation = set(self.joined), self.generation + 1
            print(f"generation {self.generation}: {', '.join(sorted(self.members))}")


if __name__ == "__main__":
    import time

    with SystemTimer(HierarchicalWheel()) as timer:
        group = Group(timer, {"ann", "bob"})
        group.rebalance(timeout=0.1)
        threading.Thread(target=group.join, args=("ann",)).start()
        time.sleep(0.2)
