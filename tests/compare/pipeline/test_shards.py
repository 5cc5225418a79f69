"""Rows become shard files, wherever the batches that bring them are cut; without Spark."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compare.logs.requests import RequestTape
from compare.logs.touches import TouchTape
from compare.pipeline.shards import UNNUMBERED, write_shards
from compare.tapes.tape import ARM, id_space_of, joined, validate
from compare.tapes.trace import shard_name, write_trace
from tests.compare.made_logs import outcome

SHARDS, TIMEOUT = 3, 20
KEYS = [b"a", b"b", b"c", b"d", b"e"]


def log(kind, random):
    """Rows of shards 0 and 2, in their order, then two rejected ones: (shard, start, value)."""
    times = np.sort(random.integers(0, 300, 80)).tolist()
    rows = []
    for shard in (0, 2):
        for start in times:
            answered = start + int(random.integers(0, TIMEOUT)) if random.random() < 0.5 else None
            # A key belongs to one shard, and is touched within its idle period and after it.
            key = KEYS[int(random.integers(2, 5)) if shard else int(random.integers(0, 2))]
            rows.append((shard, start, answered if kind == "requests" else key))
    return rows


def batches(kind, rows, cuts):
    """The rows and two rejected ones as record batches, cut at these places."""
    value = "end" if kind == "requests" else "key"
    column = pa.int64() if kind == "requests" else pa.binary()
    lines = [
        json.dumps({"block": 0, "index": k, "kind": "late", "problem": "x", "time": str(k)})
        for k in range(2)
    ]
    made = pa.record_batch(
        {
            "shard": pa.array([row[0] for row in rows] + [SHARDS] * 2, pa.int32()),
            "start": pa.array([row[1] for row in rows] + [None] * 2, pa.int64()),
            value: pa.array([row[2] for row in rows] + [None] * 2, column),
            "position": pa.array(range(len(rows) + 2), pa.int64()),
            "rejected": pa.array([None] * len(rows) + [line.encode() for line in lines]),
        }
    )
    edges = [0, *sorted(cuts), made.num_rows]
    return [made.slice(a, b - a) for a, b in zip(edges[:-1], edges[1:], strict=True)]


def expected(kind, rows, shard):
    """The tape of a shard's rows, all at once."""
    own = [(row, position) for position, row in enumerate(rows) if row[0] == shard]
    start = np.array([row[1] for row, _ in own], np.int64)
    if kind == "touches":
        tape = TouchTape(TIMEOUT)
        pieces = [tape.add(start, [row[2] for row, _ in own])]
    else:
        tape = RequestTape(TIMEOUT)
        end = np.array([row[2] or 0 for row, _ in own], np.int64)
        answered = np.array([row[2] is not None for row, _ in own])
        pieces = [tape.add(start, end, answered, np.array([k for _, k in own], np.int64))]
    whole = joined([*pieces, tape.finish()])
    return whole, id_space_of(whole)


@pytest.mark.parametrize("kind", ["requests", "touches"])
@pytest.mark.parametrize("cuts", [[], [1], [80, 80, 160], [79, 81, 161], range(0, 160, 7)])
def test_shards_are_the_same_wherever_batches_are_cut(tmp_path, kind, cuts):
    rows = log(kind, np.random.default_rng(len(list(cuts))))
    found = write_shards(
        batches(kind, rows, cuts), kind=kind, directory=tmp_path, timeout=TIMEOUT, shards=SHARDS
    )
    entries = {row["number"]: row for batch in found for row in batch.to_pylist()}
    assert list(entries) == [0, 2, SHARDS]  # nothing came for shard 1
    for shard in (0, 2):
        tape, id_space = expected(kind, rows, shard)
        validate(tape, id_space)
        file = pq.read_table(tmp_path / shard_name(shard))
        assert [file[name].to_pylist() for name in tape._fields] == [c.tolist() for c in tape]
        counts = [entries[shard][name] for name in ("rows", "starts", "cancels", "arms")]
        assert counts == [tape.time.size, *(np.count_nonzero(tape.op == op) for op in (0, 1, 3))]
        assert entries[shard]["id_space"] == id_space
        assert (entries[shard]["first_time"], entries[shard]["last_time"]) == (
            tape.time[0],
            tape.time[-1],
        )
        if kind == "requests":
            unanswered = [row for row in rows if row[0] == shard and row[2] is None]
            assert entries[shard]["timed_out"] == len(unanswered)
            assert entries[shard]["most_pending"] == id_space  # ids are used again
        if kind == "touches":
            _, rescheduled, fired = outcome(tape)
            assert rescheduled > 20  # within an idle period
            assert fired > 4  # after one, as well
            assert np.count_nonzero(tape.op == ARM) > 40
    assert entries[SHARDS]["rows"] == 2
    assert pq.read_table(tmp_path / UNNUMBERED)["time"].to_pylist() == ["0", "1"]


def test_keys_in_shards_of_their_own_do_what_they_do_in_one(tmp_path):
    """Touches of one key are one another's re-arms, whoever else is in the shard."""
    rows = sorted(log("touches", np.random.default_rng(5)), key=lambda row: row[1])
    together, id_space = expected("touches", [(0, *row[1:]) for row in rows], 0)
    apart = [
        expected("touches", [(k, *row[1:]) for row in rows if row[2] == key], k)
        for k, key in enumerate(KEYS)
    ]
    trace = write_trace(
        tmp_path / "trace", [tape for tape, _ in apart], unit="ms", source={"kind": "test"}
    )
    assert [shard.id_space for shard in trace.shards] == [1] * len(KEYS)
    assert id_space == len(KEYS)
    summed = [sum(parts) for parts in zip(*(outcome(tape) for tape, _ in apart), strict=True)]
    assert tuple(summed) == outcome(together)
