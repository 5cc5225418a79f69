"""The same commands through a Spark Connect server, a process of its own on loopback."""

import subprocess
import sys
from pathlib import Path

import pytest

from compare.traffic.tapes.trace import open_trace
from compare.trial.pipeline.generate import generate
from tests.compare.daemons import ROOT, TIME_LIMIT, Daemons
from timers.kernels.jit import COMPILING

pytest.importorskip("grpc", reason="Spark Connect needs grpcio: pip install 'pyspark[connect]'")
pytestmark = [pytest.mark.spark, pytest.mark.cluster]


def test_every_stage_works_through_spark_connect(daemons: Daemons, tmp_path: Path) -> None:
    address = daemons.connect_server()
    log = tmp_path / "log.csv"
    log.write_text("ts,rtt\n1.5,0.2\n1.0,9.0\n2.0,\nx,1\n")

    def wheelwork(command: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "compare", *command.split()],
            cwd=tmp_path,
            timeout=TIME_LIMIT,
            check=False,
            capture_output=True,
            text=True,
            env=daemons.environment | {"SPARK_REMOTE": address, "PYTHONPATH": str(ROOT)},
        )
        complaints = done.stderr.replace(f"{COMPILING}\n", "")
        assert (done.returncode, complaints) == (0, ""), done.stderr
        return done.stdout

    wheelwork("generate keepalive --operations 20_000 --shards 3 --out trace")
    alone = generate("keepalive", tmp_path / "alone", operations=20_000, shards=3)
    for shard in open_trace(tmp_path / "trace").shards:
        assert (tmp_path / "trace" / shard.file).read_bytes() == (
            alone.path / shard.file
        ).read_bytes()
    said = wheelwork("replay trace --timers delay-queue,hashed-wheel/tick=5 --out replayed")
    assert "2 timers x 3 shards, 20,000 operations" in said
    for method in ("compiled", "sql"):
        last = wheelwork(f"verify replayed --method {method}").splitlines()[-1]
        assert last.split()[-1] == "0", last
    assert "20,000 operations in 3 shards" in wheelwork("summarise replayed")
    columns = "--time ts --duration rtt --timeout 5s"
    said = wheelwork(f"ingest requests {log} {columns} --out ingested")
    assert open_trace(tmp_path / "ingested").totals["starts"] == 3, said
    said = wheelwork(
        "pipeline keepalive --operations 2_000 --shards 2 --timers delay-queue --out piped"
    )
    assert said.startswith("runs on     Spark ")
    assert said.splitlines()[-1] == str(tmp_path / "piped" / "page" / "index.html")
