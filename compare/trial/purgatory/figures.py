"""Names of the kinds and designs in the stored rows, and figures computed from the rows."""

from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from compare.base.quantiles import QUANTILES

if TYPE_CHECKING:  # it imports Arrow, which --help does not need
    from compare.trial.results import schema

Row = dict[str, Any]
"""A trial: kind, load, design, the parameters and the figures, and the reason if it `failed`."""

PARAMETERS = ("rate", "interval", "memory_bytes")
FIGURES = (
    *("requests", "achieved", "cpu_us", "gc_us", "peak_bytes"),
    *(f"late_{name}_ms" for name in QUANTILES),
    *("share_expired", "estimated_total", "exact_total", "estimate_error"),
)
"""Numbers of a trial; None if they were not measured."""

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


def stored(trial: Row, repeat: int) -> "Iterator[schema.Row]":
    """Yield the rows of a trial in the table of results."""
    from compare.trial.results.schema import Row, rows_of

    kind, load, design = (trial[name] for name in ("kind", "load", "design"))
    case = design, f"{kind} {load}", trial["rate" if kind == RATE else "interval"]
    numbers = {name: trial.get(name) for name in (*PARAMETERS, *FIGURES)}
    yield from rows_of(*case[:2], numbers, case[2], repeat)
    if reason := trial.get("failed"):
        yield Row(*case, "failed", repeat, None, reason)


def trials_of(rows: "Iterable[schema.Row]") -> list[Row]:
    """Return the trials of a run from the rows of the table, in execution order."""
    trials: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = row.contestant, row.subject, row.size, row.repeat
        if key not in trials:
            kind, _, load = row.subject.partition(" ")
            named = {"kind": kind, "load": load, "design": row.contestant}
            trials[key] = named | dict.fromkeys((*PARAMETERS, *FIGURES, "failed"))
        trials[key][row.metric] = row.note if row.value is None else _plain(row.value)
    return [*trials.values()]


def _plain(value: float) -> float:
    return int(value) if value.is_integer() else value


def median_row(rows: Sequence[Row]) -> Row:
    """A row with the median of each figure, and the first failure if there is one."""
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
