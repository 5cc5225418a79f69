"""Timers in Python with one fault each, and the rule of the model-based check that each breaks."""

import dataclasses
from itertools import count

import numpy as np

from timers import HeapqDelayQueue
from timers.errors import InvariantError
from timers.kernels.handles import PLACE_BITS, PLACE_MASK
from timers.limits import LIMIT
from timers.protocol import Expired

JUMP = 256


class Loose(HeapqDelayQueue):
    """Right: declares less than it does."""

    traits = dataclasses.replace(
        HeapqDelayQueue.traits, order="unspecified", exact_next_expiry=False
    )


class Reversed(Loose):
    """An advance returns the latest first."""

    def advance(self, now, limit=None):
        return Expired(*(column[::-1] for column in super().advance(now, limit)))


class Lifo(HeapqDelayQueue):
    """Last in, first out, though declared FIFO."""

    def advance(self, now, limit=None):
        rows = super().advance(now, limit)
        order = np.lexsort((-np.arange(len(rows.handles)), rows.deadlines, rows.fired_at))
        return Expired(*(column[order] for column in rows))


class LifoUnspecified(Lifo):
    """Right: last in, first out, and says that its order is unspecified."""

    traits = Loose.traits


class ForgetsDeadlines(HeapqDelayQueue):
    """Says of an overdue timer that its deadline was when it fired."""

    def advance(self, now, limit=None):
        rows = super().advance(now, limit)
        return rows._replace(deadlines=rows.fired_at)


class LosesInJumps(HeapqDelayQueue):
    """A jump over a rotation loses the last timer."""

    def advance(self, now, limit=None):
        is_jump = now - self.now > JUMP
        rows = super().advance(now, limit)
        return Expired(*(column[:-1] for column in rows)) if is_jump else rows


class EarlyAtWraps(HeapqDelayQueue):
    """A unit early at the multiples of 256."""

    def schedule(self, deadline):
        return super().schedule(deadline - (deadline % JUMP == 0 < deadline))


class Growing(HeapqDelayQueue):
    """The first timer is lost when it grows beyond eight."""

    _grown = False

    def schedule(self, deadline):
        if len(self) >= 8 and not self._grown:
            self._grown = self.cancel(next(iter(self._armed)))
        return super().schedule(deadline)


class RearmedTwice(HeapqDelayQueue):
    """What is re-armed for the present fires twice."""

    def __init__(self, **keywords):
        super().__init__(**keywords)
        self._twice = set()

    def reschedule(self, handle, deadline):
        found = super().reschedule(handle, deadline)
        if found and deadline <= self.now:
            self._twice.add(handle)
        return found

    def advance(self, now, limit=None):
        rows = super().advance(now, limit)
        times = [1 + (handle in self._twice) for handle in rows.handles.tolist()]
        return Expired(*(np.repeat(column, times) for column in rows))


class CountsCancelled(HeapqDelayQueue):
    """Its length is 1 after everything was cancelled at once."""

    _off = 0

    def cancel_many(self, handles):
        cancelled = super().cancel_many(handles)
        self._off = int(cancelled.any() and not super().__len__())
        return cancelled

    def __len__(self):
        return super().__len__() or self._off

    def schedule(self, deadline):
        self._off = 0
        return super().schedule(deadline)


class ClockAhead(HeapqDelayQueue):
    """After a jump over a rotation, its clock seems to be a unit later."""

    _now, _shown = 0, 0
    now = property(
        lambda self: self._now + self._shown, lambda self, now: setattr(self, "_now", now)
    )

    def _honest(self, method, *arguments):
        shown, self._shown = self._shown, 0
        result = getattr(super(), method)(*arguments)
        self._shown = shown
        return result

    def advance(self, now, limit=None):
        jumps = now - self._now > JUMP
        rows = self._honest("advance", now, limit)
        self._shown = int(jumps)
        return rows

    def schedule_after(self, delay):
        return self._honest("schedule_after", delay)

    def next_expiry(self):
        return self._honest("next_expiry")

    def next_wakeup(self):
        return self._honest("next_wakeup")


class Dreams(HeapqDelayQueue):
    """Has a next expiry when nothing is pending."""

    def next_expiry(self):
        return super().next_expiry() if len(self) or self.now == LIMIT else self.now + 1

    def next_wakeup(self):
        return super().next_expiry()


