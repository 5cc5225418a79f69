"""A realistic log of each kind, by the names that docs/logs.md uses, and ingestions of logs."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compare.traffic.logs.ingest import ingest_requests, ingest_touches
from compare.traffic.logs.options import LogOptions

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


@pytest.fixture
def requests(tmp_path):
    """Ingest a log of requests with the usual columns."""

    def ingest(log, out="trace", duration="rtt", timeout="5s", **settings):
        names = ("duration_unit", "time_is", "end", "id", "event", "starts", "ends")
        extra = {name: settings.pop(name) for name in names if name in settings}
        options = LogOptions(**{"time": "ts", "unit": "us"} | settings)
        return ingest_requests(
            log, tmp_path / out, options, duration=duration, timeout=timeout, **extra
        )

    return ingest


@pytest.fixture
def csv_log(tmp_path):
    def write(text):
        (tmp_path / "log.csv").write_text(text)
        return tmp_path / "log.csv"

    return write


@pytest.fixture
def touches(tmp_path):
    def ingest(log, out="trace", key="client", idle="5s", **settings):
        options = LogOptions(**{"time": "ts", "unit": "us"} | settings)
        return ingest_touches(log, tmp_path / out, options, key=key, idle=idle)

    return ingest


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("formats") / "log"
