"""Sources of tapes (traces, workloads), and what a timer does with all of a source's shards
together.
"""

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from compare.bench.contestant import Contestant
from compare.oracle.compiled import AgreementError, Expected, check_agreement
from compare.replay.engine import Replay, first_time, lateness_of, replay
from compare.replay.histogram import Histogram
from compare.tapes.tape import Tape, count_ops
from compare.tapes.trace import Trace, open_trace
from compare.workloads.catalogue import make


@dataclass(frozen=True)
class Source:
    """Tapes to replay, one for each shard; each is loaded when its turn comes."""

    name: str
    unit: str
    details: Mapping[str, Any]  # what made it
    counts: Mapping[str, int]  # shards, operations, starts, cancels, rearms, arms, id_space
    shards: int
    load: Callable[[int], tuple[Tape, int]]  # shard -> tape and its id space


def trace_source(path: str | os.PathLike[str]) -> Source:
    """A trace on disk. Raises TraceError, TapeError."""
    trace: Trace = open_trace(path)
    totals = dict(trace.totals)
    counts = {
        "shards": len(trace.shards),
        "operations": totals.pop("rows"),
        **totals,
        "id_space": max(shard.id_space for shard in trace.shards),
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
        **count_ops(made.tape)._asdict(),
        "id_space": made.id_space,
    }
    return Source(name, made.unit, made.source, counts, 1, lambda shard: (made.tape, made.id_space))


@dataclass
class Outcome:
    """What a timer did with a source, all shards together."""

    shards: int = 0
    scheduled: int = 0
    cancelled: int = 0
    rescheduled: int = 0
    fired: int = 0
    pending: int = 0
    wakeups: int = 0
    idle_wakeups: int = 0
    operations: int = 0
    nbytes: int = 0  # of the shard whose timer held most
    counters: dict[str, int] | None = None
    histogram: Histogram = field(default_factory=Histogram)

    def add(self, tape: Tape, done: Replay, nbytes: int) -> None:
        """Add a shard."""
        self.shards += 1
        for name in (
            "scheduled",
            "cancelled",
            "rescheduled",
            "pending",
            "wakeups",
            "idle_wakeups",
            "operations",
        ):
            setattr(self, name, getattr(self, name) + getattr(done, name))
        self.fired += done.fired.size
        self.nbytes = max(self.nbytes, nbytes)
        if done.counters is not None:
            so_far = self.counters or dict.fromkeys(done.counters, 0)
            self.counters = {name: so_far[name] + value for name, value in done.counters.items()}
        self.histogram.add(lateness_of(tape, done.fired))


def fresh_replay(
    contestant: Contestant, tape: Tape, id_space: int, *, drain: bool = True, counting: bool = False
) -> tuple[Replay, int]:
    """Replay a tape through a new timer; also the bytes that it held in the end."""
    timer = contestant.new(first_time(tape), counting=counting)
    return replay(timer, tape, id_space, drain_timer=drain), int(timer.nbytes)


def checked_replay(
    contestant: Contestant, tape: Tape, id_space: int, expected: Expected, *, drain: bool = True
) -> tuple[Replay, int, bytes]:
    """A counting replay held against the oracle, the bytes its timer held, and the digest of its
    rows.

    Raises AgreementError naming the first timer that differs.
    """
    done, nbytes = fresh_replay(contestant, tape, id_space, drain=drain, counting=True)
    check_agreement(contestant.label, contestant.traits, tape, expected, done)
    return done, nbytes, digest_of(done)


def timed_replay(
    contestant: Contestant, tape: Tape, id_space: int, digest: bytes, *, drain: bool = True
) -> Replay:
    """A replay to be timed. Raises AgreementError when it fires other rows than the one that was
    checked.
    """
    done, _ = fresh_replay(contestant, tape, id_space, drain=drain)
    if digest_of(done) != digest:
        raise AgreementError(f"{contestant.label} fired other rows when timed than when checked")
    return done


def digest_of(done: Replay) -> bytes:
    """Digest of the rows that fired, in their order."""
    return hashlib.blake2b(np.ascontiguousarray(done.fired).tobytes()).digest()
