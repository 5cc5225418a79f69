"""What is guessed from the beginning of a log, and the commands that read it."""

import gzip
import re
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compare.cli.main import main
from compare.traffic.logs.formats.base import Layout
from compare.traffic.logs.inspect import inspect, unit_in_name
from compare.traffic.logs.opening import ANY
from compare.traffic.tapes.trace import open_trace

SAMPLES = Path(__file__).with_name("samples")
MS = {"duration_unit": "ms"}
END = {"time_is": "end"}
GUESSED = {
    "app.csv": {"time": "start", "duration": "seconds", "key": "user"},
    "bare.csv": {"time": "2024-08-01T00:00:00.125Z"},
    "spans.csv": {"time": "start", "end": "end"},
    "export.csv": {"duration": "Dauer"},
    "local.csv": {"time": "start", "duration": "took"},
    "journal.json": {"time": "__REALTIME_TIMESTAMP", "key": "_SYSTEMD_UNIT"},
    "app.json": {"time": "ts", "duration": "took", "key": "client.ip"} | END,
    "access.log": {"time": "time", "duration": "extra1", "key": "client"} | END,
    "alb.log": {
        "time": "request_creation_time",
        "duration": "target_processing_time",
        "key": "client",
    },
    "elb.log": {"time": "time", "duration": "target_processing_time"},  # of one client
    "haproxy.log": {"time": "time", "duration": "total_time"} | MS,
    "envoy.log": {"time": "time", "duration": "duration", "key": "client"} | MS,
    "iis.log": {"time": "date,time", "duration": "time-taken", "key": "c-ip"} | MS | END,
    "syslog.log": {"time": "time", "key": "host"},
    "messages": {"time": "time", "key": "host"},
    "hadoop.log": {"time": "time", "key": "thread"},
    "rsyslog.log": {"time": "time", "key": "host"},
    "events.json": {"time": "ts", "id": "request_id", "event": "type"}
    | {"starts": "begin", "ends": "end"},
    "dns.log": {"time": "ts", "duration": "rtt", "key": "id.orig_h"},
}


MICROSECONDS = {"elb.log", "syslog.log", "rsyslog.log", "dns.log"}


