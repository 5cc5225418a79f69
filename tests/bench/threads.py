"""Timers that several threads use, as a table of docs/figures: python -m tests.bench.threads.

`cpp-wheel` is measured twice: one lock around one wheel, and a wheel with its lock for each thread.
"""

import argparse
import os
import sys
from collections import defaultdict
from dataclasses import dataclass, replace
from statistics import median

from compare.base import formats
from compare.base.arguments import counts, names
from compare.trial.bench.threads import COUNTS, ThreadsBench, subject_of
from compare.trial.peers.catalogue import Entry, entry_named
from compare.trial.peers.protocol import PeerError
from compare.trial.peers.run import DEFAULT_TIMEOUT, Peer

PEERS = "cpp-wheel,go-runtime,java-executor,java-kafka,java-netty,java-timer"
METRICS = {
    "threads_cpu": "CPU [ns]",
    "threads_wall": "wall [ns]",
    "threads_start_p99": "a start, p99 [ns]",
    "threads_late_p99": "late, p99 [ms]",
    "threads_lost": "lost",
    "threads_doubled": "doubled",
}


@dataclass(frozen=True)
class Each(Entry):
    """The wheel of C++, with as many wheels as threads at most."""

    is_ready = True

    def peer(self, timeout: float = DEFAULT_TIMEOUT, **parameters: int) -> Peer:
        """The program with a parameter."""
        peer = entry_named("cpp-wheel").peer(timeout, structures=max(COUNTS))
        return replace(peer, name=self.name)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=names, default=names(PEERS))
    parser.add_argument("--size", type=counts, default=(100_000,))
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    entries = [entry_named(name) for name in given.peers]
    for entry in entries:
        try:
            entry.build()
        except PeerError as error:
            print(error, file=sys.stderr)
    each = Each("cpp-wheel, one for each thread", entry_named("cpp-wheel").language)
    bench = ThreadsBench([*entries, each], given.size[0], given.repeats, 60.0, 0)
    bench.run(lambda step: print(step, file=sys.stderr))
    samples: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in bench.rows:
        if row.value is not None:
            samples[row.contestant, row.subject, row.metric].append(row.value)
        else:
            print(f"{row.contestant}, {row.subject}: {row.note}", file=sys.stderr)
    print(f"{len(os.sched_getaffinity(0))} cores, {given.size[0]:,} pending\n")
    print(
        f"| timer | threads | {' | '.join(METRICS.values())} |\n|---|{'---|' * (1 + len(METRICS))}"
    )
    for name in dict.fromkeys(row.contestant for row in bench.rows):
        for count in COUNTS:
            subject = subject_of(count)
            cells = [samples.get((name, subject, metric)) for metric in METRICS]
            shown = [formats.significant(median(cell)) if cell else "" for cell in cells]
            print(f"| {name} | {subject.removeprefix('threads ')} | {' | '.join(shown)} |")


if __name__ == "__main__":
    main()
