"""Interpret the records of a log as runs of sorted rows, and reject bad ones.

Runs keep their shape from here to the fold, whether threads or Spark sort them; see `RUNS`.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
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
    BOUND,
    FRACTION_DIGITS,
    MORE,
    NEGATIVE,
    NO_DAY,
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
from timers.arrays import Bools, Int32s, Int64s
from timers.kernels.jit import long_entry
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

If a request has two rows, they have a hash of its id in place of a start, and their time as value,
so that they come together when runs are merged.
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

_USED, _NOT_CHOSEN = 0, -1
"""In place of the number of a row's problem, which counts from 1."""
_FNV_BASIS, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio


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


class Parsed(NamedTuple):
    """A part of a block of a log."""

    runs: pa.RecordBatch  # see RUNS
    rows: int  # of all runs
    total: int  # lines or records
    seen: Seen
    rejected: pa.RecordBatch  # see REJECTED_ROWS


class _Problem(NamedTuple):
    """A reason to reject rows."""

    role: str  # of the column at fault; "" for the line
    text: str  # in which {role}, {form} and {unit} stand for what they are
    rows: Bools  # those that have it
    kind: str = UNREADABLE


class _Rows(NamedTuple):
    """What the rows of a part of a block mean, besides their times; see RUNS."""

    start: Int64s  # or the hash of the id
    value: Int64s | pa.Array  # the end or NONE, the key as text, or the time
    shard: Int32s
    position: Int64s
    chosen: Bools  # whether it is an event that counts
    problems: list[_Problem]
    bounds: Bools | None = None  # whether its duration is only known to be shorter


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
    assumed = meaning.assumed._replace(year=year) if year else meaning.assumed
    texts, form, unit = records.texts, meaning.form, meaning.unit
    time = read_times(texts["time"], form, unit, log.point, assumed)
    place = first + records.number.astype(np.int64)
    if meaning.value == "duration":
        duration = read_durations(texts["duration"], meaning.duration_unit, unit, log.point)
        rows = _lasting(time, duration, meaning, place)
    elif meaning.value == "end":
        ends = read_ends(texts["end"], form, unit, log.point, assumed, time.whole)
        rows = _ending(time, ends, meaning, place)
    else:
        rows = _keyed(time, texts, meaning, place, unmatched)
    late = (time.whole if meaning.value == "id" else rows.start) > LIMIT - meaning.timeout
    problems = [
        *_line_problems(log, records),
        *_time_problems(time, meaning),
        *rows.problems,
        _Problem("time", "its deadline would be beyond 2**63 - 1 {unit}", late),
    ]
    masks, numbers = [problem.rows for problem in problems], range(1, len(problems) + 1)
    number_of = np.select(masks, numbers, _USED).astype(np.int8)  # the first one counts
    chosen = rows.chosen
    for number, condition in enumerate(meaning.where):
        chosen = chosen & condition.holds(texts[f"where{number}"], log.point)
    other_lines = _other_lines(log, records)
    is_read = np.True_ if limit is None else records.number < limit
    number_of[~(chosen | records.fault) | other_lines | ~is_read] = _NOT_CHOSEN
    used = number_of == _USED
    of_durations = [
        n for n, problem in enumerate(problems, 1) if problem.role in ("duration", "end")
    ]
    seen = Seen(
        present=frozenset(_present(log, texts, meaning.roles, used)),
        bad_durations=int(np.isin(number_of, of_durations).sum()),
        other_lines=int((other_lines & is_read).sum()),
        bounds=0 if rows.bounds is None else int((rows.bounds & used).sum()),
    )
    seen.add(time.whole[used], time.zone[used])
    order = np.flatnonzero(used)
    # Small numbers are sorted in linear time.
    columns = [rows.start, rows.shard.astype(np.min_scalar_type(meaning.shards))]
    if meaning.value == "id":  # ends come after starts
        columns.insert(0, rows.position)
    for column in columns:
        order = order[np.argsort(column[order], kind="stable")]
    shard, start, value, position = rows.shard, rows.start, rows.value, rows.position
    runs = _runs(shard[order], start[order], value.take(order), position[order])
    rejected = _rejected(records, number_of, problems, meaning)
    return Parsed(runs, len(order), records.total, seen, rejected)


