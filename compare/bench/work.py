"""What is timed: two tapes for each number of pending timers, and the tasks that they consist of.

All contestants run the same tapes, with delays uniform in 1 .. LONGEST_DELAY and the clock at 0:

- filling: start `size` timers (insert), then cancel all in random order (cancel);
- holding: start `size` timers, then HOLD_PAIRS times cancel a random one and start a new one
  (hold), then let all fire (expiry): by clock (one unit per advance) or, on another instance, by
  event (from wake-up to wake-up).

What is timed is one call of compiled code or, for a timer without a kernel, a plain Python loop.
"""

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from compare.bench.contestant import COMPILED, Contestant
from compare.bench.task import BY_CLOCK, BY_EVENT, CANCEL_ALL, HOLD, INSERT, Task
from compare.replay.engine import Buffers, Clock, Replay, Rows, loop_for, operations_of
from compare.replay.loops import FIRED, OPERATION
from compare.tapes.tape import CANCEL, START, Tape
from compare.workloads.catalogue import CHOICE, DELAY, Stream

LONGEST_DELAY = 60_000  # units; as in the literature: a minute in milliseconds
HOLD_PAIRS = 50_000
LEAST_TIMED = 50_000  # compiled inserts and cancels in a sample; fewer drown in the clock's noise
LEAST_FIRED = 10_000  # ... compiled expiries by event, each of which takes longer

SETUP: dict[Task, tuple[Task, ...]] = {
    INSERT: (),
    CANCEL_ALL: (INSERT,),
    HOLD: (INSERT,),
    BY_CLOCK: (INSERT, HOLD),
    BY_EVENT: (INSERT, HOLD),
}
"""What must run before each task."""


@dataclass(frozen=True)
class Plan:
    """The two tapes of one size, and the operations of each task; `id_space` is the size."""

    size: int
    filling: Tape
    holding: Tape

    @cached_property
    def insert(self) -> Rows:
        """The starts that fill a timer; the same in both tapes."""
        return operations_of(self.filling, 0, self.size)

    @cached_property
    def cancel(self) -> Rows:
        """The cancels that empty it."""
        return operations_of(self.filling, self.size, 2 * self.size)

    @cached_property
    def hold(self) -> Rows:
        """The pairs of cancel and start."""
        return operations_of(self.holding, self.size, self.holding.time.size)

    def operations(self, task: Task) -> int:
        """The operations of a task, by which its time is divided."""
        return HOLD_PAIRS if task == HOLD else self.size

    def buffers(self) -> Buffers:
        """Buffers for both tapes.

        All that is inserted can fire, and so can what a coarse tick makes due while holding.
        """
        return Buffers(self.size, self.size + HOLD_PAIRS)


def plan(size: int, seed: int) -> Plan:
    """The tapes for one size: the same on every machine. 50 MB for 1e6."""
    stream = Stream(seed, size, 0)
    starts = size + HOLD_PAIRS
    delays = 1 + np.floor(stream.uniform(DELAY, starts) * LONGEST_DELAY).astype(np.int64)
    ids = np.arange(size, dtype=np.int32)
    # The first `size` choices give the order of cancelling, those after them what hold cancels.
    choices = stream.uniform(CHOICE, starts)
    shuffled = np.argsort(choices[:size], kind="stable").astype(np.int32)
    cancelled = np.floor(choices[size:] * size).astype(np.int32)
    pairs = np.zeros(2 * HOLD_PAIRS, np.int64)
    pairs[1::2] = delays[size:]
    filling = (
        np.repeat(np.array([START, CANCEL], np.int8), size),
        np.concatenate([ids, shuffled]),
        np.concatenate([delays[:size], np.zeros(size, np.int64)]),
    )
    pair = np.array([CANCEL, START], np.int8)
    holding = (
        np.concatenate([np.full(size, START, np.int8), np.tile(pair, HOLD_PAIRS)]),
        np.concatenate([ids, np.repeat(cancelled, 2)]),
        np.concatenate([delays[:size], pairs]),
    )
    tapes = (Tape(np.zeros(columns[0].size, np.int64), *columns) for columns in (filling, holding))
    return Plan(size, *tapes)


class Trial:
    """A fresh timer on its way through one of the tapes."""

    def __init__(
        self,
        contestant: Contestant,
        size: int,
        buffers: Buffers,
        *,
        counting: bool = False,
        clock: Clock = time.perf_counter,
    ) -> None:
        self._fired: list[Rows] = []
        self.timer = contestant.new(0, size, counting=counting)
        self.loop = loop_for(self.timer, buffers, self._fired.append, clock)

    def run(self, operations: Rows) -> float:
        """Run operations for which there is room; returns their seconds."""
        return self.loop.run(operations, reserve=False)

    def jump(self, until: int) -> None:
        """Advance to `until` at once, when nothing is left to cancel."""
        too_late = np.zeros(1, OPERATION)
        too_late["time"], too_late["op"] = until, CANCEL
        self.run(too_late)

    def counters(self) -> dict[str, int]:
        """Cost counters so far; empty for a timer that counts nothing."""
        return dict(getattr(self.timer, "counters", None) or {})

    def replay(self) -> Replay:
        """What the trial has done, once it has ended."""
        outcome = self.loop.finish()
        return Replay(outcome, np.concatenate([np.empty(0, FIRED), *self._fired]))


def trials(
    contestant: Contestant,
    work: Plan,
    tasks: Collection[Task],
    buffers: Buffers,
    last_expiry: int,
    *,
    counting: bool = False,
    sampling: bool = False,
    clock: Clock = time.perf_counter,
) -> Iterator[tuple[Trial, Task | None, float]]:
    """Run tasks on fresh timers; gives each task and its seconds after it has run.

    A timer that holds is also made to fire: with neither way of expiry among the tasks, one jump to
    `last_expiry` shows what fires, and the task is None. `sampling` runs short tasks several times.
    """
    several = sampling and contestant.engine == COMPILED

    def times(least: int) -> range:
        return range(-(-least // work.size) if several else 1)

    def fresh() -> Trial:
        return Trial(contestant, work.size, buffers, counting=counting, clock=clock)

    if INSERT in tasks:
        for _ in times(LEAST_TIMED):
            trial = fresh()
            yield trial, INSERT, trial.run(work.insert)
            if CANCEL_ALL in tasks:
                yield trial, CANCEL_ALL, trial.run(work.cancel)
    if HOLD in tasks:
        ways: list[Task | None] = [way for way in (BY_EVENT, BY_CLOCK) if way in tasks]
        for way in ways or [None]:
            for _ in times(LEAST_FIRED if way == BY_EVENT else 1):
                trial = fresh()
                yield trial, INSERT, trial.run(work.insert)
                yield trial, HOLD, trial.run(work.hold)
                if way == BY_EVENT:
                    yield trial, way, trial.loop.drain()
                elif way == BY_CLOCK:
                    yield trial, way, trial.loop.tick(last_expiry)
                elif counting:
                    trial.jump(last_expiry)
                    yield trial, None, 0.0
