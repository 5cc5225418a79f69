"""Measure the CPU time of scheduling and cancelling a timer from Python.

In a round, PAIRS timers are scheduled and then cancelled, while OTHERS others are pending. The
program calls a timer's `schedule` and `cancel` for each of them, or the batch forms with BATCHES
timers per call; or it calls a SystemTimer on that timer; or, without any of these timers, the
`call_later` of asyncio's own event loop, and of uvloop's where that is installed. Delays are
uniform from SHORTEST to twice that, so nothing expires.

CPU time of the whole process is counted, that of a service's thread included. The services use the
real clock: SystemTimer's own thread sleeps meanwhile, and the caller applies what was gathered. The
garbage collector is off in a round, as in `timeit`. Each sample is of the second round on a new
timer, so that all memory has been written to before. Afterwards only the others may be pending.
"""

import asyncio
import gc
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from compare.traffic.workloads.catalogue import DELAY, Stream
from compare.trial.bench.measure import Progress, Store, another_fits
from compare.trial.bench.work import SETTLING, UNIT
from compare.trial.oracle.compiled import AgreementError
from compare.trial.replay.contestant import Contestant
from compare.trial.replay.engine import Clock
from compare.trial.results.schema import Row, rows_of
from timers.services.event_loop import LoopFactory
from timers.services.system_timer import SystemTimer

OTHERS = 5_000  # timers pending besides those of a round
PAIRS = 6_000  # timers that a round schedules and cancels, or one batch if that is larger
BATCHES = (1, 10, 1_000, 100_000)  # timers per call; 1 is a call of `schedule` or `cancel`
SHORTEST = 1_000_000  # units of a millisecond
_PER_SECOND = 1_000  # units

TIMER, SERVICE, LOOP = "timer", "system-timer", "call_later"
"""The interface that is called. The contestants of LOOP are the names in `event_loops`."""


class Way(NamedTuple):
    """A way of calling: an interface, and the timers per call."""

    interface: str
    batch: int

    @property
    def name(self) -> str:
        """The subject of its rows in the table of results."""
        return f"{self.interface} {self.batch}"

    @classmethod
    def of(cls, name: str) -> "Way":
        """The way with this name."""
        interface, _, batch = name.rpartition(" ")
        return cls(interface, int(batch))


