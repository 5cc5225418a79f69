"""Inspect the beginning of a log: its columns, and guesses of their roles.

A role comes from the table of known formats; else from the names of the columns; else from their
values. So does the unit of the durations.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from compare.traffic.logs.blocks import LogError, expand
from compare.traffic.logs.formats.base import Layout, Log
from compare.traffic.logs.known import Known, known_format, split_unit, unit_in_name
from compare.traffic.logs.numbers import (
    ABSENT,
    ONE,
    VALID,
    first_in_year,
    has_day,
    lacks_year,
    moment_in,
    read_durations,
    read_times,
    with_value,
)
from compare.traffic.logs.opening import open_log
from compare.traffic.logs.time_formats import NUMBER, guess_form, looks_like_time
from compare.traffic.tapes.units import EXPONENTS
from timers.arrays import Bools

SAMPLE = 1000
"""The number of values of a column to look at."""
EXAMPLE_TIMEOUT = 5
"""Seconds; the timeout in the commands."""

_NAMES = {
    "time": (
        *("ts", "time", "timestamp", "@timestamp", "datetime", "start", "start_time", "date"),
        *("time_stamp", "started_at", "begin", "start_time_unix", "time_iso8601", "time_local"),
        *("created_at", "event.start"),
    ),
    "duration": (
        *("rtt", "duration", "", "elapsed", "latency", "took", "total_time", "request_time"),
        *("target_processing_time", "time-taken", "response_time", "grpc.time"),
        *("elapsed_time", "duration_time", "dur"),
    ),
    "end": (
        *("end", "stop", "end_time", "finish", "end_time_unix", "ended_at", "finished_at"),
        *("completed_at", "finish_time", "stop_time", "event.end"),
    ),
    "key": (
        *("client", "id.orig_h", "key", "user", "session", "ip", "client.ip", "c-ip"),
        *("client_ip", "remote_addr", "remote_ip", "client_host", "client_addr"),
        *("request.remote_ip", "peer.address.ip", "peer.address", "source.ip", "user_id"),
        *("session_id", "host", "hostname", "thread", "logger"),
    ),
}
"""Names of columns in common logs, without their units, the most likely one first."""
_PAIRS = (
    *(("start", "end"), ("begin", "end"), ("start", "stop"), ("start", "finish")),
    *(("started", "finished"), ("started", "completed"), ("started", "ended"), ("begin", "finish")),
    *(("request", "response"), ("req", "res"), ("send", "receive"), ("sent", "received")),
    *(("open", "close"), ("opened", "closed"), ("connect", "disconnect"), ("enter", "exit")),
    *(("connected", "disconnected"), ("acquire", "release"), ("call", "return")),
)
"""Values of a column that tells the start of a request from its end, in small letters."""
_LEAST_IN_FLIGHT = 0.01
"""Requests in flight on average, below which a shorter unit of the durations is unlikely."""


_Sample = Mapping[str, Sequence[str | None]]
"""The values of each column in the first rows; None where there is none."""


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
    known: Known | None = None
    units: tuple[
        str, ...
    ] = ()  # of the durations, if the values allow several; the likely one first
    unit: str = ""  # the same in words, for any durations
    assumed: bool = False  # whether nothing says that the times are starts
    slow: float = 0.0  # the share of the first requests that take EXAMPLE_TIMEOUT or have no end

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence for each guess that needs a decision."""
        texts = []
        if self.units:
            texts.append(
                f"The values of {self.guesses['duration']} fit {' and '.join(self.units)}."
                " There is a command for each: which unit is right?"
            )
        if self.slow > 0.5:
            texts.append(
                f"{self.slow:.0%} of the first requests take {EXAMPLE_TIMEOUT}s or longer, or have"
                " no end, and would time out. Are the columns and the unit right?"
            )
        return tuple(texts)


def values(log: Log, column: str) -> Iterator[str]:
    """The values of a column at the beginning of a file."""
    for block in chain(log.beginning(), () if log.source.stream else log.blocks()):
        for records in log.read(block, {"time": column}):
            texts = records.texts["time"]
            for first in range(0, len(texts), SAMPLE):  # most callers take no more
                yield from filter(None, _texts(texts[first : first + SAMPLE]))


