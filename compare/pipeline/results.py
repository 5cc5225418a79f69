"""Results of a grid replay on disk: a manifest, a summary for each cell, and the expiries of each
where they are kept.

    RESULTS/manifest.json
    RESULTS/cells/timer-000/shard-00000.parquet      one row; a cell is finished if this exists, for it comes last
    RESULTS/expiries/timer-000/shard-00000.parquet   what fired, in the order of delivery

A cell is one shard replayed through one timer. Meaning of the columns: docs/pipeline.md.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from compare.bench.contestant import Contestant, contestant
from compare.files import MANIFEST, parquet_errors, read_manifest
from compare.tapes.trace import Trace, open_trace, shard_name
from timers.errors import TimerError
from timers.kernels.counters import COUNTERS

FORMAT = "wheelwork-results"
VERSION = 1

EXPIRIES = pa.schema(
    [pa.field(name, pa.int64(), nullable=False) for name in ("operation", "deadline", "fired_at")]
)
"""`operation` is the row on the shard's tape that last armed the timer."""

CELL = pa.schema(
    [
        ("timer", pa.int32()),
        ("shard", pa.int32()),
        ("engine", pa.string()),
        *(
            (name, pa.int64())
            for name in (
                "operations",
                "scheduled",
                "cancelled",
                "rescheduled",
                "fired",
                "pending",
                "most_pending",
                "wakeups",
                "idle_wakeups",
                "nbytes",
            )
        ),
        ("seconds", pa.float64()),
        *((name, pa.int64()) for name in COUNTERS),
        ("lateness_min", pa.int64()),
        ("lateness_max", pa.int64()),
        ("lateness_edges", pa.list_(pa.int64())),
        ("lateness_counts", pa.list_(pa.int64())),
    ]
)
"""A cell's summary; see docs/pipeline.md."""


class ResultsError(TimerError, ValueError):
    """Results that cannot be read or written; one line that names the path and what is wrong."""


@dataclass(frozen=True)
class Results:
    """Opened results, complete or not."""

    path: Path
    manifest: Mapping[str, Any]
    trace: Trace
    contestants: tuple[Contestant, ...]

    @property
    def complete(self) -> bool:
        """Whether every cell is finished."""
        return bool(self.manifest["complete"])

    def cell_file(self, timer: int, shard: int) -> Path:
        """Where a cell's summary is, once it is finished."""
        return self.path / "cells" / timer_name(timer) / shard_name(shard)

    def expiries_file(self, timer: int, shard: int) -> Path:
        """Where a cell's expiries are, if they are kept."""
        return self.path / "expiries" / timer_name(timer) / shard_name(shard)

    def cells(self) -> Iterator[tuple[int, int]]:
        """(timer, shard) of every cell, shard by shard: neighbours may be replayed together."""
        for shard in range(len(self.trace.shards)):
            for timer in range(len(self.contestants)):
                yield timer, shard

    def unfinished(self) -> list[tuple[int, int]]:
        """The cells that have no summary yet."""
        return [cell for cell in self.cells() if not self.cell_file(*cell).exists()]

    def read_cells(self) -> pa.Table:
        """All summaries, of schema CELL, ordered by timer and shard. Raises ResultsError for one
        that is damaged.
        """
        tables = []
        for timer, shard in sorted(self.cells()):
            path = self.cell_file(timer, shard)
            with parquet_errors(path, ResultsError):
                table = pq.read_table(path)
            if not table.schema.equals(CELL) or table.num_rows != 1:
                raise ResultsError(f"{path} is no summary of a cell; remove it, and replay again")
            tables.append(table)
        return pa.concat_tables(tables)


def timer_name(timer: int) -> str:
    """The directory of a timer's cells."""
    return f"timer-{timer:03d}"


def open_results(path: str | os.PathLike[str], *, complete: bool = True) -> Results:
    """Open the results in the directory `path`, and the trace that they are of.

    Raises ResultsError for a path that is missing or no results, a damaged manifest, a trace that
    has moved or changed, and, with `complete`, for a replay that has not finished.
    """
    path = Path(path)
    manifest = results_manifest(path)
    wanted = manifest["trace"]
    try:
        trace = open_trace(wanted["path"])
    except TimerError as error:
        raise ResultsError(f"the trace of {path} cannot be opened: {error}") from None
    if trace.manifest_digest != wanted["digest"]:
        raise ResultsError(f"the trace {trace.path} is not the one that {path} was made of")
    found = tuple(contestant(timer["name"], timer["parameters"]) for timer in manifest["timers"])
    results = Results(path, manifest, trace, found)
    if complete and not results.complete:
        left = len(results.unfinished())
        raise ResultsError(
            f"{path} is not complete: {left} of {len(found) * len(trace.shards)} cells are missing; say the same"
            " replay again to finish it"
        )
    return results


def results_manifest(path: Path) -> dict[str, Any]:
    """The manifest of the results in `path`. Raises ResultsError."""
    entries = {
        "trace": dict,
        "timers": list,
        "made": dict,
        "expiries": bool,
        "drained": bool,
        "complete": bool,
    }
    manifest = read_manifest(path, "a stored replay", FORMAT, VERSION, entries, ResultsError)
    for timer in manifest["timers"]:
        if not (
            isinstance(timer, dict)
            and isinstance(timer.get("name"), str)
            and isinstance(timer.get("parameters"), dict)
        ):
            raise ResultsError(
                f"{path / MANIFEST}: each of timers is an object with name and parameters"
            )
    if not {"path", "digest"} <= manifest["trace"].keys():
        raise ResultsError(f"{path / MANIFEST}: trace is an object with path and digest")
    return manifest
