"""Runs a comparison: measures the contestants, replays the sources, and stores one run."""

import json
import math
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from tqdm import tqdm

from compare.arguments import check_integer
from compare.bench import work
from compare.bench.comparison import Comparison, workloads_of
from compare.bench.machine import surroundings
from compare.bench.measure import Bench, Counted, Memory, Progress, Sample
from compare.bench.slots import Slots
from compare.bench.sources import Source, digest_of, trace_source, workload_source
from compare.bench.store import SCHEMAS, check_store, traits_of, write_run
from compare.bench.task import TASKS
from compare.oracle.compiled import AgreementError, check_agreement, expect
from compare.replay.contestant import Contestant, contestant
from compare.replay.engine import Clock, OverBudgetError, Replay, first_time, replay
from compare.replay.outcome import Outcome
from compare.tapes.tape import Tape
from compare.tapes.trace import Trace, open_trace
from compare.workloads.catalogue import LARGEST_SEED, MOST, workload_named
from timers.errors import TimerError
from timers.registry import names

LARGEST_SIZE = 10**7  # 600 MB of tapes and timers
MOST_REPEATS = 1000
_STEP_WIDTH = 48  # "checking hierarchical-wheel on lognormal-high" and a little


class ComparisonError(TimerError, ValueError):
    """A comparison asks for a number out of range, for something twice, or for nothing."""


def run_comparison(
    options: Comparison, traces: Sequence[Trace] = (), clock: Clock = time.perf_counter
) -> Path:
    """Measure by a clock of seconds, replay and store; returns the path of the stored run.

    `traces` are opened already; those that the options name follow. All options are checked before
    anything is measured, and a comparison that fails stores nothing. A progress bar is shown where
    stderr is a terminal.

    Raises:
        TimerError: ComparisonError, UnknownTimerError, ParameterError, TraceError, WorkloadError or
            RunError for options that cannot be used; AgreementError for a timer that does not do
            what its traits declare.
    """
    _check(options, traces)
    check_store(options.runs)
    workloads = workloads_of(options, traces)
    for name in workloads:
        workload_named(name)
    opened = [*traces, *map(open_trace, options.traces)]
    _refuse_twice("source", [*(str(trace.path) for trace in opened), *workloads])
    contestants = [contestant(text) for text in options.timers or names()]
    _refuse_twice("timer", [one.label for one in contestants])
    sources = [trace_source(trace) for trace in opened]
    sources += [workload_source(name, options.operations, options.seed) for name in workloads]
    units = [work.UNIT] * bool(options.sizes) + [source.unit for source in sources]
    for one in contestants:
        for unit in units:
            one.new(unit)  # now, and not when the smaller sizes have been measured

    bench = Bench(contestants, options.sizes, options.repeats, options.budget, options.seed, clock)
    replays = [
        Replays(contestants, source, options.repeats, options.budget, clock) for source in sources
    ]
    with tqdm(
        total=bench.steps + sum(one.steps for one in replays),
        disable=not sys.stderr.isatty(),
        leave=False,
        dynamic_ncols=True,
        bar_format="{desc} {percentage:3.0f}% {bar} {elapsed}",
    ) as bar:

        def step(what: str) -> None:  # has begun
            bar.set_description_str(f"{what:<{_STEP_WIDTH}}", refresh=False)
            bar.update()

        bench.run(step)
        for replayed in replays:
            replayed.run(step)
    traits = [traits_of(one, units) for one in contestants]
    manifest = _manifest(options, workloads, traits, bench, replays)
    return write_run(options.runs, manifest, _tables(bench, replays))


