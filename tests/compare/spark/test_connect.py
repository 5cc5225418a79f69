"""The same commands through a Spark Connect server, a process of its own on loopback."""

import subprocess
import sys
from pathlib import Path

import pytest

from compare.traffic.tapes.trace import open_trace
from compare.trial.pipeline.results import open_results
from compare.trial.pipeline.summarise import summary_of
from tests.compare.daemons import ROOT, TIME_LIMIT, Daemons
from tests.compare.trial.pipeline.contents import FROZEN, TIMERS, WORKLOADS, digests_of
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

    name = "keepalive"
    amount = WORKLOADS[name]
    options = " ".join(f"--{key} {value}" for key, value in amount.items())
    wheelwork(f"generate {name} {options} --out trace")
    said = wheelwork(f"replay trace --timers {','.join(TIMERS)} --out replayed")
    assert "3 timers x 2 shards, 100,000 operations" in said
    assert wheelwork("verify replayed").splitlines()[-1].split()[-1] == "0"
    assert "100,000 operations in 2 shards" in wheelwork("summarise replayed")
    results = open_results(tmp_path / "replayed")
    run = summary_of(results.path)
    # The check is not part of this replay, and so the table lacks its row.
    assert digests_of(results.trace, results, run)[:4] == FROZEN[name][:4]
    # At a place that only Spark reads.
    uri = tmp_path.as_uri()
    wheelwork(f"generate uniform --operations 300 --shards 2 --out {uri}/far")
    wheelwork(f"replay {uri}/far --timers delay-queue --out {uri}/far.results")
    assert wheelwork(f"verify {uri}/far.results").splitlines()[-1].split()[-1] == "0"
    columns = "--time ts --duration rtt --timeout 5s"
    said = wheelwork(f"ingest requests {log} {columns} --out ingested")
    assert open_trace(tmp_path / "ingested").totals["starts"] == 3, said
    said = wheelwork(
        "pipeline keepalive --operations 2_000 --shards 2 --timers delay-queue --out piped"
    )
    assert said.startswith("runs on     Spark ")
    assert said.splitlines()[-1] == str(tmp_path / "piped" / "page" / "index.html")
