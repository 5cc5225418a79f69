"""Measure insert, cancel, hold and expiry against the number of pending timers.

First, each contestant runs the scenarios of `compare.trial.bench.work` with counters, and the
oracle checks it. Then it is timed without counters, and must fire the same rows again. The
contestants take turns, so that interference affects all of them equally.

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
from statistics import mean, median
from typing import Any, Protocol

import numpy as np

from compare.base.garbage import no_collections
from compare.trial.bench.sources import check_same_rows, digest_of
from compare.trial.bench.task import BY_CLOCK, BY_EVENT, HOLD, INSERT, TASKS, Task
from compare.trial.bench.work import (
    LONGEST_DELAY,
    SCENARIOS,
    UNIT,
    Scenario,
    ScenarioRun,
    Tapes,
    runs_per_sample,
    tapes_of,
)
from compare.trial.oracle.compiled import check_agreement
from compare.trial.replay.contestant import COMPILED, Contestant
from compare.trial.replay.engine import Buffers, Clock, OverBudgetError, loop_for
from compare.trial.replay.loops import OPERATION
from compare.trial.results.schema import MEMORY, OVER_BUDGET, Row, rows_of
from timers.schemes.base import KernelTimer

CALLS = 64  # empty calls; their median is subtracted from the time of each call

Progress = Callable[[str], None]
"""Called with a description before each step."""

Store = Callable[[str, Sequence[Row]], None]
"""Called with the name of a task that is finished, and its rows."""


class Measurement(Protocol):
    """A part of a comparison."""

    @property
    def tasks(self) -> list[str]:
        """The names with which `run` stores rows; none if there is nothing to measure."""

    @property
    def steps(self) -> int:
        """The number of calls of `progress` by `run`, or more."""

    def run(self, progress: Progress = ..., store: Store = ...) -> None:
        """Measure, and store the rows of each task as soon as it is finished."""


def another_fits(rounds: Sequence[float], budget: float) -> bool:
    """Whether another round fits into the budget, given the seconds of those so far.

    The first round always does.
    """
    return not rounds or sum(rounds) + mean(rounds) <= budget


@dataclass
class _Series:
    """The measurements of one contestant at one size."""

    contestant: Contestant
    tapes: Tapes
    #: digest of the rows that fire in each scenario; None if it was cut short
    digests: dict[Scenario, bytes | None] = field(default_factory=dict)
    #: the operations of each task, and what they counted
    counted: dict[Task, tuple[int, dict[str, int]]] = field(default_factory=dict)
    rounds: list[float] = field(default_factory=list)  # seconds of each, including set-up

    def rows(
        self, subject: str, values: Mapping[str, float], repeat: int | None = None
    ) -> list[Row]:
        """Return rows of the table of results."""
        return [*rows_of(self.contestant.label, subject, values, self.tapes.size, repeat)]


@dataclass
class Bench:
    """Run all measurements, and collect them as rows of the table of results.

    Each task is sampled at most `repeats` times at each size. A contestant gets fewer samples if
    they would take longer than `budget` seconds in total.
    """

    contestants: Sequence[Contestant]
    sizes: Sequence[int]
    repeats: int
    budget: float
    seed: int
    clock: Clock = time.thread_time
    rows: list[Row] = field(default_factory=list, init=False)
    tapes: int = field(default=0, init=False)  # checked, counted once for each contestant
    expiries: int = field(default=0, init=False)  # checked
    _over_budget: set[tuple[str, Task]] = field(default_factory=set, init=False)  # by label
    _overhead: dict[str, Mapping[Task, float]] = field(default_factory=dict, init=False)

    @property
    def steps(self) -> int:
        """The number of calls of `progress` by `run`."""
        return len(self.contestants) * (1 + self.repeats) * len(self.sizes)

    @property
    def tasks(self) -> list[str]:
        """The names with which `run` stores rows: one for each size."""
        return [f"pending-{size}" for size in sorted(self.sizes)]

    def run(
        self, progress: Progress = lambda step: None, store: Store = lambda name, rows: None
    ) -> None:
        """Run all measurements, smaller sizes first.

        Raises AgreementError for a timer that disagrees with the oracle.
        """
        for size, name in zip(sorted(self.sizes), self.tasks, strict=True):
            tapes, all_series, before = tapes_of(size, self.seed), [], len(self.rows)
            for contestant in self.contestants:
                progress(f"checking {contestant.name} at {size:,}")
                all_series.append(_Series(contestant, tapes))
                self._check(all_series[-1])
            for repeat in range(self.repeats):
                for series in all_series:
                    progress(f"timing {series.contestant.name} at {size:,}")
                    if another_fits(series.rounds, self.budget):
                        self._time(series, repeat)
            store(name, self.rows[before:])

    def _check(self, series: _Series) -> None:
        """Run the scenarios with counters, and check them against the oracle."""
        for scenario in SCENARIOS:
            self._check_scenario(series, scenario)
        for task in TASKS:
            operations, counts = series.counted.get(task, (0, {}))
            each = {name: count / max(operations, 1) for name, count in counts.items()}
            self.rows += series.rows(task.name, each)
        if series.digests:
            self._measure_memory(series)

    def _check_scenario(self, series: _Series, whole: Scenario) -> None:
        """Run a scenario up to the first task that is over budget, and check it."""
        contestant, tapes = series.contestant, series.tapes
        label, due = contestant.label, tapes.due(contestant)
        scenario = tuple(takewhile(lambda task: (label, task) not in self._over_budget, whole))
        if not scenario or scenario in series.digests:
            return
        run = ScenarioRun(contestant, tapes, self.clock, counting=True, limit=self.budget)
        before: dict[str, int] = {}
        for position, task in enumerate(scenario):
            try:
                operations, _ = run.run(task)
            except OverBudgetError:
                self._give_up(series, task)
                scenario = scenario[:position]
                break
            after = dict(getattr(run.timer, "counters", None) or {})
            counts = {name: after[name] - before.get(name, 0) for name in after}
            if task == HOLD and HOLD not in series.counted:
                self.rows += series.rows(task.name, slots_of(run.timer))
            series.counted[task] = operations, counts
            before = after
        if scenario != whole:  # it was cut short, and cannot be checked while timers are pending
            if scenario:
                series.digests.setdefault(scenario, None)
            return
        done = run.replay()
        tape, expected = tapes.filling, due.filling
        if HOLD in scenario:
            tape, expected = tapes.holding, due.holding
        check_agreement(label, contestant.traits, tape, expected, done)
        self.tapes += 1
        self.expiries += done.fired.size
        series.digests[scenario] = digest_of(done)
        if task in (BY_CLOCK, BY_EVENT):
            outcome = done.outcome
            counts |= {"advances": outcome.wakeups, "idle_advances": outcome.idle_wakeups}

    def _give_up(self, series: _Series, too_long: Task) -> None:
        """Stop running a task and all tasks that follow it."""
        label = series.contestant.label
        following = (tasks[tasks.index(too_long) :] for tasks in SCENARIOS if too_long in tasks)
        for task in dict.fromkeys(chain.from_iterable(following)):
            if task in TASKS and (label, task) not in self._over_budget:
                size = series.tapes.size
                self.rows.append(Row(label, task.name, size, "time", None, None, OVER_BUDGET))
            self._over_budget.add((label, task))

    def _measure_memory(self, series: _Series) -> None:
        """Fill a timer and let it grow. `tracemalloc` also traces NumPy arrays."""
        small = series.contestant.new(UNIT, 0, 1)
        for deadline in (1, 2):  # it grows, so that no compiled code is loaded during the trace
            small.schedule(deadline)
        timer, size = self._full_timer(series), series.tapes.size
        full = int(timer.nbytes)
        tracemalloc.start()
        try:
            timer.schedule(LONGEST_DELAY)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        grown = int(timer.nbytes)  # more than `full + peak` if it has grown in place
        nbytes = {"at_rest": full, "at_peak": max(full + peak, grown), "grown": grown}
        each = {name: number / size for name, number in nbytes.items()}
        self.rows += series.rows(MEMORY, each)

    def _full_timer(self, series: _Series) -> Any:
        """A timer that has to grow for another insert."""
        run = ScenarioRun(series.contestant, series.tapes, self.clock)
        run.run(INSERT)
        return run.timer

    def _time(self, series: _Series, repeat: int) -> None:
        """Take one sample of every task."""
        contestant, tapes = series.contestant, series.tapes
        if contestant.label not in self._overhead:
            self._overhead[contestant.label] = overhead(contestant, self.clock)
        empty_calls, started = self._overhead[contestant.label], self.clock()
        seconds: dict[Task, float] = defaultdict(float)
        operations: dict[Task, int] = defaultdict(int)
        for scenario, digest in series.digests.items():
            for _ in range(runs_per_sample(contestant, scenario, tapes.size)):
                run = ScenarioRun(contestant, tapes, self.clock)
                for task in scenario:
                    done, spent = run.run(task)
                    seconds[task] += max(spent - empty_calls.get(task, empty_calls[INSERT]), 0.0)
                    operations[task] += done
                if digest is not None:
                    check_same_rows(contestant, run.replay(), digest)
        if series.digests:
            timer, before = self._full_timer(series), self.clock()
            timer.schedule(LONGEST_DELAY)
            self.rows += series.rows(MEMORY, {"pause": 1e3 * (self.clock() - before)}, repeat)
        for task in seconds.keys() & {*TASKS}:
            each = seconds[task] / operations[task]
            sample = {"time": each * 1e9, "operations": operations[task]}
            self.rows += series.rows(task.name, sample, repeat)
            if each * tapes.operations(task) > self.budget:
                self._give_up(series, task)
        series.rounds.append(self.clock() - started)


def overhead(contestant: Contestant, clock: Clock = time.thread_time) -> Mapping[Task, float]:
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
    return {task: median(call() for _ in range(CALLS)) for task, call in calls.items()}


def slots_of(timer: Any) -> dict[str, float]:
    """The share of a wheel's pending timers that are in its slots; empty for others. O(pending).

    Timers that are not in a slot wait in a list until the wheel's range reaches them, or until the
    tick in which they arrived ends. While all timers wait, a measurement shows the list and not the
    wheel.
    """
    kind: Any = type(timer)
    if not isinstance(timer, KernelTimer) or not kind(**timer.parameters).snapshot().rings:
        return {}
    with no_collections():  # a snapshot has an object for each timer
        rings = timer.snapshot().rings
    in_slots = sum(len(timers) for ring in rings for timers in ring.slots.values())
    return {"in_slots": in_slots / max(len(timer), 1)}
