"""Named workloads: seeded traffic with the same rows on every machine.

A workload is an endless stream of *members*, each the life of a timer: a request with its timeout,
or a connection with its touches. Members come in blocks of BLOCK. A block is a pure function of
(seed, shard, block): it is made from the raw 64-bit words of Philox, a counter-based generator,
whose key is (seed, shard) and whose counter holds the block. From these words, everything is
computed with integers and the few functions of doubles in `compare.workloads.variates`.

Arrivals are Poisson, conditioned on BLOCK arrivals in each block's span of time.

>>> made = make("constant", timers=3, seed=1)
>>> (made.tape.deadline - made.tape.time).tolist(), made.id_space, made.unit
([30000, 30000, 30000], 3, 'ms')
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from compare.arguments import check_integer
from compare.tapes.tape import ARM, CANCEL, Tape, id_space_of, joined
from compare.tapes.trace import MAX_SHARDS
from compare.tapes.units import EXPONENTS
from compare.workloads.generator import NEVER, Block, merge
from compare.workloads.variates import Floats, exp, log, normal
from timers.arrays import Int64s
from timers.errors import TimerError, unknown_name

BLOCK = 1 << 12
"""Members of a block: enough for NumPy to be fast, few enough to fit in memory."""

MOST = 10**8
"""The most members or operations of a tape in memory: 2.1 GB."""

MOST_ROWS = 2**31 - 1
"""The most operations of a shard on disk: ids are int32."""

LARGEST_SEED = 2**64 - 1


class WorkloadError(TimerError, ValueError):
    """An unknown workload, or a number that is out of range for it."""


class Made(NamedTuple):
    """A tape and what a trace's manifest says of it."""

    tape: Tape
    id_space: int
    unit: str
    source: dict[str, Any]  # workload, parameters, seed, shard, and the timers or operations


class Stream:
    """The random numbers of one block: a pure function of (seed, shard, block, purpose)."""

    def __init__(self, seed: int, shard: int, block: int) -> None:
        self._key, self._block = np.array([seed, shard], np.uint64), block

    def raw(self, purpose: int, size: int) -> npt.NDArray[np.uint64]:
        """The generator's own 64-bit words."""
        # The lowest word of the counter counts within the stream; the others identify the stream.
        counter = np.array([0, self._block, purpose, 0], np.uint64)
        return np.random.Philox(key=self._key, counter=counter).random_raw(size)

    def uniform(self, purpose: int, size: int) -> Floats:
        """Doubles in the open interval (0, 1), multiples of 2**-53."""
        # 52 random bits and a half: exact, where 53 and a half would round to 1.
        bits = self.raw(purpose, size) >> np.uint64(12)
        return np.asarray((bits.astype(np.float64) + 0.5) * 2.0**-52)


ARRIVAL, DELAY, CHOICE, LENGTH, GAP = range(5)
"""Purposes of streams."""

Parameters = Mapping[str, int]


class Parameter(NamedTuple):
    """A parameter of a workload: its default, what it says, and the least and greatest value."""

    default: int
    meaning: str
    lowest: int = 1
    highest: int = 10**15  # beyond it sums of doubles would no longer be whole units


@dataclass(frozen=True)
class Workload:
    """A kind of traffic. `draw(stream, starts, parameters)` makes what a block's members do."""

    name: str
    summary: str
    unit: str
    parameters: Mapping[str, Parameter]
    draw: Callable[[Stream, Int64s, Parameters], Block]

    @property
    def defaults(self) -> Parameters:
        """The value of each parameter that is not given."""
        return {name: parameter.default for name, parameter in self.parameters.items()}


# ---- what the members of a block do


def _requests(starts: Int64s, timeout: int, latency: Floats) -> Block:
    """A timeout for each member, cancelled if the answer, after `latency`, comes in time."""
    # Clipped while it is a float: an answer later than any int64 never comes.
    delays = np.clip(latency, 1.0, float(timeout)).astype(np.int64)
    answered = np.flatnonzero(delays < timeout).astype(np.int32)
    ends = starts + delays
    return Block(starts, starts + timeout, ends, answered, ends[answered], CANCEL)


