"""The order in which timers of one bucket fire: that of linking, which no scheme but the FIFO ones
promises, and which every replay of a trace repeats.
"""

from typing import Any

import pytest

from tests.timers.cases import DEFAULTS, Case, advance_into
from timers import CascadingWheel, HashedWheel, HierarchicalWheel, SimpleWheel

ROWS = [1, 2, 100]  # of the buffers that advance fills: the order does not depend on them


def order_of(timer: Any, now: int, rows: int) -> list[int]:
    """The handles that fire up to `now`, fetched with buffers of so many rows."""
    fired: list[int] = []
    arrived = False
    while not arrived:
        part, arrived = advance_into(timer, now, rows)
        fired += part["handle"].tolist()
    timer.check()
    return fired


@pytest.mark.parametrize("case", DEFAULTS, ids=str)
def test_timers_of_one_slot_fire_in_the_order_of_linking(case: Case) -> None:
    timer = case()
    a, b, c, d, e = timer.schedule_many([7] * 5).tolist()
    assert timer.cancel(c)
    assert timer.reschedule(a, 7)
    f = timer.schedule(7)  # at the place of c
    assert timer.reschedule(d, 5000) and timer.reschedule(d, 7)
    assert timer.cancel_many([e]).all()
    g = timer.schedule(7)
    assert timer.advance(1000).handles.tolist() == [b, a, f, d, g]


@pytest.mark.parametrize(
    ("timer_class", "tick", "deadlines", "fired_at"),
    [
        (HashedWheel, 10, [18, 12, 15, 19, 10], 20),
        (HierarchicalWheel, 200, [399, 201, 300, 398, 200], 200),
    ],
)
@pytest.mark.parametrize("armed_at", [0, 5])
def test_deadlines_within_a_tick_are_not_sorted(
    timer_class: Any, tick: int, deadlines: list[int], fired_at: int, armed_at: int
) -> None:
    timer = timer_class(tick=tick)
    handles = timer.schedule_many(deadlines[:2]).tolist()
    timer.advance(armed_at)
    handles += timer.schedule_many(deadlines[2:]).tolist()
    expired = timer.advance(fired_at)
    assert expired.handles.tolist() == handles
    assert expired.fired_at.tolist() == [fired_at] * 5


@pytest.mark.parametrize("rows", ROWS)
def test_rounds_leave_the_order_within_a_slot(rows: int) -> None:
    timer = HashedWheel(tick=1, wheel_size=8)
    handles = timer.schedule_many([11, 3, 11, 3, 19, 3, 11]).tolist()
    assert order_of(timer, 4, rows) == [handles[k] for k in (1, 3, 5)]
    handles.append(timer.schedule(11))
    assert timer.reschedule(handles[0], 11)
    assert order_of(timer, 12, rows) == [handles[k] for k in (2, 6, 7, 0)]
    assert order_of(timer, 20, rows) == [handles[4]]


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(
    ("timer_class", "parameters", "deadline", "later"),
    [
        (SimpleWheel, {"wheel_size": 8}, 13, 6),  # beside the overflow list
        (CascadingWheel, {}, 300, 50),
        (HierarchicalWheel, {"wheel_size": 20}, 410, 395),
    ],
)
def test_a_slots_own_timers_precede_what_moves_in(
    timer_class: Any, parameters: dict[str, int], deadline: int, later: int, rows: int
) -> None:
    """Timers that were armed early wait further up, keep their order there, and move behind."""
    timer = timer_class(**parameters)
    a, b, c, d = timer.schedule_many([deadline] * 4).tolist()
    assert timer.cancel(b)
    assert timer.reschedule(a, deadline)
    above = timer.locate(a)
    timer.advance(later)
    e, f, g = timer.schedule_many([deadline] * 3).tolist()
    assert timer.reschedule(e, deadline)
    assert timer.locate(c) == above != timer.locate(e)
    assert order_of(timer, deadline, rows) == [f, g, e, c, d, a]


@pytest.mark.parametrize("rows", ROWS)
def test_cascading_wheel_empties_its_levels_from_the_bottom_up(rows: int) -> None:
    """All levels open a slot at 2**40, when the overflow list is scanned too."""
    timer, deadline = CascadingWheel(), 2**40
    handles: list[list[int]] = []
    found = []
    for delay in (2**40, 2**32, 2**24, 2**16, 2**8, 1):
        timer.advance(deadline - delay)
        handles.append(timer.schedule_many([deadline] * 2).tolist())
        found.append(timer.locate(handles[-1][0]))
    assert found == [{"bucket": "overflow"}, *({"level": k, "slot": 0} for k in (4, 3, 2, 1, 0))]
    expected = [handle for pair in reversed(handles) for handle in pair]
    assert order_of(timer, deadline, rows) == expected
