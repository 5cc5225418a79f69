"""Whether two runs rank the timers alike: the test of whether a comparison is reproducible.

In each cell, a task with its number of pending timers or a replayed source, all pairs of timers are
compared. A run decides a pair unless the intervals of the two medians overlap, or one of them has
fewer than FEW samples. The runs agree on a pair that both decide alike, and contradict each other
on one that both decide, but not alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from compare.trial.results.store import Run, RunError
from reports.diff import Subject, samples_of
from reports.statistics import FEW, Estimate


@dataclass(frozen=True)
class Contradiction:
    """A pair of timers of which each is faster in one of the runs."""

    subject: Subject
    first: str  # is faster in the first run
    second: str
    times: tuple[float, float, float, float]  # medians in ns: in the first run, in the second run


@dataclass(frozen=True)
class Rankings:
    """The pairs of all cells that both runs have."""

    cells: int
    agreed: int  # pairs
    tied: int  # pairs that at least one run does not decide
    contradictions: Sequence[Contradiction]
    paths: tuple[str, str]  # of the runs

    @property
    def decided(self) -> int:
        """The number of pairs that both runs decide."""
        return self.agreed + len(self.contradictions)


def rankings(first: Run, second: Run) -> Rankings:
    """Compare the rankings of two runs. O(cells * timers**2).

    Raises:
        RunError: the runs have no cell with two timers in common; says what they lack.
    """
    columns = [_columns_of(run) for run in (first, second)]
    cells = agreed = tied = 0
    contradictions = []
    shared: set[str] = set()
    for subject, before in columns[0].items():
        after = columns[1].get(subject, {})
        labels = [label for label in before if label in after]
        shared.update(labels)
        cells += len(labels) > 1
        for a, b in combinations(labels, 2):
            if _undecided(before[a], before[b]) or _undecided(after[a], after[b]):
                tied += 1
                continue
            faster, slower = (a, b) if before[a].value < before[b].value else (b, a)
            if after[faster].value < after[slower].value:
                agreed += 1
                continue
            times = (before[faster], before[slower], after[faster], after[slower])
            medians = tuple(time.value for time in times)
            contradictions.append(Contradiction(subject, faster, slower, medians))  # type: ignore[arg-type]  # of four
    if not cells:
        runs = f"{first.path} and {second.path}"
        if first.path == second.path:
            raise RunError(f"{first.path} has no task with two timers, so there is no ranking")
        if len(shared) == 1:
            raise RunError(f"{runs} have only {min(shared)} in common; a ranking needs two timers")
        raise RunError(f"{runs} have no task with two timers in common, so there is no ranking")
    return Rankings(cells, agreed, tied, contradictions, (str(first.path), str(second.path)))


def _undecided(one: Estimate, other: Estimate) -> bool:
    return min(one.n, other.n) < FEW or one.tied_with(other)


def _columns_of(run: Run) -> dict[Subject, dict[str, Estimate]]:
    columns: dict[Subject, dict[str, Estimate]] = {}
    for (subject, label), repeats in samples_of(run).items():
        columns.setdefault(subject, {})[label] = Estimate.of(repeats.values())
    return columns
