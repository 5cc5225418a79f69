"""Linux's timers since 4.8 (kernel/time/timer.c): nine wheels of 64 slots, without cascades.

The functions are calc_index, calc_wheel_index, __collect_expired_timers and __run_timers. Ours are
the jumps over empty units, the distance from now (Linux: from the next unit), and the last moment,
at which the slots that would begin later begin too.
"""

from collections.abc import Mapping

from tests.references.common import WALK, Armed, Reference

LVL_CLK_DIV = 8
LVL_SIZE = 64
LVL_DEPTH = 9
LIMIT = 2**63 - 1


def lvl_gran(level: int) -> int:
    return LVL_CLK_DIV**level


def lvl_start(level: int) -> int:
    """The shortest delay of a level."""
    return (LVL_SIZE - 1) * LVL_CLK_DIV ** (level - 1)


WHEEL_TIMEOUT_CUTOFF = lvl_start(LVL_DEPTH)
WHEEL_TIMEOUT_MAX = WHEEL_TIMEOUT_CUTOFF - lvl_gran(LVL_DEPTH - 1)


class LinuxWheel(Reference):
    def __init__(self, parameters: Mapping[str, int], start: int) -> None:
        super().__init__(parameters, start)
        self.vectors: list[list[list[Armed]]] = [
            [[] for _ in range(LVL_SIZE)] for _ in range(LVL_DEPTH)
        ]

    def arm(self, timer: Armed) -> None:
        """calc_wheel_index."""
        expires, delta = timer.deadline, timer.deadline - self.now
        if delta <= 0:
            timer.within = self.due  # ours
        else:
            timer.level = next(
                (level for level in range(LVL_DEPTH) if delta < lvl_start(level + 1)), LVL_DEPTH - 1
            )
            if delta >= WHEEL_TIMEOUT_CUTOFF:
                expires = self.now + WHEEL_TIMEOUT_MAX
            self.calc_index(timer, expires)
        timer.within.append(timer)

    def calc_index(self, timer: Armed, expires: int) -> None:
        """Rounded up by a whole slot, so that no timer is early."""
        tick = expires // lvl_gran(timer.level) + 1
        timer.bucket_expiry = min(tick * lvl_gran(timer.level), LIMIT)
        timer.slot = tick % LVL_SIZE if tick <= LIMIT else LIMIT % LVL_SIZE
        timer.within = self.vectors[timer.level][timer.slot]

    def run(self, until: int) -> None:
        self.deliver(self.due)
        while self.now < until:
            self.now = self.next_unit(until)
            self.collect_expired_timers()

    def collect_expired_timers(self) -> None:
        """The slots that begin now, from the lowest wheel up."""
        expired = [
            slot
            for vector in self.vectors
            for slot in vector
            if slot and slot[0].bucket_expiry == self.now
        ]
        self.count("slots_visited", len(expired))
        self.count("clock_visits", 1 if expired else 0)
        for slot in expired:
            self.deliver(slot)

    def next_unit(self, until: int) -> int:  # ours
        if until - self.now <= WALK // 10:
            return self.now + 1
        armed = (slot[0] for vector in self.vectors for slot in vector if slot)
        return min([*(timer.bucket_expiry for timer in armed), until])

    def filed(self, timer: Armed) -> dict[str, int]:
        return {"level": timer.level + 1, "slot": timer.slot}
