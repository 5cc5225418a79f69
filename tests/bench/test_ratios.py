"""Ratios against the yardstick, run in the same minute on the same tapes; printed after
pytest-benchmark's own table.
"""

import heapq
import time

import numpy as np
import pytest

from compare.replay.engine import operations_of
from compare.replay.loops import CELLS, run
from compare.tapes.tape import CANCEL, START, Tape
from tests.bench import yardstick
from timers import timer_class
from timers.kernels.pool import EXPIRY

LONGEST_DELAY = 60_000
HOLD_PAIRS = 1_000_000
PUSHES = 20_000
SIZES = [100_000, 1_000_000]
ROUNDS = 11
KERNELS = ["delay-queue", "simple-wheel", "hashed-wheel", "hierarchical-wheel", "cascading-wheel"]
END = LONGEST_DELAY + 1_000  # by then a tick of 100 has passed too

YARDSTICK, HEAPQ = "yardstick", "heapq push"
TARGETS = {  # (timer, operation) -> (yardstick, greatest ratio asked for)
    **{
        ("cascading-wheel", operation): (YARDSTICK, 1.1)
        for operation in ("insert", "cancel", "expire", "hold")
    },
    **{
        (name, op): (YARDSTICK, 1.1)
        for name in ("simple-wheel", "hashed-wheel")
        for op in ("insert", "cancel")
    },
    **{
        ("hierarchical-wheel", operation): (YARDSTICK, 2.0)
        for operation in ("insert", "cancel", "hold")
    },
    ("hierarchical-wheel", "expire"): (YARDSTICK, 3.0),
    **{("delay-queue", operation): (HEAPQ, 0.7) for operation in ("insert", "cancel")},
    ("delay-queue", "expire"): (HEAPQ, 2.0),
}


@pytest.fixture(scope="module")
def tapes():
    """size -> operation -> tape, and packed as `run` takes it.

    Fill an empty timer; cancel all in random order; churn; one operation past the end.
    """
    rng = np.random.default_rng(0)

    def tape(op, ids, time=0):
        op, ids = np.asarray(op, np.int8), np.asarray(ids, np.int32)
        deadlines = np.where(op == START, rng.integers(1, LONGEST_DELAY + 1, op.size), 0)
        return Tape(np.full(op.size, time), op, ids, deadlines)

    made = {
        size: {
            "insert": tape(np.full(size, START), np.arange(size)),
            "cancel": tape(np.full(size, CANCEL), rng.permutation(size)),
            "hold": tape(
                np.tile([CANCEL, START], HOLD_PAIRS),
                np.repeat(rng.integers(0, size, HOLD_PAIRS), 2),
            ),
            "expire": tape([CANCEL], [0], time=END),
        }
        for size in SIZES
    }
    for by_operation in made.values():
        by_operation |= {
            f"{name}, packed": operations_of(t, 0, t.time.size) for name, t in by_operation.items()
        }
    return made


class Yardstick:
    """The yardstick, filled or empty."""

    def __init__(self, size, tapes):
        self.nodes, self.clock = yardstick.allocate(size + 1)
        self.handles = np.full(size, -1, np.int64)
        self.fired = np.full((size, 3), -1, np.int64)  # touched before it is timed
        self.tapes = tapes

    def run(self, operation):
        return yardstick.replay(
            self.nodes, self.clock, *self.tapes[operation], self.handles, self.fired
        )


class Kernel:
    """A timer inside `replay`, filled or empty."""

    def __init__(self, name, size, tapes):
        self.timer = timer_class(name)(capacity=size + 1)
        self.early = -self.timer.traits.rounding(self.timer.parameters).bounds()[0]
        self.handles = np.full(size, -1, np.int64)
        self.armed_by = np.full(self.timer.state.nodes.size, -1, np.int32)
        self.fired = np.ones(size + 1, EXPIRY)  # touched before it is timed
        self.tapes = tapes

    def run(self, operation):
        cursor = np.zeros(CELLS, np.int64)
        state = self.timer.state
        run(
            state,
            self.tapes[f"{operation}, packed"],
            self.early,
            cursor,
            self.handles,
            self.armed_by,
            self.fired,
        )
        return cursor


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


def filled(loop, operation):
    if operation != "insert":
        loop.run("insert")
    return loop


@pytest.fixture(scope="module")
def heaps():
    """Makes a heap of so many tuples, and tuples to push."""
    rng = np.random.default_rng(0)

    def items(size, first):
        return [(int(d), first + k) for k, d in enumerate(rng.integers(1, LONGEST_DELAY + 1, size))]

    def new(size):
        heap = items(size, 0)
        heapq.heapify(heap)
        return heap, items(PUSHES, size)

    return new


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("operation", ["insert", "cancel", "hold", "expire"])
@pytest.mark.parametrize("name", KERNELS)
def test_replay(benchmark, tapes, heaps, name, operation, size):
    if name == "simple-wheel" and operation == "expire":
        pytest.skip(
            "delays of 117 rotations wait in its overflow list; `wheelwork compare` measures that"
        )
    base, _ = TARGETS.get((name, operation), (YARDSTICK, None))
    per = HOLD_PAIRS if operation == "hold" else size

    def time_base():
        if base == HEAPQ:
            return seconds_of(yardstick.heapq_pushes, *heaps(size)) / PUSHES * per
        return seconds_of(filled(Yardstick(size, tapes[size]), operation).run, operation)

    def fresh():
        return filled(Kernel(name, size, tapes[size]), operation).run, operation

    paired(benchmark, name, operation, size, per, base, time_base, fresh)


BATCH = 100_000
SCALAR_CALLS = 2_000


@pytest.mark.parametrize("operation", ["insert", "cancel"])
@pytest.mark.parametrize("name", KERNELS)
def test_batch_calls(benchmark, tapes, name, operation):
    """Batch calls from Python beside replay of the same operations: asked for within 1.2x."""
    deadlines = tapes[BATCH]["insert"].deadline
    order = tapes[BATCH]["cancel"].id

    def time_base():
        return seconds_of(filled(Kernel(name, BATCH, tapes[BATCH]), operation).run, operation)

    def fresh():
        timer = timer_class(name)(capacity=BATCH + 1)
        if operation == "insert":
            return timer.schedule_many, deadlines
        return timer.cancel_many, timer.schedule_many(deadlines)[order]

    paired(benchmark, f"{name}, batch", operation, BATCH, BATCH, "replay", time_base, fresh)


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
