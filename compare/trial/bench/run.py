"""Runs a comparison: measures the contestants, replays the sources, and stores one run."""

import os
import time
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from compare.base.arguments import check_integer
from compare.base.progress import progress_bar
from compare.traffic.tapes.trace import open_trace
from compare.traffic.workloads.catalogue import LARGEST_SEED, MAX_IN_MEMORY, workload_named
from compare.trial.bench import work
from compare.trial.bench.callers import OWN_CLOCK, Callers
from compare.trial.bench.comparison import ALL_TAILS, NO_TAILS, Comparison, workloads_of
from compare.trial.bench.costs import CallerCosts
from compare.trial.bench.idle import LARGEST, Idle
from compare.trial.bench.machine import surroundings
from compare.trial.bench.measure import Bench, Measurement, Progress, Store, another_fits
from compare.trial.bench.overload import PENDING, SECONDS, Overload
from compare.trial.bench.peers import PeerBench
from compare.trial.bench.process import ProcessMemory
from compare.trial.bench.sources import (
    Source,
    check_same_rows,
    digest_of,
    trace_source,
    workload_source,
)
from compare.trial.bench.steady import KINDS, RANDOM
from compare.trial.bench.tails import Tails
from compare.trial.bench.threads import MOST_PENDING, ThreadsBench
from compare.trial.oracle.compiled import check_agreement, expect
from compare.trial.peers.catalogue import entries_named
from compare.trial.replay.contestant import Contestant
from compare.trial.replay.contestant import contestant as parse_contestant
from compare.trial.replay.engine import Clock, OverBudgetError, first_time, replay
from compare.trial.replay.outcome import Outcome
from compare.trial.results.schema import OVER_BUDGET, Row, rows_of
from compare.trial.results.store import COMPARISON, check_store, contestant_entry, new_run
from timers.errors import ParameterError
from timers.registry import names

LARGEST_SIZE = 10**7  # 600 MB of tapes and timers
LARGEST_REPEATS = 1000
QUICK_SIZE = 100_000  # timers pending, for quick tails: the largest size up to this
COST_ROUNDS = 2  # samples of each replay that the costs of callers follow from
COST_SECONDS = 20  # CPU, times the budget, for more of them where they differ
_STEP_WIDTH = 48  # fits "checking hierarchical-wheel on lognormal-high"


def run_comparison(
    options: Comparison,
    clock: Clock = time.thread_time,
    finished: Store = lambda task, rows: None,
) -> Path:
    """Measure, replay and store; returns the path of the stored run.

    `clock` returns seconds, by default of the thread's CPU time. `finished` is called with each
    finished task and its rows. All options are checked before
    anything is measured. A comparison that fails stores nothing; of one that is interrupted, the
    finished tasks stay: a size, the callers, or a source. If stderr is a terminal, a progress bar
    is shown.

    Raises:
        TimerError: ParameterError, UnknownTimerError, TraceError, WorkloadError or
            RunError for invalid options; AgreementError for a timer that violates its traits;
            TicksError if this machine's clock cannot measure tails.
    """
    _check(options)
    check_store(options.runs)
    workloads = workloads_of(options)
    for name in workloads:
        workload_named(name)
    opened = list(map(open_trace, options.traces))
    for trace in opened:
        if not trace.totals["rows"]:
            raise ParameterError(f"{trace.path} has no operations, so there is nothing to replay")
    _refuse_twice("source", [*(str(trace.path) for trace in opened), *workloads])
    chosen = entries_named(options.peers)
    contestants = [parse_contestant(text) for text in options.timers or names()]
    _refuse_twice("timer", [contestant.label for contestant in contestants])
    sources = [trace_source(trace) for trace in opened]
    sources += [workload_source(name, options.operations, options.seed) for name in workloads]
    units = [work.UNIT] * bool(options.sizes) + [source.unit for source in sources]
    for contestant in contestants:
        for unit in units:
            contestant.new(unit)  # raises now, and not after hours of measuring

    repeats, budget, seed = options.repeats, options.budget, options.seed
    largest = max(options.sizes, default=1)
    bench = Bench(contestants, options.sizes, repeats, budget, seed, clock)
    costs = CallerCosts(
        contestants,
        repeats=min(repeats, COST_ROUNDS),
        largest=largest,
        seconds=COST_SECONDS * budget,
        kinds=tuple(KINDS) if options.all_delays else (RANDOM,),
    )
    # In real time; `costs` has the other callers.
    callers = Callers(contestants, repeats, budget, seed, largest, callers=OWN_CLOCK)
    peers = PeerBench(
        chosen,
        contestants,
        options.sizes,
        repeats=repeats,
        budget=budget,
        seed=seed,
        clock=clock,
        timeout=options.timeout,
    )
    threads = ThreadsBench(
        chosen,
        size=min(largest, MOST_PENDING),
        repeats=repeats,
        budget=budget,
        seed=seed,
        timeout=options.timeout,
    )
    replays = [
        Replays(contestants, source, f"replay-{number}", repeats, budget, clock)
        for number, source in enumerate(sources)
    ]
    sizes, tailed = _tailed(options, sources)
    tails = Tails(contestants, sizes, tailed, repeats, budget, seed)
    size, woken = _idle(options, sources)
    idle = Idle(contestants, size, woken, budget, seed)
    process = ProcessMemory(contestants, size)
    overload = Overload(SECONDS if size >= PENDING else 0.0)
    sized: list[Measurement] = [costs, bench, callers, *([peers] if chosen else [])]
    wanted = [*(sized if options.sizes else []), *([threads] if options.threads else [])]
    wanted += [*replays, tails, idle, process, overload]
    measured = [each for each in wanted if each.tasks]
    contestant_entries = [contestant_entry(contestant, units) for contestant in contestants]
    manifest = _manifest(options, workloads, contestant_entries, replays)
    manifest["peers"] = peers.entries()
    manifest["clocks"] = tails.entries() if tails.tasks else []
    tasks = [task for each in measured for task in each.tasks]
    with (
        new_run(options.runs, COMPARISON, manifest, tasks) as writer,
        progress_bar(sum(each.steps for each in measured)) as bar,
    ):

        def step(description: str) -> None:
            bar.set_description_str(f"{description:<{_STEP_WIDTH}}", refresh=False)
            bar.update()

        def store(task: str, rows: Sequence[Row]) -> None:
            writer.write(task, rows)
            finished(task, rows)

        wall = cpu = 0.0
        for each in measured:
            started = time.perf_counter(), _cpu_time()
            each.run(step, store)
            if each is not overload:  # which waits for calls that are due
                wall += time.perf_counter() - started[0]
                cpu += _cpu_time() - started[1]
        checked = [outcome for replayed in replays for outcome in replayed.checked.values()]
        replayed_tapes = sum(len(each.checked) * each.source.shards for each in replays)
        agreement = manifest["agreement"] | {
            "contestants": len(contestants),
            "tapes": bench.tapes + replayed_tapes,
            "expiries": bench.expiries + sum(outcome.fired for outcome in checked),
        }
        writer.finish(
            seconds={"wall": wall, "cpu": cpu},
            agreement=agreement,
            sources=[_source_entry(each) for each in replays],
        )
    return writer.path


