"""Durations as people write them (`5s`, `200ms`), turned into exact integers of a unit.

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
"""Decimal units: how many decimal places of a second each one is."""

TAPE_UNITS = ("us", "ms", "s")
"""The units that a tape made from a log can have."""
_LARGER = dict(pairwise(TAPE_UNITS))

SUFFIXES = {"ns": 9, "us": 6, "µs": 6, "μs": 6, "ms": 3, "s": 0}
"""The decimal units as a duration may end in them, the longer ones first.

Both the micro sign, U+00B5, and the Greek mu, U+03BC, which is the same to a reader.
"""

_SECONDS = {name: Fraction(1, 10**places) for name, places in SUFFIXES.items()}
_SECONDS |= {"m": Fraction(60), "min": Fraction(60), "h": Fraction(3600), "d": Fraction(86400)}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-zµμ]+)")
_LONGEST = 40  # characters: more than a duration in range needs, so a long text costs no work


def duration_text(units: int, unit: str) -> str:
    """A duration as text, in the largest unit of which it is a whole number.

    Where the unit stands for no duration ("unit"), it is the number alone.

    >>> duration_text(100_000, "us"), duration_text(1500, "ms"), duration_text(5, "unit")
    ('100ms', '1500ms', '5')
    """
    if unit not in TAPE_UNITS:
        return str(units)
    number, name = in_largest_unit(units, unit)
    return f"{number}{name}"


def in_largest_unit(number: int, unit: str) -> tuple[int, str]:
    """A number of units in the largest of TAPE_UNITS of which it is a whole number.

    >>> in_largest_unit(100_000, "us"), in_largest_unit(1000, "unit")
    ((100, 'ms'), (1000, 'unit'))
    """
    while unit in _LARGER and number % 1000 == 0:
        number, unit = number // 1000, _LARGER[unit]
    return number, unit


class DurationError(TimerError, ValueError):
    """A text that is not a duration, or one that is not a positive multiple of the unit."""


def parse_duration(text: str, unit: str) -> int:
    """The duration in whole units: a number followed by ns, us, ms, s, m (or min), h or d.

    Raises DurationError for anything else, a bare number included (its unit would be a guess), and
    for what is not a positive multiple of `unit` ("us", "ms" or "s") within [1, 2**63 - 1]. Exact:
    digits never pass through a float.
    """
    if unit not in TAPE_UNITS:
        raise DurationError(f"unit {unit!r} is not one of {', '.join(TAPE_UNITS)}")
    match = _DURATION.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if match is None or match[2] not in _SECONDS:
        raise DurationError(
            f"duration {text[:_LONGEST]!r} is not a number with a unit, such as 5s, 200ms or 1m"
        )
    units = Fraction(match[1].removesuffix(".")) * _SECONDS[match[2]] / _SECONDS[unit]
    if units.denominator != 1 or units < 1:
        raise DurationError(f"duration {text.strip()!r} is not a positive multiple of 1 {unit}")
    if units > LIMIT:
        raise DurationError(f"duration {text.strip()!r} is longer than 2**63 - 1 {unit}")
    return int(units)
