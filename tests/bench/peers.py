"""Peers and timers in one table of docs/figures/languages.md: python -m tests.bench.peers.

Rows are written to a file after each size, so that a run that is ended early is not lost.
"""

import argparse
import json
import sys
from pathlib import Path
from statistics import median

from compare.base import formats
from compare.base.arguments import counts, names
from compare.trial.bench.peers import METRIC, SUBJECTS, PeerBench
from compare.trial.peers.catalogue import entries_named
from compare.trial.replay.contestant import contestant
from compare.trial.results.schema import Row
from timers.registry import names as timers


def table(rows: list[Row], order: list[str]) -> str:
    """The medians in Markdown; spread is the largest ratio of two samples of one figure.

    A timer without figures has a line with the reason below the table.
    """
    sizes = sorted({row.size for row in rows})
    columns = [(size, subject) for size in sizes for subject in SUBJECTS]
    lines = [["timer", *(f"{SUBJECTS[subject]}, {size:,}" for size, subject in columns), "spread"]]
    lines.append(["---"] * len(lines[0]))
    notes = [f"{row.contestant}, {row.size:,}: {row.note}" for row in rows if row.note]
    for label in order:
        samples = [
            [
                row.value
                for row in rows
                if (row.contestant, row.metric, row.size, row.subject) == (label, METRIC, *column)
                and row.value
            ]
            for column in columns
        ]
        if any(samples):
            spread = max(max(each) / min(each) for each in samples if each)
            several = any(len(each) > 1 for each in samples)
            cells = [formats.significant(median(each)) if each else "" for each in samples]
            lines.append([label, *cells, f"{spread:.1f}" if several else ""])
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), "", *notes])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=names, default=("all",))
    parser.add_argument("--timers", type=names, default=tuple(timers()))
    parser.add_argument("--sizes", type=counts, default=(10**5, 10**6))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--out", type=Path, help="rows as JSON")
    given = parser.parse_args()
    contestants = [contestant(name) for name in given.timers]
    bench = PeerBench(
        entries_named(given.peers),
        contestants,
        given.sizes,
        given.repeats,
        budget=5.0,
        seed=0,
        timeout=given.timeout,
        tasks_only=True,
    )

    def store(name: str, rows: list[Row]) -> None:
        if given.out:
            given.out.write_text(json.dumps(bench.rows))

    bench.run(lambda step: print(step, file=sys.stderr), store)
    print(table(bench.rows, [*(peer.name for peer in bench.peers), *given.timers]))


if __name__ == "__main__":
    main()
