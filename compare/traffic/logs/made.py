"""A pattern for `--pattern` that is made from the lines of a log."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from compare.traffic.logs.columns import NAMES, WORDS
from compare.traffic.logs.known import UNIT_OF, split_unit

LOOKED = 1000
"""Lines that are looked at."""
_QUOTED = 200
"""Characters of a line in which its time begins."""

_CLOCK = "[0-9]{2}:[0-9:]{5}"
_FRACTION = r"(?:[.,][0-9]+)?"
TIMES = (
    rf"[0-9]{{4}}-[0-9-]{{5}}[T ]{_CLOCK}{_FRACTION}(?: ?(?:Z|UTC|GMT|[+-][0-9:]{{4,6}})\b)?",
    rf"[0-9]{{2}}/[A-Z][a-z]{{2}}/[0-9]{{4}}:{_CLOCK}{_FRACTION}(?: [+-][0-9]{{4}})?",
    rf"[0-9]{{4}}/[0-9]{{2}}/[0-9]{{2}} (?:- )?{_CLOCK}{_FRACTION}",
    rf"[0-9]{{2}}\.[0-9]{{2}}\.[0-9]{{4}} {_CLOCK}{_FRACTION}",
    rf"[A-Z][a-z]{{2}} [ 0-9][0-9] {_CLOCK}",
    r"1[0-9]{9}(?:[0-9]{3}|[0-9]{6}|[0-9]{9})?(?:\.[0-9]+)?\b",
)
"""Patterns of times, the strictest first."""
_UNIT = f"(?:{'|'.join(sorted(map(re.escape, UNIT_OF), key=len, reverse=True))})"
_LENGTH = r"(?:[0-9]+[hm])*[0-9]+(?:\.[0-9]+)?"
_WITH_UNIT = rf"{_LENGTH} ?{_UNIT}\b"
_PLAIN = r"[0-9]+(?:\.[0-9]+)?"
_ANY = "[0-9][0-9hm.]*"
_ANY_WITH_UNIT = f"{_ANY} ?[a-zµμ]+"
"""Less strict: a duration in another form is a row that cannot be read, and no other line."""
_NAMED = re.compile(rf"""([A-Za-z][\w.]*)(["']?[=:] ?["']?)({_WITH_UNIT}|{_PLAIN})(?![\w.])""")
_SAID = re.compile(rf"\b(took|elapsed|duration|latency|in|after|within|for)( +)({_WITH_UNIT})")
_ALONE = re.compile(rf"(^|[ |(\[])({_WITH_UNIT})")
_VERBS = ("took", "elapsed", "duration", "latency", "in", "after", "within", "for")
"""Words before a duration, the most certain one first."""


class Made(NamedTuple):
    """A pattern that lines of a log match."""

    pattern: str
    has_duration: bool  # else it has a key


class _Found(NamedTuple):
    rank: float
    before: str  # a pattern of the text before the duration
    group: str
    value: str


def made_pattern(lines: Sequence[str]) -> Made | None:
    """The pattern of the time and the duration of the lines, or None if they have no times.

    Without a duration, the word behind the time is the key.
    """
    lines = [line for line in lines[:LOOKED] if line.strip()]
    time = next(filter(None, (_time(lines, pattern) for pattern in TIMES)), None)
    if time is None:
        return None
    dated = [(line, found.end()) for line in lines if (found := re.match(time, line))]
    counts: dict[_Found, int] = {}
    for line, end in dated:
        for one in dict.fromkeys(_durations(line[end:])):
            counts[one] = counts.get(one, 0) + 1
    if not counts:
        return Made(rf"{time}[\] ]*(?P<key>[^ ]+)", False)
    best = min(counts, key=lambda one: (one.rank, -counts[one]))
    units = {found for found in counts if found.before == best.before}
    value = best.value if len(units) == 1 else f"{_ANY}(?: ?[a-zµμ]+)?"
    return Made(rf"{time}.*?{best.before}(?P<{best.group}>{value})", True)


def _time(lines: Sequence[str], pattern: str) -> str | None:
    """The pattern from the beginning of a line to its time, if most lines have one there."""
    for before in ("^", "^<[0-9]+>[0-9]* ?", "^[^0-9]{1,60}"):
        whole = f"{before}(?P<time>{pattern})"
        if 2 * sum(re.match(whole, line[:_QUOTED]) is not None for line in lines) > len(lines):
            return whole
    return None


def _durations(text: str) -> list[_Found]:
    """What may be durations in the rest of a line."""
    found = []
    for match in _NAMED.finditer(text):
        name, sign, value = match.groups()
        base, unit = split_unit(name)
        has_unit = re.fullmatch(_PLAIN, value) is None
        words = set(re.split("[_.]", base))
        if base and base in NAMES["duration"]:
            rank = NAMES["duration"].index(base) / 100
        elif words & WORDS["duration"] or (words & {"time"} and (unit or has_unit)):
            rank = 2.0
        elif has_unit:
            rank = 4.0
        else:
            continue
        before = rf"\b{re.escape(name)}{_escaped(sign)}"
        group = re.sub(r"\W", "_", name)
        found.append(_Found(rank, before, group, _ANY_WITH_UNIT if has_unit else "[0-9.]+"))
    for match in _SAID.finditer(text):
        rank = 1 + _VERBS.index(match[1]) / 100
        found.append(_Found(rank, rf"\b{match[1]} +", "took", _ANY_WITH_UNIT))
    for match in _ALONE.finditer(text):
        before = _escaped(match[1]) or "^"
        found.append(_Found(5.0, before, "took", _ANY_WITH_UNIT))
    return found


def _escaped(text: str) -> str:
    """A pattern of a text; of a space, of any number of them."""
    return re.sub(r"(?:\\ )+", " *", re.escape(text))
