"""Words that charts, tables and sentences share."""

from collections.abc import Iterable

from reports.style import count

_COUNTERS = {
    "comparisons": "comparisons of deadlines",
    "timers_touched": "timers looked at",
    "slots_visited": "slots visited",
    "refiled": "timers re-filed",
    "queue_offers": "buckets queued",
    "queue_polls": "buckets polled",
    "empty_polls": "empty buckets polled",
    "clock_visits": "stops of the clock",
    "advances": "calls to advance",
    "idle_advances": "idle calls to advance",
}


def counter_title(name: str) -> str:
    """A counter's name in words.

    >>> counter_title("refiled"), counter_title("a_new_one")
    ('timers re-filed', 'a new one')
    """
    return _COUNTERS.get(name, name.replace("_", " "))


def unit_words(unit: str) -> str:
    """A tape's unit in words.

    >>> unit_words("us"), unit_words("unit")
    ('microseconds', 'units')
    """
    return {"us": "microseconds", "ms": "milliseconds", "s": "seconds"}.get(unit, "units")


def unit_symbol(unit: str) -> str:
    """A tape's unit as it stands behind a number.

    >>> unit_symbol("us"), unit_symbol("unit")
    ('µs', 'units')
    """
    return {"us": "µs", "unit": "units"}.get(unit, unit)


def lateness_words(low: int, high: int, unit: str = "") -> str:
    """A range of lateness in words, negative being early.

    >>> lateness_words(1, 100, "us")
    '1–100 µs late'

    >>> lateness_words(0, 0), lateness_words(1, 100), lateness_words(-9, 0), lateness_words(-3, 3)
    ('exactly at the deadline', '1–100 late', '0–9 early', '3 early to 3 late')
    """
    if low == high == 0:
        return "exactly at the deadline"
    of = f" {unit_symbol(unit)}" if unit else ""
    if low >= 0:
        return f"{count(low)}–{count(high)}{of} late" if low < high else f"{count(low)}{of} late"
    if high <= 0:
        return f"{count(-high)}–{count(-low)}{of} early"
    return f"{count(-low)}{of} early to {count(high)}{of} late"


def list_of(words: Iterable[str]) -> str:
    """Words joined for a sentence.

    >>> list_of([]), list_of(["a"]), list_of(["a", "b", "c"])
    ('', 'a', 'a, b and c')
    """
    *most, last = [*words] or [""]
    return f"{', '.join(most)} and {last}" if most else last
