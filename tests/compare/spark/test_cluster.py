"""A real cluster, a master and two workers as processes of their own on loopback, one of which
dies; and `spark-submit`.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from compare.traffic.tapes.trace import write_trace
from compare.traffic.workloads.catalogue import make
from compare.trial.pipeline.replay import replay_trace
from compare.trial.pipeline.results import KEY, Results, open_results
from compare.trial.pipeline.summarise import outcomes_of
from tests.compare.daemons import ROOT, TIME_LIMIT, Daemons, until
from tests.compare.own_timers import slow_timer
from timers.kernels.jit import COMPILING

pytestmark = [pytest.mark.spark, pytest.mark.cluster]


def test_the_result_is_right_although_a_worker_is_killed(
    daemons: Daemons, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tapes = [make("uniform", operations=400, seed=seed).tape for seed in range(8)]
    trace = write_trace(tmp_path / "trace", tapes, unit="ms", source={"kind": "test"})
    url, out, timers = daemons.cluster(), tmp_path / "out", ["delay-queue", "slow:Slow"]
    marker = slow_timer(tmp_path)
    command = ["replay", str(trace.path), "--timers", ",".join(timers), "--out", str(out)]
    driver = subprocess.Popen(
        [sys.executable, "-m", "compare", *command, "--master", url],
        env=daemons.environment,
        cwd=tmp_path,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    daemons.processes.append(driver)
    # What a task writes before it is committed.
    written = ".out.*/run-*/expiries/_temporary/*/_temporary/*/part-*"
    until(lambda: list(tmp_path.glob(written)), "the first expiries", driver)
    daemons.kill(daemons.processes[1])
    marker.unlink()
    said, complaints = driver.communicate(timeout=TIME_LIMIT)
    assert driver.returncode == 0, complaints.decode()
    assert b"2 timers x 8 shards, 3,200 operations" in said
    assert complaints.replace(f"{COMPILING}\n".encode(), b"") == b""
    monkeypatch.syspath_prepend(str(tmp_path))
    alone = replay_trace(trace, timers, tmp_path / "alone")
    assert contents(open_results(out, allow=timers)) == contents(alone)


def contents(results: Results) -> list[dict[str, Any]]:
    """All rows, without times."""
    table = pq.read_table(results.expiries.path)
    rows: list[dict[str, Any]] = table.sort_by([(name, "ascending") for name in KEY]).to_pylist()
    for row in rows:
        if row["outcome"] is not None:
            del row["outcome"]["seconds"]
    return rows


def test_a_driver_under_spark_submit_uses_the_session_that_was_asked_for(
    daemons: Daemons, tmp_path: Path
) -> None:
    trace = write_trace(
        tmp_path / "trace",
        [make("keepalive", operations=2_000).tape] * 3,
        unit="ms",
        source={"kind": "test"},
    )
    out = tmp_path / "out"
    command = f"replay {trace.path} --out {out} --timers delay-queue,simple-wheel"
    # Told a master of its own, it would refuse any other session.
    line = f"--master local[3] {ROOT}/compare/__main__.py {command} --master local[3]"
    process, log = daemons.start("driver", line, script="spark-submit")
    assert process.wait(TIME_LIMIT) == 0, log.read_text()
    assert "2 timers x 3 shards, 6,000 operations" in log.read_text()
    assert [each.outcome.operations for each in outcomes_of(open_results(out))] == [6_000] * 2