def _fire(starts: Int64s, delays: Int64s) -> Block:
    """A timer for each member, which fires."""
    deadlines = starts + delays
    return Block(starts, deadlines, deadlines)


def _uniform(stream: Stream, starts: Int64s, parameters: Parameters) -> Block:
    delays = stream.uniform(DELAY, starts.size) * float(parameters["longest"])
    return _fire(starts, 1 + delays.astype(np.int64))


def _exponential(stream: Stream, starts: Int64s, parameters: Parameters) -> Block:
    delays = -log(stream.uniform(DELAY, starts.size)) * float(parameters["mean"])
    return _fire(starts, 1 + delays.astype(np.int64))


def _constant(stream: Stream, starts: Int64s, parameters: Parameters) -> Block:
    return _fire(starts, np.full(starts.size, parameters["delay"]))


_QUARTILE = 0.674489750196081743  # the standard normal variate below which three quarters lie


def _lognormal(stream: Stream, starts: Int64s, parameters: Parameters) -> Block:
    median, quartile = (np.array([float(parameters[name])]) for name in ("median", "quartile"))
    sigma = log(quartile / median) / _QUARTILE
    latency = exp(log(median) + sigma * normal(stream.uniform(DELAY, starts.size)))
    return _requests(starts, parameters["timeout"], latency)


def _cancel_heavy(stream: Stream, starts: Int64s, parameters: Parameters) -> Block:
    timeout = parameters["timeout"]
    latency = -log(stream.uniform(DELAY, starts.size)) * float(parameters["mean"])
    # An answer that is to come does so in time.
    latency = np.minimum(latency, float(timeout - 1))
    is_lost = stream.uniform(CHOICE, starts.size) * 1000.0 < float(parameters["lost"])
    return _requests(starts, timeout, np.where(is_lost, float(timeout), latency))


def _keepalive(stream: Stream, starts: Int64s, parameters: Parameters) -> Block:
    idle, mean = parameters["idle"], parameters["mean"]
    # Touches follow each other after exponential gaps; the first gap that exceeds `idle` ends the
    # connection. So the number of gaps before it is geometric, and each of them an exponential
    # variate given that it is below `idle`.
    survives = exp(np.array([-idle / mean]))
    lengths = log(stream.uniform(LENGTH, starts.size)) / log(1.0 - survives)
    touches = lengths.astype(np.int64)
    within = 1.0 - stream.uniform(GAP, int(touches.sum())) * (1.0 - survives)
    elapsed = np.cumsum((-log(within) * float(mean)).astype(np.int64))
    elapsed = np.concatenate([[0], elapsed])  # after so many gaps of the block
    last = np.cumsum(touches)
    begins = starts - elapsed[last - touches]  # when the block's gaps would have begun
    member = np.repeat(np.arange(starts.size, dtype=np.int32), touches)
    time = begins[member] + elapsed[1:]
    return Block(starts, starts + idle, begins + elapsed[last] + idle, member, time, ARM, idle)


# ---- the workloads

_RATE = "arrivals in a second, on average"
_TIMEOUT = "units after which a request without an answer times out"


def _latencies(median: int, quartile: int) -> dict[str, Parameter]:
    return {
        "rate": Parameter(100_000, _RATE),
        "timeout": Parameter(200_000, _TIMEOUT),
        "median": Parameter(median, "units within which half of the answers come"),
        "quartile": Parameter(quartile, "... three quarters"),
    }


