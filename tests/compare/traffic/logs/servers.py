"""More logs of 40 requests, in layouts of servers that nobody had tried; see `kinds.py`."""

import json
from typing import Any

from tests.compare.traffic.logs.kinds import (
    MS,
    US,
    Kind,
    Request,
    S,
    _access,
    _at,
    _cri,
    _get,
    decimal,
    iso,
    plain,
)


def _haproxy_tcp(r: Request) -> str:
    accepted = _at(r.start, "%d/%b/%Y:%H:%M:%S", 3)
    return (
        f"{_at(r.end, '%b %e %H:%M:%S')} lb1 haproxy[14387]: {r.client}:{33000 + r.row}"
        f" [{accepted}] fnt bck/srv1 0/0/{r.took // MS} {200 + r.row} -- 0/0/0/0/3 0/0"
    )


def _lograge(r: Request) -> str:
    return (
        f"I, [{iso(r.end, 6, '')} #77]  INFO -- : method=GET path=/item/{r.row} format=html"
        f" controller=ItemsController action=show status=200 duration={decimal(r.took, 2, MS)}"
        f" view={decimal(r.took // 3, 2, MS)} db=0.00"
    )


def _search(r: Request) -> Any:
    return {
        "@timestamp": iso(r.end),
        "log.level": "WARN",
        "elasticsearch.slowlog.took": f"{r.took // (100 * MS) / 10}s",
        "elasticsearch.slowlog.took_millis": r.took // MS,
        "elasticsearch.slowlog.stats": "[]",
        "elasticsearch.node.name": f"node-{r.row % 3}",
    }


def _cloudfront(r: Request) -> str:
    fields = [_at(r.end, "%Y-%m-%d"), _at(r.end, "%H:%M:%S"), "FRA2-C1", str(500 + r.row), r.client]
    fields += ["GET", "d111.cloudfront.net", f"/item/{r.row}", "200", "-", "Mozilla/5.0%20(X11)"]
    fields += ["-", "-", "Hit", f"id{r.row}==", "d111.cloudfront.net", "https", "23"]
    return "\t".join([*fields, decimal(r.took)])


def _google(r: Request) -> Any:
    return {
        "insertId": f"i{r.row}",
        "httpRequest": {
            "requestMethod": "GET",
            "requestUrl": f"https://a.example/item/{r.row}",
            "status": 200,
            "responseSize": str(512 + r.row),
            "remoteIp": r.client,
            "latency": f"{decimal(r.took, 6)}s",
        },
        "timestamp": iso(r.start, 6),
        "severity": "INFO",
        "receiveTimestamp": iso(r.end + 2 * S, 9),
    }


def _istio(r: Request) -> str:
    took = r.took // MS
    return (
        f'[{iso(r.start)}] "GET /item/{r.row} HTTP/1.1" 200 - via_upstream - "-" 0 {512 + r.row}'
        f' {took} {max(took - 2, 0)} "-" "curl/8.0" "0b3c-{r.row}" "a.example" "10.0.0.9:80"'
        f" outbound|80||a.default.svc.cluster.local {r.client}:4711 10.0.0.9:80 {r.client}:4712"
        " - default"
    )


