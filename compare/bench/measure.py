"""Measures insert, cancel, hold and expiry against the number of pending timers.

First every contestant runs both tapes of `compare.bench.work` counting, and must do what the oracle
says. Then it is timed without counting, in rounds over all contestants so that a busy moment of the
machine affects all of them; the rows that fire must be the same again. A timer without a kernel
counts nothing, and the run that is checked is its first sample.

All that a sample writes to has been written to before. The cost of the call itself is measured
apart and subtracted.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

import numpy as np

from compare.bench.contestant import COMPILED, PYTHON_LOOP, Contestant
from compare.bench.predict import Observed, predict
from compare.bench.sources import digest_of
from compare.bench.task import BY_CLOCK, BY_EVENT, CANCEL_ALL, INSERT, TASKS, Task
from compare.bench.work import SETUP, Plan, Trial, plan, trials
from compare.oracle.compiled import NEVER, AgreementError, Expected, check_agreement, expect
from compare.replay.engine import Buffers, Clock, Replay
from compare.replay.loops import OPERATION
from compare.tapes.tape import Tape

PILOTS = (64, 512)
"""Sizes below those asked for that are run to learn the growth, without keeping their samples."""

LEAST_ADVANCE = 5e-9
"""Seconds of an advance: bounds the time of a task that was not run at any size yet."""

CALLS = 64  # empty calls, of which the median is subtracted from each sample


class Sample(NamedTuple):
    """One measured time."""

    contestant: int  # index
    size: int
    task: Task
    repeat: int
    operations: int
    ns_per_operation: float


class TooLong(NamedTuple):
    """A measurement that was not made."""

    contestant: int
    size: int
    task: Task
    operations: int
    seconds: float  # predicted, of one repeat with its set-up


class Counted(NamedTuple):
    """One counter of one measurement."""

    contestant: int
    size: int
    task: Task
    counter: str
    value: int
    operations: int


class Memory(NamedTuple):
    """Bytes held with `size` timers pending and room for no more."""

    contestant: int
    size: int
    nbytes: int


Progress = Callable[[str], None]
"""Called before each of the `Bench.steps` with what it is."""


class Overhead(NamedTuple):
    """Seconds that a call of each compiled loop takes when there is nothing to do."""

    run: float
    drain: float
    tick: float


class _Size:
    """What all contestants share at one size: the tapes, what must fire, and the buffers."""

    def __init__(self, size: int, seed: int) -> None:
        self.plan = plan(size, seed)
        self.buffers = self.plan.buffers()
        self._expected: dict[Hashable, tuple[Expected, Expected]] = {}
        self._moments: dict[Hashable, int] = {}

    def expected(self, contestant: Contestant) -> tuple[Expected, Expected]:
        """What filling and holding must do; computed once for all that fire alike."""
        rounding = contestant.rounding
        if rounding not in self._expected:
            tapes = self.plan.filling, self.plan.holding
            filling, holding = (expect(tape, self.plan.size, rounding) for tape in tapes)
            self._expected[rounding] = filling, holding
        return self._expected[rounding]

    def last_expiry(self, contestant: Contestant) -> int:
        """The moment at which the last timer fires."""
        return int(self.expected(contestant)[1].fired_at.max())

    def steps(self, contestant: Contestant, task: Task) -> int:
        """Units by clock, moments at which something fires by event, operations of all else."""
        if task == BY_CLOCK:
            return self.last_expiry(contestant)
        if task == BY_EVENT:
            rounding = contestant.rounding
            if rounding not in self._moments:
                fired_at = self.expected(contestant)[1].fired_at
                self._moments[rounding] = np.unique(fired_at[fired_at != NEVER]).size
            return self._moments[rounding]
        return self.plan.operations(task)


@dataclass
class _Series:
    """The repeats of one contestant at one size."""

    tasks: frozenset[Task]
    digests: dict[Task, bytes] = field(default_factory=dict)  # of what fires, by way of expiry
    work: dict[Task, int | None] = field(default_factory=dict)  # counted; None without counters
    repeats: int = 0  # made so far
    spent: float = 0.0  # seconds in them, set-up included


@dataclass
class Bench:
    """Makes all measurements; `samples`, `too_long`, `counted` and `memory` collect the results."""

    contestants: Sequence[Contestant]
    sizes: Sequence[int]
    repeats: int  # at most; fewer where they would together exceed the budget
    budget: float  # seconds for one repeat of a measurement
    seed: int
    clock: Clock = time.perf_counter
    samples: list[Sample] = field(default_factory=list)
    too_long: list[TooLong] = field(default_factory=list)
    counted: list[Counted] = field(default_factory=list)
    memory: list[Memory] = field(default_factory=list)
    tapes: int = 0  # checked against the oracle, counted for each contestant
    expiries: int = 0  # compared with it
    _observed: dict[tuple[int, Task], list[Observed]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _overhead: dict[int, Overhead] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        """How often `run` calls its argument."""
        return len(self.contestants) * (len(self._pilots()) + len(self.sizes) * (1 + self.repeats))

    def run(self, progress: Progress = lambda what: None) -> None:
        """Make all measurements, smaller sizes first.

        Raises AgreementError for a timer that disagrees with the oracle.
        """
        for size in self._pilots():
            at = _Size(size, self.seed)
            for c, contestant in enumerate(self.contestants):
                progress(f"estimating {contestant.name} at {size:,}")
                series = _Series(self._affordable(c, at, keep=False))
                self._check(c, at, series, keep=False)
                self._time(c, at, series, keep=False)
        for size in sorted(self.sizes):
            self._run_size(_Size(size, self.seed), progress)

    def _pilots(self) -> list[int]:
        return [size for size in PILOTS if size < min(self.sizes, default=0)]

    def _run_size(self, at: _Size, progress: Progress) -> None:
        all_series = []
        for c, contestant in enumerate(self.contestants):
            progress(f"checking {contestant.name} at {at.plan.size:,}")
            series = _Series(self._affordable(c, at, keep=True))
            self._check(c, at, series, keep=True)
            all_series.append(series)
        for repeat in range(self.repeats):
            for c, (contestant, series) in enumerate(
                zip(self.contestants, all_series, strict=True)
            ):
                progress(f"timing {contestant.name} at {at.plan.size:,}")
                next_one = series.spent / max(series.repeats, 1)
                in_time = repeat == 0 or series.spent + next_one <= self.budget
                if repeat == series.repeats and in_time:
                    self._time(c, at, series, keep=True)

    def _affordable(self, c: int, at: _Size, *, keep: bool) -> frozenset[Task]:
        """The tasks that fit into the budget, each together with its set-up."""
        own = {task: self._predicted(c, at, task) for task in TASKS}
        seconds = {task: own[task] + sum(own[before] for before in SETUP[task]) for task in TASKS}
        slow = {task for task in TASKS if seconds[task] > self.budget}
        if keep:
            for task in TASKS:
                if task in slow:
                    self.too_long.append(
                        TooLong(c, at.plan.size, task, at.plan.operations(task), seconds[task])
                    )
        return frozenset(TASKS) - slow

    def _predicted(self, c: int, at: _Size, task: Task) -> float:
        """Seconds of one repeat; where nothing is known yet, the least that it can be."""
        steps = at.steps(self.contestants[c], task)
        least = steps * LEAST_ADVANCE if task in (BY_CLOCK, BY_EVENT) else 0.0
        observed = self._observed[c, task]
        return max(least, predict(observed, at.plan.size, steps) if observed else 0.0)

    def _trials(
        self, c: int, at: _Size, series: _Series, *, counting: bool = False, sampling: bool = False
    ) -> Iterator[tuple[Trial, Task | None, float]]:
        """The trials of a contestant at one size."""
        contestant = self.contestants[c]
        return trials(
            contestant,
            at.plan,
            series.tasks,
            at.buffers,
            at.last_expiry(contestant),
            counting=counting,
            sampling=sampling,
            clock=self.clock,
        )

    def _check(self, c: int, at: _Size, series: _Series, *, keep: bool) -> None:
        """Run the tasks counting, and check what they do against the oracle.

        A timer without a kernel cannot count: it is timed at once.
        """
        contestant, times = self.contestants[c], _Times(at.plan, self.clock)
        counts: dict[Task, dict[str, int]] = {}
        before: dict[str, int] = {}
        for trial, task, seconds in self._trials(c, at, series, counting=True):
            if task is not None:
                times.add(task, seconds)
                before = dict.fromkeys(before, 0) if task == INSERT else before
                counters = trial.counters()
                counts[task] = {
                    name: value - before.get(name, 0) for name, value in counters.items()
                }
                series.work[task] = (
                    at.steps(contestant, task) + sum(counts[task].values()) if counters else None
                )
                before = counters
            if task == INSERT and keep and len(counts) == 1:
                self._measure_memory(c, at.plan.size, trial)
            filling, holding = at.expected(contestant)
            if task == CANCEL_ALL:
                self._agree(contestant, at.plan.filling, filling, trial)
            elif task in (BY_CLOCK, BY_EVENT, None):
                done = self._agree(contestant, at.plan.holding, holding, trial)
                if task is not None:
                    series.digests[task] = digest_of(done)
                    counts[task] |= {
                        "advances": done.outcome.wakeups,
                        "idle_advances": done.outcome.idle_wakeups,
                    }
        if keep:
            for task, counters in counts.items():
                operations = at.plan.operations(task)
                self.counted += [
                    Counted(c, at.plan.size, task, *item, operations) for item in counters.items()
                ]
        if contestant.engine == PYTHON_LOOP:
            self._keep(c, at, series, times, keep=keep)

    def _measure_memory(self, c: int, size: int, full: Trial) -> None:
        """Keep the bytes of a full timer; one that counts holds its counters as well."""
        contestant = self.contestants[c]
        timer = full.timer if contestant.engine == PYTHON_LOOP else contestant.new(0, size)
        self.memory.append(Memory(c, size, int(timer.nbytes)))

    def _agree(
        self, contestant: Contestant, tape: Tape, expected: Expected, trial: Trial
    ) -> Replay:
        done = trial.replay()
        check_agreement(contestant.label, contestant.traits, tape, expected, done)
        self.tapes += 1
        self.expiries += done.fired.size
        return done

    def _time(self, c: int, at: _Size, series: _Series, *, keep: bool) -> None:
        """Make one sample of every task."""
        contestant = self.contestants[c]
        if c not in self._overhead:
            self._overhead[c] = overhead(contestant, self.clock)
        times = _Times(at.plan, self.clock, self._overhead[c])
        for trial, task, seconds in self._trials(c, at, series, sampling=True):
            if task is not None:
                times.add(task, seconds)
            if task in (BY_CLOCK, BY_EVENT) and digest_of(trial.replay()) != series.digests[task]:
                raise AgreementError(
                    f"{contestant.label} fired other rows when timed than when checked"
                )
        self._keep(c, at, series, times, keep=keep)

    def _keep(self, c: int, at: _Size, series: _Series, times: "_Times", *, keep: bool) -> None:
        """Keep times: as samples, unless they are a pilot's, and to predict larger sizes by."""
        size = at.plan.size
        for task, seconds in times.seconds.items():
            operations = times.operations[task]
            if keep:
                self.samples.append(
                    Sample(c, size, task, series.repeats, operations, seconds / operations * 1e9)
                )
            # The least of each size: what disturbs a measurement only ever adds to it.
            least = seconds / operations * at.plan.operations(task)
            observed = self._observed[c, task]
            if observed and observed[-1].size == size:
                least = min(least, observed.pop().seconds)
            steps = at.steps(self.contestants[c], task)
            observed.append(Observed(size, steps, series.work[task], least))
        series.repeats += 1
        series.spent += self.clock() - times.begun


