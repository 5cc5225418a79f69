"""A realistic log of each kind, by the names that docs/logs.md uses."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SAMPLES = Path(__file__).with_name("samples")


@pytest.fixture
def samples(tmp_path, monkeypatch):
    shutil.copytree(SAMPLES, tmp_path, dirs_exist_ok=True)
    (tmp_path / "spans").mkdir()
    starts = pa.array([1722470400125, 1722470400500, 1722470401000], pa.timestamp("ms"))
    spans = [{"seconds": 0.25}, {"seconds": 7.5}, None]
    span = pa.array(spans, pa.struct([("seconds", pa.float64())]))
    for name, rows in {"a": slice(0, 2), "b": slice(2, 3)}.items():
        table = pa.table({"start": starts[rows], "span": span[rows]})
        pq.write_table(table, tmp_path / "spans" / f"{name}.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path
