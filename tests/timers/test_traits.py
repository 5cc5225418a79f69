"""When a timer fires is a closed form, and what the traits declare follows from it."""

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.timers.cases import CASES, Case
from timers import DenseWheel
from timers.errors import ParameterError, RoundingError
from timers.limits import LIMIT
from timers.rounding import OwnRounding, Rounding

moments = st.one_of(st.integers(0, 10_000), st.integers(0, LIMIT), st.integers(LIMIT - 1000, LIMIT))


@pytest.mark.parametrize(
    ("direction", "tick", "deadline", "armed_at", "fired_at"),
    [
        ("exact", 1, 10, 3, 10),
        ("exact", 1, 10, 10, 10),
        ("exact", 1, 10, 11, 11),
        ("exact", 1, LIMIT, 0, LIMIT),
        ("down", 200, 399, 0, 200),
        ("down", 200, 400, 0, 400),
        ("down", 200, 1999, 0, 1800),
        ("down", 200, 399, 250, 250),
        ("down", 1, 399, 0, 399),
        ("down", 200, LIMIT, 0, LIMIT // 200 * 200),
        ("up", 100, 699, 0, 700),
        ("up", 100, 700, 0, 800),
        ("up", 100, 701, 0, 800),
        ("up", 1, 7, 0, 8),
        ("up", 100, 250, 250, 250),
        ("up", 100, 249, 250, 250),
        ("up", 100, 251, 250, 300),
        ("up", 100, LIMIT, 0, LIMIT),
        ("up", 1, LIMIT - 1, 0, LIMIT),
        ("levels", 1, 62, 0, 63),
        ("levels", 1, 63, 0, 64),
        ("levels", 1, 64, 0, 72),
        ("levels", 1, 64, 2, 65),
        ("levels", 1, 503, 0, 504),
        ("levels", 1, 504, 0, 512),
        ("levels", 1, 512, 0, 576),
        ("levels", 1, 63 * 8**8 - 1, 0, 63 * 8**8),
        ("levels", 1, 63 * 8**8, 0, 63 * 8**8),
        ("levels", 1, 63 * 8**8, 1, 64 * 8**8),
        ("levels", 1, LIMIT, 5, 63 * 8**8),
        ("levels", 1, 250, 250, 250),
        ("levels", 1, 249, 250, 250),
        ("levels", 1, LIMIT, LIMIT - 1, LIMIT),
        ("levels", 1, LIMIT - 1, LIMIT - 9, LIMIT),
        ("levels", 1, LIMIT - 1, LIMIT - 99, LIMIT),
    ],
)
def test_closed_form(
    direction: Literal["exact", "down", "up", "levels"],
    tick: int,
    deadline: int,
    armed_at: int,
    fired_at: int,
) -> None:
    assert Rounding(direction, tick).due_at(deadline, armed_at) == fired_at


@pytest.mark.parametrize("case", CASES, ids=str)
@given(deadline=moments, armed_at=moments)
def test_lateness_lies_within_what_the_traits_declare(
    case: Case, deadline: int, armed_at: int
) -> None:
    fired_at = case.due_at(deadline, armed_at)
    assert armed_at <= fired_at <= LIMIT
    lowest, greatest = case.rounding.bounds(max(deadline - armed_at, 1))
    assert lowest <= fired_at - max(deadline, armed_at) <= greatest
    if case.rounding.exact:
        assert (lowest, greatest) == (0, 0)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_next_expiry_of_one_timer_is_exact_if_and_only_if_the_traits_say_so(case: Case) -> None:
    exact = []
    for deadline in (8, 262, 457, 5007, 70_007, 10**7):
        timer = case(start=7)
        timer.schedule(deadline)
        exact.append(timer.next_expiry() == case.due_at(deadline, 7))
    assert all(exact) is case.traits.exact_next_expiry


@pytest.mark.parametrize("case", CASES, ids=str)
def test_declared_lateness_is_reached(case: Case) -> None:
    """The bounds are tight: some deadline is that early, some that late."""
    longest = 3 * case.parameters.get("tick", 200)
    lateness = [case.due_at(deadline, 0) - deadline for deadline in range(1, longest + 1)]
    lowest, greatest = case.rounding.bounds(longest)
    assert (min([0, *lateness]), max([0, *lateness])) == (lowest, greatest)


@given(
    rounding=st.builds(
        Rounding,
        st.sampled_from(["exact", "down", "up", "levels"]),
        st.one_of(st.integers(1, 300), st.sampled_from([2**31, LIMIT - 1, LIMIT])),
    ),
    pairs=st.lists(st.tuples(moments, moments)),
)
def test_arrays_give_what_ints_give(rounding: Rounding, pairs: list[tuple[int, int]]) -> None:
    deadlines, armed_at = (np.array([pair[k] for pair in pairs], np.int64) for k in (0, 1))
    actual = rounding.due_at(deadlines, armed_at)
    assert actual.dtype == np.int64
    assert actual.tolist() == [rounding.due_at(*pair) for pair in pairs]


@pytest.mark.parametrize(
    ("longest", "bounds"),
    [
        (1, (0, 1)),
        (62, (0, 1)),
        (63, (0, 8)),
        (503, (0, 8)),
        (504, (0, 64)),
        (63 * 8**8 - 1, (0, 8**8)),
        (63 * 8**8, (1 - 8**8, 8**8)),
        (LIMIT, (62 * 8**8 + 1 - LIMIT, 8**8)),
    ],
)
def test_bounds_of_levels_follow_from_the_longest_delay(
    longest: int, bounds: tuple[int, int]
) -> None:
    levels = Rounding("levels")
    assert levels.bounds(longest) == bounds
    assert levels.bounds() == (0, 8**8)
    moments = [0, *(8**8 - offset for offset in range(3)), 62 * 8**8 - 1, 10**12]
    ends = [levels.due_at(min(armed_at + longest, LIMIT), armed_at) for armed_at in moments]
    late = [end - min(at + longest, LIMIT) for at, end in zip(moments, ends, strict=True)]
    assert all(bounds[0] <= each <= bounds[1] for each in late)
    if longest >= 63 * 8**8 and longest < LIMIT:
        assert min(late) == bounds[0]


@given(deadline=moments, armed_at=moments)
def test_levels_are_late_by_a_unit_or_an_eighth_of_the_delay(deadline: int, armed_at: int) -> None:
    delay = deadline - armed_at
    if 0 < delay < 63 * 8**8:
        late = Rounding("levels").due_at(deadline, armed_at) - deadline
        assert (deadline < LIMIT) <= late <= max(1, delay * 8 // 63)


def test_values_that_fire_alike_are_equal() -> None:
    assert Rounding("down", 1) == Rounding("exact") == Rounding("exact", 7)
    assert Rounding("up", 1) != Rounding("exact")
    assert Rounding("down", 5) == Rounding("down", 5) != Rounding("down", 6)


@pytest.mark.parametrize(
    ("direction", "tick", "says"),
    [("sideways", 1, "direction 'sideways'"), ("up", 0, "tick 0"), ("down", 2**63, "tick 9223372")],
)
def test_a_rounding_that_makes_no_sense_is_refused(direction: Any, tick: int, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        Rounding(direction, tick)


def test_an_own_closed_form_without_bounds_counts_as_possibly_early() -> None:
    own = OwnRounding(max)
    assert own.due_at(LIMIT, 0) == LIMIT  # it may fire at the last moment
    assert own.bounds()[0] == -LIMIT
    assert not own.exact
    assert OwnRounding(max, 0, 0).exact
    assert not OwnRounding(max, -1, 0).exact
    assert not OwnRounding(max, 0, 1).exact


@pytest.mark.parametrize("moment", [2, -1, 2**63, 3.5, None, True])
def test_an_own_closed_form_that_gives_no_moment_is_one_line(moment: Any) -> None:
    own = OwnRounding(lambda deadline, armed_at: moment)
    with pytest.raises(RoundingError, match=r"due_at\(9, 3\) is .*integer in \[3, 2\*\*63 - 1\]"):
        own.due_at(np.array([9]), np.array([3]))


def test_dense_wheel_runs_equal_deadlines_newest_first_and_moved_ones_in_groups():
    """As its traits say: a slot is a stack, and a slot of an upper level moves array by array."""
    timer = DenseWheel()
    handles = [timer.schedule(5) for _ in range(40)]
    timer.advance(2)
    handles += [timer.schedule(5) for _ in range(40)]
    assert timer.advance(5).handles.tolist() == handles[::-1]
    handles = [timer.schedule(300) for _ in range(20)]
    order = [handles.index(handle) for handle in timer.advance(300).handles.tolist()]
    assert sorted(order) == [*range(20)]
    assert sum(np.diff(order) != -1) == 1  # two groups
