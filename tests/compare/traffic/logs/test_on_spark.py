"""Spark and the threads of this process write the same trace, whatever is in a log."""

import gzip
import os
import random
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from compare.cli.main import main
from compare.spark.session import sql_settings
from compare.traffic.logs import blocks, rows, shards, sorting, spark_rows
from compare.traffic.logs.formats import base
from compare.traffic.logs.ingest import ingest_requests, ingest_touches
from compare.traffic.logs.opening import open_log
from compare.traffic.logs.options import IngestError, LogOptions
from tests.compare import made_logs as logs
from tests.compare.traffic.logs.documented import COMMANDS
from tests.compare.traffic.logs.hostile import ENDS, IDS, REQUESTS, TOUCHES, files, hostile
from tests.words import one_line
from timers import TimerError

pytestmark = pytest.mark.spark

CHOSEN = {"where": ("status >= 504", "client != a")}

CASES = {
    "requests": (REQUESTS, {}),
    "requests in shards": (REQUESTS, {"shards": 3}),
    "requests chosen": (REQUESTS | {"duration_unit": "ms"}, CHOSEN),
    "requests at their end": (REQUESTS | {"time_is": "end"}, {"shards": 3, "unit": "ms"}),
    "requests up to a limit": (REQUESTS, {"limit": 1000}),
    "lines that a pattern selects": (
        REQUESTS,
        {"pattern": "^(?P<ts>[^,]+),(?P<rtt>[^,]*),a,", "unit": "ns", "shards": 2},
    ),
    "strptime": (REQUESTS, {"time": "ts,status", "time_format": "%m%d %f", "year": 1980}),
    "start and end": (ENDS, {"shards": 2, "time_zone": "Europe/Berlin"}),
    "ids": (IDS, {"shards": 2}),
    "ids up to a limit": (IDS, {"limit": 1000, "where": ("client != a",)}),
    "touches": (TOUCHES, {}),
    "touches in shards": (TOUCHES, {"shards": 3}),
    "touches chosen": (TOUCHES, CHOSEN),
}
"""What the rows of a log mean, and how it is read."""


@pytest.fixture
def both(spark, tmp_path, monkeypatch):
    """Ingest a log in both ways, with tiny runs here and tiny blocks on Spark; return the trace."""

    def ingest(log, meant, block=10_000, whole=0, near=False, **settings):
        options = LogOptions(**{"time": "ts", "unit": "us", "force": True} | settings)
        ingest = ingest_touches if "key" in meant else ingest_requests
        monkeypatch.setattr(rows, "ROWS_OF_A_RUN", 50)
        monkeypatch.setattr(shards, "_GROUP", 300)
        here = ingest(log, tmp_path / "here", options, **meant)
        monkeypatch.setattr(blocks, "BLOCK", block)
        monkeypatch.setattr(sorting, "_PIECE", 100)
        monkeypatch.setattr(spark_rows, "WHOLE", whole)
        monkeypatch.setattr(spark_rows, "is_near", lambda name: near)
        tiny = {"spark.sql.files.maxPartitionBytes": str(block)}
        with sql_settings(spark, tiny):
            there = ingest(log, tmp_path / "there", options, **meant, session=spark)
        monkeypatch.undo()
        assert vars(here) | {"trace": 0} == vars(there) | {"trace": 0}
        assert files(here.trace.path) == files(there.trace.path)
        return here

    return ingest


@pytest.mark.parametrize("case", CASES)
def test_options_among_hostile_rows(both, tmp_path, case):
    meant, settings = CASES[case]
    log = tmp_path / "log.csv"
    log.write_bytes(hostile(random.Random(case), 2000))
    assert open_log(str(log)).divisible  # no quote is closed in another line
    done = both(log, meant, **settings)
    assert done.rows > done.unreadable > 50
    assert (done.unmatched > 0) == ("id" in meant)
    if case == "touches in shards":
        both(log, meant, whole=1 << 26, **settings)
    if case in ("requests in shards", "ids", "touches in shards"):
        both(log, meant, near=True, **settings)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("year", [2019, None])
def test_times_without_a_year(both, tmp_path, monkeypatch, pack, year):
    """A log of almost six years, in blocks and parts."""
    monkeypatch.setattr(base, "MOST_LINES", 20)
    moments = [datetime(2019, 3, 1, tzinfo=UTC) + timedelta(days=20 * k) for k in range(100)]
    moments[50], moments[51] = moments[51], moments[50]
    log = tmp_path / "log"
    lines = (f"{moment:%b %d %H:%M:%S} host {'x' * 40}\n" for moment in moments)
    log.write_bytes(pack("".join(lines).encode()))
    written = datetime(2020, 2, 1, tzinfo=UTC).timestamp() if year is None else 0
    os.utime(log, (written, written))
    meant = {"key": "host", "idle": "5s"}
    if year is None:
        with pytest.raises(IngestError, match="begins in 2019, it ends on 2024.*give --year"):
            both(log, meant, 1000, time="time", unit="s")
        return
    done = both(log, meant, 1000, time="time", unit="s", year=year)
    times = sorted(int(moment.timestamp()) for moment in moments)
    assert done.trace.load().time.tolist() == times


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_lines_that_are_too_long(both, tmp_path, pack):
    long = b"3," + b"x" * blocks.BLOCK + b"\n"
    log = tmp_path / "log.csv"
    log.write_bytes(pack(b"ts,client\n1,a\n" + long + b"4,a\n" + long + b"6,b"))
    done = both(log, TOUCHES, 1_000_000, longest_line=blocks.BLOCK)
    reason = f"it is longer than {blocks.BLOCK:,} bytes"
    assert done.examples == (f"line 3: {reason}", f"line 5: {reason}")
    assert (done.rows, done.unreadable) == (5, 2)
    assert logs.manifest(done.trace)["source"]["longest_line"] == blocks.BLOCK


