"""One table of a grid replay: a row for each timer with its parameters, all shards together.

Counts add up; the greatest of a maximum is taken; quantiles of lateness come from the merged
sketches of all shards (`compare.replay.quantiles`), so that they are those of all timers that
fired, not averages of quantiles.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from compare.files import NewFile, errors_as
from compare.pipeline.results import Results, ResultsError, open_results
from compare.replay.quantiles import Sketch
from timers.kernels.counters import COUNTERS

SUMMARY = "summary.parquet"
ABOUT = b"wheelwork"
"""Key of the table's metadata under which JSON says where the grid was replayed, when, and how."""

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
"""Column suffix -> share of the timers that fired."""

_SUMS = (
    "operations",
    "scheduled",
    "cancelled",
    "rescheduled",
    "fired",
    "pending",
    "wakeups",
    "idle_wakeups",
    *COUNTERS,
)
_SPREAD = {"least": pc.min, "median": lambda column: pc.quantile(column, 0.5)[0], "most": pc.max}

SCHEMA = pa.schema(
    [
        ("timer", pa.string()),
        ("parameters", pa.string()),
        ("engine", pa.string()),
        ("workload", pa.string()),
        ("source", pa.string()),
        ("unit", pa.string()),
        ("shards", pa.int64()),
        *((name, pa.int64()) for name in _SUMS),
        *((f"shard_operations_{which}", pa.float64()) for which in _SPREAD),
        *((f"shard_ns_per_operation_{which}", pa.float64()) for which in _SPREAD),
        ("seconds", pa.float64()),
        ("ns_per_operation", pa.float64()),
        ("most_pending", pa.int64()),
        ("nbytes", pa.int64()),
        ("lateness_min", pa.int64()),
        *((f"lateness_{suffix}", pa.int64()) for suffix in QUANTILES),
        ("lateness_max", pa.int64()),
    ]
)
"""The columns; see docs/pipeline.md for what each means."""


def summarise(
    results: str | os.PathLike[str], out: str | os.PathLike[str] | None = None
) -> pa.Table:
    """Sum up complete results: a table of schema SCHEMA, also written to `out` (default:
    summary.parquet among them).

    O(cells). Raises ResultsError for results that are not complete or damaged, and for a file that
    cannot be written.
    """
    opened = open_results(results)
    table = table_of(opened)
    path = Path(out) if out is not None else opened.path / SUMMARY
    with errors_as(ResultsError, f"cannot write {path}"), NewFile(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")
    return table


def table_of(results: Results) -> pa.Table:
    """The table of complete results."""
    cells = results.read_cells()
    source = results.trace.source
    common: dict[str, Any] = {
        "workload": str(source.get("workload") or source.get("kind") or "trace"),
        "source": json.dumps(source, sort_keys=True),
        "unit": results.trace.unit,
        "shards": len(results.trace.shards),
    }
    rows = []
    for number, timer in enumerate(results.contestants):
        own = cells.filter(pc.equal(cells["timer"], number))
        named = {
            "timer": timer.name,
            "parameters": json.dumps(dict(timer.parameters), sort_keys=True),
        }
        rows.append(named | common | _row(own))
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    asked = {name: results.manifest[name] for name in ("expiries", "drained", "counting")}
    return table.replace_schema_metadata(
        {ABOUT: json.dumps(results.manifest["made"] | {"asked": asked})}
    )


def _row(cells: pa.Table) -> dict[str, Any]:
    """What becomes of all cells of one timer."""
    row: dict[str, Any] = {name: pc.sum(cells[name]).as_py() for name in _SUMS}
    seconds = cells["seconds"].to_numpy()
    operations = cells["operations"].to_numpy()
    ns_per_operation = pa.array(seconds * 1e9 / np.maximum(operations, 1))
    for name, column in (
        ("operations", cells["operations"]),
        ("ns_per_operation", ns_per_operation),
    ):
        row |= {f"shard_{name}_{which}": _number(of(column)) for which, of in _SPREAD.items()}
    row["engine"] = cells["engine"][0].as_py()
    row["seconds"] = float(seconds.sum())
    row["ns_per_operation"] = float(seconds.sum() * 1e9 / max(operations.sum(), 1))
    row["most_pending"] = pc.max(cells["most_pending"]).as_py()
    row["nbytes"] = pc.max(cells["nbytes"]).as_py()
    sketch = merged(
        cells.select(
            ["lateness_edges", "lateness_counts", "lateness_min", "lateness_max"]
        ).to_pylist()
    )
    quantiles = sketch.quantiles(QUANTILES.values())
    row |= {f"lateness_{suffix}": value for suffix, value in zip(QUANTILES, quantiles, strict=True)}
    return row | {"lateness_min": sketch.least, "lateness_max": sketch.greatest}


def merged(cells: Iterable[Mapping[str, Any]]) -> Sketch:
    """The sketch of all cells' lateness."""
    sketch = Sketch()
    for cell in cells:
        edges, counts = (
            np.array(cell[f"lateness_{part}"], np.int64) for part in ("edges", "counts")
        )
        sketch.merge(edges, counts, cell["lateness_min"], cell["lateness_max"])
    return sketch


def _number(scalar: pa.Scalar) -> float | None:
    value = scalar.as_py()
    return None if value is None else float(value)


_WIDTH = 80

Column = tuple[str, Callable[[Mapping[str, Any]], str]]


def text_of(table: pa.Table) -> str:
    """The table for people, in 80 columns."""
    rows = table.to_pylist()
    first = rows[0]
    shards = f"{first['shards']:,} shard{'s' if first['shards'] != 1 else ''}"
    lines = [
        f"{first['workload']}: {first['operations']:,} operations in {shards}; times in {first['unit']}",
        "",
        *_aligned(
            [[title for title, _ in _COLUMNS]] + [[of(row) for _, of in _COLUMNS] for row in rows]
        ),
        "",
        "ns: per operation, expiries included; most pending: in one shard; late: fired_at",
        "- max(deadline, armed_at) of all timers that fired",
    ]
    return "\n".join(lines)


def _label(row: Mapping[str, Any]) -> str:
    from compare.bench.contestant import contestant

    return contestant(row["timer"], json.loads(row["parameters"])).label


def _integer(name: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda row: "-" if row[name] is None else f"{row[name]:,}"


_COLUMNS: Sequence[Column] = (
    ("timer", _label),
    ("ns", lambda row: f"{row['ns_per_operation']:.1f}"),
    ("fired", _integer("fired")),
    ("most pending", _integer("most_pending")),
    ("late p50", _integer("lateness_p50")),
    ("p99", _integer("lateness_p99")),
    ("max", _integer("lateness_max")),
)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of text in columns; where that is too wide, what comes first in a row has a line of its
    own.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if sum(widths) + 2 * len(widths) - 2 > _WIDTH:
        figures = _aligned([["", *row[1:]] for row in rows])
        return [
            figures[0],
            *(
                line
                for row, own in zip(rows[1:], figures[1:], strict=True)
                for line in (row[0], own)
            ),
        ]
    first, *others = widths
    return [
        "  ".join(
            [
                row[0].ljust(first),
                *(cell.rjust(width) for cell, width in zip(row[1:], others, strict=True)),
            ]
        )
        for row in rows
    ]
