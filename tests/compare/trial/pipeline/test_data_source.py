"""The data source gives the rows that the generator writes."""

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from compare.spark.session import failure
from compare.traffic.workloads.catalogue import WorkloadError
from compare.trial.pipeline.data_source import TimerWorkload, plan_of, register
from compare.trial.pipeline.generate import generate

pytestmark = pytest.mark.spark


@pytest.fixture
def source(spark):
    register(spark)

    def load(**options):
        return spark.read.format("timer-workload").options(**options).load()

    return load


def test_rows_are_those_of_the_files(source, tmp_path):
    amount = {"timers": 1000, "shards": 3, "seed": 1, "parameters": {"mean": 20_000}}
    trace = generate("keepalive", tmp_path / "trace", **amount)
    rows = source(workload="keepalive", timers="1e3", shards=3, seed=1, mean="2e4")
    assert rows.columns == ["shard", "operation", "time", "op", "id", "deadline"]
    assert rows.rdd.getNumPartitions() == 3
    table = pa.table(rows.orderBy("shard", "operation").toArrow())
    assert table.num_rows == trace.totals["rows"]
    begin = 0
    for number, shard in enumerate(trace.shards):
        part = table.slice(begin, shard.rows)
        begin += shard.rows
        assert part.column("shard").to_pylist() == [number] * shard.rows
        assert part.column("operation").to_pylist() == list(range(shard.rows))
        for name, column in trace.load(number)._asdict().items():
            assert part.column(name).to_pylist() == column.tolist()


def test_rows_are_numbered_across_pieces_and_batches(monkeypatch):
    monkeypatch.setattr("compare.traffic.workloads.generator.PIECE", 100)
    # Private: the public way is a shard of a million rows.
    monkeypatch.setattr("compare.trial.pipeline.data_source._BATCH", 30)
    reader = TimerWorkload({"workload": "uniform", "operations": "161"}).reader(StructType())
    (shard,) = reader.partitions()
    batches = list(reader.read(shard))
    assert max(batch.num_rows for batch in batches) == 30
    assert pa.Table.from_batches(batches)["operation"].to_pylist() == list(range(161))


BAD = [
    ({}, 'name a workload, as in .option("workload", "uniform")'),
    ({"workload": "nix"}, "no workload is called 'nix'; there are uniform,"),
    ({"workload": "uniform", "timers": "5", "operations": "5"}, "but not both"),
    (
        {"workload": "uniform", "timers": "many"},
        "timers must be a whole number, such as 5000 or 1e6, not 'many'",
    ),
    ({"workload": "uniform", "timers": "1e-3"}, "timers must be a whole number"),
    (
        {"workload": "uniform", "timers": "5", "tick": "1"},
        "timer-workload has no option 'tick' for uniform;"
        " it has timers, operations, shards, seed, rate, longest",
    ),
    ({"workload": "uniform", "timers": "5", "rate": "0"}, "rate must lie in"),
]


@pytest.mark.parametrize(("options", "says"), BAD)
def test_options_that_make_no_sense(options, says):
    with pytest.raises(WorkloadError) as raised:
        plan_of(options)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_options_are_read_as_spark_hands_them_over():
    plan = plan_of({"WORKLOAD": "cancel-heavy", "Operations": "2.5e3", "lost": "0", "seed": "7"})
    assert (plan.counted, plan.amount, plan.shards, plan.seed, plan.parameters["lost"]) == (
        "operations",
        2500,
        1,
        7,
        0,
    )


def test_the_session_says_what_is_wrong_before_a_job_is_run(source):
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as raised:
        source(workload="uniform", timers=5, tick=1)
    assert failure(raised.value).startswith(
        "timer-workload has no option 'tick' for uniform; it has timers"
    )