class Blind(HeapqDelayQueue):
    """Has no next expiry when two timers are pending."""

    def next_expiry(self):
        return None if len(self) == 2 else super().next_expiry()

    def next_wakeup(self):
        return super().next_expiry()


class LateExpiry(Loose):
    """Its next expiry is a unit after the earliest timer."""

    def next_expiry(self):
        found = super().next_expiry()
        return None if found is None else min(found + 1, LIMIT)

    def next_wakeup(self):
        return super().next_expiry()


class PastExpiry(Loose):
    """Its next expiry lies before its clock."""

    def __init__(self, **keywords):
        super().__init__(**keywords)
        self._past = count(-(10**9))

    def next_expiry(self):
        return self.now + next(self._past) if len(self) else None

    def next_wakeup(self):
        return super().next_expiry()


class InexactExpiry(HeapqDelayQueue):
    """Declared exact, its next expiry is a unit before the earliest timer."""

    def next_expiry(self):
        found = super().next_expiry()
        return found if found is None or found - 1 <= self.now else found - 1

    def next_wakeup(self):
        return super().next_expiry()


class Asleep(HeapqDelayQueue):
    """Wants no wake-up when two timers are pending."""

    def next_wakeup(self):
        return None if len(self) == 2 else super().next_wakeup()


class LateWakeup(HeapqDelayQueue):
    """Wants to be woken a unit after the earliest timer."""

    def next_wakeup(self):
        found = super().next_wakeup()
        return None if found is None else min(found + 1, LIMIT)


class PastWakeup(HeapqDelayQueue):
    """Now and then wants to be woken before its clock."""

    def __init__(self, **keywords):
        super().__init__(**keywords)
        self._calls = count()

    def next_wakeup(self):
        return self.now - 1 if len(self) and next(self._calls) % 5 == 4 else super().next_wakeup()


class NumberOfMany(HeapqDelayQueue):
    """The answers of `reschedule_many` are numbers."""

    def reschedule_many(self, handles, deadlines):
        return super().reschedule_many(handles, deadlines).astype(int)


class SaysYesToMany(HeapqDelayQueue):
    """`reschedule_many` says that every timer was pending."""

    def reschedule_many(self, handles, deadlines):
        return super().reschedule_many(handles, deadlines) | True


class CancelsNumbers(HeapqDelayQueue):
    """The answers of `cancel_many` are numbers."""

    def cancel_many(self, handles):
        return super().cancel_many(handles).astype(int)


class CancelsDuplicates(HeapqDelayQueue):
    """`cancel_many` cancels a handle that is given twice twice."""

    def cancel_many(self, handles):
        answers = super().cancel_many(handles)
        done = {handle for handle, answer in zip(handles, answers, strict=True) if answer}
        return np.array([handle in done for handle in handles], np.bool_)


class StandsStill(Loose):
    """Its next expiry is always now."""

    def next_expiry(self):
        return self.now if len(self) else None

    def next_wakeup(self):
        return super().next_expiry()


class Ticks(HeapqDelayQueue):
    """Wants to be woken in each unit, also when nothing is pending."""

    def next_wakeup(self):
        found = super().next_wakeup()
        return found if self.now == LIMIT else self.now + (found != self.now)


class Restless(HeapqDelayQueue):
    """Wants to be woken again at once, three times."""

    def __init__(self, **keywords):
        super().__init__(**keywords)
        self._calls = count()

    def next_wakeup(self):
        return self.now if len(self) and next(self._calls) % 4 < 3 else super().next_wakeup()


class Revives(HeapqDelayQueue):
    """Says that it has re-armed a timer that is not pending."""

    def reschedule(self, handle, deadline):
        super().reschedule(handle, deadline)
        return True

    def reschedule_many(self, handles, deadlines):
        pairs = zip(handles, deadlines, strict=True)
        return np.array([super(Revives, self).reschedule(*pair) for pair in pairs], np.bool_)


class CancelsTwice(HeapqDelayQueue):
    """Says that a timer was pending which has been cancelled."""

    def __init__(self, **keywords):
        super().__init__(**keywords)
        self._known = set()

    def cancel(self, handle):
        found = super().cancel(handle)
        if found:
            self._known.add(handle)
        return handle in self._known


class KillsLater(HeapqDelayQueue):
    """A handle of an earlier generation cancels the later timer in its place."""

    def cancel(self, handle):
        places = {known & PLACE_MASK: known for known in self._armed}
        is_earlier = type(handle) is int and handle >> PLACE_BITS > 0
        return super().cancel(places.get(handle & PLACE_MASK, handle) if is_earlier else handle)


