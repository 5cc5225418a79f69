"""Convert durations as people write them (`5s`, `200ms`) to exact numbers of units.

>>> parse_duration("5s", "ms")
5000
>>> parse_duration("1.5ms", "us")
1500
"""

import re
from fractions import Fraction
from itertools import pairwise

from timers import LIMIT, TimerError

EXPONENTS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""Decimal unit -> decimal places of a second."""

TAPE_UNITS = ("ns", "us", "ms", "s")
"""The units of a tape that are durations."""
_LARGER = dict(pairwise(TAPE_UNITS))

SUFFIXES = {"ns": 9, "us": 6, "µs": 6, "μs": 6, "ms": 3, "s": 0}
"""Suffix of a duration in a decimal unit -> decimal places; longer suffixes come first.

The micro sign, U+00B5, and the Greek mu, U+03BC, look the same; both are accepted.
"""

_SECONDS = {name: Fraction(1, 10**places) for name, places in SUFFIXES.items()}
_SECONDS |= {"m": Fraction(60), "min": Fraction(60), "h": Fraction(3600), "d": Fraction(86400)}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-zµμ]+)")
_MAX_LENGTH = 40  # more characters than a duration in range needs; longer texts are not parsed


def duration_text(units: int, unit: str) -> str:
    """Return a duration as text, in the largest unit that keeps it a whole number.

    If the unit is not a duration ("unit"), only the number is returned.

    >>> duration_text(100_000, "us"), duration_text(1500, "ms"), duration_text(5, "unit")
    ('100ms', '1500ms', '5')
    """
    if unit not in TAPE_UNITS:
        return str(units)
    while unit in _LARGER and units % 1000 == 0:
        units, unit = units // 1000, _LARGER[unit]
    return f"{units}{unit}"


class DurationError(TimerError, ValueError):
    """A text is not a duration, or not a positive multiple of the unit."""


def parse_duration(text: str, unit: str) -> int:
    """Convert a number followed by ns, us, ms, s, m (or min), h or d to whole units.

    Exact: digits never pass through a float. Raises DurationError for any other text, including a
    bare number (its unit would be a guess), and for a duration that is not a multiple of `unit`
    ("ns", "us", "ms" or "s") in [1, 2**63 - 1].
    """
    if unit not in TAPE_UNITS:
        raise DurationError(f"unit {unit!r} is not one of {', '.join(TAPE_UNITS)}")
    match = _DURATION.fullmatch(text.strip()) if len(text) <= _MAX_LENGTH else None
    if match is None or match[2] not in _SECONDS:
        raise DurationError(
            f"duration {text[:_MAX_LENGTH]!r} is not a number with a unit, such as 5s, 200ms or 1m"
        )
    units = Fraction(match[1].removesuffix(".")) * _SECONDS[match[2]] / _SECONDS[unit]
    if units.denominator != 1 or units < 1:
        raise DurationError(f"duration {text.strip()!r} is not a positive multiple of 1 {unit}")
    if units > LIMIT:
        raise DurationError(f"duration {text.strip()!r} is longer than 2**63 - 1 {unit}")
    return int(units)


def rounded_duration(units: int, unit: str) -> str:
    """A duration to three significant digits, in the unit that suits it.

    >>> [rounded_duration(us, "us") for us in (0, 996, 1000, 131_475, 4_041_564, 86_400_000_000)]
    ['0s', '996us', '1ms', '131ms', '4.04s', '86,400s']
    """
    seconds = units / 10 ** EXPONENTS[unit]
    for name in reversed(TAPE_UNITS):
        value = seconds * 10 ** EXPONENTS[name]
        if abs(value) >= 1:
            return f"{digits_text(value, 3)}{name}"
    return "0s"


def digits_text(value: float, digits: int) -> str:
    """A number to some significant digits, or to a whole number if it is large.

    >>> digits_text(0.01234, 2), digits_text(999.7, 3)
    ('0.012', '1,000')
    """
    return f"{value:,.0f}" if abs(value) >= 10**digits - 0.5 else f"{value:.{digits}g}"
