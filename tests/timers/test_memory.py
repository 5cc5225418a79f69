"""What a timer holds in memory: some bytes of its own, and as many for each place.

For the schemes in `LAYOUTS`, to the byte, from the layout that their kernels describe.
"""

import sys
from collections.abc import Callable

import numpy as np
import pytest

from tests.timers.cases import CASES, Case
from timers.limits import LIMIT
from timers.registry import timer_class
from timers.traits import Parameters

PER_PLACE = 24  # bytes of a pending timer, in every kernel
COUNTERS = 8  # counters of 8 bytes
HEADER = 6  # cells that all kernels share


def words(buckets: int) -> int:
    """Cells of occupancy bits: 32 in each, and none left over."""
    return -(-buckets // 32)


def levels(tick: int, wheel_size: int) -> int:
    """Levels until one reaches the last moment."""
    count = 1
    while tick * wheel_size**count < LIMIT:
        count += 1
    return count


def flat(own: int, buckets: int) -> tuple[int, int]:
    """One wheel with occupancy bits, and so many cells of its own."""
    return buckets, HEADER + own + words(buckets)


def hierarchical(geometry: Parameters) -> tuple[int, int]:
    count = levels(geometry["tick"], geometry["wheel_size"])
    slots = count * geometry["wheel_size"]
    return slots + 1, HEADER + 5 + 7 * count + slots  # and the bucket of what is due; the queue


LAYOUTS: dict[str, Callable[[Parameters], tuple[int, int]]] = {
    "unordered-list": lambda geometry: (2, HEADER + 2),
    "delay-queue": lambda geometry: (0, HEADER + 4),
    "simple-wheel": lambda geometry: flat(2, geometry["wheel_size"] + 2),
    "hashed-wheel": lambda geometry: flat(9, geometry["wheel_size"] + 2),
    "hierarchical-wheel": hierarchical,
    "cascading-wheel": lambda geometry: flat(1, 5 * 256 + 2),
}
"""By scheme: its buckets, each as large as a place, and its cells of 8 bytes."""

every_kernel = pytest.mark.parametrize("case", [case for case in CASES if case.has_kernel], ids=str)


def fixed_bytes(case: Case) -> int:
    """What a timer holds beside its places."""
    return case(capacity=1).nbytes - PER_PLACE


@pytest.mark.parametrize("case", [case for case in CASES if case.name in LAYOUTS], ids=str)
def test_a_timer_holds_what_its_layout_says(case: Case) -> None:
    buckets, cells = LAYOUTS[case.name](case.parameters)
    assert fixed_bytes(case) == PER_PLACE * buckets + 8 * cells


@every_kernel
def test_bytes_held_follow_from_capacity(case: Case) -> None:
    for counting in (False, True):
        fixed = fixed_bytes(case) + 8 * COUNTERS * counting
        for capacity in (1, 7, 1000):
            assert case(capacity=capacity, counting=counting).nbytes == fixed + PER_PLACE * capacity


@every_kernel
def test_a_timer_that_grows_adds_places_alone(case: Case) -> None:
    fixed = fixed_bytes(case)
    timer = case(capacity=7)
    for pending, capacity in [(7, 7), (8, 14), (14, 14), (15, 28), (29, 56)]:
        timer.schedule_many(np.full(pending - len(timer), 100))
        assert timer.nbytes == fixed + PER_PLACE * capacity
    timer.advance(1000)
    assert timer.nbytes == fixed + PER_PLACE * 56, "what fires leaves its place"


def test_the_plain_timer_counts_its_containers_and_what_is_in_the_heap() -> None:
    timer = timer_class("heapq-delay-queue")()
    heap: list[int] = []
    armed: dict[int, int] = {}
    for k in range(1000):
        timer.schedule(k)
        heap.append(k)
        armed[k] = k
    entry = sys.getsizeof((0, 0, 0)) + 3 * sys.getsizeof(LIMIT)
    assert timer.nbytes == 1000 * entry + sum(map(sys.getsizeof, (heap, armed, [])))
