"""Counts the pending timers that are in the slots of a wheel.

The others wait in a list until the wheel's range reaches them, or until the tick in which they
arrived ends. While all timers wait, a measurement shows the list and not the wheel.
"""

from typing import Any, NamedTuple

from timers.schemes.base import KernelTimer


class Slots(NamedTuple):
    """The number of timers pending after holding, and how many of them are in slots."""

    contestant: int  # index
    size: int
    pending: int
    in_slots: int


def slots_of(contestant: int, size: int, timer: Any) -> list[Slots]:
    """Count the pending timers in slots; empty for a timer that is not a wheel. O(pending)."""
    rings = timer.snapshot().rings if isinstance(timer, KernelTimer) else ()
    in_slots = sum(len(timers) for ring in rings for timers in ring.slots.values())
    return [Slots(contestant, size, len(timer), in_slots)] if rings else []
