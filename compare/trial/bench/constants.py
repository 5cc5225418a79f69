"""What the calls of a timer cost: a few constants, fitted to replays of steady traffic.

A call costs a constant and a share for each timer in it, and the passage of time costs something,
too. So a second of traffic costs

    pair * timers cancelled + fire * timers that fire + step * steps of the clock
    + call * calls of batch forms + firing * steps in which a timer fires
    + moment * units of time at which a timer is due + unit * units of time

where a start is part of what ends it, and the clock moves to each step in which something happens.
How many of each a replay has is counted in its tape. At each number of pending timers, traffic is
replayed whose rate is such that a fraction of a timer, one, or many start in a unit of time, of
which all or none is cancelled, with short and long steps of the clock. The constants, none below 0,
are those with the least squares of the relative differences.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from compare.traffic.tapes.tape import REARM, START
from compare.trial.bench.replays import REPLAYS, seconds_of
from compare.trial.bench.steady import PERIODIC, RANDOM, Steady, Traffic, steady
from compare.trial.replay.contestant import Contestant
from compare.trial.replay.engine import OverBudgetError

PENDING = (10, 1_000, 30_000, 300_000)
"""Timers pending in the replays."""

PENDING_CALLS = (10, 1_000, 10_000)
"""The same of services and event loops, which keep a call for each timer."""

GROUPS = (0.03, 1, 30, 1_000)
"""Timers that start in a unit of time."""

LONG_STEP = 100
"""Units in a long step of the clock; not with the largest of GROUPS."""

LIVES = (10, 10_000_000)
"""The shortest and the longest mean life of a timer in the replays, in units."""

LATE = 20
"""The timeout of timers that are cancelled, as a multiple of their life."""

TIMERS = 2_000
"""Timers that start in a replay, at least."""

TIMERS_COMPILED = 20_000
"""The same where a timer takes nanoseconds."""

FEWEST_STEPS = 8
"""Steps of the clock in a replay, at least."""

LIMIT = 0.5
"""CPU seconds for a replay, and for what fills the timer before."""


class Constants(NamedTuple):
    """CPU time, in ns; or how many of each some traffic has. See the module's formula."""

    pair: float
    fire: float
    step: float
    call: float
    firing: float
    moment: float
    unit: float


class Fit(NamedTuple):
    """The constants of a timer for a caller, with so many timers pending."""

    constants: Constants
    error: float  #: relative: of what they say of the replays that they were fitted to


def designs(pending: int, kind: str = RANDOM) -> list[Traffic]:
    """The traffic that is replayed with so many pending timers."""
    found = []
    for group in GROUPS:
        life, rate = pending / group, group * 1_000
        for step in (1, LONG_STEP) if group < GROUPS[-1] else (1,):
            if LIVES[0] * step <= life <= LIVES[1]:
                found.append(Traffic(rate, life, 0.0, 0.0, kind, step))
            if kind != PERIODIC and life <= LIVES[1] and (step == 1 or life >= step):
                found.append(Traffic(rate, max(LATE * life, LIVES[0]), 1.0, life, kind, step))
    return found


@lru_cache(maxsize=2)
def made_for(traffic: Traffic, timers: int, seed: int) -> Steady:
    """The tape of a design: every contestant, and callers with as many timers, replay the same."""
    return steady(traffic, timers, seed)


def counted(made: Steady) -> Constants:
    """How many of each the operations after the first ones have."""
    time, op, _, _ = (column[made.first :] for column in made.tape)
    ended = int(np.count_nonzero(op != START))
    starts = op.size - ended
    fires = starts if (op == REARM).any() else max(starts - ended, 0)
    calls = sum(np.unique(time[op == each]).size for each in np.unique(op))
    span = int(time[-1]) if time.size else 0
    steps = np.unique(time).size
    return Constants(ended, fires, steps, calls, made.firing, made.moments, span)


def fitted(rows: Sequence[Constants], seconds: Sequence[Sequence[float]]) -> Fit:
    """The constants, from the counts and the samples of each replay."""
    middle = np.array([median(samples) for samples in seconds])
    matrix = np.array(rows, float) / (1e9 * middle[:, None])
    found = _least_squares(matrix, np.ones(len(rows)))
    misfit = float(np.sqrt(np.mean((matrix @ found - 1) ** 2)))
    noise = median(max(samples) / min(samples) - 1 for samples in seconds) / 2
    return Fit(Constants(*found.tolist()), math.hypot(misfit, noise))


def _least_squares(matrix: Any, wanted: Any) -> Any:
    """Least squares with no negative part: Lawson and Hanson (1974), chapter 23."""
    size = matrix.shape[1]
    found, free = np.zeros(size), np.zeros(size, bool)
    scale = np.maximum(np.sqrt((matrix**2).sum(0)), 1e-300)
    matrix = matrix / scale
    for _ in range(10 * size):
        slope = matrix.T @ (wanted - matrix @ found)
        slope[free] = -math.inf
        if slope.max() <= 1e-9:
            break
        free[slope.argmax()] = True
        while True:
            trial = np.zeros(size)
            trial[free] = np.linalg.lstsq(matrix[:, free], wanted, rcond=None)[0]
            below = free & (trial <= 0)
            if not below.any():
                break
            part = (found[below] / np.maximum(found[below] - trial[below], 1e-300)).min()
            found = found + part * (trial - found)
            free &= found > 1e-12
            found[~free] = 0.0
        found = trial
    return found / scale


Everyone = Mapping[str, Mapping[str, Contestant | None]]
"""Caller -> label -> contestant; None for an event loop's own timers."""


def fits(
    everyone: Everyone, pending: int, kind: str, repeats: int, seed: int = 0, limit: float = LIMIT
) -> dict[tuple[str, str], Fit]:
    """The constants by caller and label, measured in turns with so many timers pending.

    Those of which a replay takes longer than `limit` CPU seconds are left out.
    """
    rows = defaultdict[str, list[Constants]](list)
    seconds = defaultdict[tuple[str, str], list[list[float]]](list)
    over = set[tuple[str, str]]()
    for traffic in designs(pending, kind):
        for caller, contestants in everyone.items():
            made = made_for(traffic, timers_in(caller, traffic), seed)
            rows[caller].append(counted(made))
            for label in contestants:
                seconds[caller, label].append([])
            for _ in range(repeats):
                for label, each in contestants.items():
                    if (caller, label) not in over:
                        try:
                            spent = seconds_of(REPLAYS[caller], each, made, limit)
                        except OverBudgetError:
                            over.add((caller, label))
                        else:
                            seconds[caller, label][-1].append(max(spent, 1e-9))
    return {
        key: fitted(rows[key[0]], samples) for key, samples in seconds.items() if key not in over
    }


def sizes_of(caller: str) -> tuple[int, ...]:
    """The numbers of pending timers at which a caller is measured."""
    return PENDING_CALLS if caller in ("system-timer", "asyncio") else PENDING


def timers_in(caller: str, traffic: Traffic) -> int:
    """Timers that start in a replay of a design."""
    least = TIMERS_COMPILED if caller == "compiled" else TIMERS
    return max(least, round(traffic.rate * traffic.step * FEWEST_STEPS / 1_000))
