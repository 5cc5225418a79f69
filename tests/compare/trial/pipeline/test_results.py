"""Results on disk: opened as they were written, and refused where they are damaged."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compare.base.files import MANIFEST
from compare.traffic.tapes.trace import write_trace
from compare.traffic.workloads.catalogue import make
from compare.trial.pipeline.replay import replay_trace
from compare.trial.pipeline.results import OUTCOMES, ResultsError, open_results
from compare.trial.replay.outcome import outcome_of
from tests.words import one_line

TIMERS = ["hashed-wheel/tick=7ms", "heapq-delay-queue"]
SHARDS = 4


@pytest.fixture
def results(tmp_path):
    tapes = (make("keepalive", operations=10 + shard, shard=shard).tape for shard in range(SHARDS))
    trace = write_trace(tmp_path / "of.trace", tapes, unit="us", source={"kind": "test"})
    return replay_trace(trace, TIMERS, tmp_path / "results")


def changed(results, **entries):
    """Another manifest; None removes an entry."""
    manifest = json.loads((results.path / MANIFEST).read_text()) | entries
    left = {name: value for name, value in manifest.items() if value is not None}
    (results.path / MANIFEST).write_text(json.dumps(left))


def refused(results, says):
    with one_line(ResultsError, says):
        open_results(results.path)


def test_results_are_opened_as_they_were_written(results):
    opened = open_results(results.path)
    assert opened == results
    assert [timer.label for timer in opened.contestants] == TIMERS
    assert list(opened.replays()) == [(timer, shard) for shard in range(SHARDS) for timer in (0, 1)]
    assert opened.complete
    assert opened.unfinished() == []


def test_outcomes_are_read_by_timer_and_shard(results):
    table = results.read_outcomes()
    assert table.schema.equals(OUTCOMES)
    rows = table.to_pylist()
    places = [(timer, shard) for timer in (0, 1) for shard in range(SHARDS)]
    assert [(row["timer"], row["shard"]) for row in rows] == places
    assert [row["engine"] for row in rows] == ["compiled"] * SHARDS + ["python loop"] * SHARDS
    by_timer = results.outcomes()
    assert [outcome for shards in by_timer for outcome in shards] == [
        outcome_of(row) for row in rows
    ]
    assert [outcome.operations for outcome in by_timer[1]] == [10, 11, 12, 13]


def test_a_missing_shard_is_named(results):
    file = results.outcome_file(1, 2)
    assert file == results.path / "outcomes" / "timer-001" / "shard-00002.parquet"
    kept = results.expiries_file(1, 2)
    assert kept == results.path / "expiries" / "timer-001" / "shard-00002.parquet"
    row = pq.read_table(results.outcome_file(0, 0))
    for table in (row.slice(0, 0), pa.concat_tables([row, row])):
        pq.write_table(table, file)
        with pytest.raises(ResultsError, match="shard-00002.parquet is not the outcome of a"):
            results.read_outcomes()
    file.unlink()
    assert results.unfinished() == [(1, 2)]
    changed(results, complete=False)
    assert not open_results(results.path, complete=False).complete
    refused(results, "not complete: 1 of 8 shard replays are missing; rerun the replay to resume")


def test_results_of_another_trace_are_refused(results):
    path = results.trace.path
    write_trace(path, [results.trace.load(0)], unit="us", source={"kind": "other"}, force=True)
    refused(results, "of.trace is not the trace that was replayed for")
    path.rename(path.with_name("moved.trace"))
    refused(results, "the trace of .* cannot be opened: .*of.trace does not exist")


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({"version": 3}, "has version 3, of an older release; this release reads 4"),
        ({"timers": ["delay-queue"]}, "each of timers must have a name and settings"),
        ({"timers": [{"name": "delay-queue"}]}, "each of timers must have a name and settings"),
        ({"timers": None}, "timers is missing or not a list"),
        ({"trace": {"path": "of.trace"}}, "trace must have a path and a digest"),
        *(
            ({flag: None}, f"{flag} is missing or not a boolean")
            for flag in ("expiries", "drained", "counting", "checked", "complete")
        ),
    ],
)
def test_a_damaged_manifest_is_refused(results, entries, says):
    changed(results, **entries)
    refused(results, says)
