"""Describe the timers of a trace while it is written: delays, answers, and how many are pending.

The timers are exact: an operation at the deadline comes too late. Each shard is followed operation
by operation; adding shards adds their counts.
"""

# ruff: noqa: ANN001, ANN202  # compiled functions are typed by their arguments
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import starmap
from typing import Any

import numpy as np

from compare.base import quantiles
from compare.traffic.tapes.tape import ARM, CANCEL, START, Tape, id_space_of
from compare.traffic.tapes.units import EXPONENTS, TAPE_UNITS, digits_text, rounded_duration
from timers.arrays import Int64s
from timers.kernels.jit import inlined, long_entry
from timers.kernels.operations import NONE
from timers.limits import LIMIT

QUANTILES = {name: quantiles.QUANTILES[name] for name in ("p50", "p99", "max")}

DIGITS = 11
"""The leading binary digits of a time that are kept: an error below 0.05 %."""
_BINS = (64 - DIGITS) << DIGITS

_TIMER = np.dtype([("armed_at", np.int64), ("deadline", np.int64)], align=True)
"""The last timer with an id. Its deadline is NONE if there is none, or it was answered."""


@dataclass(frozen=True)
class Description:
    """The timers of a trace, or of a shard. Times are in units of the trace."""

    armed: int = 0  # how often a timer was armed
    answered: int = 0  # how often it was then cancelled or re-armed before its deadline
    waited: float = 0.0  # the time for which all of them were pending, up to the last operation
    delay: Mapping[str, int] = field(default_factory=dict)  # quantiles: arming to deadline
    answer: Mapping[str, int] = field(default_factory=dict)  # quantiles: arming to answer

    @property
    def timed_out(self) -> int:
        """The number of timers that reach their deadline, also after the last operation."""
        return self.armed - self.answered

    def lines(self, unit: str, span: int, shards: int) -> dict[str, str]:
        """Text by label, for a trace of `span` units from the first operation to the last."""
        lines = {}
        if unit in TAPE_UNITS and span:
            rate = digits_text(self.armed * 10 ** EXPONENTS[unit] / span, 3)
            lines["rate"] = f"{rate} timers armed per second"
        if span:
            several = " in all shards" * (shards > 1)
            lines["pending"] = f"{digits_text(self.waited / span, 3)} timers on average{several}"
        if self.armed:
            share = self.timed_out / self.armed
            lines["timed out"] = f"{self.timed_out:,} ({share:.1%}) of {self.armed:,} timers armed"
        for label, times in (("delay", self.delay), ("answered", self.answer)):
            if times and unit in TAPE_UNITS:
                texts = {name: rounded_duration(time, unit) for name, time in times.items()}
                lines[label] = ", ".join(f"{name} {text}" for name, text in texts.items())
                if len(set(times.values())) == 1:
                    lines[label] = f"always {texts['max']}"
        return lines


@dataclass(frozen=True)
class Counts:
    """The counts from which a description is made: those of shards can be added."""

    armed: int
    answered: int
    waited: float
    delays: "Distribution"
    answers: "Distribution"


@dataclass(frozen=True)
class Distribution:
    """The number of times in each bin (see `_bin`), and the shortest and the longest time."""

    bins: list[int]  # that are not empty, ascending
    counts: list[int]
    shortest: int
    longest: int


def described(shards: Iterable[Counts]) -> Description:
    """Add the counts of shards."""
    known = [counts for counts in shards if counts.armed]
    return Description(
        armed=sum(counts.armed for counts in known),
        answered=sum(counts.answered for counts in known),
        waited=math.fsum(counts.waited for counts in known),
        delay=_quantiles([counts.delays for counts in known]),
        answer=_quantiles([counts.answers for counts in known if counts.answered]),
    )


def counts_from(entry: Mapping[str, Any]) -> Counts:
    """The inverse of `asdict`."""
    both = {name: Distribution(**entry[name]) for name in ("delays", "answers")}
    return Counts(**{**entry, **both})


