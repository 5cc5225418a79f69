"""How a timer looks, wherever it appears: one colour, one marker, one way of writing its name and
figures.

>>> look_of("delay-queue").colour
'#D55E00'
>>> nanoseconds(12_345)
'12.3 µs'
"""

from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

INK = "#1f2328"
"""Text and axes. The page turns it into the colour of its own text, for dark mode."""
FAINT = "#d5d9de"
"""Grid lines. The page turns it into its own grid colour."""
PAPER = "#ffffff"
"""Background, and the inside of hollow markers. The page turns it into its own background."""

NO_BREAK = "\u202f"  # a narrow space that keeps a number and its unit on one line


@dataclass(frozen=True)
class Look:
    """Colour and marker (a Matplotlib marker code) of a timer."""

    colour: str
    marker: str


# Okabe & Ito's palette, made for colour-blind readers, without its yellow, which vanishes on white.
# Its black is the ink, so that the baseline in plain Python stays legible on a dark page too.
_LOOKS = {
    "unordered-list": Look("#CC79A7", "X"),
    "heapq-delay-queue": Look(INK, "P"),
    "delay-queue": Look("#D55E00", "o"),
    "simple-wheel": Look("#E69F00", "s"),
    "hashed-wheel": Look("#56B4E9", "D"),
    "hierarchical-wheel": Look("#0072B2", "^"),
    "cascading-wheel": Look("#009E73", "v"),
}
_OTHERS = (Look("#7A7F87", "<"), Look("#8C6D46", ">"), Look("#6C5BA7", "p"), Look("#5F7F2E", "h"))


def look_of(timer: str) -> Look:
    """The look of a timer by its name; a timer that is not in the registry gets one of a few
    others, always the same.

    >>> look_of("somebody.else:Wheel") == look_of("somebody.else:Wheel")
    True
    """
    return _LOOKS.get(timer) or _OTHERS[crc32(timer.encode()) % len(_OTHERS)]


SMALL_AMOUNT = 0.1  # below it, counts per operation are told with two digits
_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_BYTES = ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"))
_SPANS = ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))


def significant(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, in groups of three, without an exponent.

    >>> significant(0.012345), significant(12.3), significant(1_234_567)
    ('0.0123', '12.3', '1\\u202f230\\u202f000')
    """
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    exponent = int(f"{rounded:e}".rpartition("e")[2])
    return f"{rounded:,.{max(digits - 1 - exponent, 0)}f}".replace(",", NO_BREAK)


def nanoseconds(value: float) -> str:
    """A time given in nanoseconds, in the unit that suits it.

    >>> [nanoseconds(ns) for ns in (0.5, 999.9, 2_000_000, 61e9)]
    ['0.500 ns', '1.00 µs', '2.00 ms', '61.0 s']
    """
    rounded = float(f"{value:.2e}")
    for factor, unit in _TIMES:
        if rounded >= factor:
            return f"{significant(rounded / factor)} {unit}"
    return f"{significant(rounded)} ns"


def short_range(low: float, high: float) -> str:
    """From one time to another, both given in nanoseconds, naming the unit once.

    >>> short_range(9.81, 11.2), short_range(950.0, 1100.0)
    ('9.81–11.2', '950 ns–1.10 µs')
    """
    (first, unit), (last, other) = (nanoseconds(value).rsplit(" ", 1) for value in (low, high))
    return f"{first}–{last}" if unit == other else f"{first} {unit}–{last} {other}"


def span(seconds: float) -> str:
    """A duration as people say it.

    >>> [span(s) for s in (0.04, 75, 7200, 1e6)]
    ['0.04 s', '1.2 min', '2 h', '12 days']
    """
    for factor, unit in _SPANS:
        if seconds >= factor:
            return f"{significant(seconds / factor, 2).removesuffix('.0')} {unit}"
    return f"{float(f'{seconds:.1g}'):g} s"


def data_size(count: float) -> str:
    """Bytes in the unit that suits them.

    >>> data_size(32), data_size(3 * 2**20)
    ('32.0 B', '3.00 MiB')
    """
    for factor, unit in _BYTES:
        if count >= factor:
            return f"{significant(count / factor)} {unit}"
    return f"{significant(count)} B"


def count(value: int) -> str:
    """A whole number in groups of three.

    >>> count(1_000_000)
    '1\\u202f000\\u202f000'
    """
    return f"{value:,}".replace(",", NO_BREAK)


def size(value: int) -> str:
    """A number of pending timers, on one line.

    >>> size(1000)
    'N\xa0=\xa01\u202f000'
    """
    return f"N\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{count(value)}"


def ratio(value: float) -> str:
    """How many times as much.

    >>> ratio(1.0), ratio(0.123), ratio(1234.5)
    ('1.00×', '0.12×', '1\\u202f230×')
    """
    return f"{value:.2f}×" if value < 10 else f"{significant(value)}×"


def amount(value: float) -> str:
    """A count per operation, which may be a small fraction.

    >>> amount(2.5), amount(60.0), amount(0.000123), amount(0)
    ('2.5', '60', '0.00012', '0')
    """
    if value == 0:
        return "0"
    digits = 3 if value >= SMALL_AMOUNT else 2
    text = significant(value, digits)
    return text.rstrip("0").rstrip(".") if "." in text else text


def short_count(value: int) -> str:
    """A whole number for a tick: thousands as k, millions as M.

    >>> short_count(256), short_count(1_000), short_count(2_500_000)
    ('256', '1k', '2.5M')
    """
    for factor, letter in ((10**6, "M"), (10**3, "k")):
        if value >= factor:
            return f"{float(f'{value / factor:.3g}'):g}{letter}"
    return str(value)


def tick(value: float, words: Callable[[float], str]) -> str:
    """The text of a tick: the words without the zeros that only a measured figure needs.

    >>> tick(1000.0, nanoseconds), tick(0.1, amount)
    ('1 µs', '0.1')
    """
    number, space, unit = words(value).partition(" ")
    return (number.rstrip("0").rstrip(".") if "." in number else number) + space + unit
