"""Time timers of other languages beside the project's own, on the tapes of a benchmark.

At each size, every peer is first checked on both tapes of `compare.trial.bench.work`. One that
disagrees, fails or is not built gets a row with the reason, and is not timed; the others go on.
Then all take turns. A turn is a new process, whose warm-up is not counted. Expiry is the drain
after hold: a peer advances unit by unit or from wake-up to wake-up, as it declares, and the
project's timers from wake-up to wake-up. Wall time is compared.
"""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from compare.trial.bench.measure import Progress, Store, another_fits
from compare.trial.bench.task import BY_EVENT, CANCEL_ALL, HOLD, INSERT, Task
from compare.trial.bench.work import SCENARIOS, UNIT, ScenarioRun, Tapes, tapes_of
from compare.trial.peers.catalogue import Entry
from compare.trial.peers.protocol import PeerError, PhaseTime
from compare.trial.peers.run import DEFAULT_TIMEOUT, WARM_UP
from compare.trial.replay.contestant import Contestant
from compare.trial.replay.engine import Clock, OverBudgetError
from compare.trial.results.schema import OVER_BUDGET, Row, rows_of

TASKS = (INSERT, CANCEL_ALL, HOLD, BY_EVENT)
SUBJECTS = {f"peer {task.operation}": task.operation for task in TASKS}
"""The subjects of rows, with the operation of each."""
METRIC = "peer_time"
WARM_UP_OPERATIONS = 500_000  # timers in the warm-up of a turn, at least; compilers need them


def warm_up(size: int) -> int:
    """The number of rounds that are not counted in a turn."""
    return min(WARM_UP, 1 + WARM_UP_OPERATIONS // size)


@dataclass
class PeerBench:
    """Check and time the chosen peers, and time the project's timers in turns with them.

    A peer or timer gets fewer than `repeats` turns if they would take longer than `budget` seconds.
    A peer that failed, or that did not end in `timeout` seconds, is not run at larger sizes.
    """

    peers: Sequence[Entry]
    contestants: Sequence[Contestant]
    sizes: Sequence[int]
    repeats: int
    budget: float
    seed: int
    clock: Clock = time.perf_counter
    timeout: float = DEFAULT_TIMEOUT
    rows: list[Row] = field(default_factory=list, init=False)
    _problems: dict[str, str] = field(default_factory=dict, init=False)  # by name

    @property
    def steps(self) -> int:
        """The number of calls of `progress` by `run`."""
        both = len(self.peers) + len(self.contestants)
        return (len(self.peers) + both * self.repeats) * len(self.sizes)

    @property
    def tasks(self) -> list[str]:
        """The names with which `run` stores rows: one for each size."""
        return [f"peers-{size}" for size in sorted(self.sizes)]

    def entries(self) -> list[dict[str, Any]]:
        """The manifest's entry for each peer; of one that cannot describe itself, what is known."""
        return [self._entry(entry) for entry in self.peers]

    @staticmethod
    def _entry(entry: Entry) -> dict[str, Any]:
        known = {"name": entry.name, "language": entry.language.name}
        try:
            described = entry.description() if entry.is_ready else None
        except PeerError:
            described = None
        return {
            **known,
            "library": described.library_text if described else None,
            "scheme": described.scheme if described else None,
            "rounding": described.rounding.text if described else None,
        }

    def run(
        self, progress: Progress = lambda step: None, store: Store = lambda name, rows: None
    ) -> None:
        """Check and time, smaller sizes first."""
        for size, name in zip(sorted(self.sizes), self.tasks, strict=True):
            tapes, before = tapes_of(size, self.seed), len(self.rows)
            spent: dict[str, list[float]] = defaultdict(list)
            for entry in self.peers:
                progress(f"checking {entry.name} at {size:,}")
                self._attempt(entry, tapes, self._check)
            for repeat in range(self.repeats):
                for entry in self.peers:
                    progress(f"timing {entry.name} at {size:,}")
                    if another_fits(spent[entry.name], self.budget):
                        self._attempt(entry, tapes, self._time, repeat, spent[entry.name])
                for contestant in self.contestants:
                    progress(f"timing {contestant.name} at {size:,}")
                    if another_fits(spent[contestant.label], self.budget):
                        self._time_own(contestant, tapes, repeat, spent[contestant.label])
            store(name, self.rows[before:])

    def _attempt(self, entry: Entry, tapes: Tapes, work: Any, *arguments: Any) -> None:
        """Work with a peer, unless it failed before; if it fails, store why."""
        if entry.name in self._problems:
            return
        try:
            problem = work(entry, tapes, *arguments)
        except PeerError as error:
            problem = str(error).removeprefix(f"{entry.name}: ")
        if problem:
            self._problems[entry.name] = problem
            subject = next(iter(SUBJECTS))
            self.rows.append(Row(entry.name, subject, tapes.size, METRIC, None, None, problem))

    def _check(self, entry: Entry, tapes: Tapes) -> str:
        peer = entry.peer(self.timeout)
        if peer.description.real_time:
            return "runs in real time, so its expiries cannot be checked"
        for tape in (tapes.filling, tapes.holding):
            if not peer.description.allows(tape):
                return "cannot do this tape, by its own description"
            if fault := peer.first_fault(tape, tapes.size):
                return f"disagrees: {fault.text}"
        return ""

    def _time(self, entry: Entry, tapes: Tapes, repeat: int, spent: list[float]) -> str:
        """A turn of a peer: insert and cancel on one tape, hold and expiry on the other."""
        peer, size, started = entry.peer(self.timeout), tapes.size, self.clock()

        def times(tape: Any) -> list[PhaseTime]:
            phases, rounds = (0, size, size + 1), {"rounds": 1, "warm_up": warm_up(size)}
            return peer.time(tape, size, unit=UNIT, phases=phases, **rounds)

        insert, _, cancel, _ = times(tapes.filling)
        *_, hold, drain = times(tapes.holding)
        phases = {INSERT: insert, CANCEL_ALL: cancel, HOLD: hold, BY_EVENT: drain}
        for task, phase in phases.items():
            done = drain.expired if task == BY_EVENT else tapes.operations(task)
            self._store(entry.name, task, tapes, phase.wall_ns / max(done, 1), repeat)
        spent.append(self.clock() - started)
        return ""

    def _time_own(
        self, contestant: Contestant, tapes: Tapes, repeat: int, spent: list[float]
    ) -> None:
        """A turn of a timer of the project, which `Bench` has checked on the same tapes."""
        started = self.clock()
        for scenario in SCENARIOS[:2]:
            run = ScenarioRun(contestant, tapes, self.clock, limit=self.budget)
            for task in scenario:
                try:
                    operations, seconds = run.run(task)
                except OverBudgetError:
                    row = (contestant.label, f"peer {task.operation}", tapes.size, METRIC)
                    self.rows.append(Row(*row, None, None, OVER_BUDGET))
                    break
                if task in TASKS and not (task == INSERT and scenario is SCENARIOS[1]):
                    each = seconds * 1e9 / max(operations, 1)
                    self._store(contestant.label, task, tapes, each, repeat)
        spent.append(self.clock() - started)

    def _store(self, name: str, task: Task, tapes: Tapes, ns: float, repeat: int) -> None:
        subject = f"peer {task.operation}"
        self.rows += rows_of(name, subject, {METRIC: ns}, tapes.size, repeat)
