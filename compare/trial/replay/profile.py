"""What a trace says before any comparison: its delays, its answers, and what its timers cost."""

from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from compare.traffic.tapes.tape import CANCEL, REARM, START, Tape, id_space_of
from compare.traffic.tapes.trace import Trace
from compare.traffic.tapes.units import (
    EXPONENTS,
    TAPE_UNITS,
    digits_text,
    duration_text,
    rounded_duration,
)
from compare.trial.replay.contestant import COMPILED, TICK, Contestant
from compare.trial.replay.engine import OverBudgetError, first_time, replay
from timers.arrays import Bools, Int64s
from timers.kernels.operations import NONE
from timers.registry import TIMERS
from timers.rounding import Direction, Rounding

SAMPLE = 1 << 20
"""Operations at the beginning of the first shard that are looked at."""

BUDGET = 1.0
"""Seconds that the replays of all schemes may take together."""

ROUNDED: dict[Direction, str] = {"down": "hierarchical-wheel", "up": "hashed-wheel"}
"""How a tick rounds deadlines -> a scheme that does so."""

QUANTILES = {"p50": 0.5, "p99": 0.99, "max": 1.0}

Quantiles = dict[str, int]
"""Name of a quantile -> a time in units of the trace."""


class Profile(NamedTuple):
    """Facts about the first SAMPLE operations of a trace, for timers that are exact."""

    delay: Quantiles  # from arming a timer to its deadline
    answered: Quantiles  # from arming a timer to its cancel or next re-arm; empty if there are none
    cost: dict[str, float | None]  # seconds of a core per second of the trace; None: over budget
    rate: float  # timers armed per second of the trace
    most_pending: int  # at once
    timed_out: float  # share of the timers whose outcome is in the sample
    # Direction of rounding -> the coarsest tick that changes no outcome, in units; 0: none.
    ticks: dict[str, int]


def profile_text(profile: Profile, unit: str, shards: int) -> dict[str, str]:
    """The lines of the profile of a trace in a number of shards, by label."""
    shard = " of the largest shard" * (shards > 1)
    lines = {
        "rate": f"{digits_text(profile.rate, 3)} timers armed per second{shard}",
        "pending": f"at most {profile.most_pending:,} at once",
        "timed out": f"{profile.timed_out:.1%} of the times that a timer was armed",
    }
    for label, quantiles in (("delay", profile.delay), ("answered", profile.answered)):
        texts = [f"{name} {rounded_duration(time, unit)}" for name, time in quantiles.items()]
        if len(set(quantiles.values())) == 1:
            texts = [f"always {rounded_duration(quantiles['max'], unit)}"]
        if texts:
            lines[label] = ", ".join(texts)
    known = {name: cost for name, cost in profile.cost.items() if cost is not None}
    lowest, trace_unit = min(known.values(), default=1.0), unit
    unit = next((name for name in TAPE_UNITS[::-1] if lowest * 10 ** EXPONENTS[name] >= 1), "ns")
    ascending = sorted(known.items(), key=itemgetter(1))
    costs = [f"{timer} {digits_text(cost * 10 ** EXPONENTS[unit], 2)}" for timer, cost in ascending]
    over = [f"{timer} over budget" for timer in profile.cost if timer not in known]
    per = f"{unit} of a core per second of traffic{shard}"
    lines["cost"] = f"{per}: {', '.join(costs + over)}"
    ticks = [
        f"in {scheme} (rounds {direction}) "
        + (f"up to {duration_text(tick, trace_unit)}" if tick else "at no tick")
        for (direction, scheme), tick in zip(ROUNDED.items(), profile.ticks.values(), strict=True)
    ]
    lines["tick"] = f"the same timers time out {'; '.join(ticks)}"
    return lines


def profile(trace: Trace) -> Profile | None:
    """Look at the beginning of a trace, and replay it through every scheme with its default tick.

    Of a trace in several shards, it looks at the shard with the most operations.

    Returns None if the trace has no operations, its unit is not a duration, or all its operations
    have the same time. Takes about BUDGET seconds.
    """
    if trace.unit not in TAPE_UNITS or not trace.span:
        return None
    largest = max(range(len(trace.shards)), key=lambda shard: trace.shards[shard].rows)
    tape = trace.beginning(SAMPLE, largest)
    seconds = (int(tape.time[-1]) - int(tape.time[0])) / 10 ** EXPONENTS[trace.unit]
    if not seconds:
        return None
    timers = armings(tape)
    answered = timers.answered(Rounding())
    is_whole = tape.time.size == trace.shards[largest].rows
    known = answered | (timers.deadline <= tape.time[-1]) | is_whole
    return Profile(
        delay=_quantiles(timers.deadline - timers.armed_at),
        answered=_quantiles((timers.next_at - timers.armed_at)[answered]),
        cost=_costs(trace.unit, tape, seconds),
        rate=timers.armed_at.size / seconds,
        most_pending=most_pending(tape, timers, answered),
        timed_out=1 - float(answered.sum() / max(known.sum(), 1)),
        ticks={direction: coarsest_tick(timers, direction) for direction in ROUNDED},
    )


