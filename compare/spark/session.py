"""Spark sessions without setup."""

import os
import re
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compare.spark.facts import is_remote
from compare.spark.failures import (
    PipelineError,
    failure,
    plain_failures,
    plain_interrupts,
    reason_in,
)
from compare.spark.java import INSTALL, java_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDED = ("pyspark", "pandas")

TRIES = 4
"""Attempts to run a task before the job fails: Spark's default on clusters."""

_SESSION_SETTINGS = {
    # The web page would open a port and take time to start.
    "spark.ui.enabled": "false",
    # Its progress bar writes carriage returns into logs.
    "spark.ui.showConsoleProgress": "false",
    # Times count from 1970; conversions must not depend on the machine's time zone.
    "spark.sql.session.timeZone": "UTC",
    # Aggregates have few rows here; the default of 200 partitions would be pure overhead.
    "spark.sql.shuffle.partitions": "8",
    # A row may be a block of 65,536 operations, which takes 1.4 MB; the default is 256 MB.
    "spark.sql.execution.arrow.maxBytesPerBatch": "33554432",
}

_SQL_SETTINGS: dict[str, Any] = {
    name: value for name, value in _SESSION_SETTINGS.items() if name.startswith("spark.sql.")
}
"""Those that results depend on, and that a running session can change."""

_LOCAL_SETTINGS = {
    # No other machine connects, and this machine's name may resolve to an unreachable address.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # The driver is the only executor. With the default of 1 GB, sorts of ten million rows spill.
    "spark.driver.memory": "2g",
    # Rows stay on this machine, and compressing them takes 5 to 8 % of the time of an ingestion.
    "spark.shuffle.compress": "false",
}