def _kong(r: Request) -> Any:
    return {
        "latencies": {"request": r.took // MS, "kong": 3, "proxy": r.took // MS - 3},
        "started_at": r.start // MS,
        "client_ip": r.client,
        "request": {"method": "GET", "uri": f"/item/{r.row}", "size": 87},
        "response": {"status": 200, "size": 512 + r.row},
        "route": {"id": "r1", "created_at": 1700000000},
    }


def _bind(r: Request) -> str:
    return (
        f"{_at(r.end, '%d-%b-%Y %H:%M:%S', 3)} client @0x7f12 {r.client}#{40000 + r.row}"
        f" (a.example): query: a.example IN A +E(0)K (10.0.0.9)"
    )


def _traefik(r: Request) -> str:
    line = f'{r.client} - - [{_at(r.start, "%d/%b/%Y:%H:%M:%S")} +0000] {_get(r)} 200 512 "-" "-"'
    return f'{line} {r.row} "web@docker" "http://10.0.0.9:80" {r.took // MS}ms'


def _chi(r: Request) -> str:
    return (
        f'{_at(r.end, "%Y/%m/%d %H:%M:%S")} "GET http://a.example/item/{r.row} HTTP/1.1" from'
        f" {r.client}:4711 - 200 512B in {decimal(r.took, 3, MS)}ms"
    )


def _gateway(r: Request) -> Any:
    return {
        "requestId": f"id{r.row}",
        "ip": r.client,
        "requestTime": _at(r.start, "%d/%b/%Y:%H:%M:%S") + " +0000",
        "httpMethod": "GET",
        "status": "200",
        "responseLatency": str(r.took // MS),
        "integrationLatency": str(max(r.took // MS - 7, 0)),
    }


def _solr(r: Request) -> str:
    return (
        f"{plain(r.end)} INFO  (qtp1-{r.row % 4}) [c:a s:shard1 r:core_node2 x:a] o.a.s.c.S.Request"
        f" [a]  webapp=/solr path=/select params={{q=*:*&rows={r.row}}} hits={r.row} status=0"
        f" QTime={r.took // MS}"
    )


def _clickhouse(r: Request) -> str:
    return (
        f"{_at(r.end, '%Y.%m.%d %H:%M:%S', 6)} [ 77 ] {{0b3c-{r.row}}} <Debug> executeQuery: Read"
        f" {r.row + 1} rows, 1.00 KiB in {decimal(r.took, 6)} sec., {r.row} rows/sec., 3.0 KiB/sec."
    )


def _hclog(r: Request) -> str:
    return (
        f"{iso(r.end)} [DEBUG] agent.http: Request finished: method=GET url=/v1/kv/{r.row}"
        f" from={r.client}:4711 latency={decimal(r.took, 6, MS)}ms"
    )


def _etcd(r: Request) -> Any:
    return {
        "level": "warn",
        "ts": iso(r.end, 6),
        "caller": "etcdserver/util.go:170",
        "msg": "apply request took too long",
        "took": f"{decimal(r.took, 6, MS)}ms",
        "expected-duration": "100ms",
        "prefix": "read-only range ",
    }


def _in_parts(r: Request) -> str:
    text = f"ts={iso(r.end)} level=info path=/a duration={r.took // MS}ms"
    return "\n".join(
        [
            _cri(r.end, text[:30]).replace(" F ", " P "),
            _cri(r.end, text[30:]),
        ]
    )


def _apache_both(r: Request) -> str:
    return f"{r.took // S}/{r.took // US}"


def _docker_in_parts(r: Request) -> str:
    text = f"ts={iso(r.end)} level=info path=/a duration={r.took // MS}ms\n"
    parts = (text[:30], text[30:])
    return "\n".join(
        json.dumps({"log": part, "stream": "stdout", "time": iso(r.end, 9)}) for part in parts
    )


SERVERS = (
    Kind("HAProxy, TCP", _haproxy_tcp, logged="start"),
    Kind("Rails, lograge", _lograge, US, 10 * US),
    Kind(
        "Django, runserver",
        lambda r: f"[{_at(r.end, '%d/%b/%Y %H:%M:%S')}] {_get(r)} 200 {512 + r.row}",
        S,
        touches=True,
    ),
    Kind("gunicorn, %(L)s", lambda r: f"{_access(r, r.end)} {decimal(r.took, 6)}", S, US),
    Kind(
        "Rack, CommonLogger",
        lambda r: (
            f"{r.client} - - [{_at(r.end, '%d/%b/%Y:%H:%M:%S')} +0000] {_get(r)} 200 512"
            f" {decimal(r.took, 4)}"
        ),
        S,
        100 * US,
    ),
    Kind("Elasticsearch, slow log as JSON", _search),
    Kind(
        "CloudFront",
        _cloudfront,
        S,
        before="#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host)"
        " cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie)"
        " x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken\n",
    ),
    Kind("Google Cloud, load balancer", _google, US, US, "start"),
    Kind("Istio", _istio, logged="start"),
    Kind("Kong", _kong, logged="start"),
    Kind("BIND, queries", _bind, touches=True),
    Kind("Traefik, common", _traefik, S, logged="start"),
    Kind("chi", _chi, S, US),
    Kind(
        "morgan, :response-time ms",
        lambda r: f"{_access(r, r.end)} {decimal(r.took, 3, MS)} ms",
        S,
        US,
    ),
    Kind("AWS API Gateway", _gateway, S, logged="start"),
    Kind("Solr", _solr),
    Kind("ClickHouse", _clickhouse, US, US),
    Kind("hclog", _hclog, MS, 1),
    Kind("etcd", _etcd, US, 1),
    Kind("CRI, lines in parts", _in_parts),
    Kind("Docker, lines in parts", _docker_in_parts),
    Kind("Apache, %T/%D", lambda r: f"{_access(r, r.start)} {_apache_both(r)}", S, US, "start"),
    Kind(
        "Apache, **%T/%D**",
        lambda r: (
            f"{r.client} - - {_at(r.start, '[%d/%b/%Y:%H:%M:%S')} +0000] {_get(r)} 200 5"
            f' **{_apache_both(r)}** "-" "curl/8"'
        ),
        S,
        US,
        "start",
    ),
)
