"""Workloads, traces, replays and logs: an operation is one whole run on `size` rows."""

import asyncio
import inspect
import os
import shutil
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from .row import AbsentError, cpu

START, CANCEL = 0, 1  # of a tape
TIMEOUT = 5_000  # ms
SINCE = datetime(2024, 8, 1, tzinfo=UTC)


def requests_tape(size, tape):
    """A tape of requests, three of four answered in time, which any version reads alike.

    A tape of `make` would be another workload wherever that has changed.
    """
    starts = size * 4 // 7
    dice = np.random.default_rng(size)
    begin = np.sort(dice.integers(0, 20 * starts, starts))
    took = dice.integers(1, TIMEOUT * 4 // 3, starts)
    answered = np.flatnonzero(took < TIMEOUT)
    times = np.concatenate([begin, (begin + took)[answered]])
    order = np.argsort(times, kind="stable")
    ops = np.repeat(np.array([START, CANCEL], np.int8), [starts, answered.size])
    ids = np.concatenate([np.arange(starts), answered]).astype(np.int32)
    due = np.concatenate([begin + TIMEOUT, np.zeros(answered.size, np.int64)])
    return tape(*(np.ascontiguousarray(column[order]) for column in (times, ops, ids, due)))


def replayed(size, replay, tape, scheme):
    rows = requests_tape(size, tape)
    id_space = int(rows.id.max()) + 1

    def turn(count):
        used = 0.0
        for _ in range(count):
            timer = scheme(start=int(rows.time[0]), capacity=id_space)
            used += cpu(replay, timer, rows, id_space)
        return used

    yield turn


def made(workload):
    """A case that generates a workload."""

    def case(size, make):
        def work(count):
            for _ in range(count):
                make(workload, operations=size)

        yield lambda count: cpu(work, count)

    return case


def validated(size, validate, tape):
    rows = requests_tape(size, tape)
    id_space = int(rows.id.max()) + 1

    def work(count):
        for _ in range(count):
            validate(rows, id_space)

    yield lambda count: cpu(work, count)


def written(size, write_trace, tape):
    rows = requests_tape(size, tape)

    def write(path):
        write_trace(path, [rows], unit="ms", source={})

    yield from into_new_folders(write)


def opened(size, open_trace, write_trace, tape):
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.trace")
        write_trace(path, [requests_tape(size, tape)], unit="ms", source={})

        def work(count):
            for _ in range(count):
                open_trace(path).load()

        yield lambda count: cpu(work, count)


def into_new_folders(write):
    """Measure `write(path)` without the removal of what it writes."""
    with TemporaryDirectory() as folder:

        def turn(count):
            used = 0.0
            for _ in range(count):
                path = Path(folder, "out")
                used += cpu(write, path)
                shutil.rmtree(path)
            return used

        yield turn


def recorded(size, record):
    """A call on an asyncio loop that is scheduled and cancelled while the program is recorded."""
    with TemporaryDirectory() as folder, closing(asyncio.new_event_loop()) as loop:
        others = [loop.call_later(1000, print) for _ in range(size)]

        async def measured(count):
            start = time.process_time()
            for _ in range(count):
                loop.call_later(30.0, print).cancel()
            return time.process_time() - start

        with record(Path(folder, "a.trace")):
            yield lambda count: loop.run_until_complete(measured(count))
        del others


# Logs


class Log(NamedTuple):
    """A format: how a line is written, and how it is read."""

    line: str  # with fields in braces: see `fields`
    roles: dict  # of `ingest_requests` or `ingest_touches`
    options: dict
    head: str = ""
    known: bool = True  # whether it is one of the formats that are recognized by name


REQUESTS = {"timeout": "5s"}
TOUCHES = {"idle": "30s"}
MS = {"duration_unit": "ms"}

LOGS = {
    "csv": Log(
        "{epoch},{took},user{key}\n",
        {"duration": "seconds", **REQUESTS},
        {"time": "start"},
        "start,seconds,user\n",
    ),
    "tsv": Log(
        "{epoch}\t{took}\tuser{key}\n",
        {"duration": "seconds", **REQUESTS},
        {"time": "start"},
        "start\tseconds\tuser\n",
    ),
    "jsonl": Log(
        '{{"ts": "{iso}", "level": "info", "client": {{"ip": "10.0.0.{key}"}}, "took": {took}}}\n',
        {"duration": "took", **REQUESTS},
        {"time": "ts"},
    ),
    "jsonl with ids": Log(
        '{{"ts": "{iso}", "type": "begin", "id": "r{number}"}}\n'
        '{{"ts": "{iso}", "type": "end", "id": "r{number}"}}\n',
        {"id": "id", "event": "type", "starts": "begin", "ends": "end", **REQUESTS},
        {"time": "ts"},
    ),
    "access": Log(
        '10.0.0.{key} - - [{clf}] "GET /a HTTP/1.1" 200 5316 "-" "curl/7.46.0" {took}\n',
        {"key": "client", **TOUCHES},
        {"time": "time"},
    ),
    "alb": Log(
        "http {iso} app/lb/50dc 10.0.0.{key}:2817 10.0.0.1:80 0.000 {took} 0.000 200 200 34 366"
        ' "GET http://www.example.com:80/ HTTP/1.1" "curl/7.46.0" - - arn:aws "Root=1-{number}"'
        ' "-" "-" 0 {iso} "forward" "-" "-" "10.0.0.1:80" "200" "-" "-"\n',
        {"duration": "target_processing_time", **REQUESTS},
        {"time": "request_creation_time"},
    ),
    "elb": Log(
        "{iso} lb 10.0.0.{key}:2817 10.0.0.1:80 0.000073 {took} 0.000057 200 200 0 29"
        ' "GET http://www.example.com:80/ HTTP/1.1" "curl/7.38.0" - -\n',
        {"duration": "target_processing_time", **REQUESTS},
        {"time": "time"},
    ),
    "haproxy": Log(
        "Aug  1 12:14:14 localhost haproxy[14389]: 10.0.0.{key}:33317 [{clf_ms}] http-in"
        " static/srv1 10/0/30/69/{ms} 200 2750 - - ---- 1/1/1/1/0 0/0 {{1wt.eu}} {{}}"
        ' "GET /index.html HTTP/1.1"\n',
        {"duration": "total_time", **MS, **REQUESTS},
        {"time": "time"},
    ),
    "haproxy-tcp": Log(
        "Aug  1 12:14:14 localhost haproxy[14389]: 10.0.0.{key}:33317 [{clf_ms}] http-in"
        " static/srv1 10/30/{ms} 2750 -- 1/1/1/1/0 0/0\n",
        {"duration": "total_time", **MS, **REQUESTS},
        {"time": "time"},
    ),
    "envoy": Log(
        '[{iso}] "POST /api/v1/locations HTTP/2" 204 - 154 0 {ms} 100 "10.0.0.{key}" "nsq2http"'
        ' "cc21d9b0-{number}" "locations" "tcp://10.0.2.1:80"\n',
        {"duration": "duration", **MS, **REQUESTS},
        {"time": "time"},
    ),
    "syslog": Log(
        "<165>1 {iso} host{key}.example.com evntslog 811 ID47 - An application event {number}\n",
        {"key": "host", **TOUCHES},
        {"time": "time"},
    ),
    "syslog-bsd": Log(
        "{bsd} web{key} sshd[4711]: Accepted publickey for frank from 192.0.2.1 port 50122\n",
        {"key": "host", **TOUCHES},
        {"time": "time"},
    ),
    "logging": Log(
        "{date} {clock},{milli} INFO [worker-{key}] org.example.Server: Request {number}\n",
        {"key": "thread", **TOUCHES},
        {"time": "time"},
    ),
    "rsyslog": Log(
        "{iso} web{key} sshd[4711]: Accepted publickey for frank from 192.0.2.1 port 50122\n",
        {"key": "host", **TOUCHES},
        {"time": "time"},
    ),
    "w3c": Log(
        "{date} {clock} 10.0.0.4 GET /index.html - 80 - 10.0.0.{key} curl - 200 0 0 {ms}\n",
        {"duration": "time-taken", "time_is": "end", **MS, **REQUESTS},
        {"time": "date,time"},
        "#Software: Microsoft Internet Information Services 10.0\n#Version: 1.0\n"
        "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip"
        " cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status time-taken\n",
    ),
    "zeek": Log(
        "{epoch}\tC{number}\t10.0.0.{key}\t{took}\n",
        {"duration": "rtt", **REQUESTS},
        {"time": "ts"},
        "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#path\tdns\n"
        "#fields\tts\tuid\tclient\trtt\n#types\ttime\tstring\taddr\tinterval\n",
    ),
    "s3": Log(
        "79a59df900b949e5 bucket [{clf}] 10.0.0.{key} arn:aws:iam::1:user/x 3E57427F3"
        ' REST.GET.OBJECT k/{number} "GET /bucket/k/{number} HTTP/1.1" 200 - 512 512 {ms} 1 "-"'
        ' "aws-cli/2.15" - s9lzHYrFp76ZVxRcpX9 SigV4 ECDHE-RSA-AES128-GCM-SHA256 AuthHeader'
        " bucket.s3.amazonaws.com TLSv1.2 - -\n",
        {"duration": "total_time", **MS, **REQUESTS},
        {"time": "time"},
    ),
    "squid": Log(
        "{epoch} {ms:6} 10.0.0.{key} TCP_MISS/200 900 GET http://example.org/{number} -"
        " HIER_DIRECT/93.184.216.34 text/html\n",
        {"duration": "elapsed", "time_is": "end", **MS, **REQUESTS},
        {"time": "time"},
    ),
    "postgres": Log(
        "{date} {clock}.{milli} UTC [{key}] LOG:  duration: {ms}.000 ms  statement: SELECT 1\n",
        {"duration": "duration", "time_is": "end", **MS, **REQUESTS},
        {"time": "time"},
    ),
    "postgres-csv": Log(
        '{date} {clock}.{milli} UTC,"app","shop",{key},"10.0.0.1:51234",6632.a,{number},"SELECT",'
        '2024-05-01 09:00:00 UTC,3/1,0,LOG,00000,"duration: {ms}.000 ms  statement: SELECT 1"'
        ',,,,,,,,,"psql","client backend",,0\n',
        {"duration": "duration", "time_is": "end", **MS, **REQUESTS},
        {"time": "time"},
    ),
    "mysql-slow": Log(
        "# Time: {iso}\n# User@Host: app[app] @ web [10.0.0.{key}]  Id: 7\n"
        "# Query_time: {took}  Lock_time: 0.000012 Rows_sent: 1  Rows_examined: 9\n"
        "SET timestamp=1700000000;\nSELECT 1;\n",
        {"duration": "query_time", "time_is": "end", **REQUESTS},
        {"time": "time"},
    ),
    "redis": Log(
        '{epoch} [0 10.0.0.{key}:51234] "GET" "item:{number}"\n',
        {"key": "client", **TOUCHES},
        {"time": "time"},
    ),
    "prometheus": Log(
        'http_request_duration_seconds{{instance="10.0.0.{key}:80"}} {took} {epoch_ms}\n',
        {"duration": "value", "time_is": "end", **REQUESTS},
        {"time": "time"},
    ),
    "zookeeper": Log(
        "{date} {clock},{milli} [myid:1] - WARN  [SyncThread-{key}:FileTxnLog@378] - fsync-ing"
        " the write ahead log took {ms}ms\n",
        {"key": "thread", **TOUCHES},
        {"time": "time"},
    ),
    "ltsv": Log(
        "time:[{clf}]\thost:10.0.0.{key}\tstatus:200\treqtime:{took}\n",
        {"duration": "reqtime", "time_is": "end", **REQUESTS},
        {"time": "time"},
    ),
    "logfmt": Log(
        'time={iso} level=info msg="request done" client=10.0.0.{key} took={took}\n',
        {"duration": "took", "time_is": "end", **REQUESTS},
        {"time": "time"},
    ),
    "pattern": Log(
        "{date} {clock},{milli} INFO  [worker-{key}] request {number} took {ms} ms\n",
        {"duration": "took", "time_is": "end", **MS, **REQUESTS},
        {
            "time": "time",
            "pattern": "^(?P<time>[^ ]+ [^ ]+) .* took (?P<took>[0-9]+) ms",
        },
        known=False,
    ),
}
"""One for each format; tests/test_against.py holds them to the list of the project."""


@lru_cache(3)  # the formats of a process share them
def fields(size):
    """The values of each line: 50 lines a second."""
    return list(_fields(size))


def _fields(size):
    took = np.random.default_rng(size).integers(1, TIMEOUT * 4 // 3, size).tolist()
    for number, ms in enumerate(took):
        at = SINCE + timedelta(milliseconds=20 * number)
        milli = f"{at.microsecond // 1000:03}"
        clock, date = at.strftime("%H:%M:%S"), at.strftime("%Y-%m-%d")
        clf = at.strftime("%d/%b/%Y:%H:%M:%S")
        yield {
            "number": number,
            "key": number * 7919 % 251,
            "took": f"{ms / 1000:.3f}",
            "ms": ms,
            "milli": milli,
            "epoch": f"{at.timestamp():.3f}",
            "epoch_ms": round(at.timestamp() * 1000),
            "iso": f"{date}T{clock}.{milli}Z",
            "date": date,
            "clock": clock,
            "clf": f"{clf} +0000",
            "clf_ms": f"{clf}.{milli}",
            "bsd": f"{at:%b} {at.day:2} {clock}",
        }


def ingested(name):
    """A case that ingests a log of this format."""
    log = LOGS[name]

    def case(size, ingest_requests, ingest_touches, options, formats):
        if log.known and name.partition(" ")[0] not in formats:
            raise AbsentError(f"format {name}")
        ingest = ingest_touches if "idle" in log.roles else ingest_requests
        with TemporaryDirectory() as folder:
            path = Path(folder, "a.log")
            lines = map(log.line.format_map, fields(size))
            path.write_text(log.head + "".join(lines))
            os.utime(path, (SINCE.timestamp() + 86_400,) * 2)  # the year of the times without one

            def read(out):
                ingest(path, out, options(**log.options), **log.roles)

            yield from into_new_folders(read)

    return case


def ingested_parquet(size, ingest_requests, options):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = fields(size)
    start = [float(row["epoch"]) for row in rows]
    took = [float(row["took"]) for row in rows]
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.parquet")
        pq.write_table(pa.table({"start": start, "took": took}), path)

        def read(out):
            ingest_requests(path, out, options(time="start"), duration="took", timeout="5s")

        yield from into_new_folders(read)


def ingested_arrow(size, ingest_requests, options):
    """A table in memory."""
    import pyarrow as pa

    if "__arrow_c_stream__" not in (inspect.getdoc(ingest_requests) or ""):
        raise AbsentError("logs in memory")
    rows = fields(size)
    start = [float(row["epoch"]) for row in rows]
    table = pa.table({"start": start, "took": [float(row["took"]) for row in rows]})

    def read(out):
        ingest_requests(table, out, options(time="start"), duration="took", timeout="5s")

    yield from into_new_folders(read)


def ingested_kernel(size, read_kernel_trace):
    """`trace-cmd report`; half of the events cancel."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "kernel.txt")
        lines = []
        for number in range(size // 2):
            task, at = "            sshd-901   [000] d.s.  ", 1000 + number / 1e3
            due, timer = 4_295_000_000 + number // 4 + 50, f"timer=0xffff{number % 1000:08x}"
            lines += [
                f"{task}{at:.6f}: timer_start: {timer} function=tcp_write_timer expires={due}"
                f" [timeout=50] bucket_expiry={due} cpu=0 idx=50\n",
                f"{task}{at + 0.0005:.6f}: timer_cancel: {timer}\n",
            ]
        path.write_text("cpus=2\n" + "".join(lines))
        yield from into_new_folders(lambda out: read_kernel_trace(path, out))


# First use


def program(text):
    """A case that runs a program in a fresh interpreter, whose own start is not counted."""
    timed = f"import time; start = time.process_time()\n{text}\n"
    timed += "print(end='\\n%r' % (time.process_time() - start))"

    def case(size, *_):
        def turn(count):
            used = 0.0
            for _ in range(count):
                done = subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True)
                if done.returncode:
                    raise RuntimeError((done.stderr.splitlines() or ["no message"])[-1])
                used += float(done.stdout.splitlines()[-1])
            return used

        yield turn

    return case
