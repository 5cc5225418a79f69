"""`wheelwork record --jvm`: what an agent records of timers of each kind, however the JVM ends."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from compare.traffic.recording import RecordingError, finish, recorder
from compare.traffic.recording.agent import JAR, SOURCES, agent, jvm_option
from compare.traffic.tapes.tape import OP_COUNTS
from compare.traffic.tapes.trace import TraceError, open_trace
from tests.compare.trial.peers.test_catalogue import ready
from tests.words import one_line

HERE = Path(__file__).parent
HELLO = 'class Hello { public static void main(String[] a) { System.out.println("hello"); } }'


@pytest.fixture(scope="module")
def built():
    """The agent."""
    try:
        return agent()
    except RecordingError as error:
        if "needs" not in str(error) and "failed" not in str(error):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def classes(tmp_path_factory, built):
    """The class path of the program, with the libraries of two peers."""
    libraries = [f"{ready(name).folder}/lib/*" for name in ("java-netty", "java-kafka")]
    folder = tmp_path_factory.mktemp("classes")
    path = os.pathsep.join([str(folder), *libraries])
    subprocess.run(["javac", "-cp", path, "-d", folder, HERE / "Timers.java"], check=True)
    return path


@pytest.fixture
def waiting(classes, tmp_path):
    """The program, when it has set its timers; ends it."""
    option = jvm_option(tmp_path / "a.trace")
    program = subprocess.Popen(
        ["java", "-Xshare:auto", option, "-cp", classes, "Timers", "an argument", '"'],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with program:
        line = program.stdout.readline()
        try:
            yield program
        finally:
            program.kill()
            said = program.stderr.read()
            assert line == "ready\n", said


def counts(trace):
    """The kind of each shard's timer, and its numbers of starts, cancels and re-arms."""
    counted = zip(trace.source["timers"], trace.shards, strict=True)
    return [
        (timer["class"].rpartition(".")[2], *(getattr(shard, name) for name in OP_COUNTS))
        for timer, shard in counted
    ]


@pytest.mark.peers
def test_each_timer_of_a_jvm_that_is_killed_is_recorded_completely(waiting, tmp_path):
    path = tmp_path / "a.trace"
    with pytest.raises(TraceError, match="is still being recorded"):
        finish(path)
    waiting.kill()
    waiting.wait()
    finish(path)
    trace = open_trace(path)
    assert counts(trace) == [
        ("HashedWheelTimer", 101, 40, 0, 0),
        ("HashedWheelTimer", 4, 0, 0, 0),
        ("ScheduledThreadPoolExecutor", 63, 25, 0, 0),
        ("SystemTimer", 51, 20, 0, 0),
        ("SystemTimer", 6, 0, 0, 0),
        ("HashedWheelTimer", 80_000, 80_000, 0, 0),
    ]
    assert {re.split("[:$]", timer["set_by"])[0] for timer in trace.source["timers"]} == {
        *("Timers.netty", "Timers.executor", "Timers.kafka", "Timers.lambda")
    }
    assert trace.source["command"][-3:] == ["Timers", "an argument", '"']
    assert trace.source["java"]
    assert trace.source["began"].endswith("Z")


@pytest.mark.peers
def test_deadlines_are_those_that_the_program_asked_for(waiting, tmp_path):
    waiting.kill()
    waiting.wait()
    finish(tmp_path / "a.trace")
    trace = open_trace(tmp_path / "a.trace")
    for shard, seconds, rest in (
        (0, 7_000, {0.02: 1}),
        (1, 8_000, {0.02: 1}),
        (2, 9_000, {0.01: 3}),
        (3, 10_000, {0.03: 1}),
        (4, 10_000, {0.7: 1}),
    ):
        tape = trace.load(shard)
        delays = (tape.deadline - tape.time)[tape.op == 0] / 1e6
        ((short, number),) = rest.items()
        assert np.allclose(delays[delays > 100], seconds, rtol=0, atol=0.05)
        assert len(delays[delays < 100]) == number
        assert (delays[delays < 100] <= short + 1e-6).all()


