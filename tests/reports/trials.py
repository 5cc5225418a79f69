"""A stored run of the enqueue experiment with made-up figures, each different from the others."""

from pathlib import Path
from typing import Any

from compare.trial.purgatory.figures import FIGURES, PARAMETERS
from tests.reports.stored import store, trial_rows

RATES = (10_000, 40_000)
LIMITS = (1_000, 100_000)


def trials() -> list[dict[str, Any]]:
    """The old design does not keep up at 40,000/s, and fails with little memory."""
    rows = []

    def add(kind: str, load: str, design: str, rate: int, **figures: Any) -> None:
        level = 25.0 + len(rows)  # different in each row
        old = design == "scanning"
        row = dict.fromkeys((*PARAMETERS, *FIGURES, "failed")) | {
            "kind": kind,
            "load": load,
            "design": design,
            "rate": rate,
            "interval": 10_000 if old else 1_000,
            "requests": rate,
            "achieved": (0.8 if old and rate > 10_000 else 1.0) * rate,
            "cpu_us": level,
            "gc_us": level / 10,
            "peak_bytes": int(level * 2**20),
        }
        if design != "none":
            row |= {
                "late_p50_ms": level / 4,
                "late_p99_ms": level,
                "late_max_ms": level * 3,
                "share_expired": level / 1000,
            }
        if design == "purging":
            row |= {
                "estimated_total": level * 100,
                "exact_total": level * 100 + 1,
                "estimate_error": level + 0.4,
            }
        rows.append(row | figures)

    for rate in RATES:
        add("rate", "low", "none", rate)
    for load in ("low", "high"):
        for design in ("purging", "scanning"):
            for rate in RATES:
                add("rate", load, design, rate)
    add("limit", "low", "purging", 10_000)
    for limit in LIMITS:
        add("limit", "low", "scanning", 10_000, interval=limit)
    room = {"memory_bytes": 16 << 20}
    add("memory", "low", "scanning", 10_000, failed="MemoryError", interval=100_000, **room)
    add("memory", "low", "purging", 10_000, **room)
    return rows


def write_trials(root: Path) -> Path:
    """Store the trials as a run, and return its path."""
    return store(
        root,
        trial_rows(trials()),
        command=["wheelwork", "purgatory"],
        machine={"cpu": "Example CPU", "cores": 2, "memory_bytes": None, "platform": "Linux"},
        parameters={"seed": 0},
    )
