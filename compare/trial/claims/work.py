"""Claims that counted work decides: re-filing, spikes, wake-ups and growth. The same everywhere."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from compare.traffic.tapes.tape import START, Tape, id_space_of
from compare.traffic.workloads.catalogue import make
from compare.trial.claims.base import (
    HOLDS,
    ONLY_WHEN,
    WRONG,
    Experiment,
    Figures,
    Verdict,
    exponent,
    figures,
    listed,
    number,
    of_peer,
    rule,
)
from compare.trial.claims.geometry import CASCADING
from compare.trial.claims.lateness import (
    HASHED,
    HIERARCHICAL,
    KAFKA,
    NETTY,
    own_lateness,
    peer_lateness,
    starts,
    uniform,
)
from compare.trial.claims.ring import PLACES, Ring
from compare.trial.peers.protocol import PhaseTime
from compare.trial.peers.run import Peer
from compare.trial.peers.tapes import tape_of
from compare.trial.replay.contestant import contestant
from compare.trial.replay.engine import replay
from compare.trial.replay.wakeups import drive
from compare.trial.results.schema import Row

LINUX, LISTS, HEAP = "linux-wheel", "duration-lists", "delay-queue"
SCAN, RING = "unordered-list", "simple-wheel/wheel-size=64"
FLAT = 0.1
"""Work grows by no more than this power of its variable if it is called constant."""


def new(label: str, **settings: Any) -> Any:
    """A timer that counts its work."""
    return contestant(label).new("unit", **settings, counting=True)


def drained(peer: Peer, tape: Tape) -> PhaseTime:
    """The last phase of a peer's run, whose counts cover the whole run."""
    return peer.time(tape, id_space_of(tape), rounds=1, warm_up=1)[-1]


def kafka_counts(
    tape: Tape, size: int | None = None, timers: int = 1, /, **metrics: str
) -> Iterator[Row]:
    """Yield what Kafka's wheel counts on a tape, for each timer: the count behind each metric."""

    def counted(peer: Peer) -> Iterator[Row]:
        counts = drained(peer, tape).counts
        yield from figures(
            KAFKA, size, **{metric: counts[name] / timers for metric, name in metrics.items()}
        )

    yield from of_peer(KAFKA, counted)


# ---- re-filing and precision


def _cores(quick: bool) -> Iterator[Row]:
    n = 2_000 if quick else 20_000
    tape = starts(np.arange(n, dtype=np.int64), uniform(n, 60_000))
    for label in (CASCADING, LINUX, HIERARCHICAL):
        late = own_lateness(label, tape)
        done = replay(new(label), tape, n).outcome
        refiled = (done.counters or {})["refiled"] / n
        ends = {"lateness_min": late.min, "lateness_max": late.max}
        yield from figures(label, refiled_each=refiled, **ends)

    def kafka(peer: Peer) -> Iterator[Row]:
        late = peer_lateness(peer, tape)
        yield from figures(KAFKA, lateness_min=late.min, lateness_max=late.max)

    yield from of_peer(KAFKA, kafka)
    yield from kafka_counts(tape, None, n, refiled_each="refiled")


CORES = Experiment(
    "re-filing and lateness",
    "Timers with uniform delays of up to 60,000 units, all of which fire: how often each is filed "
    f"again, and its lateness. `{CASCADING}` stands for Linux before 4.8, `{LINUX}` for Linux "
    "since.",
    _cores,
)


