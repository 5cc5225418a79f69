"""Do a peer's figures agree with a program that has no adapter? python -m tests.bench.bare.

For each of three languages: hold (a cancel and a start) with N timers pending, in the peer and in a
program of its language that calls the same structure, in turns; then the ratio of the medians.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from compare.trial.bench.callers import COMPILED_CODE, plan_of
from compare.trial.bench.peers import _Turn
from compare.trial.bench.task import HOLD
from compare.trial.bench.work import HOLD_PAIRS, tapes_of
from compare.trial.peers.catalogue import entry_named

HERE = Path(__file__).parent
PROGRAMS = {
    "cpp-multimap": ("g++ -std=c++20 -O3 -march=native -o {to}/cpp bare.cpp", "{to}/cpp"),
    "go-heap": ("go build -o {to}/go bare.go", "{to}/go"),
    "java-priority-queue": (
        "javac -d {to} Bare.java",
        "java -XX:+UseSerialGC -Xms256m -Xmx3g -Xshare:auto -cp {to} Bare",
    ),
}
"""For each peer, how the program that does the same without it is built and run."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    size = given.size
    tapes, plan = tapes_of(size, 0), plan_of(COMPILED_CODE, size, 0)
    print("| peer | in the peer [ns] | without it [ns] | ratio |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as to:
        for name, (build, run) in PROGRAMS.items():
            entry = entry_named(name)
            if entry.missing:
                print(f"{name}: {entry.missing}", file=sys.stderr)
                continue
            entry.build()
            subprocess.run(build.format(to=to).split(), cwd=HERE, check=True)
            warm_up = -(-entry.language.warm_up // (size + 2 * HOLD_PAIRS))
            words = [*run.format(to=to).split(), *map(str, (size, HOLD_PAIRS, warm_up))]
            turn = _Turn(entry, tapes, plan, 60.0)
            both: list[tuple[float, float]] = []
            for repeat in range(given.repeats):
                print(f"{name} {repeat}", file=sys.stderr)
                inside = turn.by_task()[HOLD].cpu_ns / HOLD_PAIRS
                done = subprocess.run(words, capture_output=True, text=True, check=True)
                both.append((inside, float(done.stdout)))
            inside, without = (median(column) for column in zip(*both, strict=True))
            print(f"| {name} | {inside:.0f} | {without:.0f} | {inside / without:.2f} |", flush=True)


if __name__ == "__main__":
    main()
