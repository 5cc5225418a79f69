"""`wheelwork stream`: which connections fall idle, in a directory of files that grows."""

import sys
from typing import TYPE_CHECKING, Any

import click

from compare.cli import options
from compare.cli.text import entry, plural

if TYPE_CHECKING:
    from compare.pipeline.stream import Seen


@options.command("""\
Rules: A connection is idle when it has no event for longer than --idle; an
event exactly that long after the last one still belongs to it. It is reported
when the watermark (the latest time of all events so far, less --delay) has
passed its last event + idle. An event older than the watermark is late: it
does not count and is written to kind=rejected, as is an event without key or
time. Time is that of the events. While no event arrives the watermark stands
still and nothing is reported, unless --heartbeat lets the machine's clock
move it.

Files: SOURCE holds CSV or TSV with a header, JSON lines or Parquet, all in
one format. Rename a file into SOURCE once it is complete. The directory --out
gets kind=idle (key, first_time, last_time, expired_at, events) and
kind=rejected (with a problem). Read them with Spark, which skips what a crash
left behind. Rerun the command with the same --checkpoint to resume: nothing
is lost and nothing is reported twice. Ctrl-C stops the command; with --follow
this is the normal end (exit code 0).

\b
Example:
  wheelwork stream incoming/ --time ts --key client --idle 30s --delay 10s \\
      --checkpoint state/ --out idle/ --follow""")
@click.argument("source", type=options.PLACE)
@options.section(
    "What the events mean",
    options.time(required=True),
    options.touches(required=True),
    options.option("--delay", "TIME", "How late an event may arrive.", default="10s"),
    options.formats(options.STREAM_FORMATS),
)
@options.option("--checkpoint", options.Place("dir"), "Directory for the state.", required=True)
@options.option("--out", options.Place("dir"), "Directory to write.", required=True)
@options.option("--out-format", ("parquet", "csv", "json"), "Format to write.", default="parquet")
@options.flag("--follow", "Run until Ctrl-C, not only until all files are read.")
@options.flag("--heartbeat", "With --follow: let the machine's clock move time, too.")
@options.option("--shards", options.COUNT, "Groups into which the keys are divided.", default=8)
@options.option(
    "--batch-files", options.COUNT, "Maximum number of files in a micro-batch.", default=100
)
@options.master
def stream(master: str | None, **settings: Any) -> int:
    """Report which keys of a stream of (time, key) events fall idle, and when.

    SOURCE is a directory of files that may grow. The rows are the same as those
    of session_window in Spark.
    """
    from compare.cli.main import INTERRUPTED
    from compare.pipeline.stream import Watch, check, follow, start
    from compare.spark.session import spark_session

    watch = Watch(**settings)
    check(watch)
    terminal = sys.stderr.isatty()
    with spark_session(master) as session:
        seen, interrupted = follow(start(session, watch), _show if terminal else None)
    if terminal:
        click.echo(err=True)
    click.echo(_summary(seen, watch.out, watch.checkpoint))
    return INTERRUPTED if interrupted and not watch.follow else 0


def _show(seen: "Seen") -> None:
    line = f"\r{seen.rows:,} rows, {seen.expired:,} idle, {seen.late:,} late"
    click.echo(line, nl=False, err=True)


def _summary(seen: "Seen", out: str, checkpoint: str) -> str:
    rejected = {"late": seen.late, "unusable": seen.unusable}
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in rejected.items() if number)
    entries = {
        "rows": f"{seen.rows:,}",
        "idle": plural(seen.expired, "connection"),
        "rejected": kinds or "none",
        "out": out,
        "checkpoint": f"{checkpoint} (rerun the command to resume)",
    }
    return "\n".join(entry(*pair) for pair in entries.items())
