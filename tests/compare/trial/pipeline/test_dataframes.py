"""The stages as functions of DataFrames: one plan, no job before an action, equal contents."""

import pytest

from compare import dataframes
from compare.base.quantiles import QUANTILES
from compare.traffic.tapes.tape import Tape
from compare.traffic.tapes.trace import write_trace
from compare.traffic.workloads.catalogue import make
from compare.trial.oracle.mismatches import KINDS
from compare.trial.pipeline.generate import generate
from compare.trial.pipeline.replay import replay_trace
from compare.trial.pipeline.results import ResultsError
from compare.trial.pipeline.summarise import outcomes_of as added_outcomes
from compare.trial.pipeline.summarise import summarise
from compare.trial.pipeline.verify import checked, verify
from compare.trial.replay.outcome import NUMBERS
from tests.compare.conftest import on_both
from tests.compare.trial.pipeline.contents import expiries_of, table_of
from tests.words import one_line
from timers.errors import TimerError

TIMERS = ["delay-queue", "hashed-wheel/tick=7ms"]
LATE = "tests.compare.own_timers:Late"


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
    rows = summarise(out, allow=[LATE]).rows
    assert [row.value for row in rows if row.metric == "mismatches"] == [0, 300]
    if expiries:
        assert verify(out, allow=[LATE]) == verification


def test_results_without_a_check_say_so(tmp_path):
    trace = generate("uniform", tmp_path / "trace", operations=10)
    results = replay_trace(trace, TIMERS[:1], tmp_path / "results")
    with one_line(ResultsError, "was not checked during the replay"):
        checked(results)
    assert "mismatches" not in {row.metric for row in summarise(results.path).rows}


@pytest.fixture
def jobs(spark):
    """The number of jobs that have begun."""
    return lambda: spark.sparkContext._jsc.sc().statusStore().jobsList(None).size()


AMOUNT = {"operations": 3_000, "shards": 3, "seed": 4}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("stored") / "a [trace]"
    trace = generate("keepalive", path, **AMOUNT)
    return replay_trace(trace, TIMERS, path.with_name("results"), check=True)


@pytest.mark.spark
def test_the_stages_are_one_plan_and_run_nothing_before_an_action(spark, stored, jobs):
    before = jobs()
    blocks = dataframes.generate(spark, "keepalive", **AMOUNT)
    replayed = dataframes.replay(blocks, TIMERS, unit=stored.trace.unit, check=True)
    figures = dataframes.summarise(replayed)
    assert jobs() == before
    rows = {row["contestant"]: row.asDict() for row in figures.collect()}
    assert jobs() > before
    assert figures.columns == dataframes.FIGURES.names
    assert rows.keys() == {*TIMERS}
    for each in added_outcomes(stored):
        row = rows[each.label]
        assert (row["shards"], row["mismatches"]) == (3, 0)
        for name in NUMBERS.keys() - {"seconds", "nbytes"}:
            assert row[name] == getattr(each.outcome, name)
        late = each.outcome.lateness.quantiles(QUANTILES.values())
        assert [row[f"lateness_{name}"] for name in QUANTILES] == list(late)
        assert row["ns_per_operation"] > 0


@pytest.mark.spark
def test_spark_reads_a_trace(spark, stored):
    blocks = dataframes.blocks(stored.trace, spark)
    assert blocks.columns == stored.trace.blocks.schema.names
    rows = dataframes.operations(blocks).orderBy("shard", "block", "place").collect()
    assert [(row.shard, row.place) for row in rows] == [
        (shard, number) for shard in range(3) for number in range(1000)
    ]
    for name in Tape._fields:
        tapes = [getattr(stored.trace.load(shard), name).tolist() for shard in range(3)]
        assert [row[name] for row in rows] == sum(tapes, [])


@pytest.mark.spark
def test_spark_reads_results(spark, stored):
    frame = dataframes.results(stored, spark)
    assert frame.columns == stored.expiries.schema.names
    ends = frame.where("outcome IS NOT NULL").orderBy("contestant", "shard").collect()
    labels = [(label, shard) for label in TIMERS for shard in range(3)]
    assert [(row.contestant, row.shard) for row in ends] == labels
    fired = dataframes.expiries(frame)
    assert fired.columns == ["shard", "contestant", "operation", "deadline", "fired_at"]
    found = {}
    for row in fired.collect():
        found.setdefault((row.contestant, row.shard), []).append(tuple(row[2:]))
    for replay, columns in expiries_of(stored).items():
        assert sorted(found[replay]) == sorted(zip(*columns.values(), strict=True))


@pytest.mark.spark
def test_verify_checks_what_a_replay_fires(spark, stored):
    blocks = dataframes.blocks(stored.trace, spark)
    results, unit = dataframes.results(stored, spark), stored.trace.unit
    checks = dataframes.verify(blocks, results, TIMERS, unit=unit)
    rows = checks.select("shard", "contestant", "check.fired", "check.counts").collect()
    assert sorted((row.contestant, row.shard) for row in rows) == [
        (label, shard) for label in TIMERS for shard in range(3)
    ]
    assert {sum(row.counts.values()) for row in rows} == {0}
    for number, verdict in enumerate(checked(stored).timers):
        fired = sum(row.fired for row in rows if row.contestant == TIMERS[number])
        assert fired == verdict.fired


@pytest.mark.spark
def test_a_plan_of_nonsense_is_one_line_and_what_a_task_finds_is_in_sparks_exception(spark, stored):
    blocks = dataframes.blocks(stored.trace, spark)
    with one_line(TimerError, "no timer is called 'no-such'"):
        dataframes.replay(blocks, ["no-such"])
    with one_line(ResultsError, "nothing to replay"):
        dataframes.replay(blocks, [])
    with one_line(TimerError, "unknown workload|no workload"):
        dataframes.generate(spark, "no-such", timers=1)
    lacking = dataframes.replay(blocks.where("shard <> 1 OR end IS NULL"), TIMERS[:1])
    assert lacking.where("shard = 1").count() == 0
    broken = blocks.withColumn("block", blocks.block + 1)
    with pytest.raises(Exception, match="of the trace lacks block 0"):
        dataframes.replay(broken, TIMERS[:1]).collect()


def test_a_trace_is_the_same_table_for_arrow(stored):
    """pyarrow reads it as it is; so do DuckDB and pandas."""
    import pyarrow.dataset as ds

    table = ds.dataset([str(file) for file in stored.trace.blocks.files]).to_table()
    assert table.sort_by([("shard", "ascending"), ("block", "ascending")]).equals(
        table_of(stored.trace.blocks)
    )
