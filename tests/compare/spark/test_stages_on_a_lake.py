"""The stages where driver and workers share an object store and no disk: classic and Connect."""

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from compare import generate, replay_trace, verify
from compare.trial.pipeline.summarise import outcomes_of
from compare.trial.replay.outcome import NUMBERS
from tests.compare.daemons import WITH_US, until
from tests.compare.lake import BUCKET
from tests.compare.spark.test_lake import names

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.xdist_group("lake")]
on_both = pytest.mark.parametrize("driver", ["classic", "connect"], indirect=True)

WORKLOAD, OPERATIONS, SHARDS = "lognormal-low", 200_000, 4
TIMERS = ["cascading-wheel", "hashed-wheel/tick=5ms"]
TIMES = ("seconds", "nbytes")


@pytest.fixture
def uri():
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


def facts(results, engine=None):
    """What does not depend on where it ran: the counts of each timer, and its check."""
    return [
        (
            each.label,
            {name: getattr(each.outcome, name) for name in NUMBERS if name not in TIMES},
            each.outcome.lateness.max,
            dict(each.check.counts),
        )
        for each in outcomes_of(results, engine)
    ]


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """The same stages on this machine."""
    path = tmp_path_factory.mktemp("here")
    generate(WORKLOAD, path / "trace", operations=OPERATIONS, shards=SHARDS)
    return facts(replay_trace(path / "trace", TIMERS, path / "results", check=True))


def stages(spark, uri, shards=SHARDS):
    """All stages, each of which finds what the one before has written."""
    from compare.spark.engine import OnSpark

    generate(WORKLOAD, f"{uri}/trace", operations=OPERATIONS, shards=shards, session=spark)
    results = replay_trace(f"{uri}/trace", TIMERS, f"{uri}/results", check=True, session=spark)
    return facts(results, OnSpark(spark)), verify(f"{uri}/results", session=spark).passed


def force(spark, uri):
    generate(WORKLOAD, f"{uri}/trace", operations=1000, session=spark, force=True)


def generated(spark, uri, operations=OPERATIONS):
    return generate(WORKLOAD, uri, operations=operations, shards=SHARDS, session=spark).totals


def slow(spark, uri):
    """Write a trace whose third shard takes until its worker is killed, on the first attempt."""
    from compare.spark.engine import OnSpark
    from compare.traffic.tapes.places import new_trace_at
    from compare.traffic.workloads.catalogue import Plan
    from compare.trial.pipeline.generate import stage

    plan, engine = Plan.of(WORKLOAD, operations=OPERATIONS, shards=SHARDS), OnSpark(spark)

    def wait(batches):
        from pyspark import TaskContext

        for batch in batches:
            while batch["shard"][0].as_py() == 2 and TaskContext.get().attemptNumber() == 0:
                pass
            yield batch

    with new_trace_at(engine, uri, unit="ms", source=plan.source, force=False) as unfinished:
        blocks = engine.apply(stage(plan), engine.numbers(SHARDS))
        engine.write(blocks.mapInArrow(wait, blocks.schema), unfinished.blocks, "slow")


def opened(spark, uri):
    from compare.spark.engine import OnSpark
    from compare.traffic.tapes.places import open_trace_at

    return open_trace_at(OnSpark(spark), uri).totals


@on_both
def test_the_stages_give_what_this_machine_gives(driver, here, uri):
    assert driver(stages, uri) == (here, True)
    with pytest.raises(RuntimeError, match="exists; pass --force"):
        driver(generated, f"{uri}/trace")
    driver(force, uri)
    with pytest.raises(RuntimeError, match="is not the trace that was replayed"):
        driver(verified, uri)


def verified(spark, uri):
    return verify(f"{uri}/results", session=spark).passed


@on_both
def test_a_python_worker_that_is_killed_loses_and_doubles_nothing(lake, driver, uri):
    driver.send(slow, uri)
    lake.kill_a_python_worker()
    driver.reply()
    assert driver(opened, uri)["rows"] == OPERATIONS


def test_a_killed_driver_leaves_nothing_that_is_seen(lake, classic, uri):
    killed = lake.driver()
    killed.send(slow, uri)
    worker = lake.busy_python_worker()
    killed.kill()
    with pytest.raises(EOFError):
        killed.reply()
    until(lambda: not Path(f"/proc/{worker}").exists(), "the end of its tasks", classic.process)
    with pytest.raises(RuntimeError, match="is not a trace, or does not exist"):
        classic(opened, uri)
    assert classic(generated, uri)["rows"] == OPERATIONS
    assert classic(opened, uri)["rows"] == OPERATIONS


def test_of_two_applications_one_is_refused(lake, classic, uri):
    """The other's run is whole, and what the refused one has written is gone."""
    other = lake.driver()
    classic.send(slow, uri)
    worker = lake.busy_python_worker()
    assert other(generated, uri, 1000)["rows"] == 1000
    os.kill(worker, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=f"cannot write {uri}"):
        classic.reply()
    assert classic(opened, uri)["rows"] == 1000
    assert names(lake, uri).count("blocks") == 1


def test_the_command_runs_all_stages_and_resumes(lake, tmp_path, uri):
    """From a log in the store to a page on this machine, without a shared disk."""
    rows = [f"{k},{1 + k % 7}\n" for k in range(1000)]
    for part in range(2):
        with lake.files.open_output_stream(f"{uri}/log/{part}.csv".removeprefix("s3://")) as file:
            file.write("".join(["t,d\n", *rows[part::2]]).encode())
    named = ["--time=t", "--duration=d", "--timeout=5s", "--timers=delay-queue,cascading-wheel"]
    places = [f"--out={uri}/out", f"--page={tmp_path / 'page'}", f"--master={lake.master}"]

    def run():
        command = [*WITH_US, sys.executable, "-m", "compare", "pipeline", f"{uri}/log/*.csv"]
        return subprocess.run(
            [*command, *named, *places],
            env=lake.environment,
            cwd=lake.folder,
            capture_output=True,
            text=True,
            check=False,
        )

    first = run()
    assert first.returncode == 0, first.stderr
    # 2 of 7 durations are longer than the timeout; one of exactly 5 s comes too late, as well.
    expected = sum(1 + k % 7 >= 5 for k in range(1000))
    assert f"{2 * expected:,}, all as the oracle expects" in first.stdout
    assert (tmp_path / "page" / "index.html").exists()
    kept = sorted(names(lake, uri))
    again = run()
    assert again.returncode == 0, again.stderr
    assert sorted(names(lake, uri)) == kept