def _other_lines(log: Log, records: Records) -> Bools:
    """The lines that a pattern does not select."""
    # A line that is too long was not looked at.
    selects = log.selects and not records.too_long
    damaged = records.fault if records.nul is None else records.fault & ~records.nul
    return damaged if selects else np.zeros(len(damaged), np.bool_)


def _present(log: Log, texts: Mapping[str, pa.Array], roles: Roles, used: Bools) -> Iterator[str]:
    """The roles of columns that the head does not show, and that have a value in a used row."""
    for role, name in roles.items():
        if not log.has(name) and len(with_value(texts[role].filter(pa.array(used))).drop_null()):
            yield role


def _line_problems(log: Log, records: Records) -> list[_Problem]:
    """The problems of lines."""
    none = np.zeros(len(records.fault), np.bool_)
    longest, nul = log.source.longest_line, records.nul
    return [
        _Problem("", f"it is longer than {longest:,} bytes", records.fault & records.too_long),
        _Problem("", "it has a NUL byte", none if nul is None else nul),
        _Problem("", log.fault, records.fault),
    ]


def _time_problems(time: Numbers, meaning: Meaning) -> list[_Problem]:
    """The problems of times."""
    low, high = 0, LIMIT
    if meaning.guessed and meaning.form in EPOCHS:
        # Otherwise, milliseconds among seconds would be read as the year 58 000.
        low, high = guessed_range(meaning.form, meaning.unit)
    is_far = (time.whole < low) | (time.whole > high)
    no_day = "time '{time}' is a day that its year lacks; give --year, that of the first line"
    more = f"time '{{time}}' has more than {FRACTION_DIGITS} digits after the {{unit}}"
    return [
        _Problem("time", "it has no time", time.has(ABSENT)),
        _Problem("time", no_day, time.has(NO_DAY)),
        _Problem("time", "time '{time}' is not {form} or is out of range", ~time.has(VALID)),
        _Problem("time", "time '{time}' is before 1970", time.has(NEGATIVE)),
        _Problem("time", "time '{time}' is not {form}, the format of the first time", is_far),
        _Problem("time", more, time.has(MORE)),
    ]


def _lasting(time: Numbers, duration: Numbers, meaning: Meaning, position: Int64s) -> _Rows:
    """Requests with durations."""
    present = ~duration.has(ABSENT)
    start, end = _started(time, duration, meaning)
    wrong, silent = present & ~duration.has(VALID), ~present & (meaning.time_is == "end")
    problems = [
        _Problem("duration", "duration '{duration}' is negative", duration.has(NEGATIVE)),
        _Problem("duration", "duration '{duration}' is not a number in range", wrong),
        _Problem("duration", "it has no duration, so its start is unknown", silent),
        _Problem("time", "it started before 1970", start < 0),
    ]
    rows = _requests(start, np.where(present, end, NONE), meaning, position, problems)
    return rows._replace(bounds=duration.has(BOUND))


def _ending(time: Numbers, ends: Numbers, meaning: Meaning, position: Int64s) -> _Rows:
    """Requests with ends."""
    present, start = ~ends.has(ABSENT), time.whole
    wrong = present & ~ends.has(VALID)
    early = present & ((ends.whole < start) | ends.has(NEGATIVE))
    problems = [
        _Problem("end", "end '{end}' is not {form} or is out of range", wrong),
        _Problem("end", "end '{end}' is before its start", early),
    ]
    return _requests(start, np.where(present, ends.whole, NONE), meaning, position, problems)


def _requests(
    start: Int64s, end: Int64s, meaning: Meaning, position: Int64s, problems: list[_Problem]
) -> _Rows:
    """Requests of one row each."""
    shard = (_mixed(start, end) % np.uint64(meaning.shards)).astype(np.int32)
    return _Rows(start, end, shard, position, np.ones(len(start), np.bool_), problems)


