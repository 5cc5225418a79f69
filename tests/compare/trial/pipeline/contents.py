"""What a pipeline makes, as digests, and what it made before its files were datasets of blocks."""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from compare.base.datasets import Dataset, part_name, write_part
from compare.traffic.tapes.trace import Trace
from compare.trial.pipeline.results import Results
from compare.trial.replay.loops import FIRED
from compare.trial.replay.outcome import outcome_of
from compare.trial.results.store import Run
from tests.compare.small_tapes import digest

TIMERS = ("cascading-wheel", "hashed-wheel/tick=5ms", "delay-queue")


class Digests(NamedTuple):
    """The first digits of SHA-256."""

    description: str
    operations: str
    expiries: str
    outcomes: str
    summary: str


WORKLOADS = {
    "uniform": {"operations": 200_000, "shards": 3, "seed": 1},
    "lognormal-low": {"operations": 150_000, "shards": 2, "seed": 7},
    "keepalive": {"operations": 100_000, "shards": 2, "seed": 3},
}
FROZEN = {
    "uniform": Digests(
        "8f09d9df972f314b",
        "2d04bb4759ee313f",
        "9a5433a9812751ee",
        "954cb1ffe86d567e",
        "1c4cf619c1f526fb",
    ),
    "lognormal-low": Digests(
        "d9054cd661a44f66",
        "04d1e6ad0e01e7f7",
        "372f07d2c0ad57a8",
        "d94d254e0d2e1140",
        "915876bd062d97c1",
    ),
    "keepalive": Digests(
        "3c50dda10172e5e6",
        "624903548811045e",
        "f3cb0898d3815fca",
        "906452b05dc69a3f",
        "366a874c7a4a1303",
    ),
}
"""Of 32bcb32: each of these workloads, replayed through TIMERS with the check."""


def expiries_of(results: Results) -> dict[tuple[str, int], dict[str, list[int]]]:
    """What each timer fired in each shard, in order of delivery."""
    fired: dict[tuple[str, int], dict[str, list[int]]] = {}
    for row in rows_of(results.expiries):
        columns = fired.setdefault((row["contestant"], row["shard"]), {n: [] for n in FIRED.names})
        for name, values in columns.items():
            values += row[name]
    return fired


def outcomes_of(results: Results) -> dict[tuple[str, int], dict[str, Any]]:
    """The outcome of each timer in each shard, without what the machine decides."""
    found = {}
    for row in results.expiries.column("outcome").to_pylist():
        values = outcome_of(row["outcome"]).as_json()
        for name in ("seconds", "ns_per_operation", "nbytes"):
            del values[name]
        found[row["contestant"], row["shard"]] = values
    return found


def digests_of(trace: Trace, results: Results, run: Run) -> Digests:
    """All that is frozen."""
    shards = range(trace.totals["shards"])
    labels = [timer.label for timer in results.contestants]
    fired, outcomes = expiries_of(results), outcomes_of(results)
    expiries = {}
    for label in labels:
        for shard in shards:
            columns = fired[label, shard].values()
            content = b"".join(np.array(values, "<i8").tobytes() for values in columns)
            expiries[f"{label} {shard}"] = hashlib.sha256(content).hexdigest()
    by_timer = {
        label: _sha([outcomes[label, shard] for shard in shards], sort_keys=True)
        for label in labels
    }
    varies = ("replay_time", "nbytes", "seconds")
    rows = [(row.contestant, row.metric, str(row.value)) for row in run.rows]
    texts = (
        _sha(vars(trace.description), sort_keys=True, default=dict),
        _sha([digest(trace.load(shard)) for shard in shards]),
        _sha(expiries),
        _sha(by_timer),
        _sha(sorted(row for row in rows if row[1] not in varies)),
    )
    return Digests(*(text[:16] for text in texts))


def _sha(value: Any, **how: Any) -> str:
    return hashlib.sha256(json.dumps(value, **how).encode()).hexdigest()


# ---- the rows of a dataset


def table_of(dataset: Dataset) -> pa.Table:
    """All rows, in order."""
    dataset = Dataset(dataset.path, dataset.schema, dataset.key, dataset.error)  # as it is now
    rows = dataset.rows(0, dataset.index.keys.num_rows, dataset.schema.names)
    return pa.Table.from_batches(rows, dataset.schema)


def rows_of(dataset: Dataset) -> list[dict[str, Any]]:
    """All rows, in order."""
    return table_of(dataset).to_pylist()


def rewrite(dataset: Dataset, *tables: pa.Table) -> None:
    """Put these rows in the place of a dataset's, a file for each table."""
    for file in sorted(Path(dataset.path).glob("*.parquet")):
        file.unlink()
    for number, table in enumerate(tables):
        write_part(Path(dataset.path, part_name(number)), table.schema, table.to_batches())