_JAVA_OPTIONS = (
    # Verifying the bytecode of the installed packages takes a sixth of a session's start.
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    # Ten times the defaults: Java optimises only what still runs after a while. An ingestion of 8
    # million rows then takes a quarter less processor time, and joins that check 10 million
    # expiries take the same.
    " -XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000"
    " -XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)

_YARN_SETTINGS = {
    # Milliseconds. By default the client waits 15 minutes for a resource manager.
    "spark.hadoop.yarn.resourcemanager.connect.max-wait.ms": "5000",
    "spark.hadoop.yarn.resourcemanager.connect.retry-interval.ms": "1000",
}

_MASTER = re.compile(
    r"local(\[(\*|[1-9]\d*)(,\s*[1-9]\d*)?\])?|local-cluster\[[^\]]+\]|yarn|spark://.+|k8s://.+"
)
_CONNECT_TIMEOUT = 5.0
"""Seconds for a server to accept a connection; Spark itself would wait a minute."""

_CONNECT_PORT = 15002

_own: "list[SparkSession]" = []
"""The session that `spark_session` has started, and stops: one at most."""


def missing_packages() -> str | None:
    """Return a message about missing packages that Spark needs, without importing any."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    return f"this command needs {' and '.join(missing)}: {INSTALL}" if missing else None


@contextmanager
def spark_session(
    master: str | None = None, session: "SparkSession | None" = None
) -> Iterator["SparkSession"]:
    """Yield a SparkSession, even on a machine without Java, and stop it on exit.

    >>> from compare import spark_session
    >>> with spark_session("local[2]") as spark:  # doctest: +SKIP
    ...     spark.read.parquet("replayed/expiries").count()
    25000

    In a notebook, `spark = spark_session().__enter__()` keeps it for the next cells.

    `master` is a Spark master. The default is the Spark Connect server in SPARK_REMOTE or else all
    cores of this machine. If a `session` is passed, if one is active, or under `spark-submit`, that
    session is used instead: it has the SQL settings that the pipeline needs until the block ends,
    and is not stopped.

    The log of a JVM that it starts is not kept: what matters in it is raised as an exception.

    Raises:
        PipelineError: if PySpark or Java is missing, or the master is malformed or does not answer.
    """
    if missing := missing_packages():
        raise PipelineError(missing)
    from pyspark.sql import SparkSession

    borrowed = session or SparkSession.getActiveSession() or _submitted()
    remote = master or os.environ.get("SPARK_REMOTE") or ""
    if borrowed is not None:
        if not is_remote(borrowed) and borrowed.sparkContext._jsc is None:
            raise PipelineError("the Spark session has been stopped; pass one that runs")
        current = "" if is_remote(borrowed) else borrowed.conf.get("spark.master")
        if master is not None and current not in (master, _with_tries(master)):
            raise PipelineError(
                f"Spark is already running on {current}, so {master} cannot be used"
            )
        with sql_settings(borrowed, _SQL_SETTINGS):
            yield borrowed
        return
    with plain_interrupts():
        own = _connect(remote) if remote.startswith("sc://") else _start(remote or "local[*]")
        _own.append(own)
        try:
            yield own
        finally:
            if own in _own:
                _own.remove(own)
                with warnings.catch_warnings():
                    # After an interrupt the JVM may have ended already.
                    warnings.filterwarnings("ignore", "Unable to cleanly", RuntimeWarning)
                    own.stop()


def end_java(session: "SparkSession") -> None:
    """End a session at once if it is our own, and the Java of this process with all its tasks.

    `SparkSession.stop` waits for tasks, which write meanwhile. The next session starts a new Java.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    process = getattr(SparkContext._gateway, "proc", None)
    if session not in _own or is_remote(session) or process is None:
        return
    _own.remove(session)
    process.kill()
    process.wait()
    context: Any = session.sparkContext
    context._jsc = None  # `stop` would call it
    context.stop()
    SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def sql_settings(
    session: "SparkSession", settings: Mapping[str, str]
) -> AbstractContextManager[None]:
    """Change settings of a session until the block ends."""
    conf = session.conf
    return _replaced(settings, lambda name: conf.get(name, None), conf.set, conf.unset)


@contextmanager
def _interrupts(handler: Any) -> Iterator[None]:
    """Set a handler of interrupts; afterwards restore the one before, whatever the block has set.

    None keeps the handler. Python handles signals only in the main thread.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, handler or before)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _submitted() -> "SparkSession | None":
    """The session of a driver under `spark-submit`, which sets the master and all settings."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.builder.appName("wheelwork").getOrCreate()


def _connect(address: str) -> "SparkSession":
    """A client of a Spark Connect server."""
    from pyspark.sql import SparkSession

    server = f"the Spark Connect server {address}"
    host, port = re.match(r"sc://([^:/;]*):?(\d*)", address).groups()  # type: ignore[union-attr]  # every address matches
    _check_answers(server, [f"{host}:{port or _CONNECT_PORT}"])
    try:
        with plain_failures(f"cannot use {server}", others=(ValueError,)):
            return SparkSession.builder.remote(address).config(map=_SQL_SETTINGS).getOrCreate()
    except (ImportError, SystemExit) as error:  # in `python -c`, PySpark ends the process
        raise PipelineError(
            f"Spark Connect needs more packages ({failure(error)}): pip install 'pyspark[connect]'"
        ) from None


def _settings(master: str) -> dict[str, Any]:
    """The settings of a session on a master."""
    settings: dict[str, Any] = _SESSION_SETTINGS | {
        "spark.master": _with_tries(master),
        "spark.app.name": "wheelwork",
    }
    if master.startswith("local"):
        # Workers import this package from where the driver did, even if it is not installed.
        paths = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
        python_path = os.pathsep.join(filter(None, paths))
        # A worker would also look in the current directory, which may be somebody else's.
        workers = {"PYTHONPATH": python_path, "PYTHONSAFEPATH": "1"}
        workers = {f"spark.executorEnv.{name}": value for name, value in workers.items()}
        return settings | _LOCAL_SETTINGS | workers
    return settings | (_YARN_SETTINGS if master == "yarn" else {})


def _environment(master: str) -> dict[str, str | None]:
    """The environment variables while Java starts; None removes one."""
    import pyspark

    # The builder would prefer a Spark Connect server.
    environment: dict[str, str | None] = {"SPARK_REMOTE": None, **java_environment()}
    is_local = master.startswith("local")
    if is_local:
        # The launcher of another Spark may not match this PySpark.
        environment["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
        # Not the driver's extraJavaOptions: these belong to the user.
        own = os.environ.get("SPARK_SUBMIT_OPTS", "")
        environment["SPARK_SUBMIT_OPTS"] = f"{own} {_JAVA_OPTIONS}"
    if is_local or "PYSPARK_PYTHON" not in os.environ:
        # The default is `python3` on PATH, which may lack this package.
        environment["PYSPARK_PYTHON"] = sys.executable
    return environment


def _start(master: str) -> "SparkSession":
    """A session in a Java of this process, which is started if there is none."""
    from pyspark import SparkContext
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    _check_master(master)
    settings, environment = _settings(master), _environment(master)
    # PySpark would also log errors to the terminal that it raises.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True
    # PySpark's own handler of interrupts, which calls Java during the interrupted call, is removed
    # with the environment.
    with (
        plain_failures(f"cannot start Spark on {master}", others=(OSError,)),
        _replaced(environment, os.environ.get, os.environ.__setitem__, os.environ.__delitem__),
        _interrupts(None),
    ):
        earlier = SparkContext._gateway  # Java keeps running after a session
        SparkContext._ensure_initialized(gateway=earlier or _launch(settings))
        # A new Java has the settings, and has let PYSPARK_SUBMIT_ARGS override them.
        builder = SparkSession.builder.config(map=settings if earlier else {})
        session = builder.master(settings["spark.master"]).getOrCreate()
        context: Any = session.sparkContext
        server = context._accumulatorServer
        server.handle_error = partial(_unless_ended, server.handle_error)
        return session


def _unless_ended(handle_error: Callable[..., object], *request: object) -> None:
    """Report an error of PySpark's server of accumulators, but not that Java has ended first, as
    after SIGTERM to both.
    """
    if not isinstance(sys.exception(), ConnectionError | EOFError):
        handle_error(*request)


def _launch(settings: Mapping[str, Any]) -> Any:
    """Start Java, and return PySpark's gateway to it. Raises OSError with what Java has said.

    Its log goes to a file: warnings, and a stack trace for every failed task. What matters is
    raised.
    """
    from pyspark import SparkConf, java_gateway
    from pyspark.errors import PySparkException

    launch: Any = java_gateway.launch_gateway  # has no types
    interrupts: list[int] = []
    with tempfile.TemporaryFile() as output:
        try:
            # A JVM that is interrupted before its address is known would never end.
            with _interrupts(lambda number, _: interrupts.append(number)):
                gateway = launch(SparkConf().setAll(list(settings.items())), {"stderr": output})
        except PySparkException as error:
            output.seek(0)
            said = output.read().decode(errors="replace")
            raise OSError(reason_in(said, last=True) if said else failure(error)) from None
    if interrupts:
        raise KeyboardInterrupt
    return gateway


def _check_master(master: str) -> None:
    if not _MASTER.fullmatch(master):
        raise PipelineError(
            f"{master!r} is not a Spark master; use local[N], local[*], spark://HOST:PORT, yarn,"
            " k8s://URL or sc://HOST"
        )
    if master.startswith("spark://"):
        _check_answers(f"the Spark master {master}", master.removeprefix("spark://").split(","))


def _check_answers(server: str, addresses: Sequence[str]) -> None:
    """Raise PipelineError if none of a server's addresses accepts a connection."""
    refusals = []
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT).close()
            return
        except (OSError, ValueError, OverflowError) as error:
            refusals.append(f"{address}: {getattr(error, 'strerror', None) or error}")
    raise PipelineError(f"cannot reach {server} ({'; '.join(refusals)})")


def _with_tries(master: str) -> str:
    """Return the master; a local one will retry failed tasks, as a cluster does."""
    cores = re.fullmatch(r"local(?:\[(\*|\d+)\])?", master)
    return f"local[{cores[1] or 1},{TRIES}]" if cores else master


@contextmanager
def _replaced(
    settings: Mapping[str, str | None],
    get: Callable[[str], str | None],
    put: Callable[[str, str], None],
    remove: Callable[[str], object],
) -> Iterator[None]:
    """Replace settings until the block ends; None removes one."""

    def change(values: Mapping[str, str | None]) -> None:
        for name, value in values.items():
            if value is not None:
                put(name, value)
            elif get(name) is not None:
                remove(name)

    before = {name: get(name) for name in settings}
    change(settings)
    try:
        yield
    finally:
        change(before)
