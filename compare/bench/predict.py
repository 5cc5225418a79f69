"""Predictions of time: what would take longer than the budget is not run.

The work of each step is counted at smaller sizes, or timed where a timer counts nothing. Its growth
is fitted, and multiplied by the steps that will be needed.
"""

import math
import time
from collections.abc import Sequence
from typing import NamedTuple

from compare.bench.contestant import Contestant
from compare.bench.sources import fresh_replay
from compare.replay.engine import Clock
from compare.tapes.tape import Tape, part

MOST_GROWTH = 1.0
"""Of the work of a step, as a power of the size: no timer does more than look at all that are
pending. What seems steeper is noise."""

FIRST_PREFIX, NEXT_PREFIX = 1000, 4
"""The operations of the first prefix of a tape, and how much longer each next one is."""


class Observed(NamedTuple):
    """What something cost at one size."""

    size: int
    steps: int  # advances of expiry, operations of all else
    work: int | None  # counted, steps included; None for a timer without counters
    seconds: float


def predict(observed: Sequence[Observed], size: int, steps: int) -> float:
    """Seconds that `steps` steps will take at `size`, from observations at smaller sizes.

    The growth is fitted to what was counted at the last two sizes or, since times scatter, to the
    times of the first and the last. After a single observation the worst is assumed.
    """
    last, growth = observed[-1], MOST_GROWTH
    before = observed[0] if last.work is None else observed[max(len(observed) - 2, 0)]
    if before.size < last.size:
        costs = [
            (one.seconds if one.work is None else one.work) / max(one.steps, 1)
            for one in (before, last)
        ]
        if min(costs) > 0:
            growth = math.log(costs[1] / costs[0]) / math.log(last.size / before.size)
    growth = min(max(growth, 0.0), MOST_GROWTH)
    return float(last.seconds / max(last.steps, 1) * (size / last.size) ** growth * steps)


def predict_replay(
    contestant: Contestant,
    tape: Tape,
    id_space: int,
    budget: float,
    clock: Clock = time.perf_counter,
) -> float:
    """Seconds that replaying a tape will take, from ever longer prefixes of it.

    Prefixes end at a quarter of the tape, or where the next one alone would exceed the budget. A
    tape too short for any is predicted to take no time.
    """
    total = tape.time.size
    observed: list[Observed] = []
    size = FIRST_PREFIX
    while size <= total // NEXT_PREFIX and (
        not observed or predict(observed, size, size) <= budget
    ):
        prefix = part(tape, 0, size)
        counted = fresh_replay(contestant, prefix, id_space, counting=True).outcome
        seconds = fresh_replay(contestant, prefix, id_space, clock=clock).outcome.seconds
        work = None if counted.counters is None else size + sum(counted.counters.values())
        observed.append(Observed(size, size, work, seconds))
        size *= NEXT_PREFIX
    return predict(observed, total, total) if observed else 0.0
