"""Format numbers, units, names and lists for tables, charts and sentences."""

from collections.abc import Callable, Sequence

NO_BREAK = "\u202f"  # a narrow space, between groups of digits
SPACE = "\xa0"  # keeps a number and its unit on one line

_TIMES = (
    *((86_400e9, "d"), (3_600e9, "h"), (1e9, "s")),
    *((1e6, "ms"), (1e3, "µs"), (1.0, "ns")),
)
_BYTES = ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))


def significant(value: float, digits: int = 3) -> str:
    """Format a number with `digits` significant digits, in groups of three, without an exponent.

    >>> significant(0.012345), significant(12.3), significant(1_234_567)
    ('0.0123', '12.3', '1\\u202f230\\u202f000')
    """
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    exponent = int(f"{rounded:e}".rpartition("e")[2])
    return f"{rounded:,.{max(digits - 1 - exponent, 0)}f}".replace(",", NO_BREAK)


def nanoseconds(value: float) -> str:
    """Format a time in nanoseconds with a suitable unit.

    >>> [nanoseconds(ns) for ns in (0.5, 999.9, 2_000_000, 75e9)]
    ['0.500\\xa0ns', '1.00\\xa0µs', '2.00\\xa0ms', '75.0\\xa0s']
    """
    return _scaled(value, _TIMES)


def microseconds(value: float) -> str:
    """Format a time in microseconds with a suitable unit.

    >>> microseconds(1.5)
    '1.50\\xa0µs'
    """
    return nanoseconds(1e3 * value)


def span(low: float, high: float, form: Callable[[float], str] = nanoseconds) -> str:
    """Format a range of values; a unit that both ends share is left out.

    >>> span(9.81, 11.2), span(950.0, 1100.0)
    ('9.81–11.2', '950\\xa0ns–1.10\\xa0µs')
    """
    first, last = form(low), form(high)
    (start, _, unit), (end, _, other) = first.partition(SPACE), last.partition(SPACE)
    return f"{start}–{end}" if unit == other else f"{first}–{last}"


def data_size(count: float) -> str:
    """Format a number of bytes with a suitable unit.

    >>> data_size(32), data_size(3 * 2**20)
    ('32.0\\xa0B', '3.00\\xa0MiB')
    """
    return _scaled(count, _BYTES)


def count(value: float) -> str:
    """Format a number with all its digits, in groups of three.

    >>> count(1_000_000), count(1234.5)
    ('1\\u202f000\\u202f000', '1\\u202f234.5')
    """
    return f"{value:,}".removesuffix(".0").replace(",", NO_BREAK)


def whole(value: float) -> str:
    """Format a number rounded to a whole one.

    >>> whole(1234.5)
    '1\\u202f234'
    """
    return count(round(value))


def size(value: int) -> str:
    """Format a number of pending timers, without a line break.

    >>> size(1000)
    'N\\xa0=\\xa01\\u202f000'
    """
    return f"N{SPACE}={SPACE}{count(value)}"


def ratio(value: float) -> str:
    """Format a ratio.

    >>> ratio(1.0), ratio(0.123), ratio(1234.5)
    ('1.00×', '0.12×', '1\\u202f230×')
    """
    return f"{value:.2f}×" if value < 10 else f"{significant(value)}×"


def amount(value: float) -> str:
    """Format a count per operation, which may be a small fraction.

    >>> amount(2.5), amount(60.0), amount(0.000123), amount(0)
    ('2.5', '60', '0.00012', '0')
    """
    return _trimmed(significant(value, 3 if value >= 0.1 else 2))


def share(value: float) -> str:
    """Format a share as a percentage.

    >>> share(0.9871), share(0.0004), share(1.0)
    ('98.7%', '0.04%', '100%')
    """
    return f"{_trimmed(significant(100 * value, 3 if value >= 0.01 else 1))}%"


def short_count(value: float) -> str:
    """Format a round number for a tick label: thousands as k, millions as M.

    >>> short_count(256), short_count(1_000), short_count(2_500_000)
    ('256', '1k', '2.5M')
    """
    for factor, letter in ((10**6, "M"), (10**3, "k")):
        if abs(scaled := float(f"{value / factor:.3g}")) >= 1:
            return f"{scaled:g}{letter}"
    return str(round(value))


def tick(value: float, form: Callable[[float], str]) -> str:
    """Format a tick label: like a figure, but without trailing zeros.

    >>> tick(1000.0, nanoseconds), tick(0.1, amount)
    ('1\\xa0µs', '0.1')
    """
    number, space, unit = form(value).partition(SPACE)
    return _trimmed(number) + space + unit


def counted(number: int, noun: str) -> str:
    """Format a count with its noun, in the singular or plural.

    >>> counted(0, "id"), counted(1, "id"), counted(1200, "id")
    ('0\\xa0ids', '1\\xa0id', '1\\u202f200\\xa0ids')
    """
    return f"{count(number)}{SPACE}{noun}{'' if number == 1 else 's'}"


def cut(text: str, characters: int) -> str:
    """Truncate a text to at most `characters` characters.

    >>> cut("hashed-wheel", 12), cut("hashed-wheel", 7)
    ('hashed-wheel', 'hashed…')
    """
    return text if len(text) <= characters else text[: characters - 1] + "…"


def _scaled(value: float, units: Sequence[tuple[float, str]]) -> str:
    """Format a value in the largest of `units`, sorted downwards, in which it is at least 1."""
    fitting = (pair for pair in units if float(f"{value / pair[0]:.2e}") >= 1)
    factor, unit = next(fitting, units[-1])
    return f"{significant(value / factor)}{SPACE}{unit}"


def _trimmed(number: str) -> str:
    """Remove the trailing zeros of a fraction."""
    return number.rstrip("0").rstrip(".") if "." in number else number
