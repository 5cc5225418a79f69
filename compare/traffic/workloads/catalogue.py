"""Named workloads: seeded traffic with the same rows on every machine.

A workload is an endless stream of *members*, each the life of a timer: a request with its timeout,
or a connection with its touches. Members come in blocks of BLOCK. A block is a pure function of
(seed, shard, block). It is computed from the raw 64-bit words of Philox, a counter-based generator
with the key (seed, shard) and the block in its counter. The computation only uses integers and the
functions of `compare.traffic.workloads.variates`.

Arrivals are Poisson, conditioned on BLOCK arrivals in the time span of each block.

>>> made = make("constant", timers=3, seed=1)
>>> (made.tape.deadline - made.tape.time).tolist(), made.id_space, made.unit
([30000, 30000, 30000], 3, 'ms')
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from compare.base.arguments import check_integer
from compare.traffic.tapes.tape import ARM, CANCEL, MAX_ROWS, Tape, id_space_of, joined
from compare.traffic.tapes.trace import MAX_SHARDS
from compare.traffic.tapes.units import EXPONENTS
from compare.traffic.workloads import models
from compare.traffic.workloads.generator import NEVER, Block, merge
from compare.traffic.workloads.stream import BLOCK, CHOICE, DELAY, GAP, LENGTH, Stream
from compare.traffic.workloads.variates import Floats, exp, log, normal
from timers.arrays import Int64s
from timers.errors import TimerError, unknown_name

MAX_IN_MEMORY = 10**8
"""Maximum number of members or operations of a tape in memory: 2.1 GB."""

LARGEST_SEED = 2**64 - 1


class WorkloadError(TimerError, ValueError):
    """A workload is unknown, or one of its numbers is out of range."""


class Made(NamedTuple):
    """A tape and the entries that a trace's manifest has for it."""

    tape: Tape
    id_space: int
    unit: str
    source: dict[str, Any]  # workload, parameters, seed, shard, and the timers or operations


Parameters = Mapping[str, int]


class Parameter(NamedTuple):
    """A parameter of a workload: its default, its meaning and its range."""

    default: int
    meaning: str
    lowest: int = 1
    highest: int = 10**15  # beyond it, sums of doubles would not be whole units


@dataclass(frozen=True)
class Workload:
    """A kind of traffic. `draw(stream, starts, parameters)` returns a block for these starts."""

    name: str
    summary: str
    unit: str
    parameters: Mapping[str, Parameter]
    draw: Callable[[Stream, Int64s, Parameters], Block]

    @property
    def defaults(self) -> Parameters:
        """The default of each parameter."""
        return {name: parameter.default for name, parameter in self.parameters.items()}


# ---- blocks


def _requests(starts: Int64s, timeout: int, latency: Floats) -> Block:
    """Each member starts a timeout, and cancels it if the answer comes in time."""
    # Clipped while it is a float: a latency may exceed every int64.
    delays = np.clip(latency, 1.0, float(timeout)).astype(np.int64)
    answered = np.flatnonzero(delays < timeout).astype(np.int32)
    ends = starts + delays
    return Block(starts, starts + timeout, ends, answered, ends[answered], CANCEL)


def _fire(starts: Int64s, delays: Int64s) -> Block:
    """Each member starts a timer, which fires."""
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


_QUARTILE = 0.674489750196081743  # the upper quartile of the standard normal distribution


def _lognormal(stream: Stream, starts: Int64s, parameters: Parameters) -> Block:
    median, quartile = (np.array([float(parameters[name])]) for name in ("median", "quartile"))
    sigma = log(quartile / median) / _QUARTILE
    latency = exp(log(median) + sigma * normal(stream.uniform(DELAY, starts.size)))
    return _requests(starts, parameters["timeout"], latency)


def _cancel_heavy(stream: Stream, starts: Int64s, parameters: Parameters) -> Block:
    timeout = parameters["timeout"]
    latency = -log(stream.uniform(DELAY, starts.size)) * float(parameters["mean"])
    # Every answer that is not lost comes in time.
    latency = np.minimum(latency, float(timeout - 1))
    is_lost = stream.uniform(CHOICE, starts.size) * 1000.0 < float(parameters["lost"])
    return _requests(starts, timeout, np.where(is_lost, float(timeout), latency))


