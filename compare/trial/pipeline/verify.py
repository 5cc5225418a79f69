"""Check that each timer of a replay fired what it must, when it must, and nothing else.

There are two methods, which share only the names of the roundings and of the kinds of mismatches:

- "compiled", the default: each task checks the expiries of a shard with
  `compare.trial.oracle.compiled`;
- "sql": Spark runs the queries of `compare.trial.oracle.sql` on the files of trace and expiries.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from compare.base.executors import Stopping, until_stopping
from compare.base.progress import progress
from compare.spark.executor import executor
from compare.trial.oracle.compiled import Check, compile_check
from compare.trial.oracle.mismatches import Verified, combined
from compare.trial.pipeline.results import Results, ResultsError, open_results, read_expiries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

METHODS = ("compiled", "sql")


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
    master: str | None = None,
    session: "SparkSession | None" = None,
) -> Verification:
    """Compare the expiries of a replay with what its trace says must fire.

    Counts the mismatches of each timer by kind (`compare.trial.oracle.mismatches.KINDS`), and
    returns `examples` of each kind. The methods "compiled" and "sql" return the same.

    Raises:
        TimerError: if the results cannot be verified.
    """
    if method not in METHODS:
        raise ResultsError(f"method {method!r} is not {' or '.join(METHODS)}")
    opened = open_results(results)
    if not opened.manifest["expiries"]:
        raise ResultsError(
            f"{results} has only summaries; replay without --summaries-only to verify"
        )
    for replay in opened.replays():
        if not opened.expiries_file(*replay).is_file():
            raise ResultsError(f"{opened.expiries_file(*replay)} does not exist")
    if method == "compiled":
        checked = _compiled(opened, examples, master, session)
    else:
        from compare.trial.pipeline.verify_sql import verified_by_sql

        checked = verified_by_sql(opened, examples, master, session)
    pairs = zip(opened.contestants, checked, strict=True)
    verdicts = tuple(Verdict(**vars(verified), timer=timer.label) for timer, verified in pairs)
    trace = opened.trace
    rows, shards = trace.totals["rows"], len(trace.shards)
    return Verification(opened.path, method, trace.unit, rows, shards, verdicts)


def _compiled(
    results: Results, examples: int, master: str | None, session: "SparkSession | None"
) -> list[Verified]:
    """Check each shard of each timer as a part of work; only counts and examples are returned."""
    compile_check()
    replays = list(results.replays())

    def work(number: int, stopping: Stopping) -> Verified:
        timer, shard = replays[number]
        entry = results.trace.shards[shard]
        check = Check(
            lambda: until_stopping(results.trace.pieces(shard), stopping),
            entry.rows,
            entry.id_space,
            lambda: read_expiries(results.expiries_file(timer, shard)),
            # Computed here, because a function of somebody's own cannot be sent.
            results.contestants[timer].rounding(results.trace.unit),
            shard,
            results.manifest["drained"],
            examples,
        )
        return check.run()

    with executor(master, session) as runner, progress("verify", runner.tasks):
        results.send_own_timers(runner)
        checked = list(zip(replays, runner.run(len(replays), work), strict=True))
    return [
        combined((verified for replay, verified in checked if replay.timer == timer), examples)
        for timer in range(len(results.contestants))
    ]
