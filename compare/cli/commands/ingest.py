"""`wheelwork ingest`: a log becomes a trace."""

import argparse
from typing import TYPE_CHECKING, Any

from compare.arguments import count

if TYPE_CHECKING:
    from compare.pipeline.ingest import Ingested, Options

_FORMATS = ("auto", "csv", "tsv", "jsonl", "parquet", "zeek", "access")
_TIME_FORMATS = ("auto", "epoch-s", "epoch-ms", "epoch-us", "epoch-ns", "iso", "access")
_DURATION_UNITS = ("s", "ms", "us", "ns")
_UNITS = ("us", "ms", "s")

_LOGS = """\
logs:
  CSV and TSV with a header, JSON lines, Parquet, Zeek logs, and Apache/nginx
  access logs (columns client, ident, user, time, request, method, path,
  protocol, status, bytes, referrer, agent, and extra1 to extra9 for what stands
  behind them); plain or packed with gzip; rows in any order.
  Nothing, null and `-` stand for no value.

times:
  Numbers since 1970, ISO 8601 (UTC where no zone is given), or as in access
  logs. With auto, the first value that fits a format decides for the whole
  column; numbers are seconds below 10^11, milliseconds below 10^14,
  microseconds below 10^17, nanoseconds from there on. Digits are read exactly,
  and times are rounded down to the unit.
"""

_REQUESTS = """\
Each row of LOG schedules a timer at its start, due after the timeout, and cancels
it at its end if that comes earlier. An answer that takes exactly the timeout
comes too late; a row without a duration was never answered."""

_TOUCHES = """\
Each row of LOG re-arms the timer of its key, to fire when the key has been idle
for so long. A touch exactly at the deadline comes too late."""

_EXAMPLE = """\
example:
"""
_REQUESTS_EXAMPLE = """\
  wheelwork ingest requests dns.log.gz --time ts --duration rtt \\
      --timeout 5s --unit us --out dns.trace
"""
_TOUCHES_EXAMPLE = """\
  wheelwork ingest touches access.log.gz --time time --key client \\
      --idle 30s --out clients.trace
"""


