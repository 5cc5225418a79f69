"""Linux's timers before 4.8 (kernel/timer.c) on five wheels of 256 slots each, with an overflow
list.

The functions are internal_add_timer, cascade and __run_timers. Linux has 256 slots below and four
wheels of 64, and cuts far deadlines off. Ours are the overflow list, which is filed again when a
lower bound of its deadlines comes within reach of the wheels, and the jumps over empty units.
"""

from collections.abc import Mapping

from tests.references.common import WALK, Armed, Reference

LEVELS, SLOTS = 5, 256
REACH = SLOTS**LEVELS


class CascadingWheel(Reference):
    def __init__(self, parameters: Mapping[str, int], start: int) -> None:
        super().__init__(parameters, start)
        self.wheels: list[list[list[Armed]]] = [[[] for _ in range(SLOTS)] for _ in range(LEVELS)]
        self.overflow: list[Armed] = []  # ours
        self.bound = 0  # ours

    def arm(self, timer: Armed) -> None:
        """internal_add_timer: by the distance to the deadline."""
        delay = timer.deadline - self.now  # ours; Linux: from the next tick
        timer.level = next(
            (level for level in range(LEVELS) if delay < SLOTS ** (level + 1)), LEVELS
        )
        if delay <= 0:
            timer.within = self.due
        elif timer.level < LEVELS:
            timer.within = self.wheels[timer.level][self.slot(timer.deadline, timer.level)]
        else:  # ours
            self.bound = min(timer.deadline, self.bound) if self.overflow else timer.deadline
            timer.within = self.overflow
        timer.within.append(timer)

    def run(self, until: int) -> None:
        self.deliver(self.due)
        while self.now < until:
            self.now = self.next_unit(until)  # ours; Linux: + 1
            visited = self.slots_visited()
            if self.now % SLOTS == 0:
                self.cascade_all()
            slot = self.wheels[0][self.slot(self.now, 0)]
            self.count("slots_visited", 1 if slot else 0)
            self.count("clock_visits", 1 if self.slots_visited() > visited else 0)
            self.deliver(slot)
            self.deliver(self.due)

    def cascade_all(self) -> None:
        """From the second wheel up, as far as the wheels have come round to slot 0."""
        for level in range(1, LEVELS):
            slot = self.slot(self.now, level)
            self.cascade(self.wheels[level][slot])
            if slot != 0:
                return
        # Ours.
        if self.now % REACH == 0 and self.bound < self.now + REACH:
            self.cascade(self.overflow)

    def cascade(self, slot: list[Armed]) -> None:
        """Empty a slot and file its timers again."""
        self.count("slots_visited", 1 if slot else 0)
        self.count("timers_touched", len(slot))
        self.count("refiled", len(slot))
        timers = slot[:]
        slot.clear()
        for timer in timers:
            self.arm(timer)

    def slots_visited(self) -> int:
        return self.counters["slots_visited"]

    def slot(self, moment: int, level: int) -> int:
        return moment // SLOTS**level % SLOTS

    def next_unit(self, until: int) -> int:
        """Ours: the next unit, or in a long jump the next one at which a slot opens."""
        if until - self.now <= WALK:
            return self.now + 1
        filed = [
            (timer, SLOTS**level)
            for level, slots in enumerate(self.wheels)
            for slot in slots
            for timer in slot
        ]
        opens = [timer.deadline // width * width for timer, width in filed]
        opens += [self.bound // REACH * REACH] if self.overflow else []
        return min([*opens, until])

    def filed(self, timer: Armed) -> dict[str, int | str]:
        if timer.within is self.overflow:
            return {"bucket": "overflow"}
        return {"level": timer.level + 1, "slot": self.slot(timer.deadline, timer.level)}
