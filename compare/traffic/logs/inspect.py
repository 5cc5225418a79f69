"""Inspect the beginning of a log: its columns, guesses of their roles, and the unit it needs."""

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from statistics import median
from typing import NamedTuple

import numpy as np

from compare.traffic.logs.blocks import LogError, expand
from compare.traffic.logs.columns import (
    APACHE,
    VALUE,
    Sample,
    as_bytes,
    choose,
    form_of,
    metrics_of_time,
    present,
    start_or_end,
)
from compare.traffic.logs.first_times import SAMPLE, first_second, texts_of, year_of_file
from compare.traffic.logs.formats.base import Layout, Log, head_lines
from compare.traffic.logs.formats.patterns import EXTRAS, REST
from compare.traffic.logs.known import Known, known_format, split_unit, unit_in_name
from compare.traffic.logs.made import Made, made_pattern
from compare.traffic.logs.numbers import (
    ABSENT,
    ONE,
    VALID,
    Numbers,
    lacks_year,
    read_durations,
    read_times,
)
from compare.traffic.logs.opening import ANY, UnknownFormatError, open_log
from compare.traffic.logs.time_formats import NUMBER, guess_form
from compare.traffic.tapes.units import EXPONENTS
from timers.arrays import Bools

EXAMPLE_TIMEOUT = 5
"""Seconds; the timeout in the commands."""

_LEAST_IN_FLIGHT = 0.01
"""Requests in flight on average, below which a shorter unit of the durations is unlikely."""


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
    layout: Layout = ANY  # as given, or with a pattern that was made
    known: Known | None = None
    units: tuple[str, ...] = ()  # of durations whose values fit several; the likely one first
    unit: str = ""  # the same in words, for any durations
    assumed: bool = False  # whether nothing says that the times are starts
    reasons: Mapping[str, str] = field(default_factory=dict)  # for the columns that are guessed
    slow: float = 0.0  # the share of the first requests that take EXAMPLE_TIMEOUT or have no end
    time_unit: str = "ms"  # in which no digit of the times is lost
    made: Made | None = None  # if the pattern was made from the lines
    told: "Inspection | None" = None  # with a pattern for the durations in the texts of the lines

    @property
    def _doubt(self) -> str:
        """A question or warning about the guessed columns; empty without one."""
        duration = self.guesses.get("duration", "")
        if self.made is not None and self.made.has_address:
            return "The key is the first address in each line. Is it the one that may fall idle?"
        if self.made is not None and not self.made.is_certain:
            behind = f"behind {self.made.said!r}" if self.made.said else "with a unit"
            return f"The durations are the numbers {behind}. Are these the times of requests?"
        if self.made is not None and self.made.missed:
            return (
                f"Of the first lines, {self.made.missed:,} have {self.made.said!r} and no duration"
                " behind it; they will not be read."
            )
        if self.reasons.get("duration") == APACHE:
            return f"The field {duration} has no name. Is it the duration, as %D or %T of Apache?"
        if split_unit(duration)[0] == VALUE and self.known is None:
            return f"Is the column {duration} a duration?"
        return ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence for each guess that needs a decision."""
        texts = []
        if doubt := self._doubt:
            texts.append(doubt)
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


def inspect(name: str, layout: Layout) -> Inspection:
    """Look at the beginning of the first file of a log. Raises LogError."""
    file = expand([name])[0]
    try:
        seen = _inspected(open_log(file, layout), layout)
    except UnknownFormatError as error:
        made = made_pattern(error.lines)
        if made is None:
            raise
        if not (made.has_duration or made.has_address):
            # What it is about is not known, so nobody should paste this without a look at it.
            raise LogError(
                f"{error.what}; if this pattern says what a line is, finish it: wheelwork ingest"
                f" touches {shlex.quote(name)} --pattern {shlex.quote(made.pattern)} --time time"
                " --key key --idle 30s --out touches.trace"
            ) from None
        layout = layout._replace(pattern=made.pattern)
        return _inspected(open_log(file, layout), layout, made)
    if seen.log.is_text and not seen.guesses.keys() & {"duration", "end", "id"}:
        # A pattern matches whole lines.
        made = made_pattern(head_lines(replace(seen.log.source, envelope="")))
        if made is not None and made.has_duration:
            layout = layout._replace(format="auto", pattern=made.pattern)
            told = _inspected(open_log(file, layout), layout, made)
            return replace(seen, told=told)
    return seen


def _inspected(log: Log, layout: Layout, made: Made | None = None) -> Inspection:
    """The roles of a log's columns; `made` if its pattern was made for its durations."""
    sample = _sample(log)
    known = known_format(sample.keys() or log.columns)
    guesses, reasons, unit_beside = choose(log, sample, known)
    columns = (
        _column(name, sample.get(name, ()), log.point)
        for name in log.columns
        if name not in EXTRAS or any(sample.get(name, [name]))
    )
    form = guesses.get("time") and (
        guesses.get("time_format") or form_of(log, sample, guesses["time"])
    )
    is_column = "time" in guesses and guesses["time"] in log.columns
    # Values with a type are shown in ISO 8601, whatever they are read as.
    shown = "iso" if is_column and log.implied_form(guesses["time"]) else form
    if form and lacks_year(form):
        year = year_of_file(log, first_second(log, guesses["time"], form))
        guesses["year"] = str(year) if year else "YEAR"
    if form and "%Z" in form:
        guesses["time_zone"] = "ZONE"
    units: tuple[str, ...] = ()
    unit, assumed = "", False
    if "duration" in guesses:
        units, unit = _units(log, sample, known, guesses, shown)
        if unit_beside:
            units, unit = (unit_beside,), unit_beside
        elif reasons.get("duration") == APACHE:  # %D is in microseconds, or milliseconds of Tomcat
            units = tuple(one for one in units if one != "ns") or ("us",)
            unit = " or ".join(units)
        guesses |= {"duration_unit": units[0]} if units[0] != "s" else {}
    if guesses.keys() & {"duration", "end"}:
        time_is = start_or_end(log, known, guesses.get("time", ""), reasons.get("duration", ""))
        # A line tells the duration of what has ended, and so does a sample.
        is_value = split_unit(guesses.get("duration", ""))[0] == VALUE
        if made or (is_value and not time_is):
            time_is = "end"
        assumed = not time_is and "end" not in guesses
        guesses |= {"time_is": "end"} if time_is == "end" and "duration" in guesses else {}
    if (unit_needed := _finest(sample, guesses, shown, log.point)) != "ms":
        guesses["unit"] = unit_needed
    times = {"time": guesses["time"]} if "time" in guesses else {}
    time_unit = _finest(sample, times, shown, log.point)
    slow = _slow(sample, guesses, shown, log.point)
    more = units if len(units) > 1 else ()
    return Inspection(
        log,
        tuple(columns),
        guesses,
        form,
        layout=layout,
        known=known,
        units=more,
        unit=unit,
        assumed=assumed,
        reasons=reasons,
        slow=slow,
        time_unit=time_unit,
        made=made,
    )


