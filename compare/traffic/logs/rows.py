"""Interpret the records of a log as runs of sorted rows, and reject bad ones.

Runs keep their shape from here to the fold, whether threads or Spark sort them; see `RUNS`.
"""

import zlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from string import Formatter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from compare.traffic.logs.choice import Condition
from compare.traffic.logs.formats.base import Log, Records, Roles
from compare.traffic.logs.numbers import (
    ABSENT,
    FRACTION_DIGITS,
    MORE,
    NEGATIVE,
    ONE,
    VALID,
    Assumed,
    Numbers,
    Year,
    read_durations,
    read_ends,
    read_times,
    with_value,
)
from compare.traffic.logs.reading import Seen
from compare.traffic.logs.time_formats import EPOCHS, guessed_range
from timers.arrays import Int32s, Int64s
from timers.limits import LIMIT

UNREADABLE, UNMATCHED = "unreadable", "unmatched"
KINDS = (UNREADABLE, UNMATCHED)
"""Reasons to reject a row."""

QUOTE = 40
"""Maximum number of characters of a bad value in a message."""
NONE = -1
"""In place of the end of a request that was not answered."""
END = 1 << 62
"""Added to the position of an end of a request in two rows, so that at one time it comes after the
starts."""
NO_POSITIONS = np.empty(0, np.int64)

_NUMBERS, _TEXTS = pa.list_(pa.int64()), pa.list_(pa.binary())
RUNS = pa.schema(
    [
        ("shard", pa.int32()),
        ("first", pa.int64()),
        ("place", pa.int64()),
        ("start", _NUMBERS),
        ("value", _NUMBERS),
        ("position", _NUMBERS),
        ("keys", _TEXTS),
    ]
)
"""A run: rows of a block that belong to one shard, in the order of their starts.

The columns `start`, `value` and `position` have an element for each row. Times are in units,
rounded down. A value is the end of a request that was answered, or NONE; if rows have keys, it is
the place of the key in `keys`, which is null otherwise. A position is the place of the row in the
log. `first` and `place` are the start and the position of the first row.
"""
REJECTED_ROWS = pa.schema(
    [
        ("number", pa.int64()),  # of its line or record in the part, from 0
        ("kind", pa.string()),
        ("problem", pa.string()),
        ("time", pa.string()),  # text in the log
        ("value", pa.string()),  # its duration, end, id or key
    ]
)
ROWS_OF_A_RUN = 1 << 14
"""The most rows of a run. If a log is in no order, runs overlap, and a part of each is held when
they are merged: short runs need less memory.
"""

_FINE, _NOT_CHOSEN = 0, -1
"""Problems of a row, besides the place of one in the table of problems, from 1."""
_WITHOUT_START = "it is an end, and '{id}' has no start before it"
_ODD_VALUES = ("duration ", "end ", "it has no duration")
"""The beginnings of problems with the time that a request took."""
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio


class Meaning(NamedTuple):
    """The interpretation of rows."""

    roles: Roles
    unit: str
    timeout: int  # or idle period, in units
    form: str  # of the times
    guessed: bool  # whether the format was guessed from the first value
    shards: int = 1
    duration_unit: str = "s"
    time_is: str = "start"
    where: tuple[Condition, ...] = ()  # conditions for a row that is used
    assumed: Assumed = Assumed()  # of the times
    starts: str = ""  # of a request in two rows: the value of `event` in the first one
    ends: str = ""  # in the second one

    @property
    def value(self) -> str:
        """The role of the column besides the time: "duration", "end", "id" or "key"."""
        return next(role for role in ("duration", "end", "id", "key") if role in self.roles)

    @property
    def keyed(self) -> bool:
        """True if rows have a key, or the id of a request in two rows, instead of an end."""
        return self.value in ("id", "key")


class Parsed(NamedTuple):
    """A part of a block of a log."""

    runs: pa.RecordBatch  # see RUNS
    rows: int  # of all runs
    total: int  # lines or records
    seen: Seen
    rejected: pa.RecordBatch  # see REJECTED_ROWS


