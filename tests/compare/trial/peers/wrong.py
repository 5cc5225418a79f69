"""A peer that is right, or wrong in one way: python wrong.py FAULT describe | check | time."""

import os
import sys
import time
from pathlib import Path

from compare.trial.peers import peer

DESCRIPTION = {
    "protocol": 1,
    "name": "wrong",
    "language": "Python",
    "scheme": "list",
    "order": "fifo",
}


class Right:
    """A list of all timers."""

    def __init__(self, start):
        self.now, self.armings, self.pending = start, 0, {}

    def due_at(self, deadline):
        return max(deadline, self.now)

    def start(self, operation, deadline, handle=None):
        self.armings += 1
        handle = self.armings if handle is None else handle
        self.pending[handle] = (self.due_at(deadline), deadline, self.armings, operation)
        return handle

    def cancel(self, handle):
        return self.pending.pop(handle, None) is not None

    def rearm(self, handle, operation, deadline):
        if handle not in self.pending:
            return None
        return self.start(operation, deadline, handle)

    def advance(self, now):
        self.now = now
        due = sorted((timer, handle) for handle, timer in self.pending.items() if timer[0] <= now)
        for _, handle in due:
            del self.pending[handle]
        return [(timer[3], timer[0]) for timer, _ in due]

    def next_wakeup(self):
        return min(timer[0] for timer in self.pending.values())

    def __len__(self):
        return len(self.pending)


class Late(Right):
    """A unit late, from some delay on."""

    def due_at(self, deadline):
        return min(super().due_at(deadline) + (deadline - self.now > 60), 2**63 - 1)


class Early(Right):
    """A unit early for odd delays."""

    def due_at(self, deadline):
        delay = deadline - self.now
        return super().due_at(deadline - (delay > 2 and delay % 2))


class Strict(Right):
    """What is due at the very moment waits for the next advance."""

    def advance(self, now):
        stands = now == self.now
        kept = {h: timer for h, timer in self.pending.items() if timer[0] == now and not stands}
        for handle in kept:
            del self.pending[handle]
        rows = super().advance(now)
        self.pending |= kept
        return rows


class RotationOff(Right):
    """Far timers come a rotation late: at multiples of 256."""

    def due_at(self, deadline):
        due = super().due_at(deadline)
        return due if due - self.now < 256 else due + 255 - (due + 255) % 256


class Reversed(Right):
    """Within an advance, the latest comes first."""

    def advance(self, now):
        return super().advance(now)[::-1]


class Lifo(Right):
    """Equal deadlines come in reverse."""

    def start(self, operation, deadline, handle=None):
        handle = super().start(operation, deadline, handle)
        due, deadline, arming, operation = self.pending[handle]
        self.pending[handle] = (due, deadline, -arming, operation)
        return handle


class Keeps(Right):
    """Cancels nothing."""

    def cancel(self, handle):
        return handle in self.pending


class KeepsSome(Right):
    """Does not find a timer that was re-armed."""

    rearmed = frozenset()

    def rearm(self, handle, operation, deadline):
        self.rearmed |= {handle}
        return super().rearm(handle, operation, deadline)

    def cancel(self, handle):
        return handle not in self.rearmed and super().cancel(handle)


class KeepsOldDeadline(Right):
    """A re-arm never makes a timer earlier."""

    def rearm(self, handle, operation, deadline):
        if handle in self.pending:
            deadline = max(deadline, self.pending[handle][1])
        return super().rearm(handle, operation, deadline)


class Revives(Right):
    """A re-arm starts a timer that has fired."""

    def rearm(self, handle, operation, deadline):
        return self.start(operation, deadline, handle)


class Stale(Right):
    """A handle is a place, and a stale one is the next timer's."""

    def start(self, operation, deadline, handle=None):
        places = (place for place in range(10**9) if place not in self.pending)
        return super().start(operation, deadline, next(places) if handle is None else handle)


class Int32(Right):
    """Delays are 32-bit integers."""

    def due_at(self, deadline):
        return self.now + (super().due_at(deadline) - self.now) % 2**31


