"""What the stored rows of the experiment are called, and what they say."""

from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]
"""A row of `compare.bench.store.PURGATORY`."""

RATE, LIMIT, MEMORY, COMPILED = "rate", "limit", "memory", "compiled"
"""Kinds of rows."""

PURGING, SCANNING, NONE = "purging", "scanning", "none"
"""The new design, the old one, and none: the experiment's own threads."""

DESIGNS = {PURGING: "new", SCANNING: "old", NONE: "(none)"}
"""What tables and charts call them."""

_KEPT_UP = 0.95
"""The share of the target rate that must be achieved ..."""

_IN_TIME_MS = 200.0
"""... and how late, at the 99th percentile, a timeout may be: as long again as it is."""


def keeps_up(row: Row) -> bool:
    """Whether a design kept up with the rate: nothing failed, and hardly anything was late."""
    late = row.get("late_p99_ms")
    achieved = row.get("achieved") or 0.0
    return (
        row.get("failed") is None
        and achieved >= _KEPT_UP * row["rate"]
        and (late is None or late <= _IN_TIME_MS)
    )


def saturation(rows: Iterable[Row]) -> dict[tuple[str, str], tuple[int, bool]]:
    """For each load and design the highest rate that it kept up with, and whether there was one
    that was too high for it.
    """
    tried: dict[tuple[str, str], dict[int, bool]] = {}
    for row in rows:
        if row["kind"] == RATE and row["design"] != NONE:
            rates = tried.setdefault((row["load"], row["design"]), {})
            rates[row["rate"]] = rates.get(row["rate"], False) or keeps_up(row)
    return {
        case: (
            max((rate for rate, kept in rates.items() if kept), default=0),
            False in rates.values(),
        )
        for case, rates in tried.items()
    }
