"""Timed replays of the candidates, by an engine."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from compare.base.executors import even_shares
from compare.base.stages import SHARD, Batches, Engine, Stage
from compare.traffic.tapes.tape import Tape, joined
from compare.traffic.tapes.trace import Trace
from compare.trial.replay.contestant import Contestant
from compare.trial.replay.engine import OverBudgetError, first_time, replay
from compare.trial.replay.outcome import Outcome, outcome_of, stored_columns

_OUTCOMES = pa.schema([("candidate", pa.int32()), *stored_columns()])
SHORTEST_LIMIT = 0.01  # seconds of a replay; a shorter one is never left out
AT_ONCE = 2048  # operations for which room is reserved at a time


@dataclass(frozen=True)
class Sample:
    """Some shards of a trace, and how many of the first operations of each are replayed."""

    trace: Trace
    shards: Sequence[int]
    operations: int

    @property
    def total(self) -> int:
        """The operations of all shards together."""
        return sum(min(self.trace.shards[n].rows, self.operations) for n in self.shards)

    def tape(self, shard: int) -> Tape:
        """The operations of one of the shards. Raises TraceError, TapeError."""
        return self.trace.beginning(self.operations, shard)


def sampled(trace: Trace, operations: int) -> Sample:
    """Shards at even distances with about this many operations in total; at least one shard.

    Of a shard with more operations, the first ones.
    """
    used = [n for n, shard in enumerate(trace.shards) if shard.rows]
    number = max(operations * len(used) // trace.totals["rows"], 1)
    shards = [used[share[0]] for share in even_shares(len(used), number)]
    return Sample(trace, shards, operations)


def outcomes(
    engine: Engine,
    sample: Sample,
    candidates: Sequence[Contestant],
    *,
    limit: float = math.inf,
    groups: int = 1,
) -> dict[str, Outcome]:
    """Replay the sample through the candidates; returns the outcomes by label.

    The candidates of a group run one after the other in one thread; groups and shards run side by
    side. Times compare best within one group. Candidates that take longer than `limit` ns of CPU
    per operation are left out.
    """
    unit = sample.trace.unit
    for candidate in {candidate.name: candidate for candidate in candidates}.values():
        replay(candidate.new(unit), joined([]), 0)  # compile it into the disk cache for the workers
    groups = min(groups, len(candidates))
    # The tapes travel with the function: a worker may not see the trace.
    tapes = [(sample.tape(n), sample.trace.shards[n].id_space) for n in sample.shards]
    pairs = [(tape, group) for tape in range(len(tapes)) for group in range(groups)]

    def work(numbers: Batches) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch[SHARD].to_pylist():
                tape, group = pairs[number]
                yield from timed(tape, group)

    def timed(number: int, group: int) -> Iterator[pa.RecordBatch]:
        tape, id_space = tapes[number]
        seconds = max(limit * tape.time.size / 1e9, SHORTEST_LIMIT)
        # Neighbours in the grid run at different times, so a slow moment does not hit all of them.
        for index in range(group, len(candidates), groups):
            # As small as in a program with this traffic: a hashed wheel skips idle time in
            # O(capacity).
            timer = candidates[index].new(unit, first_time(tape), capacity=1)
            with suppress(OverBudgetError):
                done = replay(
                    timer,
                    tape,
                    id_space,
                    clock=time.thread_time,  # other threads run beside this one
                    limit=seconds,
                    at_once=AT_ONCE,
                )
                row = {"candidate": index, **done.outcome.stored()}
                yield pa.RecordBatch.from_pylist([row], _OUTCOMES)

    shards: dict[int, list[Outcome]] = {}
    text = f"advise: {len(candidates)} candidates x {len(sample.shards)} shards"
    stage = Stage("advise", (SHARD,), (), _OUTCOMES, work)
    rows = engine.apply(stage, engine.numbers(len(pairs)))
    for row in engine.collect(rows, text).to_pylist():
        shards.setdefault(row["candidate"], []).append(outcome_of(row))
    return {
        candidates[index].label: sum(done, Outcome())
        for index, done in sorted(shards.items())
        if len(done) == len(sample.shards)
    }