class Uint32(Right):
    """Delays are unsigned 32-bit integers."""

    def due_at(self, deadline):
        return self.now + (super().due_at(deadline) - self.now) % 2**32


class Double(Right):
    """Deadlines are doubles."""

    def due_at(self, deadline):
        return min(int(float(super().due_at(deadline))), 2**63 - 1)


class Wraps(Right):
    """Adds before it compares, so the last moments are in the past."""

    def due_at(self, deadline):
        return self.now if deadline > 2**63 - 3 else super().due_at(deadline)


class Clumsy(Right):
    """Moves its clock by at most 2**20 units at a time, and so falls behind when idle."""

    def advance(self, now):
        return super().advance(min(now, self.now + 2**20))

    def next_wakeup(self):
        return min(super().next_wakeup(), self.now + 2**20)


class Crowded(Right):
    """Drops timers that are due at a moment with more than 1 000 others."""

    def advance(self, now):
        return super().advance(now)[:1000]


class Twice(Right):
    """Each timer fires twice."""

    def advance(self, now):
        return [row for row in super().advance(now) for _ in range(2)]


class Unknown(Right):
    """Delivers timers that were never started."""

    def advance(self, now):
        return [(operation + 2**20, at) for operation, at in super().advance(now)]


class Crash(Right):
    """Dies when three timers are pending."""

    def start(self, operation, deadline, handle=None):
        if len(self.pending) == 2:
            print("first line", "second line", "no place left", sep="\n", file=sys.stderr)
            sys.exit(7)
        return super().start(operation, deadline, handle)


class Hang(Right):
    """Hangs when a timer is cancelled; creates a file when it does."""

    def cancel(self, handle):
        Path(os.environ["HANGS"]).touch()
        time.sleep(1000)


class WakesLate(Right):
    """Wants to be woken a unit after the earliest timer."""

    def next_wakeup(self):
        return super().next_wakeup() + 1


class WakesAtTheEnd(Right):
    """Wants to be woken at the end of time."""

    def next_wakeup(self):
        return 2**63 - 1


class WakesNever(Right):
    """Has no wake-up when two timers are pending."""

    def next_wakeup(self):
        return super().next_wakeup() if len(self) != 2 else sys.exit(3)


class EarlyAtWraps(Right):
    """A unit early at the multiples of 256."""

    def due_at(self, deadline):
        return super().due_at(deadline - (deadline % 256 == 0 and deadline - self.now > 1))