def _quantiles(parts: list[Distribution]) -> dict[str, int]:
    if not parts:
        return {}
    counts = np.zeros(_BINS, np.int64)
    for distribution in parts:
        counts[distribution.bins] += distribution.counts
    shortest = min(distribution.shortest for distribution in parts)
    longest = max(distribution.longest for distribution in parts)
    upto = np.cumsum(counts)
    found = {}
    for name, share in QUANTILES.items():
        place = int(np.searchsorted(upto, math.ceil(share * int(upto[-1]))))
        shift = max((place >> DIGITS) - 1, 0)
        lowest = (place - (shift << DIGITS)) << shift
        is_last = upto[place] == upto[-1]
        found[name] = longest if is_last else max(lowest, shortest)
    return found


class Describer:
    """Follows the operations of a shard. Memory: 16 bytes for each id, and 2 MB."""

    def __init__(self) -> None:
        self._timers = np.empty(0, _TIMER)  # by id
        self._totals = np.zeros(3)  # armed, answered and waited, exact up to 2**53
        # Of delays and of answers: the bins, and the shortest and the longest time.
        self._bins = [np.zeros(_BINS, np.int64) for _ in range(2)]
        self._ends = (LIMIT, 0, LIMIT, 0)
        self._last = 0

    def add(self, tape: Tape) -> None:
        """Add the next operations. O(n)."""
        if (more := id_space_of(tape) - len(self._timers)) > 0:
            none = np.array([(0, NONE)], _TIMER)
            self._timers = np.concatenate([self._timers, none.repeat(more)])
        self._ends = _follow(*tape, self._timers, self._totals, *self._bins, self._ends)
        if tape.time.size:
            self._last = int(tape.time[-1])

    def counts(self) -> Counts:
        """The counts of the operations so far. O(ids)."""
        armed, answered, waited = self._totals.tolist()
        pending = self._timers[self._timers["deadline"] != NONE]
        ends = np.clip(pending["deadline"], pending["armed_at"], self._last)
        waited += float((ends - pending["armed_at"]).sum(dtype=float))
        both = zip(self._bins, (self._ends[:2], self._ends[2:]), strict=True)
        return Counts(int(armed), int(answered), waited, *starmap(_distribution, both))


def _distribution(counts: Int64s, ends: tuple[int, int]) -> Distribution:
    bins = np.flatnonzero(counts)
    return Distribution(bins.tolist(), counts[bins].tolist(), *map(int, ends))


@inlined
def _bin(time):
    """The place of a time among bins that keep DIGITS + 1 digits; short times have one each."""
    if time < 2 << DIGITS:
        return time
    if time >= 1 << 53:
        time &= ~0x7FF  # so that the conversion does not round up
    # A float has an exponent and leading digits, as a bin does.
    return (np.float64(time).view(np.int64) >> (52 - DIGITS)) - ((1022 + DIGITS) << DIGITS)


@long_entry
def _follow(time, op, ids, deadline, timers, totals, delays, answers, ends):
    """Follow the operations; return the least and the greatest delay, and those of the answers."""
    armed, answered, waited = totals
    least_delay, greatest_delay, least_answer, greatest_answer = ends
    for k in range(time.size):
        now, kind, timer = time[k], op[k], timers[ids[k]]
        armed_at, due = timer["armed_at"], timer["deadline"]
        if kind == START:  # it leaves the former timer alone
            if due != NONE:
                waited += max(due - armed_at, 0)
        elif due > now:  # an answer
            wait = now - armed_at
            answers[_bin(wait)] += 1
            least_answer, greatest_answer = min(least_answer, wait), max(greatest_answer, wait)
            answered += 1
            waited += wait
            timer["deadline"] = NONE
            if kind == CANCEL:
                continue
        elif kind != ARM:
            continue
        elif due != NONE:
            waited += max(due - armed_at, 0)
        delay = max(deadline[k] - now, 0)
        delays[_bin(delay)] += 1
        least_delay, greatest_delay = min(least_delay, delay), max(greatest_delay, delay)
        armed += 1
        timer["armed_at"], timer["deadline"] = now, deadline[k]
    totals[0], totals[1], totals[2] = armed, answered, waited
    return least_delay, greatest_delay, least_answer, greatest_answer
