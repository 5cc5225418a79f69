"""Check that each timer of a replay fired what it must, when it must, and nothing else.

There are two methods, which share only the names of the roundings and of the kinds of mismatches:

- "compiled", the default: a task compares the expiries of a shard with `compare.oracle.compiled`;
- "sql": Spark runs the queries of `compare.oracle.sql` on the files of the trace and of the
  expiries.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from compare.executors import Stopping, until_stopping
from compare.oracle.compiled import Check, compile_check
from compare.oracle.mismatches import ROW_SCHEMA, Verified, combined, row_of, verified_of
from compare.pipeline.expiries import VerifyError, read_expiries, rounding_on_workers
from compare.pipeline.results import Results, open_results
from compare.progress import progress
from compare.spark.executor import executor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

METHODS = ("compiled", "sql")


@dataclass(frozen=True)
class Verdict(Verified):
    """The comparison of one timer, over all shards."""

    timer: str  # its label

    @property
    def mismatches(self) -> int:
        """How many there are, of all kinds."""
        return sum(self.counts.values())


@dataclass(frozen=True)
class Verification:
    """The comparison of all timers, in the order of the results."""

    path: Path
    method: str
    unit: str
    operations: int  # of the trace
    shards: int
    timers: tuple[Verdict, ...]

    @property
    def passed(self) -> bool:
        """Whether there is no mismatch."""
        return not any(verdict.mismatches for verdict in self.timers)


def verify(
    results: str | os.PathLike[str],
    *,
    method: str = "compiled",
    examples: int = 5,
    master: str | None = None,
    session: "SparkSession | None" = None,
) -> Verification:
    """Compare all that a replay fired with what its trace says that it must fire.

    Counts the mismatches of each timer by kind (`compare.oracle.mismatches.KINDS`), and gives
    `examples` of each kind. Both methods, "compiled" and "sql", find the same.

    Raises:
        TimerError: for results that cannot be verified.
    """
    if method not in METHODS:
        raise VerifyError(f"method {method!r} is not {' or '.join(METHODS)}")
    opened = open_results(results)
    if not opened.manifest["expiries"]:
        raise VerifyError(
            f"{results} has only summaries; replay without --summaries-only to verify"
        )
    for timer, shard in opened.replays():
        if not opened.expiries_file(timer, shard).is_file():
            raise VerifyError(f"{opened.expiries_file(timer, shard)} does not exist")
    if method == "compiled":
        found = _compiled(opened, examples, master, session)
    else:
        from compare.pipeline.verify_sql import verified_by_sql

        found = verified_by_sql(opened, examples, master, session)
    pairs = zip(opened.contestants, found, strict=True)
    verdicts = tuple(Verdict(**vars(verified), timer=timer.label) for timer, verified in pairs)
    trace = opened.trace
    rows, shards = trace.totals["rows"], len(trace.shards)
    return Verification(opened.path, method, trace.unit, rows, shards, verdicts)


def _compiled(
    results: Results, examples: int, master: str | None, session: "SparkSession | None"
) -> list[Verified]:
    """A part of work for each shard of each timer, which returns counts and examples."""
    compile_check()
    pairs = list(results.replays())
    roundings = [rounding_on_workers(timer, results.trace.unit) for timer in results.contestants]

    def work(number: int, stopping: Stopping) -> pa.RecordBatch:
        timer, shard = pairs[number]
        entry = results.trace.shards[shard]
        check = Check(
            lambda: until_stopping(results.trace.pieces(shard), stopping),
            entry.rows,
            entry.id_space,
            lambda: read_expiries(results.expiries_file(timer, shard)),
            roundings[timer](),
            shard,
            results.manifest["drained"],
            examples,
        )
        return row_of(timer, check.run())

    with executor(master, session) as where, progress("verify", where.tasks):
        done = where.run(len(pairs), work, ROW_SCHEMA).to_pylist()
    return [
        combined((verified_of(row) for row in done if row["timer"] == timer), examples)
        for timer in range(len(results.contestants))
    ]