def _cpu_time() -> float:
    """The CPU seconds of this process and of those that it has started and that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _tailed(
    options: Comparison, sources: Sequence[Source]
) -> tuple[Sequence[int], Sequence[Source]]:
    """The sizes and sources whose tails are measured."""
    if options.tails == ALL_TAILS:
        return options.sizes, sources
    if options.tails == NO_TAILS:
        return (), ()
    quick = sorted(options.sizes, key=lambda size: (size > QUICK_SIZE, -size))
    return quick[:1], sources[: len(options.traces)]


def _idle(options: Comparison, sources: Sequence[Source]) -> tuple[int, Sequence[Source]]:
    """The number of timers of an idle program, and the sources whose wake-ups are counted."""
    if options.tails == NO_TAILS:
        return 0, ()
    fitting = [size for size in options.sizes if size <= LARGEST]
    return max(fitting, default=0) if options.tails == ALL_TAILS else 0, sources


def _check(options: Comparison) -> None:
    bounds = [
        *(("size", size, 1, LARGEST_SIZE) for size in options.sizes),
        ("operations", options.operations, 1, MAX_IN_MEMORY),
        ("repeats", options.repeats, 1, LARGEST_REPEATS),
        ("seed", options.seed, 0, LARGEST_SEED),
    ]
    for bound in bounds:
        check_integer(ParameterError, *bound)
    for name, seconds in (("budget", options.budget), ("timeout", options.timeout)):
        if not (isinstance(seconds, (int, float)) and 0.0 < seconds < float("inf")):
            raise ParameterError(
                f"{name} must be a positive number of seconds, not {seconds!r:.40}"
            )
    _refuse_twice("size", options.sizes)
    if options.peers and not options.sizes:
        raise ParameterError("peers are timed at the sizes, but no size is given")
    if options.threads and not options.peers:
        raise ParameterError("threads are measured with peers, but no peer is given")
    if not (options.sizes or options.traces or workloads_of(options)):
        raise ParameterError("there is nothing to compare: no size, no trace, no workload")


def _refuse_twice(kind: str, items: Sequence[Hashable]) -> None:
    for item, times in Counter(items).items():
        if times > 1:
            raise ParameterError(f"{kind} {item} is given {times} times")


@dataclass
class Replays:
    """Replays one source through all contestants: checks them against the oracle, then times them.

    The contestants take turns. A contestant that takes longer than `budget` seconds when it is
    checked is not timed. The others are timed at least once, and again as long as all of their
    rounds fit into the budget.
    """

    contestants: Sequence[Contestant]
    source: Source
    name: str  # of the task of the stored run
    repeats: int
    budget: float
    clock: Clock
    # By label: the outcome of the check, None if it was over budget; and the seconds of each round.
    outcomes: dict[str, Outcome | None] = field(default_factory=dict)
    rounds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    _digests: dict[tuple[str, int], bytes] = field(default_factory=dict)  # by label and shard

    @property
    def steps(self) -> int:
        """The number of calls of `progress` by `run`."""
        return len(self.contestants) * (1 + self.repeats) * self.source.shards

    @property
    def checked(self) -> dict[str, Outcome]:
        """The outcomes of the contestants that were not over budget, by label."""
        return {label: done for label, done in self.outcomes.items() if done is not None}

    @property
    def tasks(self) -> list[str]:
        """The name with which `run` stores the rows."""
        return [self.name]

    def run(
        self, progress: Progress = lambda step: None, store: Store = lambda name, rows: None
    ) -> None:
        """Check, then time. Raises AgreementError."""
        self.outcomes = {contestant.label: Outcome() for contestant in self.contestants}
        self._check(progress)
        for _ in range(self.repeats):
            self._time(progress)
        store(self.name, [*self.rows()])

    def _check(self, progress: Progress) -> None:
        for shard in range(self.source.shards):
            tape, id_space = self.source.load(shard)
            expected = cache(partial(expect, tape, id_space))  # shared by contestants of a rounding
            for contestant in self.contestants:
                progress(f"checking {contestant.name} on {Path(self.source.name).name}")
                label = contestant.label
                if (so_far := self.outcomes[label]) is None:
                    continue
                timer = contestant.new(self.source.unit, first_time(tape), counting=True)
                limit = self.budget - so_far.seconds
                try:
                    done = replay(timer, tape, id_space, clock=self.clock, limit=limit)
                except OverBudgetError:
                    self.outcomes[label] = None
                    continue
                due = expected(contestant.rounding(self.source.unit))
                check_agreement(label, contestant.traits, tape, due, done)
                self.outcomes[label] = so_far + done.outcome
                self._digests[label, shard] = digest_of(done)

    def _time(self, progress: Progress) -> None:
        spent = {
            label: 0.0 for label in self.checked if another_fits(self.rounds[label], self.budget)
        }
        for shard in range(self.source.shards):
            tape, id_space = self.source.load(shard)
            for contestant in self.contestants:
                progress(f"timing {contestant.name} on {Path(self.source.name).name}")
                label = contestant.label
                if label in spent:
                    timer = contestant.new(self.source.unit, first_time(tape))
                    done = replay(timer, tape, id_space, clock=self.clock)
                    check_same_rows(contestant, done, self._digests[label, shard])
                    spent[label] += done.outcome.seconds
        for label, seconds in spent.items():
            self.rounds[label].append(seconds)

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the table of results. All samples have the same counts."""
        name = self.source.name
        for label, checked in self.outcomes.items():
            if checked is None:
                yield Row(label, name, None, "replay_time", None, None, OVER_BUDGET)
                continue
            for repeat, seconds in enumerate(self.rounds[label]):
                ns = replace(checked, seconds=seconds).ns_per_operation
                yield from rows_of(label, name, {"replay_time": ns}, repeat=repeat)
            yield from rows_of(label, name, checked.figures())


