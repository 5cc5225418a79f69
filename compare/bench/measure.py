"""Measures insert, cancel, hold and expiry against the number of pending timers.

All contestants run the same two tapes, with delays uniform in 1 .. LONGEST_DELAY and the clock at
0:

- filling: start `size` timers (insert), then cancel all in random order (cancel);
- holding: start `size` timers, then HOLD_PAIRS times cancel a random one and start a new one
  (hold), then let all fire (expiry), by the clock (one unit per advance) and, on another instance,
  by events (from wake-up to wake-up).

First every contestant runs both tapes counting, and must do what the oracle says. Then it is timed
without counting, in rounds over all contestants so that a busy moment of the machine hits all
alike; the rows that fire must be the same again. (A timer without kernel counts nothing; the run
that is checked is its first sample.)

What is timed is one call of compiled code (or, for a timer without kernel, a plain Python loop);
all that it writes to has been touched before, and the cost of the call itself is measured apart and
subtracted.

A cell's time is predicted from smaller sizes: the work done for each operation, or for expiry at
each advance, is counted, its growth fitted, and multiplied by the advances that will be needed,
which the oracle knows. What would take longer than the budget is not run.
"""

import hashlib
import math
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from compare.bench.contestant import COMPILED, PYTHON_LOOP, Contestant
from compare.oracle.compiled import NEVER, AgreementError, Expected, check_agreement, expect
from compare.replay.engine import Replay, ReplayError, operations_of
from compare.replay.loops import (
    CANCELLED,
    CELLS,
    FIRED,
    FIRST,
    IDLE_WAKEUPS,
    MOST_PENDING,
    NEXT,
    PATIENCE,
    RESCHEDULED,
    ROWS,
    SCHEDULED,
    WAKEUPS,
    drain,
    run,
    tick,
)
from compare.tapes.tape import CANCEL, DTYPES, START, Tape
from compare.workloads.catalogue import CHOICE, DELAY, Stream
from timers.kernels.pool import EXPIRY, NONE

LONGEST_DELAY = 60_000  # units; uniform delays up to it, the yardstick of the literature: a minute in milliseconds
HOLD_PAIRS = 50_000
LEAST_TIMED = 50_000  # compiled inserts and cancels in a sample: a few alone would be lost in the clock's own noise
LEAST_FIRED = 10_000  # ... expiries, by events
PILOTS = (64, 512)  # sizes run, and not kept, to predict the first size asked for
PILOTS_REACH = 4096  # ... of which one is enough up to this size
LEAST_ADVANCE_NS = {
    COMPILED: 5.0,
    PYTHON_LOOP: 500.0,
}  # of one advance: bounds what nothing is known of yet
PATIENCE_IN_BUDGETS = 1.0  # for the repeats of all tasks of a size; one repeat is made in any case
PYTHON_REPEATS = (
    2  # at most, of a timer without kernel: its figures are no match for the others anyway
)
MOST_COUNTED_GROWTH = 2.0  # of the work of an operation, as a power of the size
MOST_TIMED_GROWTH = (
    1.0  # ... where it is fitted to times: what is steeper is a disturbance sooner than a bad timer
)
_CALLS = 64  # empty calls of which the median is subtracted


class Task(NamedTuple):
    """What a cell measures, with the words of `compare.bench.store`."""

    operation: str
    driver: str


INSERT, CANCEL_ALL, HOLD, BY_CLOCK, BY_EVENT = TASKS = (
    Task("insert", "none"),
    Task("cancel", "none"),
    Task("hold", "none"),
    Task("expiry", "clock"),
    Task("expiry", "event"),
)


class Segment:
    """Operations [first, until) of a tape, which are run and timed as one."""

    def __init__(self, tape: Tape, first: int, until: int) -> None:
        self.first = first
        self.operations = operations_of(tape, first, until)

    def __len__(self) -> int:
        return len(self.operations)


