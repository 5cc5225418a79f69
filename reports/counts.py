"""Compare the counted work of two stored runs. It is the same on every machine, so that any
difference is one of the code.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from compare.trial.results.metrics import is_counter
from compare.trial.results.store import Run, RunError
from reports.diff import Subject, origins_of

_WORK = ("seed", "longest_delay", "settling", "hold_pairs", "pairs_per_unit")
"""The parameters of a comparison that decide on the operations of its tasks."""


@dataclass(frozen=True)
class Count:
    """A counter of both runs, per operation."""

    subject: Subject
    contestant: str
    counter: str
    before: float
    after: float

    @property
    def ratio(self) -> float:
        """The count of the second run over that of the first."""
        if not self.before:
            return math.inf if self.after else 1.0
        return self.after / self.before


@dataclass(frozen=True)
class CountedDifference:
    """The counts of both runs."""

    counts: Sequence[Count]  # the largest ratio first
    paths: tuple[str, str]  # of the runs
    missing: tuple[int, int]  # counts of each run that the other lacks

    def more(self, threshold: float) -> list[Count]:
        """Counts that have grown by more than `threshold` (0.01 = 1 %)."""
        return [count for count in self.counts if count.ratio > 1 + threshold]

    def less(self, threshold: float) -> list[Count]:
        """Counts that have shrunk by more than `threshold`, the smallest ratio first."""
        return [count for count in self.counts[::-1] if count.ratio * (1 + threshold) < 1]


def counted_difference(first: Run, second: Run) -> CountedDifference:
    """Compare the counters of two runs. O(rows).

    Raises:
        RunError: the runs have no counter in common, or their tasks have other operations.
    """
    for name in _WORK:
        values = [run.manifest["parameters"].get(name) for run in (first, second)]
        if values[0] != values[1]:
            raise RunError(
                f"{first.path} and {second.path} count other operations:"
                f" {name.replace('_', ' ')} is {values[0]} and {values[1]}"
            )
    before, after = _counts_of(first), _counts_of(second)
    both = [key for key in before if key in after]
    if not both:
        raise RunError(f"{first.path} and {second.path} have no counter in common")
    counts = [Count(*key, before[key], after[key]) for key in both]
    return CountedDifference(
        sorted(counts, key=lambda count: -count.ratio),
        (str(first.path), str(second.path)),
        (len(before) - len(both), len(after) - len(both)),
    )


def _counts_of(run: Run) -> dict[tuple[Subject, str, str], float]:
    origins = origins_of(run)
    return {
        (Subject(row.subject, row.size, origin), row.contestant, row.metric): row.value
        for row in run.rows
        if is_counter(row.metric) and row.value is not None
        for origin in [origins.get(row.subject, "") if row.size is None else ""]
    }
