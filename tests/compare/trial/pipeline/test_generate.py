"""A generated trace is the same, whoever writes it, and never half of one."""

import json
import threading
from types import SimpleNamespace

import pyarrow as pa
import pytest

import compare.traffic.tapes.blocks
from compare.base import stages
from compare.base.files import MANIFEST
from compare.spark.failures import failure
from compare.traffic.tapes import description, ids
from compare.traffic.tapes.tape import validate
from compare.traffic.tapes.trace import TraceError
from compare.traffic.workloads import generator
from compare.traffic.workloads.catalogue import Plan, WorkloadError, make
from compare.trial.pipeline.generate import generate
from tests.compare.conftest import on_both
from tests.compare.small_tapes import digest
from tests.compare.trial.pipeline.contents import table_of
from tests.words import one_line
from timers import TimerError

AMOUNT = {"operations": 20_003, "shards": 16, "seed": 5, "parameters": {"mean": 70}}


def written(out, **where):
    return generate("cancel-heavy", out, **AMOUNT, **where)


def manifest_of(trace):
    """The manifest without what tells runs apart."""
    manifest = json.loads((trace.path / MANIFEST).read_text())
    return manifest.pop("made_by"), manifest.pop("run"), manifest


@pytest.mark.parametrize("parts", [1, 3, 64])
def test_blocks_do_not_depend_on_the_number_of_files(tmp_path, monkeypatch, parts):
    monkeypatch.setattr(compare.traffic.tapes.blocks, "BLOCK", 500)
    monkeypatch.setattr(stages, "PARTS", parts)
    trace = written(tmp_path / "trace")
    assert len(trace.blocks.files) == min(parts, 16)
    assert [shard.rows for shard in trace.shards] == [1251] * 3 + [1250] * 13
    assert trace.totals["rows"] == 20_003
    table = table_of(trace.blocks)
    assert table["block"].to_pylist() == [0, 1, 2] * 16
    assert len({digest(trace.load(shard)) for shard in range(16)}) == 16
    assert trace.source == {
        "workload": "cancel-heavy",
        "parameters": {"rate": 10_000, "timeout": 30_000, "mean": 70, "lost": 10},
        "seed": 5,
        "shards": 16,
        "operations": 20_003,
    }


@pytest.mark.spark
def test_what_both_engines_make_differs_in_made_by_alone(spark, tmp_path):
    here, there = written(tmp_path / "here"), written(tmp_path / "there", session=spark)
    assert table_of(here.blocks).equals(table_of(there.blocks))
    (made_here, _, about_here), (made_there, _, about_there) = map(manifest_of, (here, there))
    assert about_here == about_there
    assert (made_here["executor"], made_here["master"]) == ("threads", None)
    assert (made_there["executor"], made_there["master"]) == ("spark", "local[2]")
    assert made_there["versions"].keys() - made_here["versions"].keys() == {"spark", "java"}
    # Spark leaves files of its own, which readers pass over.
    assert all(file.suffix == ".parquet" for file in there.blocks.files)


def test_a_shard_is_the_unsharded_tape_of_its_size(tmp_path):
    trace = generate("keepalive", tmp_path / "sharded", timers=1001, shards=2, seed=8)
    for shard, timers in ((0, 501), (1, 500)):
        workload = make("keepalive", timers=timers, seed=8, shard=shard)
        tape = trace.load(shard)
        assert digest(tape) == digest(workload.tape)
        assert trace.shards[shard].id_space == workload.id_space
        validate(tape, workload.id_space)
    alone = generate("keepalive", tmp_path / "alone", timers=501, seed=8)
    assert digest(alone.load()) == digest(trace.load(0))
    assert alone.source["shard"] == 0


@pytest.mark.spark
def test_workers_find_the_machine_code_that_the_driver_compiled(spark, tmp_path):
    generate("uniform", tmp_path / "trace", timers=10, session=spark)

    def look(batches):
        for _ in batches:
            pass
        for _ in Plan.of("lognormal-low", timers=10).pieces():
            pass
        # Private: only the compiled functions know what they found in the cache.
        functions = (generator.fill_rows, ids._assign, description._follow)
        yield pa.record_batch(
            {"misses": [sum(sum(f.stats.cache_misses.values()) for f in functions)]}
        )

    assert spark.range(2).mapInArrow(look, "misses bigint").agg({"misses": "sum"}).first()[0] == 0


def test_a_trace_is_replaced_only_by_force(tmp_path):
    first = generate("uniform", tmp_path / "trace", operations=10)
    with one_line(TraceError, "trace exists; pass --force"):
        generate("uniform", tmp_path / "trace", operations=20)
    second = generate("uniform", tmp_path / "trace", operations=20, force=True)
    assert (first.run != second.run, second.totals["rows"]) == (True, 20)
    assert sorted(path.name for path in second.path.iterdir()) == [MANIFEST, second.run]


# ---- what goes wrong


@pytest.mark.parametrize(
    ("master", "says"),
    [
        ("sparkle", "'sparkle' is not a Spark master"),
        ("spark://127.0.0.1:1", "cannot reach the Spark master spark://127.0.0.1:1"),
    ],
)
def test_a_master_that_cannot_be_had_leaves_nothing(tmp_path, monkeypatch, master, says):
    # What is wrong with it is said before Spark starts.
    sql = pytest.importorskip("pyspark.sql", reason="the master is Spark's")
    monkeypatch.setattr(sql.SparkSession, "getActiveSession", lambda: None)
    with one_line(TimerError, says):
        generate("uniform", tmp_path / "trace", timers=100, master=master)
    assert list(tmp_path.iterdir()) == []


@on_both
def test_a_tape_that_becomes_too_long_leaves_nothing(where, tmp_path, monkeypatch):
    plan = Plan.of("keepalive", timers=1000, shards=2)
    too_long = Plan(**{**vars(plan), "max_rows": 5000})
    only = SimpleNamespace(of=lambda name, **_: too_long)
    monkeypatch.setattr("compare.trial.pipeline.generate.Plan", only)
    with pytest.raises(TimerError, match="timers of keepalive have more than 5000 operations"):
        generate("keepalive", tmp_path / "trace", **where)
    assert list(tmp_path.iterdir()) == []


def test_a_shard_that_is_being_written_is_stopped_when_another_fails(tmp_path, monkeypatch):
    begun, tape = threading.Event(), make("uniform", operations=70_000).tape

    def pieces(plan, number=0):
        if number == 0:
            begun.wait()
            raise WorkloadError("a bad shard")
        while True:  # as one that takes hours
            begun.set()
            yield tape

    monkeypatch.setattr("compare.trial.pipeline.generate.make", lambda *_, **__: None)
    monkeypatch.setattr(Plan, "pieces", pieces)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1}, raising=False)
    with pytest.raises(WorkloadError, match="a bad shard"):
        generate("uniform", tmp_path / "trace", timers=100, shards=2)
    assert list(tmp_path.iterdir()) == []


def test_the_failure_of_a_worker_is_its_last_line():
    pytest.importorskip("pyspark", reason="it is Spark that fails")
    text = (
        "[X] failed: Traceback (most recent call last):\n  File\nKeyError: 5\n"
        "During handling of the above exception, another exception occurred:\n  File\n"
        "compare.traffic.workloads.WorkloadError: why\n SQLSTATE: 38000"
    )
    assert failure(ValueError(text)) == "why"
    text = "Traceback (most recent call last):\n  File\nOSError: cannot write to x"
    assert failure(ValueError(text)) == "cannot write to x"
    assert failure(ValueError("one\ntwo")) == "one"
