"""Measures insert, cancel, hold and expiry against the number of pending timers.

First, each contestant runs the scenarios of `compare.bench.work` with counters, and the oracle
checks it. Then it is timed without counters, and must fire the same rows again. The contestants
take turns, so that interference affects all of them equally.

A task that takes longer than the budget at one size is not run at larger sizes. A scenario that is
cut short by it is checked at smaller sizes only.

All memory that a sample writes to has been written to before. The cost of an empty call is measured
separately and subtracted.
"""

import time
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, takewhile
from statistics import median
from typing import NamedTuple

import numpy as np

from compare.bench.slots import Slots, slots_of
from compare.bench.sources import check_same_rows, digest_of
from compare.bench.task import BY_CLOCK, BY_EVENT, HOLD, INSERT, TASKS, Task
from compare.bench.work import (
    GROW,
    SCENARIOS,
    UNIT,
    Scenario,
    ScenarioRun,
    Tapes,
    runs_per_sample,
    tapes_of,
)
from compare.oracle.compiled import check_agreement
from compare.replay.contestant import COMPILED, Contestant
from compare.replay.engine import Buffers, Clock, OverBudgetError, loop_for
from compare.replay.loops import OPERATION

CALLS = 64  # empty calls; their median is subtracted from the time of each call


class Sample(NamedTuple):
    """One measured time, or a task that was over budget."""

    contestant: int  # index
    size: int
    task: Task
    operations: int
    repeat: int | None = None
    ns_per_operation: float | None = None  # None: over budget, so not run at larger sizes


class Counted(NamedTuple):
    """The value of one counter in one measurement."""

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
"""Called with a description before each step."""


@dataclass
class _Series:
    """The measurements of one contestant at one size."""

    #: digest of the rows that fire in each scenario; None if it was cut short
    digests: dict[Scenario, bytes | None] = field(default_factory=dict)
    operations: dict[Task, int] = field(default_factory=dict)
    counts: dict[Task, dict[str, int]] = field(default_factory=dict)
    memory: Memory | None = None
    repeats: int = 0  # so far
    spent: float = 0.0  # seconds in these repeats, including set-up


