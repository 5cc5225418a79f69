"""Check that each timer of a replay fired what it must, when it must, and nothing else.

The blocks of a shard and the expiries of all timers are one stream, in which the expiries come
after the block behind which they were delivered. So neither is held.
"""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from compare.base.progress import progress
from compare.base.records import arrow_type, record_of, row_of
from compare.base.stages import SHARD, Batches, Stage
from compare.spark.engine import engine
from compare.spark.places import is_far
from compare.traffic.tapes.blocks import Tapes
from compare.trial.oracle.compiled import Check, Rows, compile_check
from compare.trial.oracle.mismatches import Verified, combined
from compare.trial.pipeline.results import Results, ResultsError, open_results, send_own_timers
from compare.trial.pipeline.summarise import Added, outcomes_of
from timers.rounding import AnyRounding

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHECKS = pa.schema(
    [(SHARD, pa.int32()), ("contestant", pa.string()), ("check", arrow_type(Verified))]
)


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

    path: str
    unit: str
    operations: int  # of the trace
    shards: int
    timers: tuple[Verdict, ...]

    @property
    def passed(self) -> bool:
        """Whether there are no mismatches."""
        return not any(verdict.mismatches for verdict in self.timers)


def stage(roundings: Mapping[str, AnyRounding], *, drained: bool, examples: int) -> Stage:
    """Turn blocks and expiries of timers, by label, into checks."""
    function = partial(_checked, dict(roundings), drained, examples)
    return Stage("verify", (SHARD,), ("block", "contestant", "piece"), CHECKS, function)


def _checked(
    roundings: Mapping[str, AnyRounding], drained: bool, examples: int, rows: Batches
) -> Batches:
    """Check one shard. Memory: the pending timers of all, and what is wrong."""
    tapes: Tapes | None = None
    shard, checks = 0, {}
    pieces = dict.fromkeys(roundings, 0)  # the next of each timer; -1 after its last
    for batch in rows:
        for row in range(batch.num_rows):
            label = batch["contestant"][row].as_py()
            if tapes is None:
                shard = batch[SHARD][row].as_py()
                tapes = Tapes("the trace", shard)
                checks = {
                    name: Check(rounding, shard, drained=drained, examples=examples)
                    for name, rounding in roundings.items()
                }
            if label is None:
                tape = tapes.take(batch, row)
                for check in checks.values():
                    check.follow(tape)
                continue
            if label not in checks:
                raise ResultsError(f"the results have {label!r}, which was not replayed")
            if batch["piece"][row].as_py() != pieces[label]:
                raise ResultsError(
                    f"the expiries of {label} in shard {shard} lack piece {pieces[label]}, or have"
                    " pieces of two runs"
                )
            pieces[label] = -1 if batch["outcome"][row].is_valid else pieces[label] + 1
            checks[label].match(Rows(*(_column(batch, name, row) for name in Rows._fields)))
    if tapes is not None:
        tapes.finish()
    for label, check in checks.items():
        if pieces[label] != -1:
            raise ResultsError(f"the expiries of {label} in shard {shard} are not complete")
        found = {SHARD: shard, "contestant": label, "check": row_of(check.finish())}
        yield pa.RecordBatch.from_pylist([found], CHECKS)


def _column(batch: pa.RecordBatch, name: str, row: int) -> Any:
    values = batch[name][row].values
    if values is None or values.null_count:
        raise ResultsError(f"an expiry has no {name}")
    # Arrow's memory is read-only, which is another type to jitted code: copy it.
    return np.array(values)


def verify(
    results: str | os.PathLike[str],
    *,
    examples: int = 5,
    allow: Collection[str] = (),
    master: str | None = None,
    session: "SparkSession | None" = None,
) -> Verification:
    """Compare the expiries of a replay with what its trace says must fire.

    Counts the mismatches of each timer by kind (`compare.trial.oracle.mismatches.KINDS`), and
    returns `examples` of each kind. `allow` has the classes of the user's own timers that may be
    imported; see `open_results`.

    Raises:
        TimerError: if the results cannot be verified.
    """
    if not is_far(results):
        _check_stored(open_results(results, allow=allow))  # before Spark is started
    compile_check()
    with engine(master, session, [results]) as chosen:
        opened = open_results(results, allow=allow, engine=chosen)
        _check_stored(opened)
        unit, shards = opened.trace.unit, opened.trace.totals["shards"]
        # Workers get the roundings, so they do not look up timers by their names in the manifest.
        roundings = {timer.label: timer.rounding(unit) for timer in opened.contestants}
        checking = stage(roundings, drained=opened.manifest["drained"], examples=examples)
        send_own_timers(opened.contestants, chosen)
        expiries = opened.expiries.ordered_by(checking.key + checking.order)
        rows = chosen.apply(
            checking, chosen.read(opened.trace.blocks, shards), chosen.read(expiries, shards)
        )
        with progress("verify", chosen.tasks):
            checks = chosen.collect(rows, f"verify: {shards} shards x {len(roundings)} timers")
    found: dict[str, list[Verified]] = {label: [] for label in roundings}
    for row in checks.to_pylist():
        found[row["contestant"]].append(record_of(Verified, row["check"]))
    return _verification(opened, [combined(parts, examples) for parts in found.values()])


def _check_stored(results: Results) -> None:
    if not results.manifest["expiries"]:
        raise ResultsError(
            f"{results.place} has only summaries; replay without --summaries-only to verify"
        )


def checked(results: Results, outcomes: Sequence[Added] | None = None) -> Verification:
    """Return what the check during a replay has found. Raises ResultsError without a check.

    The outcomes of the results are read if they are not given.
    """
    checks = [each.check for each in outcomes or outcomes_of(results)]
    found = [check for check in checks if check is not None]
    if len(found) < len(checks):
        raise ResultsError(f"{results.place} was not checked during the replay")
    return _verification(results, found)


def _verification(results: Results, found: list[Verified]) -> Verification:
    pairs = zip(results.contestants, found, strict=True)
    verdicts = tuple(Verdict(**vars(verified), timer=timer.label) for timer, verified in pairs)
    trace = results.trace
    rows, shards = trace.totals["rows"], trace.totals["shards"]
    return Verification(results.place, trace.unit, rows, shards, verdicts)
