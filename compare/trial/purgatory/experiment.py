"""The whole experiment: both designs at rising rates, and with other limits and less memory."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path

from compare.base.arguments import check_integer
from compare.base.progress import progress_bar
from compare.trial.bench.machine import surroundings
from compare.trial.purgatory import figures
from compare.trial.purgatory.figures import NONE, PURGING, SCANNING, Row
from compare.trial.purgatory.options import INTERVALS, Experiment
from compare.trial.purgatory.traffic import LOADS, traffic
from compare.trial.purgatory.trial import Trial, measure
from compare.trial.replay.contestant import COMPILED, contestant
from compare.trial.results.schema import Row as StoredRow
from compare.trial.results.store import PURGATORY, check_store, new_run
from timers.errors import ParameterError

LARGEST_RATE = 10**7
LARGEST_TRIAL = 10**7  # requests

KINDS = (figures.RATE, figures.LIMIT, figures.MEMORY)
"""The tasks of a stored run, in execution order."""

_traffic = lru_cache(maxsize=4)(traffic)


def run_experiment(options: Experiment) -> Path:
    """Run all trials, store them as a run, and return its path.

    Raises:
        TimerError: ParameterError, UnknownTimerError or RunError for options that cannot be used.
    """
    _check(options)
    check_store(options.runs)
    timer = contestant(options.timer)
    if timer.engine != COMPILED or options.timer != timer.name:
        raise ParameterError(f"timer {options.timer!r} is not a compiled timer without parameters")
    manifest = {
        "command": list(options.command),
        **surroundings(),
        "parameters": {name: value for name, value in asdict(options).items() if name != "command"},
        "sources": [],
        "agreement": {},
        "contestants": [],
    }
    with (
        new_run(options.runs, PURGATORY, manifest, KINDS) as writer,
        progress_bar(None, "{desc} {elapsed}") as bar,
    ):
        rows: dict[str, list[StoredRow]] = {kind: [] for kind in KINDS}

        def add(kind: str, trials: Sequence[Row]) -> None:
            """Add the repeats of a trial. The kinds are run one after the other."""
            for repeat, trial in enumerate(trials):
                rows[kind] += figures.stored(trial | {"kind": kind}, repeat)

        for kind in _run(options, bar.set_description_str, add):
            writer.write(kind, rows[kind])
        writer.finish()
    return writer.path


def _check(options: Experiment) -> None:
    bounds = [
        *(("rate", rate, 100, LARGEST_RATE) for rate in options.rates),
        *(("limit", limit, 0, LARGEST_TRIAL) for limit in options.limits),
        ("memory", options.memory_mib, 1, 2**20),
        ("repeats", options.repeats, 1, 1000),
        ("refinements", options.refinements, 0, 10),
        ("seed", options.seed, 0, 2**63 - 1),
    ]
    for bound in bounds:
        check_integer(ParameterError, *bound)
    if not options.rates:
        raise ParameterError("no rate is given: name at least one")
    if not 0.1 <= options.seconds <= LARGEST_TRIAL / max(options.rates):
        raise ParameterError(
            f"seconds must lie in [0.1, {LARGEST_TRIAL / max(options.rates):g}] at a rate of "
            f"{max(options.rates)}, not {options.seconds:g}"
        )


def _run(
    options: Experiment, step: Callable[[str], None], add: Callable[[str, Sequence[Row]], None]
) -> Iterator[str]:
    """Run all trials in order and `add` them; yield each kind when it is finished."""
    rates = sorted({*options.rates})
    new = Trial(PURGING, options.timer, INTERVALS[PURGING])
    old = Trial(SCANNING, "delay-queue", INTERVALS[SCANNING])
    none = Trial(NONE, options.timer, INTERVALS[NONE])
    cases = [(load, trial) for load in LOADS for trial in (new, old)]
    finished: dict[tuple[str, Trial, int], list[Row]] = {}

    def sustained(kind: str, load: str, trial: Trial, rate: int) -> bool:
        """Repeat a trial until it is clear whether the design mostly keeps up; return the answer.

        A trial that has been run before, at this rate or with this limit, is not run again.
        """
        repeats = finished.setdefault((load, trial, rate), [])
        if not repeats:
            key = {"load": load, "rate": rate, **asdict(trial)}
            given = _traffic(load, rate, max(int(rate * options.seconds), 1), options.seed)
            for number in range(options.repeats):
                step(f"{kind}: {trial.design}, {load}, {rate}/s, {number + 1}")
                repeats.append(key | measure(trial, given))
                failures = sum(not figures.keeps_up(row) for row in repeats)
                if kind == figures.RATE and 2 * failures >= options.repeats:
                    break
        add(kind, repeats)
        return figures.mostly_keeps_up(repeats)

    for rate in rates:
        sustained(figures.RATE, "low", none, rate)
    for load, trial in cases:
        kept_up, too_fast = 0, 0
        for rate in rates:
            if not sustained(figures.RATE, load, trial, rate):
                too_fast = rate
                break
            kept_up = rate
        for _ in range(options.refinements if kept_up and too_fast else 0):
            rate = round(math.sqrt(kept_up * too_fast) / 1000) * 1000
            if not kept_up < rate < too_fast:
                break  # they are less than a thousand apart
            if sustained(figures.RATE, load, trial, rate):
                kept_up = rate
            else:
                too_fast = rate
    yield figures.RATE
    rate = rates[min(2, len(rates) - 1)]
    sustained(figures.LIMIT, "low", new, rate)
    for limit in options.limits:
        sustained(figures.LIMIT, "low", replace(old, interval=limit), rate)
    yield figures.LIMIT
    # With its highest limit the old design scans least.
    patient = replace(old, interval=max(options.limits, default=old.interval))
    for trial in (patient, new):
        limited = replace(trial, memory_bytes=options.memory_mib << 20)
        sustained(figures.MEMORY, "low", limited, rate)
    yield figures.MEMORY
