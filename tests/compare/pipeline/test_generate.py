"""A workload on Spark is the same trace, whoever writes it, and never half of one."""

import os
import resource
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from compare.cli.main import BAD_INPUT, main
from compare.pipeline.generate import generate, generate_plan
from compare.spark.session import PipelineError, failure
from compare.spark.tasks import even_shares
from compare.tapes import ids
from compare.tapes.tape import validate
from compare.tapes.trace import TraceError, open_trace
from compare.workloads import generator
from compare.workloads.catalogue import Plan, WorkloadError, make
from compare.workloads.writing import write_shard, write_trace_of
from tests.compare.small_tapes import digest
from timers import TimerError

pytestmark = pytest.mark.spark


def digests(trace):
    return [digest(trace.load(shard)) for shard in range(len(trace.shards))]


def test_rows_do_not_depend_on_the_tasks(spark, tmp_path, monkeypatch):
    def written(tasks):
        monkeypatch.setattr(
            "compare.spark.tasks.shares", lambda parts, _: even_shares(parts, tasks)
        )
        trace = generate(
            "cancel-heavy",
            tmp_path / f"by-{tasks}",
            operations=20_003,
            shards=16,
            seed=5,
            parameters={"mean": 70},
            session=spark,
        )
        assert [shard.file for shard in trace.shards] == [
            f"shard-{number:05d}.parquet" for number in range(16)
        ]
        return digests(trace), trace.totals, trace.source, trace.shards

    one, three, sixteen = map(written, (1, 3, 16))
    assert one == three == sixteen
    assert len(set(one[0])) == 16
    assert one[1]["rows"] == 20_003
    assert one[2] == {
        "workload": "cancel-heavy",
        "parameters": {"rate": 10_000, "timeout": 30_000, "mean": 70, "lost": 10},
        "seed": 5,
        "shards": 16,
        "operations": 20_003,
    }


def test_a_shard_is_the_unsharded_tape_of_its_size(spark, tmp_path):
    trace = generate(
        "keepalive", tmp_path / "sharded", timers=1001, shards=2, seed=8, session=spark
    )
    for shard, timers in ((0, 501), (1, 500)):
        made = make("keepalive", timers=timers, seed=8, shard=shard)
        tape = trace.load(shard)
        assert digest(tape) == digest(made.tape)
        assert trace.shards[shard].id_space == made.id_space
        validate(tape, made.id_space)
    alone = write_trace_of(Plan.of("keepalive", timers=501, seed=8), tmp_path / "alone")
    assert digest(alone.load()) == digest(trace.load(0))
    assert alone.source["shard"] == 0


def test_workers_find_the_machine_code_that_the_driver_compiled(spark, tmp_path):
    generate("uniform", tmp_path / "trace", timers=10, session=spark)

    def look(batches):
        for _ in batches:
            pass
        for _ in Plan.of("lognormal-low", timers=10).pieces():
            pass
        functions = (generator.fill_rows, ids._assign)
        yield pa.record_batch(
            {"misses": [sum(sum(f.stats.cache_misses.values()) for f in functions)]}
        )

    assert spark.range(2).mapInArrow(look, "misses bigint").agg({"misses": "sum"}).first()[0] == 0


def test_a_shard_that_is_written_twice_is_written_once(tmp_path):
    plan = Plan.of("uniform", timers=1000, shards=2)
    first = write_shard(plan, 1, tmp_path)
    content = (tmp_path / first.file).read_bytes()
    assert write_shard(plan, 1, tmp_path) == first
    assert (tmp_path / first.file).read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["shard-00001.parquet"]


def test_progress_is_told_in_rows(tmp_path):
    told = []
    trace = write_trace_of(
        Plan.of("keepalive", timers=100_000), tmp_path / "trace", progress=told.append
    )
    assert len(told) > 1
    assert sum(told) == trace.totals["rows"]


def test_the_command_on_spark(spark, tmp_path, capsys):
    def run(*arguments):
        return main(["generate", *map(str, arguments)]), *capsys.readouterr()

    said = run(
        "lognormal-low",
        "--operations",
        "1e4",
        "--shards",
        3,
        "--seed",
        2,
        "--out",
        tmp_path / "three",
    )
    trace = open_trace(tmp_path / "three")
    assert said[0] == 0
    assert said[1].startswith("operations  10,000: 7,411 starts, 2,589 cancels\n")
    assert digest(trace.load(2)) == digest(
        make("lognormal-low", operations=3333, seed=2, shard=2).tape
    )
    run(
        "lognormal-low",
        "--operations",
        3333,
        "--seed",
        2,
        "--master",
        "local[2]",
        "--out",
        tmp_path / "one",
    )
    assert open_trace(tmp_path / "one").source["shard"] == 0
    more = ("uniform", "--timer-count", 5, "--master", "local[3]", "--out", tmp_path / "none")
    code, _, err = run(*more)
    assert code == BAD_INPUT
    assert "running on local[2" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "three"]


