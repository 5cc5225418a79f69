"""The ingestion of a log on Spark: a plan of DataFrames from rows of any source to blocks.

Spark exchanges and sorts runs of rows; see `spark_rows` for how they come to a task, and
`spark_parts` for what a task makes of them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from compare.base.datasets import Dataset
from compare.base.stages import SHARD, Batches, Stage
from compare.spark.frames import expressions, new_observation
from compare.traffic.logs.blocks import LogError
from compare.traffic.logs.job import Job, Result
from compare.traffic.logs.pairs import without_start
from compare.traffic.logs.reading import Seen
from compare.traffic.logs.rows import KINDS, NO_POSITIONS, REJECTED_ROWS, RUNS
from compare.traffic.logs.shards import (
    EXAMPLES,
    Numbering,
    Rejected,
    example,
    fold,
    pieces,
    rejected_schema,
)
from compare.traffic.logs.sorting import in_order
from compare.traffic.logs.spark_parts import Parts
from compare.traffic.logs.spark_rows import Rows
from compare.traffic.tapes.places import UnfinishedFarTrace
from compare.traffic.tapes.trace import UnfinishedTrace
from timers.arrays import Int64s

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from compare.spark.engine import OnSpark

_COUNTS = ("rows", *KINDS, "without_zone", "bad_durations", "other_lines", "bounds")
_NUMBERS = (*_COUNTS, "step", "least_zone", "greatest_zone", "present")
PARSED = RUNS.append(pa.field("about", pa.struct([(name, pa.int64()) for name in _NUMBERS])))
"""Runs, and for each call of `parse` a row that has only `about`: counts, and what `Seen` has. Of
the roles in `present`, each is a bit."""
_REJECTED = pa.schema(
    [
        ("file", pa.int32()),
        ("first", pa.int64()),
        ("total", pa.int64()),
        ("rejected", pa.list_(pa.struct(list(REJECTED_ROWS)))),
    ]
)
"""A part of a block: its position, its lines or records, and the rejected ones."""
_POSITIONS = pa.schema([("position", pa.int64())])


class Plan(NamedTuple):
    """The ingestion of a log as DataFrames."""

    engine: "OnSpark"
    job: Job
    sources: tuple[Rows, ...]

    def parsed(self, unmatched: Int64s = NO_POSITIONS, *, strict: bool = False) -> "DataFrame":
        """PARSED rows."""

        def function(rows: Rows) -> Any:
            return partial(_parse, rows.read, self.job, unmatched, strict)

        return self._each("parse", PARSED, function)

    def blocks(self, parsed: "DataFrame") -> "DataFrame":
        """The blocks of the trace, from PARSED rows."""
        runs = parsed.where("about IS NULL").drop("about")
        numbers = self.engine.numbers(self.job.meaning.shards)
        return self.engine.apply(fold(self.job.meaning), runs, numbers)

    def unmatched(self) -> Int64s:
        """The positions of ends without a start: a job of its own, before they are rejected."""
        if self.job.meaning.value != "id":
            return NO_POSITIONS
        runs = self.parsed().where("about IS NULL").drop("about")
        stage = Stage("unmatched", (SHARD,), ("first", "place"), _POSITIONS, _without_start)
        text = f"ingest: ends without a start in {self.job.name}"
        return np.sort(np.asarray(self.engine.collect(self.engine.apply(stage, runs), text)[0]))

    def rejected(self, unmatched: Int64s) -> "DataFrame":
        """The rejected rows."""

        def function(rows: Rows) -> Any:
            return partial(_rejected, rows.read, self.job, unmatched)

        parts, names = self._each("reject", _REJECTED, function), [x.name for x in self.job.logs]
        schema = rejected_schema(len(names) > 1, self.job.logs[0].record, self.job.meaning.value)
        stage = Stage("number", ("file",), ("first",), schema, partial(_numbered, names, schema))
        return self.engine.apply(stage, parts)

    def _each(self, name: str, output: pa.Schema, function: Callable[[Rows], Any]) -> "DataFrame":
        """The results of a stage for the rows of all sources."""
        apply = self.engine.apply
        results = [
            apply(Stage(name, rows.key, rows.order, output, function(rows)), rows.frame)
            for rows in self.sources
        ]
        return self.engine.union(*results)


def counts_of_rows() -> "list[Column]":
    """Columns that aggregate `about` of PARSED rows, for a job or for `observe`."""
    sums = [f"sum(about.{name}) AS {name}" for name in _COUNTS]
    others = [
        "array_join(collect_set(cast(about.step AS string)), ' ') AS steps",
        "min(about.least_zone) AS least_zone",
        "max(about.greatest_zone) AS greatest_zone",
        "bit_or(about.present) AS present",
    ]
    return expressions([*sums, *others])


def ingest_on_spark(plan: Plan, trace: UnfinishedTrace | UnfinishedFarTrace) -> Result:
    """Write the blocks of a log, and the rejected rows if there are any.

    One job writes the blocks and counts. Only if rows are rejected, others read the log again.
    """
    engine, job = plan.engine, plan.job
    unmatched, observation = plan.unmatched(), new_observation()
    parsed = plan.parsed(unmatched)
    blocks = plan.blocks(parsed.observe(observation, *counts_of_rows()))
    engine.write(blocks, str(trace.blocks), f"ingest: {job.name}, {job.meaning.shards} shards")
    found = observation.get
    used = sum(shard.starts + shard.arms for shard in trace.shards)
    if job.meaning.value != "id" and found.get("rows") != used:
        # A stage of which a part ran again observes its rows again.
        counted = parsed.agg(*counts_of_rows())
        (found,) = engine.collect(counted, f"ingest: count rows of {job.name}").to_pylist()
    kinds = {kind: found[kind] or 0 for kind in KINDS}
    examples: list[str] = []
    if any(kinds.values()):
        rows, text = plan.rejected(unmatched), f"ingest: rejected rows of {job.name}"
        engine.write(rows, str(trace.rejected), text)
        examples = _examples(plan, str(trace.rejected))
    return Result(kinds, examples, _seen(found, job))


def _seen(found: Mapping[str, Any], job: Job) -> Seen:
    seen = Seen(step=reduce(gcd, map(int, (found["steps"] or "0").split())))
    for name in ("least_zone", "greatest_zone", *_COUNTS[1 + len(KINDS) :]):
        if found[name] is not None:
            setattr(seen, name, found[name])
    roles, bits = enumerate(job.meaning.roles), found["present"] or 0
    seen.present = frozenset(role for bit, role in roles if bits >> bit & 1)
    return seen


def _examples(plan: Plan, path: str) -> list[str]:
    """The first rejected rows, in the order of the log."""
    names, record = [log.name for log in plan.job.logs], plan.job.logs[0].record
    schema = rejected_schema(len(names) > 1, record, plan.job.meaning.value)
    rows = plan.engine.read(Dataset(path, schema, (record,), LogError), 0)
    found = [rows]
    if len(names) > 1:
        files = {row[0] for row in rows.select("file").distinct().collect()}
        some = [name for name in names if name in files][:EXAMPLES]
        found = [rows.where(rows["file"] == name) for name in some]
    examples: list[str] = []
    for of_file in found:
        first = of_file.orderBy(record).limit(EXAMPLES - len(examples)).collect()
        examples += [example(row.asDict(), record) for row in first]
    return examples


# ---- in a task


def _parse(
    read: Callable[[Job, Int64s, Batches], Parts],
    job: Job,
    unmatched: Int64s,
    strict: bool,
    batches: Batches,
) -> Iterator[pa.RecordBatch]:
    """PARSED rows. With `strict`, raises LogError for a row that cannot be used."""
    seen, counts = Seen(), dict.fromkeys(("rows", *KINDS), 0)
    for place, parsed in read(job, unmatched, batches):
        runs = parsed.runs
        if runs.num_rows:
            nothing = pa.nulls(runs.num_rows, PARSED.field("about").type)
            yield runs.append_column(PARSED.field("about"), nothing)
        counts["rows"] += parsed.rows
        for kind in parsed.rejected["kind"].to_pylist():
            counts[kind] += 1
        if strict and parsed.rejected.num_rows:
            problem = parsed.rejected["problem"][0].as_py()
            raise LogError(f"a row of {job.logs[place.file].name} cannot be used: {problem}")
        seen.merge(parsed.seen)
    present = sum(1 << bit for bit, role in enumerate(job.meaning.roles) if role in seen.present)
    numbers = {name: getattr(seen, name) for name in _NUMBERS if name not in counts}
    yield pa.RecordBatch.from_pylist([{"about": numbers | counts | {"present": present}}], PARSED)


def _rejected(
    read: Callable[[Job, Int64s, Batches], Parts], job: Job, unmatched: Int64s, batches: Batches
) -> Iterator[pa.RecordBatch]:
    """_REJECTED rows."""
    last, first = None, 0
    for place, parsed in read(job, unmatched, batches):
        first = first if place is last else place.position
        row = {"file": place.file, "first": first, "total": parsed.total}
        row["rejected"] = parsed.rejected.to_pylist()
        yield pa.RecordBatch.from_pylist([row], _REJECTED)
        last, first = place, first + parsed.total


def _numbered(
    names: Sequence[str], schema: pa.Schema, batches: Batches
) -> Iterator[pa.RecordBatch]:
    """The rejected rows of a file, with the numbers of their lines or records."""
    table = Rejected(schema)
    for batch in batches:
        for row in batch.to_pylist():
            rows = pa.RecordBatch.from_pylist(row["rejected"], REJECTED_ROWS)
            numbered = table.number(names[row["file"]], row["total"], rows)
            if numbered.num_rows:
                yield numbered


def _without_start(batches: Batches) -> Iterator[pa.RecordBatch]:
    """The positions of the ends of a shard that have no start."""
    rows = in_order(pieces((batch.select(RUNS.names) for batch in batches), Numbering()))
    yield pa.RecordBatch.from_arrays([without_start(rows)], schema=_POSITIONS)