class Armings(NamedTuple):
    """The operations of a tape that arm a timer, as arrays of one length."""

    operation: Int64s  # the number of the operation
    armed_at: Int64s
    deadline: Int64s
    next: Int64s  # the number of the next operation on the timer, or NONE
    next_at: Int64s  # its time

    def answered(self, rounding: Rounding) -> Bools:
        """Which timers are cancelled or re-armed before they fire. The others time out."""
        due = rounding.due_at(self.deadline, self.armed_at)
        return np.asarray((self.next != NONE) & (self.next_at < due))


def armings(tape: Tape) -> Armings:
    """Find what is armed in a tape, and what becomes of it on exact timers. O(n log n)."""
    order = np.argsort(tape.id, kind="stable")
    time, op, ids, deadline = (np.append(column[order], NONE) for column in tape)
    # A start leaves the former timer with its id alone.
    follows = (ids[1:] == ids[:-1]) & (op[1:] != START)
    idle = np.concatenate([[True], ~(follows & (op[:-1] != CANCEL) & (time[1:] < deadline[:-1]))])
    # A re-arm does nothing after a cancel, an expiry or a re-arm that does nothing.
    nothing = idle & (op == REARM)
    while (more := (op[1:] == REARM) & nothing[:-1] & follows & ~nothing[1:]).any():
        nothing[1:] |= more
    place = np.flatnonzero((op[:-1] != CANCEL) & ~nothing[:-1])
    following = np.where(follows, np.append(order[1:], NONE), NONE)
    columns = (order, time[:-1], deadline[:-1], following, time[1:])
    return Armings(*(column[place] for column in columns))


def coarsest_tick(timers: Armings, direction: Direction) -> int:
    """The tick up to which the same timers time out as without rounding, in units; 0 for none.

    Ticks are 1, 2 or 5 times a power of ten, up to the longest delay. The moments are those of
    `Rounding`. If no outcome changes with the operations that act on an exact timer, then the same
    operations act on the other one.
    """
    followed = timers.next != NONE
    # Only a timer this close to the next operation on it may fire on the other side of that.
    gap = np.abs(timers.next_at - np.maximum(timers.deadline, timers.armed_at))
    longest = int((timers.deadline - timers.armed_at).max())
    coarsest = 0
    for tick in (digit * 10**power for power in range(19) for digit in (1, 2, 5)):
        near = followed & (gap <= tick)
        some = Armings(*(column[near] for column in timers))
        outcomes = some.answered(Rounding(direction, tick)), some.answered(Rounding())
        if tick > longest or not np.array_equal(*outcomes):
            break
        coarsest = tick
    return coarsest


def most_pending(tape: Tape, timers: Armings, answered: Bools) -> int:
    """The largest number of exact timers that are pending at once."""
    due = np.searchsorted(tape.time, timers.deadline[~answered])
    left = np.maximum(due, timers.operation[~answered] + 1)
    change = np.bincount(timers.operation, minlength=tape.time.size + 1)
    change -= np.bincount(np.concatenate([timers.next[answered], left]), minlength=change.size)
    return int(np.cumsum(change).max())


def _quantiles(times: Int64s) -> Quantiles:
    if not times.size:
        return {}
    values = np.quantile(times, list(QUANTILES.values()), method="inverted_cdf")
    return dict(zip(QUANTILES, map(int, values), strict=True))


def _costs(unit: str, tape: Tape, seconds: float) -> dict[str, float | None]:
    """The cost of each scheme, in the order of the registry."""
    costs: dict[str, float | None] = dict.fromkeys(TIMERS)
    left = BUDGET
    # Timers without a kernel are the slowest, and get what the others leave.
    order = sorted(map(Contestant, TIMERS), key=lambda timer: timer.engine != COMPILED)
    for number, timer in enumerate(order):
        # A tick of 100 ms, the default, is not a whole number of seconds.
        fitting = replace(timer, settings={TICK: "1s"}) if timer.tick and unit == "s" else timer
        limit = left / (len(order) - number)
        try:
            new = fitting.new(unit, first_time(tape))
            spent = replay(new, tape, id_space_of(tape), limit=limit).outcome.seconds
            costs[timer.name] = spent / seconds
        except OverBudgetError:
            spent = limit
        left -= spent
    return costs