def _keepalive(stream: Stream, starts: Int64s, parameters: Parameters) -> Block:
    idle, mean = parameters["idle"], parameters["mean"]
    # The gaps between touches are exponential; the first gap that exceeds `idle` ends the
    # connection. So the number of gaps before it is geometric, and each of them is an exponential
    # variate conditioned on being below `idle`.
    survives = exp(np.array([-idle / mean]))
    lengths = log(stream.uniform(LENGTH, starts.size)) / log(1.0 - survives)
    touches = lengths.astype(np.int64)
    within = 1.0 - stream.uniform(GAP, int(touches.sum())) * (1.0 - survives)
    elapsed = np.cumsum((-log(within) * float(mean)).astype(np.int64))
    elapsed = np.concatenate([[0], elapsed])  # by the number of gaps of the block
    last = np.cumsum(touches)
    begins = starts - elapsed[last - touches]  # when the first gap of the block would have begun
    member = np.repeat(np.arange(starts.size, dtype=np.int32), touches)
    time = begins[member] + elapsed[1:]
    return Block(starts, starts + idle, begins + elapsed[last] + idle, member, time, ARM, idle)


# ---- the workloads

_RATE = "average number of arrivals per second"
_TIMEOUT = "timeout of a request, in units"


def _latencies(median: int, quartile: int) -> dict[str, Parameter]:
    return {
        "rate": Parameter(100_000, _RATE),
        "timeout": Parameter(200_000, _TIMEOUT),
        "median": Parameter(median, "median response time, in units"),
        "quartile": Parameter(quartile, "upper quartile of the response time, in units"),
    }


_ALL = (
    Workload(
        "uniform",
        "timers that all fire, after uniform delays from 1 to longest",
        "ms",
        {
            "rate": Parameter(1000, _RATE),
            "longest": Parameter(60_000, "longest delay, in units"),
        },
        _uniform,
    ),
    Workload(
        "exponential",
        "timers that all fire, after exponential delays",
        "ms",
        {"rate": Parameter(1000, _RATE), "mean": Parameter(30_000, "average delay, in units")},
        _exponential,
    ),
    Workload(
        "constant",
        "timers that all fire, after the same delay",
        "ms",
        {"rate": Parameter(1000, _RATE), "delay": Parameter(30_000, "delay, in units")},
        _constant,
    ),
    Workload(
        "lognormal-low",
        "requests with log-normal latency, median 20 ms; 7.87 % time out at 200 ms",
        "us",
        _latencies(20_000, 60_000),
        _lognormal,
    ),
    Workload(
        "lognormal-high",
        "requests with log-normal latency, median 200 ms; half time out at 200 ms",
        "us",
        _latencies(200_000, 400_000),
        _lognormal,
    ),
    Workload(
        "keepalive",
        "connections with an idle timeout that every touch re-arms; touches are Poisson",
        "ms",
        {
            "rate": Parameter(100, "average number of connections opened per second"),
            "idle": Parameter(30_000, "idle timeout, in units"),
            "mean": Parameter(10_000, "average time between touches, in units"),
        },
        _keepalive,
    ),
    Workload(
        "cancel-heavy",
        "requests, 99 % of which are soon answered and their timeouts cancelled",
        "ms",
        {
            "rate": Parameter(10_000, _RATE),
            # With the minimum an answer can still come in time.
            "timeout": Parameter(30_000, _TIMEOUT, lowest=2),
            "mean": Parameter(50, "average response time, in units"),
            "lost": Parameter(10, "requests per thousand that are never answered", 0, 1000),
        },
        _cancel_heavy,
    ),
    Workload(
        "hold",
        "a constant number of timers: one starts whenever another one expires",
        "ms",
        {
            "rate": Parameter(1000, _RATE),
            "blocks": Parameter(4, f"timers pending, in multiples of {BLOCK}", highest=10**6),
        },
        models.hold,
    ),
    Workload(
        "markov",
        "timers that are re-armed or cancelled at random, with a new delay each time",
        "ms",
        {
            "rate": Parameter(1000, _RATE),
            "longest": Parameter(60_000, "longest delay, in units"),
            "rearmed": Parameter(500, "armings per thousand that are re-armed", 0, 990),
            "cancelled": Parameter(500, "others per thousand that are cancelled", 0, 1000),
        },
        models.markov,
    ),
    Workload(
        "up-down",
        "timers that pile up for a period and then all expire",
        "ms",
        {
            "rate": Parameter(1000, _RATE),
            "period": Parameter(20_000, "time in which they pile up, in units"),
            "drain": Parameter(1000, "time in which they expire, in units"),
        },
        models.up_down,
    ),
    Workload(
        "server",
        "connections with five timers: idle and keep-alive re-armed, pace always fires, "
        "request and deadline mostly cancelled",
        "ms",
        {
            "rate": Parameter(500, "average number of timers per second: five per connection"),
            "requests": Parameter(20, "average number of requests of a connection", highest=1000),
            "pause": Parameter(2000, "average time between requests, in units"),
            "latency": Parameter(50, "average response time, in units"),
            "lost": Parameter(10, "connections per thousand whose last request is lost", 0, 1000),
            "idle": Parameter(60_000, "idle timeout, in units"),
            "pace": Parameter(40, "delay of the pace timer, in units"),
            "timeout": Parameter(30_000, "timeout of a request, in units", lowest=2),
            "keep_alive": Parameter(15_000, "keep-alive timeout, in units"),
        },
        models.server,
    ),
    Workload(
        "cache",
        "entries with three times to live, some written again and some evicted",
        "ms",
        {
            "rate": Parameter(1000, _RATE),
            "ttl": Parameter(10_000, "shortest time to live, in units; others: 5, 60 times it"),
            "written": Parameter(200, "entries per thousand that are written again", 0, 990),
            "evicted": Parameter(100, "entries per thousand that are evicted", 0, 1000),
        },
        models.cache,
    ),
    Workload(
        "retries",
        "requests with a timeout, retried after failures with exponential backoff",
        "ms",
        {
            "rate": Parameter(1000, _RATE),
            "timeout": Parameter(5000, _TIMEOUT, lowest=2),
            "latency": Parameter(50, "average response time, in units"),
            "failed": Parameter(200, "attempts per thousand that fail", 0, 990),
            "backoff": Parameter(100, "average time before the first retry, in units"),
        },
        models.retries,
    ),
)