# ---- what goes wrong


@pytest.mark.parametrize(
    ("keywords", "says"),
    [
        ({"name": "nix"}, "no workload is called 'nix'; there are uniform,"),
        ({"parameters": {"tick": 1}}, "uniform has no parameter 'tick'; it has rate, longest"),
        ({"shards": 0}, "shards must lie in [1, 100000], not 0"),
        ({"shards": 100_001}, "shards must lie in [1, 100000], not 100001"),
        ({"shards": 101}, "timers of 101 shards must lie in [101, 216895848347], not 100"),
        ({"timers": None}, "and not both"),
        ({"master": "sparkle"}, "'sparkle' is not a Spark master"),
        ({"master": "spark://127.0.0.1:1"}, "cannot reach the Spark master spark://127.0.0.1:1"),
        ({"out": "file/trace"}, "file is not a directory"),
        ({"out": "file"}, "exists and is not a trace"),
    ],
)
def test_nonsense_is_refused_with_one_line_before_spark_starts(
    keywords, says, tmp_path, monkeypatch
):
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TimerError) as raised:
        generate(**{"name": "uniform", "out": "trace", "timers": 100} | keywords)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_trace_that_exists_is_kept_unless_forced(spark, tmp_path):
    out = tmp_path / "trace"
    generate("uniform", out, timers=5, session=spark)
    with pytest.raises(TraceError, match=r"exists; pass --force"):
        generate("uniform", out, timers=6, session=spark)
    assert (
        generate("uniform", out, timers=6, shards=2, session=spark, force=True).totals["rows"] == 6
    )
    with pytest.raises(WorkloadError):
        generate("uniform", out, timers=0, session=spark, force=True)
    assert open_trace(out).totals["rows"] == 6


def python_workers():
    """The processes below this one, without Java: Spark's daemon of Python workers, and these."""
    parents = {}
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            try:
                status = (directory / "stat").read_text().rpartition(")")[2].split()
                parents[int(directory.name)] = (
                    int(status[1]),
                    (directory / "comm").read_text().strip(),
                )
            except OSError:
                continue  # it has ended meanwhile
    below, found = {os.getpid()}, []
    while more := {pid for pid, (parent, _) in parents.items() if parent in below} - below:
        below |= more
        found += [pid for pid in more if parents[pid][1] != "java"]
    return found


@pytest.fixture
def full_disk(spark):
    """No Python worker can write more than 256 KiB to a file."""
    if not hasattr(resource, "prlimit"):
        pytest.skip("limits of other processes can be set on Linux alone")
    spark.range(2).mapInArrow(
        lambda batches: batches, "id bigint"
    ).collect()  # so that there are workers
    limited = [(pid, resource.prlimit(pid, resource.RLIMIT_FSIZE)) for pid in python_workers()]
    assert limited
    for pid, (_, hard) in limited:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1 << 18, hard))
    yield
    for pid, limits in limited:
        try:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)
        except ProcessLookupError:
            continue


def test_a_disk_that_is_full_is_told_in_one_line(spark, tmp_path, full_disk):
    with pytest.raises(PipelineError) as raised:
        generate("uniform", tmp_path / "trace", timers=200_000, session=spark)
    assert str(raised.value) == f"cannot write to {tmp_path}: File too large"
    assert list(tmp_path.iterdir()) == []


def test_a_tape_that_becomes_too_long_leaves_nothing(spark, tmp_path):
    plan = Plan.of("keepalive", timers=1000)
    too_long = Plan(**{**vars(plan), "most": 10_000})
    with pytest.raises(
        WorkloadError, match="1000 timers of keepalive have more than 10000 operations"
    ):
        write_trace_of(too_long, tmp_path / "here")
    with pytest.raises(
        WorkloadError, match="1000 timers of keepalive have more than 10000 operations"
    ):
        generate_plan(too_long, tmp_path / "there", session=spark)
    assert list(tmp_path.iterdir()) == []


def test_the_failure_of_a_worker_is_its_last_line():
    text = (
        "[X] failed: Traceback (most recent call last):\n  File\n"
        "compare.workloads.WorkloadError: why\n SQLSTATE: 38000"
    )
    assert failure(ValueError(text)) == "why"
    assert (
        failure(
            ValueError("Traceback (most recent call last):\n  File\nOSError: cannot write to x")
        )
        == "cannot write to x"
    )
    assert failure(ValueError("one\ntwo")) == "one"


def test_a_disk_that_is_full_without_spark_is_told_in_one_line(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, hard))
    try:
        with pytest.raises(TraceError) as raised:
            write_trace_of(Plan.of("uniform", timers=200_000), tmp_path / "trace")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(raised.value).startswith(f"cannot write {tmp_path / 'trace'}: ")
    assert "File too large" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []
