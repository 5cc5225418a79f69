"""Sources of tapes: traces and workloads, with one tape for each shard."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from compare.traffic.tapes.description import Description
from compare.traffic.tapes.profile import LONGEST, Profile, profile
from compare.traffic.tapes.tape import OP_COUNTS, Tape, count_ops
from compare.traffic.tapes.trace import Trace
from compare.traffic.workloads.catalogue import make
from compare.trial.oracle.compiled import AgreementError
from compare.trial.replay.contestant import Contestant
from compare.trial.replay.engine import Replay


@dataclass(frozen=True)
class Source:
    """Tapes to replay, one for each shard, loaded one at a time."""

    name: str
    unit: str
    details: Mapping[str, Any]  # its origin, as in a trace's manifest
    counts: Mapping[str, int]  # shards, operations, starts, cancels, rearms, arms, id_space, span
    load: Callable[[int], tuple[Tape, int]]  # shard -> tape and its id space
    description: Description | None = None  # of a trace

    @property
    def shards(self) -> int:
        """The number of tapes."""
        return self.counts["shards"]

    @cached_property
    def course(self) -> Profile | None:
        """The course of the first shard; None if it is too long to be described."""
        tape, id_space = self.load(0)
        return profile(tape, id_space) if 0 < tape.time.size <= LONGEST else None


def trace_source(trace: Trace) -> Source:
    """A trace on disk. Loading raises TraceError, TapeError."""
    totals = trace.totals
    counts = {
        "shards": totals["shards"],
        "operations": totals["rows"],
        **{name: totals[name] for name in OP_COUNTS},
        "id_space": totals["id_space"],
        "span": trace.span,
    }

    def load(shard: int) -> tuple[Tape, int]:
        return trace.load(shard), trace.shards[shard].id_space

    name = str(trace.path)
    return Source(name, trace.unit, trace.source, counts, load, trace.description)


def workload_source(name: str, operations: int, seed: int) -> Source:
    """The first operations of a workload. Raises WorkloadError."""
    workload = make(name, operations=operations, seed=seed)
    tape, id_space = workload.tape, workload.id_space
    counts = {
        "shards": 1,
        "operations": tape.time.size,
        **count_ops(tape),
        "id_space": id_space,
        "span": int(tape.time[-1] - tape.time[0]),
    }
    return Source(name, workload.unit, workload.source, counts, lambda shard: (tape, id_space))


def digest_of(done: Replay) -> bytes:
    """A digest of the rows that fired, in order."""
    return hashlib.blake2b(done.fired.tobytes()).digest()


def check_same_rows(contestant: Contestant, done: Replay, digest: bytes) -> None:
    """Raise AgreementError if a timed replay fired other rows than the checked one."""
    if digest_of(done) != digest:
        raise AgreementError(f"{contestant.label} fired different rows when timed")
