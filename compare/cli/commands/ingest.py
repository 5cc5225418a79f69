"""`wheelwork ingest`: turn a log into a trace."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compare.cli import options
from compare.cli.text import labelled, trace_facts
from compare.traffic.logs.time_formats import FORMS
from compare.traffic.tapes.units import EXPONENTS, TAPE_UNITS

if TYPE_CHECKING:
    from compare.traffic.logs.ingest import Ingested
    from compare.traffic.tapes.trace import Trace

_LOGS = """\
Logs: tables, JSON, Parquet, Zeek and W3C logs (IIS), logfmt, LTSV, and lines of
Apache, nginx, AWS, HAProxy, Envoy, Squid, databases, syslog and log4j; lines of
your own with --pattern. Plain or compressed with gzip, bzip2, xz or zstd. LOG
is a file, a directory, a pattern such as 'access.log*', a URI, or - for standard input;
several may be given. Files and rows may be in any order. An empty value, null
and `-` all mean no value. A nested value is named by the keys that lead to it:
client.ip. Two columns with the date and the time are named date,time.

Times: numbers since 1970, ISO 8601 (UTC if no zone is given), as in access
logs, or in a format of strptime, such as '%d/%m/%Y %H:%M:%S'. With auto, the
first value that fits a format decides for the whole column. Numbers below 10^11
are seconds, below 10^14 milliseconds, below 10^17 microseconds, and above that
nanoseconds. Times are parsed exactly and then rounded down to the unit.

