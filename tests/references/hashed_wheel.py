"""Netty's HashedWheelTimer: one wheel, and for each timeout the rounds that remain until its own
tick.

As in Worker.transferTimeoutsToBuckets and HashedWheelBucket.expireTimeouts. Ours: ticks are counted
from time 0 and not from the timer's start, any number of timeouts is transferred at once, and after
a whole rotation of one advance in which nothing was due, the rotations in which nothing will be are
passed at once.
"""

from collections.abc import Mapping

from tests.references.common import Armed, Reference

LIMIT = 2**63 - 1
MOST_ROUNDS = 2**31 - 1  # ours; Netty counts rounds in 64 bits


class HashedWheel(Reference):
    def __init__(self, parameters: Mapping[str, int], start: int) -> None:
        super().__init__(parameters, start)
        self.tick_duration, self.wheel_size = parameters["tick"], parameters["wheel_size"]
        self.tick = start // self.tick_duration  # in progress
        self.wheel: list[list[Armed]] = [[] for _ in range(self.wheel_size)]
        self.timeouts: list[Armed] = []  # armed during the tick in progress

    def arm(self, timer: Armed) -> None:
        timer.within = self.due if timer.deadline <= self.now else self.timeouts
        timer.within.append(timer)

    def transfer_timeouts_to_buckets(self) -> None:
        self.count("timers_touched", len(self.timeouts))
        for timer in self.timeouts:
            calculated = timer.deadline // self.tick_duration
            timer.remaining_rounds = self.rounds(timer, self.tick)
            timer.within = self.wheel[calculated % self.wheel_size]
            timer.within.append(timer)
        self.timeouts.clear()

    def rounds(self, timer: Armed, tick: int) -> int | None:
        """Rounds from a tick on. Ours: None for more than an int holds, which are worked out again
        at each look.
        """
        rounds = (timer.deadline // self.tick_duration - tick) // self.wheel_size
        return rounds if rounds <= MOST_ROUNDS else None

    def run(self, until: int) -> None:
        self.deliver(self.due)
        last = until // self.tick_duration + (
            1 if until == LIMIT else 0
        )  # no moment comes after the last one
        if self.tick < last:
            self.transfer_timeouts_to_buckets()
        quiet_since = self.tick  # ours, as all that follows from it
        while self.tick < last and any(self.wheel):
            bucket = self.wheel[self.tick % self.wheel_size]
            self.tick += 1
            if not bucket:  # ours; Netty looks at it
                continue
            self.now = min(self.tick * self.tick_duration, LIMIT)
            self.count("clock_visits")
            if self.expire_timeouts(bucket):
                quiet_since = self.tick
            in_this_advance = until // self.tick_duration - self.tick
            if self.tick - quiet_since >= self.wheel_size <= in_this_advance:
                self.skip_rotations(in_this_advance // self.wheel_size)
                quiet_since = self.tick
        self.tick = until // self.tick_duration

    def expire_timeouts(self, bucket: list[Armed]) -> bool:
        """What a tick does when it has passed; whether something was due."""
        self.count("slots_visited")
        expired = []
        for timer in bucket:
            if timer.remaining_rounds is None:  # ours
                timer.remaining_rounds = self.rounds(timer, self.tick - 1)
            if timer.remaining_rounds == 0:
                expired.append(timer)
            elif timer.remaining_rounds is not None:
                timer.remaining_rounds -= 1
        bucket[:] = [timer for timer in bucket if timer not in expired]
        self.count("timers_touched", len(bucket))
        any_expired = bool(expired)
        self.deliver(expired)
        return any_expired

    def skip_rotations(self, limit: int) -> None:
        """Ours: pass the rotations in which nothing is due, but no more than `most`."""
        pending = [timer for bucket in self.wheel for timer in bucket]
        self.count("timers_touched", len(pending))
        distances = [timer.deadline // self.tick_duration - self.tick for timer in pending]
        rotations = min([limit, *(distance // self.wheel_size for distance in distances)])
        self.tick += rotations * self.wheel_size
        for timer in pending:
            if timer.remaining_rounds is not None:
                timer.remaining_rounds -= rotations

    def filed(self, timer: Armed) -> dict[str, int | str]:
        if timer.within is self.timeouts:
            return {"bucket": "arrivals"}
        rounds = -1 if timer.remaining_rounds is None else timer.remaining_rounds
        return {"slot": timer.deadline // self.tick_duration % self.wheel_size, "rounds": rounds}