def _keyed(
    time: Numbers,
    texts: Mapping[str, pa.Array],
    meaning: Meaning,
    position: Int64s,
    unmatched: Int64s,
) -> _Rows:
    """Touches of keys, or requests in two rows with an id."""
    key = with_value(texts[meaning.value])
    shard = _hashes(key, meaning.shards)
    problems = [_Problem(meaning.value, f"it has no {meaning.value}", np.asarray(key.is_null()))]
    if meaning.value == "key":
        chosen = np.ones(len(key), np.bool_)
        return _Rows(time.whole, texts["key"], shard, position, chosen, problems)
    event = pc.ascii_trim(texts["event"].view(pa.string()), " ")
    is_start, is_end = (
        np.asarray(pc.fill_null(pc.equal(event, text), False))
        for text in (meaning.starts, meaning.ends)
    )
    # To look each row up among all of them would take long.
    least, most = position.min(initial=LIMIT), position.max(initial=NONE)
    lone = unmatched[(least <= unmatched) & (unmatched <= most)]
    text = "it is an end, and '{id}' has no start before it"
    problems.append(_Problem("id", text, np.isin(position, lone), UNMATCHED))
    position = position + END * is_end
    return _Rows(fingerprints(key), time.whole, shard, position, is_start | is_end, problems)


def _started(time: Numbers, duration: Numbers, meaning: Meaning) -> tuple[Int64s, Int64s]:
    """Return the start and the end of each request. An end beyond LIMIT is LIMIT."""
    if meaning.time_is == "end":
        more = duration.has(MORE)
        return time.whole - duration.whole - (duration.fraction + more > time.fraction), time.whole
    # The sum of the fractions may cross one more boundary between units.
    whole = duration.whole + (time.fraction + duration.fraction >= ONE)
    in_range = duration.whole < LIMIT - time.whole
    return time.whole, np.where(in_range, time.whole + whole, LIMIT)


def _mixed(*columns: Int64s) -> npt.NDArray[np.uint64]:
    """A hash of each row of numbers."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = (mixed ^ column.view(np.uint64)) * _GOLDEN
        mixed ^= mixed >> np.uint64(32)
    return mixed


def _hashes(texts: pa.Array, groups: int) -> Int32s:
    """A number in [0, groups) for each text, the same for equal texts."""
    if groups == 1:
        return np.zeros(len(texts), np.int32)
    encoded = texts.fill_null(b"").dictionary_encode()
    hashes = [zlib.crc32(text) % groups for text in encoded.dictionary.to_pylist()]
    return np.array(hashes, np.int32).take(np.asarray(encoded.indices))


def fingerprints(texts: pa.Array) -> Int64s:
    """A number for each text, the same for equal texts.

    It is FNV-1a of 64 bits: two of 14 million texts have one number with a probability of 5e-6.
    """
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets or bytes(4), np.int32)[texts.offset :][: len(texts) + 1]
    found = np.empty(len(texts), np.uint64)
    _fnv(bounds, np.frombuffer(data or b"\0", np.uint8), found)
    return found.view(np.int64)


@long_entry
def _fnv(bounds, characters, found):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  # typed by its arguments
    for row in range(found.size):
        number = _FNV_BASIS
        for place in range(bounds[row], bounds[row + 1]):
            number = (number ^ np.uint64(characters[place])) * _FNV_PRIME
        found[row] = number


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
    records: Records,
    number_of: npt.NDArray[np.int8],
    problems: Sequence[_Problem],
    meaning: Meaning,
) -> pa.RecordBatch:
    """The rejected rows of a block."""
    places = np.flatnonzero(number_of > _USED)
    texts = {
        role: _characters(with_value(column.take(places))) for role, column in records.texts.items()
    }
    codes = number_of[places] - 1
    order = np.argsort(codes, kind="stable")
    messages = [pa.array([], pa.string())]
    for code, count in zip(*np.unique(codes, return_counts=True), strict=True):
        alike = order[sum(map(len, messages)) :][:count]
        values = {role: text.take(alike) for role, text in texts.items()}
        values |= {"form": pa.repeat(meaning.form, count), "unit": pa.repeat(meaning.unit, count)}
        messages.append(_filled(problems[code].text, values, count))
    kinds = pa.array([problem.kind for problem in problems])
    columns = (
        records.number[places].astype(np.int64),
        kinds.take(codes),
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
