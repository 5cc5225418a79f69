"""When a timer fires is a closed form, and what the traits declare follows from it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.timers.cases import CASES, Case
from timers.protocol import LIMIT
from timers.traits import DueAt, exact_due_at, round_down_due_at, round_up_due_at

moments = st.one_of(st.integers(0, 10_000), st.integers(0, LIMIT), st.integers(LIMIT - 1000, LIMIT))


@pytest.mark.parametrize(
    ("due_at", "tick", "deadline", "armed_at", "fired_at"),
    [
        (exact_due_at, 1, 10, 3, 10),
        (exact_due_at, 1, 10, 10, 10),
        (exact_due_at, 1, 10, 11, 11),
        (exact_due_at, 1, LIMIT, 0, LIMIT),
        (round_down_due_at, 200, 399, 0, 200),
        (round_down_due_at, 200, 400, 0, 400),
        (round_down_due_at, 200, 1999, 0, 1800),
        (round_down_due_at, 200, 399, 250, 250),
        (round_down_due_at, 1, 399, 0, 399),
        (round_down_due_at, 200, LIMIT, 0, LIMIT // 200 * 200),
        (round_up_due_at, 100, 699, 0, 700),
        (round_up_due_at, 100, 700, 0, 800),
        (round_up_due_at, 100, 701, 0, 800),
        (round_up_due_at, 1, 7, 0, 8),
        (round_up_due_at, 100, 250, 250, 250),
        (round_up_due_at, 100, 249, 250, 250),
        (round_up_due_at, 100, 251, 250, 300),
        (round_up_due_at, 100, LIMIT, 0, LIMIT),
        (round_up_due_at, 1, LIMIT - 1, 0, LIMIT),
    ],
)
def test_closed_form(due_at: DueAt, tick: int, deadline: int, armed_at: int, fired_at: int) -> None:
    assert due_at(deadline, armed_at, {"tick": tick}) == fired_at


@pytest.mark.parametrize("case", CASES, ids=str)
@given(deadline=moments, armed_at=moments)
def test_lateness_lies_within_what_the_traits_declare(
    case: Case, deadline: int, armed_at: int
) -> None:
    fired_at = case.due_at(deadline, armed_at)
    assert armed_at <= fired_at <= LIMIT
    least, greatest = case.traits.lateness(case.parameters)
    assert least <= fired_at - max(deadline, armed_at) <= greatest
    if case.exact:
        assert (least, greatest) == (0, 0)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_declared_lateness_is_reached(case: Case) -> None:
    """The bounds are tight: some deadline is that early, some that late."""
    tick = case.parameters.get("tick", 1)
    lateness = [case.due_at(deadline, 0) - deadline for deadline in range(1, 3 * tick + 1)]
    least, greatest = case.traits.lateness(case.parameters)
    assert (min([0, *lateness]), max([0, *lateness])) == (least, greatest)
