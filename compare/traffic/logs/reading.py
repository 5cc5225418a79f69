"""The result of reading a log, with warnings about anything that looks wrong."""

from dataclasses import dataclass
from math import gcd
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from compare.traffic.logs.known import unit_in_name
from compare.traffic.logs.numbers import NO_ZONE
from compare.traffic.tapes.units import EXPONENTS, digits_text
from timers.arrays import Int64s

_STEPS = {"1ms": 10**6, "10ms": 10**7, "100ms": 10**8, "1s": 10**9, "1m": 60 * 10**9}
"""Step of timestamps -> nanoseconds. Each step divides the next one."""
_YEAR = 366 * 86_400  # seconds


class Times(NamedTuple):
    """Properties of the times in a log."""

    step: str | None  # the longest of _STEPS that divides all times, if it is coarse
    without_zone: int  # times without a time zone, if the format allows one
    zones: tuple[int, int] | None  # minimum and maximum, in minutes ahead of UTC


@dataclass(frozen=True)
class Reading:
    """The result of reading a log."""

    kind: str  # "requests" or "touches"
    unit: str
    timeout: str  # the timeout or the idle period, as given
    time_format: str | None  # None if there are no rows
    guessed: bool  # whether the format was guessed from the first value
    rows: int  # without the rejected ones
    first: int  # time of the first operation, in units; 0 if there are none
    last: int
    timed_out: int
    times: Times
    pending: int = 0  # timers with deadlines after the end
    rejected: int = 0  # rows
    bad_durations: int = 0  # of them, those whose duration or end cannot be read
    bounds: int = 0  # durations that are only known to be shorter, as <1 s
    units: tuple[tuple[str, str], ...] = ()  # columns of numbers, each with its unit

    @property
    def seconds(self) -> float:
        """The time from the first operation to the last."""
        return (self.last - self.first) / float(10 ** EXPONENTS[self.unit])

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence for each thing that looks wrong."""
        if not self.rows:
            return ("The log has no rows.",)
        step, without_zone, zones = self.times
        ended, is_touches = self.rows - self.pending, self.kind == "touches"
        doubt = f"Are the timeout of {self.timeout} and the unit of the durations right?"
        texts = []
        if is_touches and self.timed_out == ended:
            texts.append(f"No key was touched again within {self.timeout}.")
        elif is_touches and not self.timed_out:
            texts.append(f"No key was silent for {self.timeout}.")
        elif not self.timed_out:
            texts.append(f"No request timed out. {doubt}")
        elif self.timed_out == ended and not is_touches:
            texts.append(f"Every request timed out. {doubt}")
        elif 2 * self.timed_out > ended and not is_touches:
            texts.append(f"{self.timed_out:,} of {self.rows:,} requests timed out. {doubt}")
        for column, unit in self.units:
            if (named := unit_in_name(column) or unit) != unit:
                which = f"Column {column!r} was read in {unit}, and its name says {named}."
                texts.append(f"{which} See --duration-unit and --time-format.")
        if self.bad_durations:
            total = self.rows + self.rejected
            share = digits_text(100 * self.bad_durations / total, 2)
            texts.append(
                f"{self.bad_durations:,} of {total:,} rows ({share}%) were left out because of"
                " their duration. They may be the slow ones."
            )
        if self.bounds:
            texts.append(f"{self.bounds:,} durations, such as <1 s, were read as their bounds.")
        if step is not None:
            texts.append(f"All times are multiples of {step}, which is coarse for {self.timeout}.")
        if without_zone:
            texts.append(
                f"{without_zone:,} of {self.rows:,} times without a zone were read as UTC."
            )
        if zones is not None and zones[0] != zones[1]:
            texts.append(f"The times have different zones, {' to '.join(map(_zone, zones))}.")
        if self.seconds > _YEAR:
            years = f"{self.seconds / _YEAR:,.1f}"
            texts.append(f"The log spans {years} years. Are all times in the same format?")
        return tuple(texts)


def _zone(minutes: int) -> str:
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def time_text(moment: int, unit: str) -> str:
    """Return a time as text, such as `2018-03-24 17:15:20.865`."""
    return str(np.array(moment, f"datetime64[{unit}]")).replace("T", " ")


@dataclass
class Seen:
    """Statistics of some blocks of a log; merging them does not depend on the order."""

    step: int = 0  # the greatest common divisor of the times, in units
    without_zone: int = 0
    least_zone: int = -NO_ZONE - 1
    greatest_zone: int = NO_ZONE
    present: frozenset[str] = frozenset()  # roles with a value
    bad_durations: int = 0  # rows whose duration or end cannot be read
    other_lines: int = 0  # lines that a pattern does not select
    bounds: int = 0  # durations that are only known to be shorter

    def add(self, times: Int64s, zone: npt.NDArray[np.int16]) -> None:
        """Add the times of some rows, and the minutes by which their zones are ahead of UTC."""
        # Usually a few rows already have no common divisor but 1.
        for some in (times[:100], times):
            if self.step != 1:
                self.step = gcd(self.step, int(np.gcd.reduce(some, initial=0)))
        zones = zone[zone != NO_ZONE]
        self.without_zone += len(zone) - len(zones)
        self.least_zone = int(zones.min(initial=self.least_zone))
        self.greatest_zone = int(zones.max(initial=self.greatest_zone))

    def merge(self, other: "Seen") -> None:
        """Add the statistics of other blocks."""
        self.step = gcd(self.step, other.step)
        self.without_zone += other.without_zone
        self.least_zone = min(self.least_zone, other.least_zone)
        self.greatest_zone = max(self.greatest_zone, other.greatest_zone)
        self.present |= other.present
        self.bad_durations += other.bad_durations
        self.other_lines += other.other_lines
        self.bounds += other.bounds

    def times(self, unit: str, timeout: int) -> Times:
        """The properties of all times; `timeout` in units."""
        scale = 10 ** (EXPONENTS["ns"] - EXPONENTS[unit])
        # A step of less than a unit divides all times.
        coarse = [name for name, step in _STEPS.items() if self.step * scale % step == 0]
        step = coarse[-1] if coarse and 10 * _STEPS[coarse[-1]] > timeout * scale else None
        zones = (self.least_zone, self.greatest_zone)
        return Times(step, self.without_zone, zones if zones[0] <= zones[1] else None)
