"""Measure the wake-ups of drivers: for each source, and in a simulated hour of an idle program.

The idle program has timers pending, none of which is due within the hour. Its driver sleeps until
the timer's next wake-up, over and over. A wheel wakes up to look at slots or to move timers down.
The hour is measured with several ticks. If it takes longer than the budget, the rest of it is
extrapolated. The sources of a timer share one more budget; a source that takes longer than its part
has no figures. Waking the process itself, which takes some microseconds, is not included.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from compare.traffic.tapes.tape import START, Tape, part
from compare.traffic.workloads.stream import DELAY, Stream
from compare.trial.bench.measure import Progress, Store
from compare.trial.bench.sources import Source
from compare.trial.bench.work import UNIT
from compare.trial.replay.contestant import COMPILED, TICK, Contestant
from compare.trial.replay.engine import first_time
from compare.trial.replay.wakeups import drive
from compare.trial.results.schema import IDLE, Row, rows_of

TICKS = ("1ms", "10ms", "100ms", "1s")
HOUR = 3_600_000  # units
LATEST = 24  # hours to the last deadline
LARGEST = 1_000_000  # timers pending


def idle_tape(size: int, seed: int) -> Tape:
    """Starts of timers whose deadlines are uniform, from one hour away to LATEST hours."""
    hours = 1.0 + Stream(seed, size, 2).uniform(DELAY, size) * (LATEST - 1)
    zeros = np.zeros(size, np.int64)
    ids = np.arange(size, dtype=np.int32)
    deadlines = 1 + np.ceil(hours * HOUR).astype(np.int64)
    return Tape(zeros, np.full(size, START, np.int8), ids, deadlines)


@dataclass
class Idle:
    """Measure all contestants with a kernel, and collect rows of the table of results."""

    contestants: Sequence[Contestant]
    size: int  # timers pending in the idle hour; 0 to leave it out
    sources: Sequence[Source]
    budget: float
    seed: int
    rows: list[Row] = field(default_factory=list, init=False)

    @property
    def steps(self) -> int:
        """The number of calls of `progress` by `run`."""
        return len(self.contestants) * (len(self.sources) + bool(self.size))

    @property
    def tasks(self) -> list[str]:
        """The name with which `run` stores rows."""
        return ["wakeups"] * bool(self.steps)

    def run(
        self, progress: Progress = lambda step: None, store: Store = lambda name, rows: None
    ) -> None:
        """Measure."""
        tape = idle_tape(self.size, self.seed)
        for contestant in self.contestants:
            if self.size:
                progress(f"an idle hour of {contestant.name}")
                self.rows += self._hours(contestant, tape)
            for source in self.sources:
                progress(f"wake-ups of {contestant.name}")
                self.rows += self._of_source(contestant, source)
        store(self.tasks[0], self.rows)

    def _hours(self, contestant: Contestant, tape: Tape) -> Iterator[Row]:
        if contestant.engine != COMPILED:
            return
        ticks = TICKS if TICK in contestant.traits.parameters else ("",)
        for tick in ticks:
            settings = {**contestant.settings, TICK: tick} if tick else contestant.settings
            timer = replace(contestant, settings=settings).new(UNIT, 0, self.size)
            drive(timer, tape, self.size, 0)
            woken = drive(timer, part(tape, 0, 0), 1, HOUR, limit=self.budget)
            share = HOUR / max(woken.now, 1)
            ms = 1e3 * woken.seconds * share
            figures = {"hour_ms": ms, "hour_wakeups": woken.wakeups * share}
            subject = f"{IDLE}, tick {tick}" if tick else IDLE
            yield from rows_of(contestant.label, subject, figures, self.size)

    def _of_source(self, contestant: Contestant, source: Source) -> Iterator[Row]:
        if contestant.engine != COMPILED:
            return
        wakeups = idle = 0
        for shard in range(source.shards):
            tape, id_space = source.load(shard)
            last = int(tape.time[-1]) if tape.time.size else 0
            timer = contestant.new(source.unit, first_time(tape))
            woken = drive(timer, tape, id_space, last, limit=self.budget / len(self.sources))
            if woken.now < last:
                return  # over budget
            wakeups += woken.wakeups
            idle += woken.idle
        figures = {"driver_wakeups": wakeups, "driver_idle": idle}
        yield from rows_of(contestant.label, source.name, figures)