@pytest.mark.parametrize("name", GUESSED)
def test_what_the_columns_are_for(name, tmp_path, monkeypatch, capsys):
    guesses = dict(inspect(str(SAMPLES / name), ANY).guesses)
    year = guesses.pop("year", "")  # of the file's modification
    assert bool(re.fullmatch("20[0-9]{2}", year)) == (name == "messages")
    unit = guesses.pop("unit", "ms")
    assert unit == ("us" if name in MICROSECONDS else "ms")
    assert guesses == GUESSED[name]
    (tmp_path / "a log.gz").write_bytes(gzip.compress((SAMPLES / name).read_bytes()))
    monkeypatch.chdir(tmp_path)
    assert main(["inspect", "a log.gz"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert ", gzip\n" in out
    # What it prints can be pasted.
    commands = [
        command
        for command in out.replace("\\\n", "").split("\n\n")
        if command.startswith("wheelwork ")
    ]
    values = {"duration", "end", "id"} & GUESSED[name].keys(), {"key"} & GUESSED[name].keys()
    assert len(commands) == sum(map(bool, values)) * ("time" in GUESSED[name])
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0, capsys.readouterr().err


def test_options_are_kept_in_the_command(capsys):
    log = str(SAMPLES / "own.log")
    pattern = r"^(?P<time>\S+ \S+) .* took (?P<took_ms>\d+)"
    assert main(["inspect", log, "--pattern", pattern]) == 0
    (command,) = capsys.readouterr().out.split("\n\n")[1:]
    arguments = shlex.split(command)
    assert arguments[arguments.index("--pattern") + 1] == pattern
    assert arguments[arguments.index("--duration-unit") + 1] == "ms"
    assert main(["inspect", str(SAMPLES / "app.txt"), "--delimiter", " "]) == 0
    assert "--delimiter ' '" in capsys.readouterr().out


def test_the_lines_of_a_command_have_up_to_80_columns(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for length in range(20, 45):
        log = Path("x" * length)
        log.write_text("ts,took_ms\n1,2\n")
        assert main(["inspect", str(log)]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) == 80


def test_columns_have_types_and_three_values(tmp_path):
    log = tmp_path / "log"
    log.write_text(
        "a;b;c;d;e;e\n1,5;2024-01-01 00:00:00;x;;1;1\n1,5;-;1;;1;1\n-2;;;;;\n3e1;;;;;\n4;;;;;\n"
    )
    seen = inspect(str(log), ANY)
    assert [tuple(column) for column in seen.columns] == [
        ("a", "number", ("1,5", "-2", "3e1")),
        ("b", "time", ("2024-01-01 00:00:00",)),
        ("c", "text", ("x", "1")),
        ("d", "empty", ()),
        ("e", "empty", ()),  # which of the two?
        ("e", "empty", ()),
    ]
    assert (seen.guesses, seen.time_format, seen.log.headless) == ({"time": "b"}, "iso", False)
    log.write_text("ts,took\n")
    assert inspect(str(log), ANY).guesses == {"time": "ts", "duration": "took"}
    log.write_text("1722470400,2\n")
    assert inspect(str(log), ANY).log.headless
    assert inspect(str(log), Layout(columns=("end", "b"))).guesses == {"time": "end"}


def test_parquet_with_lists_and_timestamps(tmp_path):
    table = pa.table(
        {
            "when": pa.array([1, 2], pa.timestamp("us")),
            "list": [[1], [2]],
            "time": [{"took_ms": 1.5}, None],
        }
    )
    for name, rows in (("log", table), ("none", table.slice(0, 0))):
        pq.write_table(rows, tmp_path / name)
        seen = inspect(str(tmp_path / name), ANY)
        assert [column.name for column in seen.columns] == ["when", "list", "time.took_ms"]
    seen = inspect(str(tmp_path / "log"), ANY)
    assert (seen.guesses["time"], seen.time_format) == ("when", "epoch-s")
    assert [column.kind for column in seen.columns] == ["time", "empty", "number"]


def test_units_in_names():
    names = {"latency_ms": "ms", "tookMicros": "us", "duration.sec": "s", "Seconds": "s"}
    names |= {"Duration (ms)": "ms", "Response Time [us]": "us", "latency(µs)": "us"}
    names |= {"took/ms": "ms", "elapsed msecs": "ms", "msec": None, "Dauer (Sekunden)": "s"}
    names |= {"ts": None, "s": None, "status": None, "items": None, "rtt-ns": "ns", "": None}
    assert {name: unit_in_name(name) for name in names} == names


@pytest.mark.parametrize(
    ("addresses", "found"),
    [(["10.0.0.1", "10.0.0.2"], True), (["10.0.0.1"], False), (["10.0.0.1", "unknown"], False)],
    ids=["several", "one", "in half of the lines"],
)
def test_the_first_address_of_a_line_may_be_its_key(said, addresses, found):
    """It asks. Of one address there is nothing to tell apart."""
    peers = [f"{name} (by 9.9.9.9)" if "." in name else name for name in addresses]
    lines = [f"2024-05-01T10:00:{k:02} peer {peers[k % len(peers)]} said hi\n" for k in range(20)]
    Path("log").write_text("".join(lines))
    code, out, error = said("inspect", "log")
    assert (code == 0) == found
    assert ("The key is the first address in each line." in out) == found
    assert ("if this pattern says what a line is, finish it" in error) != found
    if found:
        (command,) = out.replace("\\\n", "").split("\n\n")[1:]
        assert said(*shlex.split(command)[1:])[0] == 0
        assert open_trace("touches.trace").shards[0].id_space == len(addresses)


def test_a_trace_is_described(said):
    Path("log.csv").write_text("ts,rtt\n1.5,0.2\n2.5,9\n")
    told = said(
        *[
            "ingest",
            "requests",
            "log.csv",
            "--time",
            "ts",
            "--duration",
            "rtt",
            "--timeout",
            "5s",
            "--out",
            "t",
        ]
    )[1]
    code, text, _ = said("inspect", "t")
    assert code == 0
    assert text.splitlines() == [
        "operations  3: 2 starts, 1 cancel",
        "rate        2 timers armed per second",
        "pending     0.2 timers on average",
        "timed out   1 of 2 timers armed (50%): 1 answered later, 0 not by the end",
        "delay       always 5s",
        "answered    p50 200ms, p99 9s, p99.9 9s, greatest 9s",
        "timeout     200ms cuts 100% of the answers, 5s 50%, 10s none",
        "trace       t",
    ]
    assert told.endswith(text)