def _check(options: Comparison, traces: Sequence[Trace]) -> None:
    bounds = [
        *(("size", size, 1, LARGEST_SIZE) for size in options.sizes),
        ("operations", options.operations, 1, MOST),
        ("repeats", options.repeats, 1, MOST_REPEATS),
        ("seed", options.seed, 0, LARGEST_SEED),
    ]
    for bound in bounds:
        check_integer(ComparisonError, *bound)
    if not (isinstance(options.budget, (int, float)) and 0.0 < options.budget < float("inf")):
        raise ComparisonError(
            f"budget must be a positive number of seconds, not {options.budget!r:.40}"
        )
    _refuse_twice("size", options.sizes)
    if not (options.sizes or options.traces or traces or workloads_of(options, traces)):
        raise ComparisonError("there is nothing to compare: no size, no trace, no workload")


def _refuse_twice(what: str, given: Sequence[Hashable]) -> None:
    for item, times in Counter(given).items():
        if times > 1:
            raise ComparisonError(f"{what} {item} is given {times} times")


@dataclass
class Replays:
    """One source, replayed through all contestants: first checked against the oracle, then timed.

    The contestants take turns in each round. A contestant that takes longer than `budget` seconds
    when it is checked is not timed; the others are timed at least once, and again for as long as
    all of their rounds fit into the budget.
    """

    contestants: Sequence[Contestant]
    source: Source
    repeats: int
    budget: float
    clock: Clock
    # By contestant: what it did when it was checked, and the seconds of each timed round.
    outcomes: defaultdict[int, Outcome] = field(default_factory=lambda: defaultdict(Outcome))
    seconds: defaultdict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    over_budget: set[int] = field(default_factory=set)
    _digests: dict[tuple[int, int], bytes] = field(default_factory=dict)  # by contestant and shard

    @property
    def steps(self) -> int:
        """How often `run` calls its argument."""
        return len(self.contestants) * (1 + self.repeats) * self.source.shards

    def run(self, step: Progress) -> None:
        """Check, and time. Raises AgreementError."""
        self._check(step)
        for repeat in range(self.repeats):
            self._time(repeat, step)

    def _check(self, step: Progress) -> None:
        for shard in range(self.source.shards):
            tape, id_space = self.source.load(shard)
            expected = cache(partial(expect, tape, id_space))  # by rounding, which several share
            for c, one in self._each(step, "checking"):
                if c in self.over_budget:
                    continue
                limit = self.budget - self.outcomes[c].seconds
                try:
                    done = self._replay(one, tape, id_space, counting=True, limit=limit)
                except OverBudgetError:
                    self.over_budget.add(c)
                    del self.outcomes[c]
                    continue
                due = expected(one.rounding(self.source.unit))
                check_agreement(one.label, one.traits, tape, due, done)
                self.outcomes[c] += done.outcome
                self._digests[c, shard] = digest_of(done)

    def _time(self, repeat: int, step: Progress) -> None:
        spent = {c: 0.0 for c in self.outcomes if self._affords(c, repeat)}
        for shard in range(self.source.shards):
            tape, id_space = self.source.load(shard)
            for c, one in self._each(step, "timing"):
                if c in spent:
                    done = self._replay(one, tape, id_space)
                    if digest_of(done) != self._digests[c, shard]:
                        raise AgreementError(
                            f"{one.label} fired other rows when timed than when checked"
                        )
                    spent[c] += done.outcome.seconds
        for c, seconds in spent.items():
            self.seconds[c].append(seconds)

    def _affords(self, c: int, repeat: int) -> bool:
        """Whether another timed round fits into the budget, if it takes as long as the last one."""
        rounds = self.seconds[c]
        return repeat == 0 or (len(rounds) == repeat and sum(rounds) + rounds[-1] <= self.budget)

    def _replay(
        self,
        one: Contestant,
        tape: Tape,
        id_space: int,
        *,
        counting: bool = False,
        limit: float = math.inf,
    ) -> Replay:
        timer = one.new(self.source.unit, first_time(tape), counting=counting)
        return replay(timer, tape, id_space, clock=self.clock, limit=limit)

    def _each(self, step: Progress, doing: str) -> Iterator[tuple[int, Contestant]]:
        for c, one in enumerate(self.contestants):
            step(f"{doing} {one.name} on {Path(self.source.name).name}")
            yield c, one