class _Times:
    """Adds up the times of one sample."""

    def __init__(self, of: Plan, clock: Clock, cost: Overhead | None = None) -> None:
        self.begun = clock()
        self.seconds: dict[Task, float] = defaultdict(float)
        self.operations: dict[Task, int] = defaultdict(int)
        self._plan = of
        self._calls = {} if cost is None else {BY_EVENT: cost.drain, BY_CLOCK: cost.tick}
        self._call = 0.0 if cost is None else cost.run

    def add(self, task: Task, seconds: float) -> None:
        """Add a run of a task, less what the call itself costs."""
        self.seconds[task] += max(seconds - self._calls.get(task, self._call), 0.0)
        self.operations[task] += self._plan.operations(task)


def overhead(contestant: Contestant, clock: Clock = time.perf_counter) -> Overhead:
    """The cost of a call of compiled code: the median of empty ones. Zero for Python loops."""
    if contestant.engine != COMPILED:
        return Overhead(0.0, 0.0, 0.0)
    trial, nothing = Trial(contestant, 1, Buffers(1, 1), clock=clock), np.empty(0, OPERATION)
    calls: tuple[Callable[[], float], ...] = (
        lambda: trial.run(nothing),
        trial.loop.drain,
        lambda: trial.loop.tick(0),
    )
    for call in calls:
        call()
    return Overhead(*(median(call() for _ in range(CALLS)) for call in calls))
