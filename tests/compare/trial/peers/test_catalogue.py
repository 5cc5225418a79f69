"""The peers of the catalogue: that each is right, and what is said of one that cannot be built."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compare.base import files
from compare.cli.main import main
from compare.traffic.tapes.flat import write_flat
from compare.traffic.tapes.tape import CANCEL, START, id_space_of
from compare.traffic.workloads.catalogue import make
from compare.trial.peers import catalogue
from compare.trial.peers.catalogue import (
    CPP,
    HERE,
    LANGUAGES,
    NAMES,
    PYTHON,
    Entry,
    FetchError,
    entries,
    entry_named,
)
from compare.trial.peers.check import check_peer
from compare.trial.peers.protocol import Description, PeerError
from compare.trial.peers.run import Peer
from compare.trial.peers.tapes import racing
from compare.trial.peers.threads import judge
from tests.compare.small_tapes import tape_of
from tests.compare.trial.peers import wrong
from tests.compare.trial.peers.test_run import ended
from tests.words import one_line

ROOT = Path(__file__).parents[4]
LONGEST = 150  # lines of a peer's source file; one that is for threads has two ways to be driven
LONGEST_FOR_THREADS = 200
ORDINARY = "python-heapq"  # needs nothing but Python
EXAMPLES = 50
THREADED = ("cpp-wheel", "go-runtime", "java-executor", "java-kafka", "java-netty", "java-timer")
KNOWN_FAULTS = {"javascript-timer-wheel": "missing", "rust-nexus-timer": "early"}
"""Libraries whose released version is wrong, with the rule that catches them."""


def pytest_generate_tests(metafunc):
    """All but one of the peers are left to `nox -s peers`."""
    if "name" in metafunc.fixturenames:
        names = [name if name == ORDINARY else mark_peers(name) for name in NAMES]
        metafunc.parametrize("name", names)


def mark_peers(name):
    return pytest.param(name, marks=pytest.mark.peers)


@pytest.fixture
def entry(name):
    """A peer that is ready."""
    return ready(name)


def ready(name):
    """A peer, which is built if it is not ready."""
    found = entry_named(name)
    if found.missing and not found.is_ready:
        pytest.skip(found.missing)
    try:
        found.build()
    except FetchError as error:
        pytest.skip(str(error))
    return found


@pytest.fixture
def checked(entry):
    """A peer whose expiries can be checked."""
    if entry.description().real_time:
        pytest.skip("runs in real time")
    return entry


def test_a_peer_has_no_fault(checked):
    entry = checked
    verdict = check_peer(entry.peer(), examples=EXAMPLES, shrink_seconds=10.0)
    fault = verdict.failure and verdict.failure.fault.kind
    assert fault == KNOWN_FAULTS.get(entry.name), verdict.failure
    described = verdict.description
    assert (described.name, described.language) == (entry.name, entry.language.name)
    assert entry.description() == described


@pytest.mark.peers
@pytest.mark.parametrize("real", ["java-executor", "java-timer"])
def test_a_peer_in_real_time_is_timed_on_a_tape_that_cancels_all(real):
    entry = ready(real)
    rows = [(0, START, 0, 60_000), (0, START, 1, 60_000), (1, CANCEL, 0, 0), (1, CANCEL, 1, 0)]
    times = entry.peer().time(tape_of(*rows), 2, phases=(0, 2), rounds=2, warm_up=1)
    assert [line.operations for line in times[:3]] == [2, 2, 0]
    with one_line(PeerError, rf"^{entry.name}: time .*real time"):
        entry.peer().time(tape_of(*rows[:3]), 2)


@pytest.mark.peers
@pytest.mark.parametrize("threaded", THREADED)
def test_a_peer_for_threads_loses_and_doubles_nothing(threaded):
    entry = ready(threaded)
    assert entry.description().threads
    tape, first = racing(1_000, 20_000)
    for count in (1, 3):
        _, calls = entry.peer().threads(tape, id_space_of(tape), count, phases=first, record=True)
        found = judge(tape, calls, entry.description().threads)
        assert found.fault is None and found.late_ns.size > 0


@pytest.mark.peers
@pytest.mark.parametrize(("peer", "late"), [("java-kafka", {-9, 0}), ("java-netty", {1, 10})])
def test_a_peer_takes_a_tick_and_counts_its_work(peer, late):
    entry = ready(peer)
    peer = entry.peer(tick=10, wheel_size=8)
    assert peer.description.parameters == {"tick": 10, "wheel_size": 8}
    made = tape_of((0, START, 0, 1500), (0, START, 1, 1509))
    rows = peer.check(made, 2)
    assert {*(rows.clock - made.deadline[rows.operation]).tolist()} == late
    (*_, drain) = peer.time(made, 2, rounds=1, warm_up=1)
    steps = {"java-kafka": 3, "java-netty": 1510}  # 1500 is 2 * 640 + 2 * 80 + 6 * 10
    assert drain.counts["wake_ups"] == steps[entry.name]


@pytest.mark.peers
@pytest.mark.parametrize("wheel", ["hashed-wheel", "hierarchical-wheel", "cascading-wheel", "ring"])
def test_a_wheel_of_the_site_is_right_with_other_parameters(wheel):
    peer = ready(f"javascript-{wheel}").peer(tick=10, wheel_size=8)
    verdict = check_peer(peer, examples=EXAMPLES, shrink_seconds=1.0)
    assert verdict.failure is None
    assert verdict.description.parameters["tick"] == 10


def test_a_peer_is_timed(checked):
    made, peer = make("keepalive", timers=300, seed=1), checked.peer()
    rows = peer.check(made.tape, made.id_space)
    times = peer.time(made.tape, made.id_space, phases=(0, 100), rounds=2, warm_up=1)
    assert sum(line.expired for line in times[:3]) == rows.operation.size
    assert [line.operations for line in times[:3]] == [100, made.tape.time.size - 100, 0]
    assert all(line.wall_ns > 0 and line.process_ns >= 0 for line in times)
    assert not any(line.histogram for line in times)
    *phases, drain = peer.time(
        made.tape, made.id_space, phases=(0, 100), rounds=1, warm_up=1, histogram=True
    )
    assert [sum(line.histogram) for line in phases] == [line.operations for line in phases]
    assert drain.expired == times[2].expired and sum(drain.histogram) > 0
    for line in phases:  # of a busy machine; a reading of the clock is all that is not in both
        assert 0 < line.quantile(0.0) <= line.quantile(1.0) <= 1.2 * line.wall_ns


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda data: data[:-8], "cut short"),
        (lambda data: data[:20], "not a tape"),
        (lambda data: b"x" + data[1:], "not a tape"),
        (lambda data: data[:8] + b"\2" + data[9:], "version"),
    ],
    ids=["short", "header", "magic", "version"],
)
def test_a_bad_tape_is_one_line(entry, change, says, tmp_path):
    path = tmp_path / "some.tape"
    write_flat(path, tape_of((0, START, 0, 5)), id_space=1, unit="ms")
    path.write_bytes(change(path.read_bytes()))
    with one_line(PeerError, rf"^{entry.name}: check exits with code 2: .*some\.tape is .*{says}"):
        entry.peer()._run("check", str(path), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


# ---- what can be said without a toolchain


def test_names_say_the_language_and_are_in_the_docs():
    page = (ROOT / "docs" / "figures" / "peers.md").read_text()
    for found in entries():
        assert found.name.startswith(found.language.name.lower().replace("c++", "cpp") + "-")
        assert f"`{found.name}`" in page
    assert len(set(NAMES)) == len(NAMES)


def test_every_folder_is_a_peer():
    folders = {path.name for path in HERE.iterdir() if path.is_dir()} - {"__pycache__", "templates"}
    assert folders == set(NAMES)


@pytest.mark.parametrize("name_", NAMES)
def test_a_peer_is_one_short_source_file_and_its_dependencies(name_):
    found = entry_named(name_)
    files = {path.name for path in (HERE / name_).iterdir() if path.is_file()}
    assert files <= {found.language.source, found.language.dependencies}
    source = (HERE / name_ / found.language.source).read_text()
    most = LONGEST_FOR_THREADS if '"threads"' in source else LONGEST
    assert len(source.splitlines()) <= most


def test_an_unknown_peer_is_one_line():
    with one_line(PeerError, "no peer is called 'java-nety'; did you mean 'java-netty'"):
        entry_named("java-nety")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv(files.CACHE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def language(**changes):
    """A language that is built by Python, with the files of a peer in C++."""
    base = {"tools": {}, "build": [], "run": (sys.executable, "{folder}/main.py")}
    return dataclasses.replace(CPP, **base | changes)


def program(text):
    return [sys.executable, "-c", text]


DESCRIBES = json.dumps({"protocol": 1, "name": "x", "language": "y", "scheme": "z"})


def writes(text):
    """A program that writes a peer, which prints a text."""
    return program(f"open('main.py', 'w').write({f'print({text!r})'!r})")


def test_a_build_is_kept(cache):
    built = Entry("cpp-heap", language(build=[writes(DESCRIBES)]))
    assert built.status == "not built: wheelwork peers build cpp-heap"
    with one_line(PeerError, "^cpp-heap: not built"):
        built.peer()
    assert built.build() == built.folder
    assert built.status == "ready"
    assert built.description().name == "x"
    (built.folder / "main.py").unlink()
    assert built.build() == built.folder  # nothing is done again


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"build": [program("print('why'); exit(3)")]}, PeerError, "python.* failed with code 3"),
        (
            {
                "dependencies": "main.cpp",
                "fetch": [program("print('why'); exit(4)")],
                "build": [program("1")],
            },
            FetchError,
            "failed with code 4",
        ),
    ],
)
def test_a_failed_build_names_its_log_and_leaves_nothing(cache, changes, error, says):
    failing = Entry("cpp-heap", language(**changes))
    log = cache / "cpp-heap.log"
    with one_line(error, f"^cpp-heap: .*{says}; the log is {log}$"):
        failing.build()
    assert log.read_text() == "why\n"
    assert not failing.is_ready
    assert list(cache.iterdir()) == [log]


def test_a_build_that_hangs_is_ended(cache, monkeypatch):
    monkeypatch.setattr(catalogue, "BUILD_SECONDS", 0.5)
    with one_line(PeerError, "did not end in 0.5 s; the log is"):
        Entry("cpp-heap", language(build=[program("import time; time.sleep(100)")])).build()


def test_what_a_build_has_started_ends_when_the_command_is_terminated(cache, tmp_path, monkeypatch):
    marker = tmp_path / "child"
    hangs = ["sh", "-c", f"sleep 1000 & echo $! > {marker}; kill -TERM {os.getpid()}; wait"]
    monkeypatch.setattr(catalogue, "entries", lambda: [Entry("cpp-heap", language(build=[hangs]))])
    assert main(["peers", "build"]) == 143
    ended(int(marker.read_text()))
    assert [path.name for path in cache.iterdir()] == ["cpp-heap.log"]


def test_a_peer_that_cannot_describe_itself_is_not_kept(cache):
    bad = Entry("cpp-heap", language(build=[writes("{}")]))
    with one_line(PeerError, "^cpp-heap: describe: protocol is None"):
        bad.build()
    assert not bad.is_ready


def test_the_folder_depends_on_the_files_and_the_commands(cache, monkeypatch):
    plain = Entry("cpp-heap", CPP).folder
    assert plain != Entry("cpp-heap", language(build=[["other"]])).folder
    assert plain != Entry("cpp-wheel", CPP).folder
    monkeypatch.setattr(catalogue, "_machine", lambda: "another processor")
    assert plain != Entry("cpp-heap", CPP).folder


def test_what_is_missing_is_said_with_how_to_install_it(cache, monkeypatch):
    monkeypatch.setattr(catalogue.shutil, "which", lambda tool: None)
    kafka, heap = entry_named("java-kafka"), entry_named("java-delay-queue")
    assert kafka.missing == (
        "needs java and javac and mvn (apt-get install default-jdk and apt-get install maven)"
    )
    assert heap.missing == "needs java and javac (apt-get install default-jdk)"
    assert kafka.status == kafka.missing
    with one_line(PeerError, "^java-kafka: needs java"):
        kafka.build()
    assert entry_named(ORDINARY).status == "ready"


def test_the_cache_is_in_the_users_cache_by_default(monkeypatch, tmp_path):
    monkeypatch.delenv(files.CACHE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert files.cache_folder() == tmp_path / "wheelwork" / "peers"


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv(files.CACHE, str(tmp_path / "file"))
    with one_line(PeerError, "^cpp-heap: cannot build in .*file: "):
        Entry("cpp-heap", language(build=[program("1")])).build()


# ---- the commands


def test_the_list_says_what_is_ready(cache, monkeypatch, capsys):
    monkeypatch.setattr(catalogue.shutil, "which", lambda tool: None)
    assert main(["peers"]) == 0
    out = capsys.readouterr().out
    assert "python-heapq                    ready\n    Python, CPython " in out
    assert "cpp-wheel                       needs g++ (apt-get install g++)\n    C++\n" in out
    assert max(map(len, out.splitlines())) <= 80
    assert main(["peers", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(rows) == list(NAMES)
    assert rows["python-heapq"]["rounding"] == "exact"
    assert rows["cpp-wheel"]["library"] is None
    assert main(["peers", "--markdown"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert [line.split("`")[1] for line in table[2:]] == list(NAMES)
    assert "| `cpp-wheel` | - | - | - | needs g++ (apt-get install g++) |" in table
    heapq = next(line for line in table if line.startswith("| `python-heapq` | "))
    assert heapq.endswith(" | exact | cancel: leaves a tombstone until its deadline |")


def test_a_table_says_who_passes(cache, monkeypatch, capsys):
    wrong_ = Entry("cpp-heap", language(build=[]))
    monkeypatch.setattr(Entry, "is_ready", property(lambda self: True))
    monkeypatch.setattr(Entry, "description", lambda self: Description("x", "y", "z", "lib", "1.0"))
    command = (sys.executable, wrong.__file__)
    faults = {"cpp-heap": "late", "python-heapq": "right"}

    def peer(entry):
        if entry.name in faults:
            return Peer((*command, faults[entry.name]))
        raise PeerError(f"{entry.name}: not built")

    monkeypatch.setattr(Entry, "peer", peer)
    chosen = [wrong_, entry_named(ORDINARY), entry_named("cpp-wheel")]
    monkeypatch.setattr(catalogue, "entries", lambda: chosen)
    assert main(["peers", "check", "--quick"]) == 1
    head, _, first, second, third = capsys.readouterr().out.splitlines()
    assert head == "| peer | library | result | the smallest tape that fails |"
    assert first.startswith("| cpp-heap | lib 1.0 | the timer of operation 0 came out at ")
    assert first.endswith(" | at 0 start 0 for 499 |")
    assert second.startswith("| python-heapq | lib 1.0 | no fault")
    assert third.startswith("| cpp-wheel |  | not checked: cpp-wheel: not built")


def test_building_goes_on_after_a_failure(cache, monkeypatch, capsys):
    failing = Entry("cpp-heap", language(build=[program("exit(1)")]))
    missing = Entry("cpp-wheel", language(tools={"nothing": "ask"}, build=[program("1")]))
    found = [failing, missing, entry_named(ORDINARY)]
    monkeypatch.setattr(catalogue, "entries", lambda: found)
    assert main(["peers", "build"]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "cpp-wheel: skipped; it needs nothing (ask)"
    assert out.splitlines()[1].startswith("python-heapq: ")
    assert err.startswith("cpp-heap: ")
    assert main(["peers", "build", "cpp-wheel"]) == 1
    assert "cpp-wheel: needs nothing (ask)" in capsys.readouterr().err
    assert main(["peers", "build", "nothing"]) == 2


def test_the_sources_of_the_peers_are_in_the_wheel(tmp_path):
    """Hatchling includes all files of a package that Git does not ignore."""
    ignored = subprocess.run(
        ["git", "check-ignore", *(str(path) for found in entries() for path in found.sources)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ignored.stdout == ""


def test_every_language_has_a_peer():
    assert {found.language.name for found in entries()} == {known.name for known in LANGUAGES}
    assert PYTHON.run[0] == sys.executable