def first_second(log: Log, column: str, form: str) -> int:
    """The first time without a year, in seconds since the year began, as if it were 2000; or 0."""
    for text in islice(values(log, column), SAMPLE):
        second = first_in_year(pa.array([text.encode()]), form)
        if second is not None:
            return second
    return 0


def year_of_file(log: Log, second: int) -> int | None:
    """The last year in which a time is before the modification of a file; None without a file."""
    if log.source.stream is not None or not Path(log.name).is_file():
        return None
    # Its clocks may be ahead of UTC.
    end = datetime.fromtimestamp(Path(log.name).stat().st_mtime, UTC) + timedelta(days=1)
    for year in range(end.year, end.year - 9, -1):  # eight may lie between two leap days
        if has_day(year, second) and moment_in(year, second) < end.replace(tzinfo=None):
            return year
    return None


def inspect(name: str, layout: Layout) -> Inspection:
    """Look at the beginning of the first file of a log. Raises LogError."""
    log = open_log(expand([name])[0], layout)
    sample = _sample(log)
    known = known_format(sample.keys() or log.columns)
    guesses = _roles(log, sample, known)
    columns = (_column(name, sample.get(name, ()), log.point) for name in log.columns)
    form = guesses.get("time") and (
        guesses.get("time_format") or _form(log, sample, guesses["time"])
    )
    if form and lacks_year(form):
        year = year_of_file(log, first_second(log, guesses["time"], form))
        guesses["year"] = str(year) if year else "YEAR"
    units: tuple[str, ...] = ()
    unit, assumed = "", False
    if "duration" in guesses:
        units, unit = _units(log, sample, known, guesses, form)
        guesses |= {"duration_unit": units[0]} if units[0] != "s" else {}
    if guesses.keys() & {"duration", "end"}:
        time_is = _start_or_end(log, known, guesses.get("time", ""))
        assumed = not time_is and "end" not in guesses
        guesses |= {"time_is": "end"} if time_is == "end" and "duration" in guesses else {}
    slow = _slow(sample, guesses, form, log.point)
    more = units if len(units) > 1 else ()
    return Inspection(log, tuple(columns), guesses, form, known, more, unit, assumed, slow)


def _sample(log: Log) -> dict[str, list[str | None]]:
    """The values of each column in the first rows."""
    names = [name for name in log.columns if log.columns.count(name) == 1]
    sample: dict[str, list[str | None]] = {}
    for block in log.beginning()[:1]:
        # A column of lists cannot be read. Those of other formats are read together.
        for group in [[name] for name in names] if log.record == "row" else [names]:
            with suppress(LogError):
                texts = next(log.read(block, {f"column {name}": name for name in group})).texts
                sample |= {name: _texts(texts[f"column {name}"][:SAMPLE]) for name in group}
    if {"date", "time"} <= sample.keys():
        both = zip(sample["date"], sample["time"], strict=False)
        sample["date,time"] = [date and time and f"{date} {time}" for date, time in both]
    return sample


def _texts(column: pa.Array) -> list[str | None]:
    return [text and text.decode(errors="replace") for text in with_value(column).to_pylist()]


def _column(name: str, values: Sequence[str | None], point: str) -> Column:
    sample = [text for text in values if text is not None]
    kinds = {_kind(text.replace(point, ".")) for text in sample}
    kind = kinds.pop() if len(kinds) == 1 else "text" if kinds else "empty"
    return Column(name, kind, tuple(dict.fromkeys(sample))[:3])


def _kind(text: str) -> str:
    if re.fullmatch(NUMBER, text):
        return "number"
    return "time" if guess_form(text) else "text"


def _form(log: Log, sample: _Sample, column: str) -> str | None:
    """The format of the first value of a column that is a time in a known format."""
    texts = (text.replace(log.point, ".") for text in sample.get(column, ()) if text is not None)
    implied = log.implied_form(column) if column in log.columns else None
    return implied or next(filter(None, map(guess_form, texts)), None)


