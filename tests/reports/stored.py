"""Writes stored runs with made-up figures."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from compare.trial.bench.callers import METRICS
from compare.trial.bench.constants import Constants, Fit
from compare.trial.bench.costs import rows_of_fit, subject_of
from compare.trial.bench.task import Task
from compare.trial.purgatory import figures
from compare.trial.results.schema import MEMORY, OVER_BUDGET, Row, rows_of
from compare.trial.results.store import COMPARISON, PURGATORY, REPLAY, Writer, new_run

BASE = {
    "command": ["wheelwork", "compare"],
    "commit": None,
    "dirty": None,
    "versions": {},
    "machine": {"cpu": "Example CPU"},
    "parameters": {},
    "sources": [],
    "agreement": {},
    "contestants": [],
}


def times(
    metric: str, contestant: str, subject: str, size: int | None, samples: Iterable[float] | None
) -> Iterator[Row]:
    """A row for each sample of a time; without samples, one that says that it is over budget."""
    if samples is None:
        yield Row(contestant, subject, size, metric, None, None, OVER_BUDGET)
    for repeat, ns in enumerate(samples or ()):
        yield from rows_of(contestant, subject, {metric: ns}, size, repeat)


def task_rows(
    contestant: str,
    task: Task,
    size: int,
    samples: Iterable[float] | None,
    **each: float,
) -> Iterator[Row]:
    """The samples of a task, and counts per operation."""
    yield from times("time", contestant, task.name, size, samples)
    yield from rows_of(contestant, task.name, each, size)


def caller_rows(
    contestant: str, caller: str, size: int, samples: Iterable[Iterable[float]]
) -> Iterator[Row]:
    """The samples of the costs of a caller: of pairs, of fires and of steps."""
    for metric, values in zip(METRICS, samples, strict=True):
        yield from times(metric, contestant, caller, size, values)


ROUNDS = (0.99, 1.01)  # of constants, beside those of all samples


def fit_rows(
    contestant: str, caller: str, kind: str, size: int, constants: Constants, error: float = 0.1
) -> Iterator[Row]:
    """The constants of a cost for a caller and a kind of traffic."""
    rounds = tuple(Constants(*(by * each for each in constants)) for by in ROUNDS)
    fit = Fit(constants, error, rounds)
    yield from rows_of_fit(contestant, subject_of(caller, kind), size, fit)


def replay_rows(
    contestant: str, source: str, samples: Iterable[float] | None, **counts: float | None
) -> Iterator[Row]:
    """The samples of a replay, and its counts."""
    yield from times("replay_time", contestant, source, None, samples)
    yield from rows_of(contestant, source, counts)


def memory_rows(
    contestant: str, capacity: int, pauses: Iterable[float] = (), **nbytes: float
) -> Iterator[Row]:
    """Bytes for each timer, and the milliseconds of growing."""
    yield from rows_of(contestant, MEMORY, nbytes, capacity)
    yield from times("pause", contestant, MEMORY, capacity, pauses)


def trial_rows(trials: Iterable[dict[str, Any]]) -> Iterator[Row]:
    """The rows of trials, in which equal cases are repeats."""
    seen: dict[tuple[Any, ...], int] = {}
    for trial in trials:
        names = "kind", "load", "design", "rate" if trial["kind"] == "rate" else "interval"
        case = tuple(trial[name] for name in names)
        seen[case] = seen.get(case, -1) + 1
        yield from figures.stored(trial, seen[case])


def store(root: Path, rows: Iterable[Row], **manifest: Any) -> Path:
    """Store a run of rows, and return its path."""
    listed = list(rows)
    kind = PURGATORY if any(row.contestant in figures.DESIGNS for row in listed) else COMPARISON
    with new_run(root, kind, BASE | manifest, ["all"]) as writer:
        writer.write("all", listed)
        writer.finish()
    return writer.path


def store_grid(path: Path, rows: Iterable[Row], **manifest: Any) -> Path:
    """Store the summary of a replayed grid in a directory, and return its path."""
    path.mkdir(parents=True)
    writer = Writer(path, REPLAY, BASE | manifest, ["replay"], "cannot write")
    writer.write("replay", list(rows))
    writer.finish()
    return path