@dataclass(frozen=True)
class Plan:
    """The two tapes of one size, in segments; `id_space` is the size."""

    size: int
    filling: Tape
    holding: Tape

    @cached_property
    def insert(self) -> Segment:
        """The starts that fill a timer; the same in both tapes."""
        return Segment(self.filling, 0, self.size)

    @cached_property
    def cancel(self) -> Segment:
        """The cancels that empty it."""
        return Segment(self.filling, self.size, 2 * self.size)

    @cached_property
    def hold(self) -> Segment:
        """The pairs of cancel and start."""
        return Segment(self.holding, self.size, self.holding.time.size)

    def operations(self, task: Task) -> int:
        """What a sample's time is divided by."""
        return HOLD_PAIRS if task == HOLD else self.size


def plan(size: int, seed: int) -> Plan:
    """The tapes for one size: a function of its arguments, the same on every machine. 50 MB for
    1e6.
    """
    stream = Stream(seed, size, 0)
    starts = size + HOLD_PAIRS
    delays = 1 + np.floor(stream.uniform(DELAY, starts) * LONGEST_DELAY).astype(np.int64)
    ids = np.arange(size, dtype=np.int32)
    # The first `size` words give the order of cancelling, those after them the victims of hold.
    choices = stream.uniform(CHOICE, starts)
    shuffled = np.argsort(choices[:size], kind="stable").astype(np.int32)
    victims = np.floor(choices[size:] * size).astype(np.int32)
    pairs = np.zeros(2 * HOLD_PAIRS, np.int64)
    pairs[1::2] = delays[size:]
    filling = (
        np.repeat(np.array([START, CANCEL], np.int8), size),
        np.concatenate([ids, shuffled]),
        np.concatenate([delays[:size], np.zeros(size, np.int64)]),
    )
    holding = (
        np.concatenate(
            [np.full(size, START, np.int8), np.tile(np.array([CANCEL, START], np.int8), HOLD_PAIRS)]
        ),
        np.concatenate([ids, np.repeat(victims, 2)]),
        np.concatenate([delays[:size], pairs]),
    )
    return Plan(
        size,
        *(
            Tape(np.zeros(op.size, np.int64), op, i, deadline)
            for op, i, deadline in (filling, holding)
        ),
    )


# ---- loops
# --------------------------------------------------------------------------------------------------------


class Scratch:
    """What compiled loops write to, beside the timer itself: one for all samples, so long since
    touched.
    """

    def __init__(self, size: int) -> None:
        self.handles = np.full(size, NONE, np.int64)
        self.armed_by = np.full(size, NONE, np.int32)
        # All that can fire: what is inserted, and what a coarse tick makes due at once while
        # holding.
        self.fired = np.ones(size + HOLD_PAIRS + 1, EXPIRY)


class CompiledLoop:
    """A fresh timer with a kernel, and the compiled loops that drive it. Each call returns its
    seconds.
    """

    def __init__(
        self, contestant: Contestant, size: int, scratch: Scratch, *, counting: bool = False
    ) -> None:
        self.timer = contestant.new(0, size, counting=counting)
        self.early = -contestant.rounding.bounds()[0]
        self.scratch = scratch
        if scratch.armed_by.size < self.timer.state.nodes.size:
            scratch.armed_by = np.full(self.timer.state.nodes.size, NONE, np.int32)
        self.cursor = np.zeros(CELLS, np.int64)

    def run(self, segment: Segment) -> float:
        """Run a segment."""
        scratch, cursor = self.scratch, self.cursor
        cursor[FIRST], cursor[NEXT] = segment.first, 0
        early, handles, armed_by, fired = (
            self.early,
            scratch.handles,
            scratch.armed_by,
            scratch.fired,
        )
        started = time.perf_counter()
        run(self.timer.state, segment.operations, early, cursor, handles, armed_by, fired)
        return time.perf_counter() - started

    def drain(self) -> float:
        """Advance from wake-up to wake-up until nothing is pending."""
        scratch = self.scratch
        started = time.perf_counter()
        drain(self.timer.state, self.cursor, scratch.armed_by, scratch.fired)
        return time.perf_counter() - started

    def tick(self, until: int) -> float:
        """Advance by one unit at a time up to `until`."""
        scratch = self.scratch
        started = time.perf_counter()
        tick(self.timer.state, until, self.cursor, scratch.armed_by, scratch.fired)
        return time.perf_counter() - started

    def jump(self, until: int) -> float:
        """Advance to `until` at once, when nothing is left to cancel."""
        too_late = (
            np.array([value], dtype)
            for value, dtype in zip((until, CANCEL, 0, 0), DTYPES, strict=True)
        )
        return self.run(Segment(Tape(*too_late), 0, 1))

    def counters(self) -> dict[str, int]:
        """Cost counters so far, where the timer was made counting."""
        return dict(self.timer.counters or {})

    def done(self) -> Replay:
        """What has been done so far, as a replay; its rows are those of the scratch, not a copy."""
        cursor = self.cursor.tolist()
        return _done(self.timer, cursor, self.scratch.fired[: cursor[ROWS]].view(FIRED), COMPILED)


