"""Results of replaying a trace through several timers, on disk.

    RESULTS/manifest.json
    RESULTS/outcomes/timer-000/shard-00000.parquet   one row, written last: the replay is finished
    RESULTS/expiries/timer-000/shard-00000.parquet   what fired, in order of delivery; optional

A shard replay is one shard replayed through one timer. The manifest has the timers' names and
settings. docs/pipeline.md explains the columns.
"""

import os
import shlex
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from compare.base.executors import Executor, Stopping, never_stopping, until_stopping
from compare.base.files import MANIFEST, open_parquet, read_manifest
from compare.base.records import arrow_type, record_of, row_of
from compare.traffic.tapes.tape import Tape
from compare.traffic.tapes.trace import Trace, columns_text, open_trace, shard_name
from compare.trial.oracle.compiled import Check, Rows
from compare.trial.oracle.mismatches import Verified, combined
from compare.trial.replay.contestant import Contestant, contestant
from compare.trial.replay.loops import FIRED
from compare.trial.replay.outcome import Outcome, outcome_of, stored_columns
from timers.errors import TimerError
from timers.rounding import AnyRounding

FORMAT = "wheelwork-results"
VERSION = 4

EXPIRIES = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in FIRED.names or ()])
"""`operation` is the row of the shard's tape that last armed the timer."""

OPTIONS = ("expiries", "drained", "counting", "checked")
"""The options of a replay in its manifest; see `replay_trace`."""

_ROWS_AT_ONCE = 1 << 18

OUTCOMES = pa.schema(
    [
        ("timer", pa.int32()),
        ("shard", pa.int32()),
        ("engine", pa.string()),
        *stored_columns(),
        ("check", arrow_type(Verified)),
    ]
)
"""A row for each shard replay; see docs/pipeline.md."""

EXAMPLES = 5
"""Mismatches of each kind that are listed."""


class ResultsError(TimerError, ValueError):
    """Results cannot be read, written or verified. The message is one line."""


class ShardReplay(NamedTuple):
    """One shard replayed through one timer, both by number."""

    timer: int
    shard: int


REPLAYS = pa.schema([(name, pa.int32()) for name in ShardReplay._fields])
"""Shard replays as rows."""


@dataclass(frozen=True)
class Results:
    """Open results, complete or not."""

    path: Path
    manifest: Mapping[str, Any]
    trace: Trace

    def __reduce__(self) -> Any:
        """Pickle an absolute path: a worker may have another working directory."""
        return Results, (self.path.resolve(), self.manifest, self.trace)

    @cached_property
    def contestants(self) -> tuple[Contestant, ...]:
        """The timers of the replay."""
        return tuple(Contestant(**timer) for timer in self.manifest["timers"])

    @property
    def complete(self) -> bool:
        """Whether every shard replay is finished."""
        return bool(self.manifest["complete"])

    def outcome_file(self, timer: int, shard: int) -> Path:
        """The outcome of a shard replay; the file exists once the replay is finished."""
        return self.path / "outcomes" / timer_name(timer) / shard_name(shard)

    def expiries_file(self, timer: int, shard: int) -> Path:
        """The expiries of a shard replay, if they are kept."""
        return self.path / "expiries" / timer_name(timer) / shard_name(shard)

    def replays(self) -> Iterator[ShardReplay]:
        """All shard replays, ordered by shard, so that neighbours can be replayed together."""
        for shard in range(len(self.trace.shards)):
            for timer in range(len(self.manifest["timers"])):
                yield ShardReplay(timer, shard)

    def unfinished(self) -> list[ShardReplay]:
        """The shard replays that have no outcome yet, or whose expiries are missing."""
        return [replay for replay in self.replays() if not self.is_finished(replay)]

    def is_finished(self, replay: ShardReplay) -> bool:
        """Whether a shard replay has its files."""
        kept = self.manifest["expiries"]
        return self.outcome_file(*replay).exists() and (
            not kept or self.expiries_file(*replay).exists()
        )

    def read_outcomes(self) -> pa.Table:
        """All outcomes, of schema OUTCOMES, ordered by timer and shard.

        Raises ResultsError for a damaged file.
        """
        tables = []
        for timer, shard in sorted(self.replays()):
            path = self.outcome_file(timer, shard)
            with open_parquet(path, ResultsError) as file:
                table = file.read()
            if not table.schema.equals(OUTCOMES) or table.select(
                ["timer", "shard"]
            ).to_pylist() != [{"timer": timer, "shard": shard}]:
                raise ResultsError(
                    f"{path} is not the outcome of a replay; remove it and rerun the replay"
                )
            tables.append(table)
        return pa.concat_tables(tables)

    def outcomes(self) -> list[list[Outcome]]:
        """The outcomes of each timer, by shard. Raises ResultsError."""
        outcomes: list[list[Outcome]] = [[] for _ in self.contestants]
        for row in self.read_outcomes().to_pylist():
            outcomes[row["timer"]].append(outcome_of(row))
        return outcomes

    def verified(self) -> list[Verified]:
        """The comparison of each timer with the oracle, if the replay has made it.

        Raises ResultsError.
        """
        rows = self.read_outcomes().select(["timer", "check"]).to_pylist()
        checks: list[list[Verified]] = [[] for _ in self.contestants]
        for row in rows:
            if row["check"] is None:
                raise ResultsError(f"{self.path} was not checked during the replay")
            checks[row["timer"]].append(record_of(Verified, row["check"]))
        return [combined(parts, EXAMPLES) for parts in checks]

    def check(
        self,
        replay: ShardReplay,
        rounding: AnyRounding,
        *,
        expiries: Path | None = None,
        examples: int = EXAMPLES,
        stopping: Stopping = never_stopping,
    ) -> Verified:
        """Compare the expiries of a shard replay with those that the compiled oracle expects.

        `expiries` is a file of them, if it is not in its place yet.
        """
        drained = self.manifest["drained"]
        check = Check(rounding, replay.shard, drained=drained, examples=examples)

        def pieces() -> Iterator[Tape]:
            return until_stopping(self.trace.pieces(replay.shard), stopping)

        remaining, now = pieces(), -1
        # Expiries are in order, so a timer has its row soon after it is due.
        for rows in read_expiries(expiries or self.expiries_file(*replay)):
            while now < rows.fired_at[-1] and (piece := next(remaining, None)) is not None:
                check.follow(piece)
                now = int(piece.time[-1])
            check.match(rows)
        for piece in remaining:
            check.follow(piece)
        return check.finish(pieces)

    def send_own_timers(self, runner: Executor) -> None:
        """Send the modules of users' own timers to the workers, if they are single files."""
        own = [timer for timer in self.contestants if ":" in timer.name]
        for module in {timer.timer_class.__module__ for timer in own}:
            file = getattr(sys.modules[module], "__file__", None)
            if file and "." not in module:
                runner.send_module(file)


