"""The formats of lines: a table of patterns."""

import re
from collections.abc import Mapping
from typing import NamedTuple


class Line(NamedTuple):
    """A format of lines.

    A line is matched with the first of the `patterns` that has the groups that are asked for; if it
    does not match, with the others. So a fast pattern may come first that only some lines match; it
    must find the same groups in these, unless it has all groups as well. Patterns are those of RE2
    and begin at the beginning of a line. Their named groups are the columns. The fields in
    the group `rest` are the columns extra1 to extra9, without `name=` and quotes. They end at
    spaces outside of quotes.
    """

    what: str  # what a line is: "it is not ..."
    patterns: tuple[str, ...]  # the last one has all groups
    example: str
    selects: bool = False  # whether other lines are to be expected between these
    sign: str = ""  # a pattern of some lines that tells the format, if the last one does not
    time_is: str = ""  # "start" or "end" of what a line tells, if all programs agree
    most: bool = False  # whether half of the first lines must match: one may by accident
    joins: str = ""  # the lines of a record, which are joined with spaces; a group

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        groups = re.compile(self.patterns[-1]).groupindex
        extras = EXTRAS if REST in groups else ()
        return (*(name for name in groups if name != REST), *extras)


LONGEST = 10_000
"""Characters of a line that tell its format. Python takes quadratic time for some lines."""
REST = "rest"
EXTRAS = tuple(f"extra{number}" for number in range(1, 10))

_CLIENT = r"^(?P<client>[^ ]+) (?P<ident>[^ ]+) (?P<user>[^ ]+) \[(?P<time>[^\]]+)\] "
_STATUS = r'"(?P<request>[^"]*)" (?P<status>[0-9]{3}|-) (?P<bytes>[0-9]+|-)'
_ANY_REQUEST = (
    r"^(?P<client>[^ ]+) (?P<ident>[^ ]+) (?P<user>.*?) \[(?P<time>[^\]]+)\] "
    r'"(?P<request>(?P<method>[^ ]*) (?P<path>[^ ]*) (?P<protocol>[^ ]*?)|.*?)" '
    r"(?P<status>[0-9]{3}|-) (?P<bytes>[0-9]+|-)"
)
QUOTED = r'[^"\\]*(?:\\.[^"\\]*)*'

_WORD = "[^ ]+"
_TEXT = rf'"{QUOTED}"'


def _balancer(before: str, behind: str) -> tuple[str, str]:
    """The patterns of AWS's load balancers. A time of -1 means that this never happened.

    The first one ends where RE2 gets slower, and has no addresses of IPv6 for the same reason.
    """
    times = (
        rf"(?:-1|(?P<{part}_processing_time>[0-9.]+))" for part in ("request", "target", "response")
    )
    client = f"(?P<client>{_WORD})"
    head = (
        rf"^{before}(?P<time>[0-9-]{{10}}T{_WORD}) (?P<balancer>{_WORD})"
        rf" {client}:(?P<client_port>[0-9]+) (?P<target>{_WORD}) {' '.join(times)}"
        r" (?P<status>[0-9]{3}|-) (?P<target_status>[0-9]{3}|-|0) (?P<received>[0-9]+)"
        r' (?P<sent>[0-9]+) "'
    )
    return (
        head.replace(client, "(?P<client>[^ :]+)"),
        rf'{head}(?P<request>(?P<method>[^ "]+) (?P<url>[^ "]+) [^"]*)"'
        rf' "(?P<agent>{QUOTED})" {_WORD} {_WORD}{behind}$',
    )


_HAPROXY_TIMES = "/".join(
    rf"(?:-1|(?P<{part}_time>[0-9]+))" for part in ("request", "wait", "connect", "response")
)

