"""Whether the timer that the model names is the right one, and whether it costs what is stated.

    python -m tests.bench.answers [--seed N] [--settings N] [--caller NAME] [--long]

Draws settings at random from the whole range: the rate, the timeout, the share that is cancelled,
the time to the answer, the step of the clock, the kind of traffic and the caller. It measures the
constants of the model for them (`compare.trial.bench.constants`), and replays each setting in turns
through every exact timer, in the way of the caller, and through what Python has itself: asyncio's
own loop, `sched` and `threading.Timer`. Noise only adds time, so the fastest of ROUNDS replays
counts. The timer that the model names is

- *right* if its replay takes at most WORSE times as long as the best one, or ENOUGH of a core more;
- *stated well* if the stated cost is within a factor of CLOSE of its replay;
- *covered* if its replay is in the stated interval.

Settings whose own replays differ by more than UNSTEADY are counted apart. The ten programs of
`tests.bench.answer_cases` follow. The exit code is 1 if the 95 % interval of a share is below
RIGHT, STATED or COVERED, or if more than two of the programs get another timer than was expected.
"""

import argparse
import math
import sys
import time
from collections import defaultdict

import numpy as np

from compare.trial.advice.choice import ENOUGH, MODELLED, USUAL, Offer, choose
from compare.trial.advice.described import bracket
from compare.trial.advice.model import CORE, cost, is_known
from compare.trial.bench.constants import fits
from compare.trial.bench.costs import MUCH, rivals
from compare.trial.bench.replays import OWN, REPLAYS, replay_of, seconds_of
from compare.trial.bench.steady import KEEPALIVE, KINDS, ONE, PERIODIC, RANDOM, Traffic, steady
from compare.trial.bench.work import UNIT
from compare.trial.replay.contestant import contestant
from compare.trial.replay.engine import OverBudgetError
from tests.bench.answer_cases import CASES
from timers.registry import names

WORSE, CLOSE, UNSTEADY = 1.15, 1.25, 0.1
RIGHT, STATED, COVERED = 0.95, 0.90, 0.90
ROUNDS = 3
SECONDS = 2.0  # CPU of a replay; what takes longer is not the best
MOST = {"system-timer": 100_000, "asyncio": 100_000}  # timers pending in a setting; else MANY
MANY = 1_000_000
TIMERS = {"compiled": 40_000}  # that start in a replay, at least; else FEW
FEW = 6_000
LARGEST = 300_000
NAMES = {"service": "system-timer"}  # of callers in the cases


def contestants_for(caller):
    """Label -> contestant; None for a host."""
    return rivals(caller, map(contestant, names()))


def bounds_of(label):
    """The earliest and the latest that a contestant fires, in units."""
    return (0, 0) if label in OWN else contestant(label).rounding(UNIT).bounds()


def drawn(count, seed, callers):
    """Settings and callers, at random; those with too many timers pending are drawn again."""
    dice, kinds = np.random.default_rng(seed), [*KINDS]
    while count:
        timeout = 10 ** dice.uniform(1, math.log10(3.6e6))
        kind = kinds[dice.integers(len(kinds))]
        share = float(dice.choice([0, 0.5, 0.9, 0.99, 0.999, 1.0]))
        traffic = Traffic(
            rate=10 ** dice.uniform(0.5, 6),
            timeout=timeout,
            cancelled=0.0 if kind == PERIODIC else share,
            answer=dice.uniform(0.01, 0.5 if kind in (ONE, KEEPALIVE) else 0.05) * timeout,
            kind=kind,
            step=float(dice.choice([1, 1, 10, 100])),
        )
        caller = callers[count % len(callers)]
        if kind == PERIODIC and timeout < traffic.step:
            continue  # it cannot fire so often
        if 1 <= traffic.pending <= MOST.get(caller, MANY) and traffic.rate * traffic.step < 2e7:
            count -= 1
            yield caller, traffic


class Model:
    """The constants of all contestants, measured when they are first asked for."""

    def __init__(self, repeats):
        self.repeats, self.known = repeats, {}

    def fits(self, caller, kind, sizes):
        """Label -> size -> fit."""
        found, left = defaultdict(dict), contestants_for(caller)
        for size in sizes:
            if (key := (caller, kind, size)) not in self.known:
                repeats = self.repeats if size < MUCH else 1
                self.known[key] = fits({caller: left}, size, kind, repeats)
            for (_, label), fit in self.known[key].items():
                found[label][size] = fit
            left = {label: each for label, each in left.items() if size in found[label]}
        return found

    def offers(self, caller, traffic, max_late):
        """Label -> the stated cost with its interval, in shares of a core."""
        sizes = bracket(caller, traffic)
        return {
            label: tuple(ns / CORE for ns in cost(traffic, each))
            for label, each in self.fits(caller, traffic.kind, sizes).items()
            if is_known(traffic, each, max(sizes))
            and bounds_of(label)[0] == 0
            and bounds_of(label)[1] <= max_late
        }


