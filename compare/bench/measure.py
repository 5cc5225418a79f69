"""Measures insert, cancel, hold and expiry against the number of pending timers.

First every contestant runs the scenarios of `compare.bench.work` counting, and must do what the
oracle says. Then it is timed without counting, in rounds over all contestants so that a busy moment
of the machine affects all of them; the rows that fire must be the same again.

All that a sample writes to has been written to before. The cost of the call itself is measured
apart and subtracted.
"""

import time
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from statistics import median
from typing import NamedTuple

import numpy as np

from compare.bench.contestant import COMPILED, Contestant
from compare.bench.predict import Observed, predict
from compare.bench.slots import Slots, slots_of
from compare.bench.sources import digest_of
from compare.bench.task import BY_CLOCK, BY_EVENT, CANCEL_ALL, HOLD, INSERT, TASKS, Task
from compare.bench.work import GROW, SCENARIOS, Plan, Scenario, Trial, plan, times
from compare.oracle.compiled import AgreementError, check_agreement
from compare.replay.engine import Buffers, Clock, loop_for
from compare.replay.loops import OPERATION

PILOTS = (128, 256)
"""Sizes below those asked for that are run to learn the growth, without keeping their samples.

The worst growth is assumed after the first one, so the second is not much larger.
"""

LEAST_ADVANCE = 5e-9
"""Seconds of an advance: bounds the time of a task that was not run at any size yet."""

CALLS = 64  # empty calls, of which the median is subtracted from each call


class Sample(NamedTuple):
    """One measured time, or the prediction of one that was not measured."""

    contestant: int  # index
    size: int
    task: Task
    operations: int
    repeat: int | None = None
    ns_per_operation: float | None = None
    predicted_seconds: float | None = None  # of one repeat with its set-up


class Counted(NamedTuple):
    """One counter of one measurement."""

    contestant: int
    size: int
    task: Task
    counter: str
    value: int
    operations: int


class Memory(NamedTuple):
    """Bytes that a timer holds with `size` pending and room for no more, and when it grows."""

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

    scenarios: Sequence[Scenario]
    digests: dict[Scenario, bytes] = field(default_factory=dict)  # of what fires
    work: dict[Task, int | None] = field(default_factory=dict)  # counted; None without counters
    memory: Memory | None = None
    repeats: int = 0  # made so far
    spent: float = 0.0  # seconds in them, set-up included


