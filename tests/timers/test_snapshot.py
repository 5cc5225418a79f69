"""Snapshots of known states; the state machine checks one after every random operation."""

from typing import Any

import pytest

from tests.timers.cases import CASES, Case, Pair
from timers import HeapqDelayQueue, HierarchicalWheel
from timers.limits import LIMIT
from timers.snapshot import Queued


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_snapshot_does_not_change_with_the_timer(case: Case) -> None:
    pair = Pair(case)
    timer: Any = pair.timer
    handle = pair.schedule(50)
    before = timer.snapshot()
    shown = repr(before)
    pair.schedule(60)
    pair.reschedule(handle, 70)
    pair.advance(10)
    assert repr(before) == shown
    assert before != timer.snapshot()


def test_the_walk_through_is_filed_level_by_level() -> None:
    timer = HierarchicalWheel(tick=1, wheel_size=10)
    timer.cancel(timer.schedule(42))  # its bucket stays in the queue
    timer.schedule_many([9, 88, 222, 520, 521, 522])
    snapshot = timer.snapshot()
    deadlines = [
        {slot: [timer.deadline for timer in timers] for slot, timers in ring.slots.items()}
        for ring in snapshot.rings
    ]
    assert deadlines == [{9: [9]}, {8: [88]}, {2: [222], 5: [520, 521, 522]}]
    assert [ring.tick for ring in snapshot.rings] == [1, 10, 100]
    assert snapshot.queue is not None
    assert sorted(snapshot.queue) == [
        Queued(*entry) for entry in ((9, 1, 9), (40, 2, 4), (80, 2, 8), (200, 3, 2), (500, 3, 5))
    ]


def test_a_cancelled_or_moved_entry_that_is_still_in_the_heap_is_not_pending() -> None:
    timer = HeapqDelayQueue()
    timer.reschedule(timer.schedule(7), LIMIT)
    timer.cancel(timer.schedule(5))
    heap = timer.snapshot().heap
    assert heap is not None
    entries = [(entry.deadline, entry.pending) for entry in heap]
    assert entries == [(5, False), (LIMIT, True), (7, False)]