# ---- what is stored


def _manifest(
    options: Comparison,
    workloads: Sequence[str],
    traits: Sequence[Mapping[str, Any]],
    bench: Bench,
    replays: Sequence[Replays],
) -> dict[str, Any]:
    return {
        "command": list(options.command),
        **surroundings(),
        "parameters": {
            **{name: value for name, value in asdict(options).items() if name != "command"},
            "traces": [one.source.name for one in replays if one.source.name not in workloads],
            "timers": [entry["label"] for entry in traits],
            "workloads": workloads,
            "longest_delay": work.LONGEST_DELAY,
            "settling": work.SETTLING,
            "hold_pairs": work.HOLD_PAIRS,
            "pairs_per_unit": work.PAIRS_PER_UNIT,
            "least_timed": work.LEAST_TIMED,
            "least_fired": work.LEAST_FIRED,
        },
        "sources": [_described(one) for one in replays],
        "agreement": {
            "checked": "Before anything was timed, every expiry of every tape was checked against"
            " the closed form that the timer's traits declare, with the order and the counts. The"
            " timed runs fired the same rows.",
            "contestants": len(traits),
            "tapes": bench.tapes + sum(len(one.outcomes) * one.source.shards for one in replays),
            "expiries": bench.expiries
            + sum(outcome.fired for one in replays for outcome in one.outcomes.values()),
        },
        "traits": traits,
    }


def _described(replays: Replays) -> dict[str, Any]:
    source = replays.source
    # A touch may start a new timer, or none, where an exact timer re-arms the old one.
    scheduled = [
        outcome.scheduled
        for c, outcome in replays.outcomes.items()
        if replays.contestants[c].rounding(source.unit).exact
    ]
    return {
        "name": source.name,
        "unit": source.unit,
        "timers": scheduled[0] if scheduled else source.counts["starts"],
        **source.counts,
        "details": dict(source.details),
    }


def _tables(bench: Bench, replays: Sequence[Replays]) -> dict[str, pa.Table]:
    labels = [one.label for one in bench.contestants]
    samples = sorted(
        bench.samples,
        key=lambda one: (one.size, TASKS.index(one.task), one.contestant, one.repeat or 0),
    )

    def row(one: Sample | Counted | Memory | Slots, **more: Any) -> dict[str, Any]:
        return {**one._asdict(), **more, "contestant": labels[one.contestant]}

    rows: dict[str, list[dict[str, Any]]] = {
        "samples": [row(one, **one.task._asdict()) for one in samples],
        "counters": [row(one, **one.task._asdict(), count=one.value) for one in bench.counted],
        "replays": [each for one in replays for each in _replay_rows(labels, one)],
        "lateness": [
            {
                "contestant": labels[c],
                "source": one.source.name,
                "lateness": value,
                "width": width,
                "timers": timers,
            }
            for one in replays
            for c, outcome in one.outcomes.items()
            for value, width, timers in outcome.lateness.bins()
        ],
        "memory": [
            row(one, capacity=one.size, nbytes_per_timer=one.nbytes / one.size)
            for one in bench.memory
        ],
        "slots": [row(one) for one in bench.slots],
    }
    return {name: pa.Table.from_pylist(found, schema=SCHEMAS[name]) for name, found in rows.items()}


def _replay_rows(labels: Sequence[str], replays: Replays) -> Iterator[dict[str, Any]]:
    source = replays.source
    common = {
        "source": source.name,
        "source_json": json.dumps(dict(source.details)),
        "unit": source.unit,
        "operations": source.counts["operations"],
    }
    for c, label in enumerate(labels):
        if c in replays.over_budget:
            yield {"contestant": label, **common}
        for repeat, seconds in enumerate(replays.seconds[c]):
            outcome = replace(replays.outcomes[c], seconds=seconds)
            yield {
                "contestant": label,
                **common,
                **outcome.row(),
                "repeat": repeat,
                "ns_per_operation": outcome.ns_per_operation,
            }
