"""A stored run with made-up but plausible figures, so that the reports can be tested without
measuring anything.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from compare.trial.bench.callers import CALLERS, COMPILED_CODE, OWN_CLOCK, sizes_of
from compare.trial.bench.constants import Constants
from compare.trial.bench.constants import sizes_of as costs_at
from compare.trial.bench.replays import REPLAYS
from compare.trial.bench.steady import RANDOM
from compare.trial.bench.task import TASKS, Task
from compare.trial.replay.contestant import COMPILED, contestant
from compare.trial.results.schema import Row
from compare.trial.results.store import contestant_entry
from tests.reports.stored import caller_rows, fit_rows, memory_rows, replay_rows, store, task_rows
from timers.registry import names

SIZES = (1_000, 10_000, 100_000, 1_000_000)
REPEATS = 5
BUDGET = 2.0
WORKLOADS = ("uniform", "lognormal-low", "keepalive")
LATE = "lateness_min", "lateness_median", "lateness_max"

OUTCOME = {
    "operations": 20_000,
    "scheduled": 10_000,
    "cancelled": 8_000,
    "rescheduled": 0,
    "fired": 2_000,
    "pending": 0,
    "most_pending": 5_000,
    "wakeups": 2_100,
    "idle_wakeups": 100,
    "nbytes": 65_536,
}
"""What all replays have in common."""

# ns of each task at small N
_COSTS: Mapping[str, tuple[float, ...]] = {
    "unordered-list": (3, 4, 9, 30, 30),
    "heapq-delay-queue": (500, 300, 900, 1300, 1000),
    "delay-queue": (12, 20, 40, 40, 35),
    "simple-wheel": (4, 4, 10, 40, 38),
    "hashed-wheel": (4, 4, 11, 25, 20),
    "hierarchical-wheel": (9, 5, 22, 60, 50),
    "cascading-wheel": (3, 4, 9, 20, 15),
}


def write_synthetic(
    root: Path,
    timers: Sequence[str] | None = None,
    sizes: Sequence[int] = SIZES,
    workloads: Sequence[str] = WORKLOADS,
) -> Path:
    """Store such a run below `root` and return its path."""
    rng = np.random.default_rng(1)
    rows: list[Row] = []
    entries = [
        contestant_entry(contestant(text), ["ms"])
        for text in (names() if timers is None else timers)
    ]
    for entry in entries:
        for task in TASKS:
            for size in sizes:
                ns = _cost(entry["timer"], task, size)
                if ns * size > BUDGET * 1e9:
                    rows += task_rows(entry["label"], task, size, None)
                    break
                samples = (ns * rng.uniform(0.97, 1.12, REPEATS)).tolist()
                each = {name: round(n * size) / size for name, n in _counts(entry, task, size)}
                rows += task_rows(entry["label"], task, size, samples, **each)
        for caller in CALLERS:
            if caller != COMPILED_CODE or entry["engine"] == COMPILED:
                for size in sizes_of(caller):
                    costs = _caller_costs(entry["timer"], caller, size)
                    scatter = rng.uniform(0.97, 1.12, REPEATS)
                    rows += caller_rows(
                        entry["label"], caller, size, [(ns * scatter).tolist() for ns in costs]
                    )
        for caller in REPLAYS:
            if entry["engine"] == COMPILED:
                for size in costs_at(caller):
                    pair, fire, step = _caller_costs(entry["timer"], caller, size)
                    made = Constants(pair, fire, step, 100.0, 50.0, 10.0, 1.0)
                    rows += fit_rows(entry["label"], caller, RANDOM, size, made)
        for source in workloads:
            late = rng.integers(entry["lateness_low"], entry["lateness_high"], 2_000, endpoint=True)
            outcome = OUTCOME | dict(
                zip(LATE, (late.min(), np.median(late), late.max()), strict=True)
            )
            if entry["engine"] == COMPILED:
                outcome["comparisons"] = 12_345 / OUTCOME["operations"]
            ns = _cost(entry["timer"], TASKS[2], 5_000)
            samples = (ns * rng.uniform(0.95, 1.15, REPEATS)).tolist()
            rows += replay_rows(entry["label"], source, samples, **outcome)
        nbytes = {"heapq-delay-queue": 260.0, "delay-queue": 28.0}.get(entry["timer"], 32.01)
        pauses = [1e-5 * sizes[-1] * each for each in (1.1, 1.3, 1.2)]
        held = {"at_rest": nbytes, "at_peak": 96, "grown": 64}
        rows += memory_rows(entry["label"], sizes[-1], pauses, **held)
    return store(
        root,
        rows,
        command=["wheelwork", "compare", "--sizes", ",".join(map(str, sizes))],
        commit="0123456789abcdef0123456789abcdef01234567",
        dirty=False,
        versions={"python": "3.11.9", "wheelwork": "0.1.0"},
        machine={"cpu": "Example CPU @ 2.60GHz", "cores": 2, "platform": "Linux-6.1-x86_64"},
        parameters={"sizes": list(sizes), "repeats": REPEATS, "budget": BUDGET, "seed": 7},
        sources=[
            {"name": name, "unit": "ms", "operations": 20_000, "timers": 10_000, "id_space": 900}
            | {"details": {}, "description": None}
            for name in workloads
        ],
        agreement={"checked": "every fired row against the oracle", "expiries": 123_456},
        contestants=entries,
    )


def _cost(timer: str, task: Task, size: int) -> float:
    """Nanoseconds for one operation: that of the list grows with N, others with its logarithm."""
    base = _COSTS.get(timer, (50, 50, 99, 99, 99))[TASKS.index(task)]
    if timer == "unordered-list" and task.operation == "expiry":
        return base + 0.6 * size
    return base * (1 + 0.1 * math.log(size / 1000 + 1))


def _caller_costs(timer: str, caller: str, size: int) -> tuple[float, float, float]:
    """Nanoseconds of a pair, a fire and a step: a caller's own costs are added to a task's."""
    own = {"compiled": 0, "batches": 15, "python": 300, "system-timer": 1200}.get(caller, 1000)
    pair, fire = (_cost(timer, task, size) for task in (TASKS[2], TASKS[0]))
    step = 0.0 if caller in OWN_CLOCK else 20.0 + own
    if timer == "unordered-list" and step:
        step += 1.5 * size
    return own + pair, own + fire, step


def _counts(entry: Mapping[str, Any], task: Task, size: int) -> Iterator[tuple[str, float]]:
    if task.operation == "expiry":
        yield "advances", 60_000 / size if task.driver == "clock" else 1.0
        yield "idle_advances", 0.0
    if entry["engine"] == COMPILED:
        yield "comparisons", 1.7 * math.log2(size + 1) if entry["timer"] == "delay-queue" else 0.0
        yield "timers_touched", size / 2 if entry["timer"] == "unordered-list" else 1.8
        yield "queue_polls", 0.0
