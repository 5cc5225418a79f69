"""Claims about purgatories: their two designs under load, and the load itself."""

import gc
import math
import tempfile
import time
import tracemalloc
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from compare.traffic.tapes.tape import CANCEL, START, Tape, id_space_of
from compare.traffic.workloads.catalogue import make
from compare.trial.claims.base import (
    HOLDS,
    ONLY_WHEN,
    WRONG,
    Experiment,
    Figures,
    Undecided,
    Verdict,
    figures,
    listed,
    number,
    rule,
)
from compare.trial.claims.lateness import HIERARCHICAL
from compare.trial.purgatory.experiment import run_experiment
from compare.trial.purgatory.figures import (
    DESIGNS,
    PURGING,
    RATE,
    SCANNING,
    keeps_up,
    mostly_keeps_up,
    trials_of,
)
from compare.trial.purgatory.figures import Row as Trial
from compare.trial.purgatory.options import Experiment as Options
from compare.trial.purgatory.scanning import ScanningPurgatory
from compare.trial.purgatory.traffic import traffic
from compare.trial.purgatory.trial import PAYLOAD
from compare.trial.replay.contestant import contestant
from compare.trial.replay.engine import replay
from compare.trial.results.schema import Row
from compare.trial.results.store import read_run
from timers import DelayQueue, HierarchicalWheel
from timers.services import DelayedOperation, ManualClock, Purgatory, SystemTimer

LOADS = ("low", "high")
CLAIMED = {"low": 105 / 40, "high": 105 / 25}
"""The rate of the new design to that of the old one, by load."""
_RATES = (10_000, 20_000, 40_000, 80_000, 160_000)
_FULL = Options(rates=_RATES, seconds=1.0, refinements=2, limits=())
_REQUESTS = "requests with 100 bytes and three keys each and a timeout of 200 ms"


def case(design: str, load: str) -> str:
    """The contestant of a design under a load."""
    return f"{DESIGNS[design]} design, load {load}"


def _designs(quick: bool) -> Iterator[Row]:
    options = replace(_FULL, seconds=0.3, refinements=1) if quick else _FULL
    with tempfile.TemporaryDirectory(prefix="wheelwork-") as runs:
        trials = trials_of(read_run(run_experiment(replace(options, runs=runs))).rows)
    for load in LOADS:
        for design in (PURGING, SCANNING):
            by_rate: dict[int, list[Trial]] = {}
            for row in trials:
                if (row["kind"], row["load"], row["design"]) == (RATE, load, design):
                    by_rate.setdefault(row["rate"], []).append(row)
            kept_up = [rate for rate, rows in by_rate.items() if mostly_keeps_up(rows)]
            too_many = min(by_rate.keys() - {*kept_up}, default=None)
            if too_many and _processors(by_rate[too_many]) < SATURATED:
                too_many = None  # something else kept it from the processor
            reached = {"sustained": max(kept_up, default=0), "too_many": too_many}
            yield from figures(case(design, load), **reached)
            for rate in kept_up:
                for repeat, row in enumerate(by_rate[rate]):
                    values = {name: row[name] for name in ("cpu_us", "gc_us", "peak_bytes")}
                    yield from figures(case(design, load), rate, repeat, **values)


def _processors(rows: Sequence[Trial]) -> float:
    """The median number of processors that trials had in which a design did not keep up."""
    failed = [row for row in rows if not keeps_up(row) and row["cpu_us"]]
    shares = [float(row["cpu_us"] * row["achieved"] / 1e6) for row in failed]
    return median(shares) if shares else math.inf  # it ended with an error


SATURATED = 0.7
"""The processors from which on a design counts as saturated. With fewer, the machine may have been
too busy, rather than the rate too high.
"""

DESIGN_TRIALS = Experiment(
    "designs of a purgatory",
    f"{_REQUESTS.capitalize()}, in real time, at rates of up to {number(_RATES[-1])} a second: the "
    "highest rate that each design sustained and the first that was too much, which counts only if "
    f"the design had {SATURATED:g} processors or more. CPU time, garbage collection and peak "
    "memory are those at the rates that it sustained.",
    _designs,
    "requests/s",
    timed=True,
)