def register(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "ingest",
        help="make a trace of a log",
        description="Make a trace of a real log, so that timers can be compared on your own traffic.",
        epilog=_EXAMPLE + _REQUESTS_EXAMPLE + _TOUCHES_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kinds = parser.add_subparsers(title="kinds of logs", metavar="KIND", required=True)
    requests = _add_kind(
        kinds,
        "requests",
        "each row starts a timer, and cancels it if the answer came in time",
        _REQUESTS,
        _REQUESTS_EXAMPLE,
    )
    add_request_options(requests.add_argument_group("what the rows mean"), required=True)
    requests.set_defaults(run=_run_requests)
    touches = _add_kind(
        kinds, "touches", "each row re-arms the timer of its key", _TOUCHES, _TOUCHES_EXAMPLE
    )
    add_touch_options(touches.add_argument_group("what the rows mean"), required=True)
    touches.set_defaults(run=_run_touches)
    for kind in (requests, touches):
        add_reading_options(kind.add_argument_group("how to read the log"))


def _add_kind(
    kinds: Any, name: str, short: str, description: str, example: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = kinds.add_parser(
        name,
        help=short,
        description=description,
        epilog=f"{_LOGS}\n{_EXAMPLE}{example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("log", metavar="LOG", help="a file, or a URI that Spark can read")
    parser.add_argument("--out", required=True, metavar="TRACE", help="directory to write")
    parser.add_argument(
        "--force", action="store_true", help="replace the trace there, if there is one"
    )
    parser.add_argument(
        "--shards", type=count, default=1, metavar="N", help="files to divide it into (default: 1)"
    )
    parser.add_argument("--time", required=True, metavar="COL", help="column of the time")
    return parser


def add_request_options(group: Any, required: bool) -> None:
    """Add what a log of requests needs, besides --time."""
    group.add_argument(
        "--duration", required=required, metavar="COL", help="column of the time until the answer"
    )
    group.add_argument("--timeout", required=required, metavar="TIME", help="such as 200ms or 5s")
    group.add_argument(
        "--duration-unit",
        choices=_DURATION_UNITS,
        default="s",
        help="of plain numbers in that column (default: s)",
    )
    group.add_argument(
        "--time-is",
        choices=("start", "end"),
        default="start",
        help="what the time column holds; some servers write the time at which a request ended (default: start)",
    )


def add_touch_options(group: Any, required: bool) -> None:
    """Add what a log of touches needs, besides --time."""
    group.add_argument(
        "--key", required=required, metavar="COL", help="column that tells whose timer it is"
    )
    group.add_argument("--idle", required=required, metavar="TIME", help="such as 30s")


def add_reading_options(group: Any) -> None:
    """Add what any log can need."""
    group.add_argument(
        "--unit", choices=_UNITS, default="ms", help="of the trace's times (default: ms)"
    )
    group.add_argument(
        "--format", choices=_FORMATS, default="auto", help="of the log (default: auto)"
    )
    group.add_argument(
        "--time-format", choices=_TIME_FORMATS, default="auto", help="of its times (default: auto)"
    )
    group.add_argument(
        "--strict", action="store_true", help="a row that would be left out is an error"
    )
    group.add_argument(
        "--unique",
        metavar="COL",
        help="leave out rows whose text in this column an earlier row has",
    )
    group.add_argument(
        "--in-order-within",
        metavar="TIME",
        help="leave out rows that are further behind the rows before them than this, such as 10s",
    )
    group.add_argument(
        "--master", metavar="URL", help="a Spark master (default: local[*], this machine)"
    )


def _options(arguments: argparse.Namespace) -> "Options":
    from compare.pipeline.ingest import Options

    return Options(
        time=arguments.time,
        unit=arguments.unit,
        format=arguments.format,
        time_format=arguments.time_format,
        shards=arguments.shards,
        strict=arguments.strict,
        unique=arguments.unique,
        in_order_within=arguments.in_order_within,
        force=arguments.force,
        master=arguments.master,
    )


def _run_requests(arguments: argparse.Namespace) -> None:
    from compare.spark.session import require_spark

    require_spark()
    from compare.pipeline.ingest import ingest_requests

    ingested = ingest_requests(
        arguments.log,
        arguments.out,
        _options(arguments),
        duration=arguments.duration,
        timeout=arguments.timeout,
        duration_unit=arguments.duration_unit,
        time_is=arguments.time_is,
    )
    print(summary(ingested))


def _run_touches(arguments: argparse.Namespace) -> None:
    from compare.spark.session import require_spark

    require_spark()
    from compare.pipeline.ingest import ingest_touches

    ingested = ingest_touches(
        arguments.log, arguments.out, _options(arguments), key=arguments.key, idle=arguments.idle
    )
    print(summary(ingested))


def summary(ingested: "Ingested") -> str:
    """What came of a log, for people."""
    from compare.tapes.trace import REJECTED

    trace, rows, examples = ingested.trace, ingested.rows, ingested.examples
    totals = trace.totals
    labels = {"starts": "starts", "cancels": "cancels", "rearms": "re-arms", "arms": "arms"}
    operations = ", ".join(
        f"{totals[name]:,} {label}" for name, label in labels.items() if totals[name]
    )
    shards = f" in {len(trace.shards)} shards" if len(trace.shards) > 1 else ""
    kinds = {
        "unreadable": ingested.unreadable,
        "duplicate": ingested.duplicate,
        "late": ingested.late,
    }
    count = sum(kinds.values())
    words = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items() if number)
    left_out = f", of which {words} left out (in {REJECTED})" if count else ""
    more = [f"... and {count - len(examples):,} more"] if count > len(examples) else []
    return "\n".join(
        [
            f"rows        {rows:,}{left_out}",
            *(f"            {line}" for line in [*examples, *more]),
            f"operations  {totals['rows']:,}: {operations}",
            f"ids         {max(shard.id_space for shard in trace.shards):,}, the most in use at once",
            f"unit        {trace.unit}",
            f"trace       {trace.path}{shards}",
        ]
    )
