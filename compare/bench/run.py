"""Runs a comparison: measures the contestants, replays the sources, and stores one run."""

import json
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
from compare.bench.contestant import Contestant, parse_contestant
from compare.bench.machine import surroundings
from compare.bench.measure import Bench, Counted, Memory, Progress, Sample
from compare.bench.predict import predict_replay
from compare.bench.slots import Slots
from compare.bench.sources import (
    Source,
    checked_replay,
    timed_replay,
    trace_source,
    workload_source,
)
from compare.bench.store import (
    MEASURED,
    SCHEMAS,
    TOO_LONG,
    check_store,
    parameters_json,
    traits_of,
    write_run,
)
from compare.bench.task import TASKS
from compare.oracle.compiled import expect
from compare.replay.engine import Clock
from compare.replay.outcome import Outcome
from compare.tapes.tape import Tape
from compare.workloads.catalogue import LARGEST_SEED, MOST, workload_named
from timers.errors import ParameterError, TimerError
from timers.registry import names

LARGEST_SIZE = 10**7  # 600 MB of tapes and timers
MOST_REPEATS = 1000
_STEP_WIDTH = 48  # "checking hierarchical-wheel on lognormal-high" and a little


class ComparisonError(TimerError, ValueError):
    """A comparison asks for a number out of range, for something twice, or for nothing."""


def run_comparison(options: Comparison, clock: Clock = time.perf_counter) -> Path:
    """Measure by a clock of seconds, replay and store; returns the path of the stored run.

    All options are checked before anything is measured, and a comparison that fails stores nothing.
    A progress bar is shown where stderr is a terminal.

    Raises:
        TimerError: ComparisonError, UnknownTimerError, ParameterError, TraceError, WorkloadError or
            RunError for options that cannot be used; AgreementError for a timer that does not do
            what its traits declare.
    """
    _check(options)
    check_store(options.runs)
    workloads = workloads_of(options)
    for name in workloads:
        workload_named(name)
    _refuse_twice("source", [*options.traces, *workloads])
    sources = [trace_source(path) for path in options.traces]
    sources += [workload_source(name, options.operations, options.seed) for name in workloads]
    units = [source.unit for source in sources]
    contestants = [_contestant(text, units) for text in options.timers or names()]
    _refuse_twice("timer", [contestant.label for contestant in contestants])

    limits = options.repeats, options.budget
    bench = Bench(contestants, options.sizes, *limits, options.seed, clock)
    replays = [
        _Replays([one.in_unit(source.unit) for one in contestants], source, *limits, clock)
        for source in sources
    ]
    with tqdm(
        total=bench.steps + sum(replay.steps for replay in replays),
        disable=not sys.stderr.isatty(),
        leave=False,
        dynamic_ncols=True,
        bar_format="{desc} {percentage:3.0f}% {bar} {elapsed}",
    ) as bar:

        def step(what: str) -> None:  # has begun
            bar.set_description_str(f"{what:<{_STEP_WIDTH}}", refresh=False)
            bar.update()

        bench.run(step)
        for replay in replays:
            replay.run(step)
    traits = [traits_of(contestant, units) for contestant in contestants]
    return write_run(
        options.runs, _manifest(options, traits, bench, replays), _tables(traits, bench, replays)
    )


def _contestant(text: str, units: Sequence[str]) -> Contestant:
    """A contestant for traces of these units; without a trace a unit is a millisecond.

    Where that is too coarse for its tick, a unit is a microsecond.
    """
    try:
        return parse_contestant(text, ["ms", *units])
    except ParameterError:
        return parse_contestant(text, ["us", *units])


def _check(options: Comparison) -> None:
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
    if not (options.sizes or options.traces or workloads_of(options)):
        raise ComparisonError("there is nothing to compare: no size, no trace, no workload")


def _refuse_twice(what: str, given: Sequence[Hashable]) -> None:
    for item, times in Counter(given).items():
        if times > 1:
            raise ComparisonError(f"{what} {item} is given {times} times")


@dataclass
class _Replays:
    """One source, replayed through all contestants."""

    contestants: Sequence[Contestant]
    source: Source
    repeats: int
    budget: float
    clock: Clock
    # By contestant: the predicted seconds, those of each repeat over all shards, and what was done.
    too_long: dict[int, float] = field(default_factory=dict)
    seconds: dict[int, list[float]] = field(default_factory=dict)
    outcomes: defaultdict[int, Outcome] = field(default_factory=lambda: defaultdict(Outcome))

    @property
    def steps(self) -> int:
        """How often `run` calls its argument."""
        return len(self.contestants) * (1 + (1 + self.repeats) * self.source.shards)

    def run(self, step: Progress) -> None:
        """Predict, check against the oracle, and time. Raises AgreementError."""
        for shard in range(self.source.shards):
            tape, id_space = self.source.load(shard)
            if shard == 0:
                self._predict(tape, id_space, step)
            digests = self._check(tape, id_space, step)
            self._time(tape, id_space, digests, step)

    def _predict(self, tape: Tape, id_space: int, step: Progress) -> None:
        """Decide what is run, and how often: the same for all shards."""
        for c, contestant in self._each(step, "estimating"):
            predicted = predict_replay(contestant, tape, id_space, self.budget, self.clock)
            predicted *= self.source.counts["operations"] / max(tape.time.size, 1)
            if predicted > self.budget:
                self.too_long[c] = predicted
            else:
                affordable = int(self.budget / predicted) if predicted else self.repeats
                self.seconds[c] = [0.0] * min(self.repeats, affordable)

    def _check(self, tape: Tape, id_space: int, step: Progress) -> dict[int, bytes]:
        expected = cache(partial(expect, tape, id_space))  # of a rounding, which several may share
        digests: dict[int, bytes] = {}
        for c, contestant in self._each(step, "checking"):
            if c in self.seconds:
                due = expected(contestant.rounding)
                outcome, digests[c] = checked_replay(contestant, tape, id_space, due)
                self.outcomes[c] += outcome
        return digests

    def _time(self, tape: Tape, id_space: int, digests: dict[int, bytes], step: Progress) -> None:
        for repeat in range(self.repeats):
            for c, contestant in self._each(step, "timing"):
                if repeat < len(self.seconds.get(c, ())):
                    self.seconds[c][repeat] += timed_replay(
                        contestant, tape, id_space, digests[c], clock=self.clock
                    )

    def _each(self, step: Progress, doing: str) -> Iterator[tuple[int, Contestant]]:
        for c, contestant in enumerate(self.contestants):
            step(f"{doing} {contestant.name} on {Path(self.source.name).name}")
            yield c, contestant


