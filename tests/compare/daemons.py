"""Spark's own daemons as processes on loopback: started by a test, and stopped by it."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TIME_LIMIT = 120.0
"""Seconds in which a process must have done what is waited for; it takes some of them."""


def until(holds: Callable[[], Any], what: str, process: subprocess.Popen[Any]) -> Any:
    """Wait for another process: there is no manual clock for it."""
    deadline = time.monotonic() + TIME_LIMIT
    while time.monotonic() < deadline:
        if value := holds():
            return value
        assert process.poll() is None, f"ended with {process.returncode} before {what}"
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {TIME_LIMIT} s")


_SETPRIV = shutil.which("setpriv")
WITH_US = [_SETPRIV, "--pdeathsig", "KILL", "--"] if _SETPRIV else []
"""The command that ends another with this process: no fixture is torn down after a kill."""


class Daemons:
    """Each leads a process group, so that it dies with the executors that it started."""

    def __init__(self, directory: Path) -> None:
        import pyspark

        from compare.spark.java import java_environment

        self.directory = directory
        self.home = Path(pyspark.__file__).parent
        self.environment = {
            **os.environ,
            **java_environment(),
            "SPARK_HOME": str(self.home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
        }
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(
        self, name: str, arguments: str, script: str = "spark-class"
    ) -> tuple[subprocess.Popen[bytes], Path]:
        """Start one of Spark's scripts; the process and what it logs to."""
        log = self.directory / f"{name}.log"
        command, environment, folder = self.on_host(name)
        with log.open("wb") as file:
            process = subprocess.Popen(
                [*WITH_US, *command, self.home / "bin" / script, *arguments.split()],
                env=environment,
                cwd=folder,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        self.processes.append(process)
        return process, log

    def on_host(self, name: str) -> tuple[list[str], dict[str, str], Path]:
        """Where a daemon runs: the command before its own, its environment and its folder."""
        return [], self.environment, self.directory

    def cluster(self, cores: int = 1) -> str:
        """Start a master and two workers with so many cores each; the master's URL."""
        process, log = self.start(
            "master",
            "org.apache.spark.deploy.master.Master --host 127.0.0.1 --port 0 --webui-port 0",
        )
        value = until(
            lambda: re.search(r"Starting Spark master at (spark://\S+)", log.read_text()),
            "a master",
            process,
        )
        for number in range(2):
            self.start(
                f"worker-{number}",
                "org.apache.spark.deploy.worker.Worker --host 127.0.0.1 --webui-port 0"
                f" --cores {cores} --memory {cores}g --work-dir {self.directory}/work-{number}"
                f" {value[1]}",
            )
        until(lambda: log.read_text().count("Registering worker") == 2, "two workers", process)
        return str(value[1])

    def connect_server(self, master: str = "local[2]") -> str:
        """Start a Spark Connect server, on two cores or a cluster; its address."""
        process, log = self.start(
            "connect",
            f"--class org.apache.spark.sql.connect.service.SparkConnectServer --master {master}"
            " --conf spark.connect.grpc.binding.port=0 --conf spark.ui.enabled=false"
            " spark-internal",
            script="spark-submit",
        )
        started = re.compile(r"Spark Connect server started at: \S*?:(\d+)")
        value = until(lambda: started.search(log.read_text()), "a Connect server", process)
        return f"sc://127.0.0.1:{value[1]}"

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """End a process and all that it started, at once."""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def stop(self) -> None:
        """End all of them."""
        for process in reversed(self.processes):
            self.kill(process)
