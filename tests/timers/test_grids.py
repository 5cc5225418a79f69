"""The values of a parameter that are worth trying."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timers.traits import Parameter, Traffic, ticks, wheel_sizes


@pytest.mark.parametrize(
    ("traffic", "expected"),
    [
        (Traffic(1, 1), [1]),
        (Traffic(30, 90), [1, 2, 5, 10, 20]),
        (Traffic(3, 90, max_late=7), [1, 2, 5, 7]),
        (Traffic(3, 90, max_late=7, max_early=8), [1, 2, 5, 7, 9]),
        (Traffic(100, 100, max_early=99), [1, 2, 5, 10, 20, 50, 100]),
    ],
)
def test_ticks_are_a_series_with_the_longest_in_the_bounds(
    traffic: Traffic, expected: list[int]
) -> None:
    assert ticks(traffic, {}) == expected


@given(st.integers(1, 10**6), st.integers(1, 100))
def test_only_the_largest_wheel_covers_the_longest_delay(delay: int, tick: int) -> None:
    sizes = wheel_sizes(Traffic(1, delay), {"tick": tick})
    assert sizes == [1 << bits for bits in range(3, 3 + len(sizes))]
    covering = [size for size in sizes if size * tick > delay]
    assert covering == sizes[-1:] or (not covering and sizes[-1] == 1 << 16)


def test_values_out_of_range_are_left_out_and_without_any_there_is_the_default() -> None:
    traffic = Traffic(10, 10)
    assert Parameter(3).values(traffic, {}) == [3]
    assert Parameter(3, 2, 5, lambda *_: range(9)).values(traffic, {}) == [2, 3, 4, 5]
    assert Parameter(3, 2, 5, lambda *_: [1, 6]).values(traffic, {}) == [3]
    chosen = Parameter(3, grid=lambda traffic, chosen: [traffic.median_delay, chosen["other"]])
    assert chosen.values(traffic, {"other": 7}) == [10, 7]
