"""Measure the constants of all timers for all callers, and store them in the table of results.

The constants of `compare.trial.bench.constants` are metrics of the subject "CALLER, KIND", such as
"python, random", at a number of pending timers: `cost_pair`, ..., `cost_unit`, without a repeat.
Those of each round of samples, stored with its number, show how far to trust them.
`cost_error` is the relative error of a cost that is stated with them.
"""

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from compare.trial.bench.constants import MORE, Constants, Fit, fits, sizes_of
from compare.trial.bench.measure import Progress, Store
from compare.trial.bench.replays import HOSTS, REPLAYS
from compare.trial.bench.steady import RANDOM
from compare.trial.replay.contestant import COMPILED, Contestant
from compare.trial.results.schema import Row, rows_of

MUCH = 1_000
"""With so many timers pending, a replay has one sample: it takes longer."""

METRICS = tuple(f"cost_{name}" for name in Constants._fields)
"""The metrics of the constants, in their order."""

ERROR = "cost_error"


def subject_of(caller: str, kind: str) -> str:
    """The subject of the constants for a caller and a kind of traffic."""
    return f"{caller}, {kind}"


def task_of(caller: str, kind: str) -> str:
    """The name with which the constants for a caller and a kind of traffic are stored."""
    return f"costs-{caller}-{kind}"


def rivals(
    caller: str, contestants: Iterable[Contestant], *, hosts: bool = True
) -> dict[str, Contestant | None]:
    """The contestants that a caller can have, by label: compiled ones if there are any.

    With `hosts`, also the timers that its program has already: None.
    """
    everyone = [*contestants]
    compiled = [each for each in everyone if each.engine == COMPILED]
    if caller != "compiled" and not compiled:
        compiled = [
            each
            for each in everyone
            if caller == "python" or hasattr(each.timer_class, "schedule_many")
        ]
    found: dict[str, Contestant | None] = {each.label: each for each in compiled}
    return found | (dict.fromkeys(HOSTS.get(caller, ())) if hosts else {})


@dataclass
class CallerCosts:
    """Measures the constants of all contestants and hosts, caller by caller, in turns.

    Timers that are too slow at one number of pending timers are left out at larger ones. No number
    exceeds `largest`, but there is always one.
    """

    contestants: Sequence[Contestant]
    repeats: int
    largest: int
    #: CPU seconds, after which there are no more samples than `repeats` where these differ
    seconds: float = 60.0
    kinds: Sequence[str] = (RANDOM,)
    callers: Sequence[str] = tuple(sorted(REPLAYS, key=lambda caller: caller != "python"))

    @property
    def tasks(self) -> list[str]:
        """The names with which `run` stores rows: one for each caller and kind."""
        return [task_of(caller, kind) for kind in self.kinds for caller in self.callers]

    @property
    def steps(self) -> int:
        """The number of calls of `progress` by `run`."""
        return sum(len(self.sizes(caller)) for caller in self.callers) * len(self.kinds)

    def sizes(self, caller: str) -> tuple[int, ...]:
        """The numbers of pending timers."""
        return tuple(
            size for k, size in enumerate(sizes_of(caller)) if size <= self.largest or not k
        )

    def run(
        self, progress: Progress = lambda step: None, store: Store = lambda name, rows: None
    ) -> None:
        """Measure and store."""
        started = time.process_time()
        for kind in self.kinds:
            for caller in self.callers:
                rows: list[Row] = []
                left: Mapping[str, Contestant | None] = rivals(caller, self.contestants)
                for size in self.sizes(caller):
                    progress(f"costs for {caller}, {kind}, {size:,} pending")
                    repeats = self.repeats if size < MUCH else 1
                    more = MORE if time.process_time() - started < self.seconds else 1
                    found = fits({caller: left}, size, kind, repeats, more)
                    left = {label: each for label, each in left.items() if (caller, label) in found}
                    for (_, label), fit in found.items():
                        rows += rows_of_fit(label, subject_of(caller, kind), size, fit)
                store(task_of(caller, kind), rows)


def rows_of_fit(label: str, subject: str, size: int, fit: Fit) -> Iterator[Row]:
    """The rows of the constants of a timer."""
    yield from rows_of(label, subject, _values(fit.constants) | {ERROR: fit.error}, size)
    for number, constants in enumerate(fit.rounds):
        yield from rows_of(label, subject, _values(constants), size, number)


def _values(constants: Constants) -> dict[str, float]:
    return dict(zip(METRICS, constants, strict=True))


def fits_of(rows: Iterable[Row]) -> dict[str, dict[str, dict[int, Fit]]]:
    """Subject -> label -> size -> the constants that are stored in these rows."""
    found = defaultdict[tuple[str, str, int], dict[int | None, dict[str, float]]](dict)
    for row in rows:
        if (row.metric in METRICS or row.metric == ERROR) and row.value is not None:
            key = row.subject, row.contestant, row.size or 0
            found[key].setdefault(row.repeat, {})[row.metric] = row.value
    fits_ = defaultdict[str, dict[str, dict[int, Fit]]](lambda: defaultdict(dict))
    for (subject, label, size), by_repeat in found.items():
        constants = {
            repeat: Constants(*(values.get(name, math.nan) for name in METRICS))
            for repeat, values in by_repeat.items()
        }
        rounds = tuple(
            constants[repeat] for repeat in sorted(k for k in constants if k is not None)
        )
        fits_[subject][label][size] = Fit(constants[None], by_repeat[None][ERROR], rounds)
    return fits_
