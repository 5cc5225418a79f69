"""Inspect the beginning of a log: its columns, and guesses of their roles."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import pyarrow as pa

from compare.traffic.logs.blocks import LogError, expand
from compare.traffic.logs.formats.base import Layout, Log
from compare.traffic.logs.numbers import with_value
from compare.traffic.logs.opening import open_log
from compare.traffic.logs.time_formats import EPOCHS, NUMBER, guess_form

SAMPLE = 1000
"""The number of values of a column to look at."""

_NAMES = {
    "time": (
        *("ts", "time", "timestamp", "@timestamp", "datetime", "start", "start_time", "date"),
        "__realtime_timestamp",
    ),
    "duration": (
        *("rtt", "duration", "", "elapsed", "latency", "took", "total_time", "request_time"),
        *("target_processing_time", "time-taken", "response_time"),
    ),
    "end": ("end", "stop", "end_time", "finish"),
    "key": (
        *("client", "id.orig_h", "key", "user", "session", "ip", "client.ip", "c-ip", "host"),
        "_systemd_unit",
    ),
}
"""Names of columns in common logs, without their units, the most likely one first."""

_UNITS = {
    "s": ("s", "sec", "secs", "seconds"),
    "ms": ("ms", "msec", "millis", "milliseconds"),
    "us": ("us", "usec", "micros", "microseconds"),
    "ns": ("ns", "nsec", "nanos", "nanoseconds"),
}
_UNIT_OF = {word: unit for unit, words in _UNITS.items() for word in words}
_SECONDS_OF_TODAY = 10**8
"""A smaller number is unlikely to be a time since 1970."""


_Sample = Mapping[str, Sequence[str]]
"""The first values of each column."""


class Column(NamedTuple):
    """A column, and the first values in it."""

    name: str
    kind: str  # "number", "time", "text" or "empty"
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Inspection:
    """The layout of a log, with guesses."""

    log: Log
    columns: tuple[Column, ...]
    guesses: Mapping[str, str]  # of the options of `ingest`, such as "time" and "duration_unit"
    time_format: str | None  # of the column that is guessed


def values(log: Log, column: str) -> Iterator[str]:
    """The values of a column at the beginning of a file."""
    for block in chain(log.beginning(), () if log.source.stream else log.blocks()):
        yield from _texts(log.read(block, {"time": column}).texts["time"])


def unit_in_name(column: str) -> str | None:
    """The unit of time that the name of a column ends with.

    >>> [unit_in_name(name) for name in ("latency_ms", "tookMillis", "seconds", "status")]
    ['ms', 'ms', 's', None]
    """
    return _split(column)[1]


def _split(column: str) -> tuple[str, str | None]:
    """The name of a column in small letters, without its unit; and the unit."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column).lower()
    base, separator, word = re.fullmatch(r"(?:(.*)([_. -]))?(.*)", name).groups("")  # type: ignore[union-attr]  # any text matches
    unit = _UNIT_OF.get(word) if separator or len(word) > 1 else None
    return (base, unit) if unit else (name, None)


def inspect(name: str, layout: Layout) -> Inspection:
    """Look at the beginning of the first file of a log. Raises LogError."""
    log = open_log(expand([name])[0], layout)
    sample = _sample(log)
    guesses = _guesses(log, sample)
    columns = (_column(name, sample.get(name, ()), log.point) for name in log.columns)
    time = guesses.get("time")
    return Inspection(log, tuple(columns), guesses, time and _form(log, sample, time))


def _sample(log: Log) -> dict[str, list[str]]:
    """The first values of each column."""
    names = [name for name in log.columns if log.columns.count(name) == 1]
    sample: dict[str, list[str]] = {}
    for block in log.beginning()[:1]:
        # A column of lists cannot be read. Those of other formats are read together.
        for group in [[name] for name in names] if log.record == "row" else [names]:
            with suppress(LogError):
                texts = log.read(block, {f"column {name}": name for name in group}).texts
                sample |= {name: _texts(texts[f"column {name}"][:SAMPLE]) for name in group}
    if {"date", "time"} <= sample.keys():
        both = zip(sample["date"], sample["time"], strict=False)
        sample["date,time"] = [" ".join(pair) for pair in both]
    return sample


def _texts(column: pa.Array) -> list[str]:
    return [text.decode(errors="replace") for text in with_value(column).drop_null().to_pylist()]


def _column(name: str, sample: Sequence[str], point: str) -> Column:
    kinds = {_kind(text.replace(point, ".")) for text in sample}
    kind = kinds.pop() if len(kinds) == 1 else "text" if kinds else "empty"
    return Column(name, kind, tuple(dict.fromkeys(sample))[:3])


def _kind(text: str) -> str:
    if re.fullmatch(NUMBER, text):
        return "number"
    return "time" if guess_form(text) else "text"


def _form(log: Log, sample: _Sample, column: str) -> str | None:
    """The format of the first value of a column that is a time in a known format."""
    texts = (text.replace(log.point, ".") for text in sample.get(column, ()))
    implied = log.implied_form(column) if column in log.columns else None
    return implied or next(filter(None, map(guess_form, texts)), None)


def _guesses(log: Log, sample: _Sample) -> dict[str, str]:
    """Guess the roles of the columns from their names and values."""
    likely = {role: _by_name(log.columns, names) for role, names in _NAMES.items()}
    times = [name for name in likely["time"] if not sample.get(name) or _form(log, sample, name)]
    times += [name for name, texts in sample.items() if texts and _is_time(texts[0])]
    guesses = {"time": times[0]} if times else {}
    for role in ("duration", "end", "key"):
        rest = (name for name in likely[role] if name not in guesses.values())
        if name := next(rest, None):
            guesses[role] = name
    if "duration" in guesses:
        guesses.pop("end", None)
        unit = unit_in_name(guesses["duration"]) or log.duration_unit
        guesses |= {"duration_unit": unit} if unit != "s" else {}
        guesses |= {"time_is": log.time_is} if log.time_is != "start" else {}
    return guesses


def _by_name(columns: Sequence[str], names: Sequence[str]) -> list[str]:
    bases = {column: _split(column)[0] for column in columns}
    return [column for name in names for column, base in bases.items() if base == name]


def _is_time(text: str) -> bool:
    form = guess_form(text)
    return form is not None and (form not in EPOCHS or float(text) > _SECONDS_OF_TODAY)