def _roles(log: Log, sample: _Sample, known: Known | None) -> dict[str, str]:
    """The columns for the time and the other roles, and what is known about them."""
    # Not those that cannot be read, or occur twice.
    columns = [name for name in log.columns if name in sample] if sample else log.columns
    likely = {role: _by_name(columns, names) for role, names in _NAMES.items()}
    times = [name for name in likely["time"] if _may_be_time(log, sample, name)]
    times += [name for name in sample if _looks_like_time(sample[name])]
    likely["duration"] = [
        name for name in likely["duration"] if _may_be_duration(log, sample, name)
    ]
    roles: dict[str, str] = {}
    if known is not None:
        names = [
            name for name in known.times if _may_be_time(log, sample, name) or known.time_format
        ]
        times = [name for name in names if log.has(name)] + times
        given = {"duration": known.duration, "end": known.end, "where": known.where}
        given["time_format"] = known.time_format
        roles = {role: value for role, value in given.items() if value}
        likely["key"] = [name for name in known.keys if name in columns] + likely["key"]
    if times:
        roles["time"] = times[0]
        # An end is read in the format of the time.
        form = _form(log, sample, times[0])
        likely["end"] = [
            name
            for name in likely["end"]
            if _form(log, sample, name) == form or not any(sample.get(name, ()))
        ]
    if not roles.keys() & {"duration", "end"}:
        roles |= _pair(sample, roles.get("time", ""))
    wanted = ("key",) if roles.keys() & {"duration", "end", "id"} else ("duration", "end", "key")
    for role in wanted:
        # A column without a value in the first rows would be of no use.
        filled = (name for name in likely[role] if any(sample.get(name) or [True]))
        rest = (name for name in filled if name not in roles.values())
        if name := next(rest, None):
            roles[role] = name
    if "duration" in roles:
        roles.pop("end", None)
    return roles


def _pair(sample: _Sample, time: str) -> dict[str, str]:
    """Find requests in two rows: a column that tells a start from an end, and one with the id."""
    for event, texts in sample.items():
        spelled = {text.strip().lower(): text.strip() for text in texts if text}
        for start, end in _PAIRS:
            if {start, end} <= spelled.keys():
                starts, ends = spelled[start], spelled[end]
                ids = {
                    name: _common(values, texts, starts, ends)
                    for name, values in sample.items()
                    if name not in (event, time)
                }
                name = max(ids, key=lambda name: ids[name], default="")
                if name and ids[name]:
                    return {"id": name, "event": event, "starts": starts, "ends": ends}
    return {}


def _common(
    values: Sequence[str | None], events: Sequence[str | None], starts: str, ends: str
) -> int:
    """The number of ids with a start and an end; 0 if an id has several starts as a rule."""
    pairs = [pair for pair in zip(values, events, strict=True) if pair[0]]
    started = [value for value, event in pairs if (event or "").strip() == starts]
    ended = {value for value, event in pairs if (event or "").strip() == ends}
    distinct = set(started)
    return len(distinct & ended) if 2 * len(distinct) > len(started) else 0


def _start_or_end(log: Log, known: Known | None, time: str) -> str:
    """Whether a time is a start or an end, as the documentation or its name says; else empty."""
    name = split_unit(time)[0]
    if known is not None and known.times.get(time):
        return known.times[time]
    if name in _NAMES["end"]:
        return "end"
    return "start" if re.search("start|begin", name) else log.time_is


def _units(
    log: Log, sample: _Sample, known: Known | None, guesses: Mapping[str, str], form: str | None
) -> tuple[tuple[str, ...], str]:
    """The units that the durations may have, the most likely one first; and that in words."""
    column = guesses["duration"]
    if known is not None and known.unit:
        return (known.unit,), known.unit
    values = [text.replace(log.point, ".") for text in sample.get(column, ()) if text is not None]
    if values and not any(re.fullmatch(NUMBER, text.strip()) for text in values):
        return ("s",), "each value has its unit"
    if unit := unit_in_name(column) or log.duration_unit:
        return (unit,), unit
    fits = _fitting(log, sample, column, guesses["time"], form) if form else ()
    return (fits, f"{' or '.join(fits)}, from the values") if fits else (("s",), "s, assumed")