class PythonLoop:
    """A fresh timer of any kind, and the plain Python loops that drive it. Each call returns its
    seconds.
    """

    def __init__(
        self, contestant: Contestant, size: int, scratch: Scratch, *, counting: bool = False
    ) -> None:
        self.timer = contestant.new(0)
        self.name, self.engine = contestant.name, contestant.engine
        self.exact = contestant.rounding.exact
        self.handles = [NONE] * size
        self.armed_by: dict[int, int] = {}
        self.fired: list[tuple[int, int, int]] = []
        self.cursor = [0] * CELLS

    def run(self, segment: Segment) -> float:
        """Run a segment, whose operations are starts and cancels at the present moment."""
        timer, handles, armed_by, exact = self.timer, self.handles, self.armed_by, self.exact
        columns = [segment.operations[name].tolist() for name in ("op", "id", "deadline")]
        started = time.perf_counter()
        now = timer.now
        may_be_due = False
        scheduled = cancelled = 0
        for k, (op, i, deadline) in enumerate(zip(*columns, strict=True), segment.first):
            if may_be_due and timer.next_expiry() == now:
                self._advance(now)
            if op == START:
                handles[i] = handle = timer.schedule(deadline)
                armed_by[handle] = k
                scheduled += 1
                may_be_due = not exact or deadline <= now
            else:
                cancelled += timer.cancel(handles[i])
        seconds = time.perf_counter() - started
        self.cursor[SCHEDULED] += scheduled
        self.cursor[CANCELLED] += cancelled
        return seconds

    def drain(self) -> float:
        """Advance from wake-up to wake-up until nothing is pending."""
        timer, cursor = self.timer, self.cursor
        started = time.perf_counter()
        idle = 0
        while len(timer):
            wakeup = timer.next_wakeup() if idle < PATIENCE else timer.next_expiry()
            if wakeup is None or idle > 2 * PATIENCE:
                raise ReplayError(
                    f"{self.name}, {len(timer)} pending: after {idle} idle wake-ups none has fired"
                )
            before = cursor[IDLE_WAKEUPS]
            self._advance(wakeup)
            idle = idle + 1 if cursor[IDLE_WAKEUPS] > before else 0
        return time.perf_counter() - started

    def tick(self, until: int) -> float:
        """Advance by one unit at a time up to `until`."""
        started = time.perf_counter()
        for moment in range(self.timer.now + 1, until + 1):
            self._advance(moment)
        return time.perf_counter() - started

    def jump(self, until: int) -> float:
        """Advance to `until` at once."""
        started = time.perf_counter()
        self._advance(until)
        return time.perf_counter() - started

    def counters(self) -> dict[str, int]:
        """None: nothing inside the timer is counted."""
        return {}

    def done(self) -> Replay:
        """What has been done so far, as a replay."""
        return _done(self.timer, self.cursor, np.array(self.fired, FIRED), self.engine)

    def _advance(self, moment: int) -> None:
        expired = self.timer.advance(moment)
        self.cursor[WAKEUPS] += 1
        self.cursor[IDLE_WAKEUPS] += not len(expired.handles)
        for handle, deadline, fired_at in zip(
            *(column.tolist() for column in expired), strict=True
        ):
            operation = self.armed_by.pop(handle, None)
            if operation is None:
                raise ReplayError(
                    f"{self.name} fired handle {handle} at {fired_at}, which was not pending"
                )
            self.fired.append((operation, deadline, fired_at))


