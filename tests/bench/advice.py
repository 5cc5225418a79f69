"""How close the choice of `wheelwork advise` comes to the best of the whole grid, by measured time.

    python -m tests.bench.advice [TRACE ...] [--operations 100000] [--max-late 10ms] [--rounds 5]

For each trace and each workload: the advice; then every candidate of the grid within the bounds is
timed once, and the NEAREST fastest together with the choice in turns, `--rounds` times. Prints the
choice, the best, the ratio of their times (the least of the rounds) with the noise, which is the
median of the rounds of the best to their least, and the rank correlation of the search's objective
with the measured times. Beside it stands that of these times with themselves, odd rounds with even
rounds: where it is as low, the objective is not what limits the correlation.
"""

import argparse
import tempfile
import time
from fractions import Fraction
from statistics import median

from compare.base.executors import Threads
from compare.traffic.tapes.trace import open_trace
from compare.traffic.tapes.units import TAPE_UNITS, parse_duration
from compare.traffic.workloads.catalogue import WORKLOADS
from compare.trial.advice.candidates import Bounds
from compare.trial.advice.prices import rank_correlation
from compare.trial.advice.replays import outcomes
from compare.trial.advice.search import advise
from compare.trial.pipeline.generate import generate

NEAREST = 20
LIMIT = 1000  # ns per operation; slower candidates cannot be the best


def judge(trace, max_late, rounds):
    late = 0
    if trace.unit in TAPE_UNITS:
        late = int(Fraction(parse_duration(max_late, "us"), parse_duration(f"1{trace.unit}", "us")))
    started = time.process_time()
    advice = advise(trace, Bounds(late), Threads())
    seconds = time.process_time() - started
    grid = list(advice.grid.all())
    executor, sample = Threads(), advice.sample
    fast = outcomes(executor, sample, grid, counting=True, limit=LIMIT)
    by_label = {candidate.label: candidate for candidate in grid}
    once = outcomes(executor, sample, [by_label[label] for label in fast], counting=False)
    nearest = sorted(once, key=lambda label: once[label].seconds)[:NEAREST]
    chosen = [by_label[label] for label in dict.fromkeys([advice.best.label, *nearest])]
    runs = [outcomes(executor, sample, chosen, counting=False) for _ in range(rounds)]
    times = {each.label: [run[each.label].seconds for run in runs] for each in chosen}
    fastest = {label: min(values) for label, values in times.items()}
    best = min(fastest, key=fastest.get)
    ratio = fastest[advice.best.label] / fastest[best]
    noise = median(times[best]) / fastest[best]
    print(
        f"{trace.path.name:20} {advice.best.label:40} {best:40} {ratio:5.2f} {noise:5.2f}"
        f" {advice.correlation:5.2f} {itself(advice):6.2f} {len(grid):4} {seconds:5.1f}",
        flush=True,
    )


def itself(advice):
    rounds = [advice.samples[label] for label in advice.checked]
    return rank_correlation(*([min(seconds[start::2]) for seconds in rounds] for start in (0, 1)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("traces", nargs="*")
    parser.add_argument("--operations", type=int, default=100_000)
    parser.add_argument("--max-late", default="10ms")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    heads = ("trace", "choice", "best of the grid")
    print(
        "{:20} {:40} {:40}".format(*heads),
        "ratio noise  corr itself grid CPU s of the search",
        sep=" ",
    )
    with tempfile.TemporaryDirectory() as folder:
        for path in given.traces:
            judge(open_trace(path), given.max_late, given.rounds)
        for name in WORKLOADS:
            trace = generate(name, f"{folder}/{name}", operations=given.operations)
            judge(trace, given.max_late, given.rounds)


if __name__ == "__main__":
    main()