def outcome_table(
    timer: int, shard: int, engine: str, outcome: Outcome, check: Verified | None
) -> pa.Table:
    """Return a table of one row, of schema OUTCOMES."""
    row = {
        "timer": timer,
        "shard": shard,
        "engine": engine,
        **outcome.stored(),
        "check": None if check is None else row_of(check),
    }
    return pa.Table.from_pylist([row], schema=OUTCOMES)


@contextmanager
def open_expiries(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a file of expiries and check its columns. Raises ResultsError if it cannot be read."""
    with open_parquet(path, ResultsError) as file:
        types = {field.name: field.type for field in file.schema_arrow}
        if any(types.get(field.name) != field.type for field in EXPIRIES):
            raise ResultsError(
                f"{path} has the columns ({columns_text(file.schema_arrow)}); expiries have"
                f" ({columns_text(EXPIRIES)})"
            )
        yield file


def read_expiries(path: Path) -> Iterator[Rows]:
    """Read a file of expiries, piece by piece. Raises ResultsError."""
    with open_expiries(path) as file:
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=list(Rows._fields)):
            for name in Rows._fields:
                if batch.column(name).null_count:
                    raise ResultsError(f"{path} has a row without {name}")
            # Arrow's memory is read-only, which is another type to jitted code: copy it.
            yield Rows(*(np.array(batch.column(name).to_numpy()) for name in Rows._fields))


def timer_name(timer: int) -> str:
    """Return the name of the directory of a timer's files."""
    return f"timer-{timer:03d}"


def open_results(
    path: str | os.PathLike[str], *, complete: bool = True, allow: Collection[str] = ()
) -> Results:
    """Open the results in the directory `path`, and their trace.

    Results may name classes of anybody, and an import runs their modules. Only those in `allow`,
    each as `module:Class`, are imported.

    Raises ResultsError for a path that does not exist or does not hold results, a damaged manifest,
    a class that is not allowed, a trace that has moved or changed and, with `complete`, for an
    unfinished replay.
    """
    path = Path(path)
    manifest = results_manifest(path)
    _check_timers(path, manifest, allow)
    try:
        trace = open_trace(manifest["trace"]["path"])
    except TimerError as error:
        raise ResultsError(f"the trace of {path} cannot be opened: {error}") from None
    if trace.manifest_digest != manifest["trace"]["digest"]:
        raise ResultsError(f"{trace.path} is not the trace that was replayed for {path}")
    results = Results(path, manifest, trace)
    if complete and not results.complete:
        total, missing = len(list(results.replays())), len(results.unfinished())
        raise ResultsError(
            f"{path} is not complete: {missing} of {total} shard replays are missing; rerun the"
            " replay to resume it"
        )
    return results


def _check_timers(path: Path, manifest: Mapping[str, Any], allow: Collection[str]) -> None:
    """Raise ResultsError for a class that is not allowed, then for invalid parameters."""
    timers = [Contestant(**timer) for timer in manifest["timers"]]
    for timer in timers:
        if ":" in timer.name and timer.name not in allow:
            raise ResultsError(
                f"{path} names {timer.name!r}, a class that is not part of this package; its module"
                f" runs only with --allow {shlex.quote(timer.name)}"
            )
    try:
        for timer in timers:
            contestant(timer.label)
    except TimerError as error:
        raise ResultsError(f"{path / MANIFEST}: {error}") from None


def results_manifest(path: Path) -> dict[str, Any]:
    """Read the manifest of the results in `path`. Raises ResultsError."""
    flags = dict.fromkeys((*OPTIONS, "complete"), bool)
    entries = {"trace": dict, "timers": list, "made_by": dict, **flags}
    manifest = read_manifest(path, "a stored replay", FORMAT, VERSION, entries, ResultsError)
    keys = {field.name for field in fields(Contestant)}
    for timer in manifest["timers"]:
        is_complete = isinstance(timer, dict) and timer.keys() == keys
        if not (
            is_complete and isinstance(timer["name"], str) and isinstance(timer["settings"], dict)
        ):
            raise ResultsError(f"{path / MANIFEST}: each of timers must have a name and settings")
    if not {"path", "digest"} <= manifest["trace"].keys():
        raise ResultsError(f"{path / MANIFEST}: trace must have a path and a digest")
    return manifest
