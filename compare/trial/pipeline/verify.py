"""Check that each timer of a replay fired what it must, when it must, and nothing else.

There are two methods, which share only the names of the roundings and of the kinds of mismatches:

- "compiled", the default: each task checks the expiries of a shard with
  `compare.trial.oracle.compiled`;
- "sql": Spark runs the queries of `compare.trial.oracle.sql` on the files of trace and expiries.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from compare.base.executors import Stopping
from compare.base.progress import progress
from compare.base.records import arrow_type, record_of, row_of
from compare.spark.executor import executor
from compare.trial.oracle.compiled import compile_check
from compare.trial.oracle.mismatches import Verified, combined
from compare.trial.pipeline.results import (
    REPLAYS,
    Results,
    ResultsError,
    ShardReplay,
    open_results,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

METHODS = ("compiled", "sql")

_CHECKS = pa.schema([("timer", pa.int32()), ("check", arrow_type(Verified))])


@dataclass(frozen=True)
class Verdict(Verified):
    """The result of checking one timer, over all shards."""

    timer: str  # its label

    @property
    def mismatches(self) -> int:
        """The number of mismatches of all kinds."""
        return sum(self.counts.values())


@dataclass(frozen=True)
class Verification:
    """The result of checking all timers, in the order of the manifest."""

    path: Path
    method: str
    unit: str
    operations: int  # of the trace
    shards: int
    timers: tuple[Verdict, ...]

    @property
    def passed(self) -> bool:
        """Whether there are no mismatches."""
        return not any(verdict.mismatches for verdict in self.timers)


def verify(
    results: str | os.PathLike[str],
    *,
    method: str = "compiled",
    examples: int = 5,
    allow: Collection[str] = (),
    master: str | None = None,
    session: "SparkSession | None" = None,
) -> Verification:
    """Compare the expiries of a replay with what its trace says must fire.

    Counts the mismatches of each timer by kind (`compare.trial.oracle.mismatches.KINDS`), and
    returns `examples` of each kind. The methods "compiled" and "sql" return the same. `allow` has
    the classes of the user's own timers that may be imported; see `open_results`.

    Raises:
        TimerError: if the results cannot be verified.
    """
    if method not in METHODS:
        raise ResultsError(f"method {method!r} is not {' or '.join(METHODS)}")
    opened = open_results(results, allow=allow)
    if not opened.manifest["expiries"]:
        raise ResultsError(
            f"{results} has only summaries; replay without --summaries-only to verify"
        )
    for replay in opened.replays():
        if not opened.expiries_file(*replay).is_file():
            raise ResultsError(f"{opened.expiries_file(*replay)} does not exist")
    if method == "compiled":
        found = _compiled(opened, examples, master, session)
    else:
        from compare.trial.pipeline.verify_sql import verified_by_sql

        found = verified_by_sql(opened, examples, master, session)
    return _verification(opened, method, found)


def checked(results: Results) -> Verification:
    """Return what the check during a replay has found. Raises ResultsError without a check."""
    return _verification(results, "compiled", results.verified())


def _verification(results: Results, method: str, checked: Sequence[Verified]) -> Verification:
    pairs = zip(results.contestants, checked, strict=True)
    verdicts = tuple(Verdict(**vars(verified), timer=timer.label) for timer, verified in pairs)
    trace = results.trace
    rows, shards = trace.totals["rows"], len(trace.shards)
    return Verification(results.path, method, trace.unit, rows, shards, verdicts)


def _compiled(
    results: Results, examples: int, master: str | None, session: "SparkSession | None"
) -> list[Verified]:
    """Check each shard of each timer as a task; only counts and examples are returned."""
    compile_check()
    # Workers get the roundings, so they do not look up timers by their names in the manifest.
    roundings = [timer.rounding(results.trace.unit) for timer in results.contestants]

    def check(tasks: pa.RecordBatch, stopping: Stopping) -> Iterator[pa.RecordBatch]:
        for replay in (ShardReplay(**task) for task in tasks.to_pylist()):
            verified = results.check(
                replay, roundings[replay.timer], examples=examples, stopping=stopping
            )
            row = {"timer": replay.timer, "check": row_of(verified)}
            yield pa.RecordBatch.from_pylist([row], _CHECKS)

    replays = pa.Table.from_pylist([replay._asdict() for replay in results.replays()], REPLAYS)
    timers, shards = len(results.contestants), len(results.trace.shards)
    with executor(master, session) as runner, progress("verify", runner.tasks):
        results.send_own_timers(runner)
        text = f"verify: {shards} shards x {timers} timers"
        rows = runner.map(replays, check, _CHECKS, text).to_pylist()
    return [
        combined(
            (record_of(Verified, row["check"]) for row in rows if row["timer"] == timer), examples
        )
        for timer in range(timers)
    ]
