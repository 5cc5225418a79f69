"""`wheelwork ingest`: turn a log into a trace."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from compare.cli import options
from compare.cli.text import labelled, operations_text

if TYPE_CHECKING:
    from compare.pipeline.ingest import Ingested
    from compare.tapes.trace import Trace

_LOGS = """\
Logs: CSV and TSV with a header, JSON lines, Parquet, Zeek logs, and Apache or
nginx access logs (columns client, ident, user, time, request, method, path,
protocol, status, bytes, referrer, agent, and extra1 to extra9 for more);
plain or compressed with gzip; rows in any order. An empty value, null and `-`
all mean no value.

Times: numbers since 1970, ISO 8601 (UTC if no zone is given), or as in access
logs. With auto, the first value that fits a format decides for the whole
column. Numbers below 10^11 are seconds, below 10^14 milliseconds, below 10^17
microseconds, and above that nanoseconds. Times are parsed exactly and then
rounded down to the unit.

\b
Example:
"""
_REQUESTS = """\
  wheelwork ingest requests dns.log.gz --time ts --duration rtt \\
      --timeout 5s --unit us --out dns.trace"""
_TOUCHES = """\
  wheelwork ingest touches access.log.gz --time time --key client \\
      --idle 30s --out clients.trace"""


@click.group(no_args_is_help=False, epilog=f"\b\nExamples:\n{_REQUESTS}\n{_TOUCHES}")
def ingest() -> None:
    """Turn a real log into a trace, to compare timers on your own traffic."""


def _log_command(
    example: str, rows: options.Decorator
) -> Callable[[Callable[..., None]], click.Command]:
    """Turn a function into the command for one kind of log."""
    declare = options.together(
        click.argument("log", type=options.PLACE),
        options.trace(required=True),
        options.section("What the rows mean", options.time(required=True), rows),
        options.section("How the log is read", options.reading),
    )
    command = ingest.command(cls=options.Command, epilog=_LOGS + example)
    return lambda function: command(declare(function))


@_log_command(_REQUESTS, options.requests(required=True))
def requests(**given: Any) -> None:
    """Turn a log of requests into timeouts that the answers cancel.

    Each row of LOG is a request. It schedules a timer at its start, due after the
    timeout, and cancels it at its end if that is earlier. An answer that takes
    exactly the timeout is too late. A row without a duration was never answered.
    LOG is a file or a URI that Spark can read.
    """
    ingest_log("requests", given)


@_log_command(_TOUCHES, options.touches(required=True))
def touches(**given: Any) -> None:
    """Turn a log of touches into idle timers.

    Each row of LOG is a touch, a sign of life from its key. It re-arms the timer
    of the key, which fires when the key has been idle for the time --idle. A
    touch exactly at the deadline is too late. LOG is a file or a URI that Spark
    can read.
    """
    ingest_log("touches", given)


def ingest_log(kind: str, given: Mapping[str, Any]) -> "Trace":
    """Turn a log into a trace as the options say, and print a summary."""
    from compare.pipeline.ingest import Options, ingest_requests, ingest_touches

    known = {field.name for field in fields(Options)}
    settings = Options(**{name: value for name, value in given.items() if name in known})
    log, out = given["log"], given["out"]
    if kind == "requests":
        names = "duration", "timeout", "duration_unit", "time_is"
        ingested = ingest_requests(log, out, settings, **{name: given[name] for name in names})
    else:
        ingested = ingest_touches(log, out, settings, key=given["key"], idle=given["idle"])
    click.echo(summary(ingested))
    return ingested.trace


def summary(ingested: "Ingested") -> str:
    """How a log was read, and what the trace contains."""
    from compare.pipeline.reading import time_text
    from compare.tapes.trace import REJECTED

    trace, examples, reading = ingested.trace, ingested.examples, ingested.reading
    counts = {name: getattr(ingested, name) for name in ("unreadable", "duplicate", "late")}
    skipped = sum(counts.values())
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)
    rejected = f"; skipped {kinds} (in {REJECTED})" if skipped else ""
    more = [f"... and {skipped - len(examples):,} more"] if skipped > len(examples) else []
    several = len(trace.shards) > 1
    entries = [
        ("rows", f"{ingested.rows:,}{rejected}"),
        *(("", line) for line in [*examples, *more]),
        ("operations", operations_text(trace.totals)),
    ]
    if reading.rows:
        unit = reading.unit
        rate = reading.rows / reading.seconds if reading.seconds else reading.rows
        share = reading.timed_out / reading.rows
        timed_out = f"{reading.timed_out:,} ({share:.1%}), after {reading.timeout}"
        entries += [
            ("times", f"{reading.time_format}{' (guessed)' * reading.guessed}, in {unit}"),
            ("", f"from {time_text(reading.first, unit)} UTC"),
            ("", f"to   {time_text(reading.last, unit)} UTC"),
            ("rate", f"{f'{rate:,.0f}' if rate >= 100 else f'{rate:.3g}'} rows per second"),
            ("timed out" if reading.kind == "requests" else "fell idle", timed_out),
            ("pending", f"at most {reading.most_pending:,} at once{' in one shard' * several}"),
        ]
    entries.append(("trace", f"{trace.path}{f' in {len(trace.shards)} shards' * several}"))
    entries += [("warning", text) for text in reading.warnings]
    return "\n".join(labelled(*pair) for pair in entries)
