"""What the documentation says to type, and a command for each known format."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]

SECTION = re.search(r"## What to type\n(.*?)```\n", (ROOT / "docs/logs.md").read_text(), re.DOTALL)

KNOWN = r"""
wheelwork ingest requests alb.log --time request_creation_time --duration target_processing_time \
    --timeout 5s --out alb.trace
wheelwork ingest requests elb.log --time time --duration target_processing_time --timeout 5s \
    --out elb.trace
wheelwork ingest requests haproxy.log --time time --duration total_time --duration-unit ms \
    --timeout 5s --out haproxy.trace
wheelwork ingest requests tcp.log --time time --duration total_time --duration-unit ms --timeout \
    5s --out tcp.trace
wheelwork ingest requests envoy.log --time time --duration duration --duration-unit ms --timeout \
    5s --out envoy.trace
wheelwork ingest requests s3.log --time time --duration total_time --duration-unit ms --timeout \
    5s --out s3.trace
wheelwork ingest requests squid.log --time time --time-is end --duration elapsed --duration-unit \
    ms --timeout 5s --out squid.trace
wheelwork ingest requests postgres.log --time time --time-is end --duration duration \
    --duration-unit ms --where 'duration >= 0' --unit us --timeout 5s --out postgres.trace
wheelwork ingest requests postgres.csv --time time --time-is end --duration duration \
    --duration-unit ms --where 'duration >= 0' --unit us --timeout 5s --out queries.trace
wheelwork ingest requests mysql.log --time time --time-is end --duration query_time --unit us \
    --timeout 5s --out mysql.trace
wheelwork ingest touches redis.log --time time --key client --unit us --idle 30s --out \
    redis.trace
wheelwork ingest requests prometheus.txt --time time --time-is end --duration value --timeout 5s \
    --out samples.trace
wheelwork ingest requests app.logfmt --time time --time-is end --duration duration --timeout 5s \
    --where 'duration != ' --out app.trace
wheelwork ingest requests app.ltsv --time time --time-is end --duration reqtime --timeout 5s \
    --out ltsv.trace
wheelwork ingest requests iis.log --time date,time --time-is end --duration time-taken \
    --duration-unit ms --timeout 5s --out iis.trace
wheelwork ingest touches syslog.log --time time --key host --idle 30s --out hosts.trace
wheelwork ingest touches messages --time time --key host --idle 30s --out hosts.trace
wheelwork ingest touches journal.json --time __REALTIME_TIMESTAMP --key _SYSTEMD_UNIT --idle 30s \
    --out units.trace
wheelwork ingest touches hadoop.log --time time --key thread --idle 30s --out threads.trace
wheelwork ingest touches zookeeper.log --time time --key thread --idle 30s --out workers.trace
wheelwork ingest touches rsyslog.log --time time --key host --idle 30s --out hosts.trace
wheelwork ingest requests dns.log --time ts --duration rtt --timeout 5s --unit us --out dns.trace
"""

LINES = (SECTION[1] + KNOWN).replace("\\\n", " ").splitlines()

COMMANDS = [line for line in LINES if line.startswith("wheelwork ingest")]