def named(stated):
    """The label that the rule of the page chooses. Memory decides nothing here."""
    offers = [
        Offer(middle, middle, middle, bounds_of(label) == (0, 0), 1, True, label == USUAL)._replace(
            host=label in OWN
        )
        for label, (middle, _, _) in stated.items()
    ]
    return [*stated][choose(offers, 1.0, MODELLED).number]


def replayed(caller, labels, traffic, seed):
    """Label -> the share of a core in each round; without those that take too long."""
    timers = max(TIMERS.get(caller, FEW), min(round(traffic.pending / 2), 100_000))
    timers = max(timers, round(20 * traffic.rate * traffic.step / 1_000))
    made = steady(traffic, timers, seed)
    everyone, rounds = contestants_for(caller), {label: [] for label in labels}
    for _ in range(ROUNDS):
        for label in [*rounds]:
            try:
                spent = seconds_of(replay_of(caller, label), everyone[label], made, SECONDS)
            except OverBudgetError:
                del rounds[label]
            else:
                rounds[label].append(max(spent, 1e-9) / made.seconds)
    return rounds


def judged(caller, traffic, model, seed, max_late=0):
    """Print a row; returns the label and whether it is right, stated well, covered and steady."""
    stated = model.offers(caller, traffic, max_late)
    label = named(stated)
    rounds = replayed(caller, stated, traffic, seed)
    if label not in rounds:
        return label, (False, False, False, True)
    least = {each: min(shares) for each, shares in rounds.items()}
    best = min(least, key=least.get)
    spent, (cost_, low, high) = least[label], stated[label]
    right = least[label] <= WORSE * least[best] or least[label] - least[best] <= ENOUGH
    close = 1 / CLOSE <= cost_ / spent <= CLOSE
    steady_ = max(rounds[label]) <= (1 + UNSTEADY) * least[label]
    print(
        f"| {caller} | {traffic.kind} | {traffic.rate:,.0f} | {traffic.timeout:,.0f} |"
        f" {traffic.cancelled:.1%} | {traffic.answer:,.0f} | {traffic.step:.0f} |"
        f" {traffic.pending:,.0f} | {label} | {best} | {least[label] / least[best]:.2f} |"
        f" {spent:.3%} | {cost_ / spent:.2f} |"
        f" {'' if right else 'WRONG '}{'' if close else 'OFF '}{'' if steady_ else 'unsteady'} |",
        flush=True,
    )
    return label, (right, close, low <= spent <= high, steady_)


def interval(hits, count):
    """The 95 % interval of a share, by Wilson (1927)."""
    z, share = 1.96, hits / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return middle - half * z / (1 + z * z / count), middle + half * z / (1 + z * z / count)


HEAD = """
| caller | traffic | rate, 1/s | timeout, ms | cancelled | answer, ms | step, ms | pending | named\
 | best | ratio | cost | stated | remark |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--settings", type=int)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--long", action="store_true", help="300 settings, more samples")
    parser.add_argument("--caller", choices=[*REPLAYS], help="only this one, without the programs")
    options = parser.parse_args()
    count = options.settings or (300 if options.long else 60)
    callers = [options.caller] if options.caller else [*REPLAYS]
    print(f"seed {options.seed}, {count} settings")
    model, started = Model(3 if options.long else 2), time.monotonic()
    print(HEAD)
    verdicts = [
        judged(caller, traffic, model, options.seed + number)[1]
        for number, (caller, traffic) in enumerate(drawn(count, options.seed, callers))
    ]
    steady_ = [each for each in verdicts if each[3]]
    print(f"\n{len(verdicts) - len(steady_)} settings were unsteady, and are not counted below.")
    failed = False
    parts = zip(("right", "stated well", "covered"), (RIGHT, STATED, COVERED), strict=True)
    for k, (title, wanted) in enumerate(parts):
        hits = sum(each[k] for each in steady_)
        low, high = interval(hits, len(steady_))
        failed |= high < wanted
        print(
            f"{title}: {hits} of {len(steady_)}, {hits / len(steady_):.1%} ({low:.1%}-{high:.1%})"
        )
    print(HEAD)
    notes = []
    for number, case in enumerate([] if options.caller else CASES):
        caller = NAMES.get(case.caller, case.caller)
        traffic = Traffic(case.rate, case.timeout, case.cancelled, case.answer, RANDOM)
        label, (right, *_) = judged(caller, traffic, model, number, case.max_late)
        if label != case.expected:
            notes.append(f"{case.program}: {label}; expected {case.expected}: {case.reason}")
        failed |= not right
    print("", *notes, f"{len(notes)} programs got another timer than was expected", sep="\n")
    print(f"{time.monotonic() - started:.0f} s")
    return int(failed or len(notes) > 2)


if __name__ == "__main__":
    sys.exit(main())
