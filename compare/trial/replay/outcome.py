"""The outcome of a replay, of one tape, one shard or all shards together."""

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from compare.trial.replay.lateness import Lateness

Counters = Mapping[str, int] | None


def _add_counters(left: Counters, right: Counters) -> Counters:
    if left is None or right is None:
        return left or right
    return {name: left[name] + right[name] for name in left}


@dataclass(frozen=True)
class Outcome:
    """The outcome of a replay. `+` combines outcomes; `Outcome()` is the zero.

    The sum has the greater `most_pending` and `nbytes` of the two.
    """

    operations: int = 0  #: of the tape
    scheduled: int = 0
    cancelled: int = 0
    rescheduled: int = 0
    fired: int = 0
    pending: int = 0  #: at the end
    #: the maximum whenever the clock moved, and at the end
    most_pending: int = field(default=0, metadata={"add": max})
    wakeups: int = 0  #: advances while draining
    idle_wakeups: int = 0  #: wakeups in which nothing fired
    nbytes: int = field(default=0, metadata={"add": max})  #: held by the timer at the end
    seconds: float = 0.0  #: of the clock, usually of CPU: spent in operations and in draining
    counters: Counters = field(default=None, metadata={"add": _add_counters})
    lateness: Lateness = field(default_factory=Lateness)

    def __add__(self, other: "Outcome") -> "Outcome":
        sums = []
        for part in fields(self):
            add = part.metadata.get("add", operator.add)
            sums.append(add(getattr(self, part.name), getattr(other, part.name)))
        return Outcome(*sums)

    @property
    def ns_per_operation(self) -> float:
        """Nanoseconds per operation of the tape, expiries included."""
        return self.seconds * 1e9 / max(self.operations, 1)

    def figures(self) -> dict[str, float | None]:
        """The outcome for the table of results: counts, lateness, and counters per operation."""
        counters = (self.counters or {}).items()
        return {
            **{name: getattr(self, name) for name in NUMBERS if name != "seconds"},
            **{f"lateness_{name}": getattr(self.lateness, name) for name in _LATENESS},
            **{name: count / max(self.operations, 1) for name, count in counters},
        }

    def stored(self) -> dict[str, Any]:
        """The values of `stored_columns`, by name."""
        row = {name: getattr(self, name) for name in (*NUMBERS, "counters")}
        row |= {f"lateness_{name}": getattr(self.lateness, name) for name in _LATENESS}
        return row | {f"lateness_{name}": getattr(self.lateness, name).tolist() for name in _BINS}

    def as_json(self) -> dict[str, Any]:
        """The outcome for JSON, with a summary of the lateness."""
        return {
            **{name: getattr(self, name) for name in NUMBERS},
            "ns_per_operation": self.ns_per_operation if self.operations else None,
            "lateness": {name: getattr(self.lateness, name) for name in _LATENESS},
            "counters": self.counters,
        }


NUMBERS: Mapping[str, Any] = {
    part.name: part.type for part in fields(Outcome) if part.type in (int, float)
}
"""The numeric fields and their types, int or float."""

_LATENESS = {"min": int, "median": float, "max": int}
_BINS = ("values", "counts")


def stored_columns() -> list[tuple[str, Any]]:
    """The columns of a table of outcomes, with their Arrow types.

    Counters are null if nothing was counted, lateness if nothing fired. The distribution of the
    lateness is the last.
    """
    import pyarrow as pa

    types = {int: pa.int64(), float: pa.float64()}
    return [
        *((name, types[kind]) for name, kind in NUMBERS.items()),
        ("counters", pa.map_(pa.string(), pa.int64())),
        *((f"lateness_{name}", types[kind]) for name, kind in _LATENESS.items()),
        *((f"lateness_{name}", pa.list_(pa.int64())) for name in _BINS),
    ]


def outcome_of(row: Mapping[str, Any]) -> Outcome:
    """The outcome from a row of `stored_columns`."""
    values, counts = (np.array(row[f"lateness_{name}"], np.int64) for name in _BINS)
    lateness = Lateness(values, counts, row["lateness_min"], row["lateness_max"])
    counters = None if row["counters"] is None else dict(row["counters"])
    return Outcome(**{name: row[name] for name in NUMBERS}, counters=counters, lateness=lateness)