def interpret(
    log: Log,
    records: Records,
    meaning: Meaning,
    first: int,
    unmatched: Int64s = NO_POSITIONS,
    limit: int | None = None,
    year: Year | None = None,
) -> Parsed:
    """Interpret a part of a block. A pure function of its records.

    `first` is the position of its first row. Rows at the positions `unmatched` are rejected. With a
    `limit`, no more lines or records are used. Times without a year begin in `year`.
    """
    texts, form = records.texts, meaning.form
    assumed = meaning.assumed._replace(year=year) if year else meaning.assumed
    time = read_times(texts["time"], form, meaning.unit, log.point, assumed)
    low, high = 0, LIMIT
    if meaning.guessed and form in EPOCHS:
        low, high = guessed_range(form, meaning.unit)
    none = np.zeros(len(records.fault), np.bool_)
    nul = none if records.nul is None else records.nul
    selects = log.selects and not records.too_long  # that line was not looked at
    others = records.fault & ~nul if selects else none
    problems = {
        f"it is longer than {log.source.longest_line:,} bytes": records.fault & records.too_long,
        "it has a NUL byte": nul,
        log.fault: records.fault,
        "it has no time": time.flags & ABSENT,
        "time '{time}' is not {form} or is out of range": ~time.flags & VALID,
        "time '{time}' is before 1970": time.flags & NEGATIVE,
        # Otherwise, milliseconds among seconds would be read as the year 58 000.
        "time '{time}' is not {form}, the format of the first time": (
            (time.whole < low) | (time.whole > high)
        ),
        f"time '{{time}}' has more than {FRACTION_DIGITS} digits after the {{unit}}": (
            time.flags & MORE
        ),
    }
    start, end = time.whole, np.full(len(time.whole), NONE, np.int64)
    position = first + records.number.astype(np.int64)
    chosen = np.ones(len(start), np.bool_)
    if meaning.value == "end":
        ended = read_ends(texts["end"], form, meaning.unit, log.point, assumed, start)
        present = ended.flags & ABSENT == 0
        end = np.where(present, ended.whole, NONE)
        problems |= {
            "end '{end}' is not {form} or is out of range": present & (ended.flags & VALID == 0),
            "end '{end}' is before its start": (
                present & ((ended.whole < start) | (ended.flags & NEGATIVE > 0))
            ),
        }
    elif meaning.value == "duration":
        duration = read_durations(texts["duration"], meaning.duration_unit, meaning.unit, log.point)
        present = duration.flags & ABSENT == 0
        start, end = _started(time, duration, meaning)
        end = np.where(present, end, NONE)
        problems |= {
            "duration '{duration}' is negative": duration.flags & NEGATIVE,
            "duration '{duration}' is not a number in range": (
                present & (duration.flags & VALID == 0)
            ),
            "it has no duration, so its start is unknown": (~present & (meaning.time_is == "end")),
            "it started before 1970": start < 0,
        }
    else:
        key = with_value(texts[meaning.value])
        shard = _hashes(key, meaning.shards)
        problems[f"it has no {meaning.value}"] = np.asarray(key.is_null())
        if meaning.value == "id":
            event = pc.ascii_trim(texts["event"].view(pa.string()), " ")
            is_start, is_end = (
                np.asarray(pc.fill_null(pc.equal(event, text), False))
                for text in (meaning.starts, meaning.ends)
            )
            chosen &= is_start | is_end
            problems[_WITHOUT_START] = np.isin(position, unmatched)
            position += END * is_end
    if not meaning.keyed:
        shard = (_mixed(start, end) % np.uint64(meaning.shards)).astype(np.int32)
    problems["its deadline would be beyond 2**63 - 1 {unit}"] = start > LIMIT - meaning.timeout
    masks = [mask != 0 for mask in problems.values()]
    problem = np.select(masks, range(1, len(masks) + 1), _FINE).astype(np.int8)
    for number, condition in enumerate(meaning.where):
        chosen &= condition.holds(texts[f"where{number}"], log.point)
    problem[~(chosen | records.fault) | others] = _NOT_CHOSEN
    if limit is not None:
        problem[records.number >= limit] = _NOT_CHOSEN
        others = others & (records.number < limit)
    fine = problem == _FINE
    odd = [code for code, text in enumerate(problems, 1) if text.startswith(_ODD_VALUES)]
    seen = Seen(odd=int(np.isin(problem, odd).sum()), others=int(others.sum()))
    seen.add(time.whole[fine], time.zone[fine])
    for role, name in meaning.roles.items():
        if not log.has(name) and len(with_value(texts[role].filter(pa.array(fine))).drop_null()):
            seen.present |= {role}
    order = np.flatnonzero(fine)
    # Small numbers are sorted in linear time.
    for column in (start, shard.astype(np.min_scalar_type(meaning.shards))):
        order = order[np.argsort(column[order], kind="stable")]
    value = texts[meaning.value] if meaning.keyed else end
    runs = _runs(shard[order], start[order], value.take(order), position[order])
    rejected = _rejected(records, problem, tuple(problems), meaning)
    return Parsed(runs, len(order), records.total, seen, rejected)


