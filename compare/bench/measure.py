"""Measures insert, cancel, hold and expiry against the number of pending timers.

First every contestant runs the scenarios of `compare.bench.work` counting, and must do what the
oracle says. Then it is timed without counting, in rounds over all contestants so that a busy moment
of the machine affects all of them; the rows that fire must be the same again.

A task that takes longer than the budget at one size is not run at larger ones.

All that a sample writes to has been written to before. The cost of the call itself is measured
apart and subtracted.
"""

import time
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from statistics import median
from typing import NamedTuple

import numpy as np

from compare.bench.slots import Slots, slots_of
from compare.bench.sources import digest_of
from compare.bench.task import BY_CLOCK, BY_EVENT, CANCEL_ALL, HOLD, INSERT, TASKS, Task
from compare.bench.work import (
    GROW,
    SCENARIOS,
    UNIT,
    Scenario,
    ScenarioRun,
    Tapes,
    tapes_of,
    times,
)
from compare.oracle.compiled import AgreementError, check_agreement
from compare.replay.contestant import COMPILED, Contestant
from compare.replay.engine import Buffers, Clock, OverBudgetError, loop_for
from compare.replay.loops import OPERATION

CALLS = 64  # empty calls, of which the median is subtracted from each call


class Sample(NamedTuple):
    """One measured time, or a task that was over budget."""

    contestant: int  # index
    size: int
    task: Task
    operations: int
    repeat: int | None = None
    ns_per_operation: float | None = None  # None: over budget, so not run at larger sizes


class Counted(NamedTuple):
    """One counter of one measurement."""

    contestant: int
    size: int
    task: Task
    counter: str
    value: int
    operations: int


class Memory(NamedTuple):
    """Bytes held by a full timer of `size` entries, and during and after its growth."""

    contestant: int
    size: int
    nbytes: int
    peak_nbytes: int  # while one more is inserted
    grown_nbytes: int  # after that
    growth_seconds: list[float]  # of that insert, by repeat


Progress = Callable[[str], None]
"""Called before each of the `Bench.steps` with what it is."""


@dataclass
class _Series:
    """The repeats of one contestant at one size."""

    #: of what fires in each scenario; None where not all fires
    digests: dict[Scenario, bytes | None] = field(default_factory=dict)
    operations: dict[Task, int] = field(default_factory=dict)
    counts: dict[Task, dict[str, int]] = field(default_factory=dict)
    memory: Memory | None = None
    repeats: int = 0  # made so far
    spent: float = 0.0  # seconds in them, set-up included


