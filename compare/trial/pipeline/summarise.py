"""Summarise replayed results as a stored run: the figures of each timer, over all shards.

Outcomes and their distributions of lateness are added (`compare.trial.replay.outcome`), so
quantiles are those of all timers that fired, not averages of quantiles. The samples of the time of
an operation are the shards, each replayed once.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from compare.base.files import CANNOT_WRITE, MANIFEST, errors_as, has_format, new_directory
from compare.base.quantiles import QUANTILES
from compare.base.records import record_of
from compare.base.stages import SHARD, Batches, Engine, Here, Stage
from compare.spark.engine import engine
from compare.spark.places import is_far
from compare.traffic.tapes.trace import About
from compare.trial.oracle.mismatches import Verified, combined
from compare.trial.pipeline.results import (
    EXAMPLES,
    OPTIONS,
    OUTCOME,
    Results,
    ResultsError,
    contestants_of,
    open_results,
    outcome_row,
)
from compare.trial.replay.outcome import Outcome, outcome_of
from compare.trial.results.schema import Row, rows_of
from compare.trial.results.store import (
    FORMAT,
    REPLAY,
    SUMMARY,
    Run,
    Writer,
    contestant_entry,
    read_run,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compare.trial.pipeline.verify import Verification

_CHECKED = "every expiry, by the compiled oracle, as part of the replay"
_NOT_CHECKED = (
    "not by this report; `wheelwork verify RESULTS` checks every expiry of replayed results against"
    " the oracle"
)

SUMMARIES = pa.schema(
    [
        ("contestant", pa.string()),
        ("shards", pa.int32()),
        ("outcome", OUTCOME),
        ("samples", pa.list_(pa.float64())),
    ]
)
"""The outcomes of a timer, added, and the ns per operation of each shard."""


def stage(shards: int | None = None) -> Stage:
    """Turn outcomes into a row for each timer. If the number of shards is known, it is checked."""
    return Stage("summarise", ("contestant",), (SHARD,), SUMMARIES, partial(_added, shards))


def _added(shards: int | None, rows: Batches) -> Batches:
    label, kind, total, samples = "", "", Outcome(), list[float]()
    checks: list[Verified] = []
    for batch in rows:
        for row in batch.to_pylist():
            label, kind = row["contestant"], row["outcome"]["engine"]
            if row[SHARD] != len(samples):
                problem = "twice" if row[SHARD] < len(samples) else f"without {len(samples)}"
                raise ResultsError(f"the outcomes of {label} have shard {row[SHARD]} {problem}")
            outcome = outcome_of(row["outcome"])
            total += outcome
            samples.append(outcome.ns_per_operation)
            if row["outcome"]["check"] is not None:
                checks.append(record_of(Verified, row["outcome"]["check"]))
    if shards not in (None, len(samples)):
        raise ResultsError(f"{label} has outcomes of {len(samples)} of {shards} shards")
    check = combined(checks, EXAMPLES) if len(checks) == len(samples) else None
    added = outcome_row(kind, total, check)
    row = {"contestant": label, "shards": len(samples), "outcome": added, "samples": samples}
    yield pa.RecordBatch.from_pylist([row], SUMMARIES)


@dataclass(frozen=True)
class Added:
    """The outcomes of a timer over all shards."""

    label: str
    outcome: Outcome
    check: Verified | None
    samples: Sequence[float]  # ns per operation, by shard


def added(summaries: pa.Table, labels: Sequence[str]) -> list[Added]:
    """Rows of SUMMARIES as objects, in the order of these labels. Raises ResultsError."""
    rows = {row["contestant"]: row for row in summaries.to_pylist()}
    if rows.keys() != set(labels):
        raise ResultsError(f"there are outcomes of {', '.join(sorted(rows)) or 'no timer'}")
    found = []
    for label in labels:
        row = rows[label]
        check = row["outcome"]["check"]
        verified = None if check is None else record_of(Verified, check)
        found.append(Added(label, outcome_of(row["outcome"]), verified, row["samples"]))
    return found


def outcomes_of(results: Results, chosen: Engine | None = None) -> list[Added]:
    """The outcomes of each timer, in the order of the manifest. Raises ResultsError.

    The default engine is that of this process.
    """
    chosen, shards = chosen or Here(), results.trace.totals["shards"]
    outcomes = chosen.values(results.expiries, "outcome", shards)
    text = f"summarise: {shards} shards x {len(results.contestants)} timers"
    table = chosen.collect(chosen.apply(stage(shards), outcomes), text)
    return added(table, [timer.label for timer in results.contestants])


def summarise(
    results: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    verification: "Verification | None" = None,
    allow: Collection[str] = (),
    master: str | None = None,
    session: "SparkSession | None" = None,
) -> Run:
    """Summarise results as a run, which is also written to the directory `out`.

    The default of `out` is summary in the directory of the results. An older summary is replaced.
    The mismatches are those of the `verification`, or else those that the replay has found.
    `allow` has the classes of the user's own timers that may be imported; see `open_results`.
    O(shard replays). Raises ResultsError if the results are damaged, or `out` cannot be written or
    is something else.
    """
    with engine(master, session, [results]) as chosen:
        opened = open_results(results, allow=allow, engine=chosen)
        if out is None and is_far(opened.place):
            raise ResultsError(f"name a directory of this machine for the summary of {results}")
        outcomes = outcomes_of(opened, chosen)
    mismatches = None
    if verification is not None:
        mismatches = [each.mismatches for each in verification.timers]
    path = Path(out) if out is not None else opened.path / SUMMARY
    return write_summary(path, opened.manifest, opened.trace, outcomes, mismatches)


def write_summary(
    path: Path,
    manifest: Mapping[str, Any],
    trace: About,
    outcomes: Sequence[Added],
    mismatches: Sequence[int] | None = None,
) -> Run:
    """Write outcomes as a run; see `summarise`. Raises ResultsError."""
    if mismatches is None and all(each.check is not None for each in outcomes):
        mismatches = [sum(each.check.counts.values()) for each in outcomes if each.check]
    checked = _NOT_CHECKED if mismatches is None or any(mismatches) else _CHECKED
    described = _manifest(manifest, trace, outcomes, checked)
    rows = [*rows_of_outcomes(outcomes, _name(trace), mismatches)]
    if path.exists() and not has_format(path / MANIFEST, FORMAT):
        raise ResultsError(f"{CANNOT_WRITE} {path}: it exists and is not a summary")
    problem = f"{CANNOT_WRITE} {path}"
    with errors_as(ResultsError, problem), new_directory(path, replace=True) as directory:
        writer = Writer(directory, REPLAY, described, ["replay"], problem)
        writer.write("replay", rows)
        writer.finish()
    return read_run(path)


def summary_of(path: str | os.PathLike[str], *, allow: Collection[str] = ()) -> Run:
    """Read the summary of results, or a summary; results without one are summarised first.

    Raises ResultsError or RunError.
    """
    path = Path(path)
    if path.exists() and not has_format(path / MANIFEST, FORMAT):
        own = path / SUMMARY
        return read_run(own) if own.exists() else summarise(path, allow=allow)
    run = read_run(path)
    if run.manifest["kind"] != REPLAY:
        raise ResultsError(f"{path} is not a summary of replayed results; show it with --run")
    return run


def _manifest(
    manifest: Mapping[str, Any], trace: About, outcomes: Sequence[Added], checked: str
) -> dict[str, Any]:
    origin = {
        name: value
        for name, value in trace.source.items()
        if isinstance(value, str | int | float | dict)
    }
    return {
        **manifest["made_by"],
        "parameters": {name: manifest[name] for name in OPTIONS},
        "contestants": [contestant_entry(t, [trace.unit]) for t in contestants_of(manifest)],
        "sources": [
            {
                "name": _name(trace),
                "unit": trace.unit,
                "timers": outcomes[0].outcome.scheduled,
                "shards": trace.totals["shards"],
                "operations": outcomes[0].outcome.operations,
                "span": trace.span,
                "details": origin,
                "description": None,
            }
        ],
        "agreement": {"checked": checked},
    }


def _name(trace: About) -> str:
    return str(trace.source.get("workload") or trace.source.get("kind") or "trace")


def rows_of_outcomes(
    outcomes: Sequence[Added], name: str, mismatches: Sequence[int] | None
) -> Iterator[Row]:
    """Yield the rows of the table of results. The mismatches are those of each timer."""
    for number, each in enumerate(outcomes):
        late = each.outcome.lateness
        quantiles = late.quantiles(QUANTILES.values())
        # The quantiles of coarse values; the greatest is exact in the figures.
        figures: dict[str, float | None] = dict(
            zip((f"lateness_{quantile}" for quantile in QUANTILES), quantiles, strict=True)
        )
        figures |= each.outcome.figures()
        figures["mismatches"] = None if mismatches is None else mismatches[number]
        yield from rows_of(each.label, name, {"replay_time": each.outcome.ns_per_operation})
        for repeat, sample in enumerate(each.samples):
            yield from rows_of(each.label, name, {"replay_time": sample}, repeat=repeat)
        yield from rows_of(each.label, name, figures)
