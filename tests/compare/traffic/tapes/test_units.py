"""Durations as people write them."""

import pytest

from compare.traffic.tapes.units import DurationError, duration_text, parse_duration
from tests.words import one_line


@pytest.mark.parametrize(
    ("text", "unit", "units"),
    [
        ("5s", "ms", 5000),
        ("200ms", "ms", 200),
        ("200ms", "us", 200_000),
        ("30s", "s", 30),
        ("1.5ms", "us", 1500),
        (" 2 s ", "ms", 2000),
        ("1m", "s", 60),
        ("1min", "s", 60),
        ("2h", "s", 7200),
        ("1d", "s", 86400),
        ("5µs", "us", 5),
        ("5μs", "us", 5),
        ("1000ns", "us", 1),
        ("0.001s", "ms", 1),
        (".5s", "ms", 500),
        ("5.s", "s", 5),
        ("0.1s", "us", 100_000),
        ("9223372036854775807s", "s", 2**63 - 1),
        ("9007199254740993us", "us", 2**53 + 1),
    ],
)
def test_durations_are_exact(text, unit, units):
    assert parse_duration(text, unit) == units


@pytest.mark.parametrize(
    ("units", "unit", "text"),
    [
        (100_000, "us", "100ms"),
        (5_000_000, "us", "5s"),
        (5_000_001, "us", "5000001us"),
        (1500, "ms", "1500ms"),
        (2000, "s", "2000s"),
        (3000, "unit", "3000"),
    ],
)
def test_a_duration_is_written_in_the_largest_unit_that_keeps_it_whole(units, unit, text):
    assert duration_text(units, unit) == text


NO_NUMBER = [
    *("5", "", "s", "-5s", "5 parsecs", "1e3s", "nans", "1_000s", "١s", "5S", "9" * 100 + "s"),
]


@pytest.mark.parametrize(
    ("text", "unit", "why"),
    [
        *((text, "ms", "not a number with a unit") for text in NO_NUMBER),
        ("0s", "ms", "not a positive multiple of 1 ms"),
        ("1.5ms", "ms", "not a positive multiple of 1 ms"),
        ("999us", "ms", "not a positive multiple of 1 ms"),
        ("200ms", "s", "not a positive multiple of 1 s"),
        ("9223372036854775808s", "s", "longer than 2"),
        ("9223372036854776s", "ms", "longer than 2"),
        ("5s", "h", "unit 'h' is not one of ns, us, ms, s"),
    ],
)
def test_what_is_no_duration_is_told_in_a_line(text, unit, why):
    with one_line(DurationError, why) as error:
        parse_duration(text, unit)
    assert len(str(error.value)) < 150
    assert isinstance(error.value, ValueError)
