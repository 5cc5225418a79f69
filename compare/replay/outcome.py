"""What a replay did: one value for a tape, a shard or all shards together.

Every table of replays takes its columns from `columns`.
"""

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from compare.replay.lateness import Lateness

Counters = Mapping[str, int] | None


def _add_counters(one: Counters, other: Counters) -> Counters:
    if one is None or other is None:
        return one or other
    return {name: one[name] + other[name] for name in one}


@dataclass(frozen=True)
class Outcome:
    """What a replay did. `+` gives what several did together; `Outcome()` is its zero.

    `most_pending` and `nbytes` do not add up: the greater of two is kept.
    """

    operations: int = 0  #: of the tape
    scheduled: int = 0
    cancelled: int = 0
    rescheduled: int = 0
    fired: int = 0
    pending: int = 0  #: in the end
    most_pending: int = field(default=0, metadata={"add": max})  #: when the clock moved, or ended
    wakeups: int = 0  #: advances while draining
    idle_wakeups: int = 0  #: ... in which nothing fired
    nbytes: int = field(default=0, metadata={"add": max})  #: held by the timer in the end
    seconds: float = 0.0  #: spent in the operations and in draining
    counters: Counters = field(default=None, metadata={"add": _add_counters})
    lateness: Lateness = field(default_factory=Lateness)

    def __add__(self, other: "Outcome") -> "Outcome":
        sums = []
        for one in fields(self):
            add = one.metadata.get("add", operator.add)
            sums.append(add(getattr(self, one.name), getattr(other, one.name)))
        return Outcome(*sums)

    @property
    def ns_per_operation(self) -> float:
        """Nanoseconds for each operation of the tape, expiries included."""
        return self.seconds * 1e9 / max(self.operations, 1)

    def row(self) -> dict[str, Any]:
        """The values of `columns`, by name."""
        row = {name: getattr(self, name) for name in (*NUMBERS, "counters")}
        return row | {f"lateness_{name}": getattr(self.lateness, name) for name in _LATENESS}

    def as_json(self) -> dict[str, Any]:
        """What can be written as JSON: all but the whole distribution of lateness."""
        return {
            **{name: getattr(self, name) for name in NUMBERS},
            "ns_per_operation": self.ns_per_operation,
            "lateness": {name: getattr(self.lateness, name) for name in _LATENESS},
            "counters": self.counters,
        }

    @classmethod
    def of_row(cls, row: Mapping[str, Any], lateness: Lateness) -> "Outcome":
        """The outcome in a row of a table, given the whole distribution of its lateness."""
        counters = None if row["counters"] is None else dict(row["counters"])
        numbers = {name: row[name] for name in NUMBERS}
        return cls(**numbers, counters=counters, lateness=lateness)


NUMBERS: Mapping[str, Any] = {
    one.name: one.type for one in fields(Outcome) if one.type in (int, float)
}
"""The fields that are plain numbers, with int or float."""

_LATENESS = {"min": int, "median": float, "max": int}


def columns() -> list[tuple[str, Any]]:
    """The columns of a table of outcomes, with their Arrow types.

    Counters are null where nothing was counted, lateness where nothing fired.
    """
    import pyarrow as pa

    types = {int: pa.int64(), float: pa.float64()}
    return [
        *((name, types[kind]) for name, kind in NUMBERS.items()),
        ("counters", pa.map_(pa.string(), pa.int64())),
        *((f"lateness_{name}", types[kind]) for name, kind in _LATENESS.items()),
    ]
