"""`escapement ingest`: a log as a trace on disk."""
import argparse
from typing import Any

_DESCRIPTION = """\
Make a trace of a log. CSV, TSV, JSON lines, Parquet, Zeek logs and Apache or
nginx access logs are read, plain or gzipped, on Spark: on this machine, or with
--master on a cluster."""

_REQUESTS = """\
Each row is a request: it starts a timer, and cancels it when the answer came in
time. An answer that takes exactly the timeout comes too late; no duration (empty,
null, or - in a Zeek or access log) means that no answer came."""

_TOUCHES = """\
Each row is a sign of life: it arms the timer of its key again. A touch exactly at
the idle deadline comes too late, and starts a new timer."""

_REQUESTS_EXAMPLE = """\
example:
  escapement ingest requests dns.log.gz --time ts --duration rtt \\
      --timeout 5s --unit us --out dns-trace"""

_TOUCHES_EXAMPLE = """\
example:
  escapement ingest touches access.log.gz --time time --key client \\
      --idle 30s --out idle-trace"""


def register(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "ingest",
        help="make a trace of a log",
        description=_DESCRIPTION,
        epilog=f"{_REQUESTS_EXAMPLE}\n{_TOUCHES_EXAMPLE.partition(chr(10))[2]}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kinds = parser.add_subparsers(metavar="KIND", required=True, dest="kind")
    requests = _add_kind(kinds, "requests", "requests that may time out", _REQUESTS, _REQUESTS_EXAMPLE)
    add_request_options(requests, required=True)
    touches = _add_kind(kinds, "touches", "keys that may fall idle", _TOUCHES, _TOUCHES_EXAMPLE)
    add_touch_options(touches, required=True)
    for kind in (requests, touches):
        kind.add_argument("log", metavar="LOG", help="a file, or a URI that Spark can read")
        kind.add_argument("--time", required=True, metavar="COL", help="column of the time")
        kind.add_argument("--out", required=True, metavar="TRACE", help="directory to write")
        add_reading_options(kind)
        kind.add_argument("--shards", type=int, default=1, metavar="N", help="files of the trace (default: 1)")
        kind.add_argument("--force", action="store_true", help="replace the trace that is there")


def _add_kind(kinds: Any, name: str, summary: str, description: str, example: str) -> argparse.ArgumentParser:
    kind: argparse.ArgumentParser = kinds.add_parser(
        name,
        help=summary,
        description=description,
        epilog=example,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kind.set_defaults(run=run)
    return kind


def add_request_options(parser: Any, *, required: bool) -> None:
    """What only requests have."""
    parser.add_argument("--duration", required=required, metavar="COL", help="column of the time to the answer")
    parser.add_argument("--timeout", required=required, metavar="TIME", help="such as 5s, 200ms, 1500us")
    parser.add_argument(
        "--duration-unit", default="s", metavar="UNIT", help="of plain numbers in that column: us, ms, s (default: s)"
    )
    parser.add_argument(
        "--time-is", default="start", metavar="END", help="start or end: of the request (default: start)"
    )


def add_touch_options(parser: Any, *, required: bool) -> None:
    """What only touches have."""
    parser.add_argument("--key", required=required, metavar="COL", help="column that tells whose timer it is")
    parser.add_argument("--idle", required=required, metavar="TIME", help="such as 30s, 5m")


def add_reading_options(parser: Any) -> None:
    """How a log is read, whatever it is made into."""
    parser.add_argument("--unit", default="ms", metavar="UNIT", help="of the trace: us, ms, s (default: ms)")
    parser.add_argument(
        "--format", default="auto", metavar="NAME", help="csv, tsv, json, parquet, zeek, access (default: by its look)"
    )
    parser.add_argument(
        "--time-format",
        default="auto",
        metavar="NAME",
        help="epoch-s, epoch-ms, epoch-us, iso, access (default: by the first time)",
    )
    parser.add_argument("--strict", action="store_true", help="a row that cannot be read is an error")
    parser.add_argument("--master", metavar="URL", help="of a Spark cluster (default: this machine)")


def run(arguments: argparse.Namespace) -> None:
    """Write the trace and say what is in it."""
    from compare.pipeline.spark import require_spark

    require_spark()
    from compare.pipeline.ingest import Ingested, Options, ingest_requests, ingest_touches

    names = ("time", "unit", "format", "time_format", "shards", "strict", "force", "master")
    options = Options(**{name: getattr(arguments, name) for name in names})
    if arguments.kind == "requests":
        done: Ingested = ingest_requests(
            arguments.log,
            arguments.out,
            options,
            duration=arguments.duration,
            timeout=arguments.timeout,
            duration_unit=arguments.duration_unit,
            time_is=arguments.time_is,
        )
    else:
        done = ingest_touches(arguments.log, arguments.out, options, key=arguments.key, idle=arguments.idle)
    print(summary(done))


def summary(done: Any) -> str:
    """What came of a log, in a few lines."""
    totals = done.trace.totals
    lines = [
        f"{done.trace.path}: {totals['rows']:,} operations in {done.trace.unit} of {done.rows:,} rows",
        f"  starts {totals['starts']:,}, cancels {totals['cancels']:,}, arms {totals['arms']:,}; "
        f"ids {sum(shard.id_space for shard in done.trace.shards):,}",
    ]
    if done.unreadable:
        lines.append(f"  unreadable rows, left out: {done.unreadable:,}; the first:")
        lines += [f"    {example}" for example in done.examples]
    return "\n".join(lines)
