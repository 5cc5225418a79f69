"""Describe the timers of a trace while it is written: delays, answers, and how many are pending.

The timers are exact: an operation at the deadline comes too late. Each shard is followed operation
by operation; adding shards adds their counts.

A timer that is not answered in time is answered late, silent (its deadline comes by the end, and no
answer does) or pending at the end. An answer is a cancel, a re-arm or the next arm. A tape has some
late answers; the log that it was made from has all of them.
"""

# ruff: noqa: ANN001, ANN202  # compiled functions are typed by their arguments
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from compare.base import formats, quantiles
from compare.traffic.tapes.tape import ARM, CANCEL, START, Tape, id_space_of
from compare.traffic.tapes.units import (
    EXPONENTS,
    TAPE_UNITS,
    digits_text,
    parse_duration,
    rounded_duration,
)
from timers.arrays import Int64s
from timers.kernels.jit import inlined, long_entry
from timers.kernels.memory import is_reserved, lengthened, zeros
from timers.kernels.operations import NONE
from timers.limits import LIMIT

QUANTILES = {name: quantiles.QUANTILES[name] for name in ("p50", "p99", "p999", "max")}

TIMEOUTS = (
    *("1ms", "2ms", "5ms", "10ms", "20ms", "50ms", "100ms", "200ms", "500ms"),
    *("1s", "2s", "5s", "10s", "20s", "30s", "1min", "2min", "5min", "10min"),
)
"""The timeouts for which a description says how many answers they would cut."""

DIGITS = 11
"""The leading binary digits of a time that are kept: an error below 0.05 %."""
_BINS = (64 - DIGITS) << DIGITS

_TIMER = np.dtype([("armed_at", np.int64), ("deadline", np.int64)], align=True)
"""The last timer with an id. Its deadline is NONE if there is none, or it was answered."""
_TIMERS = 1 << 10
"""Timers at first. A trace may have thousands of shards with few."""


@dataclass(frozen=True)
class Description:
    """The timers of a trace, or of a shard. Times are in units of the trace."""

    armed: int = 0  # how often a timer was armed
    answered: int = 0  # how often it was answered before its deadline
    waited: float = 0.0  # the time for which all of them were pending, up to the last operation
    delay: Mapping[str, int] = field(default_factory=dict)  # quantiles: arming to deadline
    answer: Mapping[str, int] = field(
        default_factory=dict
    )  # quantiles: arming to answer, also late
    late: int = 0  # how often it was answered at its deadline or later
    pending: int = 0  # how many deadlines come after the end
    #: timeout -> the number of answers that take at least as long
    cut: Mapping[str, int] = field(default_factory=dict)
    complete: bool = False  # whether all late answers are known

    @property
    def timed_out(self) -> int:
        """The number of timers that reach their deadline by the end."""
        return self.armed - self.answered - self.pending

    def shares(self) -> dict[str, float]:
        """The share of the answers that each timeout would cut."""
        answers = max(self.answered + self.late, 1)
        return {timeout: count / answers for timeout, count in self.cut.items()}

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
            timers = f"{self.armed:,} timer{'s' * (self.armed > 1)} armed"
            lines["timed out"] = f"{self.timed_out:,} of {timers}"
            if self.timed_out:
                share = formats.share(self.timed_out / self.armed)
                lines["timed out"] += f" ({share})"
                if self.complete:
                    silent = self.timed_out - self.late
                    lines["timed out"] += (
                        f": {self.late:,} answered later, {silent:,} not by the end"
                    )
        if self.pending:
            lines["at the end"] = (
                "1 timer pending, with a deadline after the end"
                if self.pending == 1
                else f"{self.pending:,} timers pending, with deadlines after the end"
            )
        for label, times in (("delay", self.delay), ("answered", self.answer)):
            if times and unit in TAPE_UNITS:
                lines[label] = ", ".join(
                    f"{quantiles.title(name)} {rounded_duration(time, unit)}"
                    for name, time in times.items()
                )
                if len(set(times.values())) == 1:
                    lines[label] = f"always {rounded_duration(times['max'], unit)}"
        if self.cut:
            lines["timeout"] = self.cut_text()
        return lines

    def cut_text(self) -> str:
        """The share of the answers that each timeout cuts, up to the first that cuts none."""
        # Of timeouts that cut as many, the last; of those that cut none, the first.
        shown: dict[str, str] = {}
        for timeout, share in self.shares().items():
            shown[formats.share(share) if share else "none"] = timeout
            if not share:
                break
        (text, timeout), *others = shown.items()
        texts = [f"{timeout} cuts {text} of the answers"]
        texts += [f"{timeout} {text}" for text, timeout in others]
        known = "" if self.complete else "; answers after the deadline are not known"
        return ", ".join(texts) + known


