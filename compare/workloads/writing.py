"""Workloads written as traces, shard by shard and piece by piece, however long they are."""

import os
from collections.abc import Callable
from pathlib import Path

from compare.tapes.trace import Shard, Trace, new_shard, new_trace, open_trace, shard_name
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
    WorkloadError for a tape that becomes too long; in that case nothing is left behind.
    """
    with new_trace(out, unit=plan.workload.unit, source=plan.source, force=force) as unfinished:
        for number in range(plan.shards):
            unfinished.shards.append(write_shard(plan, number, unfinished.directory, progress))
    return open_trace(out)


def write_shard(
    plan: Plan, number: int, directory: Path, progress: Callable[[int], None] | None = None
) -> Shard:
    """Write one shard's file into an unfinished trace, and return its entry in the manifest."""
    with new_shard(directory / shard_name(number)) as writer:
        for piece in plan.pieces(number):
            writer.append(piece)
            if progress is not None:
                progress(len(piece.time))
    return writer.shard


def warm() -> None:
    """Have all that is compiled in the cache on disk, so that processes started later find it
    there.
    """
    for name in ("lognormal-low", "keepalive"):
        for _ in Plan.of(name, operations=1).pieces():
            pass
