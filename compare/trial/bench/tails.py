"""Measure the tails: the latency of each operation and each advance of a tape.

Two kinds of tapes are replayed: the holding tape of `compare.trial.bench.work` for each number of
pending timers, with an advance for each unit until all timers have fired; and each source, with an
advance whenever the time of the operations changes.

Each contestant first replays a tape with counters, and its expiries are checked against the oracle.
Then it replays the tape several times without counters, in turns with the others. An operation's
latency is the least of all rounds, so that what the machine did in one round is not counted as the
timer's.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from pathlib import Path
from time import thread_time
from typing import Any, NamedTuple

import numpy as np

from compare.base.quantiles import TAIL
from compare.traffic.tapes.tape import Tape
from compare.trial.bench.measure import Progress, Store, another_fits
from compare.trial.bench.sources import Source
from compare.trial.bench.work import UNIT, tapes_of
from compare.trial.oracle.compiled import NEVER, AgreementError, Expected, expect
from compare.trial.replay.contestant import COMPILED, Contestant
from compare.trial.replay.engine import OverBudgetError, first_time
from compare.trial.replay.latencies import KINDS, Latencies, latencies_of
from compare.trial.replay.lateness import Lateness
from compare.trial.replay.ticks import Ticks, compiled_ticks, python_ticks
from compare.trial.results.schema import OVER_BUDGET, TAILS, Row, rows_of
from timers.arrays import Int64s
from timers.limits import LIMIT
from timers.rounding import AnyRounding

ADVANCE = "advance"


def ticks_for(contestant: Contestant) -> Ticks:
    """The calibrated clock for a contestant. Raises TicksError."""
    return compiled_ticks() if contestant.engine == COMPILED else python_ticks()


@dataclass
class Tail:
    """The latencies of a contestant, in ns, and its slowest advance."""

    latencies: dict[str, Lateness] = field(
        default_factory=lambda: {kind: Lateness() for kind in (*KINDS, ADVANCE)}
    )
    slowest: int = -1
    worst: dict[str, int] = field(default_factory=dict)
    growths: int = 0
    rounds: int = 0  # the most of all shards

    def add(self, series: "_Series") -> None:
        """Add the latencies on a shard."""
        if series.least is None:
            return
        least, clock = series.least, ticks_for(series.contestant)
        advances = least.advances
        spent = {kind: least.ticks_of(kind) for kind in KINDS} | {ADVANCE: advances["ticks"]}
        for kind, ticks in spent.items():
            self.latencies[kind] += Lateness.of(clock.nanoseconds(ticks)).coarse()
        self.growths += least.growths
        self.rounds = max(self.rounds, len(series.rounds))
        if advances.size and advances["ticks"].max() > self.slowest:
            k = int(advances["ticks"].argmax())
            self.slowest = int(advances["ticks"][k])
            self.worst = {
                "worst_fired": int(advances["fired"][k]),
                "worst_refiled": int(series.refiled[k]),
                "worst_moment": int(advances["moment"][k]),
            }

    def figures(self) -> dict[str, float | None]:
        """The values of the table of results, by metric."""
        quantiles = {
            f"{kind}_{name}": value
            for kind, latency in self.latencies.items()
            for name, value in zip(TAIL, latency.quantiles(TAIL.values()), strict=True)
        }
        return {**quantiles, **self.worst, "growths": self.growths, "rounds": self.rounds}


@dataclass
class Tails:
    """Measure the tails of all contestants, and collect them as rows of the table of results.

    A contestant gets fewer than `repeats` rounds of a tape if they would take longer than `budget`
    seconds. If the check takes longer, it is not measured there, or at larger sizes.
    """

    contestants: Sequence[Contestant]
    sizes: Sequence[int]
    sources: Sequence[Source]
    repeats: int
    budget: float
    seed: int
    rows: list[Row] = field(default_factory=list, init=False)

    @property
    def steps(self) -> int:
        """The number of calls of `progress` by `run`."""
        tapes = len(self.sizes) + sum(source.shards for source in self.sources)
        return len(self.contestants) * (1 + self.repeats) * tapes

    @property
    def tasks(self) -> list[str]:
        """The names with which `run` stores rows."""
        return [
            *(f"tails-{size}" for size in sorted(self.sizes)),
            *(f"tails-replay-{number}" for number in range(len(self.sources))),
        ]

    def entries(self) -> list[dict[str, Any]]:
        """The manifest's entries for the clocks. Raises TicksError."""
        return [asdict(clock) for clock in dict.fromkeys(map(ticks_for, self.contestants))]

    def run(
        self, progress: Progress = lambda step: None, store: Store = lambda name, rows: None
    ) -> None:
        """Measure, smaller sizes first. Raises AgreementError, TicksError."""
        tapes = [_Tapes.of_size(size, self.seed) for size in sorted(self.sizes)]
        tapes += map(_Tapes.of_source, self.sources)
        over_budget: set[str] = set()
        for name, each in zip(self.tasks, tapes, strict=True):
            if each.size is None:
                over_budget = set()
            rows = [*self._rows(each, over_budget, progress)]
            self.rows += rows
            store(name, rows)

    def _rows(self, tapes: "_Tapes", over_budget: set[str], progress: Progress) -> Iterator[Row]:
        tails = {contestant.label: Tail() for contestant in self.contestants}
        for shard in range(tapes.shards):
            tape, id_space = tapes.load(shard)
            expected = cache(partial(expect, tape, id_space))
            series: dict[str, _Series] = {}
            for contestant in self.contestants:
                progress(f"checking {contestant.name} {tapes.where}")
                label = contestant.label
                if label in over_budget:
                    continue
                series[label] = _Series(contestant, tapes, tape, id_space)
                try:
                    series[label].check(expected, self.budget / tapes.shards)
                except OverBudgetError:
                    over_budget.add(label)
                    del series[label]
            for _ in range(self.repeats):
                for contestant in self.contestants:
                    progress(f"tails of {contestant.name} {tapes.where}")
                    one = series.get(contestant.label)
                    if one and another_fits(one.rounds, self.budget / tapes.shards):
                        one.time()
            for label, one in series.items():
                tails[label].add(one)
        for label, tail in tails.items():
            if label in over_budget:
                metric = f"{ADVANCE}_max"
                yield Row(label, tapes.subject, tapes.size, metric, None, None, OVER_BUDGET)
            else:
                yield from rows_of(label, tapes.subject, tail.figures(), tapes.size)


