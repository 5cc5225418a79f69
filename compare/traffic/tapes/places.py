"""Traces at any place: in a directory, at a URI of Spark, or in a table of a catalog."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from compare.spark.places import NewRun, is_far, new_run, read_description
from compare.traffic.tapes.blocks import Shard, TraceError
from compare.traffic.tapes.trace import (
    BLOCKS_IN,
    REJECTED_IN,
    About,
    Trace,
    UnfinishedTrace,
    blocks_dataset,
    check_unit,
    new_manifest,
    new_target,
    new_trace,
    open_trace,
    shards_of,
)

if TYPE_CHECKING:
    from compare.base.stages import Here
    from compare.spark.engine import OnSpark


def open_far(engine: "OnSpark", place: str) -> Trace:
    """Open the trace at a URI or in a table. Raises TraceError, PipelineError."""
    text = read_description(engine.session, place)
    if text is None:
        raise TraceError(f"{place} is not a trace, or does not exist")
    return Trace(**vars(About.parse(text, place)), place=place)


@dataclass
class UnfinishedFarTrace:
    """A trace under construction, as `UnfinishedTrace`."""

    engine: "OnSpark"
    new: NewRun
    unit: str
    source: dict[str, Any]
    made_by: Mapping[str, Any] | None = field(default=None)

    @property
    def blocks(self) -> str:
        """The path of the blocks."""
        return self.new.dataset(BLOCKS_IN)

    @property
    def rejected(self) -> str:
        """The path of rejected rows."""
        return self.new.dataset(REJECTED_IN)

    @cached_property
    def shards(self) -> tuple[Shard, ...]:
        """The shards, after all blocks have been written. Memory: a row for each."""
        dataset = blocks_dataset(self.blocks)
        ends = self.engine.collect(self.engine.values(dataset, "end", 0), "the ends of shards")
        return shards_of(ends.sort_by("shard"), self.new.place)

    def finish(self) -> None:
        """Write the description."""
        new, shards = self.new, self.shards
        new.describe(new_manifest(self.unit, self.source, shards, new.run, new.place, self.made_by))


@contextmanager
def new_far_trace(
    engine: "OnSpark", place: str, *, unit: str, source: Mapping[str, Any], force: bool
) -> Iterator[UnfinishedFarTrace]:
    """Create a trace at a URI or in a table from the blocks that the block writes.

    It is seen complete or not at all. Raises TraceError, PipelineError.
    """
    check_unit(unit)

    def run_of(text: str) -> str:
        return About.parse(text, place).run

    def others_of(text: str) -> tuple[str, ...]:
        return (REJECTED_IN,) if About.parse(text, place).has_rejected else ()

    with new_run(
        engine.session,
        place,
        TraceError,
        force=force,
        run_of=run_of,
        others=(REJECTED_IN,),
        others_of=others_of,
    ) as new:
        unfinished = UnfinishedFarTrace(engine, new, unit, dict(source))
        yield unfinished
        unfinished.finish()


Output = str | os.PathLike[str]


def check_output(out: Output, *, force: bool) -> None:
    """Raise TraceError if no trace can be written to this directory; another place is left alone.

    So a mistake is told before Spark is started.
    """
    if not is_far(out):
        new_target(out, force=force)


@contextmanager
def new_trace_at(
    engine: "Here | OnSpark", out: Output, *, unit: str, source: Mapping[str, Any], force: bool
) -> Iterator[UnfinishedTrace | UnfinishedFarTrace]:
    """Create a trace in a directory or a place of Spark; see `new_trace` and `new_far_trace`."""
    if is_far(out):
        spark = cast("OnSpark", engine)
        with new_far_trace(spark, str(out), unit=unit, source=source, force=force) as far:
            yield far
    else:
        with new_trace(out, unit=unit, source=source, force=force) as near:
            yield near


def open_trace_at(engine: "Here | OnSpark", place: Output) -> Trace:
    """Open a trace in a directory or a place of Spark; see `open_trace` and `open_far`."""
    return open_far(cast("OnSpark", engine), str(place)) if is_far(place) else open_trace(place)
