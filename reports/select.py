"""Queries of the table of results: rows become estimates, which are selected and pivoted."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from compare.trial.results.schema import Row
from reports.statistics import Estimate


class Key(NamedTuple):
    """Identifies an estimate."""

    contestant: str
    subject: str
    size: int | None
    metric: str


Selection = Mapping[Key, Estimate]
Value = TypeVar("Value")


def estimates(rows: Iterable[Row]) -> dict[Key, Estimate]:
    """Return an estimate for each contestant, subject, size and metric that has a value. O(rows).

    >>> rows = [Row("a", "hold", 10, "time", k, ns) for k, ns in enumerate((7.0, 9.0, 8.0))]
    >>> estimates(rows)[Key("a", "hold", 10, "time")].value
    8.0
    """
    samples: dict[Key, list[float]] = {}
    wholes: dict[Key, float] = {}
    for row in rows:
        if row.value is None:
            continue
        key = Key(row.contestant, row.subject, row.size, row.metric)
        if row.repeat is None:
            wholes[key] = row.value
        else:
            samples.setdefault(key, []).append(row.value)
    for key in [key for key in wholes if key not in samples]:  # in order, for legends
        samples[key] = [wholes.pop(key)]
    return {key: Estimate.of(values, wholes.get(key)) for key, values in samples.items()}


def where(selection: Mapping[Key, Value], **columns: Any) -> dict[Key, Value]:
    """Select what has these values in its key; a set or tuple allows several.

    >>> where({Key("a", "hold", 10, "time"): Estimate.of([7.0])}, metric="time", size=(1, 2))
    {}
    """

    def matches(key: Key) -> bool:
        return all(
            getattr(key, name) in wanted
            if isinstance(wanted, set | tuple | list)
            else getattr(key, name) == wanted
            for name, wanted in columns.items()
        )

    return {key: estimate for key, estimate in selection.items() if matches(key)}


def pivot(selection: Mapping[Key, Any], *columns: str) -> dict[Any, Any]:
    """Nest mappings: one level for each of these columns of a key.

    >>> pivot({Key("a", "hold", 10, "time"): 7.0}, "contestant", "size")
    {'a': {10: 7.0}}
    """
    nested: dict[Any, Any] = {}
    for key, estimate in selection.items():
        inner = nested
        *path, last = (getattr(key, name) for name in columns)
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = estimate
    return nested
