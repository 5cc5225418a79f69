"""Claims about precision: how late or early Netty's and Kafka's wheels fire, and our own."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from compare.traffic.tapes.tape import START, Tape, id_space_of
from compare.traffic.workloads.stream import DELAY, Stream
from compare.trial.claims.base import (
    HOLDS,
    ONLY_WHEN,
    WRONG,
    Experiment,
    Figures,
    Verdict,
    figures,
    listed,
    number,
    of_peer,
    rule,
)
from compare.trial.peers.run import Peer
from compare.trial.replay.contestant import contestant
from compare.trial.replay.engine import replay
from compare.trial.replay.lateness import Lateness
from compare.trial.results.schema import Row

NETTY, NETTY_BURST, HASHED = "java-netty", "java-netty, burst", "hashed-wheel"
KAFKA, HIERARCHICAL = "java-kafka", "hierarchical-wheel"
SIZES = (8, 64, 512)
TICK = 10
TICKS = (1, 10, 200)
BURST = 250_000
"""Timers that arrive within one tick; Netty's worker files 100 000 in a tick."""
_LONGEST = 10_000  # units: two rotations of the largest wheel, 125 of the smallest


def starts(times: np.ndarray, delays: np.ndarray) -> Tape:
    """A tape that starts timers, and cancels none."""
    n = len(times)
    ops = np.full(n, START, np.int8)
    return Tape(times.astype(np.int64), ops, np.arange(n, dtype=np.int32), times + delays)


def uniform(n: int, longest: int, seed: int = 0) -> np.ndarray:
    """Uniform delays from 1 to a longest, the same on every machine."""
    return 1 + np.floor(Stream(seed, n, 0).uniform(DELAY, n) * longest).astype(np.int64)


def steady(n: int) -> Tape:
    """A timer in each unit of time, so that the clock moves unit by unit."""
    return starts(np.arange(n, dtype=np.int64), uniform(n, _LONGEST))


def _late(name: str, late: Lateness, size: int) -> Iterator[Row]:
    ends = {"lateness_min": late.min, "lateness_median": late.median, "lateness_max": late.max}
    yield from figures(name, size, **ends)


def own_lateness(label: str, tape: Tape) -> Lateness:
    """The lateness of a timer of the project."""
    return replay(contestant(label).new("unit"), tape, id_space_of(tape)).outcome.lateness


def peer_lateness(peer: Peer, tape: Tape) -> Lateness:
    """The lateness of a peer."""
    rows = peer.check(tape, id_space_of(tape))
    armed = rows.operation
    return Lateness.of(rows.clock - np.maximum(tape.deadline[armed], tape.time[armed]))


def _peer_late(tape: Tape, name: str, size: int, peer: Peer) -> Iterator[Row]:
    yield from _late(name, peer_lateness(peer, tape), size)


def _sizes(quick: bool) -> Iterator[Row]:
    tape = steady(1_000 if quick else 5_000)
    for size in SIZES:
        own = f"{HASHED}/tick={TICK}/wheel-size={size}"
        yield from _late(HASHED, own_lateness(own, tape), size)
        of_size = partial(_peer_late, tape, NETTY, size)
        yield from of_peer(NETTY, of_size, tick=TICK, wheel_size=size)
    burst = starts(np.zeros(BURST, np.int64), 1 + np.arange(BURST) % TICK)
    size = SIZES[-1]
    of_burst = partial(_peer_late, burst, NETTY_BURST, size)
    yield from of_peer(NETTY, of_burst, tick=TICK, wheel_size=size)


def _ticks(quick: bool) -> Iterator[Row]:
    tape = steady(1_000 if quick else 5_000)
    for tick in TICKS:
        yield from _late(HIERARCHICAL, own_lateness(f"{HIERARCHICAL}/tick={tick}", tape), tick)
        yield from of_peer(KAFKA, partial(_peer_late, tape, KAFKA, tick), tick=tick)


WHEEL_SIZES = Experiment(
    "lateness by wheel size",
    f"The lateness of Netty's HashedWheelTimer and of `{HASHED}`, in units, with a tick of {TICK} "
    "units: a timer in each unit, with delays of up to 10,000. In the burst, "
    f"{BURST:,} timers arrive within a tick.",
    _sizes,
    "slots",
)
KAFKA_TICKS = Experiment(
    "lateness by tick",
    f"The lateness of Kafka's TimingWheel and of `{HIERARCHICAL}`, in units; negative is early.",
    _ticks,
    "tick",
)


@rule(
    "Holds if the lateness reaches half a rotation at each size of the wheel; holds only for "
    "bursts if it does so in the burst alone; wrong otherwise."
)
def rotation_late(found: Figures) -> Verdict:
    """Claim 1."""
    late = {size: found.value(NETTY, "lateness_max", size) for size in SIZES}
    late_own = {size: found.value(HASHED, "lateness_max", size) for size in SIZES}
    burst, largest = found.value(NETTY_BURST, "lateness_max", SIZES[-1]), SIZES[-1]
    worst = {size: max(late[size], late_own[size]) for size in SIZES}
    text = (
        "In ticks, the greatest lateness of Netty is "
        f"{listed(late[size] / TICK for size in SIZES)} with {listed(SIZES)} slots, and "
        f"{number(burst / TICK)} in the burst; a rotation of {largest} slots has {largest} ticks."
    )
    if all(2 * each >= size * TICK for size, each in worst.items()):
        return Verdict(HOLDS, text)
    if 2 * burst >= largest * TICK:
        return Verdict(ONLY_WHEN, text, "more timers arrive within a tick than the worker files")
    return Verdict(WRONG, text)


@rule("Holds if timers fire early as well as late.")
def one_tick_either_way(found: Figures) -> Verdict:
    """Claim 2."""
    low = min(found.value(who, "lateness_min", size) for who in (NETTY, HASHED) for size in SIZES)
    high = max(found.value(who, "lateness_max", size) for who in (NETTY, HASHED) for size in SIZES)
    text = f"The lateness is {number(low)} to {number(high)} units with a tick of {TICK}."
    if low < 0 < high:
        return Verdict(HOLDS, text)
    side = "late" if low >= 0 else "early"
    return Verdict(WRONG, f"{text} It is {side} only.")


@rule(
    "Holds if every timer fires at its deadline with each tick; holds only for those ticks "
    "with which it does."
)
def kafka_exact(found: Figures) -> Verdict:
    """Claim 3."""
    off = {
        tick: max(abs(found.value(KAFKA, f"lateness_{end}", tick)) for end in ("min", "max"))
        for tick in TICKS
    }
    early = [0 - found.value(KAFKA, "lateness_min", tick) for tick in TICKS]
    text = f"It fires up to {listed(early)} units early with a tick of {listed(TICKS)}."
    exact = [tick for tick in TICKS if not off[tick]]
    if len(exact) == len(TICKS):
        return Verdict(HOLDS, text)
    if exact:
        return Verdict(ONLY_WHEN, text, f"the tick is {listed(exact)}")
    return Verdict(WRONG, text)
