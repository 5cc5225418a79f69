"""Ratios to the yardstick, run in the same minute on the same tapes.

They are printed after pytest-benchmark's own table.
"""

import heapq
import time
from functools import cache

import numpy as np
import pytest

from compare.trial.bench import work
from compare.trial.bench.task import BY_CLOCK, BY_EVENT, CANCEL_ALL, HOLD, INSERT, Task
from compare.trial.bench.work import LONGEST_DELAY, SCENARIOS, SETTLE, SETTLING, ScenarioRun
from compare.trial.replay.contestant import contestant
from tests.bench import yardstick
from tests.bench.bare import BareRun
from timers import timer_class

SIZES = [100_000, 1_000_000]
ROUNDS, HEAPQ_ROUNDS = 7, 3
LISTS = "cascading-wheel"  # whose slots are linked lists
KERNELS = [
    "delay-queue",
    "simple-wheel",
    "hashed-wheel",
    "hierarchical-wheel",
    LISTS,
    "dense-wheel",
]
WIDE = "simple-wheel/wheel-size=65536"  # a slot for each delay: 50 times those of the yardstick
STANDING = Task("hold", "standing")  # the clock does not move
SCENARIO = {task: scenario for scenario in SCENARIOS for task in scenario} | {
    STANDING: (INSERT, SETTLE, STANDING)
}
TASKS = (INSERT, CANCEL_ALL, HOLD, STANDING, BY_CLOCK, BY_EVENT)
END = 2 * LONGEST_DELAY  # the last deadline and a tick of 100 have passed

YARDSTICK, HEAPQ, BARE = "yardstick", "heapq", "bare loop"
TARGETS = {  # (timer, operation) -> (base, maximum ratio, or that of each size)
    **{(LISTS, task.name): (YARDSTICK, 1.1) for task in TASKS},
    **{
        (name, task.name): (YARDSTICK, 1.1)
        for name in ("simple-wheel", "hashed-wheel")
        for task in (INSERT, CANCEL_ALL)
    },
    **{
        ("hierarchical-wheel", task.name): (YARDSTICK, 3.0 if task.operation == "expiry" else 2.0)
        for task in TASKS
    },
    **{("dense-wheel", task.name): (LISTS, None) for task in TASKS},
    ("dense-wheel", HOLD.name): (LISTS, {1_000_000: 1.0}),
    **{
        ("dense-wheel", task.name): (LISTS, {100_000: 0.75, 1_000_000: 0.25})
        for task in (BY_CLOCK, BY_EVENT)
    },
    **{("delay-queue", task.name): (HEAPQ, 0.7) for task in (INSERT, CANCEL_ALL, BY_EVENT)},
}


@cache
def tapes(size):
    """The tapes that `wheelwork compare` measures at a size."""
    scenario_tapes = work.tapes_of(size, 0)
    standing = scenario_tapes.rows[HOLD].copy()
    standing["time"] = SETTLING
    scenario_tapes.rows[STANDING] = standing
    return scenario_tapes


class Yardstick:
    """The yardstick running a scenario."""

    def __init__(self, size):
        self.tapes = tapes(size)
        self.nodes, self.clock = yardstick.allocate(size + 1)
        self.handles = np.full(size, -1, np.int64)
        self.fired = np.full((self.tapes.buffers.fired.size, 3), -1, np.int64)  # touched before

    def run(self, task):
        if task.operation == "expiry":  # always by clock: it has no next wake-up
            last = int(self.nodes["deadline"][yardstick.BUCKETS :].max())
            return yardstick.tick(self.nodes, self.clock, last, self.fired)
        rows = self.tapes.rows[task]
        return yardstick.replay(self.nodes, self.clock, rows, self.handles, self.fired)


def kernel(name, size):
    """A timer running a scenario in a replay."""
    return ScenarioRun(contestant(name), tapes(size), time.thread_time)


class Heapq:
    """A heapq of a Python program running a scenario."""

    def __init__(self, size):
        self.heap, self.live = [], set()
        deadlines = tapes(size).filling.deadline[:size].tolist()
        self.items = list(zip(deadlines, range(size), strict=True))
        self.order = tapes(size).rows[CANCEL_ALL]["id"].tolist()

    def run(self, task):
        heap, live = self.heap, self.live
        if task == INSERT:
            for item in self.items:
                heapq.heappush(heap, item)
                live.add(item[1])
        elif task == CANCEL_ALL:
            for number in self.order:
                live.discard(number)
                # Rebuild it when most of its entries are cancelled, as asyncio does.
                if len(heap) > 64 and 2 * len(live) < len(heap):
                    heap[:] = [item for item in heap if item[1] in live]
                    heapq.heapify(heap)
        elif task.operation == "expiry":
            fired = []
            while heap and heap[0][0] <= END:
                item = heapq.heappop(heap)
                if item[1] in live:
                    live.remove(item[1])
                    fired.append(item)