@rule(
    "Two designs are alike if both or neither file timers again, and both or neither are exact "
    "at a tick of 1. Holds if Linux since 4.8 is like Kafka; holds only for older kernels if "
    "those alone are."
)
def one_core(found: Figures) -> Verdict:
    """Claim 5."""
    refiled = {who: found.value(who, "refiled_each") for who in (KAFKA, CASCADING, LINUX)}
    late = {
        who: max(abs(found.value(who, f"lateness_{end}")) for end in ("min", "max"))
        for who in refiled
    }
    text = "; ".join(
        f"{who} files a timer again {number(each, '.2f')} times and fires it "
        + (f"up to {number(late[who])} units off" if late[who] else "exactly")
        for who, each in refiled.items()
    )

    def alike(who: str) -> bool:
        return (refiled[who] > 0) == (refiled[KAFKA] > 0) and (late[who] > 0) == (late[KAFKA] > 0)

    if alike(LINUX):
        return Verdict(HOLDS, f"{text}.")
    if alike(CASCADING):
        return Verdict(ONLY_WHEN, f"{text}.", "Linux is older than 4.8")
    return Verdict(WRONG, f"{text}.")


# ---- growth of an insert

EQUAL_DELAYS = (10, 1_000, 100_000, 10_000_000)


def _inserts(quick: bool) -> Iterator[Row]:
    for size in (1_000, 10_000, 100_000) if quick else (1_000, 10_000, 100_000, 1_000_000):
        timer = new(HIERARCHICAL, capacity=size)
        timer.schedule_many(uniform(size, 60_000))
        counts = timer.counters
        work = (counts["comparisons"] + counts["queue_offers"]) / size
        yield from figures(HIERARCHICAL, size, insert_work=work)
    n = 1_000
    for delay in EQUAL_DELAYS:
        tape = starts(np.arange(n, dtype=np.int64) * 7, np.full(n, delay))
        counters = replay(new(HIERARCHICAL), tape, n).outcome.counters or {}
        yield from figures(HIERARCHICAL, delay, refiled_each=counters["refiled"] / n)

        yield from kafka_counts(tape, delay, n, refiled_each="refiled")


INSERTS = Experiment(
    "work of an insert",
    "Comparisons of buckets and buckets queued for each insert, against the number of timers; and "
    "how often a timer is filed again later, against its delay.",
    _inserts,
    {"insert_work": "timers", "refiled_each": "delay"},
)


@rule(
    "Wrong if the work of an insert doubles over the sizes; holds if, besides, no timer is "
    "filed again later; otherwise it holds only if re-filing is ignored."
)
def insert_constant(found: Figures) -> Verdict:
    """Claim 10."""
    work = found.curve(HIERARCHICAL, "insert_work")
    later = {who: found.curve(who, "refiled_each") for who in (KAFKA, HIERARCHICAL)}
    kafka = later[KAFKA]
    text = (
        "Besides filing the timer, an insert takes "
        f"{number(work[min(work)], '.2g')} steps in the queue of buckets with {number(min(work))} "
        f"timers and {number(work[max(work)], '.2g')} with {number(max(work))}. Kafka files a "
        f"timer again {listed(kafka.values(), '.2f')} times for delays of {listed(kafka)}."
    )
    if work[max(work)] > 2 * work[min(work)]:
        return Verdict(WRONG, text)
    if max(max(each.values()) for each in later.values()) == 0:
        return Verdict(HOLDS, text)
    return Verdict(ONLY_WHEN, text, "the re-filings that a long delay causes later are not counted")


# ---- the queue of buckets


def _buckets(quick: bool) -> Iterator[Row]:
    for n in (1_000, 5_000) if quick else (1_000, 10_000, 50_000):
        timer, delays = new(HIERARCHICAL, capacity=n), uniform(n, 60_000)
        most = 0
        for now, delay in enumerate(delays.tolist()):
            timer.advance(now)
            timer.schedule(now + delay)
            counts = timer.counters
            most = max(most, counts["queue_offers"] - counts["queue_polls"])
        yield from figures(HIERARCHICAL, n, most_queued=most, buckets=_BUCKETS)

        tape = starts(np.arange(n, dtype=np.int64), delays)
        yield from kafka_counts(tape, n, most_queued="most_queued")


_BUCKETS = 4 * 20  # delays of up to 60,000 need four levels of 20 slots

BUCKETS = Experiment(
    "queued buckets",
    "The most buckets in the queue at once, with timers of up to 60,000 units, which need four "
    "levels of 20 slots.",
    _buckets,
    "timers",
)


