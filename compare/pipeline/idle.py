"""The open connections of one shard of a stream, and which of them have fallen idle.

This runs in Spark's Python workers. A shard's state is a table of connections: the key, the times
of the first and last event, and the number of events. A micro-batch brings events in any order and
the watermark. Events are merged into connections first; a connection is then idle if its last event
lies more than the idle period before the watermark.

Events are in microseconds since 1970, Spark's watermark is in milliseconds.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd  # type: ignore[import-untyped]  # its stubs are a package of their own
import pyarrow as pa
import pyarrow.compute as pc

from compare.files import errors_as
from timers import LIMIT, TimerError

Int64s = npt.NDArray[np.int64]

VALID, NO_TIME, NO_KEY, OUT_OF_RANGE, HEARTBEAT = range(5)
"""The column `fault` of an event. A heartbeat moves the watermark and is otherwise ignored."""
LATE = 5
PROBLEMS = {NO_TIME: "no time", NO_KEY: "no key", OUT_OF_RANGE: "time out of range", LATE: "late"}
"""The column `problem` of a rejected event; a late event is older than the watermark."""

_STATE_VERSION = 1
_MS = 1000  # microseconds
_VERSION, _SHARDS = b"wheelwork-connections", b"shards"

CONNECTIONS = pa.schema(
    {"key": pa.large_binary(), "first": pa.int64(), "last": pa.int64(), "events": pa.int64()}
)
"""Open connections. Two of one key lie more than the idle period apart."""
_EVENTS = pa.schema([("key", pa.large_binary()), ("at", pa.int64()), ("fault", pa.int8())])
_GROUPED = pa.schema([("shard", pa.int32()), ("events", pa.binary())])

GROUPED = "shard int, events binary"
FOUND = "key binary, first bigint, last bigint, events bigint, problem string"
STATE = "connections binary"
"""Spark schemas: what `group_by_shard` returns, and what `detect` returns and keeps."""


class StateError(TimerError, ValueError):
    """The state in a checkpoint cannot be used by this program or with these settings."""


def group_by_shard(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Gather the events of each batch into one row per shard, with the schema GROUPED.

    The columns are `shard`, `key`, `at` and `fault`; only `key` may be null. The shuffle and the
    sort then move a few rows, and keys never become Python objects.
    """
    for batch in batches:
        shard = batch["shard"].to_numpy()
        order = np.argsort(shard, kind="stable")
        order = order[batch["fault"].to_numpy()[order] != HEARTBEAT]
        if not len(order):
            continue
        rows = batch.select(_EVENTS.names).take(pa.array(order)).cast(_EVENTS)
        shards = shard[order]
        cuts = [0, *(np.flatnonzero(np.diff(shards)) + 1).tolist(), len(order)]
        events = [_to_ipc(rows.slice(begin, end - begin)) for begin, end in pairwise(cuts)]
        yield pa.record_batch([shards[cuts[:-1]], events], schema=_GROUPED)


