"""Measure the CPU time that a timer costs its callers, against the number of pending timers.

With N timers pending, whose deadlines are random and far away, a caller does three kinds of work:

- *pair*: it cancels a random timer and starts another, over and over, while the clock stands;
- *step*: it moves the clock by one unit, and nothing is due;
- *fire*: it moves the clock while pending timers fire, and starts as many others. The steps of the
  clock are subtracted.

Services and event loops move their own clock. There, the timers that fire are started for that,
and a step is a wake-up: what a call that fires alone costs more than one of many. The timers that a
program has without ours (HOSTS: asyncio's heap, uvloop, `threading.Timer`) are measured in the same
way, as contestants. CPU time is that of the thread or, where a caller has threads of its own, of
the process. The garbage collector is off meanwhile, as in `timeit`.
"""

import asyncio
import importlib.util
import itertools
import math
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from compare.base.garbage import no_collections
from compare.traffic.tapes.tape import CANCEL, START, Tape
from compare.traffic.workloads.stream import CHOICE, DELAY, GAP, LENGTH, Stream
from compare.trial.bench.measure import Progress, Store, another_fits
from compare.trial.bench.work import SETTLING, UNIT
from compare.trial.replay.contestant import COMPILED, Contestant
from compare.trial.replay.engine import Buffers, Clock, OverBudgetError, loop_for, operations_of
from compare.trial.results.schema import Row, rows_of
from timers.arrays import Int64s
from timers.services.event_loop import LoopFactory, wheel_event_loop
from timers.services.system_timer import SystemTimer

SIZES = (1_000, 30_000, 300_000, 1_000_000)  # timers pending
SERVICE_SIZES = (1_000, 10_000, 100_000)  # a call of a service takes 220 bytes more
BATCH = 100  # timers in a call of a batch form
NEAREST, FARTHEST = 2_000, 62_000  # units from the start to the deadlines of pending timers
WINDOW, OPENS = 50, 1_500  # units in which pending timers fire, at most; and the first of them
FIRST, LAST = 11, 30  # units: the delays of the timers that fire in a service
WAKES, ALONE = 30, 0.0012  # wake-ups in a sample, and seconds from one to the next
WAITING = 10  # calls that wait for theirs
"""So each waits for 12 ms. As the delays from FIRST on, that is longer than what a wheel's loop
leaves to its base, `timers.services.event_loop.SHORT_S`.
"""
FILLED_AT_ONCE = 1_000
SLOWEST_START = 10e-6  # CPU seconds for each of the last RECENT timers that fill a timer
RECENT = 10_000
SHARE = 0.1  # of the budget, for the samples of a caller at one size
STEPS = {1_000: 1_000, 10_000: 1_000, 30_000: 1_000}
"""Size -> steps of the clock; 100 at other sizes, where a list scans for long."""

PYTHON, BATCHES, SERVICE, LOOP = "python", "batches", "system-timer", "asyncio"
UVLOOP, COMPILED_CODE = "uvloop", "compiled"
"""The ways of calling; as subjects, they are part of the table of results."""

OWN_CLOCK = (SERVICE, LOOP, UVLOOP)
"""Callers whose clock moves by itself: its steps are the wake-ups in which something fires."""


class Costs(NamedTuple):
    """CPU time for each pair, each timer that fires, and each step of the clock; usually in ns."""

    pair: float
    fire: float
    step: float


class Caller(Protocol):
    """A way of calling a timer. Each method returns the CPU seconds of its work."""

    def pairs(self, slots: Int64s, deadlines: Int64s) -> float:
        """For each slot, cancel its timer and start another for the deadline."""

    def steps(self, count: int) -> float:
        """Move the clock by one unit, `count` times."""

    def fires(self, plan: "Plan") -> tuple[float, int]:
        """Move the clock while `plan.fires` timers fire, and start as many.

        Also returns the number of steps that the caller has made.
        """