@rule("Holds if there are never more items than buckets, in Kafka's code and in ours.")
def buckets_capped(found: Figures) -> Verdict:
    """Claim 11."""
    most = {who: found.curve(who, "most_queued") for who in (KAFKA, HIERARCHICAL)}
    cap = found.value(HIERARCHICAL, "buckets", max(most[HIERARCHICAL]))
    worst = max(max(curve.values()) for curve in most.values())
    kafka, own = (number(max(most[who].values())) for who in (KAFKA, HIERARCHICAL))
    text = (
        f"With up to {number(max(most[KAFKA]))} timers, Kafka queues {kafka} buckets at most, "
        f"`{HIERARCHICAL}` {own}; there are {number(cap)}."
    )
    return Verdict(HOLDS if worst <= cap else WRONG, text)


WORKLOADS = ("uniform", "keepalive", "cancel-heavy")


def _wakeups(quick: bool) -> Iterator[Row]:
    for name in WORKLOADS:
        made = make(name, operations=4_000 if quick else 40_000)
        due = np.maximum(made.tape.deadline, made.tape.time)
        ticks = int(due.max() - made.tape.time[0])
        timer = new(HIERARCHICAL, start=int(made.tape.time[0]))
        done = drive(timer, made.tape, made.id_space, int(due.max()))
        counts = {"wake_ups": done.wakeups, "idle_wake_ups": done.idle, "ticks": ticks}
        yield from figures(f"{HIERARCHICAL}, {name}", **counts)

        for row in kafka_counts(made.tape, None, **_POLLS):
            yield row._replace(contestant=f"{KAFKA}, {name}")
        yield from figures(f"{KAFKA}, {name}", ticks=ticks)


_POLLS = {"wake_ups": "queue_polls", "idle_wake_ups": "idle_polls"}

WAKEUPS = Experiment(
    "wake-ups by workload",
    "How often a wheel of 20 slots with a tick of 1 ms wakes for a bucket, how often nothing is "
    "due then, and how many ticks pass meanwhile. Kafka's own wheel counts the buckets it polls.",
    _wakeups,
)


@rule(
    "Wrong if it wakes as often as there are ticks; holds if at most 1 % of the wake-ups find "
    "nothing due, on each workload; otherwise it holds only if those are ignored."
)
def no_empty_ticks(found: Figures) -> Verdict:
    """Claim 12."""
    idle, saved, texts = {}, [], []
    for name in WORKLOADS:
        who = f"{KAFKA}, {name}"
        wakeups, ticks = found.value(who, "wake_ups"), found.value(who, "ticks")
        idle[name] = found.value(who, "idle_wake_ups") / max(wakeups, 1)
        saved.append(wakeups < ticks)
        texts.append(
            f"{name}, {number(wakeups)} times in {number(ticks)} ticks, "
            f"{100 * idle[name]:.1f} % with nothing due"
        )
    text = f"Kafka's wheel wakes, on {'; on '.join(texts)}."
    if not all(saved):
        return Verdict(WRONG, text)
    if max(idle.values()) <= 0.01:
        return Verdict(HOLDS, text)
    return Verdict(ONLY_WHEN, text, "emptied buckets and cascades, which wake it too, do not count")


# ---- steps of the clock


def _steps(quick: bool) -> Iterator[Row]:
    tape = tape_of([(0, START, 0, 200), (0, START, 1, 840)])
    timer = new(HIERARCHICAL)
    timer.schedule_many(np.array([200, 840]))
    fired = [len(timer.advance(now).handles) for now in range(1, 841)]
    yield from figures("tick by tick", wake_ups=len(fired), idle_wake_ups=fired.count(0))
    outcome = replay(new(HIERARCHICAL), tape, 2).outcome
    counts = {"wake_ups": outcome.wakeups, "idle_wake_ups": outcome.idle_wakeups}
    yield from figures(HIERARCHICAL, **counts)

    yield from kafka_counts(tape, None, **_POLLS)


