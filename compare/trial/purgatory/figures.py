"""Names of the kinds and designs in the stored rows, and figures computed from the rows."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

Row = dict[str, Any]
"""A row of the table `purgatory` of `compare.trial.bench.store`."""

RATE, LIMIT, MEMORY = "rate", "limit", "memory"
"""The kinds of rows."""

PURGING, SCANNING, NONE = "purging", "scanning", "none"
"""The new design, the old one, and no design: only the experiment's own threads."""

DESIGNS = {PURGING: "new", SCANNING: "old", NONE: "none"}
"""Display names of the designs."""

_KEPT_UP = 0.95
"""A design keeps up if it achieves this share of the rate ..."""

_IN_TIME_MS = 200.0
"""... and if the p99 lateness of timeouts is at most this: as long as the timeout."""


def median_row(rows: Sequence[Row]) -> Row:
    """A row with the median of each figure, and the first failure if there is one."""
    from compare.trial.bench.store import FIGURES  # imports Arrow, which --help does not need

    figures = {name: values_of(rows, name) for name in FIGURES}
    medians = {name: median(values) if values else None for name, values in figures.items()}
    failed = next((row["failed"] for row in rows if row["failed"]), None)
    return rows[0] | medians | {"failed": failed}


def values_of(rows: Iterable[Row], column: str) -> list[float]:
    """The measured values of a figure, in ascending order."""
    return sorted(row[column] for row in rows if row[column] is not None)


def keeps_up(row: Row) -> bool:
    """Whether a design kept up with the rate: no failure, and hardly any lateness."""
    late = row.get("late_p99_ms")
    achieved = row.get("achieved") or 0.0
    return (
        row.get("failed") is None
        and achieved >= _KEPT_UP * row["rate"]
        and (late is None or late <= _IN_TIME_MS)
    )


def mostly_keeps_up(rows: Sequence[Row]) -> bool:
    """Whether a design kept up in most of these trials; other programs may disturb some."""
    return 2 * sum(map(keeps_up, rows)) > len(rows)


def saturation(rows: Iterable[Row]) -> dict[tuple[str, str], tuple[int, bool]]:
    """(load, design) -> the highest sustained rate, and whether some rate was too high."""
    tried: dict[tuple[str, str], dict[int, list[Row]]] = {}
    for row in rows:
        if row["kind"] == RATE and row["design"] != NONE:
            rates = tried.setdefault((row["load"], row["design"]), {})
            rates.setdefault(row["rate"], []).append(row)
    highest = {}
    for case, rates in tried.items():
        sustained = [rate for rate, trials in rates.items() if mostly_keeps_up(trials)]
        highest[case] = max(sustained, default=0), len(sustained) < len(rates)
    return highest
