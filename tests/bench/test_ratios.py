"""Ratios against the yardstick, run in the same minute on the same tapes; printed after pytest-benchmark's own table."""
import numpy as np
import pytest

from compare.loops import CELLS, run
from compare.replay import operations_of
from compare.tape import CANCEL, START, Tape
from tests.bench import yardstick
from timers import timer_class
from timers.kernels.pool import EXPIRY

LONGEST_DELAY = 60_000
HOLD_PAIRS = 1_000_000
PUSHES = 20_000
SIZES = [100_000, 1_000_000]
ROUNDS = 7
KERNELS = ["delay-queue", "simple-wheel", "hashed-wheel", "hierarchical-wheel", "cascading-wheel"]
END = LONGEST_DELAY + 1_000  # by then a tick of 100 has passed too

YARDSTICK, HEAPQ = "yardstick", "heapq push"
TARGETS = {  # (timer, operation) -> (yardstick, greatest ratio asked for)
    **{("cascading-wheel", operation): (YARDSTICK, 1.1) for operation in ("insert", "cancel", "expire", "hold")},
    **{(name, op): (YARDSTICK, 1.1) for name in ("simple-wheel", "hashed-wheel") for op in ("insert", "cancel")},
    **{("hierarchical-wheel", operation): (YARDSTICK, 2.0) for operation in ("insert", "cancel", "hold")},
    ("hierarchical-wheel", "expire"): (YARDSTICK, 3.0),
    **{("delay-queue", operation): (HEAPQ, 0.7) for operation in ("insert", "cancel")},
    ("delay-queue", "expire"): (HEAPQ, 2.0),
}


@pytest.fixture(scope="module")
def tapes():
    """size -> operation -> tape: fill an empty timer; cancel all in random order; churn; one operation past the end."""
    rng = np.random.default_rng(0)

    def tape(op, ids, time=0):
        op, ids = np.asarray(op, np.int8), np.asarray(ids, np.int32)
        deadlines = np.where(op == START, rng.integers(1, LONGEST_DELAY + 1, op.size), 0)
        return Tape(np.full(op.size, time), op, ids, deadlines)

    return {
        size: {
            "insert": tape(np.full(size, START), np.arange(size)),
            "cancel": tape(np.full(size, CANCEL), rng.permutation(size)),
            "hold": tape(np.tile([CANCEL, START], HOLD_PAIRS), np.repeat(rng.integers(0, size, HOLD_PAIRS), 2)),
            "expire": tape([CANCEL], [0], time=END),
        }
        for size in SIZES
    }


class Yardstick:
    """The yardstick, filled or empty."""

    def __init__(self, size, tapes):
        self.nodes, self.clock = yardstick.allocate(size + 1)
        self.handles = np.full(size, -1, np.int64)
        self.fired = np.full((size, 3), -1, np.int64)  # touched before it is timed
        self.tapes = tapes

    def run(self, operation):
        return yardstick.replay(self.nodes, self.clock, *self.tapes[operation], self.handles, self.fired)


class Kernel:
    """A timer inside `replay`, filled or empty."""

    def __init__(self, name, size, tapes):
        self.timer = timer_class(name)(capacity=size + 1)
        self.early = -self.timer.traits.lateness(self.timer.parameters)[0]
        self.handles = np.full(size, -1, np.int64)
        self.armed_by = np.full(self.timer.state.nodes.size, -1, np.int32)
        self.fired = np.ones(size + 1, EXPIRY)  # touched before it is timed
        self.operations = {operation: operations_of(tape, 0, tape.time.size) for operation, tape in tapes.items()}

    def run(self, operation):
        cursor = np.zeros(CELLS, np.int64)
        state = self.timer.state
        run(state, self.operations[operation], self.early, cursor, self.handles, self.armed_by, self.fired)
        return cursor


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("operation", ["insert", "cancel", "hold", "expire"])
@pytest.mark.parametrize("name", [YARDSTICK, *KERNELS])
def test_replay(benchmark, tapes, name, operation, size):
    if name == "simple-wheel" and operation == "expire":
        pytest.skip("delays of 117 rotations wait in its overflow list: see `escapement compare` for what that costs")

    def fresh():
        loop = Yardstick(size, tapes[size]) if name == YARDSTICK else Kernel(name, size, tapes[size])
        if operation != "insert":
            loop.run("insert")
        return (loop, operation), {}

    benchmark.group = f"{operation} at N = {size:,}"
    pairs_or_timers = HOLD_PAIRS if operation == "hold" else size
    benchmark.extra_info.update(name=name, operation=operation, size=size, per=pairs_or_timers)
    benchmark.pedantic(lambda loop, operation: loop.run(operation), setup=fresh, rounds=ROUNDS, warmup_rounds=1)


@pytest.mark.parametrize("size", SIZES)
def test_heapq_push(benchmark, size):
    rng = np.random.default_rng(0)

    def fresh():
        heap = sorted((int(d), k) for k, d in enumerate(rng.integers(1, LONGEST_DELAY + 1, size)))
        pushes = [(int(d), size + k) for k, d in enumerate(rng.integers(1, LONGEST_DELAY + 1, PUSHES))]
        return (heap, pushes), {}

    benchmark.group = f"insert at N = {size:,}"
    benchmark.extra_info.update(name=HEAPQ, operation="push", size=size, per=PUSHES)
    benchmark.pedantic(yardstick.heapq_pushes, setup=fresh, rounds=ROUNDS)


BATCH = 100_000


@pytest.mark.parametrize("operation", ["insert", "cancel"])
@pytest.mark.parametrize("name", KERNELS)
def test_batch_calls(benchmark, tapes, name, operation):
    """Batch calls from Python beside replay of the same operations: asked for within 1.2x."""
    deadlines = tapes[BATCH]["insert"].deadline
    order = tapes[BATCH]["cancel"].id

    def fresh():
        timer = timer_class(name)(capacity=BATCH + 1)
        if operation == "insert":
            return (timer.schedule_many, deadlines), {}
        return (timer.cancel_many, timer.schedule_many(deadlines)[order]), {}

    benchmark.group = f"{operation} at N = {BATCH:,}"
    benchmark.extra_info.update(name=f"{name}, batch call", operation=operation, size=BATCH, per=BATCH, base=name)
    benchmark.pedantic(lambda call, values: call(values), setup=fresh, rounds=ROUNDS, warmup_rounds=1)


@pytest.mark.parametrize("name", ["two bare calls", *KERNELS])
def test_scalar_pair(benchmark, name):
    """Scalar schedule + cancel beside two compiled calls that take two record arrays and do nothing: within 2.5x."""
    if name == "two bare calls":
        a = b = np.zeros(10, yardstick.NODE)

        def pair():
            yardstick.bare_call(a, b)
            yardstick.bare_call(a, b)
    else:
        timer = timer_class(name)(capacity=1_000)
        timer.schedule_many(np.arange(1, 500))

        def pair():
            timer.cancel(timer.schedule(300))

    benchmark.group = "scalar schedule + cancel"
    benchmark.extra_info.update(name=name, operation="pair", size=0, per=1)
    benchmark.pedantic(pair, rounds=50, iterations=2_000, warmup_rounds=3)
