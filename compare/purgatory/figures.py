"""What the stored rows of the experiment are called, and what they say."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

Row = dict[str, Any]
"""A row of the table `purgatory` of `compare.bench.store`."""

RATE, LIMIT, MEMORY, COMPILED = "rate", "limit", "memory", "compiled"
"""Kinds of rows."""

PURGING, SCANNING, NONE = "purging", "scanning", "none"
"""The new design, the old one, and none: the experiment's own threads."""

DESIGNS = {PURGING: "new", SCANNING: "old", NONE: "none"}
"""What tables and charts call them."""

_KEPT_UP = 0.95
"""The share of the target rate that must be achieved ..."""

_IN_TIME_MS = 200.0
"""... and how late, at the 99th percentile, a timeout may be: as long again as it is."""


def middle(rows: Sequence[Row]) -> Row:
    """A row with the median of each figure, and the first failure if there was one."""
    from compare.bench.store import FIGURES  # brings Arrow, which --help need not wait for

    figures = {name: values_of(rows, name) for name in FIGURES}
    medians = {name: median(values) if values else None for name, values in figures.items()}
    failed = next((row["failed"] for row in rows if row["failed"]), None)
    return rows[0] | medians | {"failed": failed}


def values_of(rows: Iterable[Row], column: str) -> list[float]:
    """What was measured of a figure, in ascending order."""
    return sorted(row[column] for row in rows if row[column] is not None)


def keeps_up(row: Row) -> bool:
    """Whether a design kept up with the rate: nothing failed, and hardly anything was late."""
    late = row.get("late_p99_ms")
    achieved = row.get("achieved") or 0.0
    return (
        row.get("failed") is None
        and achieved >= _KEPT_UP * row["rate"]
        and (late is None or late <= _IN_TIME_MS)
    )


def scanned(row: Row) -> float:
    """The entries of lists and queue that a compiled design looked at for each request."""
    counters = dict(row["counters"])
    return float(counters["entries_scanned"] + counters["queue_scanned"]) / float(row["requests"])


def mostly_keeps_up(rows: Sequence[Row]) -> bool:
    """Whether a design kept up in most of these trials: other programs may disturb some."""
    return 2 * sum(map(keeps_up, rows)) > len(rows)


def saturation(rows: Iterable[Row]) -> dict[tuple[str, str], tuple[int, bool]]:
    """For each load and design the highest rate that it kept up with, and whether there was one
    that was too high for it.
    """
    tried: dict[tuple[str, str], dict[int, list[Row]]] = {}
    for row in rows:
        if row["kind"] == RATE and row["design"] != NONE:
            rates = tried.setdefault((row["load"], row["design"]), {})
            rates.setdefault(row["rate"], []).append(row)
    found = {}
    for case, rates in tried.items():
        kept_up = [rate for rate, trials in rates.items() if mostly_keeps_up(trials)]
        found[case] = max(kept_up, default=0), len(kept_up) < len(rates)
    return found