class Late(NamedTuple):
    """Late answers that a log has and the tape lacks."""

    waits: Int64s  # arming to answer
    until: int  # the last time in the log so far


@dataclass(frozen=True)
class Distribution:
    """The number of times in each bin (see `_bin`), and the shortest and the longest time."""

    bins: list[int]  # that are not empty, ascending
    counts: list[int]
    shortest: int
    longest: int

    def at_least(self, *times: int) -> list[int]:
        """How many are as long as each of these times. Those up to 0.05 % shorter may count."""
        longest = _shortest(np.array(self.bins, np.int64) + 1) - 1
        before = np.cumsum([0, *self.counts])
        counts: list[int] = (before[-1] - before[np.searchsorted(longest, times)]).tolist()
        return counts


@dataclass(frozen=True)
class Counts:
    """The counts from which a description is made: those of shards can be added."""

    armed: int
    answered: int
    late: int
    waited: float
    end: int  # the last time of the tape, or of the log
    complete: bool  # whether all late answers are known
    delays: Distribution
    answers: Distribution
    pending: Distribution  # from the end to deadlines after it


def described(shards: Iterable[Counts], unit: str) -> Description:
    """Add the counts of shards.

    Shards may end at different times. A shard's pending timers are those after the last end. If
    that is 4096 units or more after the shard's own, it may be up to 0.05 % of the difference off.
    """
    known = [counts for counts in shards if counts.armed]
    if not known:
        return Description()
    end = max(counts.end for counts in known)
    delays = _added([counts.delays for counts in known])
    answers = _added([counts.answers for counts in known])
    complete = all(counts.complete for counts in known)
    timeouts = {}
    for text in TIMEOUTS if unit in TAPE_UNITS and answers.bins else ():
        units, rest = divmod(parse_duration(text, "ns"), 10 ** (9 - EXPONENTS[unit]))
        # A tape may lack answers after the deadline.
        if not rest and (complete or units < delays.longest):
            timeouts[text] = units
    return Description(
        armed=sum(counts.armed for counts in known),
        answered=sum(counts.answered for counts in known),
        waited=math.fsum(counts.waited for counts in known),
        delay=_quantiles(delays),
        answer=_quantiles(answers),
        late=sum(counts.late for counts in known),
        pending=sum(counts.pending.at_least(end - counts.end + 1)[0] for counts in known),
        cut=dict(zip(timeouts, answers.at_least(*timeouts.values()), strict=True)),
        complete=complete,
    )


def counts_from(entry: Mapping[str, Any]) -> Counts:
    """The inverse of `asdict`."""
    names = "delays", "answers", "pending"
    return Counts(**{**entry, **{name: Distribution(**entry[name]) for name in names}})


def _added(parts: list[Distribution]) -> Distribution:
    counts = np.zeros(_BINS, np.int64)
    for part in parts:
        counts[np.array(part.bins, np.int64)] += np.array(part.counts, np.int64)
    ends = min(part.shortest for part in parts), max(part.longest for part in parts)
    return _distribution(counts, ends)


def _quantiles(times: Distribution) -> dict[str, int]:
    upto = np.cumsum(times.counts)
    found = {}
    for name, share in QUANTILES.items() if times.bins else ():
        place = int(np.searchsorted(upto, math.ceil(share * int(upto[-1]))))
        shortest = int(_shortest(np.array(times.bins[place])))
        is_last = place == len(times.bins) - 1
        found[name] = times.longest if is_last else max(shortest, times.shortest)
    return found


def _shortest(bins: Int64s) -> Int64s:
    """The shortest time of each bin: the inverse of `_bin`. That after the last bin wraps."""
    shift = np.maximum((bins >> DIGITS) - 1, 0)
    shortest: Int64s = (bins - (shift << DIGITS)) << shift
    return shortest