STEPS = Experiment(
    "steps of the clock",
    "Two timers, due at 200 and 840, on a wheel of 20 slots with a tick of 1: how often it wakes, "
    "and how often with nothing due.",
    _steps,
)
EMPTY_STEPS = 199 + 639


@rule(
    "Wrong if the empty steps are others; holds if the queue wakes for the two tasks alone; "
    "otherwise it holds only if its other wake-ups are ignored."
)
def empty_steps(found: Figures) -> Verdict:
    """Claim 19."""
    ticking = found.value("tick by tick", "idle_wake_ups")
    wakeups, idle = (found.value(KAFKA, name) for name in ("wake_ups", "idle_wake_ups"))
    text = (
        f"Tick by tick, {number(ticking)} steps are empty. Kafka's queue of buckets wakes "
        f"{number(wakeups)} times, {number(idle)} of them with nothing due."
    )
    if ticking != EMPTY_STEPS:
        return Verdict(WRONG, text)
    if idle:
        return Verdict(ONLY_WHEN, text, "the wake-up for a cascade is not counted")
    return Verdict(HOLDS, text)


# ---- the clock that lags

IDLE = (1_000, 1_000_000, 1_000_000_000)


def _lag(quick: bool) -> Iterator[Row]:
    for idle in IDLE:
        tape = tape_of([(0, START, 0, 1), (idle, START, 1, idle + 5)])
        counters = replay(new(HIERARCHICAL), tape, 2).outcome.counters or {}
        yield from figures(HIERARCHICAL, idle, refiled=counters["refiled"])

        yield from kafka_counts(tape, idle, refiled="refiled")


LAG = Experiment(
    "re-filings after an idle time",
    "A timer with a delay of 5 that is started after an idle time: how often it is filed again. "
    f"`{HIERARCHICAL}` moves its clock with the caller's, Kafka's wheel when a bucket expires.",
    _lag,
    "idle time",
)


@rule(
    "Holds if, after each idle time, Kafka's wheel files a short timer again more often than a "
    "wheel whose clock moves with the caller's."
)
def clock_lags(found: Figures) -> Verdict:
    """Claim 22."""
    kafka, own = (found.curve(who, "refiled") for who in (KAFKA, HIERARCHICAL))
    text = (
        f"After {listed(kafka)} idle units, Kafka files the timer again {listed(kafka.values())} "
        f"times, `{HIERARCHICAL}` {listed(own.values())} times."
    )
    lags = all(kafka[idle] > own[idle] for idle in kafka)
    return Verdict(HOLDS if lags else WRONG, text)


# ---- idle connections

IDLE_TIMEOUT, TOUCHED_EVERY, SILENT = 30, 10, 10  # s, s, one connection in so many falls silent


def idle_connections(timer: Any, size: int) -> tuple[float, float]:
    """Watch connections for an idle timeout, second by second.

    Returns the timers looked at and those fired in a step, on average over those steps in which
    silent connections fire.
    """
    phase = np.arange(size) * TOUCHED_EVERY // size  # the second in which it is touched
    handles = timer.schedule_many(IDLE_TIMEOUT + phase)
    lively = np.arange(size) % SILENT != 0
    looked, fired = [], []
    for now in range(1, IDLE_TIMEOUT + TOUCHED_EVERY):
        touched = lively & (phase == now % TOUCHED_EVERY)
        timer.reschedule_many(handles[touched], np.full(int(touched.sum()), now + IDLE_TIMEOUT))
        before = timer.counters["timers_touched"]
        fired.append(len(timer.advance(now).handles))
        looked.append(timer.counters["timers_touched"] - before)
    return float(np.mean(looked[IDLE_TIMEOUT - 1 :])), float(np.mean(fired[IDLE_TIMEOUT - 1 :]))


def _connections(quick: bool) -> Iterator[Row]:
    for size in (1_000, 10_000) if quick else (1_000, 10_000, 100_000):
        for label in (SCAN, RING):
            looked, fired = idle_connections(new(label, capacity=size), size)
            yield from figures(label, size, looked_at=looked, fired=fired)


