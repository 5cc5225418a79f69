"""Named traffic to compare timers on: seeded, and the same rows on every machine.

A workload is an endless stream of *members*, each a timer's life: a request with its timeout, a connection with its
touches. Members come in blocks of BLOCK, and a block is a pure function of (seed, shard, block), whoever makes it, in
whatever order: the raw 64-bit stream of Philox, a counter-based generator, with (seed, shard) as its key and the block
in its counter. What is made of that stream uses integers and +, -, *, / and square roots of doubles alone, which IEEE
754 rounds in one way everywhere; logarithms and exponentials of the C library and of NumPy differ between machines in
the last bit, so the few that are needed stand below.

Arrivals are Poisson, conditioned on BLOCK arrivals in each block's span of time.

>>> made = make("constant", timers=3, seed=1)
>>> (made.tape.deadline - made.tape.time).tolist(), made.id_space, made.unit
([30000, 30000, 30000], 3, 'ms')
"""
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from compare.tape import ARM, CANCEL, START, Tape
from timers.errors import TimerError
from timers.kernels.jit import entry

BLOCK = 1 << 12
"""Members of a block: enough for NumPy to be quick, few enough that a block of busy connections fits in memory."""

MOST = 10**8
"""The most members or operations of one tape: 2.1 GB of it."""

LARGEST_SEED = 2**64 - 1

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]

PER_SECOND = {"us": 10**6, "ms": 10**3}
"""Units in a second."""


class WorkloadError(TimerError, ValueError):
    """An unknown workload, or one asked for with a number that makes no sense."""


class Made(NamedTuple):
    """A tape and what a trace's manifest says of it."""

    tape: Tape
    id_space: int
    unit: str
    source: dict[str, Any]  # workload, parameters, seed, shard, and what was asked for: timers or operations


class Events(NamedTuple):
    """The operations of one block's members, in no particular order; arrays of one length."""

    time: Int64s
    op: npt.NDArray[np.int8]
    member: Int64s  # counted from the first block on
    deadline: Int64s
    step: Int64s  # of the member, from 0: its operations at one time stay in this order
    ends: Int64s  # when the member is over and its id free, the same in each of its operations; not before any of them


