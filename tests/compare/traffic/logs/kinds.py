"""Logs of 40 requests in many formats, whose starts and durations are known by construction.

Each is written as its software would. Nothing here knows how logs are read.
"""

import bz2
import gzip
import io
import json
import lzma
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

S, MS, US = 10**9, 10**6, 10**3
"""Nanoseconds."""
REQUESTS, TIMEOUT = 40, 5 * S
BASE = 1_714_557_600 * S
"""2024-05-01T10:00:00Z."""


class Request(NamedTuple):
    """A request, in nanoseconds."""

    row: int
    start: int
    took: int
    client: str

    @property
    def end(self) -> int:
        """When it is logged, as a rule."""
        return self.start + self.took


def _requests() -> list[Request]:
    rng = random.Random(7)
    found, time = [], BASE
    for row in range(REQUESTS):
        time += rng.randrange(40_000, 400_000) * US
        slow = row % 6 == 2
        took = rng.randrange(5_200_000, 8_900_000) if slow else rng.randrange(21_000, 890_000)
        found.append(Request(row, time, took * US, f"10.0.0.{1 + row % 5}"))
    return found


ALL = _requests()
SLOW = sum(request.took >= TIMEOUT for request in ALL)


class Kind(NamedTuple):
    """A format: how a request is written, and how fine its times are."""

    name: str
    row: Callable[[Request], Any]  # lines, or an object of JSON
    tick: int = MS  # of the times
    took_tick: int = MS  # of the durations
    logged: str = "end"  # whether the time of a row is the start or the end
    before: str = ""  # lines before the first row
    behind: str = ""
    between: str = "\n"
    pack: Callable[[bytes], bytes] = bytes
    encoding: str = "utf-8"
    touches: bool = False  # there are no durations: a touch of a client a row
    asked: bool = False  # whether its meaning is not in it: a question is as right as an answer

    @property
    def rows(self) -> list[Request]:
        """The requests, rounded as the format rounds them."""
        order = sorted(ALL, key=lambda request: getattr(request, self.logged))
        rounded = []
        for request in order:
            took = request.took // self.took_tick * self.took_tick
            moment = getattr(request, self.logged) // self.tick * self.tick
            start = moment - took if self.logged == "end" else moment
            rounded.append(request._replace(start=start, took=took))
        return rounded

    def written(self) -> bytes:
        """The bytes of a log."""
        texts = []
        for request in sorted(ALL, key=lambda request: getattr(request, self.logged)):
            row = self.row(request)
            texts.append(row if isinstance(row, str) else json.dumps(row))
        text = self.before + self.between.join(texts) + (self.behind or "\n")
        return self.pack(text.encode(self.encoding))


def _at(time: int, form: str, digits: int = 0, point: str = ".") -> str:
    seconds, rest = divmod(time, S)
    text = datetime.fromtimestamp(seconds, UTC).strftime(form)
    return f"{text}{point}{rest:09}"[: len(text) + 1 + digits] if digits else text


def iso(time: int, digits: int = 3, zone: str = "Z") -> str:
    return _at(time, "%Y-%m-%dT%H:%M:%S", digits) + zone


def plain(time: int, digits: int = 3, point: str = ".") -> str:
    return _at(time, "%Y-%m-%d %H:%M:%S", digits, point)