CONNECTIONS = Experiment(
    "idle connections",
    "Connections with an idle timeout of 30 s: timers looked at, and timers that fire, in a step "
    "of one second. One in ten falls silent; the others are touched every 10 s.",
    _connections,
    "connections",
)


@rule(
    "Holds if the scan looks at a number of timers that grows as the connections do, and at "
    "least at twice those that are due, and the ring at no more than twice those."
)
def scan_does_not_scale(found: Figures) -> Verdict:
    """Claim 15."""
    scan, ring = (found.curve(who, "looked_at") for who in (SCAN, RING))
    due = found.curve(RING, "fired")
    most = max(scan)
    text = (
        f"With {number(most)} connections, a step of the scan looks at {number(scan[most])} "
        f"timers, a step of the ring at {number(ring[most])}, of which {number(due[most])} are due."
    )
    grows = exponent(scan) >= 0.9 and scan[most] >= 2 * due[most]
    waste = max(ring[size] / due[size] for size in ring)
    return Verdict(HOLDS if grows and waste <= 2 else WRONG, text)


# ---- the ring of sets

TOUCHES, FOR = 10, 60  # seconds between the touches of a connection, and how long it is touched


def _ring(quick: bool) -> Iterator[Row]:
    for name, place in PLACES.items():
        ring, touched_at, silence, early = Ring(IDLE_TIMEOUT, place), 0, 0, 0
        for now in range(FOR + 2 * IDLE_TIMEOUT):
            if ring.tick():
                silence = now - touched_at
                early += silence < IDLE_TIMEOUT
            if now <= FOR and now % TOUCHES == 0:
                ring.touch(0)
                touched_at = now
        yield from figures(name, closed_early=early, silence=silence)


RING_OF_SETS = Experiment(
    "ring of sets",
    f"A ring of {IDLE_TIMEOUT} slots, one for each second, and a connection that is touched every "
    f"{TOUCHES} s for a minute and then falls silent: how often it is closed meanwhile, and after "
    "how many seconds of silence at the end.",
    _ring,
)


@rule("Holds if no connection in use is closed, and a silent one not before its timeout.")
def next_slot_to_expire(found: Figures) -> Verdict:
    """Claim 18."""
    drawn, turn = PLACES
    closed = {name: found.value(name, "closed_early") for name in PLACES}
    silence = {name: found.value(name, "silence") for name in PLACES}
    text = (
        f"In the slot that expires next, a connection in use is closed {number(closed[drawn])} "
        f"times, after {number(silence[drawn])} s of silence. Behind the pointer, a full turn "
        f"away, it is closed {number(closed[turn])} times, and after {number(silence[turn])} s."
    )
    right = not closed[drawn] and silence[drawn] >= IDLE_TIMEOUT
    return Verdict(HOLDS if right else WRONG, text)


# ---- spikes

SPIKE = 0.01
"""A step that moves this share of all pending timers is a spike."""
SPAN = 200_000


def worst_steps(timer: Any, delays: np.ndarray) -> dict[str, float]:
    """Advance unit by unit until all have fired; return the worst steps and the mean."""
    timer.schedule_many(delays)
    timer.advance(1)  # new timers leave the list in which some wheels gather them
    most_moved = most_fired = steps = 0
    looked = timer.counters["timers_touched"]
    first = looked
    while len(timer):
        fired = len(timer.advance(timer.now + 1).handles)
        after = timer.counters["timers_touched"]
        most_moved = max(most_moved, after - looked - fired)
        most_fired = max(most_fired, fired)
        looked, steps = after, steps + 1
    mean = (looked - first) / steps
    return {"most_moved": most_moved, "most_fired": most_fired, "looked_at": mean}


def _spikes(quick: bool) -> Iterator[Row]:
    n = 20_000 if quick else 200_000
    delays = uniform(n, SPAN)
    for label in (HEAP, f"{HASHED}/tick=1", CASCADING, HIERARCHICAL, LINUX):
        yield from figures(label, n, **worst_steps(new(label, capacity=n), delays))