_APP = r"(?P<app>[^ :\[]+)(?:\[(?P<process>[^\]]*)\])?:"
_ISO_SYSLOG = (
    rf"^(?:<(?P<priority>[0-9]{{1,3}})>)?(?P<time>[0-9-]{{10}}T{_WORD}) (?P<host>{_WORD}) "
)
_ISO_SYSLOG_SIGN = (
    r"(?:<[0-9]{1,3}>)?[0-9-]{10}T[0-9:.]{8,15}"
    # It writes +00:00 rather than Z. A process tells it, too.
    r"(?:[+-][0-9]{2}:[0-9]{2} [\w.:-]+ [^\s:\[]+(?:\[[^\]]*\])?|Z [\w.:-]+ [^\s:\[]+\[[0-9]+\]):"
)

_LOGGED = (
    r"^\[?(?P<time>[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:]{8}(?:[.,][0-9]+)?(?:Z|[+-][0-9:]{4,6})?)"
    r"\]?[ -]+"
)
_LEVEL = (
    r"\[?(?P<level>TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|SEVERE|CRITICAL|FATAL)\b\]?[ :-]*"
)

_CSV_TEXT = r'(?:"(?:[^"]|"")*")?'
_SECONDS = r"[0-9]+\.[0-9]+"
_POSTGRES_TIME = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}(?:\.[0-9]{3})? (?:[A-Z]{2,5}|[+-][0-9]{2,4})"
)
_POSTGRES_TOLD = r"duration: (?P<duration>[0-9.]+) ms"
_SEVERITY = (
    "(?P<severity>DEBUG[1-5]?|LOG|INFO|NOTICE|WARNING|ERROR|FATAL|PANIC|DETAIL|HINT|STATEMENT)"
)

