"""A stored run with made-up but plausible figures, so that the reports can be tested without
measuring anything.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from compare.trial.bench.store import SCHEMAS, traits_of
from compare.trial.bench.task import TASKS, Task
from compare.trial.replay.contestant import COMPILED, contestant
from tests.reports.stored import repeated, store
from timers.registry import names

SIZES = (1_000, 10_000, 100_000, 1_000_000)
REPEATS = 5
BUDGET = 2.0
WORKLOADS = ("uniform", "lognormal-low", "keepalive")
LATE = "lateness_min", "lateness_median", "lateness_max"

OUTCOME = {
    "source_json": "{}",
    "unit": "ms",
    "seconds": 1.0,
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
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    traits = [
        traits_of(contestant(text), ["ms"]) for text in (names() if timers is None else timers)
    ]
    for entry in traits:
        for task in TASKS:
            for size in sizes:
                ns = _cost(entry["timer"], task, size)
                cell = {"contestant": entry["label"], "size": size, "operations": size}
                cell |= task._asdict()
                if ns * size > BUDGET * 1e9:
                    rows["samples"].append(cell)
                    break
                rows["samples"] += repeated(cell, ns * rng.uniform(0.97, 1.12, REPEATS))
                rows["counters"] += [
                    cell | {"counter": counter, "count": round(each * size)}
                    for counter, each in _counts(entry, task, size)
                ]
        for source in workloads:
            late = rng.integers(entry["lateness_low"], entry["lateness_high"], 2_000, endpoint=True)
            replay = {"contestant": entry["label"], "source": source, **OUTCOME}
            replay |= dict(zip(LATE, (late.min(), np.median(late), late.max()), strict=True))
            if entry["engine"] == COMPILED:
                replay["counters"] = [("comparisons", 12_345)]
            ns = _cost(entry["timer"], TASKS[2], 5_000)
            rows["replays"] += repeated(replay, ns * rng.uniform(0.95, 1.15, REPEATS))
        nbytes = {"heapq-delay-queue": 260.0, "delay-queue": 28.0}.get(entry["timer"], 32.01)
        rows["memory"].append(
            {"contestant": entry["label"], "capacity": sizes[-1], "nbytes_per_timer": nbytes}
            | {"nbytes": int(nbytes * sizes[-1])}
            | {"peak_nbytes": 96 * sizes[-1], "grown_nbytes": 64 * sizes[-1]}
            | {"growth_seconds": [1.1e-8 * sizes[-1], 1.3e-8 * sizes[-1], 1.2e-8 * sizes[-1]]}
        )
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
            for name in workloads
        ],
        agreement={"checked": "every fired row against the oracle", "expiries": 123_456},
        traits=traits,
    )


def _cost(timer: str, task: Task, size: int) -> float:
    """Nanoseconds for one operation: that of the list grows with N, others with its logarithm."""
    base = _COSTS.get(timer, (50, 50, 99, 99, 99))[TASKS.index(task)]
    if timer == "unordered-list" and task.operation == "expiry":
        return base + 0.6 * size
    return base * (1 + 0.1 * math.log(size / 1000 + 1))


def _counts(entry: Mapping[str, Any], task: Task, size: int) -> Iterator[tuple[str, float]]:
    if task.operation == "expiry":
        yield "advances", 60_000 / size if task.driver == "clock" else 1.0
        yield "idle_advances", 0.0
    if entry["engine"] == COMPILED:
        yield "comparisons", 1.7 * math.log2(size + 1) if entry["timer"] == "delay-queue" else 0.0
        yield "timers_touched", size / 2 if entry["timer"] == "unordered-list" else 1.8
        yield "queue_polls", 0.0
