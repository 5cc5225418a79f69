"""Both executors make the same traces and results. Spark reads them. A check finds mismatches."""

import hashlib
import json

import pyarrow.parquet as pq
import pytest

from compare.base.files import MANIFEST
from compare.traffic.tapes.tape import Tape
from compare.traffic.tapes.trace import write_trace
from compare.traffic.workloads.catalogue import make
from compare.trial.oracle.mismatches import KINDS
from compare.trial.pipeline.generate import generate
from compare.trial.pipeline.replay import replay_trace
from compare.trial.pipeline.results import EXPIRIES, OUTCOMES, ResultsError
from compare.trial.pipeline.summarise import rows_of_results
from compare.trial.pipeline.verify import checked, verify
from tests.compare.conftest import on_both
from tests.words import one_line

TIMERS = ["delay-queue", "hashed-wheel/tick=7ms"]
LATE = "tests.compare.own_timers:Late"


def digest(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def manifest_of(made):
    manifest = json.loads((made.path / MANIFEST).read_text())
    return manifest.pop("made_by"), manifest


@pytest.mark.spark
def test_what_both_executors_make_differs_in_made_by_alone(spark, tmp_path):
    traces = [
        generate("keepalive", tmp_path / name, operations=5_000, shards=3, **where)
        for name, where in (("here", {}), ("spark", {"session": spark}))
    ]
    here, there = map(manifest_of, traces)
    assert here[1] == there[1]
    assert (here[0]["executor"], here[0]["master"]) == ("threads", None)
    assert (there[0]["executor"], there[0]["master"]) == ("spark", "local[2]")
    assert there[0]["versions"].keys() - here[0]["versions"].keys() == {"spark", "java"}
    for shard in traces[0].shards:
        assert len({digest(trace.path / shard.file) for trace in traces}) == 1

    results = [
        replay_trace(traces[0], TIMERS, tmp_path / f"{name}.results", check=True, **where)
        for name, where in (("here", {}), ("spark", {"session": spark}))
    ]
    here, there = map(manifest_of, results)
    assert here[1] == there[1]
    assert (here[0]["executor"], there[0]["executor"]) == ("threads", "spark")
    for replay in results[0].replays():
        assert len({digest(each.expiries_file(*replay)) for each in results}) == 1
    first, second = (each.read_outcomes().drop_columns("seconds") for each in results)
    assert first.equals(second)


@on_both
@pytest.mark.parametrize("expiries", [True, False], ids=["stored", "not-stored"])
def test_the_check_in_a_replay_is_that_of_verify(where, tmp_path, expiries):
    tapes = [make("uniform", timers=150, seed=seed).tape for seed in (1, 2)]
    trace = write_trace(tmp_path / "trace", tapes, unit="ms", source={"kind": "test"})
    out = tmp_path / "results"
    results = replay_trace(trace, [TIMERS[1], LATE], out, check=True, expiries=expiries, **where)
    verification = checked(results)
    right, late = verification.timers
    assert (right.timer, right.fired, right.mismatches) == (TIMERS[1], 300, 0)
    assert late.counts == dict.fromkeys(KINDS, 0) | {"late": 300}
    assert len(late.examples) == 5
    assert [row.value for row in rows_of_results(results) if row.metric == "mismatches"] == [0, 300]
    assert not list(out.rglob(".shard-*"))
    assert (out / "expiries").exists() == expiries
    if expiries:
        assert verify(out, allow=[LATE]) == verification


def test_results_without_a_check_say_so(tmp_path):
    trace = generate("uniform", tmp_path / "trace", operations=10)
    results = replay_trace(trace, TIMERS[:1], tmp_path / "results")
    with one_line(ResultsError, "was not checked during the replay"):
        checked(results)
    assert "mismatches" not in {row.metric for row in rows_of_results(results)}


@pytest.mark.spark
def test_spark_reads_a_trace_and_results(spark, tmp_path):
    from compare import dataframe

    trace = generate("keepalive", tmp_path / "a [trace]", operations=600, shards=2)
    rows = dataframe(trace, spark).orderBy("shard", "operation").collect()
    assert [(row.shard, row.operation) for row in rows] == [
        (shard, number) for shard in (0, 1) for number in range(300)
    ]
    for name in Tape._fields:
        tapes = [getattr(trace.load(shard), name).tolist() for shard in (0, 1)]
        assert [row[name] for row in rows] == sum(tapes, [])

    results = replay_trace(trace, TIMERS, tmp_path / "results", check=True, counting=True)
    frame = dataframe(results, spark)
    assert frame.columns == ["contestant", *OUTCOMES.names]
    rows = [row.asDict(recursive=True) for row in frame.orderBy("timer", "shard").collect()]
    assert [row.pop("contestant") for row in rows] == [TIMERS[0]] * 2 + [TIMERS[1]] * 2
    expected = results.read_outcomes().to_pylist()
    for row, outcome in zip(rows, expected, strict=True):
        outcome["check"]["counts"] = dict(outcome["check"]["counts"])
        assert row == outcome | {"counters": dict(outcome["counters"])}

    frame = dataframe(results, spark, expiries=True)
    assert frame.columns == ["contestant", "shard", *EXPIRIES.names]
    files = [pq.read_table(results.expiries_file(1, shard)) for shard in (0, 1)]
    rows = frame.where(f"contestant = '{TIMERS[1]}'").orderBy("shard", "fired_at").collect()
    for name in ("fired_at", "deadline", "operation"):
        assert sorted(row[name] for row in rows) == sorted(
            value for file in files for value in file[name].to_pylist()
        )
    kept = replay_trace(trace, TIMERS[:1], tmp_path / "summaries", expiries=False)
    with one_line(ResultsError, "has no expiries; they were not stored"):
        dataframe(kept, spark, expiries=True)
