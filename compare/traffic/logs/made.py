"""A pattern for `--pattern` that is made from the lines of a log."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from compare.traffic.logs.columns import NAMES, VALUE, WORDS
from compare.traffic.logs.formats.patterns import LONGEST
from compare.traffic.logs.known import UNIT_OF, split_unit

LOOKED, _FEW = 1000, 3
"""Lines that are looked at, and fewer than which may have one duration by chance."""
_QUOTED = 200
"""Characters of a line in which its time begins."""

_CLOCK = "[0-9]{2}:[0-9:]{5}"
_FRACTION = r"(?:[.,][0-9]+)?"
TIMES = (
    rf"[0-9]{{4}}-[0-9-]{{5}}[T ]{_CLOCK}{_FRACTION}(?: ?(?:Z|UTC|GMT|[+-][0-9:]{{4,6}})\b)?",
    rf"[0-9]{{2}}/[A-Z][a-z]{{2}}/[0-9]{{4}}:{_CLOCK}{_FRACTION}(?: [+-][0-9]{{4}})?",
    rf"[0-9]{{4}}/[0-9]{{2}}/[0-9]{{2}} (?:- )?{_CLOCK}{_FRACTION}",
    rf"[0-9]{{2}}\.[0-9]{{2}}\.[0-9]{{4}} {_CLOCK}{_FRACTION}",
    rf"[0-9]{{4}}\.[0-9]{{2}}\.[0-9]{{2}} {_CLOCK}{_FRACTION}",
    rf"[0-9]{{2}}[-/][A-Z][a-z]{{2}}[-/][0-9]{{4}} {_CLOCK}{_FRACTION}",
    rf"[A-Z][a-z]{{2}} [ 0-9][0-9] {_CLOCK}",
    rf"[0-9]{{4}} {_CLOCK}\.[0-9]{{6}}\b",
    r"1[0-9]{9}(?:[0-9]{3}|[0-9]{6}|[0-9]{9})?(?:\.[0-9]+)?\b",
)
"""Patterns of times, the strictest first."""
_UNIT = f"(?:{'|'.join(sorted(map(re.escape, UNIT_OF), key=len, reverse=True))})"
_LENGTH = r"(?:[0-9]+[hm])*[0-9][0-9,]*(?:\.[0-9]+)?"
_WITH_UNIT = rf"{_LENGTH} ?{_UNIT}\b"
_PLAIN = r"[0-9]+(?:\.[0-9]+)?"
_ANY = "[0-9][0-9hm.,]*"
_ANY_WITH_UNIT = f"{_ANY} ?[a-zµμ]+"
"""Less strict: a duration in another form is a row that cannot be read, and no other line."""
_NAMED = re.compile(
    rf"""([A-Za-z][\w.]*)(\\?["']?[=:\[] ?\\?["']?)({_WITH_UNIT}|{_PLAIN})(?![\w.])"""
)
_VERBS = ("took", "elapsed", "duration", "latency", "in", "after", "within", "for")
"""Words before a duration, the most certain one first."""
_SAID = re.compile(rf"\b({'|'.join(_VERBS)})( +)({_WITH_UNIT})")
_ALONE = re.compile(rf"(^|[ |(\[])({_WITH_UNIT})")
_PLANNED = re.compile(
    r"\b(?:retry|retries|retrying|timeout|timed|wait|waiting|sleep|sleeping|expires?|expiring|next"
    r"|every|again|interval|backoff|delay|delayed|schedule|scheduled)\b",
    re.IGNORECASE,
)
"""Words for a time that has not passed."""
_KNOWN = {"totalTime": "totalTimeMs", "QTime": "qTimeMs"}
"""Names without their unit -> with it: Kafka's request log and Solr's have milliseconds."""
_CERTAIN = 1.04
"""The first rank that may mean something else than the time that a request took."""
_INSIDE = (r"^[^ ]+ std(?:out|err) F ", r'^\{"log": ?"')
"""Patterns of what CRI and Docker write before a line."""
_DOCKER_TIME = r'"time": ?"(?P<time>[^"]+)"'
_ADDRESS = r"\b(?P<key>(?:[0-9]{1,3}\.){3}[0-9]{1,3})\b"
_MOST = 0.9
"""The share of lines that must have an address for it to be the key."""


class Made(NamedTuple):
    """A pattern that lines of a log match."""

    pattern: str
    has_duration: bool  # else it has a key
    has_address: bool = False  # the first one in a line, as the key
    is_certain: bool = True  # whether the duration can hardly be something else
    said: str = ""  # the text before the first duration
    missed: int = 0  # lines that have that text, and no duration behind it


class _Found(NamedTuple):
    rank: float
    said: str
    before: str  # a pattern of the text before the duration
    group: str
    value: str


def made_pattern(lines: Sequence[str]) -> Made | None:
    """The pattern of the time and the duration of the lines, or None if they have no times.

    Without a duration, the key is the first address behind the time, or else the word there.
    """
    lines = [line[:LONGEST] for line in lines[:LOOKED] if line.strip()]
    time = next(filter(None, (_time(lines, pattern) for pattern in TIMES)), None)
    behind = None  # what follows the duration
    if time is None and sum(re.search(_DOCKER_TIME, line) is not None for line in lines) > 0:
        time, behind = _INSIDE[1], rf".*{_DOCKER_TIME}"
    if time is None:
        return None
    matches = ((line, re.match(time, line)) for line in lines)
    dated = [(line, match.end()) for line, match in matches if match]
    found: dict[_Found, list[str]] = {}  # and the text of each duration
    for line, end in dated:
        for one, text in dict(_durations(line[end:])).items():
            found.setdefault(one, []).append(text)
    # Another number that never changes is a setting.
    likely = {
        one: len(texts)
        for one, texts in found.items()
        if one.rank < _CERTAIN or len(texts) < _FEW or len(set(texts)) > 1
    }
    if not likely and behind:
        return None
    if not likely:
        addresses = [match[1] for line, end in dated if (match := re.search(_ADDRESS, line[end:]))]
        if len(addresses) >= _MOST * len(dated) and len(set(addresses)) > 1:
            return Made(rf"{time}.*?{_ADDRESS}", False, has_address=True)
        return Made(rf"{time}[\] ]*(?P<key>[^ ]+)", False)
    best = min(likely, key=lambda one: (one.rank, -likely[one]))
    values = {one.value for one in likely if one.before == best.before}
    value = best.value if len(values) == 1 else f"{_ANY}(?: ?[a-zµμ]+)?"
    pattern = rf"{time}.*?{best.before}(?P<{best.group}>{value}){behind or ''}"
    is_certain = best.rank < _CERTAIN
    missed = (
        re.search(best.before, line[end:]) is not None and re.match(pattern, line) is None
        for line, end in dated
    )
    said, gaps = best.said, sum(missed) if best.said else 0
    return Made(pattern, True, is_certain=is_certain, said=said, missed=gaps)


def _time(lines: Sequence[str], pattern: str) -> str | None:
    """The pattern from the beginning of a line to its time, if most lines have one there."""
    inside = [part + before for part in _INSIDE for before in ("", "[^0-9]{1,60}")]
    for before in (*inside, "^", "^<[0-9]+>[0-9]* ?", "^[^0-9]{1,60}"):
        whole = f"{before}(?P<time>{pattern})"
        if 2 * sum(re.match(whole, line[:_QUOTED]) is not None for line in lines) > len(lines):
            return whole
    return None


def _durations(text: str) -> Iterator[tuple[_Found, str]]:
    """What may be durations in the rest of a line, and their texts."""
    for match in _NAMED.finditer(text):
        name, sign, value = match.groups()
        base, unit = split_unit(_KNOWN.get(name, name))
        has_unit = re.fullmatch(_PLAIN, value) is None
        words = set(re.split("[_.]", base))
        group = _KNOWN.get(name) or re.sub(r"\W", "_", name)
        if base and base != VALUE and base in NAMES["duration"]:
            rank = NAMES["duration"].index(base) / 100
        elif words & WORDS["duration"] or (words & {"time"} and (unit or has_unit)):
            rank = 2.0
        elif has_unit:
            rank = 4.0
        else:
            continue
        if not (base in NAMES["duration"] or words & WORDS["duration"]) or not group.isascii():
            # A name that tells it is a duration, with its unit.
            group = f"took_{unit}" if unit and not has_unit else "took"
        before = rf"\b{re.escape(name)}{_escaped(sign)}"
        yield _Found(rank, name, before, group, _ANY_WITH_UNIT if has_unit else "[0-9.]+"), value
    for match in _SAID.finditer(text):
        rank = 1 + _VERBS.index(match[1]) / 100
        if rank < _CERTAIN or not _PLANNED.search(text):
            before = rf"\b{match[1]} +"
            yield _Found(rank, match[1], before, "took", _ANY_WITH_UNIT), match[3]
    for match in _ALONE.finditer(text) if not _PLANNED.search(text) else ():
        before = _escaped(match[1]) or "^"
        yield _Found(5.0, "", before, "took", _ANY_WITH_UNIT), match[2]


def _escaped(text: str) -> str:
    """A pattern of a text; of a space, of any number of them."""
    return re.sub(r"(?:\\ )+", " *", re.escape(text))
