"""A disk that is full: one line, and no half result."""

import os
import resource
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from compare.traffic.logs.ingest import ingest_requests
from compare.traffic.logs.options import LogOptions
from compare.traffic.tapes.trace import write_trace
from compare.traffic.workloads.catalogue import make
from compare.trial.pipeline.generate import generate
from compare.trial.pipeline.replay import replay_trace
from compare.trial.pipeline.summarise import summarise
from compare.trial.pipeline.verify import verify
from tests.compare.conftest import on_both
from tests.words import one_line
from timers.errors import TimerError


def descendants(pid):
    """The processes below one."""
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # it has ended meanwhile
            for child in map(int, file.read_text().split()):
                yield child
                yield from descendants(child)


@contextmanager
def full(where, size=1 << 14):
    """No file gets more bytes from this process or, with Spark, from its Java, which writes."""
    if not hasattr(resource, "prlimit"):
        pytest.skip("limits of other processes can be set on Linux alone")
    before = {}
    for pid in [os.getpid(), *descendants(os.getpid())]:
        with suppress(OSError):  # it has ended meanwhile
            is_java = Path(f"/proc/{pid}/comm").read_text().strip() == "java"
            if is_java == bool(where):
                before[pid] = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    assert before
    for pid, (_, hard) in before.items():
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        for pid, limits in before.items():
            with suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)


def fails(where, call, *arguments, size=1 << 14, **keywords):
    # The path is not that of a temporary directory.
    says = r"^cannot write (to )?[^:]*/[^.:/][^:/]*: .*File too large"
    if where:  # a shuffle may be the first that finds no room
        says = "File too large"
    with full(where, size), one_line(TimerError, says):
        call(*arguments, **keywords)


@on_both
def test_generate_leaves_nothing(where, tmp_path):
    fails(
        where, generate, "uniform", tmp_path / "new" / "trace", operations=90_000, shards=2, **where
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
def test_ingest_leaves_nothing(spark, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("ts,rtt\n" + "".join(f"{k * 7919 % 20_011}.{k:06},0.1\n" for k in range(20_000)))
    where, keywords = {"session": spark}, {"duration": "rtt", "timeout": "5s"}
    options = LogOptions("ts", unit="us")
    fails(where, ingest_requests, log, tmp_path / "trace", options, **keywords, **where)
    assert list(tmp_path.iterdir()) == [log]


@on_both
def test_a_replay_leaves_nothing(where, tmp_path):
    tapes = [make("uniform", operations=size, seed=size).tape for size in (50, 20_000)]
    trace = write_trace(tmp_path / "trace", tapes, unit="ms", source={"kind": "test"})
    out, timers = tmp_path / "out", ["delay-queue"]
    replay_trace(trace, timers, tmp_path / "first")  # compiles: later, the cache cannot be written
    fails(where, replay_trace, trace, timers, out, **where)
    assert not out.exists()
    replay_trace(trace, timers, out, **where)
    assert verify(out).passed


def test_a_summary_is_written_whole_or_not_at_all(tmp_path):
    trace = write_trace(
        tmp_path / "trace", [make("uniform", operations=50).tape], unit="ms", source={}
    )
    results = replay_trace(trace, ["delay-queue"], tmp_path / "out")
    fails({}, summarise, results.path, tmp_path / "new" / "summary", size=1 << 9)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "trace"]