# ---- the stored run


def _manifest(
    options: Comparison,
    workloads: Sequence[str],
    contestants: Sequence[Mapping[str, Any]],
    replays: Sequence[Replays],
) -> dict[str, Any]:
    sources = [replayed.source.name for replayed in replays]
    return {
        "command": list(options.command),
        **surroundings(),
        "parameters": {
            **{name: value for name, value in asdict(options).items() if name != "command"},
            "traces": [name for name in sources if name not in workloads],
            "timers": [entry["label"] for entry in contestants],
            "workloads": workloads,
            "longest_delay": work.LONGEST_DELAY,
            "settling": work.SETTLING,
            "hold_pairs": work.HOLD_PAIRS,
            "pairs_per_unit": work.PAIRS_PER_UNIT,
            "min_timed": work.MIN_TIMED,
            "min_fired": work.MIN_FIRED,
        },
        "sources": [_source_entry(replayed) for replayed in replays],
        "agreement": {
            "checked": "Before anything was timed, every expiry of every tape was checked against"
            " the closed form that the timer's traits declare, with the order and the counts. The"
            " timed runs fired the same rows. A tape on which a task was over budget is cut short,"
            " so it was checked at smaller sizes only.",
        },
        "contestants": contestants,
    }


def _source_entry(replays: Replays) -> dict[str, Any]:
    source = replays.source
    # At a touch, an inexact timer may re-arm where an exact one starts a timer, or the reverse.
    scheduled = [
        replays.checked[contestant.label].scheduled
        for contestant in replays.contestants
        if contestant.label in replays.checked and contestant.rounding(source.unit).exact
    ]
    return {
        "name": source.name,
        "unit": source.unit,
        "timers": scheduled[0] if scheduled else source.counts["starts"],
        **source.counts,
        "details": dict(source.details),
        "description": asdict(source.description) if source.description else None,
        "course": asdict(source.course) if source.course else None,
    }