def ready_for(contender, task):
    """Run the steps of the scenario that precede a task; return the contender."""
    scenario = SCENARIO[task]
    for step in scenario[: scenario.index(task)]:
        contender.run(step)
    return contender


def paired(benchmark, name, operation, size, per, base, target, time_base, fresh, rounds=ROUNDS):
    """Run a benchmark with a timed round of its base before each round.

    So noise of the machine affects both equally.
    """
    base_seconds = []

    def setup():
        base_seconds.append(time_base())
        return fresh(), {}

    benchmark.group = f"{operation} at N = {size:,}"
    benchmark.pedantic(
        lambda call, *arguments: call(*arguments), setup=setup, rounds=rounds, warmup_rounds=1
    )
    samples = base_seconds[-len(benchmark.stats.stats.data) :]
    benchmark.extra_info.update(name=name, operation=operation, size=size, per=per)
    benchmark.extra_info.update(base=base, base_seconds=samples, target=target)


def seconds_of(call, *arguments):
    started = time.thread_time()
    call(*arguments)
    return time.thread_time() - started


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@pytest.mark.parametrize("name", [*KERNELS, WIDE])
def test_replay(benchmark, name, task, size):
    if name == "simple-wheel" and task.operation == "expiry":
        pytest.skip("it scans its overflow list 117 times; `wheelwork compare` measures that")
    base, target = TARGETS.get((name, task.name), (YARDSTICK, None))
    if isinstance(target, dict):
        target = target.get(size)
    per = tapes(size).operations(HOLD if task == STANDING else task)

    def time_base():
        make = {HEAPQ: Heapq, YARDSTICK: Yardstick}.get(base, lambda size: kernel(base, size))
        return seconds_of(ready_for(make(size), task).run, task)

    def fresh():
        return ready_for(kernel(name, size), task).run, task

    rounds = HEAPQ_ROUNDS if base == HEAPQ else ROUNDS
    paired(benchmark, name, task.name, size, per, base, target, time_base, fresh, rounds)


BARE_TARGETS = {HOLD: 1.25, BY_CLOCK: 1.25}
BARE_ROUNDS = {100_000: 21, 1_000_000: 7}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("task", [INSERT, CANCEL_ALL, HOLD, BY_CLOCK], ids=lambda task: task.name)
@pytest.mark.parametrize("name", ["hierarchical-wheel", "cascading-wheel", "dense-wheel"])
def test_bare_loop(benchmark, name, task, size):
    """A replay, relative to a bare loop around the same kernel: what the replay adds."""

    def time_base():
        bare = BareRun(contestant(name), tapes(size))
        return seconds_of(ready_for(bare, task).run, task)

    def fresh():
        return ready_for(kernel(name, size), task).run, task

    per, target = tapes(size).operations(task), BARE_TARGETS.get(task)
    case = f"{name}, replay", task.name, size, per, BARE, target
    paired(benchmark, *case, time_base, fresh, BARE_ROUNDS[size])


BATCH_TARGET, SCALAR_TARGET = 1.2, 2.5
SCALAR_CALLS = 2_000


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("task", [INSERT, CANCEL_ALL], ids=lambda task: task.name)
@pytest.mark.parametrize("name", KERNELS)
def test_batch_calls(benchmark, name, task, size):
    """Batch calls from Python, relative to a replay of the same operations."""
    deadlines = tapes(size).filling.deadline[:size]
    order = tapes(size).rows[CANCEL_ALL]["id"]

    def time_base():
        return seconds_of(ready_for(kernel(name, size), task).run, task)

    def fresh():
        timer = timer_class(name)(capacity=size + 1)
        if task == INSERT:
            return timer.schedule_many, deadlines
        handles = timer.schedule_many(deadlines)
        timer.advance(SETTLING)
        timer.cancel(handles[0])
        return timer.cancel_many, handles[order]

    case = f"{name}, batch", task.name, size, size, "replay", BATCH_TARGET
    paired(benchmark, *case, time_base, fresh)


@pytest.mark.parametrize("name", KERNELS)
def test_scalar_pair(benchmark, name):
    """Scalar schedule + cancel, relative to two compiled calls that do nothing."""
    a = np.zeros(10, yardstick.NODE)
    yardstick.bare_call(a, a)
    timer = timer_class(name)(capacity=1_000)
    timer.schedule_many(np.arange(1, 500))

    def two_bare_calls():
        for _ in range(SCALAR_CALLS):
            yardstick.bare_call(a, a)
            yardstick.bare_call(a, a)

    def pairs():
        for _ in range(SCALAR_CALLS):
            timer.cancel(timer.schedule(300))

    case = name, "scalar pair", 500, SCALAR_CALLS, "two bare calls", SCALAR_TARGET
    paired(benchmark, *case, lambda: seconds_of(two_bare_calls), lambda: (pairs,), rounds=25)
