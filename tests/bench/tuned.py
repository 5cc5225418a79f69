"""Whether a peer takes the CPU time that the panel for tuning by hand states.

    python -m tests.bench.tuned [RUN] [--seed N] [--settings N]

Without RUN, it is the newest of `results/`. The panel computes the time from a stored run with
`--peers java-netty,java-kafka,java-agrona,rust-tokio` and at least two sizes. Here, random traffic
is drawn for the setting with which each peer was measured, a tick of 1 ms, and its tape is timed in
the peer's own program: the least of ROUNDS.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from compare.trial.advice.model import CORE, rates
from compare.trial.advice.tuning import FAMILIES, UNITS, work
from compare.trial.advice.tuning import ROUNDS as IN_ROUNDS
from compare.trial.bench.steady import Traffic, steady
from compare.trial.bench.work import UNIT
from compare.trial.peers.catalogue import entries_named
from compare.trial.results.contributed import contributed
from compare.trial.results.store import read_run
from reports.answer import paid_of
from reports.summary import figures_of

RESULTS = Path(__file__).parents[2] / "results"
ROUNDS = 3
MOST_PENDING = 100_000
TIMEOUT = 120.0  # seconds for a program


def drawn(count, dice):
    """Random traffic, with at most MOST_PENDING timers."""
    while count:
        timeout = 10 ** dice.uniform(2, 5)
        share = float(dice.choice([0, 0.5, 0.9, 0.99]))
        traffic = Traffic(
            10 ** dice.uniform(1, 5), timeout, share, dice.uniform(0.01, 0.05) * timeout
        )
        if traffic.pending <= MOST_PENDING:
            count -= 1
            yield traffic


def stated(paid, family, traffic):
    """Nanoseconds in a second, as `paidBy` in reports/templates/page/tuning.js has them."""
    ends, lost, *_ = rates(traffic)
    done = work(family, traffic, 1, family.measured_slots)
    ticks = UNITS if family.kind == IN_ROUNDS else done.wakeups
    return (
        ends * paid["pair"]
        + lost * (paid["start"] + paid["visit"])
        + ticks * paid["tick"]
        + done.visits * paid["visit"]
    )


def replayed(entry, traffic, seed):
    """The same, measured."""
    timers = min(max(round(traffic.rate * 20), 2_000), 200_000)
    made = steady(traffic, timers, seed)
    warm_up = -(-entry.language.warm_up // made.tape.time.size)
    times = entry.peer(TIMEOUT).time(
        made.tape,
        made.ids,
        unit=UNIT,
        phases=(0, made.first),
        rounds=ROUNDS,
        warm_up=warm_up,
    )
    return min(each.cpu_ns for each in times if each.phase == 1) / made.seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("run", nargs="?")
    parser.add_argument("--settings", type=int, default=8)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    options = parser.parse_args()
    run = read_run(options.run) if options.run else contributed(RESULTS)[0]
    summary = figures_of(run)
    print(f"seed {options.seed}\n")
    print("| peer | rate, 1/s | timeout, ms | cancelled | pending | stated | replay | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for family in FAMILIES.values():
        if not family.peer or (paid := paid_of(summary, family)) is None:
            continue
        [entry] = entries_named([family.peer])
        for number, traffic in enumerate(
            drawn(options.settings, np.random.default_rng(options.seed))
        ):
            said, took = stated(paid, family, traffic), replayed(entry, traffic, number)
            print(
                f"| {family.peer} | {traffic.rate:,.0f} | {traffic.timeout:,.0f} |"
                f" {traffic.cancelled:.0%} | {traffic.pending:,.0f} | {said / CORE:.3%} |"
                f" {took / CORE:.3%} | {said / took:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(main())
