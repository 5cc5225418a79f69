"""Results of replaying a trace through several timers, on disk.

    RESULTS/manifest.json
    RESULTS/outcomes/timer-000/shard-00000.parquet   one row, written last: the replay is finished
    RESULTS/expiries/timer-000/shard-00000.parquet   what fired, in the order of delivery, if kept

A shard replay is one shard through one timer, whose label the manifest has. For the meaning of the
columns, see docs/pipeline.md.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from compare.files import MANIFEST, open_parquet, read_manifest
from compare.replay.contestant import Contestant, contestant
from compare.replay.lateness import Lateness
from compare.replay.loops import FIRED
from compare.replay.outcome import Outcome, columns
from compare.tapes.trace import Trace, known_trace, open_trace, shard_name
from timers.errors import TimerError

FORMAT = "wheelwork-results"
VERSION = 2

EXPIRIES = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in FIRED.names or ()])
"""`operation` is the row on the shard's tape that last armed the timer."""

OUTCOMES = pa.schema(
    [
        ("timer", pa.int32()),
        ("shard", pa.int32()),
        ("engine", pa.string()),
        *columns(),
        ("lateness_values", pa.list_(pa.int64())),
        ("lateness_counts", pa.list_(pa.int64())),
    ]
)
"""A row for each shard replay; see docs/pipeline.md."""


class ResultsError(TimerError, ValueError):
    """Results that cannot be read or written; one line that names the path and what is wrong."""


class ShardReplay(NamedTuple):
    """One shard through one timer, by their numbers."""

    timer: int
    shard: int


@dataclass(frozen=True)
class Results:
    """Opened results, complete or not."""

    path: Path
    manifest: Mapping[str, Any]
    trace: Trace

    def __reduce__(self) -> Any:
        """Send little to a worker, which opens the trace once for all tasks."""
        return _on_worker, (self.path.resolve(), self.manifest)

    @cached_property
    def contestants(self) -> tuple[Contestant, ...]:
        """The timers of the replay."""
        return tuple(map(contestant, self.manifest["timers"]))

    @property
    def complete(self) -> bool:
        """Whether every shard replay is finished."""
        return bool(self.manifest["complete"])

    def outcome_file(self, timer: int, shard: int) -> Path:
        """Where the outcome of a shard replay is, once it is finished."""
        return self.path / "outcomes" / timer_name(timer) / shard_name(shard)

    def expiries_file(self, timer: int, shard: int) -> Path:
        """Where the expiries of a shard replay are, if they are kept."""
        return self.path / "expiries" / timer_name(timer) / shard_name(shard)

    def replays(self) -> Iterator[ShardReplay]:
        """Every replay, shard by shard: neighbours may be replayed together."""
        for shard in range(len(self.trace.shards)):
            for timer in range(len(self.manifest["timers"])):
                yield ShardReplay(timer, shard)

    def unfinished(self) -> list[ShardReplay]:
        """The shard replays that have no outcome yet."""
        return [one for one in self.replays() if not self.outcome_file(*one).exists()]

    def read_outcomes(self) -> pa.Table:
        """All outcomes, of schema OUTCOMES, ordered by timer and shard.

        Raises ResultsError for a file that is damaged.
        """
        tables = []
        for timer, shard in sorted(self.replays()):
            path = self.outcome_file(timer, shard)
            with open_parquet(path, ResultsError) as file:
                table = file.read()
            if not table.schema.equals(OUTCOMES) or table.num_rows != 1:
                raise ResultsError(
                    f"{path} is not the outcome of a replay; remove it and rerun the replay"
                )
            tables.append(table)
        return pa.concat_tables(tables)

    def outcomes(self) -> list[list[Outcome]]:
        """The outcomes of each timer, by shard. Raises ResultsError."""
        found: list[list[Outcome]] = [[] for _ in self.contestants]
        for row in self.read_outcomes().to_pylist():
            found[row["timer"]].append(outcome_of(row))
        return found


def _on_worker(path: Path, manifest: Mapping[str, Any]) -> Results:
    trace = manifest["trace"]
    return Results(path, manifest, known_trace(trace["path"], trace["digest"]))


def outcome_table(timer: int, shard: int, engine: str, outcome: Outcome) -> pa.Table:
    """One row of schema OUTCOMES."""
    row = {
        "timer": timer,
        "shard": shard,
        "engine": engine,
        **outcome.row(),
        "lateness_values": outcome.lateness.values.tolist(),
        "lateness_counts": outcome.lateness.counts.tolist(),
    }
    return pa.Table.from_pylist([row], schema=OUTCOMES)


def outcome_of(row: Mapping[str, Any]) -> Outcome:
    """The outcome in a row of schema OUTCOMES."""
    values, counts = (np.array(row[f"lateness_{part}"], np.int64) for part in ("values", "counts"))
    return Outcome.of_row(row, Lateness(values, counts, row["lateness_min"], row["lateness_max"]))


def timer_name(timer: int) -> str:
    """The directory of a timer's files."""
    return f"timer-{timer:03d}"


def open_results(path: str | os.PathLike[str], *, complete: bool = True) -> Results:
    """Open the results in the directory `path`, and the trace that they are of.

    Raises ResultsError for a path that does not exist or does not hold results, a damaged manifest,
    a trace that has moved or changed and, with `complete`, for a replay that has not finished.
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
    results = Results(path, manifest, trace)
    number = len(results.contestants) * len(trace.shards)
    if complete and not results.complete:
        left = len(results.unfinished())
        raise ResultsError(
            f"{path} is not complete: {left} of {number} shard replays are missing; rerun the"
            " replay to resume it"
        )
    return results


def results_manifest(path: Path) -> dict[str, Any]:
    """The manifest of the results in `path`. Raises ResultsError."""
    flags = dict.fromkeys(("expiries", "drained", "counting", "complete"), bool)
    entries = {"trace": dict, "timers": list, "made": dict, **flags}
    manifest = read_manifest(path, "a stored replay", FORMAT, VERSION, entries, ResultsError)
    if not all(isinstance(timer, str) for timer in manifest["timers"]):
        raise ResultsError(f"{path / MANIFEST}: timers is not a list of strings")
    if not {"path", "digest"} <= manifest["trace"].keys():
        raise ResultsError(f"{path / MANIFEST}: the trace must have a path and a digest")
    return manifest
