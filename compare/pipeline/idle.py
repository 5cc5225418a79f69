"""Connections that fall idle, for one shard of keys: what runs in Spark's Python workers, without
Spark.

A shard holds the connections that are open: for each its key, the times of its first and last
event, and their number. A micro-batch brings events in any order and a clock. Events are merged
into connections first; then a timer, which has a deadline for each connection, is advanced to the
clock and says which have fallen idle.

Times of events are in microseconds since 1970, the clock (Spark's watermark) and the timer's unit
in milliseconds.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd  # type: ignore[import-untyped]  # its stubs are a package of their own
import pyarrow as pa

from compare.bench.contestant import Contestant
from timers import LIMIT, TimerError

Int64s = npt.NDArray[np.int64]

FINE, NO_TIME, NO_KEY, OUT_OF_RANGE, HEARTBEAT = range(5)
"""What is wrong with a row, if anything; a heartbeat has moved the watermark, and says nothing
else.
"""
LATE = 5
PROBLEMS = {NO_TIME: "no time", NO_KEY: "no key", OUT_OF_RANGE: "time out of range", LATE: "late"}
"""How it is told; late are events that are older than the watermark."""

_STATE_VERSION = 1
_PER_CLOCK = 1000  # microseconds in a unit of the clock
_HALF_BITS = 16
_HALF = (1 << _HALF_BITS) - 1
_VERSION, _SHARDS = b"wheelwork-connections", b"shards"

_STATE = pa.schema(
    [
        ("key", pa.large_binary()),
        ("first", pa.int64()),
        ("last", pa.int64()),
        ("events", pa.int64()),
    ]
)


_EVENTS = pa.schema([("key", pa.large_binary()), ("at", pa.int64()), ("fault", pa.int8())])
_PACKED = pa.schema([("shard", pa.int32()), ("events", pa.binary())])

EVENTS = "shard int, key binary, at bigint, fault tinyint"
PACKED = "shard int, events binary"
FOUND = "key binary, first bigint, last bigint, events bigint, problem string"
STATE = "connections binary"
"""Spark schemas: what `pack` takes and gives, what `detect` gives and keeps."""


class StateError(TimerError, ValueError):
    """State in a checkpoint that this program, or this setting of it, cannot go on from."""


@dataclass(frozen=True)
class Settings:
    """What is the same for all shards of a query."""

    idle: int  # microseconds
    shards: int
    timer: Contestant


class Connections(NamedTuple):
    """Connections that are open; several of one key lie more than the idle period apart. Arrays of
    one length.
    """

    key: Any  # pyarrow.LargeBinaryArray
    first: Int64s
    last: Int64s
    events: Int64s

    def take(self, rows: npt.NDArray[Any]) -> "Connections":
        """Those at these positions, in this order."""
        return Connections(
            self.key.take(pa.array(rows)), self.first[rows], self.last[rows], self.events[rows]
        )


NOBODY = Connections(pa.array([], pa.large_binary()), *(np.empty(0, np.int64) for _ in range(3)))


def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """EVENTS, without nulls but in `key`, to PACKED: one row for all events of a batch that go to
    one shard.

    So the shuffle and the sort move a few rows, and keys never become Python objects.
    """
    for batch in batches:
        table = pa.Table.from_batches([batch])
        fault = table["fault"].to_numpy()
        # As small integers these sort in linear time.
        shard = table["shard"].to_numpy().astype(np.uint32)
        low, high = (shard & _HALF).astype(np.uint16), (shard >> _HALF_BITS).astype(np.uint16)
        order = np.argsort(low, kind="stable")
        if high.any():
            order = order[np.argsort(high[order], kind="stable")]
        order = order[fault[order] != HEARTBEAT]
        if not len(order):
            continue
        rows = table.select(_EVENTS.names).take(pa.array(order)).cast(_EVENTS).combine_chunks()
        numbers = shard[order]
        cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(order)]
        packed = [_as_stream(rows.slice(begin, end - begin)) for begin, end in pairwise(cuts)]
        yield pa.record_batch(
            [pa.array(numbers[cuts[:-1]].astype(np.int32)), pa.array(packed, pa.binary())],
            schema=_PACKED,
        )


def detect(
    key: tuple[Any, ...], batches: Iterable[pd.DataFrame], state: Any, *, settings: Settings
) -> Iterator[pd.DataFrame]:
    """One micro-batch of one shard, as `applyInPandasWithState` calls it, with or without events.

    `batches` are PACKED. Yields FOUND: a connection that has fallen idle, with no problem, or an
    event that does not count, with its problem. Memory: the shard's connections and its events.
    """
    clock = max(state.getCurrentWatermarkMs(), 0)
    connections = decode(state.get[0], settings.shards) if state.exists else NOBODY
    events = [
        pa.ipc.open_stream(packed).read_all() for batch in batches for packed in batch["events"]
    ]
    keys, at, rejected = _sifted(pa.concat_tables([_EVENTS.empty_table(), *events]), clock)
    connections = merge(connections, keys, at, settings.idle)
    idle, connections, wakeup = expire(connections, clock, settings)
    if wakeup is not None:
        state.update((encode(connections, settings.shards),))
        # Spark wakes a shard when the watermark is beyond its timeout, which must be beyond the
        # watermark now.
        state.setTimeoutTimestamp(max(wakeup - 1, clock + 1))
    elif state.exists:
        state.remove()
    if len(idle.first):
        yield _frame(idle, None)
    for problem, found in rejected:
        yield _frame(found, problem)


def merge(connections: Connections, keys: Any, at: Int64s, idle: int) -> Connections:
    """The connections once events have been added: what lies `idle` or less apart is one. O(n log
    n) of the events.
    """
    if not len(at):
        return connections
    code = pa.chunked_array([connections.key, keys]).combine_chunks().dictionary_encode()
    names, code = code.dictionary, code.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    here = len(connections.first)
    touched = np.zeros(len(names), np.bool_)
    touched[code[here:]] = True
    involved = touched[code[:here]]
    rows = np.flatnonzero(involved)
    code, first, last, events = _joined(
        np.concatenate((code[rows], code[here:])),
        np.concatenate((connections.first[rows], at)),
        np.concatenate((connections.last[rows], at)),
        np.concatenate((connections.events[rows], np.ones(len(at), np.int64))),
        idle,
    )
    others = connections.take(np.flatnonzero(~involved))
    return Connections(
        pa.concat_arrays([others.key, names.take(pa.array(code))]),
        np.concatenate((others.first, first)),
        np.concatenate((others.last, last)),
        np.concatenate((others.events, events)),
    )


def _joined(
    code: Int64s, first: Int64s, last: Int64s, events: Int64s, idle: int
) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """Intervals of each code, joined where they lie `idle` or less apart; ordered by code and
    time.
    """
    low, low_code = int(first.min()), int(code.min())
    span = int(last.max()) - low + 1
    codes = int(code.max()) - low_code + 1
    if codes > 1 and codes * span > LIMIT:
        # Code and time do not fit one number together.
        lower = code < low_code + codes // 2
        halves = (
            _joined(code[half], first[half], last[half], events[half], idle)
            for half in (lower, ~lower)
            if half.any()
        )
        code, first, last, events = (np.concatenate(parts) for parts in zip(*halves, strict=True))
        return code, first, last, events
    base = (code - low_code) * span
    order = np.argsort(base + (first - low), kind="stable")
    code, first, base, events = code[order], first[order], base[order], events[order]
    # The latest that has been seen of a code so far; of the codes before it everything is smaller.
    latest = np.maximum.accumulate(base + (last[order] - low)) - base + low
    begins = np.empty(len(code), np.bool_)
    begins[0] = True
    begins[1:] = (code[1:] != code[:-1]) | (first[1:] - latest[:-1] > idle)
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], len(code)) - 1
    return code[starts], first[starts], latest[ends], np.add.reduceat(events, starts)


def expire(
    connections: Connections, clock: int, settings: Settings
) -> tuple[Connections, Connections, int | None]:
    """Those that have fallen idle by the clock, those that have not, and when the first of these
    may; None if never.

    A connection is idle when the clock is later than its last event + idle: an event at that very
    moment still belongs to it, as in Spark's session windows, and one before the clock is not
    accepted any more.
    """
    if not len(connections.first):
        return NOBODY, NOBODY, None
    last_moment = np.minimum(connections.last, LIMIT - settings.idle) + settings.idle
    timer = settings.timer.new(start=clock, capacity=len(last_moment))
    handles = np.asarray(timer.schedule_many(last_moment // _PER_CLOCK + 1))
    fired = timer.advance(clock).handles
    wakeup = timer.next_expiry()
    if not len(fired):
        return NOBODY, connections, wakeup
    order = np.argsort(handles, kind="stable")
    rows = order[np.searchsorted(handles, fired, sorter=order)]
    stays = np.ones(len(handles), np.bool_)
    stays[rows] = False
    return connections.take(rows), connections.take(np.flatnonzero(stays)), wakeup


def encode(connections: Connections, shards: int) -> bytes:
    """The state: an Arrow stream with a version, from which the timer is built anew."""
    schema = _STATE.with_metadata({_VERSION: b"%d" % _STATE_VERSION, _SHARDS: b"%d" % shards})
    return _as_stream(pa.table([connections.key, *connections[1:]], schema=schema))


def decode(state: bytes, shards: int) -> Connections:
    """What `encode` was given. Raises StateError for another version, or another number of
    shards.
    """
    try:
        table = pa.ipc.open_stream(state).read_all().combine_chunks()
    except pa.ArrowException as error:
        raise StateError(
            f"the checkpoint's state cannot be read: {str(error).splitlines()[0]}"
        ) from None
    metadata = table.schema.metadata or {}
    version = metadata.get(_VERSION, b"none").decode()
    if version != str(_STATE_VERSION) or table.schema.remove_metadata() != _STATE:
        raise StateError(
            f"the checkpoint's state is of version {version}; this program reads {_STATE_VERSION}"
        )
    before = int(metadata[_SHARDS])
    if before != shards:
        raise StateError(
            f"the checkpoint's state is in {before} shards, and cannot go on in {shards}"
        )
    if not len(table):
        return NOBODY
    key, *numbers = (column.chunk(0) for column in table.columns)
    return Connections(key, *(column.to_numpy() for column in numbers))


def _sifted(events: pa.Table, clock: int) -> tuple[Any, Int64s, list[tuple[str, Connections]]]:
    """The events that count, as keys and times; and the others by their problem."""
    key, at, fault = (column.combine_chunks() for column in events.columns)
    at, fault = at.to_numpy(), fault.to_numpy()
    fault = np.where((fault == FINE) & (at < min(clock * _PER_CLOCK, LIMIT)), LATE, fault)
    fine = fault == FINE
    if fine.all():
        return key, at, []
    rejected = []
    for problem in np.unique(fault[~fine]).tolist():
        rows = np.flatnonzero(fault == problem)
        found = Connections(
            key.take(pa.array(rows)), at[rows], at[rows], np.ones(len(rows), np.int64)
        )
        rejected.append((PROBLEMS[problem], found))
    return key.filter(pa.array(fine)), at[fine], rejected


def _as_stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _frame(connections: Connections, problem: str | None) -> pd.DataFrame:
    columns = {
        "key": connections.key.to_pandas(),
        **dict(zip(("first", "last", "events"), connections[1:], strict=True)),
    }
    frame = pd.DataFrame(columns)
    frame["problem"] = pd.Series([problem] * len(frame), dtype=object)
    return frame
