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
        return super().due_at(deadline) + (deadline - self.now > 60)


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
    def due_at(self, deadline):
        return self.now + (super().due_at(deadline) - self.now) % 2**31


class Uint32(Right):
    def due_at(self, deadline):
        return self.now + (super().due_at(deadline) - self.now) % 2**32


class Double(Right):
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
    def advance(self, now):
        return [row for row in super().advance(now) for _ in range(2)]


class Unknown(Right):
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