def run(option, tmp_path):
    """Standard error of a program with this option, which runs undisturbed."""
    (tmp_path / "Hello.java").write_text(HELLO)
    # Without an archive of classes, about which a JVM warns if any agent is loaded.
    program = ["java", "-Xshare:off", option, tmp_path / "Hello.java"]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert done.stdout == "hello\n"
    return done.stderr


@pytest.mark.peers
@pytest.mark.parametrize(
    ("directory", "says"),
    [
        ("full", "wheelwork: timers are not recorded: {} exists and is not empty\n"),
        ("full/file", "wheelwork: timers are not recorded: "),
        ("", "wheelwork: timers are not recorded: name a directory: -javaagent:JAR=DIRECTORY\n"),
    ],
)
def test_a_program_runs_also_if_it_cannot_be_recorded(built, tmp_path, directory, says):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    place = str(tmp_path / directory) if directory else ""
    said = run(f"-javaagent:{built}" + (f"={place}" if place else ""), tmp_path)
    assert said.startswith(says.format(place))
    assert said.count("\n") == 1


@pytest.mark.peers
def test_a_full_disk_loses_events_and_nothing_else(classes, built, tmp_path):
    program = (
        f"ulimit -f 100; exec java -javaagent:{built}={tmp_path}/a.trace -cp '{classes}' Timers"
    )
    done = subprocess.run(
        ["sh", "-c", program], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    assert done.stdout == "ready\n"
    assert "wheelwork: events were lost: File too large" in done.stderr
    finish(tmp_path / "a.trace")
    assert open_trace(tmp_path / "a.trace").totals["rows"] == 0


@pytest.mark.peers
def test_the_command_prints_the_option(said, built, here):
    code, out, err = said("record", "--jvm", "--out", "a.trace")
    assert (code, out) == (0, f"-javaagent:{built}={here / 'a.trace'}\n")
    assert err.startswith("wheelwork: start the JVM with this option")
    assert not Path("a.trace").exists()
    assert run(out.strip(), here) == f"wheelwork: recording timers in {here / 'a.trace'}\n"
    finish("a.trace")
    assert open_trace("a.trace").totals["rows"] == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--out", "a", "--", "java"], "--jvm runs no program: start the JVM with the option it"),
        (["--out", "a", "--force"], "--jvm replaces no trace: leave out --force"),
        (["--out", "data/a"], "data is not a directory"),
        (["--out", "full"], "full exists and is not a trace"),
    ],
)
def test_bad_input_is_one_line(fails, here, arguments, says):
    Path("data").touch()
    Path("full").mkdir()
    assert says in fails("record", "--jvm", *arguments)


@pytest.fixture
def maven(tmp_path, monkeypatch):
    """A program in the place of Maven, and an empty cache."""
    monkeypatch.setenv("WHEELWORK_PEERS", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")

    def make(script):
        for name, text in (("mvn", script), ("javac", "")):
            (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
            (tmp_path / name).chmod(0o755)

    return make


def test_the_agent_is_built_once(maven, tmp_path):
    maven(f"test -f pom.xml && mkdir target && echo $$ > target/{JAR}")
    first = agent().read_text()
    assert agent().read_text() == first
    assert [path.name for path in agent().parent.iterdir()] == [JAR]


def test_a_failed_build_names_the_log_and_leaves_nothing(maven, tmp_path):
    maven("echo no network; exit 3")
    with one_line(RecordingError, "mvn failed with code 3; the log is .*jvm-agent.log"):
        agent()
    log = tmp_path / "cache" / "jvm-agent.log"
    assert log.read_text() == "no network\n"
    assert list((tmp_path / "cache").iterdir()) == [log]


def test_missing_tools_are_named(maven, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with one_line(RecordingError, r"needs mvn and javac \(apt-get install maven and apt-get"):
        agent()


def test_the_recorder_of_jvms_writes_the_format_that_is_read():
    source = (SOURCES / "src/main/java/wheelwork/Recorder.java").read_text()
    for each in (
        f'"{{\\"format\\": \\"{recorder.FORMAT}\\", \\"version\\": {recorder.VERSION},',
        f"KINDS = {recorder.KINDS};",
        "STARTED = 1, CANCELLED = 2, MOVED = 3;",
        f"EVENT = {recorder.FIELDS} * Double.BYTES;",
        f'"{recorder.TIMERS}"',
    ):
        assert each in source