# ---- what is stored


def _manifest(
    options: Comparison,
    traits: Sequence[Mapping[str, Any]],
    bench: Bench,
    replays: Sequence[_Replays],
) -> dict[str, Any]:
    return {
        "command": list(options.command),
        **surroundings(),
        "parameters": {
            **{name: value for name, value in asdict(options).items() if name != "command"},
            "timers": [entry["label"] for entry in traits],
            "workloads": workloads_of(options),
            "longest_delay": work.LONGEST_DELAY,
            "settling": work.SETTLING,
            "hold_pairs": work.HOLD_PAIRS,
            "pairs_per_unit": work.PAIRS_PER_UNIT,
            "least_timed": work.LEAST_TIMED,
            "least_fired": work.LEAST_FIRED,
        },
        "sources": [_described(replay) for replay in replays],
        "agreement": {
            "checked": "Before anything was timed, every expiry of every tape was checked against"
            " the closed form that the timer's traits declare, with the order and the counts. The"
            " timed runs fired the same rows.",
            "contestants": len(traits),
            "tapes": bench.tapes + sum(len(one.seconds) * one.source.shards for one in replays),
            "expiries": bench.expiries
            + sum(outcome.fired for one in replays for outcome in one.outcomes.values()),
        },
        "traits": traits,
    }


def _described(replay: _Replays) -> dict[str, Any]:
    source = replay.source
    # A touch may start a new timer, or none, where an exact timer re-arms the old one.
    scheduled = [
        replay.outcomes[c].scheduled for c in replay.seconds if replay.contestants[c].rounding.exact
    ]
    return {
        "name": source.name,
        "unit": source.unit,
        "timers": scheduled[0] if scheduled else source.counts["starts"],
        **source.counts,
        "details": dict(source.details),
    }


def _tables(
    traits: Sequence[Mapping[str, Any]], bench: Bench, replays: Sequence[_Replays]
) -> dict[str, pa.Table]:
    labels = [{**entry, "parameters": parameters_json(entry["parameters"])} for entry in traits]
    samples = sorted(
        bench.samples,
        key=lambda one: (one.size, TASKS.index(one.task), one.contestant, one.repeat or 0),
    )

    def row(one: Sample | Counted | Memory | Slots, **more: Any) -> dict[str, Any]:
        return {**labels[one.contestant], **one._asdict(), **more}

    def status(one: Sample) -> str:
        return MEASURED if one.predicted_seconds is None else TOO_LONG

    rows: dict[str, list[dict[str, Any]]] = {
        "samples": [row(one, **one.task._asdict(), status=status(one)) for one in samples],
        "counters": [row(one, **one.task._asdict(), count=one.value) for one in bench.counted],
        "replays": [each for replay in replays for each in _replay_rows(labels, replay)],
        "lateness": [
            {
                **labels[c],
                "source": replay.source.name,
                "lateness": value,
                "width": width,
                "timers": timers,
            }
            for replay in replays
            for c in replay.seconds
            for value, width, timers in replay.outcomes[c].lateness.bins()
        ],
        "memory": [
            row(one, capacity=one.size, nbytes_per_timer=one.nbytes / one.size)
            for one in bench.memory
        ],
        "slots": [row(one) for one in bench.slots],
    }
    return {name: pa.Table.from_pylist(found, schema=SCHEMAS[name]) for name, found in rows.items()}


def _replay_rows(labels: Sequence[Mapping[str, Any]], replay: _Replays) -> Iterator[dict[str, Any]]:
    source = replay.source
    common = {
        "source": source.name,
        "source_json": json.dumps(dict(source.details)),
        "unit": source.unit,
        "operations": source.counts["operations"],
    }
    for c, label in enumerate(labels):
        if c in replay.too_long:
            yield {**label, **common, "status": TOO_LONG, "predicted_seconds": replay.too_long[c]}
            continue
        for repeat, seconds in enumerate(replay.seconds[c]):
            outcome = replace(replay.outcomes[c], seconds=seconds)
            yield {
                **label,
                **common,
                **outcome.row(),
                "status": MEASURED,
                "repeat": repeat,
                "ns_per_operation": outcome.ns_per_operation,
            }