\b
Example:
"""
_REQUESTS = """\
  wheelwork ingest requests dns.log.gz --time ts --duration rtt \\
      --timeout 5s --unit us --out dns.trace"""
_TOUCHES = """\
  wheelwork ingest touches access.log.gz --time time --key client \\
      --idle 30s --out clients.trace"""
_KERNEL = """\b
Example:
  trace-cmd record -e 'timer:*timer_*' sleep 10
  trace-cmd report > kernel.txt
  wheelwork ingest kernel kernel.txt --out kernel.trace"""


REQUEST_ROWS = options.together(
    options.option("--duration", "COL", "Column with the response time."),
    options.option("--end", "COL", "Column with the time of the answer, instead of --duration."),
    options.option(
        "--id", "COL", "Column with the id of a request in two rows, instead of --duration."
    ),
    options.option("--event", "COL", "With --id: column that tells starts from ends."),
    options.option(
        "--starts", "TEXT", "With --id: value of --event in the row that starts a request."
    ),
    options.option("--ends", "TEXT", "With --id: value of --event in the row that ends it."),
    options.option("--timeout", "TIME", "Timeout of a request, such as 200ms.", required=True),
    options.option(
        "--duration-unit", tuple(EXPONENTS), "Unit of durations without one.", default="s"
    ),
    options.option(
        "--time-is", ("start", "end"), "Whether --time is a start or an end.", default="start"
    ),
)
TOUCH_ROWS = options.together(
    options.option("--key", "COL", "Column with the key of the timer.", required=True),
    options.option("--idle", "TIME", "Idle timeout of a key, such as 30s.", required=True),
)


READING = options.together(
    options.layout,
    options.option(
        "--time-format",
        options.Parsed("format", str, "compare.traffic.logs.time_formats:FORMS"),
        f"Format of the times: auto, {', '.join(FORMS)}, or as for strptime.",
        default="auto",
    ),
    options.option(
        "--year",
        options.INTEGER,
        "Year of the first line, if times have none (default: from the file's modification time).",
    ),
    options.option(
        "--time-zone",
        "NAME",
        "Zone of times without one, such as Europe/Berlin (default: UTC).",
    ),
    options.option("--unit", TAPE_UNITS, "Unit of times in the trace.", default="ms"),
    options.option(
        "--where",
        "CONDITION",
        "Use only rows that meet this condition, e.g. 'status = 504'; may be repeated.",
        multiple=True,
    ),
    options.option("--limit", options.COUNT, "Maximum number of lines or records to read."),
    options.option(
        "--longest-line",
        options.SIZE,
        "Reject longer lines without reading them, e.g. 64MiB.",
        default="16MiB",
    ),
    options.flag("--strict", "Fail instead of skipping rows."),
)
"""Options for reading a log; the names are those of `compare.LogOptions`."""


@click.group(no_args_is_help=False, epilog=f"\b\nExamples:\n{_REQUESTS}\n{_TOUCHES}")
def ingest() -> None:
    """Turn a real log into a trace, to compare timers on your own traffic."""


def _log_command(
    example: str, rows: options.Decorator
) -> Callable[[Callable[..., None]], click.Command]:
    """Turn a function into the command for one kind of log."""
    declare = options.together(
        click.argument("log", type=options.PLACE, nargs=-1, required=True),
        options.new_trace(),
        options.shards,
        options.section(
            "What the rows mean",
            options.option("--time", "COL", "Column with the time.", required=True),
            rows,
        ),
        options.section("How the log is read", READING, options.master),
    )
    command = ingest.command(cls=options.Command, epilog=_LOGS + example)
    return lambda function: command(declare(function))


@_log_command(_REQUESTS, REQUEST_ROWS)
def requests(**given: Any) -> None:
    """Turn a log of requests into timeouts that the answers cancel.

    Each row of LOG is a request. It schedules a timer at its start, due after the
    timeout, and cancels it at its end if that is earlier. An answer that takes
    exactly the timeout is too late. A row without a duration was never answered.
    """
    ingest_log("requests", given)


@_log_command(_TOUCHES, TOUCH_ROWS)
def touches(**given: Any) -> None:
    """Turn a log of touches into idle timers.

    Each row of LOG is a touch, a sign of life from its key. It re-arms the timer
    of the key, which fires when the key has been idle for the time --idle. A
    touch exactly at the deadline is too late.
    """
    ingest_log("touches", given)


@ingest.command(cls=options.Command, epilog=_KERNEL)
@click.argument("log", type=options.PLACE)
@options.new_trace()
@options.option("--hz", options.COUNT, "Jiffies per second (default: detected from the events).")
def kernel(log: str, out: str, force: bool, hz: int | None) -> None:
    """Turn the timers of a Linux kernel into a trace.

    LOG is the output of `trace-cmd report` or `perf script` for the events
    timer_start, timer_cancel and timer_expire_entry, and hrtimer_start,
    hrtimer_cancel and hrtimer_expire_entry. The trace has their starts, re-arms,
    cancels and deadlines, in microseconds. A start of a pending timer is a
    re-arm, and so are a cancel and a start of the same timer within 10 us.
    """
    from compare.traffic.logs.formats.kernel import read_kernel_trace

    read = read_kernel_trace(Path(log), Path(out), hz=hz, force=force)
    entries = [
        ("events", f"{read.events:,}" + (f", {read.hz} jiffies a second" if read.hz else "")),
        *trace_facts(read.trace),
        *(("warning", text) for text in read.warnings),
    ]
    click.echo("\n".join(labelled(*pair) for pair in entries))


def ingest_log(kind: str, given: Mapping[str, Any]) -> "Trace":
    """Turn a log into a trace as the options say, and print a summary.

    Options that are not given have the defaults of the functions in `compare.traffic.logs.ingest`.
    """
    from compare.base.arrow import leave_out_pandas

    leave_out_pandas()
    from compare.traffic.logs.ingest import ingest_requests, ingest_touches
    from compare.traffic.logs.options import LogOptions

    known = {field.name for field in fields(LogOptions)}
    settings = LogOptions(**{name: value for name, value in given.items() if name in known})
    log, out = given["log"], given["out"]
    ingested: Ingested
    if kind == "requests":
        names = ["duration", "end", "timeout", "duration_unit", "time_is"]
        names += ["id", "event", "starts", "ends"]
        rows = {name: given[name] for name in names if name in given}
        ingested = ingest_requests(log, out, settings, **rows)
    else:
        ingested = ingest_touches(log, out, settings, key=given["key"], idle=given["idle"])
    click.echo(summary(ingested))
    return ingested.trace


def summary(ingested: "Ingested") -> str:
    """Describe how a log was read, and the trace."""
    from compare.traffic.logs.reading import time_text
    from compare.traffic.logs.rows import KINDS

    trace, examples, reading = ingested.trace, ingested.examples, ingested.reading
    counts = {name: getattr(ingested, name) for name in KINDS}
    skipped = sum(counts.values())
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)
    rejected = f"; skipped {kinds} (in {trace.rejected})" if skipped else ""
    more = [f"... and {skipped - len(examples):,} more"] if skipped > len(examples) else []
    entries = [
        ("rows", f"{ingested.rows:,}{rejected}"),
        *(("", line) for line in [*examples, *more]),
        *([("other lines", f"{ingested.other_lines:,}")] if ingested.other_lines else []),
    ]
    if reading.rows:
        unit = reading.unit
        entries += [
            ("times", f"{reading.time_format}{' (guessed)' * reading.guessed}, in {unit}"),
            ("", f"from {time_text(reading.first, unit)} UTC"),
            ("", f"to   {time_text(reading.last, unit)} UTC"),
        ]
    entries += trace_facts(trace)
    entries += [("warning", text) for text in reading.warnings]
    return "\n".join(labelled(*pair) for pair in entries)