@dataclass
class Calls:
    """Measures all interfaces in turns, and collects the times in `rows`.

    Each is sampled at most `repeats` times, and fewer times if all samples of one contestant would
    take longer than `budget` CPU seconds. Timers without batch forms are called one by one.
    """

    contestants: Sequence[Contestant]
    repeats: int
    budget: float
    seed: int
    clock: Clock = time.process_time
    rows: list[Row] = field(default_factory=list, init=False)
    tasks: ClassVar[list[str]] = ["calls"]

    @property
    def steps(self) -> int:
        """The number of calls of `progress` by `run`."""
        return self.repeats * (len(self.contestants) + 1)

    def run(
        self, progress: Progress = lambda step: None, store: Store = lambda name, rows: None
    ) -> None:
        """Take all samples. Raises AgreementError for a timer that did not cancel."""
        rounds: dict[str | None, list[float]] = defaultdict(list)  # seconds, by label
        for repeat in range(self.repeats):
            for contestant in [*self.contestants, None]:
                progress(f"calling {contestant.name if contestant else 'event loops'}")
                label = contestant.label if contestant else None
                if not another_fits(rounds[label], self.budget):
                    continue
                started = self.clock()
                for name, way, seconds in self._cases(contestant):
                    ns = seconds() * 1e9 / max(PAIRS, way.batch)
                    self.rows += rows_of(name, way.name, {"call_time": ns}, OTHERS, repeat)
                rounds[label].append(self.clock() - started)
        store(self.tasks[0], self.rows)

    def _cases(
        self, contestant: Contestant | None
    ) -> Iterator[tuple[str, Way, Callable[[], float]]]:
        """The contestant, the way of calling, and a function that takes a sample."""
        if contestant is None:
            for name, factory in event_loops().items():
                yield name, Way(LOOP, 1), partial(self._loop_seconds, factory)
            return
        label = contestant.label
        yield label, Way(TIMER, 1), partial(self._timer_seconds, contestant, 1)
        if not hasattr(contestant.timer_class, "schedule_many"):
            return
        for batch in BATCHES[1:]:
            yield label, Way(TIMER, batch), partial(self._timer_seconds, contestant, batch)
        yield label, Way(SERVICE, 1), partial(self._service_seconds, contestant)

    @cached_property
    def _delays(self) -> np.ndarray[Any, Any]:
        """Delays of the other timers, then of the timers of a round: int64, in units."""
        uniform = Stream(self.seed, 0, 0).uniform(DELAY, OTHERS + max(PAIRS, *BATCHES))
        return SHORTEST + (uniform * SHORTEST).astype(np.int64)

    def _timer_seconds(self, contestant: Contestant, batch: int) -> float:
        timer = contestant.new(UNIT)
        for delay in self._delays[:OTHERS].tolist():
            timer.schedule(delay)
        deadlines = self._delays[OTHERS:][: max(PAIRS, batch)]
        schedule, cancel, calls = timer.schedule, timer.cancel, deadlines.tolist()
        if batch > 1:
            schedule, cancel = timer.schedule_many, timer.cancel_many
            calls = np.split(deadlines, range(batch, deadlines.size, batch))

        def work() -> None:
            handles = [schedule(deadline) for deadline in calls]
            # Each scheme files what it keeps for the end of a tick.
            timer.advance(timer.now + SETTLING)
            for handle in handles:
                cancel(handle)

        seconds = self._second_round(work)
        _check_size(contestant.label, len(timer))
        return seconds

    def _service_seconds(self, contestant: Contestant) -> float:
        with SystemTimer(contestant.new(UNIT)) as service:
            seconds = self._callback_seconds(service.schedule_after)
            _check_size(f"SystemTimer on {contestant.label}", service.size)
        return seconds

    def _loop_seconds(self, factory: LoopFactory) -> float:
        with closing(factory()) as loop:
            # In its turn, the loop removes what was cancelled.
            return self._callback_seconds(
                loop.call_later, lambda: loop.run_until_complete(asyncio.sleep(0))
            )

    def _callback_seconds(
        self, schedule: Callable[..., Any], afterwards: Callable[[], None] = lambda: None
    ) -> float:
        """A sample of a `schedule` that takes a delay and a callback, and returns a call."""
        seconds = (self._delays[: OTHERS + PAIRS] / _PER_SECOND).tolist()
        others, delays = seconds[:OTHERS], seconds[OTHERS:]
        for delay in others:
            schedule(delay, _nothing)

        def work() -> None:
            calls = [schedule(delay, _nothing) for delay in delays]
            for call in calls:
                call.cancel()
            afterwards()

        return self._second_round(work)

    def _second_round(self, work: Callable[[], None]) -> float:
        """The CPU seconds of `work` when it is run again."""
        collecting = gc.isenabled()
        gc.disable()
        try:
            work()
            started = self.clock()
            work()
            return self.clock() - started
        finally:
            if collecting:
                gc.enable()


def _check_size(name: str, pending: int) -> None:
    if pending != OTHERS:
        raise AgreementError(f"{name} has {pending} timers pending; {OTHERS} were not cancelled")


def event_loops() -> dict[str, LoopFactory]:
    """The event loops whose `call_later` is measured: asyncio's own, and uvloop's if installed."""
    loops: dict[str, LoopFactory] = {"asyncio": asyncio.SelectorEventLoop}
    try:
        import uvloop
    except ImportError:
        return loops
    return loops | {"uvloop": uvloop.new_event_loop}


def _nothing() -> None:
    """The callback."""
