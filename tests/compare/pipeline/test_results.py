"""The table of results that are written here by hand: every number in them is different."""

import json
from dataclasses import fields

import numpy as np
import pyarrow.parquet as pq
import pytest

from compare.bench.contestant import contestant
from compare.pipeline.results import (
    OUTCOMES,
    ResultsError,
    open_results,
    outcome_of,
    outcome_table,
    timer_name,
)
from compare.pipeline.summarise import ABOUT, SCHEMA, summarise
from compare.replay.lateness import Lateness
from compare.replay.outcome import Outcome
from compare.tapes.trace import shard_name, write_trace
from compare.workloads.catalogue import make

TIMERS = [("hashed-wheel", {"tick": 7, "wheel_size": 64}), ("heapq-delay-queue", {})]
LABELS = ["hashed-wheel/tick=7us/wheel-size=64", "heapq-delay-queue"]
SHARDS = 4
LATE = [[[3, 3, 5], [5, 900], [-2, 8000], [*range(20, 117)]], [[0], [0, 0], [11], [13]]]
"""By timer and shard: of different sizes, so that a mean of quantiles is not a quantile."""


def primes(count):
    found = []
    number = 1009
    while len(found) < count:
        if all(number % k for k in range(2, int(number**0.5) + 1)):
            found.append(number)
        number += 2
    return found


NAMES = [
    "operations",
    "scheduled",
    "cancelled",
    "rescheduled",
    "fired",
    "pending",
    "most_pending",
    "wakeups",
    "idle_wakeups",
    "nbytes",
    "seconds",
]
PRIMES = iter(primes(2 * SHARDS * (len(NAMES) + 1)))
NUMBERS = [[{name: next(PRIMES) for name in NAMES} for _ in range(SHARDS)] for _ in TIMERS]
COUNTED = [[{"looks": next(PRIMES), "polls": 2}, None][timer] for timer in (0, 1)]


def outcome(timer, shard):
    late = Lateness.of(np.array(LATE[timer][shard], np.int64))
    numbers = NUMBERS[timer][shard] | {"seconds": NUMBERS[timer][shard]["seconds"] * 1e-6}
    # The greatest of a kind is neither in the first shard nor in the last.
    numbers["most_pending"] += 10**6 * (shard == 1)
    numbers["nbytes"] += 10**6 * (shard == 2)
    counters = COUNTED[timer] and {name: n + shard for name, n in COUNTED[timer].items()}
    return Outcome(**numbers, counters=counters, lateness=late)


@pytest.fixture
def results(tmp_path):
    tapes = [
        make("keepalive", operations=10 + shard, seed=1, shard=shard).tape for shard in range(4)
    ]
    source = {"kind": "generated", "workload": "keepalive", "seed": 1}
    trace = write_trace(tmp_path / "of.trace", tapes, unit="us", source=source)
    path = tmp_path / "results"
    for timer, (name, parameters) in enumerate(TIMERS):
        engine = contestant(name, parameters).engine
        for shard in range(SHARDS):
            file = path / "outcomes" / timer_name(timer) / shard_name(shard)
            file.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(outcome_table(timer, shard, engine, outcome(timer, shard)), file)
    manifest = {
        "format": "wheelwork-results",
        "version": 1,
        "trace": {"path": str(trace.path), "digest": trace.manifest_digest},
        "timers": [
            {"name": name, "parameters": parameters, "tick": "7us" if parameters else None}
            for name, parameters in TIMERS
        ],
        "made": {"when": "today"},
        "expiries": True,
        "drained": True,
        "counting": False,
        "complete": True,
    }
    (path / "manifest.json").write_text(json.dumps(manifest))
    return path


def test_fields_are_known():
    assert {*NAMES, "counters", "lateness"} == {field.name for field in fields(Outcome)}


def test_an_outcome_is_read_as_it_was_written(results):
    table = open_results(results).read_outcomes()
    assert table.schema.equals(OUTCOMES)
    rows = table.to_pylist()
    assert [(row["timer"], row["shard"]) for row in rows] == [
        (timer, shard) for timer in range(2) for shard in range(SHARDS)
    ]
    for row in rows:
        assert outcome_of(row) == outcome(row["timer"], row["shard"])
        assert row["engine"] == ("compiled", "python loop")[row["timer"]]


