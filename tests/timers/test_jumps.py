"""How the clock is moved does not change what fires when."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model import Row
from tests.timers.cases import CASES, Case, rows_of
from tests.timers.machine import STARTS, deltas
from timers.limits import LIMIT
from timers.protocol import Timer

WALK = 700  # units walked one by one

every_timer = pytest.mark.parametrize("case", CASES, ids=str)
starts = st.sampled_from(STARTS)


def filled(case: Case, start: int, delays: list[int]) -> Timer:
    timer = case(start=start, capacity=2)
    for delay in delays:
        timer.schedule_after(delay)
    return timer


def in_order(case: Case, rows: list[Row]) -> list[Row]:
    """Rows for comparison: as they came where the order is declared, else with each unit's rows
    sorted.
    """
    moments = [row.fired_at for row in rows]
    assert moments == sorted(moments)
    return (
        rows
        if case.traits.order == "fifo"
        else sorted(rows, key=lambda row: (row.fired_at, row.handle))
    )


def walk(timer: Timer, moments: list[int]) -> list[Row]:
    return [row for now in moments for row in rows_of(timer.advance(now))]


# Half of the examples, and below an eighth, each of which is 700 advances: the state machine
# compares them, too.
@settings(max_examples=settings().max_examples // 2)
@every_timer
@given(start=starts, delays=st.lists(deltas, max_size=25), steps=st.lists(deltas, max_size=12))
def test_one_big_jump_and_many_small_ones_give_the_same_rows(
    case: Case, start: int, delays: list[int], steps: list[int]
) -> None:
    moments = [start]
    for step in steps:
        moments.append(min(moments[-1] + step, LIMIT))
    stepping, jumping = filled(case, start, delays), filled(case, start, delays)
    stepped, jumped = walk(stepping, moments), walk(jumping, moments[-1:])
    assert in_order(case, stepped) == in_order(case, jumped)
    assert (stepping.now, len(stepping), stepping.next_expiry() is None) == (
        jumping.now,
        len(jumping),
        jumping.next_expiry() is None,
    )
    assert in_order(case, walk(stepping, [LIMIT])) == in_order(case, walk(jumping, [LIMIT]))


@settings(max_examples=settings().max_examples // 8)
@every_timer
@given(start=starts, delays=st.lists(st.integers(0, WALK), max_size=25))
def test_event_driven_and_clock_driven_advances_give_the_same_rows(
    case: Case, start: int, delays: list[int]
) -> None:
    end = min(start + WALK, LIMIT)
    by_clock = walk(filled(case, start, delays), list(range(start, end + 1)))
    waking = filled(case, start, delays)
    by_events: list[Row] = []
    while (wakeup := waking.next_wakeup()) is not None and wakeup <= end:
        by_events += rows_of(waking.advance(wakeup))
    assert in_order(case, by_events) == in_order(case, by_clock)