def test_formats_with_line_ends_in_quotes_packed_or_not(both, tmp_path):
    """Several files with marks, out of order, one of them empty."""
    folder = tmp_path / "logs"
    folder.mkdir()
    packed = {"plain": bytes, **logs.PACKED}
    for number, pack in enumerate(packed.values()):
        rows = [
            f'{1000 - 100 * number + k / 5:.3f},"{k % 3},\r\n","k ""{k % 7}"' for k in range(500)
        ]
        rows[7::50] = ["x"] * 10
        rows[8::50] = [""] * 10
        text = "\r\n".join(['ts,"a b",client', *rows])
        (folder / str(number)).write_bytes(pack(b"\xef\xbb\xbf" + text.encode()))
    (folder / "9").touch()
    done = both(folder, TOUCHES, 3000, shards=2)
    assert done.unreadable == 4 * 10
    assert done.examples[0].startswith(f"{folder}/3, line 16: it does not have the 3 fields")
    table = pq.read_table(done.trace.rejected)
    assert table.column_names == ["file", "line", "kind", "problem", "time", "key"]
    files_in_order = list(dict.fromkeys(Path(name).name for name in table["file"].to_pylist()))
    assert files_in_order == ["3", "2", "1", "0"]
    lines = table.filter(pc.equal(table["kind"], "unreadable"))["line"].to_pylist()
    # A row has two lines, but for a bad or a blank one.
    assert lines == [16 + 98 * k for k in range(10)] * 4
    # Files may be given in any order.
    first = done.trace.shards
    names = [str(folder / str(number)) for number in range(4)]
    assert both(names, TOUCHES, 3000, shards=2).trace.shards == first


ELEMENTS = (
    '{"ts": %d.5, "rtt": 0.1, "client": {"ip": "a"}}',
    '{"client": {"ip": "]},{"}, "ts": "%d", "rtt": "2ms"}',
    '{"ts": %d, "rtt": -1e-1, "client.ip": "\\ud83d\\ude00"}',
    '[{"ts": %d}]',
    '{"ts": %d, "ts": 5, "rtt": null}',
    '"%d"',
    "{}",
)


def test_an_array_of_objects_and_other_things(both, tmp_path):
    rng = random.Random(5)
    some = [rng.choice(ELEMENTS) for _ in range(1000)]
    texts = [text % (1000 + k) if "%d" in text else text for k, text in enumerate(some)]
    separators = [rng.choice([",", ",\n  ", " ,\r\n"]) for _ in texts[1:]]
    log = tmp_path / "log.json"
    inner = "".join(map("".join, zip(texts, [*separators, ""], strict=True)))
    log.write_text(f'[{inner}, {{"ts": 2000, "rtt": ')  # the last one is cut off
    for meant in (REQUESTS, TOUCHES | {"key": "client.ip"}):
        done = both(log, meant, 300, shards=2)
        assert 1001 > done.unreadable > 300


ONE_OF_EACH_CLASS = ("export.csv", "events.json", "access.log", "iis.log", "own.log", "dns.log")


@pytest.mark.parametrize(
    "command", [line for line in COMMANDS if line.split()[3] in (*ONE_OF_EACH_CLASS, "spans/")]
)
def test_what_the_documentation_says_to_type(spark, samples, monkeypatch, capsys, command):
    """Of a sample of each kind, twice, with bad lines at its end."""
    arguments = shlex.split(command)[1:]
    path = samples / arguments[2]
    if path.is_file():
        data = path.read_bytes()
        path.write_bytes(data + b"\n\r\n" + data[:-20] + b"\xff\n" + data)
    written = []
    monkeypatch.setattr(blocks, "BLOCK", 150)
    for where in ([], ["--master", "local[2]"]):
        arguments[2] = str(path)  # Spark's workers run where the session began
        assert main([*arguments, *where, "--force"]) == 0, capsys.readouterr().err
        written.append(files(Path(arguments[-1])))
    assert written[0] == written[1]


def test_logs_without_rows(both, tmp_path):
    log = tmp_path / "log"
    log.write_text("ts,rtt,client\n")
    assert both(log, REQUESTS, 5, shards=2).rows == 0


def test_what_goes_wrong_on_spark_is_one_line(spark, tmp_path):
    log, options = tmp_path / "log.gz", LogOptions("ts")
    data = gzip.compress(b"ts,rtt\n" + b"1.5,2\n" * 300_000)
    log.write_bytes(data[:-12])
    for session in (None, spark):
        with one_line(TimerError, r"^\S+log.gz has damaged gzip data: .+"):
            ingest_requests(
                log, tmp_path / "out", options, duration="rtt", timeout="5s", session=session
            )
    assert [path.name for path in tmp_path.iterdir()] == ["log.gz"]


def test_a_log_that_only_spark_can_reach(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("compare.traffic.logs.ingest.is_readable", lambda name: "://" not in name)
    logs.as_zeek(tmp_path / "log")
    meant = {"duration": "rtt", "timeout": "5s"}
    here = ingest_requests(tmp_path / "log", tmp_path / "here", LogOptions("ts"), **meant)
    done = ingest_requests(
        f"file://{tmp_path}/log", tmp_path / "out", LogOptions("ts"), **meant, session=spark
    )
    assert done.trace.source["log"] == "log"
    assert done.trace.shards == here.trace.shards
    with pytest.raises(TimerError, match="cannot be read: .*Path does not exist: file:.*nowhere"):
        ingest_requests(f"file://{tmp_path}/nowhere", tmp_path / "no", LogOptions("ts"), **meant)
