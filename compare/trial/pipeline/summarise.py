"""Summarise replayed results in one table: a row for each timer, over all shards.

Outcomes and their distributions of lateness are added (`compare.trial.replay.outcome`), so
quantiles are those of all timers that fired, not averages of quantiles.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from compare.base.files import CANNOT_WRITE, errors_as, new_file, parents
from compare.trial.pipeline.results import OPTIONS, Results, ResultsError, open_results
from compare.trial.replay.outcome import Outcome, columns

SUMMARY = "summary.parquet"
ABOUT = b"wheelwork"
"""The key of the table's metadata: JSON about where, when and how the trace was replayed."""

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
"""Column suffix -> share of the timers that fired."""

_SPREAD: Mapping[str, Callable[[Sequence[float]], Any]] = {
    "least": np.min,
    "median": np.median,
    "most": np.max,
}

SCHEMA = pa.schema(
    [
        ("contestant", pa.string()),
        ("timer", pa.string()),
        ("settings", pa.string()),
        ("engine", pa.string()),
        ("workload", pa.string()),
        ("source", pa.string()),
        ("unit", pa.string()),
        ("shards", pa.int64()),
        ("span", pa.int64()),
        *columns(),
        ("ns_per_operation", pa.float64()),
        ("mismatches", pa.int64()),
        *((f"lateness_{suffix}", pa.int64()) for suffix in QUANTILES),
        *((f"shard_operations_{suffix}", pa.float64()) for suffix in _SPREAD),
        *((f"shard_ns_per_operation_{suffix}", pa.float64()) for suffix in _SPREAD),
    ]
)
"""The columns; docs/pipeline.md explains them."""


def summarise(
    results: str | os.PathLike[str], out: str | os.PathLike[str] | None = None
) -> pa.Table:
    """Summarise complete results as a table of schema SCHEMA, which is also written to `out`.

    The default of `out` is summary.parquet in the directory of the results. O(shard replays).
    Raises ResultsError if the results are incomplete or damaged, or `out` cannot be written.
    """
    opened = open_results(results)
    table = table_of(opened)
    path = Path(out) if out is not None else opened.path / SUMMARY
    with errors_as(ResultsError, f"{CANNOT_WRITE} {path}"), parents(path), new_file(path) as file:
        pq.write_table(table, file, compression="zstd", write_page_checksum=True)
    return table


def table_of(results: Results) -> pa.Table:
    """Return the table of complete results."""
    source = results.trace.source
    common: dict[str, Any] = {
        "workload": str(source.get("workload") or source.get("kind") or "trace"),
        "source": json.dumps(source, sort_keys=True),
        "unit": results.trace.unit,
        "shards": len(results.trace.shards),
        "span": results.trace.span,
    }
    mismatches: list[int | None] = [None] * len(results.contestants)
    if results.manifest["checked"]:
        mismatches = [sum(timer.counts.values()) for timer in results.verified()]
    rows = []
    for timer, shards, wrong in zip(
        results.contestants, results.outcomes(), mismatches, strict=True
    ):
        identity = {
            "contestant": timer.label,
            "timer": timer.name,
            "settings": json.dumps(timer.settings),
            "engine": timer.engine,
        }
        rows.append(identity | common | _row(shards) | {"mismatches": wrong})
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    options = {name: results.manifest[name] for name in OPTIONS}
    about = results.manifest["made_by"] | {"asked": options}
    return table.replace_schema_metadata({ABOUT: json.dumps(about)})


def _row(shards: Sequence[Outcome]) -> dict[str, Any]:
    """The columns of one timer, from its outcomes by shard."""
    total = sum(shards, Outcome())
    row = total.row() | {"ns_per_operation": total.ns_per_operation}
    quantiles = total.lateness.quantiles(QUANTILES.values())
    row |= {f"lateness_{suffix}": value for suffix, value in zip(QUANTILES, quantiles, strict=True)}
    for name in ("operations", "ns_per_operation"):
        values = [getattr(shard, name) for shard in shards]
        row |= {f"shard_{name}_{suffix}": float(f(values)) for suffix, f in _SPREAD.items()}
    return row