@rule(
    "What a design can sustain lies between the highest rate that it sustained and the first "
    "that was too much. Holds if the new design sustains at least half as many times the rate "
    "of the old one as claimed, at both loads; holds only for the load at which it does; not "
    "decided if it may be either."
)
def saturates_later(found: Figures) -> Verdict:
    """Claim 13."""
    near, texts = [], []
    reached = {who: found.value(who, "too_many") for who in found.contestants("too_many")}
    for load in LOADS:
        new, old = case(PURGING, load), case(SCANNING, load)
        rates = {who: found.value(who, "sustained") for who in (new, old)}
        if not rates[old]:
            raise Undecided(f"The old design sustained none of the rates at load {load}")
        low = rates[new] / reached.get(old, math.inf)
        high = reached.get(new, math.inf) / rates[old]
        ratio = f"{low:.1f} to {high:.1f}" if high < math.inf else f"at least {low:.1f}"
        if low < CLAIMED[load] / 2 <= high:
            raise Undecided(
                f"At load {load} the rates do not tell: the new design sustained "
                f"{number(rates[new])} requests/s, and the old one {number(rates[old])}"
            )
        if low >= CLAIMED[load] / 2:
            near.append(load)
        common = _common_rate(found, load)
        cpu, memory = (
            found.value(old, name, common) / found.value(new, name, common)
            for name in ("cpu_us", "peak_bytes")
        )
        texts.append(
            f"At load {load} the new design sustains {number(rates[new])} requests/s and the old "
            f"one {number(rates[old])}; the ratio of what they can sustain is {ratio}. At "
            f"{number(common)}/s the old one takes {cpu:.2f} times the CPU time and {memory:.2f} "
            "times the memory."
        )
    text = " ".join(texts)
    if len(near) == len(LOADS):
        return Verdict(HOLDS, text)
    if near:
        return Verdict(ONLY_WHEN, text, f"the load is {near[0]}")
    return Verdict(WRONG, text)


def _common_rate(found: Figures, load: str) -> int:
    """The highest rate that both designs sustained."""
    rates = [{*found.curve(case(each, load), "cpu_us")} for each in (PURGING, SCANNING)]
    common = rates[0] & rates[1]
    if not common:
        raise Undecided(f"No rate was sustained by both designs at load {load}")
    return max(common)


# ---- the estimate

INTERVAL, IN_FLIGHT, KEYS, WATCHED = 1_000, 2_000, 100, 3
LITTLE = 0.1
ANSWERED = {"answered one by one": False, "answered through a key": True}
"""The ways in which requests are completed: whether the watchers of a key are checked."""


class _Request(DelayedOperation):
    """A request that completes once its answer is there."""

    __slots__ = ("answered",)

    answered: bool

    def try_complete(self) -> bool:
        return self.answered and self.force_complete()


