"""A disk that is full: one line, and no half result."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compare.pipeline.generate import generate
from compare.pipeline.ingest import Options, ingest_requests
from compare.pipeline.replay import replay_trace
from compare.pipeline.results import ResultsError, open_results
from compare.pipeline.summarise import summarise
from compare.spark.session import PipelineError
from compare.tapes.trace import write_trace
from compare.workloads.catalogue import make
from timers.errors import TimerError

pytestmark = pytest.mark.spark

FULL = "cannot write .*No space left on device"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 32 KiB; only the superuser may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system: {mounted.stderr.decode().strip()}")
    try:
        yield disk
    finally:
        subprocess.run(
            ["umount", "--lazy", disk], check=True
        )  # a worker may still hold a file that failed


def fails(call: Any, kind: type[TimerError]) -> None:
    with pytest.raises(kind, match=FULL) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_generate_leaves_nothing(spark: Any, small_disk: Path) -> None:
    fails(
        lambda: generate(
            "uniform", small_disk / "trace", operations=50_000, shards=2, session=spark
        ),
        PipelineError,
    )
    assert list(small_disk.iterdir()) == []


def test_ingest_leaves_nothing(spark: Any, small_disk: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("ts,rtt\n" + "".join(f"{k * 7919 % 20_011}.{k:06},0.1\n" for k in range(20_000)))
    options = Options("ts", unit="us")
    fails(
        lambda: ingest_requests(
            log, small_disk / "trace", options, duration="rtt", timeout="5s", session=spark
        ),
        PipelineError,
    )
    assert list(small_disk.iterdir()) == []


def test_a_replay_never_looks_complete(spark: Any, small_disk: Path, tmp_path: Path) -> None:
    tapes = [make("uniform", operations=size, seed=size).tape for size in (50, 20_000)]
    trace = write_trace(tmp_path / "trace", tapes, unit="ms", source={"kind": "test"})
    out = small_disk / "results"
    fails(lambda: replay_trace(trace.path, ["delay-queue"], out, session=spark), PipelineError)
    if out.exists():  # the small shard may have been finished
        with pytest.raises(ResultsError, match="is not complete: 1 of 2 shard replays are missing"):
            open_results(out)
    again = replay_trace(trace.path, ["delay-queue"], tmp_path / "elsewhere", session=spark)
    with pytest.raises(OSError), (small_disk / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))
    fails(lambda: summarise(again.path, small_disk / "summary.parquet"), ResultsError)
    assert [path.name for path in small_disk.iterdir() if path.name != "results"] == ["filler"]
