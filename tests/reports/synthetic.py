"""A stored run with made-up but plausible figures, so that the reports can be tested without
measuring anything.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from compare.bench.contestant import contestant
from compare.bench.store import SCHEMAS, parameters_json, traits_of, write_run
from compare.bench.task import TASKS
from reports.sections.parts import Entry, Table
from reports.summary import Contestant, Summary
from timers.registry import names, timer_class

SIZES = (1_000, 10_000, 100_000, 1_000_000)
REPEATS = 5
TOO_LONG_SECONDS = 10.0

# ns at small N, and how the cost grows with N: a factor per natural logarithm, and one per timer
# pending.
_COSTS: Mapping[str, Mapping[str, tuple[float, float, float]]] = {
    "unordered-list": {
        "insert": (3, 0.2, 0),
        "cancel": (4, 0.3, 0),
        "hold": (9, 0.6, 0),
        "clock": (30, 0, 0.6),
        "event": (30, 0, 0.8),
    },
    "heapq-delay-queue": {
        "insert": (500, 20, 0),
        "cancel": (300, 10, 0),
        "hold": (900, 40, 0),
        "clock": (1500, 90, 0),
        "event": (1200, 100, 0),
    },
    "delay-queue": {
        "insert": (12, 1.5, 0),
        "cancel": (20, 3, 0),
        "hold": (40, 5, 0),
        "clock": (40, 12, 0),
        "event": (35, 13, 0),
    },
    "simple-wheel": {
        "insert": (4, 0.4, 0),
        "cancel": (4, 0.5, 0),
        "hold": (10, 1, 0),
        "clock": (40, 8, 0),
        "event": (38, 8, 0),
    },
    "hashed-wheel": {
        "insert": (4, 0.5, 0),
        "cancel": (4, 0.4, 0),
        "hold": (11, 1, 0),
        "clock": (25, 3, 0),
        "event": (20, 3, 0),
    },
    "hierarchical-wheel": {
        "insert": (9, 0.9, 0),
        "cancel": (5, 0.5, 0),
        "hold": (22, 2, 0),
        "clock": (60, 7, 0),
        "event": (50, 6, 0),
    },
    "cascading-wheel": {
        "insert": (3, 0.4, 0),
        "cancel": (4, 0.45, 0),
        "hold": (9, 1, 0),
        "clock": (20, 4, 0),
        "event": (15, 3, 0),
    },
}
_OTHER = {
    "insert": (50.0, 1.0, 0.0),
    "cancel": (50.0, 1.0, 0.0),
    "hold": (99.0, 1.0, 0.0),
    "clock": (99.0, 1.0, 0.0),
    "event": (99.0, 1.0, 0.0),
}
_BYTES = {"heapq-delay-queue": 260.0, "delay-queue": 28.0}
WORKLOADS = ("uniform", "lognormal-low", "keepalive")

Contestants = Sequence[tuple[str, Mapping[str, int]]]


def defaults() -> Contestants:
    """Every timer of the registry with its default parameters."""
    return [(name, timer_class(name).traits.defaults) for name in names()]


def cost(timer: str, operation: str, driver: str, size: int) -> float:
    """Nanoseconds for one operation."""
    base, per_log, per_timer = _COSTS.get(timer, _OTHER)[
        driver if operation == "expiry" else operation
    ]
    return base + per_log * math.log(size / 1000 + 1) + per_timer * size


def write_synthetic(
    root: Path,
    contestants: Contestants | None = None,
    sizes: Sequence[int] = SIZES,
    workloads: Iterable[str] = WORKLOADS,
    repeats: int = REPEATS,
) -> Path:
    """Store such a run below `root` and return its path."""
    rng = np.random.default_rng(1)
    contestants = defaults() if contestants is None else contestants
    workloads = list(workloads)
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    traits = []
    for timer, parameters in contestants:
        entry = traits_of(contestant(timer, parameters))
        traits.append(entry)
        who = {"timer": timer, "parameters": parameters_json(parameters)}
        labels = {
            "engine": entry["engine"],
            "exact": entry["exact"],
            "lateness_low": entry["lateness_low"],
            "lateness_high": entry["lateness_high"],
        }
        for size in sizes:
            for operation, driver in TASKS:
                _add_cell(rows, who | labels, who, size, operation, driver, repeats, rng)
        for source in workloads:
            _add_replay(rows, who | labels, who, source, parameters, repeats, rng)
        rows["memory"].append(
            who
            | {"capacity": sizes[-1], "nbytes_per_timer": _BYTES.get(timer, 32.01)}
            | {"nbytes": int(_BYTES.get(timer, 32.01) * sizes[-1])}
            | {"peak_nbytes": 96 * sizes[-1], "grown_nbytes": 64 * sizes[-1]}
            | {"growth_seconds": [1.1e-8 * sizes[-1], 1.3e-8 * sizes[-1], 1.2e-8 * sizes[-1]]}
        )
    manifest = {
        "command": ["wheelwork", "compare", "--sizes", ",".join(map(str, sizes))],
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "dirty": False,
        "versions": {
            "python": "3.11.9",
            "numba": "0.61.0",
            "numpy": "2.1.0",
            "pyarrow": "18.0.0",
            "wheelwork": "0.1.0",
        },
        "machine": {
            "cpu": "Example CPU @ 2.60GHz",
            "cores": 2,
            "memory_bytes": 8 * 2**30,
            "platform": "Linux-6.1-x86_64",
        },
        "parameters": {
            "sizes": list(sizes),
            "repeats": repeats,
            "budget": TOO_LONG_SECONDS,
            "seed": 7,
        },
        "sources": [
            {
                "name": name,
                "unit": "ms",
                "operations": 20_000,
                "timers": 10_000,
                "id_space": 900,
                "details": {"seed": 7},
            }
            for name in workloads
        ],
        "agreement": {
            "checked": "every fired row against the oracle",
            "timers": len(contestants),
            "tapes": 6,
            "firings": 123_456,
        },
        "traits": traits,
    }
    tables = {
        name: pa.Table.from_pylist(rows[name], schema=schema) for name, schema in SCHEMAS.items()
    }
    return write_run(root, manifest, tables)


def _add_cell(
    rows: dict[str, list[dict[str, Any]]],
    labelled: dict[str, Any],
    who: dict[str, Any],
    size: int,
    operation: str,
    driver: str,
    repeats: int,
    rng: np.random.Generator,
) -> None:
    timer = str(who["timer"])
    ns = cost(timer, operation, driver, size)
    cell = {"size": size, "operation": operation, "driver": driver}
    seconds = ns * size * repeats / 1e9
    if seconds > TOO_LONG_SECONDS:
        rows["samples"].append(
            labelled
            | cell
            | {"status": "too long", "predicted_seconds": ns * size / 1e9, "operations": size}
        )
        return
    for repeat in range(repeats):
        noisy = ns * float(rng.uniform(0.97, 1.12))
        rows["samples"].append(
            labelled
            | cell
            | {
                "status": "measured",
                "operations": size,
                "repeat": repeat,
                "ns_per_operation": noisy,
            }
        )
    for counter, per_operation in _counts(timer, operation, driver, size).items():
        rows["counters"].append(
            who
            | cell
            | {"counter": counter, "count": round(per_operation * size), "operations": size}
        )


def _counts(timer: str, operation: str, driver: str, size: int) -> dict[str, float]:
    if operation == "expiry":
        advances = {"advances": 60_000 / size if driver == "clock" else 1.0, "idle_advances": 0.0}
    else:
        advances = {}
    if timer == "heapq-delay-queue":
        return advances
    counts = dict.fromkeys(
        (
            "comparisons",
            "timers_touched",
            "slots_visited",
            "refiled",
            "queue_offers",
            "queue_polls",
            "empty_polls",
            "clock_visits",
        ),
        0.0,
    )
    if timer == "delay-queue":
        counts["comparisons"] = {"insert": 2.2, "cancel": 3.1, "hold": 5.4}.get(
            operation, 1.7 * math.log2(size)
        )
    if timer == "hierarchical-wheel":
        buckets = min(60 / size, 1)
        counts |= {"comparisons": buckets * 5, "queue_offers": buckets}
    if operation == "expiry":
        touched = {
            "unordered-list": size / 2,
            "simple-wheel": 58.0,
            "hashed-wheel": 1.7,
            "delay-queue": 1.0,
        }
        counts["timers_touched"] = touched.get(timer, 1.8)
        counts["clock_visits"] = advances["advances"]
        if timer.endswith("wheel"):
            counts["slots_visited"] = min(60_000 / size, 1.5)
        if timer in ("cascading-wheel", "hierarchical-wheel"):
            counts["refiled"] = 0.99 if timer == "cascading-wheel" else 2.4
        if timer == "hierarchical-wheel":
            counts |= {"queue_polls": 0.5, "empty_polls": 0.01}
    return counts | advances


def _add_replay(
    rows: dict[str, list[dict[str, Any]]],
    labelled: dict[str, Any],
    who: dict[str, Any],
    source: str,
    parameters: Mapping[str, int],
    repeats: int,
    rng: np.random.Generator,
) -> None:
    fired = 2_000
    if labelled["exact"]:
        late = np.zeros(fired, np.int64)
    else:
        low, high = labelled["lateness_low"], labelled["lateness_high"]
        late = rng.integers(max(low, 1) if high > 0 else low, high, fired, endpoint=True)
    values, timers = np.unique(late, return_counts=True)
    for value, many in zip(values.tolist(), timers.tolist(), strict=True):
        rows["lateness"].append(
            who | {"source": source, "lateness": value, "width": 1, "timers": many}
        )
    ns = cost(str(who["timer"]), "hold", "none", 5_000)
    counters = (
        None if labelled["engine"] == "python loop" else [("comparisons", 12_345), ("refiled", 0)]
    )
    for repeat in range(repeats):
        rows["replays"].append(
            labelled
            | who
            | {
                "source": source,
                "source_json": json.dumps({"workload": source, "seed": 7}),
                "unit": "ms",
                "status": "measured",
                "operations": 20_000,
                "repeat": repeat,
                "ns_per_operation": ns * float(rng.uniform(0.95, 1.15)),
                "scheduled": 10_000,
                "cancelled": 8_000,
                "rescheduled": 0,
                "fired": fired,
                "pending": 0,
                "most_pending": 5_000,
                "seconds": 1e-9 * ns * 20_000,
                "wakeups": 2_100,
                "idle_wakeups": 100,
                "lateness_min": int(late.min()),
                "lateness_median": float(np.median(late)),
                "lateness_max": int(late.max()),
                "nbytes": 65_536,
                "counters": counters,
            }
        )


def contestant_of(summary: Summary, timer: str) -> Contestant:
    """The first contestant of a timer."""
    return next(who for who in summary.contestants if who.timer == timer)


def entry(table: Table, timer: str, column: str) -> Entry:
    """The entry of a timer in the column with that heading."""
    row = next(row for who, row in table.rows.items() if who.timer == timer)
    return row[list(table.headings).index(column)]
