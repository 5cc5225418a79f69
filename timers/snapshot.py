"""What a timer's structure holds at one moment: wheels, lists, a heap, a queue of buckets.

`timer.snapshot()` returns one, for drawings, for learning and for tests. Nothing in it changes when
the timer does.

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
    pending: bool = True  #: False for one that has been cancelled and not been removed yet


Timers = tuple[Waiting, ...]


class Ring(NamedTuple):
    """A wheel: `size` slots of `tick` units each, then slot 0 again."""

    level: int | None  #: its number among several wheels, as `locate` counts; None for the only one
    tick: int
    size: int
    current: int  #: the slot of the present moment
    slots: Mapping[int, Timers]  #: the slots that hold timers, each in the order of its list


class Queued(NamedTuple):
    """A bucket in a queue that drives the clock; it may have been emptied by cancels."""

    expiration: int
    level: int
    slot: int


class Snapshot(NamedTuple):
    """The state of a structure; the parts that it does not have are empty or None."""

    now: int
    rings: tuple[Ring, ...] = ()  #: the lowest level first; levels that were never used may lack
    lists: Mapping[str, Timers] = MappingProxyType({})  #: by name, empty lists included
    heap: Timers | None = None  #: entry k has its children at 2k + 1 and 2k + 2
    queue: tuple[Queued, ...] | None = None  #: of buckets, as a heap like the other

    def places(self) -> Iterator[tuple[Waiting, dict[str, int | str]]]:
        """Each timer with its place, as `locate` describes it. O(timers)."""
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
