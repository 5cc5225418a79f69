"""Parse the numbers and lists of a command line, and check numbers."""

import re
from fractions import Fraction

from timers.errors import ParameterError
from timers.limits import LIMIT
from timers.validation import shown

_INTEGER = re.compile(r"[+-]?[0-9][0-9_]*")
_COUNT = re.compile(r"\+?[0-9][0-9_]*(\.[0-9]+)?([eE]\+?[0-9]{1,2})?")
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)((?:k|M|G|T|Ki|Mi|Gi|Ti)?B|)")
_BYTES = {"": 1, "B": 1}
_BYTES |= {f"{prefix}B": 1000**power for power, prefix in enumerate("kMGT", 1)}
_BYTES |= {f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGT", 1)}
_LONGEST = 40  # characters of an argument that are parsed, and repeated in an error


def check_integer(
    error: type[Exception], name: str, value: object, lowest: int, highest: int
) -> None:
    """Raise `error` unless a value is an integer in [lowest, highest]."""
    if type(value) is not int:
        raise error(f"{name} must be an integer, not {value!r:.40}")
    if not lowest <= value <= highest:
        raise error(f"{name} must lie in [{lowest}, {highest}], not {shown(value)}")


def integer(text: str) -> int:
    """Parse an integer. Raises ParameterError.

    >>> integer("-20")
    -20
    """
    if not _INTEGER.fullmatch(text) or len(text) > _LONGEST:
        raise ParameterError(f"{text[:_LONGEST]!r} is not an integer")
    return int(text.replace("_", ""))


def count(text: str) -> int:
    """Parse a whole number of at least 1, also in scientific notation. Raises ParameterError.

    >>> count("1e6"), count("2.5e3"), count("20_000")
    (1000000, 2500, 20000)
    """
    if _COUNT.fullmatch(text) and len(text) <= _LONGEST:
        number = Fraction(text.replace("_", ""))
        if number >= 1 and number.denominator == 1:
            return int(number)
    raise ParameterError(f"{text[:_LONGEST]!r} is not a positive whole number, such as 5000 or 1e6")


def counts(text: str) -> tuple[int, ...]:
    """Parse whole numbers separated by commas. Raises ParameterError.

    >>> counts("1e3,1e4")
    (1000, 10000)
    """
    return tuple(count(part.strip()) for part in text.split(","))


def moments(text: str) -> tuple[int, ...]:
    """Parse moments separated by commas. Raises ParameterError for what is not in [0, 2**63 - 1].

    >>> moments("9,88,1_000")
    (9, 88, 1000)
    """
    parsed = tuple(integer(part.strip()) for part in text.split(","))
    for moment in parsed:
        check_integer(ParameterError, "a moment", moment, 0, LIMIT)
    return parsed


def seconds(text: str) -> float:
    """Parse a positive number of seconds. Raises ParameterError."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        raise ParameterError(f"{text[:_LONGEST]!r} is not a positive number of seconds")
    return number


def percent(text: str) -> float:
    """Parse a percentage of at least 0, with or without its sign. Raises ParameterError.

    >>> percent("10"), percent("2.5 %")
    (10.0, 2.5)
    """
    try:
        number = float(text.strip().removesuffix("%"))
    except ValueError:
        number = -1.0
    if not 0.0 <= number < float("inf"):
        raise ParameterError(f"{text[:_LONGEST]!r} is not a percentage, such as 10")
    return number


def size(text: str) -> int:
    """Parse a number of bytes, such as 100MB or 64KiB. Raises ParameterError.

    >>> size("1.5kB"), size("64KiB"), size("200")
    (1500, 65536, 200)
    """
    match = _SIZE.fullmatch(text) if len(text) <= _LONGEST else None
    number = Fraction(match[1]) * _BYTES[match[2]] if match else Fraction()
    if number < 1 or number.denominator != 1:
        raise ParameterError(f"{text[:_LONGEST]!r} is not a size, such as 100MB or 64KiB")
    return int(number)


def setting(text: str) -> tuple[str, int]:
    """Parse a parameter with an integer value. Raises ParameterError.

    >>> setting("wheel-size=64")
    ('wheel_size', 64)
    """
    name, equals, value = text.partition("=")
    if not (name.strip() and equals):
        raise ParameterError(
            f"{text[:_LONGEST]!r} is not a parameter and an integer, such as rate=5"
        )
    return name.strip().replace("-", "_"), integer(value)


def names(text: str) -> tuple[str, ...]:
    """Parse names separated by commas. Raises ParameterError for an empty name.

    >>> names("delay-queue,hashed-wheel/tick=5")
    ('delay-queue', 'hashed-wheel/tick=5')
    """
    parts = tuple(part.strip() for part in text.split(","))
    if not all(parts):
        raise ParameterError(f"{text[:_LONGEST]!r} has an empty name")
    return parts