class _Tapes(NamedTuple):
    """Tapes to measure, and where their figures belong in the table of results."""

    subject: str
    size: int | None
    unit: str
    step: int  # units that an advance covers at most
    shards: int
    load: Callable[[int], tuple[Tape, int]]

    @classmethod
    def of_size(cls, size: int, seed: int) -> "_Tapes":
        return cls(TAILS, size, UNIT, 1, 1, lambda shard: (tapes_of(size, seed).holding, size))

    @classmethod
    def of_source(cls, source: Source) -> "_Tapes":
        return cls(source.name, None, source.unit, LIMIT, source.shards, source.load)

    @property
    def where(self) -> str:
        return f"at {self.size:,}" if self.size else f"on {Path(self.subject).name}"


@dataclass
class _Series:
    """The rounds of a contestant on a tape."""

    contestant: Contestant
    tapes: _Tapes
    tape: Tape
    id_space: int
    rounds: list[float] = field(default_factory=list)  # seconds of each
    refiled: Int64s = field(init=False)  # by advance
    least: Latencies | None = field(default=None, init=False)
    _digest: bytes = field(default=b"", init=False)

    def check(self, expected: Callable[[AnyRounding], Expected], limit: float) -> None:
        """Replay with counters. Raises AgreementError, OverBudgetError."""
        grown = self.contestant.new(UNIT, 0, 1)
        for deadline in (1, 2):  # it grows, so that no code is loaded when others grow
            grown.schedule(deadline)
        done = self._replay(counting=True, limit=limit)
        due = expected(self.contestant.rounding(self.tapes.unit)).fired_at
        if not np.array_equal(np.sort(due[due != NEVER]), done.fired["fired_at"]):
            raise AgreementError(
                f"{self.contestant.label} fired other timers than the oracle while it grew"
            )
        self._digest, self.refiled = done.digest, done.advances["refiled"].copy()

    def time(self) -> None:
        """Replay without counters, and keep the least times. Raises AgreementError."""
        started = thread_time()
        done = self._replay()
        if done.digest != self._digest:
            raise AgreementError(f"{self.contestant.label} fired different rows when timed")
        done.fired = done.fired[:0].copy()
        if self.least is None:
            self.least = done
        else:
            self.least.keep_least(done)
        self.rounds.append(thread_time() - started)

    def _replay(self, *, counting: bool = False, limit: float = math.inf) -> Latencies:
        start = first_time(self.tape)
        timer = self.contestant.new(self.tapes.unit, start, counting=counting)
        step = self.tapes.step
        return latencies_of(timer, self.tape, self.id_space, step=step, limit=limit)