class NumpyHandles(HeapqDelayQueue):
    """A handle is a NumPy scalar."""

    def schedule(self, deadline):
        return np.int64(super().schedule(deadline))


class Handle(int):
    """An integer of a class of its own."""


class OwnHandles(HeapqDelayQueue):
    """A handle is no plain int."""

    def schedule(self, deadline):
        return Handle(super().schedule(deadline))


class Translated(HeapqDelayQueue):
    """A base: handles outside are others than inside."""

    def out(self, handle):
        return -handle

    def into(self, handle):
        return -handle

    def schedule(self, deadline):
        return self.out(super().schedule(deadline))

    def schedule_many(self, deadlines):
        return np.array([self.schedule(deadline) for deadline in deadlines.tolist()], np.int64)

    def cancel(self, handle):
        return super().cancel(self.into(handle))

    def reschedule(self, handle, deadline):
        return super().reschedule(self.into(handle), deadline)

    def cancel_many(self, handles):
        return np.array([self.cancel(handle) for handle in handles], np.bool_)

    def reschedule_many(self, handles, deadlines):
        pairs = zip(handles, deadlines, strict=True)
        return np.array([self.reschedule(*pair) for pair in pairs], np.bool_)

    def advance(self, now, limit=None):
        rows = super().advance(now, limit)
        return rows._replace(
            handles=np.array([self.out(handle) for handle in rows.handles.tolist()], np.int64)
        )


class NegativeHandles(Translated):
    """Handles are negative."""


class NoGenerations(Translated):
    """A handle is a place, which the next timer has again."""

    def out(self, handle):
        return 1 + (handle & PLACE_MASK)

    def into(self, handle):
        live = {self.out(known): known for known in self._armed}
        return live.get(handle, 0)


class Unsigned(HeapqDelayQueue):
    """The columns of an advance are unsigned."""

    def advance(self, now, limit=None):
        return Expired(*(column.astype(np.uint64) for column in super().advance(now, limit)))


class Torn(HeapqDelayQueue):
    """Finds itself damaged when three timers are pending."""

    def check(self):
        if len(self) == 3:
            raise InvariantError("three timers")


RULES = {
    "rows are not ordered by fired_at: {}": Reversed,
    "declared fifo, but {} fired, not {}": Lifo,
    "{} fired, not {}": ForgetsDeadlines,
    "check()": Torn,
    "len() is {}; {} timers are pending": CountsCancelled,
    "now is {}, not {}": ClockAhead,
    "next_expiry() is {}, but nothing is pending": Dreams,
    "next_expiry() is None, but timers are pending": Blind,
    "next_expiry() is {}, but a timer fires at {}": LateExpiry,
    "next_expiry() is {}, before now {}": PastExpiry,
    "next_expiry() is {}; declared exact: {}": InexactExpiry,
    "next_wakeup() is None, but timers are pending": Asleep,
    "next_wakeup() is {}, but a timer fires at {}": LateWakeup,
    "next_wakeup() is {}, before now {}": PastWakeup,
    "reschedule_many gives {}, not bool": NumberOfMany,
    "reschedule_many gives {}, not {}": SaysYesToMany,
    "cancel_many gives {}, not bool": CancelsNumbers,
    "cancel_many gives {}, not {}": CancelsDuplicates,
    "nothing fired at next_expiry() {}, and then it is {}": StandsStill,
    "{} wake-ups until all had fired; {} are enough": Ticks,
    "reschedule({}) is {}, not {}": Revives,
    "cancel({}) is {}, not {}": CancelsTwice,
    "handle {} is not an int": OwnHandles,
    "handle {} is outside [1, 2**63 - 1]": NegativeHandles,
    "handle {} has been used before": NoGenerations,
    "woke at {} for nothing, and wants {} next": Restless,
    "advance gives columns of {}; they must be int64, 1-D": Unsigned,
}
"""Each rule of the check, as its message is written, with a timer that breaks this one alone."""

MORE = (LosesInJumps, EarlyAtWraps, Growing, RearmedTwice, KillsLater, NumpyHandles)
"""Timers that break whichever rule comes first."""

CRASH_INSTEAD = (Blind, Asleep)
"""Without the rule, what follows it fails: None cannot be compared."""
