"""Measure how late calls are against the offered load, from half of the capacity to beyond it.

A contender is a service or an event loop, in a new process, `python -m compare.trial.bench.overload
NAME SECONDS`, which prints its capacity and the figures of each load. Its callback notes how late
it is and schedules another call. So each call is scheduled and expires once, PENDING calls are
pending at a time, and there is no other work in the process.

The *capacity* is the rate of calls that are all due. A load is a percentage of it: calls are due at
random moments at that rate, whether or not the contender keeps up. Calls that have not run when the
time is up are undelivered. Beyond capacity, their number and the lateness grow for as long as the
load lasts.
"""

import asyncio
import gc
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from compare.base.quantiles import QUANTILES
from compare.trial.bench.callers import LOOPS, event_loops
from compare.trial.bench.measure import Progress, Store
from compare.trial.bench.process import ProcessFailedError, in_new_process
from compare.trial.replay.lateness import Lateness
from compare.trial.results.schema import OVERLOAD, Row, rows_of
from timers.arrays import Int64s
from timers.schemes.cascading_wheel import CascadingWheel
from timers.services.async_timer import AsyncTimer
from timers.services.event_loop import LoopFactory, wheel_event_loop
from timers.services.system_timer import SystemTimer

CAPACITY = "capacity"
"""The metric of the capacity, or of the row that says why a contender was not measured."""

LOADS = (50, 80, 95, 105, 120)  # percent of the capacity
SECONDS = 2.0  # of each load
PENDING = 1_000
SATURATING = 100_000  # calls in a sample of the capacity
SAMPLES = 3
LEAD = 100_000_000  # ns until the first calls are due, in which they are scheduled

Schedule = Callable[..., object]
"""`schedule(moment in seconds, callback, *args)`."""


def random_moments(rate: float, seconds: float, seed: int = 0) -> Int64s:
    """Ascending moments in ns, `rate` per second, uniform within the time."""
    span = int(seconds * 1e9)
    moments = np.random.default_rng(seed).integers(0, span, int(rate * seconds), dtype=np.int64)
    moments.sort()
    return moments


@dataclass
class Load:
    """Calls that are due at ascending moments, in ns after the start.

    Calls that would run at or after `span` ns stay undelivered; None to deliver all.
    """

    moments: Int64s
    span: int | None = None
    now: Callable[[], int] = time.monotonic_ns
    late: list[int] = field(default_factory=list, init=False)  # ns, in the order of delivery
    start: int = field(default=0, init=False)
    ended: int = field(default=0, init=False)

    def begin(self, schedule: Schedule, finish: Callable[[], object]) -> None:
        """Schedule the first calls. `finish` is called once, when none is left or time is up."""
        self.start = self.now() + LEAD
        self._end = sys.maxsize if self.span is None else self.start + self.span
        self._due = (self.start + self.moments).tolist()
        self._schedule, self._finish = schedule, finish
        for k in range(min(PENDING, len(self._due))):
            schedule(self._due[k] / 1e9, self._call, k)

    def _call(self, k: int) -> None:
        now = self.now()
        if now >= self._end:
            if not self.ended:
                self._stop(self._end)
            return
        self.late.append(now - self._due[k])
        following = k + PENDING
        if following < len(self._due):
            self._schedule(self._due[following] / 1e9, self._call, following)
        elif len(self.late) == len(self._due):
            self._stop(now)

    def _stop(self, moment: int) -> None:
        self.ended = moment
        self._finish()

    @property
    def throughput(self) -> float:
        """Calls per second from the start to the end."""
        return len(self.late) / (self.ended - self.start) * 1e9

    def figures(self) -> dict[str, float | None]:
        """The values of the table of results, by metric."""
        late = Lateness.of(np.array(self.late, np.int64)).quantiles(QUANTILES.values())
        return {
            **{
                f"late_{name}_ms": None if ns is None else ns / 1e6
                for name, ns in zip(QUANTILES, late, strict=True)
            },
            "late_end_ms": self.late[-1] / 1e6 if self.late else None,
            "undelivered": self.moments.size - len(self.late),
        }