def _sample(log: Log) -> dict[str, list[str | None]]:
    """The values of each column in the first rows."""
    names = [name for name in log.columns if log.columns.count(name) == 1]
    sample: dict[str, list[str | None]] = {}
    for block in log.beginning()[:1]:
        # A column of lists cannot be read. Those of other formats are read together.
        # What is behind an access line is read as a whole, too: its fields may have names.
        rest = [REST] if set(EXTRAS) <= set(names) else []
        for group in [[name] for name in names] if log.record == "row" else [names + rest]:
            with suppress(LogError):
                texts = next(log.read(block, {f"column {name}": name for name in group})).texts
                sample |= {name: texts_of(texts[f"column {name}"][:SAMPLE]) for name in group}
    if {"date", "time"} <= sample.keys():
        both = zip(sample["date"], sample["time"], strict=False)
        sample["date,time"] = [date and time and f"{date} {time}" for date, time in both]
    return sample


def _finest(sample: Sample, guesses: Mapping[str, str], form: str | None, point: str) -> str:
    """The unit that no digit of the first times and durations is lost in, at least milliseconds."""
    numbers = []
    for role in ("time", "end"):
        if form and role in guesses:
            texts = as_bytes(sample.get(guesses[role], ()))
            numbers.append(read_times(texts, form, "s", point, compiled=False))
    if "duration" in guesses:
        texts, unit = (
            as_bytes(sample.get(guesses["duration"], ())),
            guesses.get("duration_unit", "s"),
        )
        numbers.append(read_durations(texts, unit, "s", point, compiled=False))
    places = max(map(_places, numbers), default=0)
    return next((unit for unit in ("ms", "us") if places <= EXPONENTS[unit]), "ns")