@dataclass(frozen=True)
class Plan:
    """The same random timers for all contestants and callers."""

    size: int
    pair_count: int
    seed: int

    @property
    def window(self) -> int:
        """The units of a window: at least one timer fires in each."""
        return min(WINDOW, self.size // 2)

    @property
    def due(self) -> int:
        """The number of pending timers that fire in the first window."""
        return max(min(self.pair_count, self.size // 2) // self.window, 1) * self.window

    @property
    def windows(self) -> int:
        """The number of windows: what is started in all but the last fires in the next one."""
        return -(-self.pair_count // self.due)

    @property
    def fires(self) -> int:
        """The number of timers that fire in all windows."""
        return self.windows * self.due

    def _uniform(self, purpose: int, size: int) -> np.ndarray[Any, Any]:
        return Stream(self.seed, self.size, 1).uniform(purpose, size)

    @cached_property
    def _order(self) -> Int64s:
        """The pending timers in random order. The first of them are due in the first window."""
        return np.argsort(self._uniform(CHOICE, self.size))

    @cached_property
    def filling(self) -> Int64s:
        """The deadlines of the pending timers."""
        deadlines = _far(self._uniform(DELAY, self.size))
        soon = self._order[: self.due]
        deadlines[soon] = OPENS + np.arange(soon.size) * self.window // max(soon.size, 1)
        return deadlines

    @cached_property
    def slots(self) -> Int64s:
        """The pending timers that are cancelled in two rounds: in random order, all before any
        comes again. So the caches do not hold those of the second round.
        """
        return np.resize(self._order[self.due :], 2 * self.pair_count)

    @cached_property
    def deadlines(self) -> Int64s:
        """The deadlines of the timers that are started in two rounds of pairs."""
        return _far(self._uniform(LENGTH, 2 * self.pair_count))

    @cached_property
    def replacements(self) -> Int64s:
        """The deadlines of the timers that are started while others fire, by step of the clock."""
        each = self.due // self.window
        steps = np.arange(self.windows * self.window).repeat(each)
        uniform = self._uniform(GAP, steps.size)
        opens = OPENS + (steps // self.window + 1) * self.window
        deadlines = opens + (uniform * self.window).astype(np.int64)
        last = steps >= (self.windows - 1) * self.window
        deadlines[last] = opens[last] + _far(uniform[last])
        by_step: Int64s = deadlines.reshape(-1, each)
        return by_step


def _far(uniform: np.ndarray[Any, Any]) -> Int64s:
    return (NEAREST + uniform * (FARTHEST - NEAREST)).astype(np.int64)


def filled(count: int, fill: Callable[[slice], object], clock: Clock = time.process_time) -> None:
    """Fill a timer with `count` timers, part by part. Raises OverBudgetError if it takes too long.

    An ordered list would take an hour for a million, and nobody would choose it there. The time of
    the first part, in which code may be compiled, does not count.
    """
    moments = deque[float](maxlen=RECENT // FILLED_AT_ONCE + 1)
    with no_collections():
        for first in range(0, count, FILLED_AT_ONCE):
            fill(slice(first, min(first + FILLED_AT_ONCE, count)))
            moments.append(clock())
            is_full = len(moments) == moments.maxlen
            if is_full and moments[-1] - moments[0] > SLOWEST_START * RECENT:
                raise OverBudgetError(
                    f"it takes longer than {SLOWEST_START * 1e6:g} us to start a timer"
                )


class CompiledCaller:
    """A compiled loop, or for a timer without a kernel a Python loop, that runs a tape."""

    def __init__(self, contestant: Contestant, plan: Plan, clock: Clock = time.thread_time) -> None:
        self._size = plan.size
        most = plan.size + plan.fires
        self.timer = contestant.new(UNIT, 0, most)
        self._loop = loop_for(self.timer, Buffers(most, most), lambda rows: None, clock)
        ids = np.arange(plan.size)
        filled(plan.size, lambda part: self._run(0, START, ids[part], plan.filling[part]))
        self._loop.tick(SETTLING)

    def pairs(self, slots: Int64s, deadlines: Int64s) -> float:
        """See Caller."""
        both = np.zeros(2 * slots.size, np.int64)
        both[1::2] = deadlines
        ops = np.tile(np.array([CANCEL, START]), slots.size)
        return self._run(self.timer.now, ops, slots.repeat(2), both)

    def steps(self, count: int) -> float:
        """See Caller."""
        return self._loop.tick(self.timer.now + count)

    def fires(self, plan: Plan) -> tuple[float, int]:
        """See Caller."""
        started = plan.replacements
        times = OPENS + np.arange(len(started)).repeat(started.shape[1])
        ids = self._size + np.arange(started.size)
        self._run(OPENS - 1, CANCEL, ids[:1], np.zeros(1, np.int64))  # of no timer: a jump
        seconds = self._run(times, START, ids, started.ravel())
        while len(self.timer) > self._size:
            seconds += self._loop.tick(self.timer.now + 1)
        return seconds, self.timer.now - OPENS + 1

    def _run(self, times: Any, ops: Any, ids: Int64s, deadlines: Int64s) -> float:
        columns = np.broadcast_arrays(times, ops, ids, deadlines)
        types = (np.int64, np.int8, np.int32, np.int64)
        tape = Tape(*(column.astype(kind) for column, kind in zip(columns, types, strict=True)))
        return self._loop.run(operations_of(tape))


class PythonCaller:
    """Calls of `schedule`, `cancel` and `advance`."""

    def __init__(self, contestant: Contestant, plan: Plan, clock: Clock = time.thread_time) -> None:
        self._clock = clock
        self.timer = contestant.new(UNIT, 0, plan.size + plan.fires)
        self._handles = np.zeros(plan.size, np.int64)
        filled(plan.size, lambda part: self._fill(plan.filling, part))
        self.timer.advance(SETTLING)

    def _fill(self, deadlines: Int64s, part: slice) -> None:
        self._handles[part] = self.timer.schedule_many(deadlines[part])

    def pairs(self, slots: Int64s, deadlines: Int64s) -> float:
        """See Caller."""
        handles, calls = (
            self._handles.tolist(),
            zip(slots.tolist(), deadlines.tolist(), strict=True),
        )
        schedule, cancel, rows = self.timer.schedule, self.timer.cancel, list(calls)
        started = self._clock()
        for slot, deadline in rows:
            cancel(handles[slot])
            handles[slot] = schedule(deadline)
        seconds = self._clock() - started
        self._handles = np.array(handles, np.int64)
        return seconds

    def steps(self, count: int) -> float:
        """See Caller."""
        advance, now = self.timer.advance, self.timer.now
        started = self._clock()
        for moment in range(now + 1, now + 1 + count):
            advance(moment)
        return self._clock() - started

    def fires(self, plan: Plan) -> tuple[float, int]:
        """See Caller."""
        timer, size = self.timer, len(self.timer)
        groups = plan.replacements if self._in_batches else plan.replacements.tolist()
        timer.advance(OPENS - 1)
        started = self._clock()
        for moment, group in enumerate(groups, OPENS):
            timer.advance(moment)
            self._start(timer, group)
        while len(timer) > size:
            timer.advance(timer.now + 1)
        return self._clock() - started, timer.now - OPENS + 1

    _in_batches = False

    @staticmethod
    def _start(timer: Any, deadlines: Any) -> None:
        schedule = timer.schedule
        for deadline in deadlines:
            schedule(deadline)


class BatchCaller(PythonCaller):
    """Calls of `schedule_many` and `cancel_many` with BATCH timers each."""

    def pairs(self, slots: Int64s, deadlines: Int64s) -> float:
        """See Caller."""
        cuts = range(BATCH, slots.size, BATCH)
        rows = [*zip(np.split(slots, cuts), np.split(deadlines, cuts), strict=True)]
        timer, handles = self.timer, self._handles
        started = self._clock()
        for batch, moments in rows:
            timer.cancel_many(handles[batch])
            handles[batch] = timer.schedule_many(moments)
        return self._clock() - started

    _in_batches = True

    @staticmethod
    def _start(timer: Any, deadlines: Any) -> None:
        for k in range(0, len(deadlines), BATCH):
            timer.schedule_many(deadlines[k : k + BATCH])


class _CallbackCaller:
    """Calls of a `schedule` that takes a delay in seconds and a callback, and returns a call."""

    def __init__(self, schedule: Callable[..., Any], plan: Plan, clock: Clock) -> None:
        self._schedule, self._clock = schedule, clock
        self._calls: list[Any] = []
        try:
            filled(plan.size, lambda part: self._fill(plan.filling[part].tolist()))
        except OverBudgetError:
            self.close()
            raise

    def _fill(self, moments: Sequence[int]) -> None:
        self._calls += [self._schedule(moment, _nothing) for moment in moments]

    def pairs(self, slots: Int64s, deadlines: Int64s) -> float:
        """See Caller. Deadlines are far: a unit counts as a second."""
        rows = [*zip(slots.tolist(), deadlines.tolist(), strict=True)]
        started = self._clock()
        self._replace(rows)
        return self._clock() - started

    def _replace(self, rows: Sequence[tuple[int, int]]) -> None:
        calls, schedule = self._calls, self._schedule
        for slot, deadline in rows:
            calls[slot].cancel()
            calls[slot] = schedule(deadline, _nothing)

    def steps(self, count: int) -> float:
        """See Caller: of calls that fire alone. WAKES of them, in real time, stand for all."""
        fired = itertools.count(1)

        def work(end: Callable[[], object]) -> None:
            def alone() -> None:
                number = next(fired)
                if number <= WAKES - WAITING:
                    self._schedule(WAITING * ALONE, alone)
                elif number == WAKES:
                    end()

            for k in range(WAITING):
                self._schedule((WAITING + k) * ALONE, alone)

        started = self._clock()
        self._run(work)
        return (self._clock() - started) * count / WAKES

    def fires(self, plan: Plan) -> tuple[float, int]:
        """See Caller."""
        seconds = (np.linspace(FIRST, LAST, plan.fires) / 1_000).tolist()

        def work(end: Callable[[], object]) -> None:
            for delay in seconds:
                self._schedule(delay, _nothing)
            self._schedule((LAST + 1) / 1_000, end)

        started = self._clock()
        self._run(work)
        return self._clock() - started, 0

    def _run(self, work: Callable[[Callable[[], object]], object]) -> None:
        """Call `work`, and wait until a call has run the function that it is given."""
        ended = threading.Event()
        work(ended.set)
        ended.wait()

    def close(self) -> None:
        """End the service."""
        raise NotImplementedError


class ServiceCaller(_CallbackCaller):
    """Calls of a SystemTimer on the timer."""

    def __init__(
        self, contestant: Contestant, plan: Plan, clock: Clock = time.process_time
    ) -> None:
        self.service = SystemTimer(contestant.new(UNIT, 0, plan.size + plan.fires))
        super().__init__(self.service.schedule_after, plan, clock)

    def close(self) -> None:
        """End the service's thread."""
        self.service.close()


class ThreadCaller(_CallbackCaller):
    """A `threading.Timer` for each call."""

    def __init__(self, plan: Plan, clock: Clock = time.process_time) -> None:
        def schedule(delay: float, callback: Callable[[], object]) -> threading.Timer:
            timer = threading.Timer(delay, callback)
            timer.daemon = True
            timer.start()
            return timer

        super().__init__(schedule, plan, clock)

    def close(self) -> None:
        """End all threads."""
        for call in self._calls:
            call.cancel()
        for call in self._calls:
            call.join()


class LoopCaller(_CallbackCaller):
    """Calls of asyncio's `call_later` on an event loop, which turns after each BATCH pairs."""

    def __init__(self, factory: LoopFactory, plan: Plan, clock: Clock = time.process_time) -> None:
        self._loop = factory()
        super().__init__(self._loop.call_later, plan, clock)
        self._loop.run_until_complete(asyncio.sleep(0))

    def pairs(self, slots: Int64s, deadlines: Int64s) -> float:
        """See Caller. In its turns, asyncio's loop removes what was cancelled from its heap."""
        rows = [*zip(slots.tolist(), deadlines.tolist(), strict=True)]
        parts = iter([rows[k : k + BATCH] for k in range(0, len(rows), BATCH)])

        def turn() -> None:
            part = next(parts, None)
            if part is None:
                self._loop.stop()
            else:
                self._replace(part)
                self._loop.call_soon(turn)

        self._loop.call_soon(turn)
        started = self._clock()
        self._loop.run_forever()
        return self._clock() - started

    def _run(self, work: Callable[[Callable[[], object]], object]) -> None:
        work(self._loop.stop)
        self._loop.run_forever()

    def close(self) -> None:
        """Close the loop."""
        self._loop.close()


def wheel_loop_caller(
    contestant: Contestant, plan: Plan, base: type[asyncio.AbstractEventLoop] | None = None
) -> LoopCaller:
    """Calls of an event loop that keeps its calls in the timer."""

    def timer() -> Any:
        return contestant.new(UNIT, 0, plan.size + plan.fires)

    return LoopCaller(wheel_event_loop(timer, base=base, unit_ns=1_000_000), plan)


def wheel_uvloop_caller(contestant: Contestant, plan: Plan) -> LoopCaller:
    """The same on uvloop."""
    import uvloop

    return wheel_loop_caller(contestant, plan, uvloop.Loop)


LOOPS = ("asyncio", "uvloop")
"""The event loops of others, with calls in timers of their own."""


def event_loops() -> dict[str, LoopFactory]:
    """Those of LOOPS that are installed."""
    loops: dict[str, LoopFactory] = {LOOPS[0]: asyncio.SelectorEventLoop}
    try:
        import uvloop
    except ImportError:
        return loops
    return loops | {LOOPS[1]: uvloop.new_event_loop}


@dataclass(frozen=True)
class Host:
    """Timers that a program has without ours, as a contestant for some of the callers."""

    name: str
    callers: tuple[str, ...]
    make: Callable[[Plan], Any]  # its caller
    early: int  # units by which it may run a call before its time, and after it
    late: int
    sizes: tuple[int, ...] = ()  # if not those of the caller
    pairs: int = 0  # in a sample, likewise

    @property
    def label(self) -> str:
        """The name in the table of results."""
        return self.name

    @property
    def installed(self) -> bool:
        """Whether it can be measured here."""
        return importlib.util.find_spec(self.name.partition(".")[0]) is not None


def _loop_caller(plan: Plan, name: str) -> LoopCaller:
    return LoopCaller(event_loops()[name], plan)


HOSTS: Mapping[str, Host] = {
    host.name: host
    for host in (
        Host("asyncio", (LOOP,), partial(_loop_caller, name="asyncio"), 0, 0),
        # It counts in milliseconds, from the beginning of the loop's turn.
        Host("uvloop", (LOOP, UVLOOP), partial(_loop_caller, name="uvloop"), 2, 1),
        # A thread for each: more of them are more than a system may allow.
        Host("threading.Timer", (SERVICE,), ThreadCaller, 0, 0, sizes=(100, 1_000), pairs=400),
    )
}
"""The timers of hosts by name. To measure another one, add a row."""

HOST_OF: Mapping[str, str] = {SERVICE: "threading.Timer", LOOP: "asyncio", UVLOOP: "uvloop"}
"""Caller -> the host whose timers its program has, if it changes nothing."""


CALLERS: Mapping[str, Callable[[Contestant, Plan], Any]] = {
    PYTHON: PythonCaller,
    BATCHES: BatchCaller,
    SERVICE: ServiceCaller,
    LOOP: wheel_loop_caller,
    UVLOOP: wheel_uvloop_caller,
    COMPILED_CODE: CompiledCaller,
}
"""The ways of calling a timer, in the order in which a reader is asked."""

PAIRS = {COMPILED_CODE: 50_000, PYTHON: 6_000, BATCHES: 20_000} | dict.fromkeys(OWN_CLOCK, 4_000)
"""Pairs, and timers that fire, in a sample."""


def sizes_of(
    caller: str, largest: int = SIZES[-1], contestant: Contestant | Host | None = None
) -> tuple[int, ...]:
    """The numbers of pending timers at which a way of calling is measured, up to a largest."""
    own = contestant.sizes if isinstance(contestant, Host) else ()
    known = own or (SERVICE_SIZES if caller in OWN_CLOCK else SIZES)
    sizes = tuple(size for size in known if size <= largest)
    return sizes if len(sizes) > 1 else (max(largest // 10, 4), max(largest, 8))


def plan_of(
    caller: str, size: int, seed: int = 0, contestant: Contestant | Host | None = None
) -> Plan:
    """The plan for a way of calling."""
    own = contestant.pairs if isinstance(contestant, Host) else 0
    return Plan(size, own or PAIRS[caller], seed)


def can_call(caller: str, contestant: Contestant | Host) -> bool:
    """Whether a contestant can be called in a way: compiled code needs a kernel."""
    if isinstance(contestant, Host):
        return contestant.installed and caller in contestant.callers
    if caller == UVLOOP and not HOSTS[UVLOOP].installed:
        return False
    if caller == COMPILED_CODE:
        return contestant.engine == COMPILED
    return caller == PYTHON or hasattr(contestant.timer_class, "schedule_many")


def measure(caller: str, contestant: Contestant | Host, plan: Plan) -> Costs:
    """A sample of the costs of a timer for a caller, in ns."""
    if isinstance(contestant, Host):
        made = contestant.make(plan)
    else:
        made = CALLERS[caller](contestant, plan)
    with closing(made) if hasattr(made, "close") else nullcontext():
        costs = costs_of(made, plan)
    if caller in OWN_CLOCK:  # a wake-up comes on top of what fires in it
        costs = costs._replace(step=max(costs.step - costs.fire, 0.0))
    return costs


def steps_of(plan: Plan) -> int:
    """The number of steps of the clock in a sample."""
    return STEPS.get(plan.size, 100)


def costs_of(caller: Caller, plan: Plan) -> Costs:
    """A sample of the costs, in ns if the caller's clock is in seconds.

    The second of two rounds of pairs counts.
    """
    steps = steps_of(plan)
    with no_collections():
        for slots, deadlines in zip(
            *(np.split(each, 2) for each in (plan.slots, plan.deadlines)), strict=True
        ):
            pair = caller.pairs(slots, deadlines) / plan.pair_count
        step = caller.steps(steps) / steps
        fires, steps = caller.fires(plan)
        fire = (fires - steps * step) / plan.fires
    return Costs(*(1e9 * max(seconds, 0.0) for seconds in (pair, fire, step)))


@dataclass
class Callers:
    """Measures all contestants, and then the hosts, for all callers in turns: costs in `rows`.

    Each caller of a contestant is sampled at most `repeats` times at each size, and fewer times if
    its samples would take longer than SHARE of `budget` CPU seconds. So small sizes, whose samples
    are short and easily disturbed, get more of them. If a sample takes longer than `budget`, larger
    sizes are left out. No size exceeds `largest`.
    """

    contestants: Sequence[Contestant]
    repeats: int
    budget: float
    seed: int
    largest: int = SIZES[-1]
    clock: Clock = time.process_time
    callers: Sequence[str] = tuple(CALLERS)
    rows: list[Row] = field(default_factory=list, init=False)
    tasks: ClassVar[list[str]] = ["callers"]

    @property
    def steps(self) -> int:
        """The number of calls of `progress` by `run`."""
        return self.repeats * (len(self.contestants) + len(HOSTS))

    def run(
        self, progress: Progress = lambda step: None, store: Store = lambda name, rows: None
    ) -> None:
        """Take all samples."""
        # CPU seconds of the samples, by label, caller and size; infinite if one was given up
        spent: dict[tuple[str, str, int], list[float]] = defaultdict(list)
        everyone: list[Contestant | Host] = [*self.contestants, *HOSTS.values()]
        for repeat in range(self.repeats):
            for contestant in everyone:
                progress(f"calling {contestant.name}")
                for caller, size, costs in self._samples(contestant, spent):
                    values = dict(zip(METRICS, costs, strict=True))
                    self.rows += rows_of(contestant.label, caller, values, size, repeat)
        self.rows += [
            Row(host.label, caller, None, METRICS[0], None, None, MISSING)
            for host in HOSTS.values()
            for caller in host.callers
            if not host.installed
        ]
        store(self.tasks[0], self.rows)

    def _samples(
        self,
        contestant: Contestant | Host,
        spent: dict[tuple[str, str, int], list[float]],
    ) -> Iterator[tuple[str, int, Costs]]:
        """Yield the caller, the size and a sample of the costs."""
        for caller in [each for each in self.callers if can_call(each, contestant)]:
            for size in sizes_of(caller, self.largest, contestant):
                seconds = spent[contestant.label, caller, size]
                if seconds and max(seconds) > self.budget:
                    break  # larger sizes take even longer
                if not another_fits(seconds, SHARE * self.budget):
                    continue
                plan, started = plan_of(caller, size, self.seed, contestant), self.clock()
                try:
                    yield caller, size, measure(caller, contestant, plan)
                except OverBudgetError:
                    seconds.append(math.inf)
                    break
                seconds.append(self.clock() - started)
                if seconds[-1] > self.budget:
                    break


MISSING = "is not installed"
"""The note of a host that could not be measured here."""

METRICS = ("pair_time", "fire_time", "step_time")
"""The metrics of the table of results, in the order of Costs."""


def _nothing() -> None:
    """The callback."""