_ALL = (
    Workload(
        "uniform",
        "timers that all fire, after delays uniform in 1 .. longest",
        "ms",
        {
            "rate": Parameter(1000, _RATE),
            "longest": Parameter(60_000, "units of the longest delay"),
        },
        _uniform,
    ),
    Workload(
        "exponential",
        "timers that all fire, after exponential delays",
        "ms",
        {"rate": Parameter(1000, _RATE), "mean": Parameter(30_000, "units of the average delay")},
        _exponential,
    ),
    Workload(
        "constant",
        "timers that all fire, after one delay for all",
        "ms",
        {"rate": Parameter(1000, _RATE), "delay": Parameter(30_000, "units of every delay")},
        _constant,
    ),
    Workload(
        "lognormal-low",
        "requests of log-normal latency, median 20 ms, of which 7.87 % time out at 200 ms",
        "us",
        _latencies(20_000, 60_000),
        _lognormal,
    ),
    Workload(
        "lognormal-high",
        "requests of log-normal latency, median 200 ms, of which half time out at 200 ms",
        "us",
        _latencies(200_000, 400_000),
        _lognormal,
    ),
    Workload(
        "keepalive",
        "connections whose idle timeout every touch re-arms; touches are Poisson",
        "ms",
        {
            "rate": Parameter(100, "connections opened in a second, on average"),
            "idle": Parameter(30_000, "units without a touch that end a connection"),
            "mean": Parameter(10_000, "units between two touches, on average"),
        },
        _keepalive,
    ),
    Workload(
        "cancel-heavy",
        "requests of which 99 % are answered, soon, and their timeouts cancelled",
        "ms",
        {
            "rate": Parameter(10_000, _RATE),
            # The least leaves an answer time to come.
            "timeout": Parameter(30_000, _TIMEOUT, lowest=2),
            "mean": Parameter(50, "units of the average latency"),
            "lost": Parameter(10, "requests of a thousand that are never answered", 0, 1000),
        },
        _cancel_heavy,
    ),
)

WORKLOADS: Mapping[str, Workload] = {workload.name: workload for workload in _ALL}
"""Name -> workload, in the order of listings."""


def workload_named(name: str) -> Workload:
    """The workload of this name. Raises WorkloadError if there is none."""
    if name not in WORKLOADS:
        raise WorkloadError(unknown_name("workload", name, WORKLOADS))
    return WORKLOADS[name]


def make(
    name: str,
    *,
    timers: int | None = None,
    operations: int | None = None,
    seed: int = 0,
    shard: int = 0,
    parameters: Parameters | None = None,
) -> Made:
    """The first `timers` members of a workload with all their operations, or its first `operations`
    operations.

    Exactly one of the two is given. Ids are recycled, so that `id_space` is the largest number of
    members under way at once; a recycled id begins with a start. The tape keeps every rule of
    `compare.tapes.tape.validate`. About 0.2 s for 1e6 members, 42 bytes an operation. Raises
    WorkloadError for an unknown name or a number out of range.
    """
    plan = Plan.of(
        name, timers=timers, operations=operations, seed=seed, parameters=parameters, most=MOST
    )
    check_integer(WorkloadError, "shard", shard, 0, LARGEST_SEED)
    tape = joined(list(plan.pieces(shard)))
    return Made(tape, id_space_of(tape), plan.workload.unit, plan.source | {"shard": shard})