def detect(
    key: tuple[Any, ...], batches: Iterable[pd.DataFrame], state: Any, *, idle: int, shards: int
) -> Iterator[pd.DataFrame]:
    """Process one micro-batch of one shard, with or without events; `idle` in microseconds.

    `applyInPandasWithState` calls it. `batches` have the schema GROUPED. Yields FOUND: a connection
    that has fallen idle, whose problem is null, or a rejected event. Memory: the connections of the
    shard and the events of the batch.
    """
    watermark = min(max(state.getCurrentWatermarkMs(), 0), LIMIT // _MS) * _MS
    connections = decode(state.get[0], shards) if state.exists else CONNECTIONS.empty_table()
    events = [pa.ipc.open_stream(data).read_all() for batch in batches for data in batch["events"]]
    keys, at, rejected = _usable(pa.concat_tables([_EVENTS.empty_table(), *events]), watermark)
    connections = merge(connections, keys, at, idle)
    is_idle = pc.less(connections["last"], watermark - idle)
    if pc.any(is_idle).as_py():
        yield _frame(connections.filter(is_idle), None)
        connections = connections.filter(pc.invert(is_idle))
    if len(connections):
        state.update((encode(connections, shards),))
        # Spark calls a shard without events when the watermark is beyond this time, which must
        # itself be beyond the present watermark.
        next_idle = (pc.min(connections["last"]).as_py() + idle) // _MS
        state.setTimeoutTimestamp(max(next_idle, watermark // _MS + 1))
    elif state.exists:
        state.remove()
    for problem, found in rejected:
        yield _frame(found, problem)


def merge(connections: pa.Table, keys: Any, at: Int64s, idle: int) -> pa.Table:
    """Add events to the connections; what lies at most `idle` apart becomes one connection.

    O(n log n) in the events.
    """
    if not len(at):
        return connections
    key, *numbers = (column.combine_chunks() for column in connections.columns)
    first, last, events = (number.to_numpy() for number in numbers)
    code = pa.chunked_array([key, keys]).combine_chunks().dictionary_encode()
    names, code = code.dictionary, code.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    here = len(connections)
    touched = np.zeros(len(names), np.bool_)
    touched[code[here:]] = True
    involved = touched[code[:here]]
    rows = np.flatnonzero(involved)
    code, first, last, events = _join_intervals(
        np.concatenate((code[rows], code[here:])),
        np.concatenate((first[rows], at)),
        np.concatenate((last[rows], at)),
        np.concatenate((events[rows], np.ones(len(at), np.int64))),
        idle,
    )
    joined = pa.table([names.take(pa.array(code)), first, last, events], schema=CONNECTIONS)
    return pa.concat_tables([connections.filter(pa.array(~involved)), joined])


def _join_intervals(
    code: Int64s, first: Int64s, last: Int64s, events: Int64s, idle: int
) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """Join the intervals of each code that lie at most `idle` apart; ordered by code and time."""
    low, low_code = int(first.min()), int(code.min())
    span = int(last.max()) - low + 1
    codes = int(code.max()) - low_code + 1
    if codes > 1 and codes * span > LIMIT:
        # Code and time do not fit into one sort key, which is twice as fast as two.
        lower = code < low_code + codes // 2
        halves = (
            _join_intervals(code[half], first[half], last[half], events[half], idle)
            for half in (lower, ~lower)
            if half.any()
        )
        code, first, last, events = (np.concatenate(parts) for parts in zip(*halves, strict=True))
        return code, first, last, events
    base = (code - low_code) * span
    order = np.argsort(base + (first - low), kind="stable")
    code, first, base, events = code[order], first[order], base[order], events[order]
    # The latest moment of a code so far. All moments of the codes before it are smaller.
    latest = np.maximum.accumulate(base + (last[order] - low)) - base + low
    begins = np.empty(len(code), np.bool_)
    begins[0] = True
    begins[1:] = (code[1:] != code[:-1]) | (first[1:] - latest[:-1] > idle)
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], len(code)) - 1
    return code[starts], first[starts], latest[ends], np.add.reduceat(events, starts)


def encode(connections: pa.Table, shards: int) -> bytes:
    """Serialize the connections as an Arrow stream with a version and the number of shards."""
    about = {_VERSION: b"%d" % _STATE_VERSION, _SHARDS: b"%d" % shards}
    return _to_ipc(connections.replace_schema_metadata(about))


def decode(state: bytes, shards: int) -> pa.Table:
    """The connections that `encode` serialized.

    Raises:
        StateError: if the state has another version or another number of shards, or is damaged.
    """
    with errors_as(StateError, "the checkpoint's state cannot be read"):
        table = pa.ipc.open_stream(state).read_all()
    metadata = table.schema.metadata or {}
    version = metadata.get(_VERSION, b"none").decode()
    if version != str(_STATE_VERSION) or table.schema.remove_metadata() != CONNECTIONS:
        raise StateError(
            f"the checkpoint's state has version {version}; this program reads {_STATE_VERSION}"
        )
    before = int(metadata[_SHARDS])
    if before != shards:
        raise StateError(f"the checkpoint's state has {before} shards, not {shards}")
    return table.replace_schema_metadata()


def _usable(events: pa.Table, watermark: int) -> tuple[Any, Int64s, list[tuple[str, pa.Table]]]:
    """The keys and times of the events that count, and the rejected events by their problem."""
    key, at, fault = (column.combine_chunks() for column in events.columns)
    at, fault = at.to_numpy(), fault.to_numpy()
    fault = np.where((fault == VALID) & (at < watermark), LATE, fault)
    valid = fault == VALID
    if valid.all():
        return key, at, []
    rejected = []
    for problem in np.unique(fault[~valid]).tolist():
        rows = np.flatnonzero(fault == problem)
        columns = key.take(pa.array(rows)), at[rows], at[rows], np.ones(len(rows), np.int64)
        rejected.append((PROBLEMS[problem], pa.table(columns, schema=CONNECTIONS)))
    return key.filter(pa.array(valid)), at[valid], rejected


def _to_ipc(rows: pa.Table | pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    return bytes(sink.getvalue())


def _frame(connections: pa.Table, problem: str | None) -> pd.DataFrame:
    frame = connections.to_pandas()
    frame["problem"] = pd.Series([problem] * len(frame), dtype=object)
    return frame