Measured = tuple[float, Mapping[str, Mapping[str, float | None]]]
"""The capacity, and the figures of each load."""

Contender = Callable[[Load], None]
"""Runs a load until it has finished."""


def run_system_timer(load: Load) -> None:
    """Run it on the thread of a SystemTimer."""
    ended = threading.Event()
    with SystemTimer(CascadingWheel()) as timer:
        load.begin(timer.schedule_at, ended.set)
        ended.wait()


def run_async_timer(load: Load) -> None:
    """Run it on an AsyncTimer on asyncio's loop."""

    async def main() -> None:
        ended = asyncio.Event()
        async with AsyncTimer(CascadingWheel()) as timer:
            load.begin(timer.schedule_at, ended.set)
            await ended.wait()

    asyncio.run(main())


def run_loop(factory: LoopFactory, load: Load) -> None:
    """Run it on an event loop."""

    async def main() -> None:
        ended = asyncio.Event()
        load.begin(asyncio.get_running_loop().call_at, ended.set)
        await ended.wait()

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main())


def contenders() -> dict[str, Contender]:
    """Those that are installed, by name."""
    return {
        "SystemTimer": run_system_timer,
        "AsyncTimer": run_async_timer,
        "wheel_event_loop": partial(run_loop, wheel_event_loop()),
        **{name: partial(run_loop, factory) for name, factory in event_loops().items()},
    }


CONTENDERS = ("SystemTimer", "AsyncTimer", "wheel_event_loop", *LOOPS)
"""The names of all, in the order of tables."""


def capacity_of(run: Contender, now: Callable[[], int] = time.monotonic_ns) -> float:
    """Calls per second when all are due already: the median, after a sample to warm up."""
    samples = []
    for _ in range(1 + SAMPLES):
        load = Load(np.arange(SATURATING, dtype=np.int64), now=now)
        run(load)
        samples.append(load.throughput)
    return statistics.median(samples[1:])


def measure(
    run: Contender, seconds: float, now: Callable[[], int] = time.monotonic_ns
) -> tuple[float, dict[int, dict[str, float | None]]]:
    """The capacity of a contender, and the figures of each load."""
    capacity = capacity_of(run, now)
    figures = {}
    for percent in LOADS:
        moments = random_moments(capacity * percent / 100, seconds, percent)
        load = Load(moments, int(seconds * 1e9), now)
        run(load)
        figures[percent] = load.figures()
    return capacity, figures


def measured(name: str, seconds: float) -> Measured:
    """`measure` in a new process, with loads as strings. Raises ProcessFailedError."""
    done: Measured = in_new_process(__name__, name, seconds)
    return done


@dataclass
class Overload:
    """Measure all contenders, and collect rows of the table of results."""

    seconds: float  # of each load; 0 to measure nothing
    names: Sequence[str] = field(default_factory=lambda: [*contenders()])
    rows: list[Row] = field(default_factory=list, init=False)

    @property
    def steps(self) -> int:
        """The number of calls of `progress` by `run`."""
        return len(self.names) if self.seconds else 0

    @property
    def tasks(self) -> list[str]:
        """The name with which `run` stores rows."""
        return ["overload"] if self.seconds else []

    def run(
        self, progress: Progress = lambda step: None, store: Store = lambda name, rows: None
    ) -> None:
        """Measure."""
        for name in self.names:
            progress(f"overload of {name}")
            try:
                capacity, figures = measured(name, self.seconds)
            except ProcessFailedError as error:
                self.rows.append(Row(name, OVERLOAD, None, CAPACITY, None, None, str(error)))
                continue
            self.rows += rows_of(name, OVERLOAD, {CAPACITY: capacity})
            for percent, values in figures.items():
                self.rows += rows_of(name, OVERLOAD, values, int(percent))
        store(self.tasks[0], self.rows)


if __name__ == "__main__":
    chosen = contenders()[sys.argv[1]]
    gc.collect()
    gc.freeze()
    print(json.dumps(measure(chosen, float(sys.argv[2]))))
