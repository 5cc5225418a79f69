"""A real cluster: a standalone master and two workers as processes of their own on loopback, one of which dies."""
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from compare.pipeline.grid import replay_grid
from compare.pipeline.results import open_results
from compare.trace import write_trace
from compare.workloads import make

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

ROOT = Path(__file__).resolve().parents[2]
TIMERS = ("unordered-list", "hierarchical-wheel", "heapq-delay-queue", "delay-queue")
PATIENCE = 120.0
"""Seconds in which a process of the cluster must have done what is waited for; it takes some of them."""


def until(holds: Callable[[], Any], what: str, process: subprocess.Popen[bytes]) -> Any:
    """Wait for another process: there is no manual clock for it."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := holds():
            return found
        assert process.poll() is None, f"ended with {process.returncode} before {what}"
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {PATIENCE} s")


class Cluster:
    """Starts Spark's own daemons; each leads a process group, so that it dies with the executors that it started."""

    def __init__(self, directory: Path) -> None:
        import pyspark

        from compare.pipeline.spark import _java_environment

        self.directory = directory
        self.home = Path(pyspark.__file__).parent
        self.environment = {
            **os.environ, **_java_environment(), "SPARK_HOME": str(self.home), "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT),
        }  # fmt: skip
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, *arguments: str) -> tuple[subprocess.Popen[bytes], Path]:
        log = self.directory / f"{name}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [self.home / "bin" / "spark-class", *arguments], env=self.environment, cwd=self.directory, stdout=file,
                stderr=file, start_new_session=True,
            )  # fmt: skip
        self.processes.append(process)
        return process, log

    def run(self) -> str:
        """Start a master and two workers; the master's URL."""
        process, log = self.start(
            "master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"
        )
        found = until(lambda: re.search(r"Starting Spark master at (spark://\S+)", log.read_text()), "a master", process)
        for number in range(2):
            self.start(
                f"worker-{number}", "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0",
                "--cores", "1", "--memory", "1g", "--work-dir", str(self.directory / f"work-{number}"), found[1],
            )  # fmt: skip
        until(lambda: log.read_text().count("Registering worker") == 2, "two workers", process)
        return str(found[1])

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def stop(self) -> None:
        for process in reversed(self.processes):
            self.kill(process)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    (tmp_path / "cluster").mkdir()
    running = Cluster(tmp_path / "cluster")
    try:
        yield running
    finally:
        running.stop()


def test_the_result_is_right_although_a_worker_is_killed(spark: Any, cluster: Cluster, tmp_path: Path) -> None:
    tapes = [make("uniform", operations=8_000, seed=seed).tape for seed in range(8)]
    trace = write_trace(tmp_path / "trace", tapes, unit="ms", source={"kind": "test"})
    url = cluster.run()
    out = tmp_path / "out"
    command = [sys.executable, "-m", "compare.cli", "replay", str(trace.path), "--timers", ",".join(TIMERS)]
    driver = subprocess.Popen(
        [*command, "--out", str(out), "--master", url], env=cluster.environment, cwd=ROOT, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    cluster.processes.append(driver)
    until(lambda: list(out.glob("cells/*/shard-*")), "the first cell", driver)
    cluster.kill(cluster.processes[1])
    finished_before = len(list(out.glob("cells/*/shard-*")))
    said, complaints = driver.communicate(timeout=PATIENCE)
    assert driver.returncode == 0, complaints.decode()
    assert b"4 timers x 8 shards, 256,000 operations" in said
    assert complaints == b""
    assert finished_before < 32, "the worker was killed too late to show anything"
    alone = replay_grid(trace.path, TIMERS, tmp_path / "alone", session=spark)
    found = open_results(out)
    mine, other = (one.read_cells().drop_columns("seconds") for one in (found, alone))
    assert mine.equals(other)
    for cell in alone.cells():
        assert pq.read_table(found.expiries_file(*cell)).equals(pq.read_table(alone.expiries_file(*cell)))
