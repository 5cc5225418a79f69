"""Claims about purgatories: their two designs under load, and the load itself."""

import tempfile
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

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
)
from compare.trial.claims.lateness import HIERARCHICAL
from compare.trial.purgatory.experiment import run_experiment
from compare.trial.purgatory.figures import (
    DESIGNS,
    LIMIT,
    PURGING,
    RATE,
    SCANNING,
    mostly_keeps_up,
    trials_of,
)
from compare.trial.purgatory.figures import Row as Trial
from compare.trial.purgatory.options import QUICK
from compare.trial.purgatory.options import Experiment as Options
from compare.trial.replay.contestant import contestant
from compare.trial.replay.engine import replay
from compare.trial.results.schema import Row
from compare.trial.results.store import read_run
from timers import HierarchicalWheel
from timers.services import DelayedOperation, ManualClock, Purgatory, SystemTimer

LOADS = ("low", "high")
_FULL = Options(
    rates=(10_000, 14_000, 20_000, 28_000, 40_000, 56_000),
    seconds=1.0,
    refinements=0,
)


def case(design: str, load: str) -> str:
    """The contestant of a design under a load."""
    return f"{DESIGNS[design]} design, load {load}"


@cache
def _trials(quick: bool) -> list[Trial]:
    """The trials of one run of the enqueue experiment, for both experiments on it."""
    options = replace(QUICK, seconds=0.5, rates=(10_000, 20_000, 40_000)) if quick else _FULL
    with tempfile.TemporaryDirectory(prefix="wheelwork-") as runs:
        return trials_of(read_run(run_experiment(replace(options, runs=runs))).rows)


def _designs(quick: bool) -> Iterator[Row]:
    for load in LOADS:
        for design in (PURGING, SCANNING):
            by_rate: dict[int, list[Trial]] = {}
            for row in _trials(quick):
                if (row["kind"], row["load"], row["design"]) == (RATE, load, design):
                    by_rate.setdefault(row["rate"], []).append(row)
            kept_up = [rate for rate, rows in by_rate.items() if mostly_keeps_up(rows)]
            yield from figures(case(design, load), sustained=max(kept_up, default=0))
            for rate in kept_up:
                for repeat, row in enumerate(by_rate[rate]):
                    values = {name: row[name] for name in _COSTS}
                    yield from figures(case(design, load), rate, repeat, **values)


def _limits(quick: bool) -> Iterator[Row]:
    repeats: Counter[int] = Counter()
    for row in _trials(quick):
        if row["kind"] == LIMIT and row["design"] == SCANNING:
            limit = row["interval"]
            yield from figures(OLD, limit, repeats[limit], **{name: row[name] for name in _COSTS})
            repeats[limit] += 1


_COSTS = ("cpu_us", "gc_us", "peak_bytes")
OLD = "old design"
_REQUESTS = "Requests in real time, with 100 bytes and three keys each and a timeout of 200 ms"

DESIGN_TRIALS = Experiment(
    "designs of a purgatory",
    f"{_REQUESTS}: the highest rate that each design sustained, and CPU time, garbage collection "
    "and peak memory at the rates that it sustained.",
    _designs,
    "requests/s",
    timed=True,
)
LIMIT_TRIALS = Experiment(
    "limits of the reaper",
    f"{_REQUESTS}, at one rate: the costs of the old design by the number of entries above which "
    "its reaper scans.",
    _limits,
    "limit",
    timed=True,
)


def saturation_doubles(found: Figures) -> Verdict:
    """Claim 13."""
    ratios, texts = {}, []
    for load in LOADS:
        new, old = (found.value(case(design, load), "sustained") for design in (PURGING, SCANNING))
        if not old:
            raise Undecided(f"The old design sustained none of the rates at load {load}")
        ratios[load] = new / old
        common = _common_rate(found, load)
        cpu, memory = (
            found.value(case(SCANNING, load), name, common)
            / found.value(case(PURGING, load), name, common)
            for name in ("cpu_us", "peak_bytes")
        )
        texts.append(
            f"at load {load} the new design sustains {number(new)} requests/s and the old one "
            f"{number(old)}; at {number(common)}/s the old one takes {cpu:.2f} times the CPU time "
            f"and {memory:.2f} times the memory"
        )
    text = f"{'. '.join(texts)}."
    text = text[0].upper() + text[1:].replace(". at", ". At")
    doubled = [load for load in LOADS if ratios[load] >= 2]
    if len(doubled) == len(LOADS):
        return Verdict(HOLDS, text)
    if doubled:
        return Verdict(ONLY_WHEN, text, f"the load is {doubled[0]}")
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

SAVED, PRICE = 2.0, 1.25


def low_limit_costs(found: Figures) -> Verdict:
    """Claim 21."""
    peak = found.curve(OLD, "peak_bytes")
    low, high = min(peak), max(peak)
    saves, costs = peak[high] / peak[low], found.ratios(OLD, "cpu_us", low, high)
    text = (
        f"A limit of {number(low)} instead of {number(high)} divides the peak memory by "
        f"{saves:.2f} and multiplies the CPU time by {min(costs):.2f} to {max(costs):.2f}"
    )
    if saves < SAVED or max(costs) < PRICE:
        return Verdict(WRONG, f"{text}.")
    if min(costs) < PRICE:
        raise Undecided(f"{text}, so on both sides of {PRICE:g}")
    return Verdict(HOLDS, f"{text}.")


# ---- the load

PRESETS = {"low": (20_000, 60_000, 0.0787), "high": (200_000, 400_000, 0.5)}
"""The claimed median and upper quartile in us, and the share that times out as sigma gives it."""
TIMEOUT = 200_000


def _presets(quick: bool) -> Iterator[Row]:
    n = 20_000 if quick else 200_000
    for load in LOADS:
        made = make(f"lognormal-{load}", timers=n)
        tape = made.tape
        starts, ends = tape.op == START, tape.op == CANCEL
        started = np.zeros(made.id_space, np.int64)
        answers = []
        for i, op, moment in zip(
            tape.id.tolist(), tape.op.tolist(), tape.time.tolist(), strict=True
        ):
            if op == START:
                started[i] = moment
            else:
                answers.append(moment - started[i])
        late = int(starts.sum() - ends.sum())
        latency = np.sort([*answers, *[TIMEOUT] * late])
        yield from figures(
            load,
            median=float(latency[n // 2]),
            quartile=float(latency[3 * n // 4]),
            share_expired=late / n,
        )


LOAD_PRESETS = Experiment(
    "presets of the load",
    "The answer times of the presets, in µs, and the share of requests that time out at 200 ms. An "
    "answer that takes longer counts as 200 ms.",
    _presets,
)


def presets_as_stated(found: Figures) -> Verdict:
    """Claim 14."""
    right, texts = [], []
    for load, (median, quartile, share) in PRESETS.items():
        seen = [min(each, TIMEOUT) for each in (median, quartile)]
        got = [found.value(load, name) for name in ("median", "quartile")]
        out = found.value(load, "share_expired")
        near = all(abs(a / b - 1) <= 0.03 for a, b in zip(got, seen, strict=True))
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


def tests_early_completion(found: Figures) -> Verdict:
    """Claim 23."""
    shares = {name: found.value(name, "share_expired") for name in (LATENCY, PORT)}
    text = (
        f"Of requests that are {LATENCY}, {100 * shares[LATENCY]:.2f} % time out; of those that "
        f"are {PORT}, {100 * shares[PORT]:.2f} %."
    )
    return Verdict(HOLDS if shares[PORT] < 1.0 else WRONG, text)
