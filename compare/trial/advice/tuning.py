"""What a setting of a wheel costs: its wake-ups, and the work that is done before anything is due.

A wheel with rounds (Netty, Agrona) wakes up in each tick, and looks at every timer of a slot: at
one that is due in k rotations k times before it fires, unless it is cancelled before. Wheels of
growing ticks (Kafka, tokio) wake up where a slot has timers or, in Kafka, had some, and move each
timer down until it is in the lowest wheel. So both are counted from the traffic and from two
numbers, the tick and the slots. The tests count the same in replays through the project's timers.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from compare.trial.advice.model import UNITS
from compare.trial.bench.steady import FEW, IN_TIME, PERIODIC, RANDOM, TIMEOUTS, Traffic
from timers.rounding import Direction, Rounding

ROUNDS, LEVELS = "rounds", "levels"
"""The kinds of wheels: one with rounds, or several of growing ticks."""

PARTS = 40
"""Equal parts into which the random delays of traffic are divided."""

MANY = 1_000
"""Rotations above which they are not counted one by one."""


class Work(NamedTuple):
    """What a wheel does in a second."""

    wakeups: float
    visits: float  #: timers that are looked at before they are due
    moves: float  #: timers that are moved to a lower wheel


@dataclass(frozen=True)
class Setting:
    """A parameter by the name that its library gives to it."""

    name: str  #: of the library
    default: int  #: of the library
    powers: bool = False  #: whether it is a power of two


@dataclass(frozen=True)
class Family:
    """A timer with parameters: those of this project, and of other libraries by their own names."""

    name: str
    title: str
    kind: str  #: ROUNDS or LEVELS
    rounding: Direction
    code: str  #: that makes it, with {tick} and {slots}
    tick: Setting | None = None  #: in ms; None: 1 ms
    slots: Setting | None = None  #: of a wheel; None: FIXED
    peer: str = ""  #: whose figures are used where they are stored
    measured_slots: int = 0  #: of the peer, whose tick is 1 ms
    per_slot: int = 0  #: bytes for each slot, by the fields of its class; 0: unknown
    always: bool = False  #: whether it wakes up in each tick, or only where there is something
    lingers: bool = False  #: whether a slot whose timers were all cancelled wakes it up
    timer: str = ""  #: the name of the timer of this project

    def lateness(self, tick: int) -> tuple[int, int]:
        """The least and the greatest lateness in ms."""
        return Rounding(self.rounding, tick).bounds()


FIXED = 64
"""Slots of a wheel of tokio, where they cannot be set."""

FAMILIES: Mapping[str, Family] = {
    each.name: each
    for each in (
        Family(
            "netty",
            "Netty, HashedWheelTimer",
            ROUNDS,
            "up",
            "new HashedWheelTimer({tick}, TimeUnit.MILLISECONDS, {slots})",
            Setting("tickDuration", 100),
            Setting("ticksPerWheel", 512, powers=True),
            peer="java-netty",
            measured_slots=4_096,
            per_slot=28,  # a bucket with two references, and one to it
            always=True,
        ),
        Family(
            "kafka",
            "Kafka, SystemTimer",
            LEVELS,
            "down",
            'new SystemTimer("name", {tick}, {slots}, Time.SYSTEM.hiResClockMs())',
            Setting("tickMs", 1),
            Setting("wheelSize", 20),
            peer="java-kafka",
            measured_slots=20,
            lingers=True,
        ),
        Family(
            "agrona",
            "Agrona, DeadlineTimerWheel",
            ROUNDS,
            "up",
            "new DeadlineTimerWheel(TimeUnit.MILLISECONDS, startTime, {tick}, {slots})",
            Setting("tickResolution", 8, powers=True),
            Setting("ticksPerWheel", 512, powers=True),
            peer="java-agrona",
            measured_slots=4_096,
            per_slot=128,  # 16 deadlines, its initial tickAllocation
            always=True,
        ),
        Family(
            "tokio",
            "tokio, tokio::time",
            LEVELS,
            "up",
            "// nothing to set: 6 wheels of 64 slots, the lowest of 1 ms",
            peer="rust-tokio",
            measured_slots=FIXED,
        ),
        Family(
            "hashed-wheel",
            "hashed-wheel of this project",
            ROUNDS,
            "up",
            "timers.HashedWheel(tick={tick}, wheel_size={slots})",
            Setting("tick", 100),
            Setting("wheel_size", 512),
            timer="hashed-wheel",
        ),
        Family(
            "hierarchical-wheel",
            "hierarchical-wheel of this project",
            LEVELS,
            "down",
            "timers.HierarchicalWheel(tick={tick}, wheel_size={slots})",
            Setting("tick", 1),
            Setting("wheel_size", 20),
            lingers=True,
            timer="hierarchical-wheel",
        ),
        Family(
            "simple-wheel",
            "simple-wheel of this project",
            ROUNDS,
            "exact",
            "timers.SimpleWheel(wheel_size={slots})",
            slots=Setting("wheel_size", 512),
            timer="simple-wheel",
        ),
    )
}
"""The timers that have parameters, by name. To tune another one, add a row."""


def work(family: Family, traffic: Traffic, tick: float, slots: int) -> Work:
    """What a wheel with this tick, in ms, and so many slots does in a second of the traffic."""
    return (_rounds if family.kind == ROUNDS else _levels)(family, traffic, tick, slots)


def idle(traffic: Traffic) -> Traffic:
    """The traffic of as many pending timers while nobody calls, so that all of them fire."""
    return Traffic(
        1_000 * traffic.pending / traffic.timeout, traffic.timeout, 0.0, 0.0, traffic.kind
    )


LONGEST: Mapping[str, float] = {RANDOM: 2.0, PERIODIC: 1.5 * math.log(3), FEW: max(TIMEOUTS)}
"""Kind of traffic -> the longest delay as a multiple of the mean; of others, all are equal."""


def longest(traffic: Traffic) -> float:
    """The longest delay in ms."""
    return LONGEST.get(traffic.kind, 1.0) * traffic.timeout


def _delays(traffic: Traffic) -> Iterator[tuple[float, float]]:
    """Delays and their shares."""
    mean, places = traffic.timeout, [(k + 0.5) / PARTS for k in range(PARTS)]
    if traffic.kind == RANDOM:
        return ((2 * mean * place, 1 / PARTS) for place in places)
    if traffic.kind == PERIODIC:  # as in steady
        return ((mean * math.log(3) * (0.5 + place), 1 / PARTS) for place in places)
    if traffic.kind == FEW:
        return ((mean * each, 1 / len(TIMEOUTS)) for each in TIMEOUTS)
    return iter([(mean, 1.0)])


def _alive(traffic: Traffic, delay: float, age: float) -> float:
    """The share of the timers that are pending at this age, below their delay."""
    answered, latest = max(traffic.answer, 1e-9), IN_TIME * delay
    age, left = max(age, 0.0), 0.0
    if age < latest:  # an answer that comes after `latest` is drawn again
        left = math.exp(-age / answered) - math.exp(-latest / answered) * age / latest
    return 1 - traffic.cancelled + traffic.cancelled * max(left, 0.0)


def _rounds(family: Family, traffic: Traffic, tick: float, slots: int) -> Work:
    rotation, clock = tick * slots, UNITS / tick
    visits = 0.0
    for delay, share in _delays(traffic):
        turns = math.floor(delay / rotation)
        if turns > MANY:
            life = traffic.cancelled * traffic.answer + (1 - traffic.cancelled) * delay
            seen = life / rotation
        else:
            ages = (delay - k * rotation for k in range(1, turns + 1))
            seen = sum(_alive(traffic, delay, age) for age in ages)
        visits += share * seen
    visits *= traffic.rate
    if family.always:
        return Work(clock, visits, 0.0)
    events = visits + traffic.rate * (1 - traffic.cancelled)
    return Work(clock * -math.expm1(-events / clock), visits, 0.0)


def _levels(family: Family, traffic: Traffic, tick: float, slots: int) -> Work:
    arrivals, moves = dict[int, float](), 0.0
    for delay, share in _delays(traffic):
        top = 0
        while delay >= tick * slots ** (top + 1):
            top += 1
        left = [0.0] * (top + 1)  # timers that come to each wheel in a second
        left[top] = traffic.rate * share
        for level in range(top, -1, -1):
            width = tick * slots**level
            stays = (
                left[level]
                if level < top
                else left[top] * _alive(traffic, delay, delay - width / 2)
            )
            arrivals[level] = arrivals.get(level, 0.0) + (left[level] if family.lingers else stays)
            if level:
                moves += stays
                for lower in range(level):  # what is left of the delay is anything below a width
                    first = slots**lower if lower else 1
                    left[lower] += stays * (slots ** (lower + 1) - first) / slots**level
    wakeups = 0.0
    for level, timers in arrivals.items():
        clock = UNITS / (tick * slots**level)
        wakeups += clock * -math.expm1(-timers / clock)
    return Work(wakeups, 0.0, moves)


class Tuned(NamedTuple):
    """A setting of a family."""

    tick: int
    slots: int


def default(family: Family) -> Tuned:
    """The setting that a library has if nothing is set."""
    return Tuned(
        family.tick.default if family.tick else 1,
        family.slots.default if family.slots else FIXED,
    )


def recommended(family: Family, traffic: Traffic, off: float, most: int = 1 << 20) -> Tuned:
    """The longest tick of a series that may be `off` by so many ms, and slots for all delays.

    Then no timer is looked at, or moved, before it is due, and there are few wake-ups.
    """
    tick = 1
    if family.tick:
        steps = [1 << k for k in range(31)] if family.tick.powers else list(_series())
        allowed = off + 1 if family.rounding == "down" else off
        tick = max([each for each in steps if each <= max(allowed, 1)])
    if not family.slots:
        return Tuned(tick, FIXED)
    slots = 8
    while slots * tick <= longest(traffic) and slots < most:
        slots *= 2
    return Tuned(tick, slots)


def _series() -> Iterator[int]:
    return (digit * 10**power for power in range(9) for digit in (1, 2, 5))
