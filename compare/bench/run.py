"""Runs a comparison: measures the contestants, replays the sources, and stores one run."""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from compare.arguments import check_integer
from compare.bench import work
from compare.bench.calls import Called, Calls
from compare.bench.comparison import Comparison, workloads_of
from compare.bench.machine import surroundings
from compare.bench.measure import Bench, Counted, Memory, Progress, Sample
from compare.bench.slots import Slots
from compare.bench.sources import (
    Source,
    check_same_rows,
    digest_of,
    trace_source,
    workload_source,
)
from compare.bench.store import SCHEMAS, check_store, traits_of, write_run
from compare.bench.task import TASKS
from compare.oracle.compiled import check_agreement, expect
from compare.progress import progress_bar
from compare.replay.contestant import Contestant
from compare.replay.contestant import contestant as parse_contestant
from compare.replay.engine import Clock, OverBudgetError, first_time, replay
from compare.replay.outcome import Outcome
from compare.replay.profile import Profile, profile
from compare.tapes.trace import Trace, open_trace
from compare.workloads.catalogue import LARGEST_SEED, MAX_IN_MEMORY, workload_named
from timers.errors import TimerError
from timers.registry import names

LARGEST_SIZE = 10**7  # 600 MB of tapes and timers
LARGEST_REPEATS = 1000
_STEP_WIDTH = 48  # fits "checking hierarchical-wheel on lognormal-high"


class ComparisonError(TimerError, ValueError):
    """A comparison is empty, contains something twice, or has a number that is out of range."""


def run_comparison(
    options: Comparison, traces: Sequence[Trace] = (), clock: Clock = time.perf_counter
) -> Path:
    """Measure, replay and store; returns the path of the stored run.

    The opened `traces` come before those that the options name. `clock` returns seconds. All
    options are checked before anything is measured, and a comparison that fails stores nothing. If
    stderr is a terminal, a progress bar is shown.

    Raises:
        TimerError: ComparisonError, UnknownTimerError, ParameterError, TraceError, WorkloadError or
            RunError for invalid options; AgreementError for a timer that violates its traits.
    """
    _check(options, traces)
    check_store(options.runs)
    workloads = workloads_of(options, traces)
    for name in workloads:
        workload_named(name)
    opened = [*traces, *map(open_trace, options.traces)]
    _refuse_twice("source", [*(str(trace.path) for trace in opened), *workloads])
    contestants = [parse_contestant(text) for text in options.timers or names()]
    _refuse_twice("timer", [contestant.label for contestant in contestants])
    sources = [trace_source(trace) for trace in opened]
    sources += [workload_source(name, options.operations, options.seed) for name in workloads]
    units = [work.UNIT] * bool(options.sizes) + [source.unit for source in sources]
    for contestant in contestants:
        for unit in units:
            contestant.new(unit)  # raises now, and not after hours of measuring

    bench = Bench(contestants, options.sizes, options.repeats, options.budget, options.seed, clock)
    repeats_of_calls = options.repeats if options.sizes else 0
    # A third of the budget leaves a Python loop one or two samples. They are enough to tell it from
    # compiled timers, and the whole comparison takes no longer for them.
    calls = Calls(contestants, repeats_of_calls, options.budget / 3, options.seed)
    replays = [
        Replays(contestants, source, options.repeats, options.budget, clock) for source in sources
    ]
    measured: list[Bench | Calls | Replays] = [bench, calls, *replays]
    with progress_bar(sum(each.steps for each in measured)) as bar:

        def step(description: str) -> None:
            bar.set_description_str(f"{description:<{_STEP_WIDTH}}", refresh=False)
            bar.update()

        for each in measured:
            each.run(step)
    traits = [traits_of(contestant, units) for contestant in contestants]
    profiles = {str(trace.path): profile(trace) for trace in opened}
    manifest = _manifest(options, workloads, traits, bench, replays, profiles)
    return write_run(options.runs, manifest, _tables(bench, calls, replays))


