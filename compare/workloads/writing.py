"""Workloads written as traces, shard by shard and piece by piece, however long they are."""

import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa

from compare.pipeline.shards import RESULT_ARROW
from compare.spark.session import CANNOT_WRITE
from compare.tapes.trace import Shard, ShardWriter, Trace, new_trace, open_trace, shard_name
from compare.workloads.catalogue import Plan


def write_trace_of(
    plan: Plan,
    out: str | os.PathLike[str],
    *,
    force: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Trace:
    """Write a planned workload as a trace, in this process, and open it.

    `progress` is called with the number of further rows after each piece. O(rows) time; memory for
    the members under way and some pieces. Raises TraceError for what cannot be written,
    WorkloadError for a tape that becomes too long; nothing is left behind then.
    """
    with new_trace(out, unit=plan.workload.unit, source=plan.source, force=force) as unfinished:
        for number in range(plan.shards):
            unfinished.shards.append(write_shard(plan, number, unfinished.directory, progress))
    return open_trace(out)


def write_shard(
    plan: Plan, number: int, directory: Path, progress: Callable[[int], None] | None = None
) -> Shard:
    """Write one shard's file into the directory of an unfinished trace; returns its entry in the
    manifest.

    The file has its name when it is complete, and not before: who is tried twice may write it
    twice, at once even.
    """
    path = directory / shard_name(number)
    unfinished = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    pieces = plan.pieces(number)
    try:
        with ShardWriter(unfinished) as writer:
            for piece in pieces:
                writer.append(piece)
                if progress is not None:
                    progress(len(piece.time))
        unfinished.replace(path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
    return replace(writer.shard(pieces.id_space), file=path.name)


def write_shard_of(number: int, *, plan: Plan, directory: str) -> pa.RecordBatch:
    """What a worker of Spark does: write a shard, and tell of it in a row of `RESULT_ARROW`."""
    try:
        shard = write_shard(plan, number, Path(directory))
    except (OSError, pa.ArrowException) as error:
        reason = (
            os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        )
        raise OSError(f"{CANNOT_WRITE} to {Path(directory).parent}: {reason}") from None
    return pa.RecordBatch.from_pylist([{"number": number} | asdict(shard)], schema=RESULT_ARROW)


def warm() -> None:
    """Have all that is compiled in the cache on disk, so that processes started later find it
    there.
    """
    for name in ("lognormal-low", "keepalive"):
        for _ in Plan.of(name, operations=1).pieces():
            pass