Loop = CompiledLoop | PythonLoop


def loop_for(
    contestant: Contestant, size: int, scratch: Scratch, *, counting: bool = False
) -> Loop:
    """A fresh timer in the loop that fits it."""
    kind = CompiledLoop if contestant.engine == COMPILED else PythonLoop
    return kind(contestant, size, scratch, counting=counting)


def _done(timer: Any, cursor: Sequence[int], fired: npt.NDArray[Any], engine: str) -> Replay:
    return Replay(
        scheduled=cursor[SCHEDULED],
        cancelled=cursor[CANCELLED],
        rescheduled=cursor[RESCHEDULED],
        pending=len(timer),
        most_pending=cursor[MOST_PENDING],
        fired=fired,
        counters=None,
        wakeups=cursor[WAKEUPS],
        idle_wakeups=cursor[IDLE_WAKEUPS],
        seconds=0.0,
        operations=0,
        engine=engine,
    )


# ---- prediction
# ---------------------------------------------------------------------------------------------------


class Observed(NamedTuple):
    """What a task cost at one size."""

    size: int
    steps: int  # advances of expiry, operations of all else
    work: int | None  # counted, steps included; None for a timer without counters
    seconds: float


def predict(
    observed: Sequence[Observed], size: int, steps: int, unknown_growth: float = 1.0
) -> float:
    """Seconds that `steps` steps will take at `size`, from what was observed at one or more smaller
    sizes.

    The work of a step grows as a power of the size: fitted to what was counted at the last two
    sizes, or, since they scatter, to the times of the first and the last. One size alone tells
    nothing of the power: it is `unknown_growth`.
    """
    last = observed[-1]
    growth = unknown_growth
    before = observed[0] if last.work is None else observed[max(len(observed) - 2, 0)]
    if before.size < last.size:
        costs = [
            (o.work if o.work is not None else o.seconds) / max(o.steps, 1) for o in (before, last)
        ]
        if min(costs) > 0:
            growth = math.log(costs[1] / costs[0]) / math.log(last.size / before.size)
    most = MOST_TIMED_GROWTH if last.work is None else MOST_COUNTED_GROWTH
    growth = min(max(growth, 0.0), most)
    return float(last.seconds / max(last.steps, 1) * (size / last.size) ** growth * steps)


# ---- the bench
# ----------------------------------------------------------------------------------------------------


class Sample(NamedTuple):
    """One measured time."""

    contestant: int  # index
    size: int
    task: Task
    repeat: int
    operations: int
    ns_per_operation: float


class TooLong(NamedTuple):
    """A cell that was not run."""

    contestant: int
    size: int
    task: Task
    operations: int
    seconds: float  # predicted, of one repeat with its set-up


class Counted(NamedTuple):
    """One counter of one cell."""

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
"""Called after each of the `Bench.steps` with what comes next, in words."""


class Overhead(NamedTuple):
    """Seconds that a call of each compiled loop takes when there is nothing to do."""

    run: float
    drain: float
    tick: float


_SETUP: dict[Task, tuple[Task, ...]] = {
    INSERT: (),
    CANCEL_ALL: (INSERT,),
    HOLD: (INSERT,),
    BY_CLOCK: (INSERT, HOLD),
    BY_EVENT: (INSERT, HOLD),
}
"""What each task needs to be run before it."""