def _estimates(quick: bool) -> Iterator[Row]:
    n = 10_000 if quick else 50_000
    keys = np.random.default_rng(0).integers(0, KEYS, (n, WATCHED)).tolist()
    for name, through_key in ANSWERED.items():
        timer = SystemTimer(HierarchicalWheel(), clock=ManualClock())
        purgatory = Purgatory("estimate", timer, reaper=False)
        waiting: deque[tuple[_Request, int]] = deque()
        totals: list[tuple[int, float]] = []
        for number_of, watched in enumerate(keys):
            request = _Request(3_600)
            request.answered = False
            purgatory.try_complete_else_watch(request, watched)
            waiting.append((request, watched[0]))
            if len(waiting) > IN_FLIGHT:
                oldest, key = waiting.popleft()
                oldest.answered = True
                if through_key:
                    purgatory.check_and_complete(key)
                else:
                    oldest.force_complete()
            if number_of % INTERVAL == INTERVAL - 1:
                totals.append((purgatory.estimated_total, purgatory.watched / WATCHED))
                purgatory.purge()
        timer.close()
        estimated, exact = np.array(totals[IN_FLIGHT // INTERVAL :]).T
        values = {"estimated_total": estimated.mean(), "exact_total": exact.mean()}
        yield from figures(name, **values, overshoot=float((estimated / exact - 1).max()))


ESTIMATES = Experiment(
    "estimate of the total",
    f"{IN_FLIGHT:,} requests are in flight, each with {WATCHED} of {KEYS} keys. Just before each "
    f"purge, after {INTERVAL:,} requests, the estimate is compared with the exact number of "
    "requests in the lists: if answers complete requests one by one, and if an answer has the "
    "watchers of a key checked, which takes completed ones out of that key's list.",
    _estimates,
)


@rule(
    f"A little is {100 * LITTLE:.0f} %, before any purge. Holds if the estimate is "
    "no further off in both cases; holds only for the one in which it is not."
)
def estimate_is_close(found: Figures) -> Verdict:
    """Claim 20."""
    over = {name: found.value(name, "overshoot") for name in ANSWERED}
    text = "The estimate is at most " + ", and ".join(
        f"{100 * share:.1f} % too high if requests are {name}" for name, share in over.items()
    )
    near = [name for name, share in over.items() if abs(share) <= LITTLE]
    if len(near) == len(over):
        return Verdict(HOLDS, f"{text}.")
    if near:
        return Verdict(ONLY_WHEN, f"{text}.", f"requests are {near[0]}")
    return Verdict(WRONG, f"{text}.")


# ---- the reaper

MUCH = 2.0
"""The factor by which memory is saved, or CPU time is spent."""
OLD, LIMITS = "old design", (1_000, 10_000, 1_000_000)
ARRIVALS, TIMEOUT = 10_000, 200_000  # a second, us


class _Payload(DelayedOperation):
    """A request that only its answer or its timeout ends."""

    __slots__ = ("payload",)

    payload: bytes

    def try_complete(self) -> bool:
        return False

    def on_expiration(self) -> None:
        pass


def _reaped(limit: int, requests: Sequence[tuple[int, int, list[int]]]) -> tuple[float, int]:
    """Run the old design in virtual time; return the CPU time in us, and the most pending.

    Each millisecond the clock moves, requests are answered, and new ones arrive. Of each request,
    `requests` has the moment of arrival and the time until its answer, in us, and its keys.
    """
    clock = ManualClock()
    timer = SystemTimer(DelayQueue(), clock=clock)
    purgatory = ScanningPurgatory("requests", timer, limit=limit)
    pending = now = 0
    answers: dict[int, list[_Payload]] = {}  # by the ms in which they come
    started = time.thread_time()
    for arrival, service, keys in requests:
        while now < arrival // 1_000:
            now += 1
            pending = max(pending, purgatory.delayed)
            for request in answers.pop(now, ()):
                request.force_complete()
            clock.advance(0.001)
        request = _Payload(TIMEOUT / 1e6)
        request.payload = bytes(PAYLOAD)
        if service >= 0:
            answers.setdefault((arrival + service) // 1_000 + 1, []).append(request)
        purgatory.try_complete_else_watch(request, keys)
    spent = time.thread_time() - started
    timer.close()
    return 1e6 * spent, pending


def _limits(quick: bool) -> Iterator[Row]:
    n = 20_000
    given = traffic("high", ARRIVALS, n)
    columns = given.arrivals, given.services, given.keys
    requests = [*zip(*(column.tolist() for column in columns), strict=True)]
    for limit in LIMITS:
        gc.collect()
        tracemalloc.start()
        try:
            _, pending = _reaped(limit, requests)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        yield from figures(OLD, limit, peak_bytes=peak, most_pending=pending)
    for repeat in range(1 if quick else 3):
        for limit in LIMITS:
            yield from figures(OLD, limit, repeat, cpu_us=_reaped(limit, requests)[0] / n)


LIMIT_TRIALS = Experiment(
    "limits of the reaper",
    f"{_REQUESTS.capitalize()}, {number(ARRIVALS)} a second, in virtual time; half of them time "
    "out. CPU time and peak memory of the old design by the number of entries above which its "
    "reaper scans, and the most requests that are pending at once.",
    _limits,
    "limit",
    timed=True,
)


@rule(
    f"A limit is low if it divides the peak memory by at least {MUCH:g}, against "
    "the highest, and has a price if it multiplies the CPU time by as much. Holds if each low "
    "limit has a price; holds only for those that have one; wrong if none has."
)
def low_limit_costs(found: Figures) -> Verdict:
    """Claim 21."""
    peak, cpu = (found.curve(OLD, name) for name in ("peak_bytes", "cpu_us"))
    *limits, high = peak
    pending = max(found.curve(OLD, "most_pending").values())
    saves = {limit: peak[high] / peak[limit] for limit in limits}
    costs = {limit: cpu[limit] / cpu[high] for limit in limits}
    text = f"Against a limit of {number(high)}, " + "; ".join(
        f"one of {number(limit)} divides the peak memory by {saves[limit]:.1f} and multiplies the "
        f"CPU time by {costs[limit]:.1f}"
        for limit in limits
    )
    text += f". Up to {number(pending)} requests are pending."
    low = [limit for limit in limits if saves[limit] >= MUCH]
    dear = [limit for limit in low if costs[limit] >= MUCH]
    if not dear:
        return Verdict(WRONG, text)
    if dear == low:
        return Verdict(HOLDS, text)
    if max(dear) < pending:
        return Verdict(ONLY_WHEN, text, "the limit is below the number of pending requests")
    return Verdict(ONLY_WHEN, text, f"the limit is at most {number(max(dear))}")


# ---- the load

PRESETS = {"low": (20_000, 60_000, 0.0787), "high": (200_000, 400_000, 0.5)}
"""The claimed median and upper quartile in us, and the share that times out as sigma gives it."""


def _presets(quick: bool) -> Iterator[Row]:
    n = 20_000 if quick else 200_000
    for load in LOADS:
        made = make(f"lognormal-{load}", timers=n).tape
        late = n - int((made.op == CANCEL).sum())
        # A timeout that is never reached does not cut the answers off.
        tape = make(f"lognormal-{load}", timers=n, parameters={"timeout": 10**12}).tape
        started: dict[int, int] = {}
        answers = []
        columns = tape.id, tape.op, tape.time
        for i, op, moment in zip(*(column.tolist() for column in columns), strict=True):
            if op == START:
                started[i] = moment
            else:
                answers.append(moment - started[i])
        middle, quartile = np.quantile(answers, (0.5, 0.75)).tolist()
        yield from figures(load, median=middle, quartile=quartile, share_expired=late / n)


LOAD_PRESETS = Experiment(
    "presets of the load",
    "The answer times of the presets, in µs, without a timeout, and the share of requests that "
    "time out at 200 ms.",
    _presets,
)


@rule(
    "Holds if median and quartile are within 3 %, and the share that times out within one "
    "percentage point."
)
def presets_as_stated(found: Figures) -> Verdict:
    """Claim 14."""
    right, texts = [], []
    for load, (middle, quartile, share) in PRESETS.items():
        got = [found.value(load, name) for name in ("median", "quartile")]
        out = found.value(load, "share_expired")
        near = all(abs(a / b - 1) <= 0.03 for a, b in zip(got, (middle, quartile), strict=True))
        right.append(near and abs(out - share) <= 0.01)
        texts.append(
            f"at load {load} they are {listed((each / 1_000 for each in got), '.3g')} ms, and "
            f"{100 * out:.2f} % time out"
        )
    text = f"Median and quartile: {'; '.join(texts)}."
    return Verdict(HOLDS if all(right) else WRONG, text)


LATENCY, PORT = "answered after the latency", "answered after the timeout"


def _completion(quick: bool) -> Iterator[Row]:
    n = 10_000 if quick else 100_000
    made = make("lognormal-low", timers=n)
    tape = made.tape
    begins = np.flatnonzero(tape.op == START)
    time, deadline = tape.time[begins], tape.deadline[begins]
    times = np.concatenate([time, deadline])
    order = np.argsort(times, kind="stable")
    ids = np.tile(np.arange(n, dtype=np.int32), 2)[order]
    ops = np.repeat(np.array([START, CANCEL], np.int8), n)[order]
    deadlines = np.concatenate([deadline, np.zeros(n, np.int64)])[order]
    for name, each in ((LATENCY, tape), (PORT, Tape(times[order], ops, ids, deadlines))):
        outcome = replay(contestant(HIERARCHICAL).new("us"), each, id_space_of(each)).outcome
        yield from figures(name, share_expired=outcome.fired / outcome.scheduled)


COMPLETION = Experiment(
    "early completion",
    "The share of requests that time out if they are answered after their latency, and if they are "
    "answered after the timeout. The second is the rule that the source of the benchmark states; "
    "the benchmark itself is in no released library.",
    _completion,
)


@rule("Holds if some requests are answered in time when they are completed as it does.")
def tests_early_completion(found: Figures) -> Verdict:
    """Claim 23."""
    shares = {name: found.value(name, "share_expired") for name in (LATENCY, PORT)}
    text = (
        f"Of requests that are {LATENCY}, {100 * shares[LATENCY]:.2f} % time out; of those that "
        f"are {PORT}, {100 * shares[PORT]:.2f} %."
    )
    return Verdict(HOLDS if shares[PORT] < 1.0 else WRONG, text)
