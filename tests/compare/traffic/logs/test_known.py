"""Logs of known software are read as its documentation says; of others, the unit is asked for."""

import json
import random
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path

import pytest

from compare.cli.main import main
from compare.traffic.logs.inspect import inspect
from compare.traffic.logs.known import KNOWN, known_format
from compare.traffic.logs.opening import ANY
from compare.traffic.tapes.trace import open_trace
from compare.traffic.tapes.units import EXPONENTS

ROWS, SLOW = 500, 10
"""Requests, and those of them that take longer than the timeout."""
BASE = 1_714_557_600


def requests():
    """The start and the duration of each request, in nanoseconds."""
    rng = random.Random(1)
    time = BASE * 10**9
    for row in range(ROWS):
        time += int(rng.expovariate(20) * 1e9)
        slow = row % (ROWS // SLOW) == 0
        yield row, time, 6_500_000_000 if slow else int(rng.uniform(0.05, 0.9) * 1e9)


def iso(nanoseconds, digits=9):
    seconds, rest = divmod(nanoseconds, 10**9)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{rest:09}"[: 20 + digits].rstrip(".") + "Z"


def seconds(nanoseconds, digits=3):
    return f"{nanoseconds / 1e9:.{digits}f}"


START, DURATION, UNIT = {"time": "time"}, {"duration": "duration"}, "duration_unit"
MADE = {
    "Envoy or Istio, JSON": (
        lambda row, t, d: {
            "start_time": iso(t, 3),
            "response_flags": "-",
            "duration": d // 10**6,
            "x_forwarded_for": None,
            "downstream_remote_address": f"10.0.0.{row % 9}:3",
        },
        {"time": "start_time", "duration": "duration", UNIT: "ms"}
        | {"key": "downstream_remote_address"},
    ),
    "Traefik, JSON": (
        lambda row, t, d: {
            "ClientHost": f"10.0.0.{row % 9}",
            "Duration": d,
            "StartUTC": iso(t),
            "time": iso(t + d, 0),
        },
        {"time": "StartUTC", "duration": "Duration", UNIT: "ns", "key": "ClientHost"},
    ),
    "Traefik, JSON without a start": (
        lambda row, t, d: {"ClientHost": f"10.0.0.{row % 9}", "Duration": d, "time": iso(t + d, 0)},
        {"time": "time", "time_is": "end", "duration": "Duration", UNIT: "ns", "key": "ClientHost"},
    ),
    "nginx, JSON or other fields": (
        lambda row, t, d: {
            "time_iso8601": iso(t + d, 0),
            "msec": seconds(t + d),
            "remote_addr": f"10.0.0.{row % 9}",
            "request_time": seconds(d),
        },
        {"time": "msec", "time_is": "end", "duration": "request_time", "key": "remote_addr"},
    ),
    "nginx, JSON or other fields, with names of their own": (
        lambda row, t, d: {
            "time": iso(t + d, 0),
            "remote_addr": f"10.0.0.{row % 9}",
            "request_time": seconds(d),
        },
        {"time": "time", "time_is": "end", "duration": "request_time", "key": "remote_addr"},
    ),
    "Caddy": (
        lambda row, t, d: {
            "ts": (t + d) / 1e9,
            "request": {"remote_ip": f"10.0.0.{row % 9}", "uri": "/"},
            "duration": d / 1e9,
        },
        {"time": "ts", "time_is": "end", "duration": "duration", "key": "request.remote_ip"},
    ),
    "Kong": (
        lambda row, t, d: {
            "started_at": t // 10**6,
            "client_ip": f"10.0.0.{row % 9}",
            "latencies": {"request": d // 10**6, "proxy": 7},
        },
        {"time": "started_at", "duration": "latencies.request", UNIT: "ms", "key": "client_ip"},
    ),
    "Apache JMeter": (
        "timeStamp,elapsed,label,responseCode,threadName",
        lambda row, t, d: f"{t // 10**6},{d // 10**6},Home,200,Thread Group 1-{row % 5}",
        {"time": "timeStamp", "duration": "elapsed", UNIT: "ms", "key": "threadName"},
    ),
    "gRPC, go-grpc-middleware": (
        lambda row, t, d: {
            "ts": (t + d) / 1e9,
            "grpc.start_time": iso(t, 0),
            "peer.address": f"10.0.0.1:{row % 9}",
            "grpc.time_ms": d / 1e6,
        },
        {"time": "ts", "time_is": "end", "duration": "grpc.time_ms", UNIT: "ms"}
        | {"key": "peer.address"},
    ),
    "Rails, lograge": (
        lambda row, t, d: {
            "@timestamp": iso(t + d, 3),
            "controller": "Posts",
            "action": "show",
            "duration": d / 1e6,
        },
        {"time": "@timestamp", "time_is": "end", "duration": "duration", UNIT: "ms"},
    ),
    "Node.js, pino-http": (
        lambda row, t, d: {
            "time": (t + d) // 10**6,
            "req": {"id": row, "remoteAddress": f"::{row % 9}"},
            "responseTime": d // 10**6,
        },
        {"time": "time", "time_is": "end", "duration": "responseTime", UNIT: "ms"}
        | {"key": "req.remoteAddress"},
    ),
    "Elastic Common Schema": (
        lambda row, t, d: {
            "@timestamp": iso(t + d, 3),
            "event": {"start": iso(t), "duration": d},
            "source": {"ip": f"10.0.0.{row % 9}"},
        },
        {"time": "event.start", "duration": "event.duration", UNIT: "ns", "key": "source.ip"},
    ),
    "OpenTelemetry, spans of OTLP": (
        lambda row, t, d: {"startTimeUnixNano": str(t), "endTimeUnixNano": str(t + d)},
        {"time": "startTimeUnixNano", "end": "endTimeUnixNano"},
    ),
    "Jaeger, spans": (
        lambda row, t, d: {
            "spanID": f"{row:x}",
            "operationName": "get",
            "startTime": t // 1000,
            "duration": d // 1000,
        },
        {"time": "startTime", "duration": "duration", UNIT: "us"},
    ),
    "Chrome, complete events of a trace": (
        lambda row, t, d: {
            "ph": "X",
            "pid": 1,
            "tid": row % 3,
            "ts": t // 1000 % 10**9,
            "dur": d // 1000,
        },
        {"time": "ts", "time_format": "epoch-us", "duration": "dur", UNIT: "us", "key": "tid"}
        | {"where": "ph = X"},
    ),
    "AWS CloudFront": (
        "#Version: 1.0\n#Fields: date time x-edge-location c-ip time-taken",
        lambda row, t, d: (
            f"{iso(t + d, 0)[:-1].replace('T', ' ')} FRA2 10.0.0.{row % 9} {seconds(d)}"
        ),
        {"time": "date,time", "time_is": "end", "duration": "time-taken", "key": "c-ip"},
    ),
    "Zeek, conn.log": (
        "#fields\tts\tuid\tid.orig_h\tproto\tduration",
        lambda row, t, d: f"{seconds(t, 6)}\tC{row}\t10.0.0.{row % 9}\ttcp\t{seconds(d, 6)}",
        {"time": "ts", "duration": "duration", "key": "id.orig_h"},
    ),
    # Not in the table:
    "values with units": (
        lambda row, t, d: {"time": iso(t), "grpc.duration": f"{d / 1e6:.3f}ms"},
        {"time": "time", "duration": "grpc.duration"},
    ),
    "a start and an end": (
        "id,start_time,end_time",
        lambda row, t, d: f"{row},{iso(t)},{iso(t + d)}",
        {"time": "start_time", "end": "end_time"},
    ),
    "a row for the start and one for the end": (
        "ts,worker,phase,req",
        lambda row, t, d: f"{iso(t)},{row % 4},Begin,{row}\n{iso(t + d)},{row % 4},End,{row}",
        {"time": "ts", "id": "req", "event": "phase", "starts": "Begin", "ends": "End"},
    ),
    "milliseconds by their name": (
        "time,latency_ms",
        lambda row, t, d: f"{iso(t)},{d // 10**6}",
        {"time": "time", "duration": "latency_ms", UNIT: "ms"},
    ),
}
"""Name -> a header, if there is one; a row; and what is guessed."""


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Write a log of the requests in one of these formats."""
    monkeypatch.chdir(tmp_path)

    def write(*header, row):
        lines = [row(*request) for request in requests()]
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        Path("log").write_text("\n".join([*header, *texts]) + "\n")
        return "log"

    return write


def commands(out):
    pasted = out.replace("\\\n", "").split("\n\n")
    return [shlex.split(text)[1:] for text in pasted if text.startswith("wheelwork ")]


@pytest.mark.parametrize("name", MADE)
def test_the_pasted_command_finds_the_requests_that_time_out(made, capsys, name):
    *header, row, guessed = MADE[name]
    log = made(*header, row=row)
    seen = inspect(log, ANY)
    guesses = dict(seen.guesses)
    unit = guesses.pop("unit", "ms")
    assert guesses == guessed
    known = known_format(seen.log.columns)
    assert (known.name if known else None) == (
        next((known.name for known in KNOWN if name.startswith(known.name)), None)
    )
    assert main(["inspect", log]) == 0
    out = capsys.readouterr().out
    assert "warning" not in out and max(map(len, out.splitlines())) <= 80
    assert main(commands(out)[0]) == 0, capsys.readouterr().err
    trace = open_trace("requests.trace")
    description = trace.description
    assert (description.armed, description.armed - description.answered) == (ROWS, SLOW)
    first = next(requests())[1]
    if name not in ("Chrome, complete events of a trace", "Traefik, JSON without a start"):
        # The start is read as a start, or the end as an end, to within a second.
        assert abs(trace.shards[0].first_time / 10 ** EXPONENTS[unit] - first / 10**9) <= 1


@pytest.mark.parametrize("name", ["ms", "s", "us", "ns"])
@pytest.mark.parametrize("rate", [1, 20, 2000])
def test_the_unit_comes_from_the_values_or_is_asked_for(tmp_path, capsys, name, rate):
    """Of 1000 requests of 0.05 to 0.9 s, at 1 to 2000 per second."""
    shown = {"s": seconds, "ms": lambda d: d // 10**6, "us": lambda d: d // 10**3, "ns": str}[name]
    log = tmp_path / "log.csv"
    rows = [
        f"{iso((BASE * rate + row) * 10**9 // rate)},{shown(took)}" for row, _, took in requests()
    ]
    log.write_text("\n".join(["time,duration", *rows]))
    seen = inspect(str(log), ANY)
    units = seen.units or (seen.guesses.get("duration_unit", "s"),)
    assert name in units and len(units) <= 2
    assert main(["inspect", str(log)]) == 0
    out = capsys.readouterr().out
    assert (f"The values of duration fit {' and '.join(units)}." in out) == (len(units) > 1)
    given = [
        command[command.index("--duration-unit") + 1] for command in commands(out) if len(units) > 1
    ]
    assert given == list(seen.units)


def test_a_command_that_times_most_requests_out_has_a_warning(tmp_path, capsys):
    log = tmp_path / "log.csv"
    log.write_text("time,took_ms\n" + "".join(f"{BASE + row},{4999 + row}\n" for row in range(4)))
    assert inspect(str(log), ANY).slow == 0.75
    assert main(["inspect", str(log)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "warning 75% of the first requests take 5s or longer, or have no end, and would" in text
    log.write_text(f"start,end\n{BASE},{BASE + 1}\n{BASE},\n{BASE},{BASE + 5}\n")
    assert inspect(str(log), ANY).slow == pytest.approx(2 / 3)
    ends = f"{BASE + 7},a,end\n{BASE + 8},b,end\n{BASE + 9},c,start\n{BASE + 9},d,end\n"
    log.write_text(f"ts,id,event\n{BASE},a,start\n{BASE + 4},b,start\n{ends}")
    assert inspect(str(log), ANY).slow == pytest.approx(2 / 3)  # a, c and not b
    log.write_text(f"start,took\n{BASE},1\n{BASE},\n")
    assert inspect(str(log), ANY).warnings == ()
    # A request without a duration takes for ever, but only if its row has its start.
    log.write_text(f"start,took\n{BASE},1\n{BASE},\n{BASE},\n")
    assert inspect(str(log), ANY).slow == pytest.approx(2 / 3)
    log.write_text(f"end_time,took\n{BASE},1\n{BASE},\n{BASE},6\n")
    assert inspect(str(log), ANY).slow == pytest.approx(1 / 3)


TOLD_TWICE = {
    "a duration and an end": ("start,took_ms,end", f"{BASE},1500,{BASE + 1}", {"duration"}),
    "a documented duration": (
        "request_creation_time,target,target_processing_time,end",
        f"{BASE},a,1.5,{BASE + 1}",
        {"duration"},
    ),
    "a documented end": (
        "requestReceivedTimestamp,stageTimestamp,took_ms",
        f"{BASE},{BASE + 1},1500",
        {"end"},
    ),
    "an id, too": ("ts,took_ms,req,event", f"{BASE},1500,a,start\n{BASE + 1},2,a,end", {"id"}),
}
"""A header, rows, and the one option that tells when a request ends."""


@pytest.mark.parametrize("case", TOLD_TWICE)
def test_what_is_told_twice_is_pasted_once(tmp_path, monkeypatch, capsys, case):
    header, rows, wanted = TOLD_TWICE[case]
    monkeypatch.chdir(tmp_path)
    Path("log").write_text(f"{header}\n{rows}\n")
    assert {"duration", "end", "id"} & inspect("log", ANY).guesses.keys() == wanted
    assert main(["inspect", "log"]) == 0
    first = commands(capsys.readouterr().out)[0]
    assert main(first) == 0, capsys.readouterr().err
    assert open_trace("requests.trace").description.armed == 1


def test_the_rows_of_a_known_format_are_chosen_by_a_column_that_the_log_has(tmp_path):
    pair = {"time": "requestReceivedTimestamp", "end": "stageTimestamp"}
    stage = {"where": "stage = ResponseComplete"}
    for more, wanted in {"": pair, ",stage": pair | stage}.items():
        log = tmp_path / "log"
        log.write_text(f"requestReceivedTimestamp,stageTimestamp{more}\n{BASE},{BASE + 1}\n")
        if more:
            log.write_text(log.read_text().rstrip() + ",ResponseComplete\n")
        assert inspect(str(log), ANY).guesses == wanted


@pytest.mark.parametrize(
    ("name", "statuses"), [("alb.log", "504 -"), ("elb.log", "504 0")], ids=["alb", "elb"]
)
def test_gateway_timeouts_of_load_balancers_time_out(tmp_path, monkeypatch, capsys, name, statuses):
    """294 slow answers and 11 requests that no target answered, whose time is -1."""
    monkeypatch.chdir(tmp_path)
    line = (Path(__file__).with_name("samples") / name).read_text().splitlines()[0]
    before, _, behind = re.split(r"(?<= )(\S+ \S+ \S+ 200 200) ", line)
    took = ["0.001 0.200 0.001 200 200"] * 600 + ["0.001 5.500 0.001 200 200"] * 294
    took += [f"0.001 -1 -1 {statuses}"] * 11
    Path("log").write_text("\n".join(f"{before}{times} {behind}" for times in took))
    assert main(["inspect", "log"]) == 0
    assert main(commands(capsys.readouterr().out)[0]) == 0
    description = open_trace("requests.trace").description
    assert (description.armed, description.armed - description.answered) == (905, 305)


def test_columns_without_such_values_are_not_taken(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text(f"start,latency,end,client,user,duration\n{BASE},low,yes,-,u,1.5s\n")
    assert inspect(str(log), ANY).guesses == {
        "time": "start",
        "duration": "duration",
        "key": "user",
    }
    log.write_text(f"start,end,finish,stop\n{BASE},yes,2024-05-01T10:00:01Z,{BASE + 1}\n")
    assert inspect(str(log), ANY).guesses == {"time": "start", "end": "stop"}
    log.write_text(f"ts,took,took\n{BASE},1,2\n")  # which of the two?
    assert inspect(str(log), ANY).guesses == {"time": "ts"}


def test_an_unknown_time_is_assumed_to_be_the_start(tmp_path, capsys):
    log = tmp_path / "log.csv"
    log.write_text(f"time,took_s\n{BASE},1\n")
    assert main(["inspect", str(log)]) == 0
    assert (
        "time        time (epoch-s, assumed to be the start, by its name)\n"
        in capsys.readouterr().out
    )
    for name, time_is in {"started_at": "start", "end_time": "end", "finishedAt": "end"}.items():
        log.write_text(f"{name},took_s\n{BASE},1\n")
        guesses = inspect(str(log), ANY).guesses
        assert (guesses["time"], guesses.get("time_is", "start")) == (name, time_is)
        assert main(["inspect", str(log)]) == 0
        assert f"time        {name} (epoch-s, the {time_is}, by " in capsys.readouterr().out


def test_msec_of_nginx_is_in_seconds(tmp_path, capsys):
    log = tmp_path / "log.json"
    log.write_text('{"msec": "1714557600.500", "remote_addr": "::1", "request_time": 0.5}\n')
    command = ["ingest", "requests", str(log), "--time", "msec", "--time-is", "end"]
    command += ["--duration", "request_time", "--timeout", "5s", "--out", str(tmp_path / "t")]
    assert main(command) == 0
    assert "its name says" not in capsys.readouterr().out
    assert open_trace(tmp_path / "t").load().time[0] == 1_714_557_600_000


def test_the_documentation_has_the_table():
    page = (Path(__file__).parents[4] / "docs" / "log-formats.md").read_text()
    rows = re.findall(r"^\| \[(.*?)\]\((.*?)\) \| (.*?) \| (.*?) \| (.*?) \|$", page, re.MULTILINE)
    for known, row in zip(KNOWN, rows, strict=True):
        times = ", ".join(f"`{name}` {kind}".strip() for name, kind in known.times.items())
        took = f"`{known.duration}` {known.unit}".strip() if known.duration else ""
        took = f"`{known.end}` end" if known.end else took
        keys = ", ".join(f"`{key}`" for key in known.keys)
        assert row == (known.name, known.source, times, took, keys)