def _check(options: Comparison, traces: Sequence[Trace]) -> None:
    bounds = [
        *(("size", size, 1, LARGEST_SIZE) for size in options.sizes),
        ("operations", options.operations, 1, MAX_IN_MEMORY),
        ("repeats", options.repeats, 1, LARGEST_REPEATS),
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


def _refuse_twice(kind: str, items: Sequence[Hashable]) -> None:
    for item, times in Counter(items).items():
        if times > 1:
            raise ComparisonError(f"{kind} {item} is given {times} times")


@dataclass
class Replays:
    """Replays one source through all contestants: checks them against the oracle, then times them.

    The contestants take turns. A contestant that takes longer than `budget` seconds when it is
    checked is not timed. The others are timed at least once, and again as long as all of their
    rounds fit into the budget.
    """

    contestants: Sequence[Contestant]
    source: Source
    repeats: int
    budget: float
    clock: Clock
    # By contestant: the outcome of the check, and the seconds of each timed round.
    outcomes: defaultdict[int, Outcome] = field(default_factory=lambda: defaultdict(Outcome))
    seconds: defaultdict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    over_budget: set[int] = field(default_factory=set)
    _digests: dict[tuple[int, int], bytes] = field(default_factory=dict)  # by contestant and shard

    @property
    def steps(self) -> int:
        """How often `run` calls `step`."""
        return len(self.contestants) * (1 + self.repeats) * self.source.shards

    def run(self, step: Progress) -> None:
        """Check, then time. Raises AgreementError."""
        self._check(step)
        for _ in range(self.repeats):
            self._time(step)

    def _check(self, step: Progress) -> None:
        for shard in range(self.source.shards):
            tape, id_space = self.source.load(shard)
            expected = cache(partial(expect, tape, id_space))  # shared by contestants of a rounding
            for index, contestant in enumerate(self.contestants):
                step(f"checking {contestant.name} on {Path(self.source.name).name}")
                if index in self.over_budget:
                    continue
                timer = contestant.new(self.source.unit, first_time(tape), counting=True)
                limit = self.budget - self.outcomes[index].seconds
                try:
                    done = replay(timer, tape, id_space, clock=self.clock, limit=limit)
                except OverBudgetError:
                    self.over_budget.add(index)
                    del self.outcomes[index]
                    continue
                due = expected(contestant.rounding(self.source.unit))
                check_agreement(contestant.label, contestant.traits, tape, due, done)
                self.outcomes[index] += done.outcome
                self._digests[index, shard] = digest_of(done)

    def _time(self, step: Progress) -> None:
        spent = {index: 0.0 for index in self.outcomes if self._can_afford(self.seconds[index])}
        for shard in range(self.source.shards):
            tape, id_space = self.source.load(shard)
            for index, contestant in enumerate(self.contestants):
                step(f"timing {contestant.name} on {Path(self.source.name).name}")
                if index in spent:
                    timer = contestant.new(self.source.unit, first_time(tape))
                    done = replay(timer, tape, id_space, clock=self.clock)
                    check_same_rows(contestant, done, self._digests[index, shard])
                    spent[index] += done.outcome.seconds
        for index, seconds in spent.items():
            self.seconds[index].append(seconds)

    def _can_afford(self, rounds: Sequence[float]) -> bool:
        """Whether another timed round as long as the last one fits into the budget."""
        return not rounds or sum(rounds) + rounds[-1] <= self.budget


# ---- the stored run


def _manifest(
    options: Comparison,
    workloads: Sequence[str],
    traits: Sequence[Mapping[str, Any]],
    bench: Bench,
    replays: Sequence[Replays],
    profiles: Mapping[str, Profile | None],
) -> dict[str, Any]:
    sources = [_source_entry(replayed, profiles) for replayed in replays]
    return {
        "command": list(options.command),
        **surroundings(),
        "parameters": {
            **{name: value for name, value in asdict(options).items() if name != "command"},
            "traces": [source["name"] for source in sources if source["name"] not in workloads],
            "timers": [entry["label"] for entry in traits],
            "workloads": workloads,
            "longest_delay": work.LONGEST_DELAY,
            "settling": work.SETTLING,
            "hold_pairs": work.HOLD_PAIRS,
            "pairs_per_unit": work.PAIRS_PER_UNIT,
            "min_timed": work.MIN_TIMED,
            "min_fired": work.MIN_FIRED,
        },
        "sources": sources,
        "agreement": {
            "checked": "Before anything was timed, every expiry of every tape was checked against"
            " the closed form that the timer's traits declare, with the order and the counts. The"
            " timed runs fired the same rows. A tape on which a task was over budget is cut short,"
            " so it was checked at smaller sizes only.",
            "contestants": len(traits),
            "tapes": bench.tapes
            + sum(len(replayed.outcomes) * replayed.source.shards for replayed in replays),
            "expiries": bench.expiries
            + sum(done.fired for replayed in replays for done in replayed.outcomes.values()),
        },
        "traits": traits,
    }


def _source_entry(replays: Replays, profiles: Mapping[str, Profile | None]) -> dict[str, Any]:
    source = replays.source
    trace_profile = profiles.get(source.name)
    # At a touch, an inexact timer may re-arm where an exact one starts a timer, or the reverse.
    scheduled = [
        outcome.scheduled
        for index, outcome in replays.outcomes.items()
        if replays.contestants[index].rounding(source.unit).exact
    ]
    return {
        "name": source.name,
        "unit": source.unit,
        "timers": scheduled[0] if scheduled else source.counts["starts"],
        **source.counts,
        "details": dict(source.details),
        "profile": trace_profile._asdict() if trace_profile else None,
    }


def _tables(bench: Bench, calls: Calls, replays: Sequence[Replays]) -> dict[str, pa.Table]:
    labels = [contestant.label for contestant in bench.contestants]
    samples = sorted(
        bench.samples,
        key=lambda s: (s.size, TASKS.index(s.task), s.contestant, s.repeat or 0),
    )

    def row(figure: Sample | Counted | Memory | Slots | Called, **more: Any) -> dict[str, Any]:
        label = None if figure.contestant is None else labels[figure.contestant]
        return {**figure._asdict(), **more, "contestant": label}

    tables: dict[str, list[dict[str, Any]]] = {
        "samples": [row(sample, **sample.task._asdict()) for sample in samples],
        "counters": [
            row(counted, **counted.task._asdict(), count=counted.value) for counted in bench.counted
        ],
        "replays": [entry for replayed in replays for entry in _replay_rows(labels, replayed)],
        "lateness": [
            {
                "contestant": labels[index],
                "source": replayed.source.name,
                "lateness": value,
                "width": width,
                "timers": timers,
            }
            for replayed in replays
            for index, outcome in replayed.outcomes.items()
            for value, width, timers in outcome.lateness.bins()
        ],
        "memory": [
            row(memory, capacity=memory.size, nbytes_per_timer=memory.nbytes / memory.size)
            for memory in bench.memory
        ],
        "slots": [row(slots) for slots in bench.slots],
        "calls": [row(called) for called in calls.samples],
    }
    return {name: pa.Table.from_pylist(rows, schema=SCHEMAS[name]) for name, rows in tables.items()}


def _replay_rows(labels: Sequence[str], replays: Replays) -> Iterator[dict[str, Any]]:
    source = replays.source
    common = {
        "source": source.name,
        "source_json": json.dumps(dict(source.details)),
        "unit": source.unit,
        "operations": source.counts["operations"],
    }
    for index, label in enumerate(labels):
        if index in replays.over_budget:
            yield {"contestant": label, **common}
        for repeat, seconds in enumerate(replays.seconds[index]):
            outcome = replace(replays.outcomes[index], seconds=seconds)
            yield {
                "contestant": label,
                **common,
                **outcome.row(),
                "repeat": repeat,
                "ns_per_operation": outcome.ns_per_operation,
            }
