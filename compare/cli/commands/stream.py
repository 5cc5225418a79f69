"""`wheelwork stream`: which connections fall idle, in a directory of files that grows."""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from compare.arguments import count

if TYPE_CHECKING:
    from compare.pipeline.stream import Seen

_DESCRIPTION = """\
Watch a stream of (time, key) events, and tell which keys fall idle, and when:
the same rows as Spark's session_window, at a higher rate."""

_EPILOG = """\
rules:
  A connection is idle when it has no event for longer than --idle; an event
  exactly that long after the last one still belongs to it. It is told when the
  watermark, the latest time of all events so far less --delay, has passed its
  last event + idle. An event older than the watermark is late: it does not
  count, and is written to kind=rejected, as is one without key or time.
  Time is that of the events. When no event comes at all the watermark stands
  still, and nobody falls idle; with --heartbeat the machine's clock moves it.

files:
  SOURCE has CSV or TSV with a header, JSON lines or Parquet, all of one form;
  put a file there by renaming it when it is complete. Below --out come
  kind=idle (key, first_time, last_time, expired_at, events) and kind=rejected
  (with a problem); read them with Spark, which passes over what a crash left
  behind. Started again with the same --checkpoint it goes on where it was:
  nothing is lost, nothing comes twice. Ctrl-C stops it, with --follow as meant
  (exit code 0).

example:
  wheelwork stream incoming/ --time ts --key client --idle 30s --delay 10s \\
      --checkpoint state/ --out idle/ --follow"""


def register(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "stream",
        help="tell which connections of a stream fall idle",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "source", metavar="SOURCE", help="a directory of files, to which more may come"
    )
    parser.add_argument("--time", required=True, metavar="COL", help="column of the time")
    parser.add_argument(
        "--key", required=True, metavar="COL", help="column that tells whose event it is"
    )
    parser.add_argument("--idle", required=True, metavar="TIME", help="such as 30s")
    parser.add_argument(
        "--checkpoint", required=True, metavar="DIR", help="where the stream's state is kept"
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="directory to write")
    parser.add_argument(
        "--delay", default="10s", metavar="TIME", help="how late an event may come (default: 10s)"
    )
    parser.add_argument(
        "--follow",
        action="store_true",
        help="go on until Ctrl-C, not only until all files are read",
    )
    parser.add_argument(
        "--heartbeat", action="store_true", help="with --follow: the clock moves time, too"
    )
    parser.add_argument(
        "--shards",
        type=count,
        default=8,
        metavar="N",
        help="groups that the keys are divided into (default: 8)",
    )
    parser.add_argument(
        "--format",
        default="parquet",
        choices=("parquet", "csv", "json"),
        help="to write (default: parquet)",
    )
    parser.add_argument(
        "--read",
        default="auto",
        choices=("auto", "csv", "tsv", "jsonl", "parquet"),
        help="format of SOURCE (default: auto)",
    )
    parser.add_argument(
        "--time-format",
        default="auto",
        help="of its times, as in `ingest`: epoch-s, epoch-ms, iso, ... (default: auto)",
    )
    parser.add_argument(
        "--batch-files",
        type=count,
        default=100,
        metavar="N",
        help="most files at once (default: 100)",
    )
    parser.add_argument(
        "--master", metavar="URL", help="a Spark master (default: local[*], this machine)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Watch until the files are read, or until Ctrl-C."""
    from compare.spark.session import require_spark, spark_session

    require_spark()
    from compare.cli.main import INTERRUPTED
    from compare.logs.parsing import FORMS
    from compare.pipeline.stream import StreamError, Watch, check, follow, start

    if arguments.time_format not in ("auto", *FORMS):
        raise StreamError(
            f"time format {arguments.time_format!r} is none of auto, {', '.join(FORMS)}"
        )
    watch = Watch(
        source=arguments.source,
        time=arguments.time,
        key=arguments.key,
        idle=arguments.idle,
        delay=arguments.delay,
        checkpoint=arguments.checkpoint,
        out=arguments.out,
        shards=arguments.shards,
        format=arguments.read,
        time_format=arguments.time_format,
        out_format=arguments.format,
        batch_files=arguments.batch_files,
        follow=arguments.follow,
        heartbeat=arguments.heartbeat,
    )
    check(watch)
    terminal = sys.stderr.isatty()
    with spark_session(arguments.master) as session:
        seen, interrupted = follow(start(session, watch), _tell if terminal else None)
    if terminal:
        print(file=sys.stderr)
    print(_summary(seen, arguments))
    return INTERRUPTED if interrupted and not arguments.follow else 0


def _tell(seen: "Seen") -> None:
    print(
        f"\r{seen.rows:,} rows, {seen.expired:,} idle, {seen.late:,} late",
        end="",
        file=sys.stderr,
        flush=True,
    )


def _summary(seen: "Seen", arguments: argparse.Namespace) -> str:
    rejected = [
        f"{number:,} {what}"
        for number, what in ((seen.late, "late"), (seen.unusable, "unusable"))
        if number
    ]
    return "\n".join(
        [
            f"rows        {seen.rows:,}",
            f"idle        {seen.expired:,} connections",
            f"rejected    {', '.join(rejected) or 'none'}",
            f"out         {arguments.out}",
            f"checkpoint  {arguments.checkpoint}: to go on, the same command again",
        ]
    )