class _Size:
    """What all contestants share at one size: the tapes, what must fire, and room to write to."""

    def __init__(self, size: int, seed: int) -> None:
        self.plan = plan(size, seed)
        self.scratch = Scratch(size)
        self._expected: dict[Hashable, tuple[Expected, Expected]] = {}
        self._moments: dict[Hashable, int] = {}

    def expected(self, contestant: Contestant) -> tuple[Expected, Expected]:
        """What filling and holding must do; computed once for each closed form, and for all exact
        timers.
        """
        key = contestant.rounding
        if key not in self._expected:
            filling, holding = (
                expect(tape, self.plan.size, contestant.rounding)
                for tape in (self.plan.filling, self.plan.holding)
            )
            self._expected[key] = filling, holding
        return self._expected[key]

    def last(self, contestant: Contestant) -> int:
        """The moment at which the last timer fires."""
        return int(self.expected(contestant)[1].fired_at.max())

    def steps(self, contestant: Contestant, task: Task) -> int:
        """Units for the clock, moments at which something fires for events, operations for all
        else.
        """
        if task == BY_CLOCK:
            return self.last(contestant)
        if task == BY_EVENT:
            key = contestant.rounding
            if key not in self._moments:
                fired_at = self.expected(contestant)[1].fired_at
                self._moments[key] = np.unique(fired_at[fired_at != NEVER]).size
            return self._moments[key]
        return self.plan.operations(task)


@dataclass
class _Todo:
    """What is run of one contestant at one size, and what is known of it."""

    tasks: frozenset[Task]
    rows: dict[Task, bytes] = field(default_factory=dict)  # digest of what fires, by way of expiry
    work: dict[Task, int | None] = field(default_factory=dict)  # counted; None without counters
    repeats: int = 0  # made so far
    spent: float = 0.0  # seconds in them, set-up included


