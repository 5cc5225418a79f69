"""Time timers of other languages beside the project's own, on the tapes of a benchmark.

At each size there are four tapes: the two of `compare.trial.bench.work`, one of re-arms, and one
for the costs of a caller (`compare.trial.bench.callers`). Operations that do nothing move the clock
unit by unit where a tape needs it, so that each structure is driven in the same way.

Every peer is first checked on these tapes. One that disagrees, fails, takes too long or is not
built gets a row with the reason, and is not timed; the others go on. Then all take turns. A turn of
a peer is a new process for each tape, whose warm-up is not counted. At last each peer times its
single operations, for a histogram. Times are CPU times: of the process for a peer, whose garbage
collector may have threads of its own.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from compare.base.quantiles import QUANTILES
from compare.traffic.tapes.tape import CANCEL, DTYPES, REARM, START, Tape, joined, part
from compare.trial.bench import callers
from compare.trial.bench.callers import COMPILED_CODE, OPENS, Plan, plan_of
from compare.trial.bench.measure import Progress, Store, another_fits
from compare.trial.bench.task import BY_CLOCK, CANCEL_ALL, HOLD, INSERT, Task
from compare.trial.bench.work import (
    SCENARIOS,
    SETTLING,
    UNIT,
    ScenarioRun,
    Tapes,
    tapes_of,
)
from compare.trial.peers.catalogue import Entry
from compare.trial.peers.protocol import PeerError, PhaseTime
from compare.trial.peers.run import DEFAULT_TIMEOUT, Peer
from compare.trial.replay.contestant import Contestant
from compare.trial.replay.engine import Clock, OverBudgetError, operations_of
from compare.trial.results.schema import OVER_BUDGET, Row, rows_of

RE_ARM = Task("re-arm", "none")
"""Re-arming all pending timers, in random order, by what the users of a structure call for it."""

TASKS = (INSERT, CANCEL_ALL, RE_ARM, HOLD, BY_CLOCK)
SUBJECTS = {f"peer {task.operation}": task.operation for task in TASKS}
"""The subjects of rows, with the operation of each."""
METRIC = "peer_time"
MEMORY = "peer_memory"
CALLER = "peer"
"""The subject of the costs of a caller who is written in the language of the peer."""
SINGLE = {f"single_{name}": share for name, share in QUANTILES.items()}
"""The metrics of single operations, with the share of each quantile."""


class Phases(NamedTuple):
    """A tape in phases."""

    tape: Tape
    first: tuple[int, ...]  # the first operation of each phase
    id_space: int

    @classmethod
    def of(cls, *parts: Tape) -> "Phases":
        """Join the parts of a tape."""
        first = np.cumsum([0, *(each.time.size for each in parts[:-1])])
        tape = joined(parts)
        return cls(tape, tuple(first.tolist()), int(tape.id.max()) + 1)


def _rows(time_: Any, op: Any, id_: Any, deadline: Any) -> Tape:
    """A part of a tape, from columns or single values."""
    columns = np.broadcast_arrays(np.atleast_1d(time_), op, id_, deadline)
    return Tape(*(column.astype(kind) for column, kind in zip(columns, DTYPES, strict=True)))


def filling(tapes: Tapes) -> Phases:
    """Phases: insert; settle; cancel."""
    n, tape = tapes.size, tapes.filling
    return Phases.of(part(tape, 0, n), part(tape, n, n + 1), part(tape, n + 1))


def rearming(tapes: Tapes) -> Phases:
    """Phases: insert; settle; re-arm."""
    n, tape = tapes.size, tapes.filling
    delays = tape.deadline[:n][::-1]  # random, whatever the order
    rearms = _rows(SETTLING, REARM, tape.id[n + 1 :], SETTLING + delays)
    return Phases.of(part(tape, 0, n), part(tape, n, n + 1), rearms)


def holding(tapes: Tapes) -> Phases:
    """Phases: insert; settle; hold; expiry, unit by unit."""
    n, tape = tapes.size, tapes.holding
    moments = np.arange(tape.time[-1] + 1, tape.deadline.max() + 2)
    settle = joined([part(tape, n, n + 1), _idle(n)])
    return Phases.of(part(tape, 0, n), settle, part(tape, n + 1), _idle_steps(moments, n))


def calling(plan: Plan) -> Phases:
    """Phases: start; settle and the first pairs; pairs; steps; a jump; expiries and as many starts.

    They are what `callers.costs_of` lets a caller do. A step ends each round of pairs, so that what
    these leave for the next step, as Netty's queue of new timers, is part of them.
    """
    n, replacements = plan.size, plan.replacements
    ids = plan.slots.repeat(2)
    deadlines = np.zeros(ids.size, np.int64)
    deadlines[1::2] = plan.deadlines
    moments = SETTLING + (np.arange(ids.size) >= 2 * plan.pair_count)
    pairs = _rows(moments, np.tile([CANCEL, START], plan.slots.size), ids, deadlines)
    half = 2 * plan.pair_count
    steps = SETTLING + 3 + np.arange(callers.steps_of(plan))
    moments = OPENS + np.arange(len(replacements)).repeat(replacements.shape[1])
    ids = n + 1 + np.arange(replacements.size)
    fires = _rows(moments, START, ids, replacements.ravel())
    rest = _idle_steps(np.arange(moments[-1] + 1, _last_step(plan) + 1), n)
    return Phases.of(
        _rows(0, START, np.arange(n), plan.filling),
        joined([_idle(n), part(pairs, 0, half), _idle_steps(np.array([SETTLING + 1]), n)]),
        joined([part(pairs, half), _idle_steps(np.array([SETTLING + 2]), n)]),
        _idle_steps(steps, n),
        _idle_steps(np.array([OPENS - 1]), n),
        joined([fires, rest]),
    )


def _last_step(plan: Plan) -> int:
    """The unit after the last window."""
    return OPENS + plan.windows * plan.window


def _idle(id_: int) -> Tape:
    """A timer that is due at once. Whatever comes later finds that it has fired."""
    return _rows(SETTLING, START, id_, SETTLING)


def _idle_steps(moments: Any, id_: int) -> Tape:
    """Move the clock to these moments; a timer that has fired is cancelled in vain."""
    return _rows(moments, CANCEL, id_, 0)


def costs(times: Sequence[PhaseTime], plan: Plan) -> dict[str, float]:
    """The costs of a caller, in ns, from the times of the tape `calling`."""
    _, _, pairs, steps, _, fires, _ = (phase.cpu_ns for phase in times)
    step = steps / callers.steps_of(plan)
    fire = (fires - step * (_last_step(plan) - OPENS + 1)) / plan.fires
    each = (pairs / plan.pair_count, max(fire, 0.0), step)
    return dict(zip(callers.METRICS, each, strict=True))


Work = Callable[["_Turn"], str | None]


@dataclass(frozen=True)
class _Turn:
    """A peer with the tapes of a size."""

    entry: Entry
    tapes: Tapes
    plan: Plan
    seconds: float

    @cached_property
    def peer(self) -> Peer:
        """The program. Raises PeerError if it is not ready."""
        return self.entry.peer(self.seconds)

    @property
    def all(self) -> tuple[Phases, ...]:
        """All tapes."""
        of_tasks = (make(self.tapes) for make in (filling, rearming, holding))
        return *of_tasks, calling(self.plan)

    def time(self, phases: Phases, *, histogram: bool = False) -> list[PhaseTime]:
        """The times of the phases; the last is the drain."""
        return self.peer.time(
            phases.tape,
            phases.id_space,
            unit=UNIT,
            phases=phases.first,
            rounds=1,
            warm_up=-(-self.entry.language.warm_up // phases.tape.time.size),
            histogram=histogram,
        )

    def by_task(self, *, histogram: bool = False) -> dict[Task, PhaseTime]:
        """The times of each task: insert and cancel on one tape, hold and expiry on another."""
        insert, _, cancel, _ = self.time(filling(self.tapes), histogram=histogram)
        _, _, rearm, _ = self.time(rearming(self.tapes), histogram=histogram)
        _, _, hold, expiry, _ = self.time(holding(self.tapes), histogram=histogram)
        return dict(zip(TASKS, (insert, cancel, rearm, hold, expiry), strict=True))


@dataclass
class PeerBench:
    """Check and time the chosen peers, and time the project's timers in turns with them.

    A peer or timer gets fewer than `repeats` turns if what is timed would take longer than `budget`
    seconds. A peer that failed, or that did not end in `timeout` seconds, is not run again.
    """

    peers: Sequence[Entry]
    contestants: Sequence[Contestant]
    sizes: Sequence[int]
    repeats: int
    budget: float
    seed: int
    clock: Clock = time.thread_time
    timeout: float = DEFAULT_TIMEOUT
    tasks_only: bool = False  # without the costs of a caller and single operations
    rows: list[Row] = field(default_factory=list, init=False)
    _problems: dict[str, str] = field(default_factory=dict, init=False)  # by name

    @property
    def steps(self) -> int:
        """The number of calls of `progress` by `run`."""
        both = len(self.peers) + len(self.contestants)
        return (2 * len(self.peers) + both * self.repeats) * len(self.sizes)

    @property
    def tasks(self) -> list[str]:
        """The names with which `run` stores rows: one for each size."""
        return [f"peers-{size}" for size in sorted(self.sizes)]

    def entries(self) -> list[dict[str, Any]]:
        """The manifest's entry for each peer; of one that cannot describe itself, what is known."""
        return [self._entry(entry) for entry in self.peers]

    @staticmethod
    def _entry(entry: Entry) -> dict[str, Any]:
        try:
            described = entry.description() if entry.is_ready else None
        except PeerError:
            described = None
        return {
            "name": entry.name,
            "language": described.language if described else entry.language.name,
            "library": described.library_text if described else None,
            "scheme": described.scheme if described else None,
            "rounding": described.fires if described else None,
            "lateness": list(described.rounding.lateness) if described else None,
        }

    def run(
        self, progress: Progress = lambda step: None, store: Store = lambda name, rows: None
    ) -> None:
        """Check and time, smaller sizes first."""
        for size, name in zip(sorted(self.sizes), self.tasks, strict=True):
            tapes, before = tapes_of(size, self.seed), len(self.rows)
            plan = plan_of(COMPILED_CODE, max(size, 8), self.seed)
            spent: dict[str, list[float]] = defaultdict(list)
            turns = [_Turn(entry, tapes, plan, self.timeout) for entry in self.peers]
            for turn in turns:
                progress(f"checking {turn.entry.name} at {size:,}")
                self._attempt(turn, self._check)
            for repeat in range(self.repeats):
                for turn in turns:
                    progress(f"timing {turn.entry.name} at {size:,}")
                    seconds = spent[turn.entry.name]
                    if another_fits(seconds, self.budget):
                        self._attempt(turn, partial(self._time, repeat=repeat, spent=seconds))
                for contestant in self.contestants:
                    progress(f"timing {contestant.name} at {size:,}")
                    if another_fits(spent[contestant.label], self.budget):
                        self._time_own(contestant, tapes, repeat, spent[contestant.label])
            for turn in [] if self.tasks_only else turns:
                progress(f"single operations of {turn.entry.name} at {size:,}")
                self._attempt(turn, self._time_singly)
            store(name, self.rows[before:])

    def _attempt(self, turn: _Turn, work: Work) -> None:
        """Work with a peer, unless it failed before; if it fails, store why."""
        name = turn.entry.name
        if name in self._problems:
            return
        size, problem = turn.tapes.size, None
        try:
            if turn.peer.description.real_time:
                problem = "runs in real time, so its expiries cannot be checked"
            elif reason := work(turn):
                problem = f"with {size:,} timers pending, {reason}"
        except PeerError as error:
            problem = str(error).removeprefix(f"{name}: ")
            if turn.entry.is_ready:
                problem = f"with {size:,} timers pending, {problem}"
        if problem:
            self._problems[name] = problem
            self.rows.append(Row(name, next(iter(SUBJECTS)), size, METRIC, None, None, problem))

    def _check(self, turn: _Turn) -> str | None:
        for tape, _, id_space in turn.all[:-1] if self.tasks_only else turn.all:
            if not turn.peer.description.allows(tape):
                return "it cannot do the tape, by its own description"
            if fault := turn.peer.first_fault(tape, id_space):
                return f"it disagrees: {fault.text}"
        return None

    def _time(self, turn: _Turn, repeat: int, spent: list[float]) -> None:
        """A turn of a peer."""
        name, size = turn.entry.name, turn.tapes.size
        by_task = turn.by_task()
        for task, phase in by_task.items():
            done = phase.expired if task == BY_CLOCK else turn.tapes.operations(task)
            self._store(name, task, size, {METRIC: phase.cpu_ns / max(done, 1)}, repeat)
        if (grown := by_task[INSERT].memory_bytes) is not None:
            self._store(name, INSERT, size, {MEMORY: grown / size}, repeat)
        calls = [] if self.tasks_only else turn.time(calling(turn.plan))
        if calls:
            self.rows += rows_of(name, CALLER, costs(calls, turn.plan), turn.plan.size, repeat)
        spent.append(sum(phase.wall_ns for phase in (*by_task.values(), *calls)) / 1e9)

    def _time_singly(self, turn: _Turn) -> None:
        """The quantiles of single operations, of a peer that can time them."""
        for task, phase in turn.by_task(histogram=True).items():
            if any(phase.histogram):
                values = {name: phase.quantile(share) for name, share in SINGLE.items()}
                self._store(turn.entry.name, task, turn.tapes.size, values)

    def _time_own(
        self, contestant: Contestant, tapes: Tapes, repeat: int, spent: list[float]
    ) -> None:
        """A turn of a timer of the project, which `Bench` has checked on the same tapes."""
        started = self.clock()
        for scenario in (SCENARIOS[0], SCENARIOS[2]):
            run = ScenarioRun(contestant, tapes, self.clock, limit=self.budget)
            for task in scenario:
                try:
                    operations, seconds = run.run(task)
                except OverBudgetError:
                    row = (contestant.label, f"peer {task.operation}", tapes.size, METRIC)
                    self.rows.append(Row(*row, None, None, OVER_BUDGET))
                    break
                if task in TASKS and not (task == INSERT and scenario is SCENARIOS[2]):
                    each = {METRIC: seconds * 1e9 / max(operations, 1)}
                    self._store(contestant.label, task, tapes.size, each, repeat)
        tape, first, _ = rearming(tapes)
        run = ScenarioRun(contestant, tapes, self.clock, limit=self.budget)
        with suppress(OverBudgetError):
            run.run_rows(operations_of(part(tape, 0, first[2])), reserve=True)
            seconds = run.run_rows(operations_of(part(tape, first[2])))
            each = {METRIC: seconds * 1e9 / tapes.size}
            self._store(contestant.label, RE_ARM, tapes.size, each, repeat)
        spent.append(self.clock() - started)

    def _store(
        self,
        name: str,
        task: Task,
        size: int,
        values: Mapping[str, float],
        repeat: int | None = None,
    ) -> None:
        self.rows += rows_of(name, f"peer {task.operation}", values, size, repeat)