@dataclass
class Bench:
    """Makes all measurements; `samples`, `counted`, `memory` and `slots` collect the results.

    At most `repeats` samples are made: fewer where they would together exceed `budget` seconds.
    """

    contestants: Sequence[Contestant]
    sizes: Sequence[int]
    repeats: int
    budget: float
    seed: int
    clock: Clock = time.perf_counter
    samples: list[Sample] = field(default_factory=list, init=False)
    counted: list[Counted] = field(default_factory=list, init=False)
    memory: list[Memory] = field(default_factory=list, init=False)
    slots: list[Slots] = field(default_factory=list, init=False)
    tapes: int = field(default=0, init=False)  # compared with the oracle, for each contestant
    expiries: int = field(default=0, init=False)  # of these tapes
    _over_budget: set[tuple[int, Task]] = field(default_factory=set, init=False)
    _overhead: dict[int, Mapping[Task, float]] = field(default_factory=dict, init=False)

    @property
    def steps(self) -> int:
        """How often `run` calls its argument."""
        return len(self.contestants) * (1 + self.repeats) * len(self.sizes)

    def run(self, progress: Progress = lambda what: None) -> None:
        """Make all measurements, smaller sizes first.

        Raises AgreementError for a timer that disagrees with the oracle.
        """
        for size in sorted(self.sizes):
            tapes, all_series = tapes_of(size, self.seed), []
            for c, contestant in enumerate(self.contestants):
                progress(f"checking {contestant.name} at {size:,}")
                all_series.append(self._checked(c, tapes))
            for repeat in range(self.repeats):
                for c, series in enumerate(all_series):
                    progress(f"timing {self.contestants[c].name} at {size:,}")
                    next_one = series.spent / max(series.repeats, 1)
                    if repeat == 0 or series.spent + next_one <= self.budget:
                        self._time(c, tapes, series)

    def _affordable(self, c: int, scenario: Scenario) -> Scenario:
        """A scenario up to the first task that was over budget."""
        over = [k for k, task in enumerate(scenario) if (c, task) in self._over_budget]
        return scenario[: over[0]] if over else scenario

    def _checked(self, c: int, tapes: Tapes) -> _Series:
        """Run the scenarios counting, and check what they do against the oracle."""
        series = _Series()
        for whole in SCENARIOS:
            over = True
            while over:  # then again, without the task that took too long
                scenario = self._affordable(c, whole)
                over = bool(scenario) and self._check(c, tapes, scenario, series) is not None
        self.counted += [
            Counted(c, tapes.size, task, name, value, series.operations[task])
            for task in TASKS
            for name, value in series.counts.get(task, {}).items()
        ]
        if series.digests:
            series.memory = self._measure_memory(c, tapes)
        return series

    def _check(self, c: int, tapes: Tapes, scenario: Scenario, series: _Series) -> Task | None:
        """Run a scenario counting, and check it; returns the task that was over budget, or None."""
        if scenario in series.digests:
            return None
        contestant, due = self.contestants[c], tapes.due(self.contestants[c])
        run = ScenarioRun(contestant, tapes, self.clock, counting=True, limit=self.budget)
        before: dict[str, int] = {}
        for task in scenario:
            try:
                series.operations[task], _ = run.run(task, due.last)
            except OverBudgetError:
                self._give_up(c, tapes, task)
                return task
            after = dict(getattr(run.timer, "counters", None) or {})
            series.counts[task] = {name: after[name] - before.get(name, 0) for name in after}
            before = after
            if task == HOLD and not any(HOLD in other for other in series.digests):
                self.slots += slots_of(c, tapes.size, run.timer)
        series.digests[scenario] = None
        if not {CANCEL_ALL, HOLD} & {*scenario}:
            return None
        if scenario[-1] == HOLD:
            run.jump(due.last)
        done = run.replay()
        tape, expected = tapes.filling, due.filling
        if HOLD in scenario:
            tape, expected = tapes.holding, due.holding
        check_agreement(contestant.label, contestant.traits, tape, expected, done)
        self.tapes += 1
        self.expiries += done.fired.size
        if scenario[-1] != HOLD:
            series.digests[scenario] = digest_of(done)
        if scenario[-1] in (BY_CLOCK, BY_EVENT):
            last, outcome = series.counts[scenario[-1]], done.outcome
            last["advances"], last["idle_advances"] = outcome.wakeups, outcome.idle_wakeups
        return None

    def _give_up(self, c: int, tapes: Tapes, too_long: Task) -> None:
        """Run a task no more, nor those that come after it."""
        later = (tasks[tasks.index(too_long) :] for tasks in SCENARIOS if too_long in tasks)
        for task in dict.fromkeys(chain.from_iterable(later)):
            if task in TASKS and (c, task) not in self._over_budget:
                self.samples.append(Sample(c, tapes.size, task, tapes.operations(task)))
            self._over_budget.add((c, task))

    def _measure_memory(self, c: int, tapes: Tapes) -> Memory:
        """Fill a timer and let it grow. `tracemalloc` knows of NumPy's arrays, too."""
        small = self.contestants[c].new(UNIT, 0, 1)
        for deadline in (1, 2):  # grows, so that no compiled code is loaded while it is traced
            small.schedule(deadline)
        run = self._full(c, tapes)
        full = int(run.timer.nbytes)
        tracemalloc.start()
        try:
            run.run(GROW)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        found = Memory(c, tapes.size, full, full + peak, int(run.timer.nbytes), [])
        self.memory.append(found)
        return found

    def _full(self, c: int, tapes: Tapes) -> ScenarioRun:
        run = ScenarioRun(self.contestants[c], tapes, self.clock)
        run.run(INSERT)
        return run

    def _time(self, c: int, tapes: Tapes, series: _Series) -> None:
        """Make one sample of every task."""
        contestant, size = self.contestants[c], tapes.size
        due = tapes.due(contestant)
        if c not in self._overhead:
            self._overhead[c] = overhead(contestant, self.clock)
        calls, begun = self._overhead[c], self.clock()
        seconds: dict[Task, float] = defaultdict(float)
        operations: dict[Task, int] = defaultdict(int)
        for scenario, digest in series.digests.items():
            for _ in range(times(contestant, scenario, size)):
                run = ScenarioRun(contestant, tapes, self.clock)
                for task in scenario:
                    done, spent = run.run(task, due.last)
                    seconds[task] += max(spent - calls.get(task, calls[INSERT]), 0.0)
                    operations[task] += done
                if digest is not None and digest_of(run.replay()) != digest:
                    raise AgreementError(
                        f"{contestant.label} fired other rows when timed than when checked"
                    )
        if series.memory:
            series.memory.growth_seconds.append(self._full(c, tapes).run(GROW)[1])
        for task in seconds.keys() & {*TASKS}:
            each = seconds[task] / operations[task]
            sample = Sample(c, size, task, operations[task], series.repeats, each * 1e9)
            self.samples.append(sample)
            if each * tapes.operations(task) > self.budget:
                self._give_up(c, tapes, task)
        series.repeats += 1
        series.spent += self.clock() - begun


def overhead(contestant: Contestant, clock: Clock = time.perf_counter) -> Mapping[Task, float]:
    """Seconds of a call of each compiled loop with nothing to do, by task; INSERT stands for all
    that run operations.

    Each is the median of several. Zero for Python loops.
    """
    if contestant.engine != COMPILED:
        return {INSERT: 0.0}
    loop = loop_for(contestant.new(UNIT, 0, 1), Buffers(1, 1), lambda rows: None, clock)
    nothing = np.empty(0, OPERATION)
    calls: dict[Task, Callable[[], float]] = {
        INSERT: lambda: loop.run(nothing, reserve=False),
        BY_EVENT: loop.drain,
        BY_CLOCK: lambda: loop.tick(0),
    }
    for call in calls.values():
        call()  # compiles
    return {task: median(call() for _ in range(CALLS)) for task, call in calls.items()}