@dataclass
class Bench:
    """Runs all cells; results collect in `samples`, `too_long`, `counted` and `memory`."""

    contestants: Sequence[Contestant]
    sizes: Sequence[int]
    repeats: int  # at most; fewer of what takes long
    budget: float  # seconds for one repeat of a cell
    seed: int
    samples: list[Sample] = field(default_factory=list)
    too_long: list[TooLong] = field(default_factory=list)
    counted: list[Counted] = field(default_factory=list)
    memory: list[Memory] = field(default_factory=list)
    tapes: int = 0  # held against the oracle, counted for each contestant
    firings: int = 0  # compared with it
    _observed: dict[tuple[int, Task], list[Observed]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _overhead: dict[int, Overhead] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        """How often `run` calls its argument."""
        return len(self.contestants) * (len(self._pilots()) + len(self.sizes) * (1 + self.repeats))

    def run(self, progress: Progress = lambda what: None) -> None:
        """Measure every cell, smaller sizes first. Raises AgreementError for a timer that disagrees
        with the oracle.
        """
        for size in self._pilots():
            at = _Size(size, self.seed)
            for c, contestant in enumerate(self.contestants):
                progress(f"trying {contestant.name} at {size:,}")
                todo = _Todo(self._affordable(c, at, keep=False))
                self._check(c, at, todo, keep=False)
                self._time(c, at, todo, keep=False)
        for size in sorted(self.sizes):
            self._run_size(_Size(size, self.seed), progress)

    def _pilots(self) -> list[int]:
        """Two sizes, to learn the growth, before large ones; one before small ones, which need
        none.
        """
        smallest = min(self.sizes, default=0)
        return [size for size in PILOTS if size < smallest][-1 if smallest <= PILOTS_REACH else 0 :]

    def _run_size(self, at: _Size, progress: Progress) -> None:
        todos = []
        for c, contestant in enumerate(self.contestants):
            progress(f"checking {contestant.name} at {at.plan.size:,}")
            todo = _Todo(self._affordable(c, at, keep=True))
            self._check(c, at, todo, keep=True)
            todos.append(todo)
        for repeat in range(self.repeats):
            for c, (contestant, todo) in enumerate(zip(self.contestants, todos, strict=True)):
                progress(f"timing {contestant.name} at {at.plan.size:,}")
                most = (
                    self.repeats
                    if contestant.engine == COMPILED
                    else min(self.repeats, PYTHON_REPEATS)
                )
                next_one = todo.spent / max(todo.repeats, 1)
                in_time = todo.spent + next_one <= PATIENCE_IN_BUDGETS * self.budget
                if repeat == todo.repeats < most and (repeat == 0 or in_time):
                    self._time(c, at, todo, keep=True)

    def _affordable(self, c: int, at: _Size, *, keep: bool) -> frozenset[Task]:
        """The tasks that fit into the budget, each together with what must be run to get there."""
        # Pilots are there to learn the growth, and so small that nobody waits long if it is great.
        own = {task: self._predicted(c, at, task, 1.0 if keep else 0.0) for task in TASKS}
        seconds = {task: own[task] + sum(own[before] for before in _SETUP[task]) for task in TASKS}
        slow = {task for task in TASKS if seconds[task] > self.budget}
        if keep:
            for task in TASKS:
                if task in slow:
                    self.too_long.append(
                        TooLong(c, at.plan.size, task, at.plan.operations(task), seconds[task])
                    )
        return frozenset(TASKS) - slow

    def _predicted(self, c: int, at: _Size, task: Task, unknown_growth: float) -> float:
        """Seconds of one repeat; where nothing is known yet, the least that it can be."""
        steps = at.steps(self.contestants[c], task)
        least = 0.0
        if task in (BY_CLOCK, BY_EVENT):
            least = steps * LEAST_ADVANCE_NS[self.contestants[c].engine] / 1e9
        observed = self._observed[c, task]
        return (
            max(least, predict(observed, at.plan.size, steps, unknown_growth))
            if observed
            else least
        )

    def _perform(
        self, c: int, at: _Size, tasks: frozenset[Task], *, counting: bool, sampling: bool
    ) -> Iterator[tuple[Loop, Task | None, float]]:
        """Run the tasks on fresh timers, and say after each what it was and how long it took.

        `None` is expiry that is not timed: where no way of it is among the tasks, one jump shows
        what fires. `sampling` runs what is short several times.
        """
        contestant, size = self.contestants[c], at.plan.size
        several = sampling and contestant.engine == COMPILED

        def fresh() -> Loop:
            return loop_for(contestant, size, at.scratch, counting=counting)

        if INSERT in tasks:
            for _ in range(-(-LEAST_TIMED // size) if several else 1):
                loop = fresh()
                yield loop, INSERT, loop.run(at.plan.insert)
                if CANCEL_ALL in tasks:
                    yield loop, CANCEL_ALL, loop.run(at.plan.cancel)
        if HOLD in tasks:
            ways: list[Task | None] = [way for way in (BY_EVENT, BY_CLOCK) if way in tasks]
            for way in ways or [None]:
                for _ in range(-(-LEAST_FIRED // size) if several and way == BY_EVENT else 1):
                    loop = fresh()
                    yield loop, INSERT, loop.run(at.plan.insert)
                    yield loop, HOLD, loop.run(at.plan.hold)
                    if way == BY_EVENT:
                        yield loop, way, loop.drain()
                    elif way == BY_CLOCK:
                        yield loop, way, loop.tick(at.last(contestant))
                    else:
                        yield loop, way, loop.jump(at.last(contestant)) if counting else 0.0

    def _check(self, c: int, at: _Size, todo: _Todo, *, keep: bool) -> None:
        """Run the tasks counting, and hold what they do against the oracle.

        A timer without kernel cannot count: it is timed at once, and what was timed is what was
        checked.
        """
        contestant, times = self.contestants[c], _Times(at.plan)
        counts: dict[Task, dict[str, int]] = {}
        before: dict[str, int] = {}
        for loop, task, took in self._perform(c, at, todo.tasks, counting=True, sampling=False):
            if task is not None:
                times.add(task, took)
                before = dict.fromkeys(before, 0) if task == INSERT else before
                counters = loop.counters()
                counts[task] = {
                    name: value - before.get(name, 0) for name, value in counters.items()
                }
                todo.work[task] = (
                    at.steps(contestant, task) + sum(counts[task].values()) if counters else None
                )
                before = counters
            if task == INSERT and keep and len(counts) == 1:
                # One that counts holds its counters as well.
                full = (
                    loop.timer
                    if contestant.engine == PYTHON_LOOP
                    else contestant.new(0, at.plan.size)
                )
                self.memory.append(Memory(c, at.plan.size, int(full.nbytes)))
            if task == CANCEL_ALL:
                self._agree(contestant, at.plan.filling, at.expected(contestant)[0], loop)
            if task in (BY_CLOCK, BY_EVENT, None):
                self._agree(contestant, at.plan.holding, at.expected(contestant)[1], loop)
            if task in (BY_CLOCK, BY_EVENT):
                todo.rows[task] = _digest(loop)
                counts[task] |= {
                    "advances": int(loop.cursor[WAKEUPS]),
                    "idle_advances": int(loop.cursor[IDLE_WAKEUPS]),
                }
        if keep:
            for task, counters in counts.items():
                operations = at.plan.operations(task)
                self.counted += [
                    Counted(c, at.plan.size, task, *item, operations) for item in counters.items()
                ]
        if contestant.engine == PYTHON_LOOP:
            self._keep(c, at, todo, times, keep=keep)

    def _agree(self, contestant: Contestant, tape: Tape, expected: Expected, loop: Loop) -> None:
        done = loop.done()
        check_agreement(contestant.label, contestant.traits, tape, expected, done)
        self.tapes += 1
        self.firings += done.fired.size

    def _time(self, c: int, at: _Size, todo: _Todo, *, keep: bool) -> None:
        """Make one sample of every task."""
        contestant = self.contestants[c]
        if c not in self._overhead:
            self._overhead[c] = overhead(contestant)
        times = _Times(at.plan, self._overhead[c])
        for loop, task, took in self._perform(c, at, todo.tasks, counting=False, sampling=True):
            if task is not None:
                times.add(task, took)
            if task in (BY_CLOCK, BY_EVENT) and _digest(loop) != todo.rows[task]:
                raise AgreementError(
                    f"{contestant.label} fired other rows when timed than when checked"
                )
        self._keep(c, at, todo, times, keep=keep)

    def _keep(self, c: int, at: _Size, todo: _Todo, times: "_Times", *, keep: bool) -> None:
        """Keep times: as samples, unless they are a pilot's, and to predict larger sizes by."""
        size = at.plan.size
        for task, seconds in times.seconds.items():
            operations = times.operations[task]
            if keep:
                self.samples.append(
                    Sample(c, size, task, todo.repeats, operations, seconds / operations * 1e9)
                )
            # The least of each size: what disturbs a measurement only ever adds to it.
            least = seconds / operations * at.plan.operations(task)
            observed = self._observed[c, task]
            if observed and observed[-1].size == size:
                least = min(least, observed.pop().seconds)
            observed.append(
                Observed(size, at.steps(self.contestants[c], task), todo.work[task], least)
            )
        todo.repeats += 1
        todo.spent += time.perf_counter() - times.begun


class _Times:
    """Adds up the times of one sample."""

    def __init__(self, of: Plan, cost: Overhead | None = None) -> None:
        self.begun = time.perf_counter()
        self.seconds: dict[Task, float] = defaultdict(float)
        self.operations: dict[Task, int] = defaultdict(int)
        self._plan = of
        self._calls = {} if cost is None else {BY_EVENT: cost.drain, BY_CLOCK: cost.tick}
        self._call = 0.0 if cost is None else cost.run

    def add(self, task: Task, took: float) -> None:
        """Add a run of a task, less what the call itself costs."""
        self.seconds[task] += max(took - self._calls.get(task, self._call), 0.0)
        self.operations[task] += self._plan.operations(task)


def overhead(contestant: Contestant) -> Overhead:
    """What a call costs, compiled and loaded: the median of empty ones. Zero for Python loops: they
    make none.
    """
    if contestant.engine != COMPILED:
        return Overhead(0.0, 0.0, 0.0)
    loop = CompiledLoop(contestant, 1, Scratch(1))
    nothing = Segment(Tape(*(np.empty(0, dtype) for dtype in DTYPES)), 0, 0)
    calls: tuple[Callable[[], float], ...] = (
        lambda: loop.run(nothing),
        loop.drain,
        lambda: loop.tick(0),
    )
    for call in calls:
        call()
    return Overhead(*(median(call() for _ in range(_CALLS)) for call in calls))


def _digest(loop: Loop) -> bytes:
    return hashlib.blake2b(loop.done().fired.tobytes()).digest()