SPIKES = Experiment(
    "worst steps",
    f"Timers with uniform delays of up to {SPAN:,} units, and the clock goes unit by unit: the "
    "most timers that one step moves or passes over, the most that it fires, and the timers that a "
    "step looks at on average.",
    _spikes,
    "timers",
)


def _worst(found: Figures, who: str, metric: str) -> tuple[int, float]:
    curve = found.curve(who, metric)
    size = max(curve)
    return size, curve[size]


@rule(
    "A spike is a step that moves at least 1 % of all timers. Holds if both cascading designs "
    "have one and the heap has none; holds only for the one that has."
)
def cascades_spike(found: Figures) -> Verdict:
    """Claim 16."""
    moved = {who: _worst(found, who, "most_moved") for who in (CASCADING, HIERARCHICAL, HEAP)}
    text = f"Of {number(moved[HEAP][0])} timers, one step moves " + "; ".join(
        f"up to {number(most)} in {who}" if most else f"none in {who}"
        for who, (_, most) in moved.items()
    )
    spikes = {who: most >= SPIKE * size for who, (size, most) in moved.items()}
    if spikes[CASCADING] and spikes[HIERARCHICAL] and not spikes[HEAP]:
        return Verdict(HOLDS, f"{text}.")
    if spikes[CASCADING] != spikes[HIERARCHICAL]:
        spiky = CASCADING if spikes[CASCADING] else HIERARCHICAL
        return Verdict(ONLY_WHEN, f"{text}.", f"the wheel is a {spiky}")
    return Verdict(WRONG, f"{text}.")


@rule(
    "Holds if no step of the wheel moves 1 % of the timers, nor fires more than twice as many "
    "as an exact timer does at most."
)
def no_cascade_no_spike(found: Figures) -> Verdict:
    """Claim 24."""
    _, heap = _worst(found, HEAP, "most_fired")
    _, fired = _worst(found, LINUX, "most_fired")
    size, moved = _worst(found, LINUX, "most_moved")
    _, walked = _worst(found, f"{HASHED}/tick=1", "looked_at")
    text = (
        f"`{LINUX}`, which never moves a timer, fires up to {number(fired)} of {number(size)} in "
        f"one step, where an exact timer fires {number(heap)}. A wheel that compares each deadline "
        f"instead (`{HASHED}`) looks at {number(walked)} timers in every step."
    )
    calm = moved < SPIKE * size and fired <= 2 * heap
    return Verdict(HOLDS if calm else WRONG, text)


# ---- constant delays

CONSTANT = (200, 1_000, 30_000)
_EACH = ("comparisons", "timers_touched", "slots_visited", "queue_offers", "queue_polls")


