"""Claims that times decide, about the JDK's queues, Kafka's wheel, and wheels of a million."""

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from compare.trial.bench.task import CANCEL_ALL, INSERT
from compare.trial.bench.work import SCENARIOS, UNIT, ScenarioRun, runs_per_sample, tapes_of
from compare.trial.claims.base import (
    HOLDS,
    NOT_DECIDED,
    ONLY_WHEN,
    WRONG,
    Experiment,
    Figures,
    Undecided,
    Verdict,
    exponent,
    figures,
    listed,
    missing,
    number,
    of_peer,
    rule,
    timed,
)
from compare.trial.claims.geometry import CASCADING
from compare.trial.claims.lateness import KAFKA, starts, uniform
from compare.trial.claims.work import HEAP, new
from compare.trial.peers.protocol import PhaseTime
from compare.trial.peers.run import Peer
from compare.trial.replay.contestant import contestant
from compare.trial.results.schema import Row

DELAY_QUEUE, TIMER, EXECUTOR, CPP = "java-delay-queue", "java-timer", "java-executor", "cpp-wheel"
LONGEST = 60_000
ROUNDS = 5
LINEAR = 0.5
"""The growth from which on an operation counts as linear: halfway between constant and linear. Over
the sizes measured, log N grows as N^0.1.
"""


def _ns(phase: PhaseTime) -> int:
    return phase.wall_ns if phase.thread_ns is None else phase.thread_ns


