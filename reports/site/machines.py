"""Where runs of several machines agree on the timers, and where not."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from compare.base import formats
from compare.trial.bench.task import TASKS
from compare.trial.results.contributed import machine_title
from compare.trial.results.store import Run, RunError
from reports.counts import counted_difference
from reports.diff import Subject, samples_of
from reports.rankings import Rankings, rankings
from reports.statistics import Estimate


class Pair(NamedTuple):
    """Two runs: whether they rank the timers alike, and whether they counted the same work."""

    first: Run
    second: Run
    ranking: Rankings | None  # None if they have no task in common
    counts: str  # in words

    @property
    def is_one_machine(self) -> bool:
        """Whether both runs are of the same machine."""
        return machine_title(self.first.manifest) == machine_title(self.second.manifest)


class Cell(NamedTuple):
    """A task, and the fastest timers of each run, with those that are tied with them."""

    title: str
    leaders: Sequence[Sequence[str]]

    @property
    def is_shared(self) -> bool:
        """Whether one timer leads, or is tied with the leader, in all runs that have the task."""
        known = [set(labels) for labels in self.leaders if labels]
        return bool(known and set.intersection(*known))


def pairs(runs: Sequence[Run]) -> list[Pair]:
    """The newest run beside each other one."""
    return [_pair(runs[0], other) for other in runs[1:]]


def _pair(first: Run, second: Run) -> Pair:
    try:
        ranking = rankings(first, second)
    except RunError:
        ranking = None
    try:
        counts = counted_difference(first, second).counts
        differ = sum(count.before != count.after for count in counts)
        text = f"{formats.count(differ)} of {formats.count(len(counts))} differ" if differ else ""
        text = text or f"all {formats.count(len(counts))} equal"
    except RunError:
        text = "not comparable: other operations"
    return Pair(first, second, ranking, text)


def cells(runs: Sequence[Run]) -> list[Cell]:
    """Every task that two runs or more have, with growing numbers of timers."""
    found = [_leaders(run) for run in runs]
    subjects = sorted({subject for leaders in found for subject in leaders}, key=_place)
    return [
        Cell(subject_title(subject), [leaders.get(subject, ()) for leaders in found])
        for subject in subjects
        if sum(subject in leaders for leaders in found) > 1
    ]


_TITLES = {task.name: task.title for task in TASKS}


def _place(subject: Subject) -> tuple[int, str, int]:
    """Tasks in their order, by size, then workloads by name."""
    order = [*_TITLES].index(subject.task) if subject.task in _TITLES else len(_TITLES)
    return order, subject.task, subject.size or 0


def subject_title(subject: Subject) -> str:
    """A task with its number of pending timers, or a replayed workload."""
    title = _TITLES.get(subject.task, subject.task)
    return f"{title}, {formats.size(subject.size)}" if subject.size is not None else title


def _leaders(run: Run) -> Mapping[Subject, Sequence[str]]:
    remarks = {
        entry["label"]: " (not exact)"
        for entry in run.manifest["contestants"]
        if (entry["lateness_low"], entry["lateness_high"]) != (0, 0)
    }
    columns: dict[Subject, dict[str, Estimate]] = {}
    for (subject, label), repeats in samples_of(run).items():
        columns.setdefault(subject, {})[label] = Estimate.of(repeats.values())
    return {
        subject: [
            label + remarks.get(label, "")
            for label, time in sorted(column.items(), key=lambda item: item[1].value)
            if time.tied_with(min(column.values(), key=lambda other: other.value))
        ]
        for subject, column in columns.items()
    }
