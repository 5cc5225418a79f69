"""How close the cheapest that `wheelwork advise` finds comes to the cheapest of all candidates.

    python -m tests.bench.advice [WORKLOAD or TRACE ...] [--operations 200000] [--max-late 10ms]

For each trace or workload (default: all workloads): the advice; then every candidate within the
bounds is timed once on the same operations, and the NEAREST fastest together with the found one
in turns. Prints the found one, the best, the ratio of their times (the least of the turns) and the
noise: the median of the turns divided by their least, for the best or the found one, whichever is
greater.
Fails if a ratio is above both 1.15 and the noise.
"""

import argparse
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from statistics import median

from compare.base.stages import Here
from compare.traffic.tapes.trace import open_trace
from compare.traffic.tapes.units import TAPE_UNITS, parse_duration
from compare.traffic.workloads.catalogue import WORKLOADS
from compare.trial.advice.candidates import Bounds, contestants
from compare.trial.advice.replays import outcomes
from compare.trial.advice.search import advise, in_turns, traffic_of
from compare.trial.pipeline.generate import generate

NEAREST = 20
WORSE = 1.15  # finding one that costs more is wrong, unless that is within the noise
LIMIT = 1000  # ns per operation; slower candidates cannot be the best


def judge(trace, max_late):
    """Print the line of a trace, and return whether what was found is good enough."""
    late = 0
    if trace.unit in TAPE_UNITS:
        late = int(Fraction(parse_duration(max_late, "us"), parse_duration(f"1{trace.unit}", "us")))
    bounds, engine = Bounds(late), Here()
    started = time.process_time()
    advice = advise(trace, bounds, engine)
    seconds = time.process_time() - started
    traffic = traffic_of(trace, bounds)
    candidates = {
        candidate.label: candidate
        for candidate in contestants(traffic, trace.unit)
        if bounds.allow(candidate.rounding(trace.unit), traffic.longest_delay)
    }
    once = outcomes(engine, advice.sample, list(candidates.values()), limit=LIMIT)
    nearest = sorted(once, key=lambda label: once[label].seconds)[:NEAREST]
    found = advice.ranked[advice.choice.cheapest].label
    chosen = [candidates[label] for label in dict.fromkeys([found, *nearest])]
    runs = in_turns(engine, advice.sample, chosen)
    times = {each.label: [run[each.label].seconds for run in runs] for each in chosen}
    best = min(times, key=lambda label: min(times[label]))
    ratio = min(times[found]) / min(times[best])
    noise = max(median(times[each]) / min(times[each]) for each in (best, found))
    good = ratio <= max(WORSE, noise)
    print(
        f"{trace.path.name:14} {found:42} {best:42} {ratio:5.2f} {noise:5.2f}"
        f" {len(candidates):10} {seconds:5.1f} {'' if good else 'wrong'}",
        flush=True,
    )
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("traces", nargs="*", default=list(WORKLOADS))
    parser.add_argument("--operations", type=int, default=200_000)
    parser.add_argument("--max-late", default="10ms")
    given = parser.parse_args()
    heads = "trace", "found", "best of all candidates", "ratio", "noise", "candidates", "CPU s"
    print("{:14} {:42} {:42} {:>5} {:>5} {:>10} {:>5}".format(*heads))
    with tempfile.TemporaryDirectory() as folder:
        good = True
        for name in given.traces:
            if name in WORKLOADS and not Path(name).exists():
                trace = generate(name, f"{folder}/{name}", operations=given.operations)
            else:
                trace = open_trace(name)
            good &= judge(trace, given.max_late)
    sys.exit(not good)


if __name__ == "__main__":
    main()
