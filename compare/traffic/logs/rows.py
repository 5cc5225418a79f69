"""Interpret the records of a log, and reject bad ones."""

import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from compare.traffic.logs.blocks import Block, printable
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
    read_durations,
    read_times,
    with_value,
)
from compare.traffic.logs.time_formats import EPOCHS, guessed_range
from timers.arrays import Bools, Int32s, Int64s
from timers.limits import LIMIT

UNREADABLE, DUPLICATE, LATE, UNMATCHED = "unreadable", "duplicate", "late", "unmatched"
KINDS = (UNREADABLE, DUPLICATE, LATE, UNMATCHED)
"""Why a row is rejected."""

QUOTE = 40
"""Maximum number of characters of a bad value in a message."""
NONE = -1
"""In place of the end of a request that was not answered in time."""

_FINE, _LATE, _DUPLICATE, _UNMATCHED, _NOT_CHOSEN = 0, -1, -2, -3, -4
"""Problems of a row, besides the place of one in `Rows.unreadable`, from 1."""
_MARKED = {
    _LATE: (LATE, "it is {behind} {unit} behind the rows before it"),
    _DUPLICATE: (DUPLICATE, "{column} '{unique}' is that of an earlier row"),
    _UNMATCHED: (UNMATCHED, "it is an end, and '{id}' has no start before it"),
}
_SAMPLES = 1_000_000  # kinds of keys, of which a sample takes a share
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio


class Meaning(NamedTuple):
    """What the rows of a log mean."""

    roles: Roles
    unit: str
    timeout: int  # or idle period, in units
    form: str  # of the times
    guessed: bool  # whether the format was guessed from the first value
    shards: int = 1
    duration_unit: str = "s"
    time_is: str = "start"
    where: tuple[Condition, ...] = ()  # what holds of a row that is used
    sample: float = 1  # the share of the keys, or of the requests, that is used
    assumed: Assumed = Assumed()  # of the times
    starts: str = ""  # of a request in two rows: what the first one has in the column `event`
    ends: str = ""  # the same of the second one

    @property
    def value(self) -> str:
        """The role of the column besides the time: "duration", "end", "id" or "key"."""
        return next(role for role in ("duration", "end", "id", "key") if role in self.roles)


class Rows(NamedTuple):
    """The records of a block as rows of a log."""

    records: Records
    unreadable: tuple[str, ...]  # what may be wrong with a row
    problem: npt.NDArray[np.int8]
    start: Int64s  # units, rounded down; of a late row, how far it is behind
    end: Int64s  # of a request that was answered in time; else NONE, unless a row is an end
    time: Int64s  # units, rounded down
    zone: npt.NDArray[np.int16]  # of the time
    shard: Int32s

    @property
    def fine(self) -> Bools:
        """Which rows are not rejected."""
        return np.asarray(self.problem == _FINE)


class RejectedRow(NamedTuple):
    """A row that is left out."""

    number: int  # of its line or record in the block, from 0
    kind: str
    problem: str
    time: str | None  # what the log has there
    other: str | None  # its duration or key