def _places(numbers: Numbers) -> int:
    """The decimal places that numbers have, at most 9 of those that are looked at."""
    fraction = numbers.fraction[numbers.flags & VALID > 0]
    return next((k for k in range(10) if not (fraction % (ONE // 10**k)).any()), 10)


def _column(name: str, values: Sequence[str | None], point: str) -> Column:
    sample = [text for text in values if text is not None]
    kinds = {_kind(text.replace(point, ".")) for text in sample}
    kind = kinds.pop() if len(kinds) == 1 else "text" if kinds else "empty"
    return Column(name, kind, tuple(dict.fromkeys(sample))[:3])


def _kind(text: str) -> str:
    if re.fullmatch(NUMBER, text):
        return "number"
    return "time" if guess_form(text) else "text"


def _units(
    log: Log, sample: Sample, known: Known | None, guesses: Mapping[str, str], form: str | None
) -> tuple[tuple[str, ...], str]:
    """The units that the durations may have, the most likely one first; and that in words."""
    column = guesses["duration"]
    if known is not None and known.unit:
        return (known.unit,), known.unit
    values = [text.replace(log.point, ".") for text in present(sample.get(column, ()))]
    if values and not any(re.fullmatch(NUMBER, text.strip()) for text in values):
        return ("s",), "each value has its unit"
    metric = metrics_of_time(sample)[1][:1] if split_unit(column)[0] == VALUE else []
    if unit := unit_in_name(*metric or [column]) or log.duration_unit:
        return (unit,), unit
    fits = _fitting(log, sample, column, guesses["time"], form) if form else ()
    return (fits, f"{' or '.join(fits)}, from the values") if fits else (("s",), "s, assumed")


def _fitting(log: Log, sample: Sample, column: str, time: str, form: str) -> tuple[str, ...]:
    """The units that fit the durations beside the differences of the times.

    A usual duration is not longer than all rows together, or than a usual timeout; and of shorter
    units, only those are likely in which requests are in flight now and then. If the times have
    decimals of a second, durations with as many are the most likely.
    """
    duration = read_durations(as_bytes(sample.get(column, ())), "s", "s", log.point, compiled=False)
    valid = duration.flags & VALID > 0
    values = (duration.whole + duration.fraction / ONE)[valid]
    times = read_times(as_bytes(sample.get(time, ())), form, "s", log.point, compiled=False)
    moments = (times.whole + times.fraction / ONE)[times.flags & VALID > 0]
    span = float(np.ptp(moments)) if len(moments) else 0.0
    if not len(values) or not values.any() or not span:
        return ()
    typical, in_flight = median(values.tolist()), values.sum() / span
    fits: list[str] = []
    for unit, places in EXPONENTS.items():
        scale = 10.0**-places
        short = typical * scale <= max(span, EXAMPLE_TIMEOUT)
        if short and (not fits or in_flight * scale >= _LEAST_IN_FLIGHT):
            fits.append(unit)
    decimals, of_times = _places(duration), _places(times)

    def unlikely(unit: str) -> tuple[bool, float]:
        as_fine = decimals + EXPONENTS[unit] == of_times > 0
        return not as_fine, abs(math.log10(in_flight) - EXPONENTS[unit])

    return tuple(sorted(fits, key=unlikely))


def _slow(sample: Sample, guesses: Mapping[str, str], form: str | None, point: str) -> float:
    """The share of the first requests that take EXAMPLE_TIMEOUT or longer, or have no end."""
    column = {role: as_bytes(sample.get(name, ())) for role, name in guesses.items()}
    limit = 1000 * EXAMPLE_TIMEOUT
    if "duration" in guesses:
        unit = guesses.get("duration_unit", "s")
        took = read_durations(column["duration"], unit, "ms", point, compiled=False)
        # If the times are ends, a row without a duration is left out.
        silent = (took.flags & ABSENT > 0) & (guesses.get("time_is") != "end")
        return _share(silent | (took.whole >= limit))
    if form is None:
        return 0.0
    start = read_times(column["time"], form, "ms", point, compiled=False)
    if "end" in guesses:
        end = read_times(column["end"], form, "ms", point, compiled=False)
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