class LostWhenRefiled(Right):
    """When two timers of a bucket of the second level are filed again, one is lost."""

    def advance(self, now):
        bucket = now // 256
        if bucket > self.now // 256:
            far = [h for h, timer in self.pending.items() if timer[0] // 256 == bucket]
            if len(far) == 2:
                del self.pending[far[0]]
        return super().advance(now)


class EarlyWhenRefiled(Right):
    """Far timers fire when their bucket is filed again."""

    def due_at(self, deadline):
        due = super().due_at(deadline)
        return due if due - self.now < 256 else due // 256 * 256


class ShuffledByJumps(Right):
    """In a jump over a rotation, timers come slot by slot."""

    def advance(self, now):
        is_jump = now - self.now > 256
        rows = super().advance(now)
        return sorted(rows, key=lambda row: row[1] % 256) if is_jump else rows


class LostByJumps(Right):
    """A jump over a rotation loses what is due at its end."""

    def advance(self, now):
        is_jump = now - self.now > 256
        return [row for row in super().advance(now) if not is_jump or row[1] < now]


class Grown(Right):
    """When it grows beyond 64 timers, the first is lost."""

    def start(self, operation, deadline, handle=None):
        if len(self.pending) == 64 and handle is None:
            del self.pending[min(self.pending)]
        return super().start(operation, deadline, handle)


class Full(Right):
    """Takes no more than so many timers."""

    PLACES = 100_000

    def start(self, operation, deadline, handle=None):
        handle = super().start(operation, deadline, handle)
        if len(self.pending) > self.PLACES:
            del self.pending[handle]
        return handle


class RearmedTwice(Right):
    """What is re-armed for the present fires twice."""

    def __init__(self, start):
        super().__init__(start)
        self.again = set()

    def rearm(self, handle, operation, deadline):
        if handle in self.pending and deadline <= self.now:
            self.again.add(operation)
        return super().rearm(handle, operation, deadline)

    def advance(self, now):
        return [row for row in super().advance(now) for _ in range(1 + (row[0] in self.again))]


class LostWhenRearmed(Right):
    """What is re-armed for the present is lost."""

    def rearm(self, handle, operation, deadline):
        found = super().rearm(handle, operation, deadline)
        if found is not None and deadline <= self.now:
            del self.pending[handle]
        return found


class RearmAddsUp(Right):
    """A re-arm adds the delay to the old deadline."""

    def rearm(self, handle, operation, deadline):
        if handle in self.pending and deadline > self.now:
            deadline += self.pending[handle][1] - self.now
        return super().rearm(handle, operation, deadline)


class RearmKeepsItsPlace(Right):
    """A timer that is re-armed for the same deadline keeps its place among equals."""

    def rearm(self, handle, operation, deadline):
        old = self.pending.get(handle)
        found = super().rearm(handle, operation, deadline)
        if old and old[1] == deadline:
            self.pending[handle] = (*old[:3], operation)
        return found


class OneOfEach(Right):
    """A timer takes the place of another with the same deadline."""

    def start(self, operation, deadline, handle=None):
        for other, timer in [*self.pending.items()]:
            if timer[1] == deadline and other != handle:
                del self.pending[other]
        return super().start(operation, deadline, handle)


class CancelsTwo(Right):
    """A cancel takes the next timer of the bucket, too."""

    def cancel(self, handle):
        if handle not in self.pending:
            return False
        deadline = self.pending.pop(handle)[1]
        for other in [h for h, timer in self.pending.items() if timer[1] == deadline][:1]:
            del self.pending[other]
        return True


class CancelsTheLast(Right):
    """Does not cancel the only timer."""

    def cancel(self, handle):
        return len(self.pending) > 1 and super().cancel(handle)


class StaleClock(Right):
    """Its clock stands still while nothing is pending, and delays count from there."""

    def advance(self, now):
        if self.pending:
            return super().advance(now)
        self.real = now
        return []

    def due_at(self, deadline):
        return max(deadline - max(getattr(self, "real", 0) - self.now, 0), self.now)


class Clamps(Right):
    """A delay above 2^31 - 1 is taken for 1, as by setTimeout."""

    def due_at(self, deadline):
        return super().due_at(deadline if deadline - self.now < 2**31 else self.now + 1)


class PastWaits(Right):
    """A deadline in the past waits for a rotation."""

    def due_at(self, deadline):
        return deadline if deadline >= self.now else self.now + 256


class OldOperation(Right):
    """A timer that was re-armed comes out under the operation that started it."""

    def rearm(self, handle, operation, deadline):
        started = self.pending[handle][3] if handle in self.pending else operation
        return super().rearm(handle, started, deadline)


class Moody(Right):
    """Fails only the first time, which a file beside the rows tells."""

    def advance(self, now):
        marker = Path(sys.argv[0] + ".mood")
        if marker.exists():
            marker.unlink()
            return []
        return super().advance(now)


CLASSES = {cls.__name__.lower(): cls for cls in [Right, *Right.__subclasses__()]}


def main(fault, command, *arguments):
    if fault == "nothing":
        return 0
    if fault == "garbage":
        print("hello")
        return 0
    if fault == "oldprotocol":
        print('{"protocol": 0}')
        return 0
    if fault == "half" and command == "check":
        Path(arguments[1]).write_bytes(bytes(36))
        return 0
    if fault == "nofile" and command == "check":
        return 0
    if fault == "backintime" and command == "check":
        rows = peer.check(Right, peer.Tape(arguments[0]), 0)
        for row in range(4, len(rows), 4):
            rows[row + 2] = rows[row - 2] - 1
        Path(arguments[1]).write_bytes(rows.tobytes())
        return 0
    if fault == "silent" and command == "time":
        return 0
    if fault == "realtime":
        DESCRIPTION["real_time"] = True
    make = CLASSES.get(fault, Right)
    return peer.run_peer(DESCRIPTION, make, [command, *arguments])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
