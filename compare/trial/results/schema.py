"""The table of results: one row for each value that was measured.

A value belongs to a contestant, a subject, a size and a metric.

| subject | size | metrics |
|---|---|---|
| a task, such as "hold" | timers pending | `time`, counters, `in_slots` |
| the name of a workload or trace | null | `replay_time`, counts, lateness, counters |
| "memory" | timers for which there is room | `at_rest`, `process_at_rest`, ..., `pause` |
| "tails", or the name of a workload or trace | timers pending, or null | those of latencies |
| "idle hour", "idle hour, tick 10ms", ... | timers pending | `hour_ms`, `hour_wakeups` |
| "overload" | the load in percent of the capacity, or null | lateness, `undelivered`, `capacity` |
| a caller, such as "python" | timers pending | `pair_time`, `fire_time`, `step_time` |
| a caller and a kind of delays, such as "python, random" | timers pending | `cost_pair`, ... |
| an experiment on a claim | its own: slots, a tick, a delay, timers | those of the experiment |
| a task of peers, such as "peer hold" | timers pending | `peer_time`, `single_p50`, ... |
| "peer insert" | timers pending | `peer_memory` |
| "peer" | timers pending | `pair_time`, `fire_time`, `step_time` |
| "threads 1", ..., "threads 4, oversubscribed" | timers pending | `threads_cpu`, ... |
| a kind of trials and their load, such as "rate low" | the rate or the limit | those of a trial |

The contestants and peers are those of the manifest. There are three others: hosts, such as asyncio,
with callers that have a clock of their own; services and event loops, with the subjects "overload"
and "threads";
and the designs of a purgatory. The contestants of experiments are names of timers and peers,
perhaps with a remark.

The samples of a metric are numbered by `repeat`, from 0. A row without a repeat has the value of
all repeats together: for a replayed grid, whose repeats are its shards, the time of all shards. A
row without a value has a `note` with the reason.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa


class Row(NamedTuple):
    """A row of the table."""

    contestant: str
    subject: str
    size: int | None
    metric: str  # of `compare.trial.results.metrics.METRICS`, or a counter of a kernel
    repeat: int | None
    value: float | None
    note: str | None = None


SCHEMA = pa.schema(
    [
        pa.field("contestant", pa.string(), nullable=False),
        pa.field("subject", pa.string(), nullable=False),
        pa.field("size", pa.int64()),
        pa.field("metric", pa.string(), nullable=False),
        pa.field("repeat", pa.int64()),
        pa.field("value", pa.float64()),
        pa.field("note", pa.string()),
    ]
)

MEMORY = "memory"
"""The subject of the metrics of memory."""

TAILS = "tails"
"""The subject of latencies with timers pending."""

IDLE = "idle hour"
"""The subject of an hour without operations, with the default tick or followed by the tick."""

OVERLOAD = "overload"
"""The subject of lateness against the offered load."""

THREADS = "threads "
"""The subjects of timers that several threads use begin so; the number of producers follows."""

OVER_BUDGET = "over budget"
"""The note of a time that was not measured, here and at larger sizes."""


def rows_of(
    contestant: str,
    subject: str,
    values: Mapping[str, float | None],
    size: int | None = None,
    repeat: int | None = None,
) -> Iterator[Row]:
    """Yield a row for each metric that has a value.

    >>> [row.value for row in rows_of("delay-queue", "hold", {"time": 7.5, "refiled": None}, 10, 0)]
    [7.5]
    """
    for metric, value in values.items():
        if value is not None:
            yield Row(contestant, subject, size, metric, repeat, float(value))


def table_of(rows: Sequence[Row]) -> pa.Table:
    """Return the rows as an Arrow table. Raises ArrowException for a value of another type."""
    columns = zip(*rows, strict=True) if rows else [()] * len(SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def read_rows(table: pa.Table) -> list[Row]:
    """Return the rows of an Arrow table."""
    return list(map(Row._make, zip(*(column.to_pylist() for column in table.columns), strict=True)))
