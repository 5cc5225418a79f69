"""Merging events into connections, and the state between micro-batches; without Spark."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.pipeline.idle import (
    CONNECTIONS,
    HEARTBEAT,
    LATE,
    NO_KEY,
    PROBLEMS,
    VALID,
    StateError,
    decode,
    detect,
    encode,
    group_by_shard,
    merge,
)
from timers import LIMIT

IDLE = 30
NO_CONNECTIONS = CONNECTIONS.empty_table()


def sessions(events, idle=IDLE):
    """The rule in plain Python: events of a key not more than `idle` apart are one connection."""
    found = []
    for key in sorted({key for key, _ in events}):
        times = sorted(time for name, time in events if name == key)
        begin = 0
        for k in range(1, len(times) + 1):
            if k == len(times) or times[k] - times[k - 1] > idle:
                found.append((key, times[begin], times[k - 1], k - begin))
                begin = k
    return found


def rows(connections):
    return sorted(zip(*(column.to_pylist() for column in connections.columns), strict=True))


def added(connections, events, idle=IDLE):
    keys = pa.array([key for key, _ in events], pa.large_binary())
    return merge(connections, keys, np.array([time for _, time in events], np.int64), idle)


events = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"\xff", b""]), st.integers(0, 400)), max_size=40
)
far = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.integers(0, LIMIT - IDLE)), max_size=20
)


@given(st.lists(events | far, max_size=5))
def test_any_order_and_any_pieces_give_the_same_connections(pieces):
    connections = NO_CONNECTIONS
    for piece in pieces:
        connections = added(connections, piece)
        connections = decode(encode(connections, 3), 3)
    assert rows(connections) == sessions([event for piece in pieces for event in piece])


def test_an_event_exactly_at_the_end_belongs_and_a_unit_later_does_not():
    assert rows(added(NO_CONNECTIONS, [(b"a", 0), (b"a", 30)])) == [(b"a", 0, 30, 2)]
    assert rows(added(NO_CONNECTIONS, [(b"a", 0), (b"a", 31)])) == [
        (b"a", 0, 0, 1),
        (b"a", 31, 31, 1),
    ]


def test_an_event_in_between_joins_what_looked_apart():
    apart = added(NO_CONNECTIONS, [(b"a", 0), (b"a", 50)])
    assert len(apart) == 2
    assert rows(added(apart, [(b"a", 25)])) == [(b"a", 0, 50, 3)]


def test_state_of_another_version_or_number_of_shards_is_refused():
    state = encode(added(NO_CONNECTIONS, [(b"a", 1)]), 2)
    with pytest.raises(StateError, match="has 2 shards, not 3"):
        decode(state, 3)
    foreign = pa.BufferOutputStream()
    with pa.ipc.new_stream(foreign, pa.schema([("x", pa.int64())])):
        pass
    with pytest.raises(StateError, match="has version none; this program reads 1"):
        decode(foreign.getvalue().to_pybytes(), 2)
    for damaged in (b"junk", b"", state[: len(state) // 2]):
        with pytest.raises(StateError, match="cannot be read"):
            decode(damaged, 2)


class State:
    """A shard's state as Spark hands it out."""

    def __init__(self):
        self.value, self.timeout, self.clock = None, None, 0

    exists = property(lambda self: self.value is not None)
    get = property(lambda self: self.value)

    def getCurrentWatermarkMs(self):
        return self.clock

    def update(self, value):
        self.value = value

    def remove(self):
        self.value = None

    def setTimeoutTimestamp(self, timeout):
        assert timeout > self.clock, "Spark refuses this"
        self.timeout = timeout


def grouped(events, shard=0):
    columns = {
        "shard": pa.array([shard] * len(events), pa.int32()),
        "key": pa.array([key for key, _, _ in events], pa.binary()),
        "at": pa.array([at for _, at, _ in events], pa.int64()),
        "fault": pa.array([fault for *_, fault in events], pa.int8()),
    }
    return [batch.to_pandas() for batch in group_by_shard([pa.record_batch(columns)])]


def test_a_shard_sees_the_watermark_without_events():
    state = State()
    assert list(detect((0,), grouped([(b"a", 9000, VALID)]), state, idle=2000, shards=1)) == []
    assert state.timeout == 11
    state.clock = 11  # an event of this moment would still belong to it
    assert list(detect((0,), [], state, idle=2000, shards=1)) == []
    state.clock = 12
    [found] = detect((0,), [], state, idle=2000, shards=1)
    assert found.to_numpy().tolist() == [[b"a", 9000, 9000, 1, None]]
    assert not state.exists


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from([b"a", b"b"]), st.integers(0, 12_000)), max_size=6),
        max_size=6,
    ),
    st.integers(1, 4000),
    st.integers(0, 3000),
)
def test_micro_batches_find_the_connections_that_the_watermark_has_passed(batches, idle, delay):
    state = State()
    accepted, found, latest = [], [], 0
    for batch in [*batches, [], []]:
        watermark = state.clock * 1000
        accepted += [(key, time) for key, time in batch if time >= watermark]
        if batch or (state.exists and state.timeout < state.clock):  # when Spark calls it
            for frame in detect(
                (0,), grouped([(*event, VALID) for event in batch]), state, idle=idle, shards=1
            ):
                found += [tuple(row[:4]) for row in frame.to_numpy().tolist() if row[4] is None]
        due = [found for found in sessions(accepted, idle) if found[2] + idle < watermark]
        assert len(set(found)) == len(found)
        assert set(found) <= set(due)
        # A timeout must be beyond the watermark, so Spark may call a millisecond later.
        assert {one for one in due if one[2] + idle < watermark - 1000} <= set(found)
        latest = max([latest, *(time for _, time in batch)])
        state.clock = max(state.clock, (latest - delay) // 1000)


def test_rejected_events_are_listed():
    state = State()
    state.clock = 5
    given = [(b"a", 4999, VALID), (b"a", 5000, VALID), (None, 7000, NO_KEY), (None, 0, HEARTBEAT)]
    found = [
        row
        for frame in detect((0,), grouped(given), state, idle=2000, shards=1)
        for row in frame.to_numpy().tolist()
    ]
    assert found == [[None, 7000, 7000, 1, PROBLEMS[NO_KEY]], [b"a", 4999, 4999, 1, PROBLEMS[LATE]]]
    assert rows(decode(state.value[0], 1)) == [(b"a", 5000, 5000, 1)]


def test_events_are_grouped_by_shard():
    shards = np.array([70_000, 1, 65_537, 1, 70_000])
    batch = pa.record_batch(
        {
            "shard": pa.array(shards, pa.int32()),
            "key": pa.array([b"%d" % k for k in range(5)], pa.binary()),
            "at": pa.array(range(5), pa.int64()),
            "fault": pa.array([VALID] * 5, pa.int8()),
        }
    )
    [done] = group_by_shard([batch])
    shard_and_data = zip(*(column.to_pylist() for column in done.columns), strict=True)
    found = {
        shard: pa.ipc.open_stream(data).read_all()["at"].to_pylist()
        for shard, data in shard_and_data
    }
    assert found == {1: [1, 3], 65_537: [2], 70_000: [0, 4]}