class Describer:
    """Follows the operations of a shard. Memory: 16 bytes for each id, and up to 3 MB."""

    def __init__(self) -> None:
        self._timers = zeros(_TIMERS, _TIMER)  # by id
        self._timers["deadline"] = NONE
        self._totals = np.zeros(4)  # armed, answered, late and waited, exact up to 2**53
        # Of delays and of answers: the bins, and the shortest and the longest time.
        self._bins = [np.zeros(_BINS, np.int64) for _ in range(2)]
        self._ends = (LIMIT, 0, LIMIT, 0)
        self._last = self._until = 0
        self._complete = False

    def add(self, tape: Tape, late: Late | None = None) -> None:
        """Add the next operations, and late answers that they lack. O(n)."""
        known, needed = len(self._timers), id_space_of(tape)
        if needed > known:
            former = self._timers
            # Without reserved addresses it is copied, so twice as much is taken at once.
            self._timers = lengthened(former, needed if is_reserved(former) else 2 * needed)
            if self._timers.base is not former.base:
                self._timers[:known] = former
            self._timers["deadline"][known:] = NONE
        self._ends = _follow(*tape, self._timers, self._totals, *self._bins, self._ends)
        if tape.time.size:
            self._last = int(tape.time[-1])
        if late is not None:
            self._complete, self._until = True, max(self._until, late.until)
            self._totals[2] += late.waits.size
            answers = _count(late.waits, self._bins[1], *self._ends[2:])
            self._ends = (*self._ends[:2], *answers)

    def counts(self) -> Counts:
        """The counts of the operations so far. O(ids)."""
        armed, answered, late, waited = self._totals.tolist()
        pending = self._timers[self._timers["deadline"] != NONE]
        ends = np.clip(pending["deadline"], pending["armed_at"], self._last)
        waited += float((ends - pending["armed_at"]).sum(dtype=float))
        end, bins = max(self._last, self._until), np.zeros(_BINS, np.int64)
        after = pending["deadline"][pending["deadline"] > end] - end
        rest = _distribution(bins, _count(after, bins, LIMIT, 0))
        delays, answers = (
            _distribution(bins, ends)
            for bins, ends in zip(self._bins, (self._ends[:2], self._ends[2:]), strict=True)
        )
        whole = int(armed), int(answered), int(late)
        return Counts(*whole, waited, end, self._complete, delays, answers, rest)


def _distribution(counts: Int64s, ends: tuple[int, int]) -> Distribution:
    shortest, longest = map(int, ends)
    first = _bin_of(shortest)
    # A shard may have few of the many bins.
    bins = first + np.flatnonzero(counts[first : _bin_of(longest) + 1])
    return Distribution(bins.tolist(), counts[bins].tolist(), shortest, longest)


def _bin_of(time: int) -> int:
    """`_bin` in Python, which would have to be compiled for a call.

    >>> times = 0, 4095, 4096, 10**9, 2**62
    >>> [_bin_of(time) for time in times] == [_bin.py_func(np.int64(time)) for time in times]
    True
    """
    shift = max(time.bit_length() - 1 - DIGITS, 0)
    return (shift << DIGITS) + (time >> shift)


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
    armed, answered, late, waited = totals
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
        elif due != NONE:  # a late answer
            wait = now - armed_at
            answers[_bin(wait)] += 1
            least_answer, greatest_answer = min(least_answer, wait), max(greatest_answer, wait)
            late += 1
            waited += max(due - armed_at, 0)
            timer["deadline"] = NONE
            if kind != ARM:
                continue
        elif kind != ARM:
            continue
        delay = max(deadline[k] - now, 0)
        delays[_bin(delay)] += 1
        least_delay, greatest_delay = min(least_delay, delay), max(greatest_delay, delay)
        armed += 1
        timer["armed_at"], timer["deadline"] = now, deadline[k]
    totals[0], totals[1], totals[2], totals[3] = armed, answered, late, waited
    return least_delay, greatest_delay, least_answer, greatest_answer


@long_entry
def _count(times, bins, least, greatest):
    """Count times in bins; return the least and the greatest, those given included."""
    for k in range(times.size):
        bins[_bin(times[k])] += 1
        least, greatest = min(least, times[k]), max(greatest, times[k])
    return least, greatest