def _fitting(log: Log, sample: _Sample, column: str, time: str, form: str) -> tuple[str, ...]:
    """The units that fit the durations beside the differences of the times.

    A usual duration is not longer than all rows together, or than a usual timeout; and of shorter
    units, only those are likely in which requests are in flight now and then.
    """
    duration = read_durations(_array(sample.get(column, ())), "s", "s", log.point, few=True)
    fine = duration.flags & VALID > 0
    values = (duration.whole + duration.fraction / ONE)[fine]
    times = read_times(_array(sample.get(time, ())), form, "us", log.point, few=True)
    moments = times.whole[times.flags & VALID > 0]
    span = float(np.ptp(moments)) / 1e6 if len(moments) else 0.0
    if not len(values) or not values.any() or not span:
        return ()
    typical, in_flight = median(values.tolist()), values.sum() / span
    fits: list[str] = []
    for unit, places in EXPONENTS.items():
        scale = 10.0**-places
        short = typical * scale <= max(span, EXAMPLE_TIMEOUT)
        if short and (not fits or in_flight * scale >= _LEAST_IN_FLIGHT):
            fits.append(unit)
    return tuple(sorted(fits, key=lambda unit: abs(math.log10(in_flight) - EXPONENTS[unit])))


def _slow(sample: _Sample, guesses: Mapping[str, str], form: str | None, point: str) -> float:
    """The share of the first requests that take EXAMPLE_TIMEOUT or longer, or have no end."""
    column = {role: _array(sample.get(name, ())) for role, name in guesses.items()}
    limit = 1000 * EXAMPLE_TIMEOUT
    if "duration" in guesses:
        unit = guesses.get("duration_unit", "s")
        took = read_durations(column["duration"], unit, "ms", point, few=True)
        # If the times are ends, a row without a duration is left out.
        silent = (took.flags & ABSENT > 0) & (guesses.get("time_is") != "end")
        return _share(silent | (took.whole >= limit))
    if form is None:
        return 0.0
    start = read_times(column["time"], form, "ms", point, few=True)
    if "end" in guesses:
        end = read_times(column["end"], form, "ms", point, few=True)
        return _share((end.flags & ABSENT > 0) | (end.whole - start.whole >= limit))
    if "id" in guesses:
        last: dict[str | None, float] = {}  # id -> the milliseconds that its request takes
        began: dict[str | None, int] = {}
        rows = (sample[guesses["id"]], sample[guesses["event"]], start.whole.tolist())
        for name, event, time in zip(*rows, strict=True):
            if (event or "").strip() == guesses["starts"]:
                began[name], last[name] = time, math.inf
            elif (event or "").strip() == guesses["ends"] and name in began:
                last[name] = time - began[name]
        return _share(np.array(list(last.values())) >= limit)
    return 0.0


def _share(late: Bools) -> float:
    return float(late.mean()) if len(late) else 0.0


def _array(texts: Sequence[str | None]) -> pa.Array:
    return pa.array(texts, pa.string()).cast(pa.binary())


def _by_name(columns: Sequence[str], names: Sequence[str]) -> list[str]:
    """The columns with one of these names, then those of objects with one."""
    bases = {column: split_unit(column)[0] for column in columns}
    found = [column for name in names for column, base in bases.items() if base == name]
    inner = {column: base.rpartition(".")[2] for column, base in bases.items() if "." in base}
    return found + [column for name in names for column, base in inner.items() if base == name]


def _may_be_time(log: Log, sample: _Sample, column: str) -> bool:
    """Return whether a column has a time, or no values."""
    return not any(sample.get(column, ())) or _form(log, sample, column) is not None


def _may_be_duration(log: Log, sample: _Sample, column: str) -> bool:
    """Return whether a column has a duration, or no values."""
    read = read_durations(_array(sample.get(column, ())), "s", "s", log.point, few=True)
    return bool((read.flags & ABSENT > 0).all() or (read.flags & VALID > 0).any())


def _looks_like_time(texts: Sequence[str | None]) -> bool:
    return looks_like_time(next(filter(None, texts), ""))
