"""Sources of tapes, traces or workloads, and checked and timed replays of a tape."""

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from compare.bench.contestant import Contestant
from compare.oracle.compiled import AgreementError, Expected, check_agreement
from compare.replay.engine import Clock, Replay, first_time, replay
from compare.replay.outcome import Outcome
from compare.tapes.tape import Tape, count_ops
from compare.tapes.trace import open_trace
from compare.workloads.catalogue import make


@dataclass(frozen=True)
class Source:
    """Tapes to replay, one for each shard, which are loaded one at a time."""

    name: str
    unit: str
    details: Mapping[str, Any]  # what made it
    counts: Mapping[str, int]  # shards, operations, starts, cancels, rearms, arms, id_space, span
    shards: int
    load: Callable[[int], tuple[Tape, int]]  # shard -> tape and its id space


def trace_source(path: str | os.PathLike[str]) -> Source:
    """A trace on disk. Raises TraceError, TapeError."""
    trace = open_trace(path)
    totals = dict(trace.totals)
    counts = {
        "shards": len(trace.shards),
        "operations": totals.pop("rows"),
        **totals,
        "id_space": max(shard.id_space for shard in trace.shards),
        "span": trace.span,
    }

    def load(shard: int) -> tuple[Tape, int]:
        return trace.load(shard), trace.shards[shard].id_space

    return Source(os.fspath(path), trace.unit, trace.source, counts, len(trace.shards), load)


def workload_source(name: str, operations: int, seed: int) -> Source:
    """The first operations of a workload. Raises WorkloadError."""
    made = make(name, operations=operations, seed=seed)
    counts = {
        "shards": 1,
        "operations": made.tape.time.size,
        **count_ops(made.tape),
        "id_space": made.id_space,
        "span": int(made.tape.time[-1] - made.tape.time[0]),
    }
    return Source(name, made.unit, made.source, counts, 1, lambda shard: (made.tape, made.id_space))


def fresh_replay(
    contestant: Contestant,
    tape: Tape,
    id_space: int,
    *,
    drain: bool = True,
    counting: bool = False,
    clock: Clock = time.perf_counter,
) -> Replay:
    """Replay a tape through a new timer."""
    timer = contestant.new(first_time(tape), counting=counting)
    return replay(timer, tape, id_space, drain_timer=drain, clock=clock)


def checked_replay(
    contestant: Contestant, tape: Tape, id_space: int, expected: Expected, *, drain: bool = True
) -> tuple[Outcome, bytes]:
    """A counting replay that is checked against the oracle: what it did, and its rows' digest.

    Raises AgreementError naming the first timer that differs.
    """
    done = fresh_replay(contestant, tape, id_space, drain=drain, counting=True)
    check_agreement(contestant.label, contestant.traits, tape, expected, done)
    return done.outcome, digest_of(done)


def timed_replay(
    contestant: Contestant,
    tape: Tape,
    id_space: int,
    digest: bytes,
    *,
    drain: bool = True,
    clock: Clock = time.perf_counter,
) -> float:
    """The seconds of another replay.

    Raises AgreementError when it fires other rows than the one that was checked.
    """
    done = fresh_replay(contestant, tape, id_space, drain=drain, clock=clock)
    if digest_of(done) != digest:
        raise AgreementError(f"{contestant.label} fired other rows when timed than when checked")
    return done.outcome.seconds


def digest_of(done: Replay) -> bytes:
    """Digest of the rows that fired, in their order."""
    return hashlib.blake2b(np.ascontiguousarray(done.fired).tobytes()).digest()