def interpret(log: Log, block: Block, meaning: Meaning) -> Rows:
    """Read a block. A pure function of its bytes."""
    records = log.read(block, meaning.roles)
    texts, form = records.texts, meaning.form
    time = read_times(texts["time"], form, meaning.unit, log.point, meaning.assumed)
    low, high = 0, LIMIT
    if meaning.guessed and form in EPOCHS:
        low, high = guessed_range(form, meaning.unit)
    problems = {
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
    chosen = np.ones(len(start), np.bool_)
    if meaning.value == "end":
        ended = read_times(texts["end"], form, meaning.unit, log.point, meaning.assumed)
        present = ended.flags & ABSENT == 0
        in_time = present & (ended.whole - start < meaning.timeout)
        end = np.where(in_time, ended.whole, NONE)
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
        end = np.where(present & (end - start < meaning.timeout), end, NONE)
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
        if meaning.sample < 1:
            chosen &= _hashes(key, _SAMPLES) < meaning.sample * _SAMPLES
        if meaning.value == "id":
            event = pc.ascii_trim(texts["event"].view(pa.string()), " ")
            is_start, is_end = (
                np.asarray(pc.fill_null(pc.equal(event, text), False))
                for text in (meaning.starts, meaning.ends)
            )
            chosen &= is_start | is_end
            end = np.where(is_end, start, NONE)
    if meaning.value in ("end", "duration"):
        shard = (_mixed(start, end) % np.uint64(meaning.shards)).astype(np.int32)
        chosen &= _mixed(start) % np.uint64(_SAMPLES) < meaning.sample * _SAMPLES
    problems["its deadline would be beyond 2**63 - 1 {unit}"] = start > LIMIT - meaning.timeout
    masks = [mask != 0 for mask in problems.values()]
    problem = np.select(masks, range(1, len(masks) + 1), _FINE).astype(np.int8)
    for number, condition in enumerate(meaning.where):
        chosen &= condition.holds(texts[f"where{number}"], log.point)
    problem[~(chosen | records.fault)] = _NOT_CHOSEN
    return Rows(records, tuple(problems), problem, start, end, time.whole, time.zone, shard)


def _started(time: Numbers, duration: Numbers, meaning: Meaning) -> tuple[Int64s, Int64s]:
    """When each request started and ended. An end after the timeout may be any such time."""
    if meaning.time_is == "end":
        more = duration.flags & MORE != 0
        return time.whole - duration.whole - (duration.fraction + more > time.fraction), time.whole
    # The sum of the fractions may cross one more boundary between units.
    whole = duration.whole + (time.fraction + duration.fraction >= ONE)
    # Beyond the timeout the sum is not needed, and might overflow.
    in_time = (whole >= 0) & (whole < meaning.timeout)
    return time.whole, time.whole + np.where(in_time, whole, meaning.timeout)


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


def leave_out_from(rows: Rows, number: int) -> None:
    """Use no record from this number of the block on."""
    rows.problem[rows.records.number >= number] = _NOT_CHOSEN


def mark_late(rows: Rows, bound: int, latest: int) -> int:
    """Mark rows that are older than a preceding row by more than `bound`.

    `latest` is the latest time of the rows before; returns that of all. NONE is before all times.
    """
    place = np.flatnonzero(rows.fine)
    time = rows.time[place]
    before = np.maximum.accumulate(np.concatenate([[latest], time]))
    behind = before[:-1] - time
    late = behind > bound
    rows.problem[place[late]], rows.start[place[late]] = _LATE, behind[late]
    return int(before[-1])


def texts_of(rows: Rows, role: str, groups: int) -> tuple[pa.Array, Int32s, Bools]:
    """The texts of rows in a column, each with a group, the same for equal texts; and which rows
    these are: rejected rows and rows without a text are left out.
    """
    texts = with_value(rows.records.texts[role])
    chosen = rows.fine & np.asarray(texts.is_valid())
    texts = texts.filter(pa.array(chosen))
    return texts, _hashes(texts, groups), chosen


def mark_duplicates(rows: Rows, seen: set[bytes]) -> None:
    """Mark rows whose text in the column `unique` has occurred before, and add others to `seen`."""
    texts, _, chosen = texts_of(rows, "unique", 1)
    again = []
    for text, number in zip(texts.to_pylist(), rows.records.number[chosen].tolist(), strict=True):
        if text in seen:
            again.append(number)
        seen.add(text)
    mark_at(rows, np.array(again, np.int64), DUPLICATE)


def mark_at(rows: Rows, numbers: Int64s, kind: str) -> None:
    """Mark the records with these numbers as duplicate or unmatched."""
    problem = _DUPLICATE if kind == DUPLICATE else _UNMATCHED
    rows.problem[np.isin(rows.records.number, numbers)] = problem


def rejected(rows: Rows, meaning: Meaning) -> Iterator[RejectedRow]:
    """The rejected rows of a block."""
    places = np.flatnonzero(~rows.fine & (rows.problem != _NOT_CHOSEN))
    columns = {
        role: [
            value and value.decode(errors="replace")
            for value in with_value(column.take(places)).to_pylist()
        ]
        for role, column in rows.records.texts.items()
    }
    for index, row in enumerate(places.tolist()):
        texts = {role: column[index] for role, column in columns.items()}
        code = int(rows.problem[row])
        kind, problem = _MARKED.get(code) or (UNREADABLE, rows.unreadable[code - 1])
        problem = problem.format(
            **{role: (text or "")[:QUOTE] for role, text in texts.items()},
            form=meaning.form,
            unit=meaning.unit,
            behind=rows.start[row],
            column=printable(meaning.roles.get("unique", "")),
        )
        number = int(rows.records.number[row])
        yield RejectedRow(number, kind, problem, texts["time"], texts[meaning.value])
