"""Varghese & Lauck's scheme 5: a ring whose slots are lists sorted by deadline.

Each unit looks at the first timers of its slot. Ours: in a long jump the clock goes to the next
deadline.
"""

from collections.abc import Mapping

from tests.references.common import WALK, Armed, Reference


class SortedHashedWheel(Reference):
    def __init__(self, parameters: Mapping[str, int], start: int) -> None:
        super().__init__(parameters, start)
        self.wheel_size = parameters["wheel_size"]
        self.slots: list[list[Armed]] = [[] for _ in range(self.wheel_size)]

    def arm(self, timer: Armed) -> None:
        slot = self.slots[timer.deadline % self.wheel_size]
        timer.within = slot if timer.deadline > self.now else self.due
        self.insert_from_the_rear(timer)

    def run(self, until: int) -> None:
        self.deliver(self.due)
        while self.now < until:
            self.now = self.next_unit(until)
            slot, fired = self.slots[self.now % self.wheel_size], []
            while slot and slot[0].deadline == self.now:
                fired.append(slot.pop(0))
            self.count("slots_visited", 1 if fired else 0)
            self.count("clock_visits", 1 if fired else 0)
            self.deliver(fired)

    def next_unit(self, until: int) -> int:  # ours
        if until - self.now <= WALK:
            return self.now + 1
        return min([*(slot[0].deadline for slot in self.slots if slot), until])

    def filed(self, timer: Armed) -> dict[str, int]:
        return {"slot": timer.deadline % self.wheel_size}
