"""Kinds of differences between the rows that a timer fired and those that the oracle expects."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

KINDS = ("missing", "spurious", "early", "late", "double", "altered")
"""The kinds of mismatches.

- missing: a timer that must fire has no row;
- spurious: a row for an operation that arms nothing, or for a timer that must not fire;
- early, late: the timer fired before or after its time;
- double: another row of a timer. The first row is the right one or, without a right one, the one
  with the lowest (fired_at, deadline);
- altered: the timer fired at the right time, but the row has another deadline.
"""


@dataclass(frozen=True)
class Mismatch:
    """A row that is wrong or missing."""

    kind: str
    shard: int
    operation: int
    id: int | None  # None: the tape has no such operation, or see `Check.finish`
    deadline: int | None  # of that operation
    expected: int | None  # when the timer must fire; None: never
    fired_at: int | None  # None: there is no row
    reported: int | None  # the deadline in the row


@dataclass(frozen=True)
class Verified:
    """The comparison of one timer's rows with one or more shards."""

    expected: int  # timers that must fire
    fired: int  # rows
    counts: Mapping[str, int]  # mismatches of each of KINDS
    examples: tuple[Mismatch, ...]  # the lowest of each kind, in order


def mismatch_order(mismatch: Mismatch) -> tuple[int, ...]:
    """The sort key of a mismatch."""
    fired_at, reported = (
        -1 if value is None else value for value in (mismatch.fired_at, mismatch.reported)
    )
    return mismatch.shard, mismatch.operation, fired_at, reported, KINDS.index(mismatch.kind)


def lowest(mismatches: Iterable[Mismatch], examples: int) -> tuple[Mismatch, ...]:
    """The lowest `examples` mismatches of each kind, in order."""
    kept = []
    remaining = dict.fromkeys(KINDS, examples)
    for mismatch in sorted(mismatches, key=mismatch_order):
        if remaining[mismatch.kind]:
            remaining[mismatch.kind] -= 1
            kept.append(mismatch)
    return tuple(kept)


def combined(parts: Iterable[Verified], examples: int) -> Verified:
    """The comparison of all parts together."""
    parts = list(parts)
    return Verified(
        sum(part.expected for part in parts),
        sum(part.fired for part in parts),
        {kind: sum(part.counts[kind] for part in parts) for kind in KINDS},
        lowest((example for part in parts for example in part.examples), examples),
    )
