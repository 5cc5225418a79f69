"""A Spark cluster whose machines share no disk: data is in an object store, as in a data lake.

A master, two workers and a Spark Connect server each have a HOME and a working directory of their
own, and a mount namespace in which the driver's folder is empty. The object store is moto's: S3 on
loopback, in the memory of the process that runs the tests.
"""

import logging
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.compare.daemons import TIME_LIMIT, WITH_US, Daemons

BUCKET = "lake"
AWS_SDK = "2.35.4"
"""The version that hadoop-aws 3.5.0 was built with."""

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java does not optimise code that is run once."""

SEPARATED = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
"""The command that runs another in a mount namespace of its own."""


def mounts_can_be_separated() -> bool:
    if shutil.which(SEPARATED[0]) is None:
        return False
    return subprocess.run([*SEPARATED, "true"], capture_output=True, check=False).returncode == 0


class Driver:
    """A process with a Spark session, in the driver's folder. Only it can open that folder."""

    def __init__(self, lake: "Lake", address: str) -> None:
        self.address = address
        with (lake.directory / f"driver-{len(lake.processes)}.log").open("wb") as log:
            self.process = subprocess.Popen(
                [*WITH_US, sys.executable, "-m", "tests.compare.driver", address],
                env=lake.environment,
                cwd=lake.folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        lake.processes.append(self.process)

    def __call__(self, function: Callable[..., Any], *arguments: object) -> Any:
        """What a function of a module returns when the driver calls it with its session first.

        Raises RuntimeError with the driver's traceback.
        """
        self.send(function, *arguments)
        return self.reply()

    def send(self, function: Callable[..., Any], *arguments: object) -> None:
        """Let the driver call a function, without waiting for it."""
        assert self.process.stdin is not None
        pickle.dump((function, arguments), self.process.stdin)
        self.process.stdin.flush()

    def reply(self) -> Any:
        """Wait for what the function returned. A driver that died raises EOFError."""
        assert self.process.stdout is not None
        succeeded, value = pickle.load(self.process.stdout)
        if not succeeded:
            raise RuntimeError(value)
        return value

    def kill(self) -> None:
        """End the driver and the Java of its session at once, as a machine that dies does."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Lake(Daemons):
    """The cluster, its object store and its drivers. `stop` ends all of them."""

    def __init__(self, directory: Path) -> None:
        from moto.server import ThreadedMotoServer

        super().__init__(directory)
        self.folder = directory / "driver"
        """The driver's folder, which no other machine sees."""
        self.folder.mkdir()
        logging.getLogger("werkzeug").setLevel(logging.WARNING)  # not a line for each request
        self.store = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
        self.store.start()
        endpoint = "http://{}:{}".format(*self.store.get_host_and_port())
        # pyarrow and the AWS SDK read these. The daemons do not have them: Spark tells its own.
        self.credentials = {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        configuration = directory / "conf"
        configuration.mkdir()
        lines = (" ".join(setting) for setting in self.settings(endpoint).items())
        (configuration / "spark-defaults.conf").write_text("\n".join(lines))
        self.environment["SPARK_CONF_DIR"] = str(configuration)
        self.environment["SPARK_DAEMON_JAVA_OPTS"] = QUICK_JAVA
        self.environment["SPARK_SUBMIT_OPTS"] = QUICK_JAVA
        self.hosts = {**self.environment}
        self.environment |= self.credentials
        self.master = ""

    def settings(self, endpoint: str) -> dict[str, str]:
        """The settings of every session on this cluster: the connector, the store, its size."""
        jar = next((self.home / "jars").glob("hadoop-client-api-*.jar"))
        hadoop = jar.stem.removeprefix("hadoop-client-api-")
        packages = (
            f"org.apache.hadoop:hadoop-aws:{hadoop}",
            f"software.amazon.awssdk:s3-transfer-manager:{AWS_SDK}",
        )
        return {
            "spark.jars.packages": ",".join(packages),
            # The SDK for all of AWS, of which S3 needs little.
            "spark.jars.excludes": "software.amazon.awssdk:bundle",
            # The daemons' HOMEs are empty; what was fetched once is kept.
            "spark.jars.ivy": str(Path.home() / ".ivy2.5.2"),
            # One URI for Spark and pyarrow.
            "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
            "spark.hadoop.fs.s3a.endpoint": endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.access.key": "test",
            "spark.hadoop.fs.s3a.secret.key": "test",
            # One core of each worker, so that four applications fit.
            "spark.cores.max": "2",
            "spark.executor.memory": "768m",
            "spark.executor.extraJavaOptions": QUICK_JAVA,
            # Tasks start when both workers have joined, so that both run some.
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            # Workers start often here, and would import everything again.
            "spark.python.daemon.module": "tests.compare.worker_daemon",
        }

    def on_host(self, name: str) -> tuple[list[str], dict[str, str], Path]:
        folder = self.directory / f"host-{name}"
        (folder / "home").mkdir(parents=True)
        hide = f'mount -t tmpfs none "{self.folder}" && exec "$@"'
        environment = self.hosts | {"HOME": str(folder / "home")}
        return [*SEPARATED, "sh", "-c", hide, "sh"], environment, folder

    def start_cluster(self) -> "Lake":
        """Start the master and the workers, and create the bucket."""
        from pyarrow.fs import S3FileSystem

        self.files = S3FileSystem(
            access_key="test",
            secret_key="test",
            region="us-east-1",
            endpoint_override=self.credentials["AWS_ENDPOINT_URL"],
            allow_bucket_creation=True,
        )
        self.files.create_dir(BUCKET)
        self.master = self.cluster(cores=4)
        return self

    def driver(self, address: str = "") -> Driver:
        """Start a driver on the cluster, or a client of a Spark Connect server."""
        return Driver(self, address or self.master)

    def kill_a_python_worker(self) -> None:
        """Kill a process that runs Python for a task, once it computes."""
        os.kill(self.busy_python_worker(), signal.SIGKILL)

    def busy_python_worker(self, seconds: float = 1.0) -> int:
        """Wait until a process that runs Python for a task has computed for so long; its id."""
        first: dict[int, float] = {}
        deadline = time.monotonic() + TIME_LIMIT
        while time.monotonic() < deadline:
            for process, used in self._python_workers().items():
                if used - first.setdefault(process, used) >= seconds:
                    return process
            time.sleep(0.05)
        raise AssertionError(f"no Python worker computed within {TIME_LIMIT} s")

    def _python_workers(self) -> dict[int, float]:
        """Processor seconds that each Python worker has used; they are children of a daemon."""
        parents, used = {}, {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if not (folder / "cwd").readlink().is_relative_to(self.directory):
                    continue
                if b"worker_daemon" not in (folder / "cmdline").read_bytes():
                    continue
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # has ended meanwhile
                continue
            parents[int(folder.name)] = int(fields[1])
            used[int(folder.name)] = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
        return {process: used[process] for process, of in parents.items() if of in parents}

    def stop(self) -> None:
        super().stop()
        self.store.stop()
        for folder in self.directory.glob("work-*"):  # the connector's files, for each executor
            shutil.rmtree(folder, ignore_errors=True)
