"""Known formats: which column is what, in which unit, and whether a time is a start or an end.

`inspect` reads this table, and so does the page about formats in the documentation. Each row has
the page that says so. A new format is a new row.
"""

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

_UNITS = {
    "s": ("s", "sec", "secs", "second", "seconds", "sekunden"),
    "ms": ("ms", "msec", "msecs", "millis", "millisec", "millisecond", "milliseconds"),
    "us": ("us", "µs", "μs", "usec", "usecs", "micros", "microsec", "microsecond", "microseconds"),
    "ns": ("ns", "nsec", "nsecs", "nano", "nanos", "nanosec", "nanosecond", "nanoseconds"),
}
UNIT_OF = {word: unit for unit, words in _UNITS.items() for word in words}
"""The name of a unit of time -> the unit."""
_MISNAMED = "msec"
"""nginx's name for the time in seconds, with milliseconds as decimals."""


def split_unit(column: str) -> tuple[str, str | None]:
    """The words of a column's name, in small letters and without its unit, and the unit.

    >>> split_unit("tookMillis"), split_unit("Response Time (ms)"), split_unit("status")
    (('took', 'ms'), ('response_time', 'ms'), ('status', None))
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column).lower()
    # A dot leads to a value in an object.
    name = re.sub(r"[^\w.@]+", "_", spaced).strip("_")
    base, separator, word = re.fullmatch(r"(?:(.*)([_.]))?(.*)", name).groups("")  # type: ignore[union-attr]  # any text matches
    unit = UNIT_OF.get(word) if separator or len(word) > 1 else None
    return (base, unit) if unit and name != _MISNAMED else (name, None)


def unit_in_name(column: str) -> str | None:
    """The unit of time that the name of a column ends with.

    >>> [unit_in_name(name) for name in ("latency_ms", "tookMillis", "seconds", "status")]
    ['ms', 'ms', 's', None]
    """
    return split_unit(column)[1]


class Known(NamedTuple):
    """A format that is recognised by its columns. Of several names, the first one is used."""

    name: str
    source: str  # where this is documented
    signs: str  # columns that it has, besides the duration or the end; `a|b` is one of them
    times: Mapping[str, str]  # column -> "start", "end", or "" if that is not documented
    duration: str = ""
    unit: str = ""  # of the duration
    end: str = ""  # a column with the end, instead of a duration
    keys: tuple[str, ...] = ()
    time_format: str = ""  # if it cannot be guessed from the values
    where: str = ""  # which rows are requests; ignored if the log lacks the column

    def fits(self, columns: Collection[str]) -> bool:
        """Return whether a log has these columns."""
        signs = [
            *self.signs.split(),
            *filter(None, (self.duration, self.end)),
            "|".join(self.times),
        ]
        return all(
            any(set(name.split(",")) <= set(columns) for name in sign.split("|")) for sign in signs
        )


_AWS = "https://docs.aws.amazon.com"
_ENVOY = "https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage"
_LOGGED = ("time", "ts", "timestamp", "@timestamp")
"""Usual names of the time at which a line was written."""

KNOWN = (
    Known(
        "AWS application load balancer",
        f"{_AWS}/elasticloadbalancing/latest/application/load-balancer-access-logs.html",
        "target",
        # `time` is the end, but if no target answered in time, there is no duration to subtract.
        {"request_creation_time": "start"},
        "target_processing_time",
        "s",
        keys=("client",),
    ),
    Known(
        "AWS classic load balancer",
        f"{_AWS}/elasticloadbalancing/latest/classic/access-log-collection.html",
        "balancer target",
        {"time": "start"},
        "target_processing_time",
        "s",
        keys=("client",),
    ),
    Known(
        "AWS CloudFront",
        f"{_AWS}/AmazonCloudFront/latest/DeveloperGuide/standard-logs-reference.html",
        "x-edge-location",
        {"date,time": "end"},
        "time-taken",
        "s",
        keys=("c-ip",),
    ),
    Known(
        "IIS",
        "https://learn.microsoft.com/en-us/windows/win32/http/w3c-logging",
        "sc-win32-status|sc-substatus|s-sitename",
        {"date,time": "end"},
        "time-taken",
        "ms",
        keys=("c-ip",),
    ),
    Known(
        "HAProxy",
        "https://docs.haproxy.org/3.0/configuration.html#8.2.3",
        "frontend backend",
        {"time": "start"},
        "total_time",
        "ms",
        keys=("client",),
    ),
    Known(
        "Google Cloud, requests",
        "https://cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry",
        "insertId",
        {"timestamp": ""},
        "httpRequest.latency",
        keys=("httpRequest.remoteIp",),
    ),
    Known(
        "Envoy, default format",
        _ENVOY,
        "flags upstream_time",
        {"time": "start"},
        "duration",
        "ms",
        keys=("client",),
    ),
    Known(
        "Envoy or Istio, JSON",
        _ENVOY,
        "response_flags|response_code_details|upstream_host|upstream_cluster|bytes_received",
        {"start_time": "start"},
        "duration",
        "ms",
        keys=("x_forwarded_for", "downstream_remote_address"),
    ),
    Known(
        "nginx, JSON or other fields",
        "https://nginx.org/en/docs/http/ngx_http_log_module.html",
        "msec|time_iso8601|time_local|remote_addr|body_bytes_sent|request_method|request_uri|"
        "http_user_agent|upstream_response_time",
        dict.fromkeys(("msec", "time_iso8601", "time_local", *_LOGGED), "end"),
        "request_time",
        "s",
        keys=("remote_addr", "client", "http_x_forwarded_for"),
    ),
    Known(
        "Traefik, JSON",
        "https://doc.traefik.io/traefik/observability/access-logs/",
        "ClientHost|ClientAddr|RouterName|DownstreamStatus|OriginStatus|RequestPath",
        {"StartUTC": "start", "StartLocal": "start", "time": "end"},
        "Duration",
        "ns",
        keys=("ClientHost", "ClientAddr"),
    ),
    Known(
        "Caddy",
        "https://caddyserver.com/docs/caddyfile/directives/log",
        "request.remote_ip|request.remote_addr|request.client_ip",
        {"ts": "end"},
        "duration",
        "s",
        keys=("request.client_ip", "request.remote_ip", "request.remote_addr"),
    ),
    Known(
        "Kong",
        "https://developer.konghq.com/gateway/logs/",
        "",
        {"started_at": "start"},
        "latencies.request",
        "ms",
        keys=("client_ip",),
    ),
    Known(
        "Apache JMeter",
        "https://jmeter.apache.org/usermanual/listeners.html",
        "",
        {"timeStamp": "start"},
        "elapsed",
        "ms",
        keys=("threadName",),
    ),
    Known(
        "Zeek, conn.log",
        "https://docs.zeek.org/en/master/logs/conn.html",
        "uid conn_state|proto",
        {"ts": "start"},
        "duration",
        "s",
        keys=("id.orig_h",),
    ),
    Known(
        "Zeek, dns.log",
        "https://docs.zeek.org/en/master/logs/dns.html",
        "id.orig_h|uid",
        {"ts": "start"},
        "rtt",
        "s",
        keys=("id.orig_h",),
    ),
    Known(
        "gRPC, go-grpc-middleware",
        "https://pkg.go.dev/github.com/grpc-ecosystem/go-grpc-middleware/logging/zap",
        "",
        # The start has whole seconds.
        {**dict.fromkeys(_LOGGED, "end"), "grpc.start_time": "start"},
        "grpc.time_ms",
        "ms",
        keys=("peer.address.IP", "peer.address"),
    ),
    Known(
        "Rails, lograge",
        "https://github.com/roidrage/lograge",
        "controller action",
        dict.fromkeys(_LOGGED, "end"),
        "duration",
        "ms",
        keys=("remote_ip", "ip", "host"),
    ),
    Known(
        "Node.js, pino-http",
        "https://github.com/pinojs/pino-http",
        "",
        dict.fromkeys(_LOGGED, "end"),
        "responseTime",
        "ms",
        keys=("req.remoteAddress",),
    ),
    Known(
        "Elastic Common Schema",
        "https://www.elastic.co/docs/reference/ecs/ecs-event",
        "",
        {"event.start": "start", "event.end": "end", "@timestamp": ""},
        "event.duration",
        "ns",
        keys=("client.ip", "source.ip", "host.name"),
    ),
    Known(
        "OpenTelemetry, spans of OTLP",
        "https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/trace/v1/trace.proto",
        "",
        {"startTimeUnixNano": "start"},
        end="endTimeUnixNano",
    ),
    Known(
        "Jaeger, spans",
        "https://github.com/jaegertracing/jaeger/blob/main/internal/uimodel/model.go",
        "spanID operationName",
        {"startTime": "start"},
        "duration",
        "us",
        keys=("processID",),
    ),
    Known(
        "Chrome, complete events of a trace",
        "https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU",
        "pid tid",
        {"ts": "start"},
        "dur",
        "us",
        keys=("tid",),
        time_format="epoch-us",
        where="ph = X",
    ),
    Known(
        "Kubernetes, audit log",
        "https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/",
        "",
        {"requestReceivedTimestamp": "start"},
        end="stageTimestamp",
        keys=("user.username",),
        where="stage = ResponseComplete",
    ),
    Known(
        "MongoDB, structured log",
        "https://www.mongodb.com/docs/manual/reference/log-messages/",
        "ctx",
        {"t.$date": "end"},
        "attr.durationMillis",
        "ms",
        keys=("attr.remote", "ctx"),
        where="attr.durationMillis >= 0",
    ),
    Known(
        "AWS S3, server access log",
        f"{_AWS}/AmazonS3/latest/userguide/LogFormat.html",
        "bucket request_id",
        {"time": "start"},
        "total_time",
        "ms",
        keys=("client", "requester"),
    ),
    Known(
        "Squid, native format",
        "https://wiki.squid-cache.org/Features/LogFormat",
        "hierarchy",
        {"time": "end"},
        "elapsed",
        "ms",
        keys=("client",),
    ),
    Known(
        "PostgreSQL, log_min_duration_statement",
        "https://www.postgresql.org/docs/current/runtime-config-logging.html",
        "process severity",
        {"time": "end"},
        "duration",
        "ms",
        keys=("process",),
        where="duration >= 0",
    ),
    Known(
        "MySQL, slow query log",
        "https://dev.mysql.com/doc/refman/8.4/en/slow-query-log.html",
        "lock_time",
        {"time": "end"},
        "query_time",
        "s",
        keys=("client", "user"),
    ),
    Known(
        "Prometheus, samples",
        "https://prometheus.io/docs/instrumenting/exposition_formats/",
        "metric|__name__",
        {"timestamp": "end", "time": "end"},
        "value",
        "",
        keys=("labels", "instance"),
    ),
    Known(
        "journald, JSON",
        "https://www.freedesktop.org/software/systemd/man/latest/systemd.journal-fields.html",
        "",
        {"__REALTIME_TIMESTAMP": ""},
        keys=("_SYSTEMD_UNIT", "SYSLOG_IDENTIFIER"),
    ),
)
"""A log is in the first of these formats whose columns it has."""


def known_format(columns: Collection[str]) -> Known | None:
    """The format of a log with these columns, or None."""
    return next((known for known in KNOWN if known.fits(columns)), None)
