"""Somebody's own timers, as `module:Class` names them: some right, some wrong in one way each."""

import dataclasses
import textwrap
from pathlib import Path
from typing import ClassVar

import numpy as np

from tests.compare.clocks import FakeClock
from timers import HeapqDelayQueue
from timers.protocol import Expired
from timers.rounding import OwnRounding


class Right(HeapqDelayQueue):
    """Does what its traits declare, without a kernel."""


class Late(HeapqDelayQueue):
    """Fires a unit late, and does not say so."""

    def schedule(self, deadline):
        return super().schedule(deadline + 1)


class Twice(HeapqDelayQueue):
    """Delivers every timer twice."""

    def advance(self, now, limit=None):
        return Expired(*(np.repeat(column, 2) for column in super().advance(now, limit)))


class Asleep(HeapqDelayQueue):
    """Never wants to be woken."""

    def next_wakeup(self):
        return None

    def next_expiry(self):
        return None


class Moody(HeapqDelayQueue):
    """Fires in another order every other time."""

    instances = 0

    def __init__(self, **keywords):
        super().__init__(**keywords)
        Moody.instances += 1
        self._turn = Moody.instances % 2

    traits = dataclasses.replace(HeapqDelayQueue.traits, order="unspecified")

    def advance(self, now, limit=None):
        rows = super().advance(now, limit)
        order = np.arange(len(rows.handles))
        if self._turn:
            order = np.lexsort((-rows.handles, rows.fired_at))
        return Expired(*(column[order] for column in rows))


class NoTimer:
    """Has nothing of a timer."""

    traits = HeapqDelayQueue.traits

    def __init__(self, start=0):
        pass


class NoStart:
    """Declares nothing."""


class NeedsMore(HeapqDelayQueue):
    """Cannot be made without a rate."""

    def __init__(self, rate, start=0):
        super().__init__(start=start)


class Undeclared(HeapqDelayQueue):
    """Does not say when it fires."""

    traits = dataclasses.replace(
        HeapqDelayQueue.traits, rounding=lambda parameters: OwnRounding(max)
    )


class Timed(HeapqDelayQueue):
    """Spends seconds of a clock on each call: so many times `factor` as it was when it was made."""

    clock, factor = FakeClock(), 1
    instances: ClassVar[list["Timed"]] = []
    MAKE, SCHEDULE, CANCEL, RESCHEDULE, ADVANCE, FIRE, WAKE = 1009, 3, 5, 17, 7, 11, 13

    def __init__(self, **keywords):
        super().__init__(**keywords)
        self.clock.seconds += self.MAKE
        self.factor, self.spent = Timed.factor, 0
        Timed.instances.append(self)

    def spend(self, seconds):
        self.clock.seconds += seconds * self.factor
        self.spent += seconds * self.factor

    def schedule(self, deadline):
        self.spend(self.SCHEDULE)
        return super().schedule(deadline)

    def cancel(self, handle):
        self.spend(self.CANCEL)
        return super().cancel(handle)

    def reschedule(self, handle, deadline):
        self.spend(self.RESCHEDULE)
        return super().reschedule(handle, deadline)

    def advance(self, now, limit=None):
        rows = super().advance(now, limit)
        self.spend(self.ADVANCE + self.FIRE * len(rows.handles))
        return rows

    def next_wakeup(self):
        self.spend(self.WAKE)
        return super().next_wakeup()


SLOW = """
    import time
    from pathlib import Path

    from timers import HeapqDelayQueue

    class Slow(HeapqDelayQueue):
        def schedule(self, deadline):
            if Path({marker!r}).exists():
                time.sleep(0.005)
            return super().schedule(deadline)
"""


def slow_timer(directory: Path) -> Path:
    """Write the module of `slow:Slow`, which takes 5 ms to schedule a timer as long as the file
    exists that is returned.
    """
    marker = directory / "slowly"
    marker.touch()
    (directory / "slow.py").write_text(textwrap.dedent(SLOW).format(marker=str(marker)))
    return marker