class Stream:
    """Variates of one block: a pure function of (seed, shard, block, purpose), rows of one purpose in order."""

    def __init__(self, seed: int, shard: int, block: int) -> None:
        self._key, self._block = np.array([seed, shard], np.uint64), block

    def raw(self, purpose: int, size: int) -> npt.NDArray[np.uint64]:
        """The generator's own 64-bit words."""
        # The lowest word of the counter counts within the stream; the others say which stream it is.
        counter = np.array([0, self._block, purpose, 0], np.uint64)
        return np.random.Philox(key=self._key, counter=counter).random_raw(size)

    def uniform(self, purpose: int, size: int) -> Floats:
        """Doubles in the open interval (0, 1), multiples of 2**-53."""
        # 52 random bits and a half: exact, where 53 and a half would round to 1.
        return np.asarray(((self.raw(purpose, size) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52)


ARRIVAL, DELAY, CHOICE, LENGTH, GAP = range(5)
"""Purposes of streams."""

Parameters = Mapping[str, int]
Draw = Callable[[Stream, Int64s, Int64s, Parameters], Events]


@dataclass(frozen=True)
class Workload:
    """A kind of traffic. `draw(stream, members, starts, parameters)` makes a block's operations."""

    name: str
    summary: str
    unit: str
    defaults: Parameters
    meaning: Mapping[str, str]  # of each parameter
    draw: Draw


# ---- mathematics of + - * / and sqrt ------------------------------------------------------------------------------

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # their sum is ln 2; fdlibm
_SQRT_HALF = 0.7071067811865476
_TERMS_OF_LOG = 12  # of the series of atanh up to 0.1716: the next is below 1e-19
_TERMS_OF_EXP = 14  # of the Taylor series up to ln(2)/2: the next is below 1e-17


def log(x: Floats) -> Floats:
    """Natural logarithm of positive doubles, to within 4e-16 of its value (or of 1e-16 near 1)."""
    mantissa, exponent = np.frexp(x)
    low = mantissa < _SQRT_HALF
    mantissa, exponent = np.where(low, 2.0 * mantissa, mantissa), exponent - low
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square, series = s * s, np.zeros_like(s)
    for k in range(_TERMS_OF_LOG - 1, -1, -1):
        series = series * square + 1.0 / (2 * k + 1)
    return np.asarray(exponent * _LN2_HIGH + (2.0 * s * series + exponent * _LN2_LOW))


def exp(x: Floats) -> Floats:
    """Exponential of doubles in (-700, 700), to within 5e-16 of its value."""
    halvings = np.rint(x / (_LN2_HIGH + _LN2_LOW))
    rest = (x - halvings * _LN2_HIGH) - halvings * _LN2_LOW
    series = np.ones_like(rest)
    for k in range(_TERMS_OF_EXP, 0, -1):
        series = series * rest / k + 1.0
    return np.asarray(np.ldexp(series, halvings.astype(np.int64)))


def normal(u: Floats) -> Floats:
    """The standard normal variate below which a share `u` in (0, 1) lies, to within about 1e-15.

    Wichura, Algorithm AS 241 (PPND16), Applied Statistics 37 (1988).
    """
    q = u - 0.5
    tail = np.sqrt(-log(np.minimum(u, 1.0 - u)))
    far = np.where(tail <= 5.0, _ratio(tail - 1.6, _MIDDLE), _ratio(tail - 5.0, _TAIL))
    near = q * _ratio(0.180625 - q * q, _CENTRE)
    return np.where(np.abs(q) <= 0.425, near, np.where(q < 0.0, -far, far))


def _ratio(r: Floats, polynomials: tuple[tuple[float, ...], tuple[float, ...]]) -> Floats:
    above, below = (_horner(r, coefficients) for coefficients in polynomials)
    return np.asarray(above / below)


def _horner(r: Floats, coefficients: tuple[float, ...]) -> Floats:
    value = np.full_like(r, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * r + coefficient
    return value


# fmt: off
_CENTRE = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
     4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
)
_MIDDLE = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
     1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
)
_TAIL = (
    (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
     2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15),
)
# fmt: on
_QUARTILE = 0.674489750196081743  # the standard normal variate below which three quarters lie


# ---- the workloads ------------------------------------------------------------------------------------------------


def _timers(members: Int64s, starts: Int64s, deadlines: Int64s) -> Events:
    """One timer for each member, never cancelled."""
    return Events(starts, np.full(starts.size, START, np.int8), members, deadlines, np.zeros_like(starts), deadlines)


def _requests(members: Int64s, starts: Int64s, timeout: int, latency: Floats) -> Events:
    """A timeout for each member, cancelled by its answer after `latency` (at least a unit), if that comes in time."""
    # Clipped while still a float: a latency beyond int64 is one that never comes.
    answers = starts + np.minimum(np.maximum(np.floor(latency), 1.0), float(timeout)).astype(np.int64)
    deadlines = starts + timeout
    ends = np.minimum(answers, deadlines)
    in_time = np.flatnonzero(answers < deadlines)
    cancels = in_time.size
    return Events(
        np.concatenate([starts, answers[in_time]]),
        np.concatenate([np.full(starts.size, START, np.int8), np.full(cancels, CANCEL, np.int8)]),
        np.concatenate([members, members[in_time]]),
        np.concatenate([deadlines, np.zeros(cancels, np.int64)]),
        np.concatenate([np.zeros_like(starts), np.ones(cancels, np.int64)]),
        np.concatenate([ends, ends[in_time]]),
    )


def _uniform(stream: Stream, members: Int64s, starts: Int64s, parameters: Parameters) -> Events:
    u = stream.uniform(DELAY, starts.size)
    return _timers(members, starts, starts + 1 + np.floor(u * float(parameters["longest"])).astype(np.int64))


def _exponential(stream: Stream, members: Int64s, starts: Int64s, parameters: Parameters) -> Events:
    delays = -log(stream.uniform(DELAY, starts.size)) * float(parameters["mean"])
    return _timers(members, starts, starts + 1 + np.floor(delays).astype(np.int64))


def _constant(stream: Stream, members: Int64s, starts: Int64s, parameters: Parameters) -> Events:
    return _timers(members, starts, starts + parameters["delay"])


def _lognormal(stream: Stream, members: Int64s, starts: Int64s, parameters: Parameters) -> Events:
    median, quartile = (np.array([float(parameters[name])]) for name in ("median", "quartile"))
    sigma = log(quartile / median) / _QUARTILE
    latency = exp(log(median) + sigma * normal(stream.uniform(DELAY, starts.size)))
    return _requests(members, starts, parameters["timeout"], latency)


def _cancel_heavy(stream: Stream, members: Int64s, starts: Int64s, parameters: Parameters) -> Events:
    timeout = parameters["timeout"]
    # An answer that is to come does so in time.
    latency = np.minimum(-log(stream.uniform(DELAY, starts.size)) * float(parameters["mean"]), float(timeout - 1))
    is_lost = stream.uniform(CHOICE, starts.size) * 1000.0 < float(parameters["lost"])
    return _requests(members, starts, timeout, np.where(is_lost, float(timeout), latency))


def _keepalive(stream: Stream, members: Int64s, starts: Int64s, parameters: Parameters) -> Events:
    idle, mean = parameters["idle"], parameters["mean"]
    # Touches follow each other after exponential gaps; the first gap that exceeds `idle` ends the connection. So the
    # number of gaps before it is geometric, and each of them an exponential variate given that it is below `idle`.
    survives = exp(np.array([-idle / mean]))
    touches = np.floor(log(stream.uniform(LENGTH, starts.size)) / log(1.0 - survives)).astype(np.int64)
    within = 1.0 - stream.uniform(GAP, int(touches.sum())) * (1.0 - survives)
    gaps = np.floor(-log(within) * float(mean)).astype(np.int64)
    first = np.cumsum(touches + 1) - (touches + 1)  # each member's first operation, its start
    owner = np.repeat(np.arange(starts.size), touches + 1)
    since = np.zeros(owner.size, np.int64)  # the start, or the touch before
    since[np.setdiff1d(np.arange(owner.size), first, assume_unique=True)] = gaps
    elapsed = np.cumsum(since)
    time = starts[owner] + elapsed - elapsed[first][owner]
    op = np.full(owner.size, ARM, np.int8)
    op[first] = START
    step = np.arange(owner.size) - first[owner]
    ends = time[np.append(first[1:], owner.size) - 1] + idle
    return Events(time, op, members[owner], time + idle, step, ends[owner])


_RATE = "arrivals in a second, on average"
_TIMEOUT = "units after which a request without an answer times out"
_PROPORTION = {"median": "units within which half of the answers come", "quartile": "... three quarters"}

WORKLOADS: Mapping[str, Workload] = {
    workload.name: workload
    for workload in (
        Workload(
            "uniform",
            "timers that all fire, after delays uniform in 1 .. longest",
            "ms",
            {"rate": 1000, "longest": 60_000},
            {"rate": _RATE, "longest": "units of the longest delay"},
            _uniform,
        ),
        Workload(
            "exponential",
            "timers that all fire, after exponential delays",
            "ms",
            {"rate": 1000, "mean": 30_000},
            {"rate": _RATE, "mean": "units of the average delay"},
            _exponential,
        ),
        Workload(
            "constant",
            "timers that all fire, after one delay for all",
            "ms",
            {"rate": 1000, "delay": 30_000},
            {"rate": _RATE, "delay": "units of every delay"},
            _constant,
        ),
        Workload(
            "lognormal-low",
            "requests of log-normal latency, median 20 ms, of which 7.87 % time out at 200 ms",
            "us",
            {"rate": 100_000, "timeout": 200_000, "median": 20_000, "quartile": 60_000},
            {"rate": _RATE, "timeout": _TIMEOUT, **_PROPORTION},
            _lognormal,
        ),
        Workload(
            "lognormal-high",
            "requests of log-normal latency, median 200 ms, of which half time out at 200 ms",
            "us",
            {"rate": 100_000, "timeout": 200_000, "median": 200_000, "quartile": 400_000},
            {"rate": _RATE, "timeout": _TIMEOUT, **_PROPORTION},
            _lognormal,
        ),
        Workload(
            "keepalive",
            "connections whose idle timeout every touch re-arms; touches are Poisson",
            "ms",
            {"rate": 100, "idle": 30_000, "mean": 10_000},
            {
                "rate": "connections opened in a second, on average",
                "idle": "units without a touch that end a connection",
                "mean": "units between two touches, on average",
            },
            _keepalive,
        ),
        Workload(
            "cancel-heavy",
            "requests of which 99 % are answered, soon, and their timeouts cancelled",
            "ms",
            {"rate": 10_000, "timeout": 30_000, "mean": 50, "lost": 10},
            {"rate": _RATE, "timeout": _TIMEOUT, "mean": "units of the average latency",
             "lost": "requests of a thousand that are never answered"},
            _cancel_heavy,
        ),
    )
}  # fmt: skip
"""Name -> workload, in the order of listings."""


def workload_named(name: str) -> Workload:
    """The workload of this name; raises WorkloadError naming what exists."""
    if name not in WORKLOADS:
        raise WorkloadError(f"no workload is called {name!r}; there are {', '.join(WORKLOADS)}")
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
    """The first `timers` members of a workload with all their operations, or its first `operations` operations.

    Exactly one of the two is given. Ids are recycled, so that `id_space` is the largest number of members under way at
    once; a recycled id begins with a start. The tape keeps every rule of `compare.tape.validate`. About 0.5 s for 1e6
    members. Raises WorkloadError for an unknown name or a number out of range.
    """
    workload = workload_named(name)
    settings = _settings(workload, parameters or {})
    _check("seed", seed, 0, LARGEST_SEED)
    _check("shard", shard, 0, LARGEST_SEED)
    if (timers is None) == (operations is None):
        raise WorkloadError("a workload is made for a number of timers or of operations: give one of the two")
    asked = {"timers": timers} if timers is not None else {"operations": operations}
    for what, number in asked.items():
        _check(what, number, 1, MOST)
    events = (
        _first_members(workload, settings, seed, shard, timers)
        if timers is not None
        else _first_operations(workload, settings, seed, shard, operations or 0)
    )
    tape, id_space = _tape_of(events, len(events.time) if operations is None else operations)
    source = {"workload": name, "parameters": settings, "seed": seed, "shard": shard, **asked}
    return Made(tape, id_space, workload.unit, source)


def block_events(workload: Workload, parameters: Parameters, seed: int, shard: int, block: int, size: int) -> Events:
    """The operations of a block's first `size` members: a pure function of its arguments."""
    stream = Stream(seed, shard, block)
    arrivals = np.sort(stream.uniform(ARRIVAL, BLOCK))[:size]
    span = _span(workload, parameters)
    if (block + 1) * span > float(2**53):
        raise WorkloadError(f"{workload.name} would last longer than 2**53 {workload.unit}; a greater rate shortens it")
    starts = np.floor((float(block) + arrivals) * span).astype(np.int64)
    members = np.arange(size, dtype=np.int64) + block * BLOCK
    return workload.draw(stream, members, starts, parameters)


def digest(tape: Tape) -> str:
    """SHA-256 of a tape's rows, the same on every machine; not of any file's bytes."""
    result = hashlib.sha256()
    for column in tape:
        result.update(column.astype(column.dtype.newbyteorder("<")).tobytes())
    return result.hexdigest()


def _span(workload: Workload, parameters: Parameters) -> float:
    """Units in which a block's members arrive."""
    return float(BLOCK * PER_SECOND[workload.unit]) / float(parameters["rate"])


def _first_members(workload: Workload, parameters: Parameters, seed: int, shard: int, count: int) -> Events:
    parts: list[Events] = []
    operations = 0
    for block in range(-(-count // BLOCK)):
        size = min(BLOCK, count - block * BLOCK)
        parts.append(block_events(workload, parameters, seed, shard, block, size))
        operations += parts[-1].time.size
        if operations > MOST:
            raise WorkloadError(f"{count} timers of {workload.name} have more than {MOST} operations; ask for fewer")
    return _join(parts)


def _first_operations(workload: Workload, parameters: Parameters, seed: int, shard: int, count: int) -> Events:
    """At least the first `count` operations of the endless stream, in no particular order."""
    parts: list[Events] = []
    span = _span(workload, parameters)
    known = 0  # operations before `horizon`, the next block's first moment: nothing can precede them any more
    later: list[Int64s] = []  # times of the others
    while known < count:
        parts.append(block_events(workload, parameters, seed, shard, len(parts), BLOCK))
        horizon = len(parts) * span
        times = np.concatenate([*later, parts[-1].time])
        known += int(np.count_nonzero(times < horizon))
        later = [times[times >= horizon]]
    return _join(parts)


def _join(parts: list[Events]) -> Events:
    return Events(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _tape_of(events: Events, count: int) -> tuple[Tape, int]:
    """The first `count` operations in order, with ids; at one time members take their turns as they arrived."""
    order = np.lexsort((events.step, events.member, events.time))[:count]
    time, op, deadline = events.time[order], events.op[order], events.deadline[order]
    member, step, ends = events.member[order], events.step[order], events.ends[order]
    ids = np.empty(time.size, np.int32)
    starting = np.flatnonzero(step == 0)
    # Members in the order in which they end; the one that has ended first leaves its id to the next that starts.
    leaving = np.argsort(ends[starting], kind="stable")
    id_of = np.zeros(int(member.max()) + 1 if member.size else 0, np.int32)
    id_space = assign_ids(time, member, step, ends[starting][leaving], member[starting][leaving], id_of,
                          np.zeros(starting.size, np.int32), ids)  # fmt: skip
    return Tape(time, op, ids, deadline), int(id_space)


@entry
def assign_ids(  # type: ignore[no-untyped-def]  # noqa: ANN201  # compiled code is typed by its arguments
    time, member, step, ends, leavers, id_of, free, ids  # noqa: ANN001
):
    """Fill `ids`: a member takes the id that was freed last, or a new one; returns how many there are.

    An id is free after the moment in which its member ends: only then has every operation on it been seen, and
    every exact timer fired. `leavers` are the members in the order of `ends`; `free` is room for a stack.
    """
    top = left = id_space = 0
    for k in range(time.size):
        while left < ends.size and ends[left] < time[k]:
            free[top] = id_of[leavers[left]]
            top += 1
            left += 1
        m = member[k]
        if step[k] == 0:
            if top > 0:
                top -= 1
                id_of[m] = free[top]
            else:
                id_of[m] = id_space
                id_space += 1
        ids[k] = id_of[m]
    return id_space


def _settings(workload: Workload, given: Parameters) -> dict[str, int]:
    for name in given:
        if name not in workload.defaults:
            raise WorkloadError(f"{workload.name} has no parameter {name!r}; it has {', '.join(workload.defaults)}")
    settings = {**workload.defaults, **given}
    for name, value in settings.items():
        if name == "lost":
            _check(name, value, 0, 1000)
        else:
            _check(name, value, 1, _LARGEST_SETTING)
    if settings.get("median", 0) >= settings.get("quartile", 1):
        raise WorkloadError(f"quartile {settings['quartile']} must exceed the median {settings['median']}")
    if settings.get("idle", 0) > _MOST_GAPS * settings.get("mean", 1):
        raise WorkloadError(f"idle {settings['idle']} exceeds {_MOST_GAPS} times the mean {settings['mean']}: "
                            "hardly any connection would ever end")  # fmt: skip
    if workload.name == "cancel-heavy" and settings["timeout"] < _SHORTEST_TIMEOUT:
        timeout = settings["timeout"]
        raise WorkloadError(f"timeout {timeout} leaves no time for an answer; the least is {_SHORTEST_TIMEOUT}")
    return settings


_LARGEST_SETTING = 10**15  # beyond it sums of a double's precision would no longer be whole units
_MOST_GAPS = 8  # 3000 touches a connection
_SHORTEST_TIMEOUT = 2


def _check(name: str, value: Any, lowest: int, highest: int) -> None:
    if type(value) is not int:
        raise WorkloadError(f"{name} must be an integer, not {value!r:.40}")
    if not lowest <= value <= highest:
        raise WorkloadError(f"{name} must lie in [{lowest}, {highest}], not {value}")