@pytest.mark.parametrize("timer", [0, 1])
def test_a_row_is_of_all_shards_of_its_timer(results, timer):
    table = summarise(results)
    assert table.schema.equals(SCHEMA)
    assert table.num_rows == len(TIMERS)
    assert pq.read_table(results / "summary.parquet").equals(table)
    row = table.to_pylist()[timer]
    name, parameters = TIMERS[timer]
    assert row["timer"] == name
    assert json.loads(row["parameters"]) == parameters
    assert row["label"] == LABELS[timer]
    assert row["engine"] == contestant(name, parameters).engine
    assert (row["workload"], row["unit"], row["shards"]) == ("keepalive", "us", SHARDS)
    assert json.loads(row["source"])["workload"] == "keepalive"

    parts = [outcome(timer, shard) for shard in range(SHARDS)]
    for field in NAMES:
        values = [getattr(part, field) for part in parts]
        largest = field in ("most_pending", "nbytes")
        assert row[field] == pytest.approx(max(values) if largest else sum(values), rel=1e-12)
    each = [part.seconds * 1e9 / part.operations for part in parts]
    assert row["ns_per_operation"] == pytest.approx(row["seconds"] * 1e9 / row["operations"])
    assert len({round(value, 3) for value in (row["ns_per_operation"], *each)}) == SHARDS + 1
    for column, values in [
        ("shard_ns_per_operation", each),
        ("shard_operations", [part.operations for part in parts]),
    ]:
        low, *middle, high = sorted(values)
        assert row[f"{column}_least"] == pytest.approx(low)
        assert row[f"{column}_median"] == pytest.approx(sum(middle) / 2)
        assert row[f"{column}_most"] == pytest.approx(high)
    if timer:
        assert row["counters"] is None
    else:
        assert dict(row["counters"]) == {
            name: SHARDS * value + sum(range(SHARDS)) for name, value in COUNTED[0].items()
        }

    late = sorted(value for shard in LATE[timer] for value in shard)
    assert (row["lateness_min"], row["lateness_max"]) == (late[0], late[-1])
    assert row["lateness_median"] == np.median(late)
    for column, share in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)]:
        assert row[f"lateness_{column}"] == late[int(np.ceil(share * len(late))) - 1]


def test_the_table_says_how_the_results_were_made(results, tmp_path):
    table = summarise(results, tmp_path / "elsewhere" / "table.parquet")
    assert not (results / "summary.parquet").exists()
    about = json.loads(pq.read_schema(tmp_path / "elsewhere" / "table.parquet").metadata[ABOUT])
    assert about == {
        "when": "today",
        "asked": {"expiries": True, "drained": True, "counting": False},
    }
    assert json.loads(table.schema.metadata[ABOUT]) == about


def test_a_missing_shard_is_named(results):
    opened = open_results(results)
    assert list(opened.replays()) == [(timer, shard) for shard in range(4) for timer in (0, 1)]
    assert opened.unfinished() == []
    file = opened.outcome_file(1, 2)
    assert file == results / "outcomes" / "timer-001" / "shard-00002.parquet"
    kept = opened.expiries_file(1, 2)
    assert kept == results / "expiries" / "timer-001" / "shard-00002.parquet"
    pq.write_table(pq.read_table(opened.outcome_file(0, 0)).slice(0, 0), file)
    with pytest.raises(ResultsError, match="shard-00002.parquet is not the outcome of a replay"):
        opened.read_outcomes()
    file.unlink()
    assert opened.unfinished() == [(1, 2)]
    manifest = json.loads((results / "manifest.json").read_text())
    (results / "manifest.json").write_text(json.dumps(manifest | {"complete": False}))
    assert not open_results(results, complete=False).complete
    with pytest.raises(ResultsError, match="not complete: 1 of 8 shard replays are missing"):
        open_results(results)


def test_results_of_another_trace_are_refused(results):
    trace = open_results(results).trace
    write_trace(trace.path, [trace.load(0)], unit="us", source={"kind": "generated"}, force=True)
    with pytest.raises(ResultsError, match="of.trace is not the one that .* was made of"):
        open_results(results)


@pytest.mark.parametrize("entry", ["name", "parameters", "tick"])
def test_a_timer_that_is_not_described_is_an_error(results, entry):
    manifest = json.loads((results / "manifest.json").read_text())
    del manifest["timers"][1][entry]
    (results / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ResultsError, match="must have a name, parameters and tick"):
        open_results(results)


@pytest.mark.parametrize("flag", ["expiries", "drained", "counting", "complete"])
def test_a_manifest_that_lacks_a_flag_is_damaged(results, flag):
    manifest = json.loads((results / "manifest.json").read_text())
    del manifest[flag]
    (results / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ResultsError, match=f"{flag} is missing or not true or false"):
        open_results(results)
