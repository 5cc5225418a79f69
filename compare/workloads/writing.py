"""Workloads written as shards of a trace, piece by piece, however long they are."""

from collections.abc import Callable
from pathlib import Path

from compare.tapes.trace import Shard, new_shard, shard_name
from compare.workloads.catalogue import Plan


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


def compile_generator() -> None:
    """Have all that is compiled in the cache on disk, so that processes started later find it
    there.
    """
    for name in ("lognormal-low", "keepalive"):
        for _ in Plan.of(name, operations=1).pieces():
            pass