@dataclass
class Bench:
    """Runs all measurements and collects them in `samples`, `counted`, `memory` and `slots`.

    Each task is sampled at most `repeats` times at each size. A contestant gets fewer samples if
    they would take longer than `budget` seconds in total.
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
    tapes: int = field(default=0, init=False)  # checked, counted once for each contestant
    expiries: int = field(default=0, init=False)  # checked
    _over_budget: set[tuple[int, Task]] = field(default_factory=set, init=False)
    _overhead: dict[int, Mapping[Task, float]] = field(default_factory=dict, init=False)

    @property
    def steps(self) -> int:
        """How often `run` calls `progress`."""
        return len(self.contestants) * (1 + self.repeats) * len(self.sizes)

    def run(self, progress: Progress = lambda step: None) -> None:
        """Run all measurements, smaller sizes first.

        Raises AgreementError for a timer that disagrees with the oracle.
        """
        for size in sorted(self.sizes):
            tapes, all_series = tapes_of(size, self.seed), []
            for index, contestant in enumerate(self.contestants):
                progress(f"checking {contestant.name} at {size:,}")
                all_series.append(self._check(index, tapes))
            for _ in range(self.repeats):
                for index, series in enumerate(all_series):
                    progress(f"timing {self.contestants[index].name} at {size:,}")
                    mean = series.spent / max(series.repeats, 1)
                    if not series.repeats or series.spent + mean <= self.budget:
                        self._time(index, tapes, series)

    def _check(self, index: int, tapes: Tapes) -> _Series:
        """Run the scenarios with counters, and check them against the oracle."""
        series = _Series()
        for scenario in SCENARIOS:
            self._check_scenario(index, tapes, scenario, series)
        self.counted += [
            Counted(index, tapes.size, task, name, value, series.operations[task])
            for task in TASKS
            for name, value in series.counts.get(task, {}).items()
        ]
        if series.digests:
            series.memory = self._measure_memory(index, tapes)
        return series

    def _check_scenario(self, index: int, tapes: Tapes, whole: Scenario, series: _Series) -> None:
        """Run a scenario up to the first task that is over budget, and check it."""
        scenario = tuple(takewhile(lambda task: (index, task) not in self._over_budget, whole))
        if not scenario or scenario in series.digests:
            return
        contestant, due = self.contestants[index], tapes.due(self.contestants[index])
        run = ScenarioRun(contestant, tapes, self.clock, counting=True, limit=self.budget)
        before: dict[str, int] = {}
        for position, task in enumerate(scenario):
            try:
                series.operations[task], _ = run.run(task, due.last)
            except OverBudgetError:
                self._give_up(index, tapes, task)
                scenario = scenario[:position]
                break
            after = dict(getattr(run.timer, "counters", None) or {})
            series.counts[task] = {name: after[name] - before.get(name, 0) for name in after}
            before = after
            if task == HOLD and not any(HOLD in other for other in series.digests):
                self.slots += slots_of(index, tapes.size, run.timer)
        if not scenario or scenario in series.digests:
            return
        series.digests[scenario] = None
        if scenario != whole:
            return  # it was cut short, and cannot be checked while timers are pending
        done = run.replay()
        tape, expected = tapes.filling, due.filling
        if HOLD in scenario:
            tape, expected = tapes.holding, due.holding
        check_agreement(contestant.label, contestant.traits, tape, expected, done)
        self.tapes += 1
        self.expiries += done.fired.size
        series.digests[scenario] = digest_of(done)
        if scenario[-1] in (BY_CLOCK, BY_EVENT):
            last, outcome = series.counts[scenario[-1]], done.outcome
            last["advances"], last["idle_advances"] = outcome.wakeups, outcome.idle_wakeups

    def _give_up(self, index: int, tapes: Tapes, too_long: Task) -> None:
        """Stop running a task and all tasks that follow it."""
        following = (tasks[tasks.index(too_long) :] for tasks in SCENARIOS if too_long in tasks)
        for task in dict.fromkeys(chain.from_iterable(following)):
            if task in TASKS and (index, task) not in self._over_budget:
                self.samples.append(Sample(index, tapes.size, task, tapes.operations(task)))
            self._over_budget.add((index, task))

    def _measure_memory(self, index: int, tapes: Tapes) -> Memory:
        """Fill a timer and let it grow. `tracemalloc` also traces NumPy arrays."""
        small = self.contestants[index].new(UNIT, 0, 1)
        for deadline in (1, 2):  # it grows, so that no compiled code is loaded during the trace
            small.schedule(deadline)
        run = self._full(index, tapes)
        full = int(run.timer.nbytes)
        tracemalloc.start()
        try:
            run.run(GROW)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        memory = Memory(index, tapes.size, full, full + peak, int(run.timer.nbytes), [])
        self.memory.append(memory)
        return memory

    def _full(self, index: int, tapes: Tapes) -> ScenarioRun:
        run = ScenarioRun(self.contestants[index], tapes, self.clock)
        run.run(INSERT)
        return run

    def _time(self, index: int, tapes: Tapes, series: _Series) -> None:
        """Take one sample of every task."""
        contestant, size = self.contestants[index], tapes.size
        due = tapes.due(contestant)
        if index not in self._overhead:
            self._overhead[index] = overhead(contestant, self.clock)
        empty_calls, started = self._overhead[index], self.clock()
        seconds: dict[Task, float] = defaultdict(float)
        operations: dict[Task, int] = defaultdict(int)
        for scenario, digest in series.digests.items():
            for _ in range(runs_per_sample(contestant, scenario, size)):
                run = ScenarioRun(contestant, tapes, self.clock)
                for task in scenario:
                    done, spent = run.run(task, due.last)
                    seconds[task] += max(spent - empty_calls.get(task, empty_calls[INSERT]), 0.0)
                    operations[task] += done
                if digest is not None:
                    check_same_rows(contestant, run.replay(), digest)
        if series.memory:
            series.memory.growth_seconds.append(self._full(index, tapes).run(GROW)[1])
        for task in seconds.keys() & {*TASKS}:
            mean = seconds[task] / operations[task]
            sample = Sample(index, size, task, operations[task], series.repeats, mean * 1e9)
            self.samples.append(sample)
            if mean * tapes.operations(task) > self.budget:
                self._give_up(index, tapes, task)
        series.repeats += 1
        series.spent += self.clock() - started


def overhead(contestant: Contestant, clock: Clock = time.perf_counter) -> Mapping[Task, float]:
    """The median seconds of an empty call of each compiled loop, by task; zero for Python loops.

    INSERT stands for all tasks that run operations.
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