def _work(label: str, delays: np.ndarray) -> float:
    """The counted work of each timer, from its start to its expiry; all start within 200 units."""
    n = len(delays)
    tape = starts(np.arange(n, dtype=np.int64) * 200 // n, delays)
    counters = replay(new(label, capacity=n), tape, n).outcome.counters or {}
    return sum(counters[name] for name in _EACH) / n


def _constant(quick: bool) -> Iterator[Row]:
    for n in (1_000, 10_000) if quick else (1_000, 10_000, 100_000):
        delays = np.resize(np.array(CONSTANT), n)
        for label in (LISTS, CASCADING, HIERARCHICAL, HEAP):
            yield from figures(label, n, work_each=_work(label, delays))
    n = 10_000
    for number_of in (3, 30, 300, 3_000):
        delays = 200 + uniform(n, number_of, seed=1) * 30_000 // number_of
        yield from figures(LISTS, number_of, work_by_delays=_work(LISTS, delays))


CONSTANT_DELAYS = Experiment(
    "constant delays",
    f"Timers with the delays {listed(CONSTANT)}, all of which fire: comparisons, timers looked at, "
    f"slots visited and buckets queued, for each timer. `{LISTS}`, one list for each delay, is "
    "also measured by the number of different delays, with 10,000 timers.",
    _constant,
    {"work_each": "timers", "work_by_delays": "delays"},
)
SAME = 1.5
"""Work that is no more than this multiple is the same."""


@rule(
    f"Work is the same if it grows to at most {SAME:g} times its least. Holds if that of "
    "lists by delay is, over the timers and over the different delays; holds only for few "
    "delays if over the timers alone."
)
def no_degradation(found: Figures) -> Verdict:
    """Claim 26."""
    timers, delays = (found.curve(LISTS, name) for name in ("work_each", "work_by_delays"))
    text = (
        f"With {listed(timers)} timers, each takes {listed(timers.values())} steps; with "
        f"{listed(delays)} different delays, {listed(delays.values())}."
    )
    flat = [curve[max(curve)] <= SAME * curve[min(curve)] for curve in (timers, delays)]
    if all(flat):
        return Verdict(HOLDS, text)
    if flat[0]:
        return Verdict(ONLY_WHEN, text, "there are few different delays")
    return Verdict(WRONG, text)


@rule(
    f"Holds if lists by delay do at most {SAME:g} times the work of the better of two "
    "wheels, with each number of timers."
)
def needs_no_wheel(found: Figures) -> Verdict:
    """Claim 27."""
    work = {who: found.curve(who, "work_each") for who in (LISTS, CASCADING, HIERARCHICAL)}
    most = max(work[LISTS])
    text = "; ".join(f"{who} {number(curve[most], '.2f')}" for who, curve in work.items())
    least = {n: min(work[who][n] for who in (CASCADING, HIERARCHICAL)) for n in work[LISTS]}
    cheap = all(work[LISTS][n] <= SAME * least[n] for n in least)
    text = f"Steps for each of {number(most)} timers: {text}."
    return Verdict(HOLDS if cheap else WRONG, text)


# ---- an idle processor

HOUR = 3_600_000  # ms
NETTY_TICK = 100


def _idle(quick: bool) -> Iterator[Row]:
    deadline, until = HOUR - 1, 2 * HOUR  # by then, a timer that fires late has fired
    tape = tape_of([(0, START, 0, deadline)])
    for label in (HEAP, CASCADING, HIERARCHICAL, LINUX):
        yield from figures(label, wake_ups=drive(new(label), tape, 1, until).wakeups)
    yield from kafka_counts(tape, None, wake_ups="wake_ups")

    def netty(peer: Peer) -> Iterator[Row]:
        # The adapter advances by units, and the worker wakes once in a tick.
        yield from figures(NETTY, wake_ups=drained(peer, tape).counts["wake_ups"] / NETTY_TICK)

    yield from of_peer(NETTY, netty, tick=NETTY_TICK)


IDLE_HOUR = Experiment(
    "wake-ups in an idle hour",
    "One timer, due in an hour: how often its driver wakes until then. Netty's worker sleeps from "
    f"tick to tick, of {NETTY_TICK} ms; the others sleep until the wheel wants to be advanced.",
    _idle,
)
OFTEN = 100
"""Wake-ups for one timer in an hour that keep a processor from its deeper sleep."""


@rule(
    f"A wheel wakes it if it wakes more than {OFTEN} times in an hour for one timer. "
    "Holds if Netty's, Kafka's and the cascading wheel do; holds only for those that do."
)
def wakes_idle(found: Figures) -> Verdict:
    """Claim 28."""
    wheels = {who: found.value(who, "wake_ups") for who in (NETTY, KAFKA, CASCADING)}
    text = ", ".join(f"{who} {number(wakeups)} times" for who, wakeups in wheels.items())
    text = f"In an hour, {text} for one timer."
    often = [who for who, wakeups in wheels.items() if wakeups > OFTEN]
    if len(often) == len(wheels):
        return Verdict(HOLDS, text)
    if often:
        return Verdict(ONLY_WHEN, text, f"its driver ticks, as that of {' and '.join(often)} does")
    return Verdict(WRONG, text)