@dataclass
class Bench:
    """Makes all measurements; `samples`, `counted`, `memory` and `slots` collect the results.

    At most `repeats` samples are made: fewer where they would together exceed `budget` seconds. A
    task that exceeds it alone is predicted.
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
    _observed: defaultdict[tuple[int, Task], dict[int, Observed]] = field(
        default_factory=lambda: defaultdict(dict), init=False
    )
    _overhead: dict[int, Mapping[Task, float]] = field(default_factory=dict, init=False)

    @property
    def steps(self) -> int:
        """How often `run` calls its argument."""
        rounds = 2 * len(self._pilots()) + (1 + self.repeats) * len(self.sizes)
        return len(self.contestants) * rounds

    def run(self, progress: Progress = lambda what: None) -> None:
        """Make all measurements, smaller sizes first.

        Raises AgreementError for a timer that disagrees with the oracle.
        """
        for size in self._pilots():
            self._run_size(size, 1, progress)
        # Of the pilots, only what predicts the rest is kept.
        for results in (self.samples, self.counted, self.memory, self.slots):
            results.clear()
        for size in sorted(self.sizes):
            self._run_size(size, self.repeats, progress)

    def _pilots(self) -> list[int]:
        return [size for size in PILOTS if size < min(self.sizes, default=0)]

    def _run_size(self, size: int, repeats: int, progress: Progress) -> None:
        at, all_series = plan(size, self.seed), []
        for c, contestant in enumerate(self.contestants):
            progress(f"checking {contestant.name} at {size:,}")
            all_series.append(self._checked(c, at))
        for repeat in range(repeats):
            for c, series in enumerate(all_series):
                progress(f"timing {self.contestants[c].name} at {size:,}")
                next_one = series.spent / max(series.repeats, 1)
                if repeat == 0 or series.spent + next_one <= self.budget:
                    self._time(c, at, series)

    def _affordable(self, c: int, at: Plan) -> list[Scenario]:
        """The scenarios, as far as they fit into the budget."""
        scenarios: dict[Scenario, None] = {}
        too_long: dict[Task, float] = {}
        for scenario in SCENARIOS:
            seconds = list(accumulate(self._predicted(c, at, task) for task in scenario))
            fitting = sum(needed <= self.budget for needed in seconds)
            too_long |= zip(scenario[fitting:], seconds[fitting:], strict=True)
            if fitting:
                scenarios[scenario[:fitting]] = None
        self.samples += [
            Sample(c, at.size, task, at.operations(task), predicted_seconds=needed)
            for task, needed in too_long.items()
            if task in TASKS
        ]
        return list(scenarios)

    def _predicted(self, c: int, at: Plan, task: Task) -> float:
        """Seconds of one repeat; where nothing is known yet, the least that it can be."""
        steps = at.steps(self.contestants[c], task)
        least = steps * LEAST_ADVANCE if task in (BY_CLOCK, BY_EVENT) else 0.0
        observed = list(self._observed[c, task].values())
        return max(least, predict(observed, at.size, steps) if observed else 0.0)

    def _checked(self, c: int, at: Plan) -> _Series:
        """Run the scenarios counting, and check what they do against the oracle."""
        contestant, size = self.contestants[c], at.size
        due, series = at.due(contestant), _Series(self._affordable(c, at))
        counts: dict[Task, dict[str, int]] = {}
        operations: dict[Task, int] = {}
        for scenario in series.scenarios:
            trial = Trial(contestant, at, self.clock, counting=True)
            before: dict[str, int] = {}
            for task in scenario:
                operations[task], _ = trial.run(task, due.last)
                after = dict(getattr(trial.timer, "counters", None) or {})
                counts[task] = {name: after[name] - before.get(name, 0) for name in after}
                work = at.steps(contestant, task) + sum(counts[task].values())
                series.work[task] = work if after else None
                before = after
                if task == HOLD and scenario == series.scenarios[-1]:
                    self.slots += slots_of(c, size, trial.timer)
            if CANCEL_ALL in scenario or HOLD in scenario:
                if scenario[-1] == HOLD:
                    trial.jump(due.last)
                done = trial.replay()
                tape, expected = at.filling, due.filling
                if HOLD in scenario:
                    tape, expected = at.holding, due.holding
                check_agreement(contestant.label, contestant.traits, tape, expected, done)
                self.tapes += 1
                self.expiries += done.fired.size
                series.digests[scenario] = digest_of(done)
                if scenario[-1] in (BY_CLOCK, BY_EVENT):
                    last, outcome = counts[scenario[-1]], done.outcome
                    last["advances"], last["idle_advances"] = outcome.wakeups, outcome.idle_wakeups
        self.counted += [
            Counted(c, size, task, name, value, operations[task])
            for task in TASKS
            for name, value in counts.get(task, {}).items()
        ]
        if series.scenarios:
            series.memory = self._measure_memory(c, at)
        return series

    def _measure_memory(self, c: int, at: Plan) -> Memory:
        """Fill a timer and let it grow. `tracemalloc` knows of NumPy's arrays, too."""
        small = self.contestants[c].new(0, 1)
        for deadline in (1, 2):  # grows, so that no compiled code is loaded while it is traced
            small.schedule(deadline)
        trial = self._full(c, at)
        full = int(trial.timer.nbytes)
        tracemalloc.start()
        try:
            trial.run(GROW)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        found = Memory(c, at.size, full, full + peak, int(trial.timer.nbytes), [])
        self.memory.append(found)
        return found

    def _full(self, c: int, at: Plan) -> Trial:
        trial = Trial(self.contestants[c], at, self.clock)
        trial.run(INSERT)
        return trial

    def _time(self, c: int, at: Plan, series: _Series) -> None:
        """Make one sample of every task."""
        contestant, size = self.contestants[c], at.size
        due = at.due(contestant)
        if c not in self._overhead:
            self._overhead[c] = overhead(contestant, self.clock)
        calls, begun = self._overhead[c], self.clock()
        seconds: dict[Task, float] = defaultdict(float)
        operations: dict[Task, int] = defaultdict(int)
        for scenario in series.scenarios:
            for _ in range(times(contestant, scenario, size)):
                trial = Trial(contestant, at, self.clock)
                for task in scenario:
                    done, spent = trial.run(task, due.last)
                    seconds[task] += max(spent - calls.get(task, calls[INSERT]), 0.0)
                    operations[task] += done
                fires_all = scenario in series.digests and scenario[-1] != HOLD
                if fires_all and digest_of(trial.replay()) != series.digests[scenario]:
                    raise AgreementError(
                        f"{contestant.label} fired other rows when timed than when checked"
                    )
        if series.memory:
            series.memory.growth_seconds.append(self._full(c, at).run(GROW)[1])
        for task, total in seconds.items():
            each = total / operations[task]
            if task in TASKS:
                self.samples.append(
                    Sample(c, size, task, operations[task], series.repeats, each * 1e9)
                )
            # The least time predicts larger sizes, since disturbances only ever add.
            least, observed = each * at.operations(task), self._observed[c, task]
            if size in observed:
                least = min(least, observed[size].seconds)
            steps = at.steps(contestant, task)
            observed[size] = Observed(size, steps, series.work[task], least)
        series.repeats += 1
        series.spent += self.clock() - begun


def overhead(contestant: Contestant, clock: Clock = time.perf_counter) -> Mapping[Task, float]:
    """Seconds of a call of each compiled loop with nothing to do: `run` stands under INSERT.

    Each is the median of several. Zero for Python loops.
    """
    if contestant.engine != COMPILED:
        return {INSERT: 0.0}
    loop = loop_for(contestant.new(0, 1), Buffers(1, 1), lambda rows: None, clock)
    nothing = np.empty(0, OPERATION)
    calls: dict[Task, Callable[[], float]] = {
        INSERT: lambda: loop.run(nothing, reserve=False),
        BY_EVENT: loop.drain,
        BY_CLOCK: lambda: loop.tick(0),
    }
    for call in calls.values():
        call()  # compiles
    return {task: median(call() for _ in range(CALLS)) for task, call in calls.items()}