def _phases(
    peer: Peer, size: int, rows: Callable[[int, list[PhaseTime]], Iterator[Row]]
) -> Iterator[Row]:
    """Insert, settle and cancel on a tape: `rows` makes rows of a round and its phases."""
    tape = tapes_of(size, 0).filling
    warm_up = max(2, 300_000 // size)  # rounds until the JVM has compiled what it will
    options = {"unit": UNIT, "phases": (0, size, size + 1), "rounds": ROUNDS, "warm_up": warm_up}
    times = peer.time(tape, size, **options)  # type: ignore[arg-type]
    for repeat in range(ROUNDS):
        yield from rows(repeat, [line for line in times if line.round == repeat])


def _insert_and_cancel(name: str, size: int, repeat: int, phases: list[PhaseTime]) -> Iterator[Row]:
    insert, settle, cancel, drain = phases
    each = {"insert_time": _ns(insert) / size, "cancel_time": _ns(cancel) / size}
    yield from figures(name, size, repeat, **each)
    if name == TIMER:
        yield from figures(name, size, repeat, purge_time=_ns(settle))
    if not repeat and name in (DELAY_QUEUE, TIMER):
        yield from figures(name, size, fired=drain.expired)


def _peer_times(name: str, size: int, peer: Peer) -> Iterator[Row]:
    yield from _phases(peer, size, partial(_insert_and_cancel, name, size))


def _polls(size: int, peer: Peer) -> Iterator[Row]:
    tape = starts(np.zeros(size, np.int64), uniform(size, LONGEST))
    times = peer.time(tape, size, unit=UNIT, rounds=ROUNDS, warm_up=max(2, 300_000 // size))
    for line in times:
        if line.expired:
            yield from figures(DELAY_QUEUE, size, line.round, poll_time=_ns(line) / line.expired)


def _jdk(quick: bool) -> Iterator[Row]:
    # With fewer timers, a part of a purge that does not grow takes most of its time.
    for size in (4_000, 16_000, 32_000) if quick else (4_000, 16_000, 64_000):
        for name in (DELAY_QUEUE, TIMER, EXECUTOR):
            yield from of_peer(name, partial(_peer_times, name, size))
        yield from of_peer(DELAY_QUEUE, partial(_polls, size))
        timer = new(HEAP, capacity=size)
        handles = timer.schedule_many(uniform(size, LONGEST))
        before = timer.counters["comparisons"]
        timer.cancel_many(np.random.default_rng(0).permutation(handles))
        yield from figures(HEAP, size, comparisons=(timer.counters["comparisons"] - before) / size)


JDK = Experiment(
    "costs of the JDK's queues",
    "CPU time of an insert, of the cancel of a random timer and of a poll with N timers pending; "
    "for java.util.Timer also that of one purge. The least of several samples counts. "
    "`delay-queue`, a heap with positions, counts the comparisons of a cancel.",
    _jdk,
    "timers",
    timed=True,
    least=True,
)


@rule(
    f"An operation is logarithmic if its time grows by less than N^{LINEAR}, halfway "
    "between constant and linear. Holds if insert, poll and remove are; holds only for poll if "
    "remove is not."
)
def queue_logarithmic(found: Figures) -> Verdict:
    """Claim 8."""
    grows = {
        operation: exponent(found.times(DELAY_QUEUE, f"{operation}_time"))
        for operation in ("insert", "poll", "cancel")
    }
    counted = exponent(found.curve(HEAP, "comparisons"))
    text = (
        f"Its insert grows as N^{grows['insert']:.2f}, its poll as N^{grows['poll']:.2f} and "
        f"remove(object) as N^{grows['cancel']:.2f}. A cancel in `{HEAP}`, which keeps positions, "
        f"grows as N^{counted:.2f}."
    )
    if max(grows.values()) < LINEAR:
        return Verdict(HOLDS, text)
    if max(grows["insert"], grows["poll"]) < LINEAR:
        return Verdict(ONLY_WHEN, text, "delete means poll")
    return Verdict(WRONG, text)


@rule(
    "Holds if a cancelled timer fires; holds only for a fast delete if remove and purge grow "
    f"by at least N^{LINEAR}; wrong otherwise."
)
def no_random_delete(found: Figures) -> Verdict:
    """Claim 9."""
    fired = [max(found.curve(who, "fired").values()) for who in (DELAY_QUEUE, TIMER)]
    remove = exponent(found.times(DELAY_QUEUE, "cancel_time"))
    purge = exponent(found.times(TIMER, "purge_time"))
    # These two decide nothing, and are so short that a busy machine blurs them.
    cancel, executor = (exponent(found.curve(who, "cancel_time")) for who in (TIMER, EXECUTOR))
    text = (
        f"No cancelled timer fires. DelayQueue.remove grows as N^{remove:.2f}. The cancel of "
        f"java.util.Timer grows as N^{cancel:.2f} and leaves the task in the queue; its purge "
        f"grows as N^{purge:.2f}. The cancel of ScheduledThreadPoolExecutor grows as "
        f"N^{executor:.2f}."
    )
    if any(fired):
        return Verdict(HOLDS, f"{number(max(fired))} timers fire after they were cancelled.")
    if min(remove, purge) >= LINEAR:
        return Verdict(ONLY_WHEN, text, "a delete in less than O(n) is meant")
    return Verdict(WRONG, text)


# ---- Kafka's wheel at 100,000

KIP, PENDING = "KIP-219", 100_000


def _kafka(quick: bool) -> Iterator[Row]:
    yield from of_peer(KAFKA, partial(_peer_times, KAFKA, PENDING))
    yield missing(KIP, "it is about the communication of quotas, and has no such figures")


KAFKA_COSTS = Experiment(
    "costs of Kafka's wheel",
    "CPU time of an insert and of the cancel of a random timer in Kafka's TimingWheel with "
    f"{PENDING:,} timers pending. The least of several samples counts.",
    _kafka,
    "timers",
    timed=True,
    least=True,
)


@rule(
    "Holds if published figures are within a factor of three of Kafka's own wheel here; not "
    "decided without published figures."
)
def figures_in_kip(found: Figures) -> Verdict:
    """Claim 17."""
    names = ("insert_time", "cancel_time")
    own = [found.time(KAFKA, name, PENDING) for name in names]
    text = f"Here an insert takes {number(own[0])} ns and a cancel {number(own[1])} ns."
    try:
        published = [found.value(KIP, name, PENDING) for name in names]
    except Undecided as reason:
        return Verdict(NOT_DECIDED, f"{reason}. {text}")
    text = f"Published: {listed(published)} ns. {text}"
    near = all(
        theirs / 3 <= ours <= 3 * theirs for theirs, ours in zip(published, own, strict=True)
    )
    return Verdict(HOLDS if near else WRONG, text)


# ---- flat to a million

ARM_NS, CANCEL_NS, MILLION = 39, 22, 1_000_000
SAME = 2
"""A cost is the same if it is at most this multiple: of the claimed one, or of that at the smallest
size."""
WHEELS = (CPP, CASCADING)


def _wheels(quick: bool) -> Iterator[Row]:
    for size in (10_000, 100_000, MILLION):
        yield from of_peer(CPP, partial(_peer_times, CPP, size))
        tapes = tapes_of(size, 0)
        wheel = contestant(CASCADING)
        runs = runs_per_sample(wheel, SCENARIOS[0], size)
        for repeat in range(3 if quick else ROUNDS):
            spent = dict.fromkeys(SCENARIOS[0], 0.0)
            for _ in range(runs):
                run = ScenarioRun(wheel, tapes, time.thread_time)
                for task in SCENARIOS[0]:
                    spent[task] += run.run(task)[1]
            for task, metric in ((INSERT, "insert_time"), (CANCEL_ALL, "cancel_time")):
                yield from timed(CASCADING, metric, spent[task], runs * size, size, repeat)


FLAT_COSTS = Experiment(
    "costs of wheels",
    "CPU time of an insert, and of the cancel of a random timer, with up to a million pending: a "
    f"good wheel in C++, and `{CASCADING}` in compiled code. The least of several samples counts.",
    _wheels,
    "timers",
    timed=True,
    least=True,
)


@rule(
    "Wrong if one of them costs more than twice the claimed time with any of the numbers, in "
    "the better of two wheels; holds if, besides, neither costs more than twice as much with a "
    "million as with the fewest; otherwise it holds only if growth is ignored."
)
def flat_to_a_million(found: Figures) -> Verdict:
    """Claim 25."""
    arm, cancel = (
        {
            size: min(found.time(who, metric, size) for who in WHEELS)
            for size in found.curve(CPP, metric)
        }
        for metric in ("insert_time", "cancel_time")
    )
    text = (
        f"The better of two wheels takes {listed(round(each, 1) for each in arm.values())} ns to "
        f"arm and {listed(round(each, 1) for each in cancel.values())} ns to cancel, with "
        f"{listed(arm)} timers pending."
    )
    both = (ARM_NS, arm), (CANCEL_NS, cancel)
    if any(max(curve.values()) > SAME * claimed for claimed, curve in both):
        return Verdict(WRONG, text)
    if all(curve[MILLION] <= SAME * curve[min(curve)] for _, curve in both):
        return Verdict(HOLDS, text)
    return Verdict(ONLY_WHEN, text, "flat means no more than twice the claimed times")
