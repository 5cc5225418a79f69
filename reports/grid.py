"""Replayed grids as a Summary, like that of a stored run.

A time is that of all shards of a trace together. Its samples are the shards, each replayed once,
and not repeats of the same tape.
"""

import json
import os
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from compare.base.files import open_parquet
from compare.trial.bench.store import traits_of
from compare.trial.pipeline.results import ResultsError
from compare.trial.pipeline.summarise import ABOUT, SCHEMA, SUMMARY, summarise
from compare.trial.replay.contestant import Contestant
from reports.statistics import Spread
from reports.summary import Replayed, StoredSource, Summary, contestants_of


def read_grids(paths: Sequence[str | os.PathLike[str]]) -> Summary:
    """The figures of one or more grids, each a source of its own. O(rows).

    A grid is a directory that `replay --out` wrote, or a file that `summarise --out` wrote. A
    directory without a table is summarised first.

    Raises:
        ResultsError: A path is not such a table, has no rows, or its results are not complete.
        TimerError: A timer is unknown.
    """
    tables = {Path(path): _read(Path(path)) for path in paths}
    rows = {path: table.to_pylist() for path, table in tables.items()}
    units = {grid[0]["unit"] for grid in rows.values()}
    timers = {
        row["contestant"]: Contestant(row["timer"], json.loads(row["settings"]))
        for grid in rows.values()
        for row in grid
    }
    contestants = contestants_of(traits_of(timer, units) for timer in timers.values())
    workloads = Counter(grid[0]["workload"] for grid in rows.values())
    about = [json.loads(table.schema.metadata[ABOUT]) for table in tables.values()]
    checked = (row["mismatches"] == 0 for grid in rows.values() for row in grid)
    return Summary(
        manifest={
            **about[0],  # how the first was made; of several, the parameters say it of each
            "parameters": {
                f"results {i}": (_made(each) if len(about) > 1 else {}) | each["asked"]
                for i, each in enumerate(about, 1)
            },
            "agreement": {"checked": _CHECKED if all(checked) else _NOT_CHECKED},
        },
        contestants=contestants,
        cells={},
        counts={},
        replays={
            _source(path, grid[0], alone=workloads[grid[0]["workload"]] == 1): {
                timer: _replayed(row)
                for timer in contestants
                for row in grid
                if row["contestant"] == timer.label
            }
            for path, grid in rows.items()
        },
        memory={},
        of_shards=True,
    )


_CHECKED = "every expiry, by the compiled oracle, as part of the replay"
_NOT_CHECKED = (
    "not by this report; `wheelwork verify RESULTS` checks every expiry of replayed results against"
    " the oracle"
)


def _made(about: Mapping[str, Any]) -> dict[str, str]:
    return {"created": about["created"], "command": shlex.join(about["command"])}


def _read(path: Path) -> pa.Table:
    if path.is_dir():
        if not (path / SUMMARY).exists():
            return summarise(path)
        path = path / SUMMARY
    with open_parquet(path, ResultsError) as file:
        table = file.read()
    if not table.schema.equals(SCHEMA) or ABOUT not in (table.schema.metadata or {}):
        raise ResultsError(
            f"{path} is not a table of replayed results; `wheelwork summarise RESULTS` makes one"
        )
    if not table.num_rows:
        raise ResultsError(f"{path} has no rows")
    return table


def _replayed(row: Mapping[str, Any]) -> Replayed:
    lowest, highest = (row[f"shard_ns_per_operation_{which}"] for which in ("least", "most"))
    spread = Spread.between(row["ns_per_operation"], lowest, highest, row["shards"])
    return Replayed(spread, row)


def _source(path: Path, row: Mapping[str, Any], *, alone: bool) -> StoredSource:
    """The replayed source, named by its workload, and by its path where workloads are equal."""
    source = json.loads(row["source"])
    details = {
        "operations": row["operations"],
        "timers": row["scheduled"],
        "shards": row["shards"],
        "span": row["span"],
        "details": {
            key: value
            for key, value in source.items()
            if isinstance(value, str | int | float | dict)
        },
    }
    name = row["workload"] if alone else f"{row['workload']}, {path}"
    return StoredSource(name, row["unit"], details, own=True)