LINES: Mapping[str, Line] = {
    # Apache and nginx, common or combined, with further fields. A user agent may be cut off. In the
    # first two patterns a character decides what comes next, which RE2 matches many times faster.
    "access": Line(
        "a line of an access log",
        (
            _CLIENT + _STATUS,
            rf'{_CLIENT}{_STATUS} "(?P<referrer>{QUOTED})" "(?P<agent>{QUOTED})"(?P<rest>.*)',
            rf'{_ANY_REQUEST} (?P<referrer>-) "(?P<agent>{QUOTED})"(?P<rest>.*)',
            rf'{_ANY_REQUEST}(?: "(?P<referrer>{QUOTED})"(?: "(?P<agent>{QUOTED})(?:"|$))?)?'
            r"(?P<rest>.*)$",
        ),
        '10.0.0.1 - frank [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 5 "-" "curl" rt=0.01',
        # A name of a user has no spaces, or stands behind a -. A host may stand before the client.
        sign=rf'^(?:[^ ]+:[0-9]+ )?[^ "]+ (?:- .*?|[^ ]+ [^ ]+) \[[^\]]+\] {_STATUS}',
        most=True,
    ),
    # "Access log entries" in AWS's guide.
    "alb": Line(
        "a line of an application load balancer's log",
        _balancer(
            "(?P<type>https?|h2|grpcs|wss?) ",
            rf' {_WORD} "(?P<trace_id>[^"]*)" {_TEXT} {_TEXT} {_WORD}'
            rf" (?P<request_creation_time>{_WORD}).*",
        ),
        "https 2018-07-02T22:23:00.186641Z app/lb/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80"
        ' 0.086 0.048 -1 200 200 0 57 "GET https://www.example.com:443/ HTTP/1.1" "curl/7.46.0"'
        " ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:us-east-2:1:target/a"
        ' "Root=1-58337281-1d84f3d73c47ec4e58577259" "www.example.com" "arn:aws:acm:us-east-2:1"'
        ' 1 2018-07-02T22:22:48.364000Z "authenticate,forward" "-" "-" "10.0.0.1:80" "200" "-" "-"',
    ),
    "elb": Line(
        "a line of a classic load balancer's log",
        _balancer("", ""),
        "2015-05-13T23:39:43.945958Z lb 192.168.131.39:2817 10.0.0.1:80 0.000073 0.001048 0.000057"
        ' 200 200 0 29 "GET http://www.example.com:80/ HTTP/1.1" "curl/7.38.0" - -',
    ),
    # "Amazon S3 server access log format" in AWS's guide.
    "s3": Line(
        "a line of S3's server access log",
        (
            rf"^(?P<owner>[0-9a-z-]+) (?P<bucket>{_WORD}) \[(?P<time>[^\]]+)\] (?P<client>{_WORD})"
            rf" (?P<requester>{_WORD}) (?P<request_id>{_WORD}) (?P<operation>[A-Z][A-Z0-9._]*)"
            rf' (?P<object>{_WORD}) (?:"(?P<request>{QUOTED})"|-) (?P<status>[0-9]{{3}}|-) {_WORD}'
            r" (?P<sent>[0-9]+|-) (?P<size>[0-9]+|-) (?P<total_time>[0-9]+|-)"
            rf' (?P<turn_around_time>[0-9]+|-) (?:"{QUOTED}"|-) (?:"(?P<agent>{QUOTED})"|-) .*$',
        ),
        "79a59df900b949e5 bucket [06/Feb/2019:00:00:38 +0000] 192.0.2.3 79a59df900b949e5"
        ' 3E57427F3EXAMPLE REST.GET.OBJECT a.jpg "GET /bucket/a.jpg HTTP/1.1" 200 - 113 113 7 6'
        ' "-" "S3Console/0.4" - s9lzHYrFp76ZVxRcpX9+5cjAnEH2ROuNkd2BHfIa6UkFVdtjf5mKR3/eTPFvsiP/'
        " SigV4 ECDHE-RSA-AES128-GCM-SHA256 AuthHeader bucket.s3.amazonaws.com TLSv1.2 - -",
    ),
    # "Squid native access.log format" in Squid's wiki.
    "squid": Line(
        "a line of Squid's access log",
        (
            rf"^(?P<time>{_SECONDS}) +(?P<elapsed>[0-9]+) (?P<client>{_WORD})"
            r" (?P<result>[A-Z_]+)/(?P<status>[0-9]{3}) (?P<bytes>[0-9]+) (?P<method>[A-Z_]+)"
            rf" (?P<url>{_WORD}) (?P<user>{_WORD}) (?P<hierarchy>[A-Z_]+)/(?P<server>{_WORD})"
            rf" (?P<type>{_WORD}).*$",
        ),
        "1286536309.075    180 192.0.2.68 TCP_MISS/200 412 GET http://example.org/a -"
        " DIRECT/192.0.2.1 text/html",
    ),
    # log_line_prefix begins with %m or %t and has [%p], as by default.
    "postgres": Line(
        "a line of PostgreSQL's log",
        (
            rf"^(?P<time>{_POSTGRES_TIME}) (?:[^ ]+ )*?\[(?P<process>[0-9]+)(?:-[0-9]+)?\].*?"
            rf"\b{_SEVERITY}:  (?:{_POSTGRES_TOLD}\b.*|.*)$",
        ),
        "2024-05-01 12:00:00.123 UTC [4711] LOG:  duration: 12.345 ms  statement: SELECT 1",
        selects=True,
    ),
    # log_destination = csvlog
    "postgres-csv": Line(
        "a line of PostgreSQL's csvlog",
        (
            rf'^(?P<time>{_POSTGRES_TIME}),(?:"(?P<user>[^"]*)")?,(?:"(?P<database>[^"]*)")?,'
            rf'(?P<process>[0-9]*),(?:"(?P<client>[^"]*)")?,[0-9a-f.]*,[0-9]*,{_CSV_TEXT},'
            rf'[^,]*,[^,]*,[0-9]*,{_SEVERITY},[0-9A-Z]{{5}},(?:"{_POSTGRES_TOLD}\b.*|.*)$',
        ),
        '2024-05-01 12:00:00.123 UTC,"app","shop",4711,"10.0.0.1:51234",6632.1267,7,"SELECT",'
        '2024-05-01 09:00:00 UTC,3/7,0,LOG,00000,"duration: 12.345 ms  statement: SELECT 1",,,,,,,'
        ',,"psql","client backend",,0',
        selects=True,
    ),
    # The lines of a statement follow, as other lines.
    "mysql-slow": Line(
        "the head of a query in MySQL's slow log",
        (
            rf"^(?:# Time: (?P<time>{_WORD}(?: [ 0-9][0-9:]{{7}})?) *)?"
            r"# User@Host: (?P<user>[^ \[]*)(?:\[[^\]]*\])? @ *(?P<host>[^ \[]*)"
            r" *\[(?P<client>[^\]]*)\](?: +Id: *(?P<process>[0-9]+))?(?: # [A-Z]\w*: .*?)?"
            r" *# Query_time: (?P<query_time>[0-9.]+) +Lock_time: (?P<lock_time>[0-9.]+).*$",
        ),
        "# Time: 2024-05-01T12:00:00.123456Z # User@Host: app[app] @ web1 [10.0.0.1]  Id:    12"
        " # Query_time: 5.012345  Lock_time: 0.000012 Rows_sent: 1  Rows_examined: 1000",
        selects=True,
        joins=r"(?m)((?:^# [A-Z][A-Za-z_@]*: [^\n]*\n)+)",
    ),
    "redis": Line(
        "a line of Redis's MONITOR",
        (
            rf"^(?P<time>{_SECONDS}) \[(?P<database>[0-9]+) (?P<client>[^\] ]*?)(?::[0-9]+)?\]"
            rf' "(?P<command>{QUOTED})"(?: .*)?$',
        ),
        '1339518083.107412 [0 127.0.0.1:60866] "keys" "*"',
        selects=True,  # it begins with OK
    ),
    "prometheus": Line(
        "a sample with a time in Prometheus's text format",
        (
            r"^(?P<metric>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?P<labels>[^}]*)\})? +(?P<value>[^ ]+) +"
            r"(?P<time>[0-9]{13})$",
        ),
        'http_request_duration_seconds{method="post",code="200"} 0.027 1395066363000',
        selects=True,
    ),
    # "HTTP log format" in HAProxy's configuration manual.
    "haproxy": Line(
        "a line of HAProxy's HTTP log",
        (
            rf"^(?:.*? )?(?P<client>{_WORD}):(?P<client_port>[0-9]+) \[(?P<time>[^\]]+)\]"
            rf" (?P<frontend>{_WORD}) (?P<backend>[^ /]+)/(?P<server>{_WORD}) {_HAPROXY_TIMES}"
            r"/\+?(?P<total_time>[0-9]+) (?P<status>[0-9]{3}|-1|-) \+?(?P<bytes>[0-9]+) .* "
            r'"(?P<request>[^"]*)"?$',
        ),
        "Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655]"
        " http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {}"
        ' "GET /index.html HTTP/1.1"',
    ),
    # "TCP log format" in it.
    "haproxy-tcp": Line(
        "a line of HAProxy's TCP log",
        (
            rf"^(?:.*? )?(?P<client>{_WORD}):(?P<client_port>[0-9]+) \[(?P<time>[^\]]+)\]"
            rf" (?P<frontend>{_WORD}) (?P<backend>[^ /]+)/(?P<server>{_WORD})"
            r" (?:-1|(?P<wait_time>[0-9]+))/(?:-1|(?P<connect_time>[0-9]+))"
            r"/\+?(?P<total_time>[0-9]+) \+?(?P<bytes>[0-9]+) [A-Za-z-]{2} [0-9]+/[0-9]+/[0-9/+]+"
            r" [0-9]+/[0-9]+$",
        ),
        "Feb  6 12:12:56 localhost haproxy[14387]: 10.0.1.2:33313 [06/Feb/2009:12:12:51.443] fnt"
        " bck/srv1 0/0/5007 212 -- 0/0/0/0/3 0/0",
    ),
    # "Default format string" in Envoy's documentation.
    "envoy": Line(
        "a line of Envoy's access log",
        (
            r'^\[(?P<time>[0-9-]+T[^\]]+)\] "(?P<request>(?P<method>[^ "]*) (?P<path>[^ "]*)'
            r' [^"]*)" (?P<status>[0-9]+) (?P<flags>[^ ]+)(?: .*?)? (?P<received>[0-9]+)'
            r" (?P<sent>[0-9]+) (?P<duration>[0-9]+|-) (?P<upstream_time>[0-9]+|-)"
            rf' "(?P<client>[^"]*)" {_TEXT} "(?P<request_id>[^"]*)" {_TEXT}'
            r' "(?P<upstream>[^"]*)".*$',
        ),
        '[2016-04-15T20:17:00.310Z] "POST /api/v1/locations HTTP/2" 204 - 154 0 226 100'
        ' "10.0.35.28" "nsq2http" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "locations"'
        ' "tcp://10.0.2.1:80"',
    ),
    "syslog": Line(
        "a line of RFC 5424",
        (
            rf"^<(?P<priority>[0-9]{{1,3}})>1 (?P<time>{_WORD}) (?P<host>{_WORD}) (?P<app>{_WORD})"
            rf" (?P<process>{_WORD}) (?P<message_id>{_WORD})"
            r" (?P<data>-|(?:\[[^\]\\]*(?:\\.[^\]\\]*)*\])+)(?: (?P<message>.*))?$",
        ),
        "<165>1 2003-10-11T22:14:15.003Z host.example.com evntslog 811 ID47"
        ' [exampleSDID@32473 iut="3"] An application event',
    ),
    "syslog-bsd": Line(
        "a line of RFC 3164",
        (
            r"^(?:<(?P<priority>[0-9]{1,3})>)?(?P<time>[A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8})"
            rf" (?P<host>{_WORD}) (?P<app>[^ :\[]+)(?:\[(?P<process>[^\]]*)\])?: (?P<message>.*)$",
            # A name may have spaces before its process or a version. There may be no name.
            r"^(?:<(?P<priority>[0-9]{1,3})>)?(?P<time>[A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8})"
            rf" (?P<host>{_WORD})(?: (?:(?P<app>[^:\[]+?)(?:\[(?P<process>[^\]]*)\](?: \([^)]*\))?"
            r"| [0-9][0-9.]*): )?(?P<message>.*))?$",
        ),
        "<34>Oct 11 22:14:15 mymachine su[77]: 'su root' failed for lonvick on /dev/pts/8",
    ),
    # The pattern in its conf/logback.xml.
    "zookeeper": Line(
        "a line of ZooKeeper's log",
        (
            rf"{_LOGGED}\[myid:(?P<server>[^\]]*)\] - {_LEVEL}"
            r"\[(?P<thread>[^\]]*):(?P<logger>[^:\]]+)@[0-9-]+\] - (?P<message>.*)$",
        ),
        "2024-05-01 12:00:00,123 [myid:1] - INFO  [main:o.a.z.s.ZooKeeperServer@628] - Started",
        selects=True,
        time_is="end",
    ),
    # Usual layouts of log4j, Logback, Spring and Python's logging. A message may have more lines.
    "logging": Line(
        "a line with a time and a level",
        (
            rf"{_LOGGED}{_LEVEL}[^\[]{{0,20}}\[ *(?P<thread>[^\]]*)\] (?P<logger>[^ :]+) *: "
            "(?P<message>.*)$",
            rf"{_LOGGED}(?:\[ *(?P<thread>[^\]]*)\] )?(?:(?P<logger>{_WORD}) - )?{_LEVEL}"
            "(?P<message>.*)$",
        ),
        "2015-10-18 18:01:47,978 INFO [main] org.example.Server: Started",
        selects=True,
        time_is="end",
    ),
    # rsyslog's RSYSLOG_FileFormat: RFC 3164 with a time of ISO 8601.
    "rsyslog": Line(
        "a line of rsyslog with a time of ISO 8601",
        (rf"{_ISO_SYSLOG}(?:{_APP} ?)?(?P<message>.*)$",),
        "2024-05-01T12:00:00.1+02:00 web1 sshd[77]: Accepted publickey for frank",
        sign=_ISO_SYSLOG_SIGN,
        most=True,
    ),
}
"""Name -> format. A new one is a new row."""
