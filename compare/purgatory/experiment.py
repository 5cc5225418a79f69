"""The whole experiment: both designs at rising rates, in real time and compiled."""

import math
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from tqdm import tqdm

from compare.arguments import check_integer
from compare.bench.machine import surroundings
from compare.bench.store import SCHEMAS, check_store, write_run
from compare.purgatory import figures
from compare.purgatory.figures import NONE, PURGING, SCANNING, Row
from compare.purgatory.options import INTERVALS, Experiment
from compare.purgatory.simulation import simulate
from compare.purgatory.traffic import LOADS, MICROSECONDS, Traffic, traffic
from compare.purgatory.trial import Trial, measure
from timers.errors import TimerError
from timers.registry import timer_class

LARGEST_RATE = 10**7
LARGEST_TRIAL = 10**7  # requests


class ExperimentError(TimerError, ValueError):
    """A number that is out of range for the experiment."""


def run_experiment(options: Experiment) -> Path:
    """Run all trials, store them as a run, and return its path.

    Raises:
        TimerError: ExperimentError, UnknownTimerError or RunError for options that cannot be used.
    """
    _check(options)
    check_store(options.runs)
    timer_class(options.timer)
    bar = tqdm(
        disable=not sys.stderr.isatty(), leave=False, bar_format="{desc} {elapsed}", miniters=1
    )
    with bar:
        rows = list(_rows(options, bar.set_description_str))
    given = {name: value for name, value in asdict(options).items() if name != "command"}
    manifest = {
        "command": list(options.command),
        **surroundings(),
        "parameters": given,
        "sources": [],
        "agreement": {},
        "traits": [],
    }
    trials = pa.Table.from_pylist(rows, schema=SCHEMAS["purgatory"])
    return write_run(options.runs, manifest, {"purgatory": trials})


def _check(options: Experiment) -> None:
    bounds = [
        *(("rate", rate, 100, LARGEST_RATE) for rate in options.rates),
        *(("limit", limit, 0, LARGEST_TRIAL) for limit in options.limits),
        ("memory", options.memory_mib, 1, 2**20),
        ("requests", options.requests, 1, LARGEST_TRIAL),
        ("repeats", options.repeats, 1, 1000),
        ("refinements", options.refinements, 0, 10),
        ("seed", options.seed, 0, 2**63 - 1),
    ]
    for bound in bounds:
        check_integer(ExperimentError, *bound)
    if not options.rates:
        raise ExperimentError("no rate is given: name at least one")
    if not 0.1 <= options.seconds <= LARGEST_TRIAL / max(options.rates):
        raise ExperimentError(
            f"seconds must lie in [0.1, {LARGEST_TRIAL / max(options.rates):g}] at a rate of "
            f"{max(options.rates)}, not {options.seconds:g}"
        )


@dataclass(frozen=True)
class _Case:
    """A design under a load."""

    options: Experiment
    load: str
    design: str

    @property
    def timer(self) -> str:
        return "delay-queue" if self.design == SCANNING else self.options.timer

    def trial(self, kind: str, rate: int, interval: int | None = None) -> Row:
        """Run one trial in real time; its row."""
        options = self.options
        memory = options.memory_mib << 20 if kind == figures.MEMORY else None
        interval = INTERVALS.get(self.design, 0) if interval is None else interval
        trial = Trial(self.design, self.timer, interval, memory)
        requests = max(int(rate * options.seconds), 1)
        key = {"kind": kind, "load": self.load, "rate": rate, **asdict(trial)}
        return key | measure(trial, _traffic(self.load, rate, requests, options.seed))

    def simulations(self, rate: int) -> Iterator[Row]:
        """Run one compiled trial; a row for each sample."""
        options = self.options
        requests = _traffic(self.load, rate, options.requests, options.seed)
        for _ in range(options.repeats):
            found = simulate(self.design, requests, timer=self.timer)
            yield {
                "kind": figures.COMPILED,
                "load": self.load,
                "design": self.design,
                "timer": self.timer,
                "rate": rate,
                "interval": INTERVALS[self.design],
                "requests": options.requests,
                "cpu_us": found.seconds / options.requests * MICROSECONDS,
                "share_expired": found.share_expired,
                "counters": list(found.counters.items()),
            }
            if found.seconds > 1.0:
                break


@lru_cache(maxsize=4)
def _traffic(load: str, rate: int, requests: int, seed: int) -> Traffic:
    return traffic(load, rate, requests, seed)


def _rows(options: Experiment, step: Any) -> Iterator[Row]:
    """Every trial, in the order in which they are run."""
    rates = sorted(options.rates)
    cases = [_Case(options, load, design) for load in LOADS for design in (PURGING, SCANNING)]
    for case in cases:
        for rate in rates:
            step(f"compiled: {case.design}, {case.load}, {rate}/s")
            samples = list(case.simulations(rate))
            yield from samples
            if rate * min(sample["cpu_us"] for sample in samples) > MICROSECONDS:
                break  # one processor could not do it

    run: dict[tuple[_Case, int, int], list[Row]] = {}

    def tried(case: _Case, kind: str, rate: int, interval: int | None = None) -> list[Row]:
        """Repeat a trial, until it is settled that a design does not keep up with the rate.

        For the sweep of limits, a trial that was run before is not run again.
        """
        key = case, rate, INTERVALS[case.design] if interval is None else interval
        if kind == figures.LIMIT and key in run:
            return [row | {"kind": kind} for row in run[key]]
        found = run[key] = []
        for number in range(options.repeats):
            step(f"{kind}: {case.design}, {case.load}, {rate}/s, {number + 1}")
            found.append(case.trial(kind, rate, interval))
            failures = sum(not figures.keeps_up(row) for row in found)
            if kind == figures.RATE and 2 * failures >= options.repeats:
                break
        return found

    none = _Case(options, next(iter(LOADS)), NONE)
    for rate in rates:
        yield from tried(none, figures.RATE, rate)
    for case in cases:
        kept_up, too_fast = 0, 0
        for rate in rates:
            trials = tried(case, figures.RATE, rate)
            yield from trials
            if not figures.mostly_keeps_up(trials):
                too_fast = rate
                break
            kept_up = rate
        for _ in range(options.refinements if kept_up and too_fast else 0):
            rate = round(math.sqrt(kept_up * too_fast) / 1000) * 1000
            trials = tried(case, figures.RATE, rate)
            yield from trials
            if figures.mostly_keeps_up(trials):
                kept_up = rate
            else:
                too_fast = rate
    new, old = (_Case(options, "low", design) for design in (PURGING, SCANNING))
    rate = rates[min(2, len(rates) - 1)]
    yield from tried(new, figures.LIMIT, rate)
    for limit in options.limits:
        yield from tried(old, figures.LIMIT, rate, limit)
    # With the limit at which the old design scans least.
    yield from tried(old, figures.MEMORY, rate, max(options.limits, default=None))
    yield from tried(new, figures.MEMORY, rate)
