"""Snapshots: the contents of a timer's structure at one moment (wheels, lists, a heap, a queue).

`timer.snapshot()` returns a snapshot, for drawings, learning and tests. It does not change when the
timer does.

>>> from timers import HierarchicalWheel
>>> timer = HierarchicalWheel(tick=1, wheel_size=10)
>>> handles = timer.schedule_many([9, 88])
>>> snapshot = timer.snapshot()
>>> [(ring.level, ring.tick, list(ring.slots)) for ring in snapshot.rings]
[(1, 1, [9]), (2, 10, [8])]
>>> snapshot.queue
(Queued(expiration=9, level=1, slot=9), Queued(expiration=80, level=2, slot=8))
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple


class Waiting(NamedTuple):
    """A timer in the structure."""

    handle: int
    deadline: int
    rounds: int | None = None  #: rotations left to wait, in a wheel that counts them
    pending: bool = True  #: False if it was cancelled and has not been removed yet


Timers = tuple[Waiting, ...]


class Ring(NamedTuple):
    """A wheel: `size` slots of `tick` units each, then slot 0 again."""

    level: int | None  #: from 1, as in `locate`; None if there is only one wheel
    tick: int
    size: int
    current: int  #: the slot of the present moment
    slots: Mapping[int, Timers]  #: the occupied slots, each in the order of its list


class Queued(NamedTuple):
    """A bucket in the queue that drives the clock; cancels may have emptied it."""

    expiration: int
    level: int
    slot: int


class Snapshot(NamedTuple):
    """The contents of a structure; parts that it does not have are empty or None."""

    now: int
    rings: tuple[Ring, ...] = ()  #: the lowest level first; unused levels may be missing
    lists: Mapping[str, Timers] = MappingProxyType({})  #: by name, empty lists included
    heap: Timers | None = None  #: entry k has its children from arity * k + 1
    arity: int = 2  #: of the heap: 2 for a binary one
    queue: tuple[Queued, ...] | None = None  #: of buckets, in the order of a heap

    def places(self) -> Iterator[tuple[Waiting, dict[str, int | str]]]:
        """Yield each timer with its place, in the form of `locate`. O(timers)."""
        for ring in self.rings:
            level = {} if ring.level is None else {"level": ring.level}
            for slot, timers in ring.slots.items():
                for timer in timers:
                    rounds = {} if timer.rounds is None else {"rounds": timer.rounds}
                    yield timer, {**level, "slot": slot, **rounds}
        for name, timers in self.lists.items():
            for timer in timers:
                yield timer, {"bucket": name}
        for index, timer in enumerate(self.heap or ()):
            yield timer, {"index": index}
