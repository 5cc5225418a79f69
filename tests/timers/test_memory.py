"""What a timer holds in memory: some bytes of its own, and as many for each place."""

import sys
import weakref

import numpy as np
import pytest

from tests.timers.cases import CASES, Case
from timers.limits import LIMIT
from timers.registry import timer_class

COUNTERS = 8  # counters of 8 bytes

FIXED_BYTES = {
    "unordered-list()": 128,
    "delay-queue()": 80,
    "simple-wheel(512)": 12_552,
    "simple-wheel(1)": 160,
    "simple-wheel(8)": 328,
    "hashed-wheel(100,512)": 12_608,
    "hashed-wheel(1,1)": 216,
    "hashed-wheel(10,6)": 336,
    "hierarchical-wheel(1,20)": 10_568,
    "hierarchical-wheel(1,2)": 7688,
    "hierarchical-wheel(7,3)": 5904,
    "cascading-wheel()": 31_168,
    "dense-wheel()": 92_736,
    "linux-wheel()": 14_064,
    "duration-lists()": 104,
    "ordered-list()": 88,
    "sorted-hashed-wheel(512)": 12_520,
    "sorted-hashed-wheel(1)": 128,
    "sorted-hashed-wheel(6)": 248,
}
"""Beside the places: 24 for each bucket, and 8 for each cell (the kernel's State lists them). In
the dense wheel 64 for each line of the header, one for each bucket and one more.
"""

every_kernel = pytest.mark.parametrize("case", [case for case in CASES if case.has_kernel], ids=str)


def place_bytes(case: Case, capacity: int) -> int:
    """What a timer holds for places."""
    if case.name == "dense-wheel":
        return 16 * capacity + 64 * (capacity // 15)
    return (48 if case.name == "duration-lists" else 24) * capacity


def fixed_bytes(case: Case) -> int:
    """What a timer holds beside its places."""
    return case(capacity=1).nbytes - place_bytes(case, 1)


@every_kernel
def test_bytes_held_follow_from_capacity(case: Case) -> None:
    assert str(case) not in FIXED_BYTES or fixed_bytes(case) == FIXED_BYTES[str(case)]
    for counting in (False, True):
        fixed = fixed_bytes(case) + 8 * COUNTERS * counting
        for capacity in (1, 7, 1000):
            timer = case(capacity=capacity, counting=counting)
            assert timer.nbytes == fixed + place_bytes(case, capacity)


@every_kernel
def test_a_timer_that_grows_adds_places_alone(case: Case) -> None:
    fixed = fixed_bytes(case)
    timer = case(capacity=7)
    smaller = weakref.ref(timer.state.nodes)
    for pending, capacity in [(7, 7), (8, 14), (14, 14), (15, 28), (29, 56)]:
        timer.schedule_many(np.full(pending - len(timer), 100))
        assert timer.nbytes == fixed + place_bytes(case, capacity)
    assert smaller() is None
    timer.advance(1000)
    assert timer.nbytes == fixed + place_bytes(case, 56), "what fires leaves its place"


def test_a_million_timers_in_the_dense_wheel_take_21_bytes_each() -> None:
    assert timer_class("dense-wheel")(capacity=10**6).nbytes < 21 * 10**6


def test_the_plain_timer_counts_its_containers_and_what_is_in_the_heap() -> None:
    timer = timer_class("heapq-delay-queue")()
    heap: list[int] = []
    armed: dict[int, int] = {}
    free: list[int] = []
    for k in range(1000):
        armed[k] = timer.schedule(k)
        heap.append(k)
    for k in range(100):  # the entries of cancelled timers stay in the heap
        timer.cancel(armed.pop(k))
        free.append(k)
    entry = sys.getsizeof((0, 0, 0)) + 3 * sys.getsizeof(LIMIT)
    assert timer.nbytes == 1000 * entry + sum(map(sys.getsizeof, (heap, armed, free)))
