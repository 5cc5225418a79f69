"""Varghese & Lauck's scheme 4: a ring of one slot for each unit, and a list of what lies beyond one
rotation.

The paper leaves open what becomes of deadlines beyond the ring, so the list is ours. It is looked
through when the ring comes round to slot 0, in the rotations in which something in it can come
within reach: what is known of that is a lower bound of its deadlines, which a cancel does not
raise.
"""

from collections.abc import Mapping

from tests.references.common import WALK, Armed, Reference


class SimpleWheel(Reference):
    def __init__(self, parameters: Mapping[str, int], start: int) -> None:
        super().__init__(parameters, start)
        self.wheel_size = parameters["wheel_size"]
        self.slots: list[list[Armed]] = [[] for _ in range(self.wheel_size)]
        self.overflow: list[Armed] = []  # ours
        self.bound = 0  # ours

    def arm(self, timer: Armed) -> None:
        if timer.deadline <= self.now:
            timer.within = self.due
        elif timer.deadline < self.now + self.wheel_size:
            timer.within = self.slots[timer.deadline % self.wheel_size]
        else:  # ours
            self.bound = min(timer.deadline, self.bound) if self.overflow else timer.deadline
            timer.within = self.overflow
        timer.within.append(timer)

    def run(self, until: int) -> None:
        self.deliver(self.due)
        while self.now < until:
            self.now = self.next_unit(until)
            slot = self.slots[self.now % self.wheel_size]
            looks = bool(self.overflow) and self.now == self.next_look()
            if looks:
                self.look_through_overflow()
            self.count("slots_visited", 1 if slot else 0)
            self.count("clock_visits", 1 if slot or looks else 0)
            self.deliver(self.due)
            self.deliver(slot)

    def look_through_overflow(self) -> None:  # ours
        self.count("slots_visited")
        self.count("timers_touched", len(self.overflow))
        near = [timer for timer in self.overflow if timer.deadline < self.now + self.wheel_size]
        self.overflow[:] = [timer for timer in self.overflow if timer not in near]
        self.count("refiled", len(near))
        for timer in near:
            self.arm(timer)
        self.bound = min((timer.deadline for timer in self.overflow), default=0)

    def next_look(self) -> int:  # ours
        """The start of the rotation in which the list's bound lies."""
        return self.bound // self.wheel_size * self.wheel_size

    def next_unit(self, until: int) -> int:  # ours
        if until - self.now <= WALK:
            return self.now + 1
        moments = [timer.deadline for slot in self.slots for timer in slot]
        moments += [self.next_look()] if self.overflow else []
        return min([*moments, until])

    def filed(self, timer: Armed) -> dict[str, int | str]:
        if timer.within is self.overflow:
            return {"bucket": "overflow"}
        return {"slot": timer.deadline % self.wheel_size}