@dataclass(frozen=True)
class Plan:
    """A workload with checked size and parameters, from which any machine can make any shard."""

    workload: Workload
    parameters: Parameters
    seed: int
    counted: str  # "timers" or "operations"
    amount: int  # of these, in all shards together
    shards: int
    most: int  # operations in a shard

    @classmethod
    def of(
        cls,
        name: str,
        *,
        timers: int | None = None,
        operations: int | None = None,
        shards: int = 1,
        seed: int = 0,
        parameters: Parameters | None = None,
        most: int = MOST_ROWS,
    ) -> "Plan":
        """The plan for exactly one of `timers` and `operations`.

        Raises WorkloadError for an unknown name or parameter, and for a number out of range.
        """
        workload = workload_named(name)
        settings = _settings(workload, parameters or {})
        check_integer(WorkloadError, "seed", seed, 0, LARGEST_SEED)
        check_integer(WorkloadError, "shards", shards, 1, MAX_SHARDS)
        if (timers is None) == (operations is None):
            raise WorkloadError(
                "a workload needs a number of timers or of operations, and not both"
            )
        counted, amount = ("timers", timers) if operations is None else ("operations", operations)
        what = counted if shards == 1 else f"{counted} of {shards} shards"
        check_integer(WorkloadError, what, amount, shards, shards * most)
        plan = cls(workload, settings, seed, counted, amount or 0, shards, most)
        plan.pieces()  # which has as much to do as any
        return plan

    @property
    def source(self) -> dict[str, Any]:
        """The entry `source` of the manifest."""
        which = {"shard": 0} if self.shards == 1 else {"shards": self.shards}
        made = {"workload": self.workload.name, "parameters": dict(self.parameters)}
        return {**made, "seed": self.seed, **which, self.counted: self.amount}

    def share(self, shard: int) -> int:
        """The timers or operations of a shard; the first shards may have one more than the rest."""
        return self.amount // self.shards + (shard < self.amount % self.shards)

    @property
    def span(self) -> float:
        """Units in which a block's members arrive."""
        return float(BLOCK * 10 ** EXPONENTS[self.workload.unit]) / float(self.parameters["rate"])

    def block(self, shard: int, number: int, size: int = BLOCK) -> Block:
        """The first `size` members of a shard's block, which depend on no other block."""
        if (number + 1) * self.span > _LATEST:
            raise _too_long(self.workload)
        stream = Stream(self.seed, shard, number)
        arrivals = np.sort(stream.uniform(ARRIVAL, BLOCK))[:size]
        starts = ((float(number) + arrivals) * self.span).astype(np.int64)
        return self.workload.draw(stream, starts, self.parameters)

    def pieces(self, shard: int = 0) -> Iterator[Tape]:
        """One shard's tape in pieces of up to 2**20 operations.

        A shard is the traffic of one timer, at the full rate of the workload. Its rows do not
        depend on the number of shards. O(operations) time; memory for the members under way.
        Raises WorkloadError when there are too many operations, or times are too late.
        """
        amount, are_timers = self.share(shard), self.counted == "timers"
        needed, possible = -(-amount // BLOCK), int(_LATEST / self.span)
        blocks = min(needed, possible)

        def block(number: int) -> Block:
            left = amount - number * BLOCK if are_timers else BLOCK
            return self.block(shard, number, min(left, BLOCK))

        def horizon(made: int) -> int:
            """The time before which no member starts that comes after so many blocks."""
            return NEVER if are_timers and made == blocks else int(made * self.span)

        if are_timers and needed > possible:
            raise _too_long(self.workload)
        if are_timers and amount > BLOCK:
            # A little less than the average operations of a timer, from the first block.
            each = 1 + len(block(0).times) / BLOCK
            self._check_rows(amount, _CERTAIN * amount * each)
        merged = merge(block, horizon, blocks, None if are_timers else amount)
        return self._counted(merged, amount)

    def _counted(self, pieces: Iterable[Tape], amount: int) -> Iterator[Tape]:
        """The pieces of a shard, as long as there are not too many operations, nor too few."""
        rows = 0
        for piece in pieces:
            rows += len(piece.time)
            self._check_rows(amount, rows)
            yield piece
        if self.counted == "operations" and rows < amount:
            raise _too_long(self.workload)

    def _check_rows(self, amount: int, rows: float) -> None:
        if rows > self.most:
            raise WorkloadError(
                f"{amount} timers of {self.workload.name} have more than {self.most} operations;"
                " ask for fewer, or for more shards"
            )


def _too_long(workload: Workload) -> WorkloadError:
    return WorkloadError(
        f"{workload.name} would last longer than 2**53 {workload.unit}; a greater rate shortens it"
    )


_LATEST = float(2**53)  # beyond it a double no longer tells one unit from the next
_CERTAIN = 0.9  # of an average over a block that an average over all is not below


def _settings(workload: Workload, given: Parameters) -> dict[str, int]:
    for name in given:
        if name not in workload.defaults:
            raise WorkloadError(
                f"{workload.name} has no parameter {name!r}; it has {', '.join(workload.defaults)}"
            )
    settings = {**workload.defaults, **given}
    for name, parameter in workload.parameters.items():
        check_integer(WorkloadError, name, settings[name], parameter.lowest, parameter.highest)
    if settings.get("median", 0) >= settings.get("quartile", 1):
        raise WorkloadError(
            f"quartile {settings['quartile']} must exceed the median {settings['median']}"
        )
    if settings.get("idle", 0) > _MOST_GAPS * settings.get("mean", 1):
        raise WorkloadError(
            f"idle {settings['idle']} exceeds {_MOST_GAPS} times the mean {settings['mean']}: "
            "hardly any connection would ever end"
        )
    return settings


_MOST_GAPS = 8  # 3000 touches a connection