def decimal(time: int, digits: int = 3, per: int = S) -> str:
    """A decimal number of units, cut off."""
    scale = 10**digits
    whole, rest = divmod(time * scale // per, scale)
    return f"{whole}.{rest:0{digits}}"


def _bracketed(time: int) -> str:
    return _at(time, "[%d/%b/%Y:%H:%M:%S +0000]")


def _get(r: Request) -> str:
    return f'"GET /item/{r.row}?page={r.row * 7 % 31} HTTP/1.1"'


def _access(r: Request, time: int) -> str:
    agent = '"Mozilla/5.0 (X11; Linux x86_64)"'
    return f'{r.client} - - {_bracketed(time)} {_get(r)} 200 {512 + r.row} "-" {agent}'


def nginx(r: Request) -> str:
    return f"{_access(r, r.end)} {decimal(r.took)}"


def nginx_named(r: Request) -> str:
    up = decimal(max(r.took - 2 * MS, 0))
    return f'{_access(r, r.end)} rt={decimal(r.took)} uct="0.001" uht="{up}" urt="{up}"'


def _zeek(r: Request) -> str:
    return f"{decimal(r.start, 6)}\tC{r.row}\t{r.client}\t10.1.1.1\tudp\t{decimal(r.took, 6)}"


def _cri(time: int, text: str) -> str:
    return f"{iso(time + 40 * US, 9)} stdout F {text}"


def _docker(time: int, text: str) -> str:
    line = {"log": f"{text}\n", "stream": "stdout", "time": iso(time + 40 * US, 9)}
    return json.dumps(line, separators=(",", ":"))


def _json_line(r: Request) -> str:
    return json.dumps(
        {"ts": iso(r.end), "level": "info", "msg": "done, at last", "remote": r.client}
        | {"duration_ms": r.took // MS}
    )


def _logfmt(r: Request) -> str:
    return (
        f'time={iso(r.end)} level=info msg="took=1 request, done" path=/a client={r.client}'
        f" status=200 duration={decimal(r.took, 3, MS)}ms"
    )


def _kafka(r: Request) -> str:
    header = f'{{"requestApiKey":1,"requestApiVersion":12,"correlationId":{r.row},"clientId":"c"}}'
    return (
        f"[{plain(r.end, 3, ',')}] DEBUG Completed request:"
        f'{{"isForwarded":false,"requestHeader":{header},"connection":"10.0.0.9:9092-{r.client}:5-1",'
        f'"totalTimeMs":{decimal(r.took, 3, MS)},"requestQueueTimeMs":0.1,"localTimeMs":0.25,'
        '"remoteTimeMs":0.0,"throttleTimeMs":0,"responseQueueTimeMs":0.05,"sendTimeMs":0.2,'
        '"securityProtocol":"PLAINTEXT","listener":"PLAINTEXT"} (kafka.request.logger)'
    )


def _postgres(r: Request) -> str:
    return (
        f"{plain(r.end)} UTC [{3000 + r.row % 5}] LOG:  duration: {decimal(r.took, 3, MS)} ms"
        f"  statement: SELECT a, b FROM t WHERE id = {r.row}"
    )


def _postgres_csv(r: Request) -> str:
    at = plain(r.end)
    return (
        f'{at} UTC,"app","shop",{3000 + r.row % 5},"{r.client}:51234",6632.{r.row:x},{r.row},'
        f'"SELECT",2024-05-01 09:00:00 UTC,3/{r.row},0,LOG,00000,'
        f'"duration: {decimal(r.took, 3, MS)} ms  statement: SELECT ""a"", b FROM t",,,,,,,,,'
        '"psql","client backend",,0'
    )


def _mysql(r: Request) -> str:
    return (
        f"# Time: {iso(r.end, 6)}\n"
        f"# User@Host: app[app] @ web [{r.client}]  Id: {100 + r.row % 5}\n"
        f"# Query_time: {decimal(r.took, 6)}  Lock_time: 0.000012 Rows_sent: 1  Rows_examined: 9\n"
        f"SET timestamp={r.start // S};\n"
        f"SELECT a,\n  b FROM t WHERE id = {r.row};"
    )


def _mysql_error(r: Request) -> str:
    return (
        f"{iso(r.end, 6)} {r.row} [Note] [MY-010914] [Server] Aborted connection {r.row}"
        f" to db: 'shop' user: 'app' host: '{r.client}' (Got timeout, reading packets)."
    )


def _squid(r: Request) -> str:
    return (
        f"{decimal(r.end)} {r.took // MS:6} {r.client} TCP_MISS/200 {900 + r.row} GET"
        f" http://example.org/{r.row} - HIER_DIRECT/93.184.216.34 text/html"
    )


def _s3(r: Request) -> str:
    return (
        f"79a59df900b949e5 bucket {_bracketed(r.start)} {r.client} arn:aws:iam::1:user/x 3E57427F3"
        f' REST.GET.OBJECT k/{r.row} "GET /bucket/k/{r.row} HTTP/1.1" 200 - 512 512'
        f' {r.took // MS} 1 "-" "aws-cli/2.15 Python/3.11" - s9lzHYrFp76ZVxRcpX9'
        " SigV4 ECDHE-RSA-AES128-GCM-SHA256 AuthHeader bucket.s3.amazonaws.com TLSv1.2 - -"
    )


def _ltsv(r: Request) -> str:
    return "\t".join(
        [
            f"time:{_bracketed(r.end)}",
            f"host:{r.client}",
            "req:GET / HTTP/1.1",
            "status:200",
            "size:512",
            f"reqtime:{decimal(r.took)}",
            "ua:Mozilla/5.0 (X11; Linux x86_64)",
        ]
    )


def _jaeger_span(r: Request) -> Any:
    return {
        "traceID": f"{r.row:032x}",
        "spanID": f"{r.row:016x}",
        "operationName": "GET /",
        "references": [],
        "startTime": r.start // US,
        "duration": r.took // US,
        "tags": [{"key": "http.method", "type": "string", "value": "GET"}],
        "logs": [],
        "processID": f"p{1 + r.row % 3}",
    }


def _otlp_span(r: Request) -> str:
    span = {
        "traceId": f"{r.row:032x}",
        "spanId": f"{r.row:016x}",
        "name": "GET /",
        "kind": 2,
        "startTimeUnixNano": str(r.start),
        "endTimeUnixNano": str(r.end),
        "attributes": [{"key": "spans", "value": {"stringValue": "["}}],
        "status": {},
    }
    service = [{"key": "service.name", "value": {"stringValue": "shop"}}]
    return json.dumps(
        {
            "resourceSpans": [
                {
                    "resource": {"attributes": service},
                    "scopeSpans": [{"scope": {"name": "x"}, "spans": [span]}],
                }
            ]
        }
    )


def _cloudflare(r: Request) -> Any:
    return {
        "ClientIP": r.client,
        "ClientRequestHost": "example.org",
        "EdgeEndTimestamp": iso(r.end),
        "EdgeResponseStatus": 200,
        "EdgeStartTimestamp": iso(r.start),
        "RayID": f"{r.row:x}",
    }


def _audit(r: Request) -> str:
    event = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": f"a{r.row}",
        "stage": "RequestReceived",
        "requestURI": "/api/v1/pods",
        "verb": "get",
        "user": {"username": "system:admin", "groups": ["system:masters"]},
        "sourceIPs": [r.client],
        "requestReceivedTimestamp": iso(r.start, 6),
        "stageTimestamp": iso(r.start, 6),
    }
    done = event | {"stage": "ResponseComplete", "stageTimestamp": iso(r.end, 6)}
    return f"{json.dumps(event)}\n{json.dumps(done)}"


def _prometheus_text(r: Request) -> str:
    return (
        f'http_request_duration_seconds{{method="get",instance="{r.client}:80"}}'
        f" {decimal(r.took, 6)} {r.end // MS}"
    )


def _zookeeper(r: Request) -> str:
    return (
        f"{plain(r.end, 3, ',')} [myid:1] - WARN  [SyncThread:1:FileTxnLog@378] - fsync-ing the"
        f" write ahead log in SyncThread:1 took {r.took // MS}ms which will adversely effect"
        " operation latency. File size is 67108880 bytes. See the ZooKeeper troubleshooting guide"
    )


def _syslog(r: Request) -> str:
    return (
        f"<134>1 {iso(r.end)} web1 app {700 + r.row % 5} REQ"
        f' [req@32473 path="/a" took="{decimal(r.took)}"] request {r.row}, done'
    )


def _zap(r: Request) -> str:
    return (
        f"{iso(r.end, 3, '+0000')}\tINFO\thttp/server.go:{40 + r.row % 9}\trequest served\t"
        f'{{"path": "/a", "status": 200, "duration": "{decimal(r.took, 3, MS)}ms"}}'
    )


def _zerolog(r: Request) -> str:
    return (
        f"{iso(r.end)} INF request done: all, well duration={decimal(r.took, 3, MS)}ms"
        f" path=/a client={r.client}"
    )


def _actions(r: Request) -> str:
    said = f"Run {r.row}: tests passed, in {decimal(r.took)}s, with {r.row} of them slow"
    return f"{iso(r.end, 7)} {said}"


def _haproxy(r: Request) -> str:
    took = r.took // MS
    return (
        f"May  1 10:00:00 lb haproxy[9]: {r.client}:4711 {_at(r.start, '[%d/%b/%Y:%H:%M:%S', 3)}]"
        f" http-in app/srv1 0/0/1/2/{took} 200 512 - - ---- 1/1/0/0/0 0/0 {_get(r)}"
    )


def _envoy(r: Request) -> str:
    return (
        f'[{iso(r.start)}] "GET /a HTTP/2" 200 - 0 512 {r.took // MS} 1'
        f' "{r.client}" "curl/8" "cc21d9b0-{r.row:04}" "shop" "10.0.2.1:80"'
    )


def _alb(r: Request) -> str:
    tail = '"Root=1-5833" "-" "-" 0'
    return (
        f"h2 {iso(r.end, 6)} app/lb/50dc {r.client}:2817 10.0.2.1:80 0.000 {decimal(r.took)} 0.000"
        f' 200 200 34 366 "GET https://example.org:443/ HTTP/2.0" "curl/8" ECDHE TLSv1.2'
        f" arn:aws:targetgroup/a {tail} {iso(r.start, 6)}"
        ' "forward" "-" "-" "10.0.2.1:80" "200" "-" "-"'
    )


def _quoted_w3c(r: Request) -> str:
    at = plain(r.end, 0)
    return (
        f'"{at[:10]}" "{at[11:]}" {r.client} GET /a "Mozilla/5.0 (X11; rv:1)" 200 {decimal(r.took)}'
    )


def _rails(r: Request) -> str:
    return (
        f"I, [{_at(r.end, '%Y-%m-%dT%H:%M:%S', 6)} #{500 + r.row % 5}]  INFO -- : [{r.row:08x}]"
        f" Completed 200 OK in {r.took // MS}ms (Views: 0.3ms | ActiveRecord: 0.1ms)"
    )


def _gin(r: Request) -> str:
    took = f"{decimal(r.took, 6, S)}s" if r.took >= S else f"{decimal(r.took, 6, MS)}ms"
    at = _at(r.end, "%Y/%m/%d - %H:%M:%S")
    return f'[GIN] {at} | 200 | {took:>13} | {r.client:>15} | GET      "/item/{r.row}"'


def _mongodb(r: Request) -> Any:
    return {
        "t": {"$date": iso(r.end, 3, "+00:00")},
        "s": "I",
        "c": "COMMAND",
        "id": 51803,
        "ctx": f"conn{r.row % 5}",
        "msg": "Slow query",
        "attr": {"type": "command", "ns": "shop.items", "durationMillis": r.took // MS},
    }


def _redis(r: Request) -> str:
    return f'{decimal(r.end, 6)} [0 {r.client}:5123{r.row % 5}] "GET" "item:{r.row}, [x]"'


def _slurm(r: Request) -> str:
    seconds = r.took // S
    return f"{r.row}|{_at(r.start, '%Y-%m-%dT%H:%M:%S')}|0-00:00:{seconds:02}|COMPLETED"


def _kafka_old(r: Request) -> str:
    return (
        f"[{plain(r.end, 3, ',')}] DEBUG Completed request:RequestHeader(apiKey=FETCH, clientId=c,"
        f" correlationId={r.row}) -- {{max_wait_time=500,topics=[]}} from connection"
        f" 10.0.0.9:9092-{r.client}:4-1;totalTime:{decimal(r.took, 3, MS)},requestQueueTime:0.052,"
        "localTime:1.2,remoteTime:0.0,sendTime:0.2 (kafka.request.logger)"
    )


def _mariadb(r: Request) -> str:
    return (
        f"# Time: {_at(r.end, '%y%m%d %H:%M:%S')}\n# User@Host: app[app] @ web [{r.client}]\n"
        "# Thread_id: 5  Schema: shop  QC_hit: No\n"
        f"# Query_time: {decimal(r.took, 6)}  Lock_time: 0.000012  Rows_sent: 1  Rows_examined: 9\n"
        f"# Rows_affected: 0  Bytes_sent: 77\nSET timestamp={r.end // S};\nSELECT {r.row};"
    )


def _tabs_w3c(r: Request) -> str:
    date, time = plain(r.end, 0).split(" ")
    return "\t".join([date, time, r.client, "GET", "Mozilla/5.0 (X11)", "200", decimal(r.took)])


def _ingress(r: Request) -> str:
    upstream = f"10.2.0.1:80 512 {decimal(max(r.took - MS, 0))} 200 5f3{r.row:029x}"
    return f"{_access(r, r.end)} 423 {decimal(r.took)} [default-web-80] [] {upstream}"


def _search(r: Request) -> str:
    at, took = iso(r.end, 3, "").replace(".", ","), decimal(r.took, 1, MS)
    return (
        f"[{at}][WARN ][i.s.s.query] [node] [shop][{r.row % 3}] took[{took}ms],"
        f" took_millis[{r.took // MS}], total_hits[1 hits], types[]"
    )


def _heroku(r: Request) -> str:
    return (
        f'{iso(r.end, 6, "+00:00")} heroku[router]: at=info method=GET path="/" host=x'
        f' fwd="{r.client}" dyno=web.1 connect=1ms service={r.took // MS}ms status=200 bytes=5'
    )


def _lambda(r: Request) -> str:
    return (
        f"{iso(r.end)} REPORT RequestId: a{r.row}\tDuration: {decimal(r.took, 2, MS)} ms"
        f"\tBilled Duration: {r.took // MS + 1} ms\tMemory Size: 128 MB\tMax Memory Used: 30 MB"
    )


def _zap_json(r: Request) -> str:
    return (
        f'{{"level":"info","ts":{decimal(r.end, 6)},"caller":"a.go:1","msg":"done"'
        f',"duration":{decimal(r.took, 6)}}}'
    )


def _session(r: Request) -> str:
    return (
        f"{plain(r.end, 3, ',')} [myid:1] - INFO  [NIOWorkerThread-{r.row % 5}:ZooKeeperServer@628]"
        f" - Expiring session 0x1000{r.row:04}, timeout of 30000ms exceeded"
    )


def _retry(r: Request) -> str:
    return (
        f"{plain(r.end, 3, ',')} WARN [{r.client}] app.Client: no connection, retrying in"
        f" {500 + r.row}ms"
    )


def _elb(r: Request) -> str:
    return (
        f"{iso(r.start, 6)} lb {r.client}:2817 10.0.2.1:80 0.000073 {decimal(r.took, 6)} 0.000057"
        ' 200 200 0 29 "GET http://example.org:80/ HTTP/1.1" "curl/8" - -'
    )


def _iis(r: Request) -> str:
    return (
        f"{plain(r.end, 0)} 10.1.1.1 GET /a - 443 - {r.client} Mozilla/5.0+(X11) - 200 0 0"
        f" {r.took // MS}"
    )


def _klog(r: Request) -> str:
    at = _at(r.end, "%m%d %H:%M:%S", 6)
    return f'I{at}       1 httplog.go:132] "HTTP" verb="GET" latency="{decimal(r.took, 3, MS)}ms"'


def _bsd(r: Request) -> str:
    return f"{_at(r.end, '%b %e %H:%M:%S')} {r.client} sshd[{r.row}]: Accepted publickey for frank"


def _rsyslog(r: Request) -> str:
    return f"{iso(r.end, 6, '+00:00')} {r.client} sshd[{r.row}]: Accepted publickey for frank, who"


def _parquet(data: bytes) -> bytes:
    """A table of CSV as Parquet."""
    file = io.BytesIO()
    pq.write_table(pyarrow.csv.read_csv(io.BytesIO(data)), file)
    return file.getvalue()


def _zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, "zstd", asbytes=True))


