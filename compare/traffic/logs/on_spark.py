"""The ingestion of a log on Spark: tasks read blocks with the functions that threads use.

A row of a DataFrame is a run of the log's rows (see `RUNS`). Spark divides the runs by shard and
sorts them by their first rows, and a task folds each shard. What else a part of a block contains
is one row of the last group, as JSON.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from compare.base.files import CANNOT_WRITE, errors_as
from compare.spark.failures import plain_failures
from compare.traffic.logs.blocks import LogError
from compare.traffic.logs.job import FILE_BITS, Job, Place, Result
from compare.traffic.logs.pairs import without_start
from compare.traffic.logs.reading import Seen
from compare.traffic.logs.rows import NO_POSITIONS, REJECTED_ROWS, RUNS, Parsed
from compare.traffic.logs.shards import Numbering, pieces, write_shard
from compare.traffic.logs.sorting import in_order
from compare.traffic.tapes.description import counts_from
from compare.traffic.tapes.trace import Shard

if TYPE_CHECKING:
    from compare.spark.tasks import SparkTasks

_ABOUT = pa.field("about", pa.string())
_POSITIONS = pa.schema([("position", pa.int64())])
_REPORT = pa.schema([("number", pa.int32()), ("report", pa.string())])
_ORDER = ("shard", "first", "place")


def ingest_on_spark(job: Job, tasks: "SparkTasks") -> Result:
    """Read, sort and fold a log on Spark. All machines must see the log and the trace."""
    for log in job.logs:
        if log.source.stream is not None:
            raise LogError(f"{log.name} is a pipe, which tasks of Spark cannot read; use a file")
    logs = tuple(replace(log, source=replace(log.source, head=b"")) for log in job.logs)
    job, shards, schema = job._replace(logs=logs), job.meaning.shards, RUNS.append(_ABOUT)
    # One block, or the number of a file that cannot be divided.
    parts: list[Place | int] = []
    for file, log in enumerate(logs):
        parts += job.blocks_of(file) if log.divisible else [file]

    def places(number: int) -> Iterable[Place]:
        part = parts[number]
        return [part] if isinstance(part, Place) else job.blocks_of(part)

    def read_runs(part: int) -> Iterator[pa.RecordBatch]:
        for place in places(part):
            for parsed in job.read(place):
                yield parsed.runs

    def read(part: int) -> Iterator[pa.RecordBatch]:
        for place in places(part):
            first = place.position
            for parsed in job.read(place, unmatched):
                rows = parsed.runs.num_rows
                yield parsed.runs.append_column(_ABOUT, pa.nulls(rows, _ABOUT.type))
                row = {"shard": shards, "first": first, "about": _about(parsed)}
                yield pa.RecordBatch.from_pylist([row], schema)
                first += parsed.total

    def write(number: int, runs: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_arrays([[number], [_write(job, number, runs)]], schema=_REPORT)

    def unmatched_ends(_: int, runs: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = in_order(pieces(runs, Numbering()))
        yield pa.RecordBatch.from_arrays([without_start(rows)], schema=_POSITIONS)

    with plain_failures(f"{job.name}: the Spark job failed", {"LogError": LogError}):
        unmatched = NO_POSITIONS
        if job.meaning.value == "id":
            text = f"ingest: ends without a start in {job.name}"
            ends = tasks.shuffle(
                len(parts), read_runs, RUNS, shards, _ORDER, unmatched_ends, _POSITIONS, text
            )
            unmatched = np.asarray(ends["position"])
        text = f"ingest: {job.name}, {shards} shards"
        table = tasks.shuffle(len(parts), read, schema, shards + 1, _ORDER, write, _REPORT, text)
    reports = {row["number"]: row["report"] for row in table.to_pylist()}
    # The hash left some without a row, or the log has no block.
    for number in set(range(shards + 1)) - reports.keys():
        reports[number] = _write(job, number, ())
    *shard_reports, rest = (json.loads(reports[number]) for number in range(shards + 1))
    written = [
        Shard(**report | {"described": counts_from(report["described"])})
        for report in shard_reports
    ]
    return Result(written, rest["kinds"], rest["examples"], _seen(rest["seen"]))


def _about(parsed: Parsed) -> str:
    """Everything but the rows of a part of a block."""
    rejected = parsed.rejected.to_pydict()
    return _json({"total": parsed.total, "rejected": rejected, "seen": parsed.seen})


def _json(value: Any) -> str:
    """JSON in which an object is its attributes, and a set is a list."""
    return json.dumps(
        value, default=lambda part: sorted(part) if isinstance(part, frozenset) else vars(part)
    )


def _seen(entry: dict[str, Any]) -> Seen:
    return Seen(**entry | {"present": frozenset(entry["present"])})


def _write(job: Job, number: int, runs: Iterable[pa.RecordBatch]) -> str:
    """Write a shard, or the rejected rows, and return its report as JSON."""
    with errors_as(LogError, f"{CANNOT_WRITE} to {job.directory.parent}"):
        if number < job.meaning.shards:
            rows = in_order(pieces(runs, Numbering()))
            return _json(write_shard(number, job.directory, job.meaning, rows))
        table, seen = job.rejected(), Seen()
        for row in chain.from_iterable(run.select(["first", "about"]).to_pylist() for run in runs):
            about = json.loads(row["about"])
            rejected = pa.RecordBatch.from_pydict(about["rejected"], schema=REJECTED_ROWS)
            table.add(row["first"] >> FILE_BITS, about["total"], rejected)
            seen.merge(_seen(about["seen"]))
        table.close()
    return _json({"kinds": table.kinds, "examples": table.examples, "seen": seen})
