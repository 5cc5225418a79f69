"""What several commands' options have in common: numbers as people write them. Cheap to import."""

import argparse
import re

_INTEGER = re.compile(r"[+-]?[0-9][0-9_]*")
_COUNT = re.compile(r"([0-9][0-9_]*)(?:\.([0-9]+))?[eE]\+?([0-9]{1,2})")


def integer(text: str) -> int:
    """An integer.

    >>> integer("20")
    20
    """
    if not _INTEGER.fullmatch(text) or len(text) > _LONGEST:
        raise argparse.ArgumentTypeError(f"{text[:_LONGEST]!r} is no integer")
    return int(text)


def count(text: str) -> int:
    """A number of things, from 1; also written as 1e6 or 2.5e3.

    >>> count("1e6"), count("2.5e3"), count("20_000")
    (1000000, 2500, 20000)
    """
    match = _COUNT.fullmatch(text)
    if match and len(text) <= _LONGEST:
        whole, fraction, exponent = match[1], match[2] or "", int(match[3])
        if len(fraction.rstrip("0")) <= exponent:
            text = str(
                int((whole + fraction).replace("_", "")) * 10**exponent // 10 ** len(fraction)
            )
    try:
        number = integer(text)
    except argparse.ArgumentTypeError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(
            f"{text[:_LONGEST]!r} is no whole number from 1, such as 5000 or 1e6"
        )
    return number


def counts(text: str) -> tuple[int, ...]:
    """Several numbers, separated by commas."""
    return tuple(count(part.strip()) for part in text.split(","))


def seconds(text: str) -> float:
    """A positive number of seconds."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text[:_LONGEST]!r} is no positive number of seconds")
    return number


def words(text: str) -> tuple[str, ...]:
    """Several names, separated by commas."""
    found = tuple(part.strip() for part in text.split(","))
    if not all(found):
        raise argparse.ArgumentTypeError(f"{text[:_LONGEST]!r} has an empty name")
    return found


_LONGEST = 40  # characters of an argument that are looked at, and shown again
