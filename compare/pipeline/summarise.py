"""One table of replayed results: a row for each timer with its parameters, all shards together.

Outcomes are added (`compare.replay.outcome`), and the distributions of lateness with them, so that
quantiles are those of all timers that fired and not averages of quantiles.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from compare.files import errors_as, new_file, parents
from compare.pipeline.results import Results, ResultsError, open_results
from compare.replay.outcome import Outcome, columns

SUMMARY = "summary.parquet"
ABOUT = b"wheelwork"
"""Key of the table's metadata under which JSON says where the trace was replayed, when, and how."""

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
        ("engine", pa.string()),
        ("workload", pa.string()),
        ("source", pa.string()),
        ("unit", pa.string()),
        ("shards", pa.int64()),
        ("span", pa.int64()),
        *columns(),
        ("ns_per_operation", pa.float64()),
        *((f"lateness_{suffix}", pa.int64()) for suffix in QUANTILES),
        *((f"shard_operations_{which}", pa.float64()) for which in _SPREAD),
        *((f"shard_ns_per_operation_{which}", pa.float64()) for which in _SPREAD),
    ]
)
"""The columns; see docs/pipeline.md for what each means."""


def summarise(
    results: str | os.PathLike[str], out: str | os.PathLike[str] | None = None
) -> pa.Table:
    """Sum up complete results: a table of schema SCHEMA, also written to `out`.

    By default that is summary.parquet among the results. O(shard replays). Raises ResultsError for
    results that are not complete or damaged, and for a file that cannot be written.
    """
    opened = open_results(results)
    table = table_of(opened)
    path = Path(out) if out is not None else opened.path / SUMMARY
    with errors_as(ResultsError, f"cannot write {path}"), parents(path), new_file(path) as made:
        pq.write_table(table, made, compression="zstd", write_page_checksum=True)
    return table


def table_of(results: Results) -> pa.Table:
    """The table of complete results."""
    source = results.trace.source
    common: dict[str, Any] = {
        "workload": str(source.get("workload") or source.get("kind") or "trace"),
        "source": json.dumps(source, sort_keys=True),
        "unit": results.trace.unit,
        "shards": len(results.trace.shards),
        "span": results.trace.span,
    }
    rows = []
    for timer, shards in zip(results.contestants, results.outcomes(), strict=True):
        identity = {"contestant": timer.label, "engine": timer.engine}
        rows.append(identity | common | _row(shards))
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    asked = {name: results.manifest[name] for name in ("expiries", "drained", "counting")}
    return table.replace_schema_metadata(
        {ABOUT: json.dumps(results.manifest["made"] | {"asked": asked})}
    )


def _row(shards: Sequence[Outcome]) -> dict[str, Any]:
    """What one timer did with all shards."""
    total = sum(shards, Outcome())
    row = total.row() | {"ns_per_operation": total.ns_per_operation}
    quantiles = total.lateness.quantiles(QUANTILES.values())
    row |= {f"lateness_{suffix}": value for suffix, value in zip(QUANTILES, quantiles, strict=True)}
    for name in ("operations", "ns_per_operation"):
        values = [getattr(shard, name) for shard in shards]
        row |= {f"shard_{name}_{which}": float(of(values)) for which, of in _SPREAD.items()}
    return row
