"""Replayed grids as a run: what `wheelwork summarise` wrote becomes the same Summary that a stored
run does.

Here the samples of a time are a trace's shards, each replayed once, not repeats of the same tape.
"""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from compare.bench.contestant import contestant
from compare.bench.store import traits_of
from compare.files import parquet_errors
from compare.pipeline.summarise import ABOUT, SCHEMA, SUMMARY, summarise
from reports.summary import Cell, Replayed, Spread, Summary, contestants_of
from timers.errors import TimerError


class GridError(TimerError, ValueError):
    """Tables of replayed grids that cannot be read; one line that names the path and what is
    wrong.
    """


def read_grids(paths: Sequence[str | os.PathLike[str]]) -> Summary:
    """The figures of one or more grids: directories that `replay --out` wrote, or files that
    `summarise --out` did.

    Each is a source of its own; a directory without a table is summed up first. O(rows). Raises
    GridError for what is no such table or has no rows, ResultsError for results that are not
    complete, TimerError for a timer that is unknown.
    """
    if not paths:
        raise GridError("there is no grid to show: name at least one")
    tables = {Path(path): _read(Path(path)) for path in paths}
    names = _names(tables)
    traits: dict[tuple[str, str], dict[str, Any]] = {}
    replays = {}
    for path, table in tables.items():
        for row in table.to_pylist():
            key = row["timer"], row["parameters"]
            if key not in traits:
                timer = contestant(row["timer"], json.loads(row["parameters"]))
                traits[key] = traits_of(timer)
            replays[names[path], key] = Replayed(_cell(row), row)
    about = [json.loads(table.schema.metadata[ABOUT]) for table in tables.values()]
    return Summary(
        manifest=_manifest(about),
        contestants=contestants_of(traits.values()),
        described={
            names[path]: _described(table.slice(0, 1).to_pylist()[0])
            for path, table in tables.items()
        },
        cells={},
        counts={},
        replays=replays,
        lateness={},
        memory={},
        sample="shard",
    )


def _read(path: Path) -> pa.Table:
    if path.is_dir():
        if not (path / SUMMARY).exists():
            return summarise(path)
        path = path / SUMMARY
    with parquet_errors(path, GridError):
        table = pq.read_table(path)
    if not table.schema.equals(SCHEMA) or ABOUT not in (table.schema.metadata or {}):
        raise GridError(
            f"{path} is no table of a replayed grid; `wheelwork summarise RESULTS` makes one"
        )
    if not table.num_rows:
        raise GridError(f"{path} has no rows")
    return table


def _names(tables: Mapping[Path, pa.Table]) -> dict[Path, str]:
    """What each source is called: its workload, or the path where that would not tell two of them
    apart.
    """
    workloads = {path: table["workload"][0].as_py() for path, table in tables.items()}
    times = Counter(workloads.values())
    return {
        path: name if times[name] == 1 else f"{name}, {path}" for path, name in workloads.items()
    }


def _cell(row: Mapping[str, Any]) -> Cell:
    median, least, most = (
        row[f"shard_ns_per_operation_{which}"] for which in ("median", "least", "most")
    )
    return Cell(Spread(median, least, most, row["shards"]), None, row["operations"])


def _described(row: Mapping[str, Any]) -> dict[str, Any]:
    source = json.loads(row["source"])
    details = {
        name: value for name, value in source.items() if isinstance(value, str | int | float | dict)
    }
    return {
        "operations": row["operations"],
        "timers": row["scheduled"],
        "shards": row["shards"],
        "details": details,
    }


def _manifest(about: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Where the first was made; of the others, what they were asked."""
    return {
        **about[0],
        "parameters": {f"grid {number}": other["asked"] for number, other in enumerate(about, 1)},
        "agreement": {
            "checked": "not here: `wheelwork verify RESULTS` holds every expiry of a grid to an oracle"
        },
    }
