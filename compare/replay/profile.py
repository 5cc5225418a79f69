"""What a trace says before any comparison: its delays, its answers, and what its timers cost."""

from typing import NamedTuple

import numpy as np

from compare.replay.contestant import COMPILED, contestant
from compare.replay.engine import OverBudgetError, first_time, replay
from compare.tapes.tape import CANCEL, START, Tape, id_space_of, joined, part
from compare.tapes.trace import Trace
from compare.tapes.units import EXPONENTS, TAPE_UNITS
from timers.arrays import Int64s
from timers.registry import TIMERS

SAMPLE = 1 << 20
"""Operations at the beginning of the first shard that are looked at."""

BUDGET = 1.0
"""Seconds that the replays of all schemes may take together."""

QUANTILES = {"p50": 0.5, "p99": 0.99, "max": 1.0}

Quantiles = dict[str, int]
"""Name of a quantile -> a time in units of the trace."""


class Profile(NamedTuple):
    """Facts about the first SAMPLE operations of a trace."""

    delay: Quantiles  # from arming a timer to its deadline
    answered: Quantiles  # from arming a timer to its cancel or next re-arm; empty if there are none
    cost: dict[str, float | None]  # seconds of a core per second of the trace; None: over budget


def profile(trace: Trace) -> Profile | None:
    """Look at the beginning of a trace, and replay it through every scheme with its default tick.

    Of a trace in several shards, it looks at the shard with the most operations.

    Returns None if the trace has no operations, its unit is not a duration, or all its operations
    have the same time. Takes about BUDGET seconds.
    """
    if trace.unit not in TAPE_UNITS or not trace.span:
        return None
    tape = _beginning(trace)
    seconds = (int(tape.time[-1]) - int(tape.time[0])) / 10 ** EXPONENTS[trace.unit]
    if not seconds:
        return None
    armed = tape.op != CANCEL
    delays = (tape.deadline - tape.time)[armed]
    return Profile(_quantiles(delays), _quantiles(waits(tape)), _costs(trace.unit, tape, seconds))


def waits(tape: Tape) -> Int64s:
    """Return the times from arming to the cancel or re-arm of the timers that have one.

    A timer whose deadline has passed is not pending, so an arm starts a new one. O(n log n).
    """
    order = np.argsort(tape.id, kind="stable")
    time, op, ids, deadline = (column[order] for column in tape)
    ended = (ids[1:] == ids[:-1]) & (op[:-1] != CANCEL) & (op[1:] != START)
    ended &= time[1:] < deadline[:-1]
    times: Int64s = (time[1:] - time[:-1])[ended]
    return times


def _beginning(trace: Trace) -> Tape:
    largest = max(range(len(trace.shards)), key=lambda shard: trace.shards[shard].rows)
    pieces: list[Tape] = []
    for piece in trace.pieces(largest):
        pieces.append(piece)
        if sum(read.time.size for read in pieces) >= SAMPLE:
            break
    return part(joined(pieces), 0, SAMPLE)


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
    order = sorted(map(contestant, TIMERS), key=lambda timer: timer.engine != COMPILED)
    for number, timer in enumerate(order):
        # A tick of 100 ms, the default, is not a whole number of seconds.
        fitting = contestant(f"{timer.name}/tick=1s") if timer.tick and unit == "s" else timer
        limit = left / (len(order) - number)
        try:
            new = fitting.new(unit, first_time(tape))
            spent = replay(new, tape, id_space_of(tape), limit=limit).outcome.seconds
            costs[timer.name] = spent / seconds
        except OverBudgetError:
            spent = limit
        left -= spent
    return costs
