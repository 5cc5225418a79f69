"""What the documentation says to type for each kind of log, on a realistic file of that kind."""

import shlex

import pytest

from compare.cli.main import main
from compare.traffic.logs.formats import FORMATS
from compare.traffic.logs.opening import open_log
from compare.traffic.tapes.trace import open_trace
from tests.compare.traffic.logs.documented import COMMANDS

EXPECTED = {
    "app.csv seconds": (4, 2),
    "app.csv latency_ms": (4, 2),
    "app.csv user": (2, 0),
    "spans.csv end": (3, 1),
    "bare.csv took": (3, 1),
    "app.txt took": (3, 1),
    "export.csv Dauer": (3, 1),
    "local.csv took": (3, 1),
    "journal.json _SYSTEMD_UNIT": (3, 0),
    "app.json client.ip": (3, 0),
    "events.json request_id": (3, 1),
    "access.log* client": (4, 0),
    "access.log extra1": (3, 2),
    "alb.log target_processing_time": (5, 3),
    "elb.log target_processing_time": (3, 1),
    "haproxy.log total_time": (4, 2),
    "tcp.log total_time": (3, 2),
    "envoy.log duration": (3, 2),
    "s3.log total_time": (3, 2),
    "squid.log elapsed": (3, 2),
    "postgres.log duration": (2, 1),
    "postgres.csv duration": (2, 1),
    "mysql.log query_time": (2, 1),
    "redis.log client": (3, 0),
    "prometheus.txt value": (2, 1),
    "app.logfmt duration": (2, 1),
    "app.ltsv reqtime": (2, 1),
    "iis.log time-taken": (3, 2),
    "syslog.log host": (3, 0),
    "messages host": (3, 0),
    "hadoop.log thread": (3, 0),
    "zookeeper.log thread": (3, 0),
    "rsyslog.log host": (4, 0),
    "own.log took": (3, 2),
    "dns.log rtt": (3, 1),
    "spans/ span.seconds": (3, 1),
}
"""Log and column besides the time: starts or touches, and cancels."""

WITHOUT_START = {"access.log"}
"""Logs of ends with a request that has no duration."""

OTHERS = {"spans", "app.txt", "own.log"}
"""A directory, and what needs an option to be read."""

OF_KERNEL = {"perf.txt", "bpftrace.txt"}
"""Read by `ingest kernel`; see test_kernel.py."""


@pytest.mark.parametrize("command", COMMANDS)
def test_what_to_type_for_each_kind_of_log(samples, capsys, command):
    arguments = shlex.split(command)[1:]
    log = arguments[2]
    column = next(
        arguments[place + 1]
        for place, option in enumerate(arguments)
        if option in ("--duration", "--end", "--id", "--key")
    )
    assert main(arguments) == 0, capsys.readouterr().err
    trace = open_trace(arguments[-1])
    totals = trace.totals
    assert (totals["starts"] + totals["arms"], totals["cancels"]) == EXPECTED[f"{log} {column}"]
    left_out = trace.source["rows"] - totals["starts"] - totals["arms"]
    assert left_out == (arguments[1] == "requests" and log in WITHOUT_START)


def test_each_format_and_sample_is_shown(samples):
    assert len(COMMANDS) == len(EXPECTED)
    shown = {name.split()[0].rstrip("*/") for name in EXPECTED}
    files = {path.name for path in samples.iterdir()} - OF_KERNEL
    assert files == shown
    known = {open_log(str(samples / name)).format for name in files - OTHERS}
    assert known | {"tsv", "parquet"} == {*FORMATS}
