"""What is timed: two tapes for each number of pending timers, and the tasks that they consist of.

All contestants run the same tapes, with delays uniform in 1 .. LONGEST_DELAY. Both start `size`
timers at time 0 (insert), and then the clock moves on by SETTLING units, which is not timed: what a
scheme leaves for the end of its tick is done by then. After that

- filling: all are cancelled in random order (cancel);
- holding: HOLD_PAIRS times a random timer is cancelled and a new one started, while the clock moves
  one unit for each PAIRS_PER_UNIT of them (hold). Then all fire (expiry): by clock (one unit per
  advance) or, on another instance, by event (from wake-up to wake-up).

What is timed is one call of compiled code or, for a timer without a kernel, a plain Python loop.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from compare.bench.task import BY_CLOCK, BY_EVENT, CANCEL_ALL, HOLD, INSERT, Task
from compare.oracle.compiled import Expected, expect
from compare.replay.contestant import COMPILED, Contestant
from compare.replay.engine import Buffers, Clock, Replay, Rows, loop_for, operations_of
from compare.replay.loops import FIRED, OPERATION
from compare.tapes.tape import CANCEL, START, Tape, part
from compare.workloads.catalogue import CHOICE, DELAY, Stream

UNIT = "ms"
LONGEST_DELAY = 60_000  # units; as in the literature: a minute
SETTLING = 200  # units: two ticks of a hashed wheel; one timer in 300 fires
HOLD_PAIRS = 100_000
PAIRS_PER_UNIT = 100
LEAST_TIMED = 50_000  # compiled inserts and cancels in a sample; with fewer, clock noise dominates
LEAST_FIRED = 10_000  # ... compiled expiries by event, each of which takes longer

SETTLE, GROW = Task("settle", "none"), Task("grow", "none")
"""Tasks that are not compared: see above; and one more insert into a full timer, which doubles."""

Scenario = tuple[Task, ...]
SCENARIOS: tuple[Scenario, ...] = (
    (INSERT, SETTLE, CANCEL_ALL),
    (INSERT, SETTLE, HOLD, BY_EVENT),
    (INSERT, SETTLE, HOLD, BY_CLOCK),
)
"""What one timer runs through after the other. Before a task stands what must be run for it."""


class Due(NamedTuple):
    """What contestants of one rounding must do at one size."""

    filling: Expected
    holding: Expected
    last: int  # moment at which something fires


@dataclass(frozen=True)
class Tapes:
    """What all contestants share at one size: two tapes, whose `id_space` is the size, what must
    fire, and the buffers.
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
        cancels, pairs = (operations_of(part(of, n + 1)) for of in (self.filling, self.holding))
        return {INSERT: begin[:n], SETTLE: begin[n:], CANCEL_ALL: cancels, HOLD: pairs}

    def operations(self, task: Task) -> int:
        """The operations of a task: of expiry, about as many."""
        return {HOLD: HOLD_PAIRS, SETTLE: 1, GROW: 1}.get(task, self.size)

    @cached_property
    def buffers(self) -> Buffers:
        """Buffers for both tapes: all that is started can fire."""
        return Buffers(self.size, self.size + HOLD_PAIRS)

    def due(self, contestant: Contestant) -> Due:
        """What a contestant must do; computed once for all that fire alike."""
        rounding = contestant.rounding(UNIT)
        if rounding not in self._due:
            tapes = self.filling, self.holding
            filling, holding = (expect(tape, self.size, rounding) for tape in tapes)
            self._due[rounding] = Due(filling, holding, int(holding.fired_at.max()))
        return self._due[rounding]


def tapes_of(size: int, seed: int) -> Tapes:
    """The tapes for one size: the same on every machine. 50 MB for 1e6."""
    stream = Stream(seed, size, 0)
    starts = size + HOLD_PAIRS
    delays = 1 + np.floor(stream.uniform(DELAY, starts) * LONGEST_DELAY).astype(np.int64)
    # The first `size` choices give the order of cancelling, those after them what hold cancels.
    choices = stream.uniform(CHOICE, starts)
    shuffled = np.argsort(choices[:size], kind="stable")
    cancelled = np.floor(choices[size:] * size)
    moments = SETTLING + np.repeat(np.arange(HOLD_PAIRS) // PAIRS_PER_UNIT, 2)
    deadlines = np.zeros(2 * HOLD_PAIRS, np.int64)
    deadlines[1::2] = moments[1::2] + delays[size:]

    def tape(time: Rows, op: Rows, of: Rows, deadline: Rows) -> Tape:
        """The starts, a cancel of the first timer, before which the others settle, and these."""
        return Tape(
            np.concatenate([np.zeros(size, np.int64), [SETTLING], time]),
            np.concatenate([np.full(size, START), [CANCEL], op]).astype(np.int8),
            np.concatenate([np.arange(size), [0], of]).astype(np.int32),
            np.concatenate([delays[:size], [0], deadline]),
        )

    all_cancels = np.full(size, SETTLING), np.full(size, CANCEL), shuffled, np.zeros(size, np.int64)
    pairs = moments, np.tile([CANCEL, START], HOLD_PAIRS), np.repeat(cancelled, 2), deadlines
    return Tapes(size, tape(*all_cancels), tape(*pairs))


def times(contestant: Contestant, scenario: Scenario, size: int) -> int:
    """How often a scenario is run for one sample: several times where compiled code is quick."""
    least = {CANCEL_ALL: LEAST_TIMED, BY_EVENT: LEAST_FIRED}.get(scenario[-1], 1)
    return -(-least // size) if contestant.engine == COMPILED else 1


class ScenarioRun:
    """A fresh timer on its way through a scenario."""

    def __init__(
        self,
        contestant: Contestant,
        tapes: Tapes,
        clock: Clock,
        *,
        counting: bool = False,
        limit: float = math.inf,  # seconds for each task
    ) -> None:
        self._tapes, self._clock, self._limit = tapes, clock, limit
        self._fired = [np.empty(0, FIRED)]
        self.timer = contestant.new(UNIT, 0, tapes.size, counting=counting)
        self.loop = loop_for(
            self.timer, tapes.buffers, lambda rows: self._fired.append(rows.copy()), clock
        )

    def run(self, task: Task, until: int = 0) -> tuple[int, float]:
        """Run a task, by clock up to `until`; returns its operations and seconds."""
        pending = len(self.timer)
        if task == BY_CLOCK:
            self.loop.limit = math.inf
            self.loop.tick(self.timer.now)  # compiles, which is not part of the task
        self.loop.limit = self.loop.seconds + self._limit
        if task == BY_EVENT:
            return pending, self.loop.drain()
        if task == BY_CLOCK:
            return pending, self.loop.tick(until)
        if task == GROW:
            started = self._clock()
            self.timer.schedule(LONGEST_DELAY)
            return 1, self._clock() - started
        rows = self._tapes.rows[task]
        return self._tapes.operations(task), self.loop.run(rows, reserve=False)

    def jump(self, until: int) -> None:
        """Advance to `until` at once, however long it takes, when nothing is left to cancel."""
        self.loop.limit = math.inf
        too_late = np.zeros(1, OPERATION)
        too_late["time"], too_late["op"] = until, CANCEL
        self.loop.run(too_late, reserve=False)

    def replay(self) -> Replay:
        """What was done, once the scenario has ended."""
        outcome = self.loop.finish()  # takes the last rows
        return Replay(outcome, np.concatenate(self._fired))