def _started(time: Numbers, duration: Numbers, meaning: Meaning) -> tuple[Int64s, Int64s]:
    """Return the start and the end of each request. An end beyond LIMIT is LIMIT."""
    if meaning.time_is == "end":
        more = duration.flags & MORE != 0
        return time.whole - duration.whole - (duration.fraction + more > time.fraction), time.whole
    # The sum of the fractions may cross one more boundary between units.
    whole = duration.whole + (time.fraction + duration.fraction >= ONE)
    in_range = duration.whole < LIMIT - time.whole
    return time.whole, np.where(in_range, time.whole + whole, LIMIT)


def _mixed(*columns: Int64s) -> npt.NDArray[np.uint64]:
    """A hash of each row of numbers."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = (mixed ^ column.view(np.uint64)) * _ODD
        mixed ^= mixed >> np.uint64(32)
    return mixed


def _hashes(texts: pa.Array, groups: int) -> Int32s:
    """A number in [0, groups) for each text, the same for equal texts."""
    if groups == 1:
        return np.zeros(len(texts), np.int32)
    encoded = texts.fill_null(b"").dictionary_encode()
    hashes = [zlib.crc32(text) % groups for text in encoded.dictionary.to_pylist()]
    return np.array(hashes, np.int32).take(np.asarray(encoded.indices))


def _runs(
    shard: Int32s, start: Int64s, value: Int64s | pa.Array, position: Int64s
) -> pa.RecordBatch:
    """Divide rows, which are in the order of (shard, start, position), into runs."""
    bounds = [0, *(np.flatnonzero(np.diff(shard)) + 1).tolist(), len(shard)]
    begins = [k for pair in pairwise(bounds) for k in range(*pair, ROWS_OF_A_RUN)]
    ends = [*begins, len(shard)][1:]
    keys = pa.nulls(len(begins), _TEXTS)
    if isinstance(value, pa.Array):
        cuts = zip(begins, ends, strict=True)
        parts = [value.slice(k, end - k).dictionary_encode() for k, end in cuts]
        texts = pa.concat_arrays([value[:0], *(part.dictionary for part in parts)])
        keys = _lists(np.cumsum([len(part.dictionary) for part in parts]).tolist(), texts)
        value = np.concatenate([NO_POSITIONS, *(np.asarray(part.indices) for part in parts)])
    columns = (_lists(ends, pa.array(column)) for column in (start, value, position))
    firsts = (column[begins] for column in (shard, start, position))
    return pa.RecordBatch.from_arrays([*firsts, *columns, keys], schema=RUNS)


def _lists(ends: Sequence[int], values: pa.Array) -> pa.ListArray:
    """Lists of consecutive values, as in RUNS."""
    offsets = pa.array([0, *ends], pa.int32())
    return pa.ListArray.from_arrays(offsets, values)


def _rejected(
    records: Records, problem: npt.NDArray[np.int8], problems: Sequence[str], meaning: Meaning
) -> pa.RecordBatch:
    """The rejected rows of a block."""
    places = np.flatnonzero(problem > _FINE)
    texts = {
        role: _characters(with_value(column.take(places))) for role, column in records.texts.items()
    }
    codes = problem[places] - 1
    order = np.argsort(codes, kind="stable")
    messages = [pa.array([], pa.string())]
    for code, count in zip(*np.unique(codes, return_counts=True), strict=True):
        alike = order[sum(map(len, messages)) :][:count]
        values = {role: text.take(alike) for role, text in texts.items()}
        values |= {"form": pa.repeat(meaning.form, count), "unit": pa.repeat(meaning.unit, count)}
        messages.append(_filled(problems[code], values, count))
    ends = [code for code, text in enumerate(problems) if text == _WITHOUT_START]
    unmatched = pa.array(np.isin(codes, ends))
    columns = (
        records.number[places].astype(np.int64),
        pc.if_else(unmatched, UNMATCHED, UNREADABLE),
        pa.concat_arrays(messages).take(np.argsort(order)),
        texts["time"],
        texts[meaning.value],
    )
    return pa.RecordBatch.from_arrays([*map(pa.array, columns)], schema=REJECTED_ROWS)


def _characters(texts: pa.Array) -> pa.Array:
    """Bytes as text."""
    try:
        return texts.cast(pa.string())
    except pa.ArrowInvalid:  # not all are UTF-8
        decoded = [text and text.decode(errors="replace") for text in texts.to_pylist()]
        return pa.array(decoded, pa.string())


def _filled(template: str, values: Mapping[str, pa.Array], count: int) -> pa.Array:
    """The template with each row's values, of which the first characters are quoted."""
    parts = [pa.repeat("", count)]
    for literal, name, _, _ in Formatter().parse(template):
        parts.append(literal)
        if name is not None:
            parts.append(pc.fill_null(pc.utf8_slice_codeunits(values[name], 0, QUOTE), ""))
    return pc.binary_join_element_wise(*parts, "")
