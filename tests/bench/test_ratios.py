"""Ratios against the yardstick, run in the same minute on the same tapes; printed after
pytest-benchmark's own table.
"""

import time
from functools import cache

import numpy as np
import pytest

from compare.bench import work
from compare.bench.task import BY_CLOCK, BY_EVENT, CANCEL_ALL, HOLD, INSERT, Task
from compare.bench.work import LONGEST_DELAY, SCENARIOS, SETTLE, SETTLING, ScenarioRun
from compare.replay.contestant import contestant
from tests.bench import yardstick
from timers import timer_class

SIZES = [100_000, 1_000_000]
ROUNDS, HEAPQ_ROUNDS = 7, 3
KERNELS = ["delay-queue", "simple-wheel", "hashed-wheel", "hierarchical-wheel", "cascading-wheel"]
WIDE = "simple-wheel/wheel-size=65536"  # which has a slot for each delay, 50 times the yardstick's
STANDING = Task("hold", "standing")  # the clock does not move
SCENARIO = {task: scenario for scenario in SCENARIOS for task in scenario} | {
    STANDING: (INSERT, SETTLE, STANDING)
}
TASKS = (INSERT, CANCEL_ALL, HOLD, STANDING, BY_CLOCK, BY_EVENT)
END = 2 * LONGEST_DELAY  # by then a tick of 100 has passed, too

YARDSTICK, HEAPQ = "yardstick", "heapq"
TARGETS = {  # (timer, operation) -> (yardstick, greatest ratio asked for)
    **{("cascading-wheel", task.name): (YARDSTICK, 1.1) for task in TASKS},
    **{
        (name, task.name): (YARDSTICK, 1.1)
        for name in ("simple-wheel", "hashed-wheel")
        for task in (INSERT, CANCEL_ALL)
    },
    **{
        ("hierarchical-wheel", task.name): (YARDSTICK, 3.0 if task.operation == "expiry" else 2.0)
        for task in TASKS
    },
    **{
        ("delay-queue", task.name): (HEAPQ, target)
        for task, target in {INSERT: 0.7, CANCEL_ALL: 0.7, BY_EVENT: 0.7}.items()
    },
}


@cache
def tapes(size):
    """What is timed by `wheelwork compare` at one size."""
    made = work.tapes_of(size, 0)
    standing = made.rows[HOLD].copy()
    standing["time"] = SETTLING
    made.rows[STANDING] = standing
    return made


class Yardstick:
    """The yardstick on its way through a scenario."""

    def __init__(self, size):
        self.tapes = tapes(size)
        self.nodes, self.clock = yardstick.allocate(size + 1)
        self.handles = np.full(size, -1, np.int64)
        self.fired = np.full((self.tapes.buffers.fired.size, 3), -1, np.int64)  # touched before

    def run(self, task):
        if task.operation == "expiry":  # it does not know when it must be woken: always by clock
            last = int(self.nodes["deadline"][yardstick.BUCKETS :].max())
            return yardstick.tick(self.nodes, self.clock, last, self.fired)
        rows = self.tapes.rows[task]
        return yardstick.replay(self.nodes, self.clock, rows, self.handles, self.fired)


class Kernel:
    """A timer in a replay, on its way through a scenario."""

    def __init__(self, name, size):
        made = tapes(size)
        self.scenario = ScenarioRun(contestant(name), made, time.perf_counter)
        self.until = int(made.holding.deadline.max()) + 100  # a tick later

    def run(self, task):
        return self.scenario.run(task, self.until)


class Heapq:
    """What a Python program does with heapq, on its way through a scenario."""

    def __init__(self, size):
        made = tapes(size)
        self.heap, self.live = [], set()
        deadlines = made.filling.deadline[:size].tolist()
        self.items = list(zip(deadlines, range(size), strict=True))
        self.order = made.rows[CANCEL_ALL]["id"].tolist()

    def run(self, task):
        if task == INSERT:
            yardstick.heapq_insert(self.heap, self.live, self.items)
        elif task == CANCEL_ALL:
            yardstick.heapq_cancel(self.heap, self.live, self.order)
        elif task.operation == "expiry":
            yardstick.heapq_expire(self.heap, self.live, END)


def ready_for(made, task):
    """`made` after what stands before a task; a heap has no tick and is not held."""
    scenario = SCENARIO[task]
    for before in scenario[: scenario.index(task)]:
        made.run(before)
    return made


def paired(benchmark, name, operation, size, per, base, time_base, fresh, rounds=ROUNDS):
    """Run a benchmark whose every round follows a timed round of its base: the machine's moods hit
    both alike.
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
    info = {
        "name": name,
        "operation": operation,
        "size": size,
        "per": per,
        "base": base,
        "base_seconds": samples,
    }
    benchmark.extra_info.update(info)


def seconds_of(call, *arguments):
    started = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - started


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@pytest.mark.parametrize("name", [*KERNELS, WIDE])
def test_replay(benchmark, name, task, size):
    if name == "simple-wheel" and task.operation == "expiry":
        pytest.skip("it scans its overflow list 117 times; `wheelwork compare` measures that")
    base, _ = TARGETS.get((name, task.name), (YARDSTICK, None))
    made = tapes(size)
    per = made.operations(HOLD if task == STANDING else task)

    def time_base():
        against = Heapq(size) if base == HEAPQ else Yardstick(size)
        return seconds_of(ready_for(against, task).run, task)

    def fresh():
        return ready_for(Kernel(name, size), task).run, task

    rounds = HEAPQ_ROUNDS if base == HEAPQ else ROUNDS
    paired(benchmark, name, task.name, size, per, base, time_base, fresh, rounds)


BATCH = 100_000
SCALAR_CALLS = 2_000


@pytest.mark.parametrize("task", [INSERT, CANCEL_ALL], ids=lambda task: task.name)
@pytest.mark.parametrize("name", KERNELS)
def test_batch_calls(benchmark, name, task):
    """Batch calls from Python beside replay of the same operations: asked for within 1.2x."""
    made = tapes(BATCH)
    deadlines = made.filling.deadline[:BATCH]
    order = made.rows[CANCEL_ALL]["id"]

    def time_base():
        return seconds_of(ready_for(Kernel(name, BATCH), task).run, task)

    def fresh():
        timer = timer_class(name)(capacity=BATCH + 1)
        if task == INSERT:
            return timer.schedule_many, deadlines
        handles = timer.schedule_many(deadlines)
        timer.advance(SETTLING)
        timer.cancel(handles[0])
        return timer.cancel_many, handles[order]

    paired(benchmark, f"{name}, batch", task.name, BATCH, BATCH, "replay", time_base, fresh)


@pytest.mark.parametrize("name", KERNELS)
def test_scalar_pair(benchmark, name):
    """Scalar schedule + cancel beside two compiled calls that take two record arrays and do
    nothing: within 2.5x.
    """
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

    fresh = lambda: (pairs,)  # noqa: E731  # as in the tests above
    time_base = lambda: seconds_of(two_bare_calls)  # noqa: E731
    paired(
        benchmark,
        name,
        "scalar pair",
        500,
        SCALAR_CALLS,
        "two bare calls",
        time_base,
        fresh,
        rounds=25,
    )
