"""What the calls of a timer cost: a few constants, fitted to replays of steady traffic.

A call costs a constant and a share for each timer in it, and the passage of time costs something,
too. So a second of traffic costs

    pair * timers cancelled + fire * timers that fire + step * steps of the clock
    + call * calls of batch forms + firing * steps in which a timer fires
    + moment * units of time at which a timer is due + unit * units of time

where a start is part of what ends it, and the clock moves to each step in which something happens.
How many of each a replay has is counted in its tape. At each number of pending timers, traffic is
replayed that is spread over the whole range: rates, shares that are cancelled, times to the answer,
steps of the clock. The constants, none below 0, are those with the least squares of the relative
differences. The error that is stated with them is that of replays that they were not fitted to.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from compare.traffic.tapes.tape import REARM, START
from compare.trial.bench.replays import THREADS, replay_of, seconds_of
from compare.trial.bench.steady import (
    KEEPALIVE,
    ONE,
    PERIODIC,
    RANDOM,
    Steady,
    Traffic,
    steady,
)
from compare.trial.replay.contestant import Contestant
from compare.trial.replay.engine import OverBudgetError

PENDING = (1, 10, 100, 1_000, 30_000, 300_000)
"""Timers pending in the replays."""

PENDING_CALLS = (10, 300, 10_000)
"""The same of services and event loops, which keep a call for each timer."""

DESIGNS, FEWER = 14, 8
"""Replays to which the constants are fitted; with MANY timers pending, which take long to fill."""

MANY = 100_000
"""So many timers take longer to start than to replay."""

MOST_THREADS = 500
"""Threads that wait in a replay, at most."""

SHARES, STEPS = (0.0, 1.0, 0.999, 0.0, 0.99, 1.0), (1, 10, 1, 100, 1)
"""Shares cancelled, and units in a step of the clock, of one replay after the other. So most of the
pending timers are lost, or most are answered: a pair is paid by the number of the answered ones.
"""

TIMEOUTS_IN = (10, 3_600_000)
"""The shortest and the longest mean timeout in the replays, in units."""

RATES = (3.0, 1_000_000.0)
"""The lowest and the highest rate in the replays, in timers per second."""

MOST_AT_ONCE = 1_000
"""Timers that start in a step of the clock, at most; and no more than are pending."""

TIMERS = 1_000
"""Timers that start in a replay, at least."""

LONGEST = 200_000
"""Units in a replay, at most: at low rates, fewer timers start."""

LENGTHS = {"compiled": 20, "system-timer": 0.5, "asyncio": 0.5}
"""Caller -> how many times as large both are: a timer takes nanoseconds, or many microseconds."""

FEWEST = 200
"""Timers that start in a replay all the same, and where each is a thread."""

FEWEST_STEPS, SHORT_STEPS = 8, 40
"""Steps of the clock in a replay, at least; and where even a step with many timers is short, so
that the first ones, whose code and timers are in no cache, would count for much.
"""

SHARE = 1 / 30
"""Of the pending timers, as many start in a replay at least: at first, they are in no cache."""

NOISY, MORE = 0.1, 3
"""Where the samples of a replay differ by so much, there are so many times as many of them."""

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
    error: float  #: relative: of what they say of a replay that they were not fitted to
    rounds: tuple[Constants, ...] = ()  #: the constants of each round of samples alone


def designs(pending: int, kind: str = RANDOM) -> list[Traffic]:
    """The traffic that is replayed with so many pending timers."""
    dice, found = np.random.default_rng(pending), []
    number = DESIGNS if pending < MANY else FEWER
    places = (dice.permutation(number) + 0.5) / number
    for k, place in enumerate(places.tolist()):
        share = 0.0 if kind == PERIODIC else SHARES[k % len(SHARES)]
        step = STEPS[k % len(STEPS)]
        answer = dice.uniform(0.01, 0.5 if kind in (ONE, KEEPALIVE) else 0.05)
        life = share * answer + 1 - share  # as a share of the timeout
        most = min(RATES[1], 1_000 * min(MOST_AT_ONCE, pending) / step)
        low, high = (1_000 * pending / (life * timeout) for timeout in reversed(TIMEOUTS_IN))
        low, high = min(max(low, RATES[0]), most), max(min(high, most), RATES[0])
        rate = low * (high / low) ** place
        timeout = 1_000 * pending / (rate * life)
        found.append(Traffic(rate, timeout, share, answer * timeout, kind, step))
    return found


@lru_cache(maxsize=3)
def made_for(traffic: Traffic, timers: int, seed: int) -> tuple[Steady, Constants]:
    """The tape of a design, and what it has. Contestants with as many timers replay the same."""
    made = steady(traffic, timers, seed)
    return made, counted(made)


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
    """The constants, from the counts and the samples of each replay.

    Noise only adds time, so the fastest sample counts.
    """
    least = np.array([min(samples) for samples in seconds])
    matrix = np.array(rows, float) / (1e9 * least[:, None])
    found = _least_squares(matrix)
    rounds = [
        _least_squares(np.array(rows, float) / (1e9 * np.array(each)[:, None]))
        for each in zip(*seconds, strict=False)
    ]
    return Fit(
        Constants(*found.tolist()),
        _left_out(matrix, found),
        tuple(Constants(*each.tolist()) for each in rounds),
    )


def _left_out(matrix: Any, found: Any) -> float:
    """The root mean square of the relative errors of replays that are left out of the fit.

    They follow from those of all replays: Allen (1974). An error counts as 1 at most.
    """
    used = matrix[:, found > 0]
    leverage = np.einsum("ij,ji->i", used, np.linalg.pinv(used))
    errors = (matrix @ found - 1) / np.maximum(1 - leverage, 0.05)
    return float(np.sqrt(np.mean(np.clip(errors, -1, 1) ** 2)))


def _least_squares(matrix: Any) -> Any:
    """What makes 1 of each row, by least squares with no negative part: Lawson and Hanson (1974),
    chapter 23.
    """
    wanted, size = np.ones(len(matrix)), matrix.shape[1]
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
"""Caller -> label -> contestant; None for a host."""


def fits(
    everyone: Everyone,
    pending: int,
    kind: str,
    repeats: int,
    more: int = MORE,
    seed: int = 0,
    limit: float = LIMIT,
) -> dict[tuple[str, str], Fit]:
    """The constants by caller and label, measured in turns with so many timers pending.

    Each replay has `repeats` samples, and up to `more` times as many where these differ. Timers of
    which a replay takes longer than `limit` CPU seconds are left out.
    """
    rows = defaultdict[tuple[str, str], list[Constants]](list)
    seconds = defaultdict[tuple[str, str], list[list[float]]](list)
    over = set[tuple[str, str]]()
    everybody = [
        (caller, label, each)
        for caller, contestants in everyone.items()
        for label, each in contestants.items()
        if label != THREADS or pending <= MOST_THREADS
    ]
    few = Traffic(1_000, 20, 0.0 if kind == PERIODIC else 0.5, 5, kind)
    for caller, label, each in everybody:  # code is compiled or loaded
        made, _ = made_for(few, FEWEST, seed)
        seconds_of(replay_of(caller, label), each, made, math.inf)
    for traffic in designs(pending, kind):
        turns = 0
        while turns < repeats or (turns < more * repeats and _is_noisy(seconds.values())):
            for caller, label, each in everybody:
                if (key := (caller, label)) in over:
                    continue
                made, counts = made_for(traffic, timers_in(caller, label, traffic), seed)
                try:
                    spent = seconds_of(replay_of(caller, label), each, made, limit)
                except OverBudgetError:
                    over.add(key)
                    rows.pop(key, None)
                    seconds.pop(key, None)
                    continue
                if not turns:
                    rows[key].append(counts)
                    seconds[key].append([])
                seconds[key][-1].append(max(spent, 1e-9))
            turns += 1
    return {key: fitted(rows[key], samples) for key, samples in seconds.items()}


def _is_noisy(samples: Iterable[list[list[float]]]) -> bool:
    """Whether the latest samples of half of the timers differ by more than NOISY."""
    latest = [each[-1] for each in samples if each and each[-1]]
    return bool(latest) and median(max(each) / min(each) for each in latest) > 1 + NOISY


def sizes_of(caller: str) -> tuple[int, ...]:
    """The numbers of pending timers at which a caller is measured."""
    return PENDING_CALLS if caller in ("system-timer", "asyncio") else PENDING


def timers_in(caller: str, label: str, traffic: Traffic) -> int:
    """Timers that start in a replay of a design."""
    if label == THREADS:
        return FEWEST
    usual = LENGTHS.get(caller, 1) * min(TIMERS, traffic.rate * LONGEST / 1_000)
    steps = SHORT_STEPS if caller in ("compiled", "batches") else FEWEST_STEPS
    least = max(traffic.rate * traffic.step * steps / 1_000, SHARE * traffic.pending)
    return max(round(usual), round(least), FEWEST)