KINDS: Sequence[Kind] = (
    Kind("AWS classic load balancer", _elb, US, US, "start"),
    Kind(
        "IIS",
        _iis,
        S,
        before="#Software: Microsoft Internet Information Services 10.0\n#Version: 1.0\n"
        "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip"
        " cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status time-taken\n",
    ),
    Kind("klog", _klog, US, US),
    Kind("syslog, BSD", _bsd, S, touches=True),
    Kind("rsyslog", _rsyslog, US, touches=True),
    Kind(
        "Parquet",
        lambda r: f"{iso(r.start, 6)},{r.took // MS},{r.client}",
        US,
        logged="start",
        before="start,took_ms,client\n",
        pack=_parquet,
    ),
    Kind("Kafka, older", _kafka_old, MS, US),
    Kind("MariaDB, slow log", _mariadb, S, US),
    Kind(
        "W3C, tabs",
        _tabs_w3c,
        S,
        before="#Version: 1.0\n#Fields:\tdate\ttime\tc-ip\tcs-method\tcs(User-Agent)\tsc-status"
        "\ttime-taken\n",
    ),
    Kind("nginx, ingress of Kubernetes", _ingress, S),
    Kind("nginx, combined", lambda r: _access(r, r.end), S, touches=True),
    Kind(
        "Apache, common and %D",
        lambda r: f"{r.client} - - {_bracketed(r.start)} {_get(r)} 200 512 {r.took // US}",
        S,
        US,
        "start",
    ),
    Kind("Elasticsearch, slow log", _search, MS, 100 * US),
    Kind("Heroku, router", _heroku, US),
    Kind("AWS Lambda", _lambda, MS, 10 * US),
    Kind("zap, JSON", _zap_json, US, US),
    Kind("ZooKeeper, sessions", _session, touches=True),
    Kind("retries", _retry, touches=True),
    Kind(
        "syslog, took in the message",
        lambda r: (
            f"<134>1 {iso(r.end, 6)} web1 app 77 - - request {r.row} took {r.took // MS} ms, ok"
        ),
        US,
    ),
    Kind("CRI around text", lambda r: _cri(r.end, f"{plain(r.end)} a took {r.took // MS}ms")),
    Kind("docker around text", lambda r: _docker(r.end, f"{plain(r.end)} a took {r.took // MS}ms")),
    Kind(
        "log4j",
        lambda r: (
            f"{plain(r.end, 3, ',')} INFO  [exec-{r.row % 4}] c.e.T - GET /a in {r.took // MS} ms"
        ),
    ),
    Kind(
        "Go, log",
        lambda r: f"{_at(r.end, '%Y/%m/%d %H:%M:%S')} GET /a 200 {decimal(r.took, 3, MS)}ms",
        S,
        US,
    ),
    Kind(
        "LTSV, microseconds",
        lambda r: f"time:{iso(r.end, 0)}\thost:{r.client}\treqtime_microsec:{r.took // US}",
        S,
        US,
    ),
    Kind(
        "logfmt, elapsed_ms",
        lambda r: f"level=info ts={iso(r.end, 6)} caller=a.go:3 elapsed_ms={r.took // MS}",
        US,
    ),
    Kind(
        "CSV, Latin-1 and a decimal comma",
        lambda r: f"{_at(r.start, '%d.%m.%Y %H:%M:%S')};{decimal(r.took).replace('.', ',')};Gerät",
        S,
        MS,
        "start",
        before="Startzeit;Dauer (s);Gerät\n",
        encoding="latin-1",
    ),
    Kind(
        "Excel, UTF-16 and tabs",
        lambda r: f"{plain(r.start)}\t{r.took // MS}\t{r.client}",
        logged="start",
        before="Start Time\tElapsed (ms)\tUser\n",
        between="\r\n",
        encoding="utf-16",
    ),
    Kind(
        "CSV, msecs",
        lambda r: f"{iso(r.start)},{r.took // MS} msecs",
        logged="start",
        before="start,took\n",
    ),
    Kind(
        "CSV, job_start and job_end",
        lambda r: f"{decimal(r.start, 6)},{decimal(r.end, 6)},{r.client}",
        US,
        US,
        "start",
        before="job_start,job_end,user\n",
    ),
    Kind("nginx, $request_time", nginx, S),
    Kind("nginx, rt= and upstream times", nginx_named, S),
    Kind("nginx, gzip", nginx_named, S, pack=gzip.compress),
    Kind("nginx, bzip2", nginx, S, pack=bz2.compress),
    Kind("nginx, zstd", nginx, S, pack=_zstd),
    Kind("nginx, xz", nginx, S, pack=lzma.compress),
    Kind("Apache, %D", lambda r: f"{_access(r, r.start)} {r.took // US}", S, US, "start"),
    Kind("CRI around nginx", lambda r: _cri(r.end, nginx(r)), S),
    Kind("CRI around JSON lines", lambda r: _cri(r.end, _json_line(r))),
    Kind("docker around nginx", lambda r: _docker(r.end, nginx_named(r)), S),
    Kind("docker around logfmt", lambda r: _docker(r.end, _logfmt(r)), took_tick=US),
    Kind(
        "CSV, UTF-16",
        lambda r: f"{iso(r.start)},{r.took // MS},{r.client}",
        logged="start",
        before="Start,Duration (ms),Client\n",
        encoding="utf-16",
    ),
    Kind(
        "CSV, German",
        lambda r: (
            f"{_at(r.start, '%d.%m.%Y %H:%M:%S', 3, ',')};{decimal(r.took).replace('.', ',')}"
        ),
        logged="start",
        before="Zeit;Dauer\n",
    ),
    Kind(
        "CSV, Latin-1",
        lambda r: f"{iso(r.start)};{r.took // MS};Müller",
        logged="start",
        before="Start;Dauer für alles (ms);Größe\n",
        encoding="latin-1",
    ),
    Kind(
        "CSV, units in names",
        lambda r: f"{iso(r.start, 6)},{decimal(r.took, 3, MS)},{r.client}",
        US,
        US,
        "start",
        before="Request Start,Response Time [ms],Client IP\n",
    ),
    Kind(
        "CSV, end_timestamp",
        lambda r: f"{iso(r.end, 6)},{decimal(r.took, 6)},a",
        US,
        US,
        before="end_timestamp,duration,host\n",
    ),
    Kind(
        "CSV, Prometheus",
        lambda r: f"http_request_duration_seconds,{r.client}:80,{decimal(r.end)},{decimal(r.took)}",
        before="__name__,instance,timestamp,value\n",
    ),
    Kind(
        "Grafana, CSV",
        lambda r: f'"{plain(r.end)}",{decimal(r.took)}',
        before='"Time","Value"\n',
    ),
    Kind("Prometheus, text", _prometheus_text, MS, US),
    Kind("Kafka, request log", _kafka, MS, US),
    Kind("logfmt", _logfmt, took_tick=US),
    Kind("LTSV", _ltsv, S),
    Kind("Squid", _squid),
    Kind("S3, server log", _s3, S, MS, "start"),
    Kind("Postgres, stderr", _postgres, MS, US),
    Kind("Postgres, csvlog", _postgres_csv, MS, US),
    Kind("MySQL, slow log", _mysql, US, US),
    Kind("MySQL, error log", _mysql_error, US, touches=True, asked=True),
    Kind("Redis, MONITOR", _redis, US, touches=True),
    Kind("ZooKeeper", _zookeeper),
    Kind("syslog, took=", _syslog),
    Kind(
        "Jaeger, file",
        _jaeger_span,
        US,
        US,
        "start",
        before='{"data": [{"traceID": "a", "spans": [',
        behind='], "processes": {"p1": {"serviceName": "x", "tags": []}}}], "total": 0}',
        between=", ",
    ),
    Kind("OTLP, file", _otlp_span, US, US, "start"),
    Kind("zap, console", _zap, took_tick=US),
    Kind("zerolog, console", _zerolog, took_tick=US),
    Kind("GitHub Actions", _actions, 100),
    Kind(
        "W3C, quoted",
        _quoted_w3c,
        S,
        before="#Version: 1.0\n#Fields: date time c-ip cs-method cs-uri-stem cs(User-Agent)"
        " sc-status time-taken\n",
    ),
    Kind("Cloudflare", _cloudflare, logged="start"),
    Kind("Kubernetes, audit", _audit, US, US, "start"),
    Kind("HAProxy", _haproxy, logged="start"),
    Kind("Envoy", _envoy, logged="start"),
    Kind("AWS load balancer", _alb, US, MS, "start"),
    Kind(
        "Zeek",
        _zeek,
        US,
        US,
        "start",
        before="#separator \\x09\n#fields\tts\tuid\tid.orig_h\tid.resp_h\tproto\trtt\n",
    ),
    Kind("Rails", _rails, US, MS),
    Kind("gin", _gin, S, 1),
    Kind("MongoDB", _mongodb),
    Kind(
        "Slurm",
        _slurm,
        S,
        S,
        "start",
        before="JobID|Start|Elapsed|State\n",
    ),
)
