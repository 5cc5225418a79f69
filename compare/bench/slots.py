"""Counts the pending timers that are in the slots of a wheel.

The others wait in a list until the wheel's range reaches them, or until the tick in which they
arrived ends. While all timers wait, a measurement shows the list and not the wheel.
"""

from typing import Any

from compare.bench.store import Row
from timers.schemes.base import KernelTimer


def slots_of(contestant: str, size: int, timer: Any) -> list[Row]:
    """The row of a wheel in the table `slots`; none for any other timer. O(pending)."""
    rings = timer.snapshot().rings if isinstance(timer, KernelTimer) else ()
    in_slots = sum(len(timers) for ring in rings for timers in ring.slots.values())
    row = {"contestant": contestant, "size": size, "pending": len(timer), "in_slots": in_slots}
    return [row] if rings else []