WORKLOADS: Mapping[str, Workload] = {workload.name: workload for workload in _ALL}
"""Name -> workload, in the order in which they are listed."""


def workload_named(name: str) -> Workload:
    """Return the workload with this name. Raises WorkloadError if there is none."""
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
    """Generate the first `timers` members of a workload with all their operations, or its first
    `operations` operations; give exactly one of the two.

    Ids are recycled, so `id_space` is the largest number of members pending at once; a recycled id
    begins with a start. The tape follows every rule of `compare.traffic.tapes.tape.validate`.
    About 0.2 s for 1e6 members, 42 bytes per operation. Raises WorkloadError for an unknown name
    or a number out of range.
    """
    plan = Plan.of(
        name,
        timers=timers,
        operations=operations,
        seed=seed,
        parameters=parameters,
        max_rows=MAX_IN_MEMORY,
    )
    check_integer(WorkloadError, "shard", shard, 0, LARGEST_SEED)
    tape = joined(list(plan.pieces(shard)))
    return Made(tape, id_space_of(tape), plan.workload.unit, plan.source | {"shard": shard})


@dataclass(frozen=True)
class Plan:
    """A workload with checked size and parameters. Any machine can generate any shard from it."""

    workload: Workload
    parameters: Parameters
    seed: int
    counted: str  # "timers" or "operations"
    amount: int  # of these, over all shards
    shards: int
    max_rows: int  # operations in a shard

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
        max_rows: int = MAX_ROWS,
    ) -> "Plan":
        """Return the plan for this number of timers or of operations.

        Raises WorkloadError for an unknown name or parameter, and for a number out of range.
        """
        workload = workload_named(name)
        settings = _settings(workload, parameters or {})
        check_integer(WorkloadError, "seed", seed, 0, LARGEST_SEED)
        check_integer(WorkloadError, "shards", shards, 1, MAX_SHARDS)
        if (timers is None) == (operations is None):
            raise WorkloadError(
                "a workload needs a number of timers or of operations, but not both"
            )
        counted, amount = ("timers", timers) if operations is None else ("operations", operations)
        label = counted if shards == 1 else f"{counted} of {shards} shards"
        check_integer(WorkloadError, label, amount, shards, shards * max_rows)
        plan = cls(workload, settings, seed, counted, amount or 0, shards, max_rows)
        plan.pieces()  # checks the size of the first shard; no shard is larger
        return plan

    @property
    def source(self) -> dict[str, Any]:
        """The entry `source` of the manifest."""
        return {
            "workload": self.workload.name,
            "parameters": dict(self.parameters),
            "seed": self.seed,
            **({"shard": 0} if self.shards == 1 else {"shards": self.shards}),
            self.counted: self.amount,
        }

    def share(self, shard: int) -> int:
        """Return the timers or operations of a shard; the first shards may have one more."""
        return self.amount // self.shards + (shard < self.amount % self.shards)

    @property
    def span(self) -> float:
        """The time in which the members of a block arrive, in units."""
        return float(BLOCK * 10 ** EXPONENTS[self.workload.unit]) / float(self.parameters["rate"])

    def block(self, shard: int, number: int, size: int = BLOCK) -> Block:
        """Return the first `size` members of a shard's block; no other block is needed."""
        stream = Stream(self.seed, shard, number)
        return self.workload.draw(stream, stream.arrivals(self.span)[:size], self.parameters)

    def pieces(self, shard: int = 0) -> Iterator[Tape]:
        """Yield a shard's tape in pieces of up to 2**20 operations.

        A shard is the traffic of one machine at the full rate of the workload. Its rows do not
        depend on the number of shards. O(operations) time; memory for the pending members. Raises
        WorkloadError if there are too many operations, or times are too late.
        """
        amount, are_timers = self.share(shard), self.counted == "timers"
        needed, possible = -(-amount // BLOCK), int(_LATEST / self.span)
        blocks = min(needed, possible)

        def block(number: int) -> Block:
            left = amount - number * BLOCK if are_timers else BLOCK
            return self.block(shard, number, min(left, BLOCK))

        def horizon(number: int) -> int:
            """No member of this block or a later one starts before this time."""
            return NEVER if are_timers and number == blocks else int(number * self.span)

        if are_timers and needed > possible:
            raise _too_long(self.workload)
        if are_timers and amount > BLOCK:
            # A little less than the average operations of a timer, from the first block.
            per_timer = 1 + len(block(0).times) / BLOCK
            self._check_rows(amount, _CERTAIN * amount * per_timer)
        merged = merge(block, horizon, blocks, None if are_timers else amount)
        return self._checked(merged, amount)

    def _checked(self, pieces: Iterable[Tape], amount: int) -> Iterator[Tape]:
        """Yield the pieces of a shard, and check the number of operations."""
        rows = 0
        for piece in pieces:
            rows += len(piece.time)
            self._check_rows(amount, rows)
            yield piece
        if self.counted == "operations" and rows < amount:
            raise _too_long(self.workload)

    def _check_rows(self, amount: int, rows: float) -> None:
        if rows > self.max_rows:
            raise WorkloadError(
                f"{amount} timers of {self.workload.name} have more than {self.max_rows}"
                " operations; ask for fewer, or for more shards"
            )


def _too_long(workload: Workload) -> WorkloadError:
    return WorkloadError(
        f"{workload.name} would last longer than 2**53 {workload.unit}; increase the rate"
    )


_LATEST = float(2**53)  # beyond it, doubles cannot represent every unit
_CERTAIN = 0.9  # the average over all blocks is not below this share of the average over one


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
            f"quartile {settings['quartile']} must exceed median {settings['median']}"
        )
    if settings.get("idle", 0) > _MAX_GAPS * settings.get("mean", settings.get("idle", 0)):
        raise WorkloadError(
            f"idle {settings['idle']} exceeds {_MAX_GAPS} times the mean {settings['mean']}:"
            " hardly any connection would ever end"
        )
    return settings


_MAX_GAPS = 8  # 3000 touches per connection
