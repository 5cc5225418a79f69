"""The timed work: two tapes for each number of pending timers, divided into tasks.

All contestants run the same tapes, with uniform delays from 1 to LONGEST_DELAY. Both tapes start
`size` timers at time 0 (insert). The clock then moves by SETTLING units, which is not timed, so
that each scheme finishes the work that it leaves for the end of a tick. After that

- filling: all timers are cancelled in random order (cancel);
- holding: HOLD_PAIRS times, a random timer is cancelled and a new one started, while the clock
  moves one unit for every PAIRS_PER_UNIT pairs (hold). Then all timers fire (expiry): by clock (one
  unit per advance) or, on another instance, by event (from wake-up to wake-up).

Each timing is of one call of compiled code or, for a timer without a kernel, of a Python loop.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from compare.traffic.tapes.tape import CANCEL, START, Tape, part
from compare.traffic.workloads.stream import CHOICE, DELAY, Stream
from compare.trial.bench.task import BY_CLOCK, BY_EVENT, CANCEL_ALL, HOLD, INSERT, Task
from compare.trial.oracle.compiled import Expected, expect
from compare.trial.replay.contestant import COMPILED, Contestant
from compare.trial.replay.engine import Buffers, Clock, Replay, Rows, loop_for, operations_of
from compare.trial.replay.loops import ALL_STEPS, FIRED, STEPS_IN_LIMIT

UNIT = "ms"
LONGEST_DELAY = 60_000  # units; as in the literature: a minute
SETTLING = 200  # units: two ticks of a hashed wheel; one timer in 300 fires
HOLD_PAIRS = 100_000
PAIRS_PER_UNIT = 100
MIN_TIMED = 50_000  # compiled inserts and cancels in a sample; with fewer, clock noise dominates
MIN_FIRED = 10_000  # the same for compiled expiries by event, which take longer

SETTLE = Task("settle", "none")
"""The settling: a task that is not compared."""

Scenario = tuple[Task, ...]
SCENARIOS: tuple[Scenario, ...] = (
    (INSERT, SETTLE, CANCEL_ALL),
    (INSERT, SETTLE, HOLD, BY_EVENT),
    (INSERT, SETTLE, HOLD, BY_CLOCK),
)
"""The tasks that one timer runs, in order. Each task needs those before it."""


class Due(NamedTuple):
    """Expected results for a rounding at one size."""

    filling: Expected
    holding: Expected
    last: int  # the time of the last expiry


@dataclass(frozen=True)
class Tapes:
    """The tapes, expected expiries and buffers that all contestants share at one size.

    The size is also the `id_space` of both tapes.
    """

    size: int
    filling: Tape
    holding: Tape
    _due: dict[Hashable, Due] = field(default_factory=dict, init=False)

    @cached_property
    def rows(self) -> dict[Task, Rows]:
        """The operations of each task that runs a part of a tape."""
        n = self.size
        begin = operations_of(part(self.filling, 0, n + 1))  # the same in both tapes
        cancels, pairs = (operations_of(part(tape, n + 1)) for tape in (self.filling, self.holding))
        return {INSERT: begin[:n], SETTLE: begin[n:], CANCEL_ALL: cancels, HOLD: pairs}

    def operations(self, task: Task) -> int:
        """The number of operations of a task; approximate for expiry."""
        return HOLD_PAIRS if task == HOLD else self.size

    @cached_property
    def buffers(self) -> Buffers:
        """Buffers for either tape, with room for all timers to fire."""
        return Buffers(self.size, self.size + HOLD_PAIRS)

    def due(self, contestant: Contestant) -> Due:
        """The expected results of a contestant, computed once for each rounding."""
        rounding = contestant.rounding(UNIT)
        if rounding not in self._due:
            tapes = self.filling, self.holding
            filling, holding = (expect(tape, self.size, rounding) for tape in tapes)
            self._due[rounding] = Due(filling, holding, int(holding.fired_at.max()))
        return self._due[rounding]


def tapes_of(size: int, seed: int) -> Tapes:
    """The tapes for one size, the same on every machine. They take 50 MB for 1e6."""
    stream = Stream(seed, size, 0)
    starts = size + HOLD_PAIRS
    delays = 1 + np.floor(stream.uniform(DELAY, starts) * LONGEST_DELAY).astype(np.int64)
    # The first `size` choices order the cancellations; the others pick the timers for hold.
    choices = stream.uniform(CHOICE, starts)
    shuffled = np.argsort(choices[:size], kind="stable")
    cancelled = np.floor(choices[size:] * size)
    moments = SETTLING + np.repeat(np.arange(HOLD_PAIRS) // PAIRS_PER_UNIT, 2)
    deadlines = np.zeros(2 * HOLD_PAIRS, np.int64)
    deadlines[1::2] = moments[1::2] + delays[size:]

    def tape(time: Rows, op: Rows, id_: Rows, deadline: Rows) -> Tape:
        """The starts, a cancel of the first timer after the settling, and the given operations."""
        return Tape(
            np.concatenate([np.zeros(size, np.int64), [SETTLING], time]),
            np.concatenate([np.full(size, START), [CANCEL], op]).astype(np.int8),
            np.concatenate([np.arange(size), [0], id_]).astype(np.int32),
            np.concatenate([delays[:size], [0], deadline]),
        )

    all_cancels = np.full(size, SETTLING), np.full(size, CANCEL), shuffled, np.zeros(size, np.int64)
    pairs = moments, np.tile([CANCEL, START], HOLD_PAIRS), np.repeat(cancelled, 2), deadlines
    return Tapes(size, tape(*all_cancels), tape(*pairs))


def runs_per_sample(contestant: Contestant, scenario: Scenario, size: int) -> int:
    """The number of runs of a scenario in one sample: several if compiled code is fast."""
    minimum = {CANCEL_ALL: MIN_TIMED, BY_EVENT: MIN_FIRED}.get(scenario[-1], 1)
    return -(-minimum // size) if contestant.engine == COMPILED else 1


class ScenarioRun:
    """A run of a scenario on a new timer."""

    def __init__(
        self,
        contestant: Contestant,
        tapes: Tapes,
        clock: Clock,
        *,
        counting: bool = False,
        limit: float = math.inf,  # seconds for each task
    ) -> None:
        self._contestant, self._tapes, self._limit = contestant, tapes, limit
        self._steps = ALL_STEPS if limit == math.inf else STEPS_IN_LIMIT
        self._fired = fired = [np.empty(0, FIRED)]

        def take(rows: Rows) -> None:  # not a method: a cycle would keep millions of objects
            fired.append(rows.copy())

        self.timer = contestant.new(UNIT, 0, tapes.size, counting=counting)
        self.loop = loop_for(self.timer, tapes.buffers, take, clock, steps=self._steps)
        self.loop.tick(0)  # compiles it outside the tasks; the other loops are compiled already

    def run(self, task: Task) -> tuple[int, float]:
        """Run a task; returns its operations and seconds. Raises OverBudgetError."""
        pending = len(self.timer)
        self.loop.limit = self.loop.seconds + self._limit
        if task == BY_EVENT:
            return pending, self.loop.drain()
        if task == BY_CLOCK:
            return pending, self.loop.tick(self._tapes.due(self._contestant).last)
        return self._tapes.operations(task), self.run_rows(self._tapes.rows[task])

    def run_rows(self, rows: Rows, *, reserve: bool = False) -> float:
        """Run operations; returns seconds. Raises OverBudgetError.

        In parts, between which the limit counts, and a signal. With `reserve`, room is made first.
        """
        self.loop.limit = self.loop.seconds + self._limit
        parts = (rows[k : k + self._steps] for k in range(0, rows.size, self._steps))
        return sum(self.loop.run(part, reserve=reserve) for part in parts)

    def replay(self) -> Replay:
        """The result of the scenario, once it has ended."""
        outcome = self.loop.finish()  # takes the last rows
        return Replay(outcome, np.concatenate(self._fired))
