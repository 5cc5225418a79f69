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
import pyarrow.compute as pc
import pyarrow.parquet as pq

from compare.bench.store import parameters_json
from compare.files import NewFile, errors_as
from compare.pipeline.results import Results, ResultsError, open_results, outcome_of
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
        ("timer", pa.string()),
        ("parameters", pa.string()),
        ("label", pa.string()),
        ("engine", pa.string()),
        ("workload", pa.string()),
        ("source", pa.string()),
        ("unit", pa.string()),
        ("shards", pa.int64()),
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
    with errors_as(ResultsError, f"cannot write {path}"), NewFile(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")
    return table


def table_of(results: Results) -> pa.Table:
    """The table of complete results."""
    outcomes = results.read_outcomes()
    source = results.trace.source
    common: dict[str, Any] = {
        "workload": str(source.get("workload") or source.get("kind") or "trace"),
        "source": json.dumps(source, sort_keys=True),
        "unit": results.trace.unit,
        "shards": len(results.trace.shards),
    }
    rows = []
    for number, timer in enumerate(results.contestants):
        own = outcomes.filter(pc.equal(outcomes["timer"], number))
        identity = {
            "timer": timer.name,
            "parameters": parameters_json(timer.parameters),
            "label": timer.label,
            "engine": own["engine"][0].as_py(),
        }
        rows.append(identity | common | _row([outcome_of(row) for row in own.to_pylist()]))
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


_WIDTH = 80

Column = tuple[str, Callable[[Mapping[str, Any]], str]]


def text_of(table: pa.Table) -> str:
    """The table as text, in 80 columns."""
    rows = table.to_pylist()
    first = rows[0]
    shards = f"{first['shards']:,} shard{'s' if first['shards'] != 1 else ''}"
    lines = [
        f"{first['workload']}: {first['operations']:,} operations in {shards};"
        f" times in {first['unit']}",
        "",
        *_aligned(
            [[title for title, _ in _COLUMNS]] + [[of(row) for _, of in _COLUMNS] for row in rows]
        ),
        "",
        "ns: per operation, expiries included; most pending: in one shard; late: fired_at",
        "- max(deadline, armed_at) of all timers that fired",
    ]
    return "\n".join(lines)


def _integer(name: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda row: "-" if row[name] is None else f"{row[name]:,}"


_COLUMNS: Sequence[Column] = (
    ("timer", lambda row: str(row["label"])),
    ("ns", lambda row: f"{row['ns_per_operation']:.1f}"),
    ("fired", _integer("fired")),
    ("most pending", _integer("most_pending")),
    ("late p50", _integer("lateness_p50")),
    ("p99", _integer("lateness_p99")),
    ("max", _integer("lateness_max")),
)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of text in columns; where that is too wide, the first column gets lines of its own."""
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
                *(text.rjust(width) for text, width in zip(row[1:], others, strict=True)),
            ]
        )
        for row in rows
    ]
