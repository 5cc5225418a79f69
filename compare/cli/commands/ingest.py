"""`wheelwork ingest`: a log becomes a trace."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from compare.cli import options
from compare.cli.text import entry, operations_text

if TYPE_CHECKING:
    from compare.pipeline.ingest import Ingested
    from compare.tapes.trace import Trace

_LOGS = """\
Logs: CSV and TSV with a header, JSON lines, Parquet, Zeek logs, and Apache or
nginx access logs (columns client, ident, user, time, request, method, path,
protocol, status, bytes, referrer, agent, and extra1 to extra9 for further
ones); plain or compressed with gzip; rows in any order. An empty value, null
and `-` mean that there is no value.

Times: Numbers since 1970, ISO 8601 (UTC where no zone is given), or as in
access logs. With auto, the first value that fits a format decides for the
whole column. Numbers below 10^11 are seconds, below 10^14 milliseconds, below
10^17 microseconds, and nanoseconds above. Every digit counts; times are
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
    """Make a function the command for one kind of log."""
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

    Each row of LOG schedules a timer at its start, due after the timeout, and
    cancels it at its end if that comes earlier. An answer that takes exactly the
    timeout comes too late. A row without a duration was never answered. LOG is a
    file or a URI that Spark can read.
    """
    ingest_log("requests", given)


@_log_command(_TOUCHES, options.touches(required=True))
def touches(**given: Any) -> None:
    """Turn a log of touches into idle timers.

    Each row of LOG re-arms the timer of its key, to fire when the key has been
    idle for so long. A touch exactly at the deadline comes too late. LOG is a
    file or a URI that Spark can read.
    """
    ingest_log("touches", given)


def ingest_log(kind: str, given: Mapping[str, Any]) -> "Trace":
    """Turn a log of a kind into a trace as the options say, and print what it was turned into."""
    from compare.pipeline.ingest import Options, ingest_requests, ingest_touches

    known = {field.name for field in fields(Options)}
    how = Options(**{name: value for name, value in given.items() if name in known})
    if kind == "requests":
        names = "duration", "timeout", "duration_unit", "time_is"
        rows = {name: given[name] for name in names}
        ingested = ingest_requests(given["log"], given["out"], how, **rows)
    else:
        key, idle = given["key"], given["idle"]
        ingested = ingest_touches(given["log"], given["out"], how, key=key, idle=idle)
    click.echo(summary(ingested))
    return ingested.trace


def summary(ingested: "Ingested") -> str:
    """What a log was turned into."""
    from compare.pipeline.reading import time_text
    from compare.tapes.trace import REJECTED

    trace, examples, how = ingested.trace, ingested.examples, ingested.reading
    left_out = {name: getattr(ingested, name) for name in ("unreadable", "duplicate", "late")}
    number = sum(left_out.values())
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in left_out.items() if count)
    rejected = f", of which {kinds} left out (in {REJECTED})" if number else ""
    more = [f"... and {number - len(examples):,} more"] if number > len(examples) else []
    several = len(trace.shards) > 1
    entries = [
        ("rows", f"{ingested.rows:,}{rejected}"),
        *(("", line) for line in [*examples, *more]),
        ("operations", operations_text(trace.totals)),
    ]
    if how.rows:
        rate = how.rows / how.seconds if how.seconds else how.rows
        share = f"{how.timed_out:,} ({how.timed_out / how.rows:.1%}), after {how.timeout}"
        entries += [
            ("times", f"{how.time_format}{' (guessed)' * how.guessed}, in {how.unit}"),
            ("", f"from {time_text(how.first, how.unit)} UTC"),
            ("", f"to   {time_text(how.last, how.unit)} UTC"),
            ("rate", f"{f'{rate:,.0f}' if rate >= 100 else f'{rate:.3g}'} rows a second"),
            ("timed out" if how.kind == "requests" else "fell idle", share),
            ("pending", f"at most {how.most_pending:,} at once{' in one shard' * several}"),
        ]
    entries.append(("trace", f"{trace.path}{f' in {len(trace.shards)} shards' * several}"))
    entries += [("warning", text) for text in how.warnings]
    return "\n".join(entry(*pair) for pair in entries)
