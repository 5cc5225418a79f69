"""`wheelwork report`: results as a page with charts; the last line printed is its path."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from compare.bench.comparison import DEFAULT_WORKLOADS
from compare.cli.commands import ingest
from compare.cli.options import (
    PLACE,
    Command,
    comparison_from,
    comparison_options,
    option,
    reading_options,
    refuse_both,
    request_options,
    select,
    time_option,
    touch_options,
    traces_argument,
)
from timers.errors import TimerError

TRACES = "traces"
"""Directory below that of the runs for the traces that logs are turned into."""

_DEFAULT_TIMEOUT = "5s"  # in the order of those of most DNS and HTTP clients
_DEFAULT_IDLE = "30s"

# Names of columns in the logs of common programs, the most likely one first.
_TIMES = ("ts", "time", "timestamp", "@timestamp", "datetime", "start")  # Zeek, access logs, ...
_DURATIONS = ("rtt", "duration", "duration_s", "seconds", "elapsed", "latency")  # Zeek, ...
_KEYS = ("client", "id.orig_h", "key", "user", "session", "ip")  # access logs, Zeek, ...

_LOG = "The log (what is left out of --time to --idle is guessed and printed)"


class ReportOptionError(TimerError, ValueError):
    """A column of a log that has to be named."""


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  wheelwork report
  wheelwork report --run runs/20260131T120000.000000Z-1f2e3d4c
  wheelwork report --grid replayed
  wheelwork report --requests dns.log --time ts --duration rtt --timeout 5s
  wheelwork report --touches access.log.gz --idle 30s""",
)
@traces_argument
@option(
    "--out",
    type=PLACE,
    default="report",
    metavar="DIR",
    help="Directory of the page. An older report there is replaced.",
)
@option(
    "--run",
    "stored",
    type=PLACE,
    metavar="RUN",
    help="Show this stored run, or the newest in a directory of runs.",
)
@option(
    "--grid",
    type=PLACE,
    multiple=True,
    metavar="RESULTS...",
    help="Show what `replay --out` or `summarise --out` wrote.",
)
@option(
    "--requests",
    type=PLACE,
    metavar="LOG",
    help="A log of requests: each starts a timer, its answer cancels it.",
)
@option(
    "--touches",
    type=PLACE,
    metavar="LOG",
    help="A log of touches: each re-arms the idle timer of its key.",
)
@time_option(required=False, section=_LOG)
@request_options(required=False, section=_LOG)
@touch_options(required=False, section=_LOG)
@reading_options(_LOG)
@comparison_options("--runs", "The comparison")
def report(
    traces: tuple[str, ...],
    out: str,
    stored: str | None,
    grid: tuple[str, ...],
    requests: str | None,
    touches: str | None,
    **options: Any,
) -> None:
    """Compare timers and write the results as a page with charts and tables.

    The page is one file; its charts lie beside it as SVG and PNG. With --run or
    --grid nothing is measured: stored results are shown. With --requests or
    --touches a log is turned into a trace first, and replayed beside the usual
    workloads. TRACEs are replayed as in `compare`.
    """
    given = {"--run": stored, "--grid": grid, "--requests": requests, "--touches": touches}
    refuse_both(given)
    if stored and traces:
        raise click.UsageError(f"--run shows a stored run; the trace {traces[0]} has no part in it")
    _check_unused(options, requests, touches)

    from reports.page import check_target, write_report

    check_target(out)
    if grid:
        from reports.grid import read_grids
        from reports.page import write_page

        grids = [*grid, *traces]  # all that follow --grid
        click.echo(write_page(read_grids(grids), ", ".join(grids), out))
        return
    if stored:
        path = _stored(stored)
    else:
        sources: list[Path | str] = [*traces]
        log = _log_of(requests, touches, options)
        if log is not None:
            sources.append(_ingest(log, options))
            options["workloads"] = options["workloads"] or DEFAULT_WORKLOADS  # beside the log
        from compare.bench.run import run_comparison

        path = run_comparison(comparison_from(options, sources))
    from compare.bench.store import read_run

    page = write_report(read_run(path), out)
    click.echo(f"run: {path}")
    click.echo(page)


_FOR_REQUESTS = ("duration", "timeout")
_FOR_TOUCHES = ("key", "idle")


def _check_unused(options: Mapping[str, Any], requests: str | None, touches: str | None) -> None:
    needed = {"time": "--requests or --touches"}
    needed |= dict.fromkeys(_FOR_REQUESTS, "--requests") | dict.fromkeys(_FOR_TOUCHES, "--touches")
    given = {
        "--requests": requests,
        "--touches": touches,
        "--requests or --touches": requests or touches,
    }
    for name, other in needed.items():
        if options[name] is not None and not given[other]:
            raise click.UsageError(f"--{name} needs {other}")


def _stored(path: str) -> Path:
    """The run at the path, or the newest one of a directory of runs."""
    from compare.bench.store import latest_run, runs_in
    from compare.files import MANIFEST

    if not (Path(path) / MANIFEST).exists() and Path(path).is_dir() and runs_in(path):
        return latest_run(path)
    return Path(path)


# ---- logs


@dataclass(frozen=True)
class Log:
    """A log with the columns to read, given or guessed."""

    path: str
    kind: str  # "requests" or "touches"
    columns: Mapping[str, str]  # time, and duration or key -> column
    timeout: str  # or idle period, such as "5s"
    guessed: tuple[str, ...]  # options that were not given


def _log_of(requests: str | None, touches: str | None, options: Mapping[str, Any]) -> Log | None:
    if requests:
        path, kind, usual = requests, "requests", {"time": _TIMES, "duration": _DURATIONS}
        period, default = "timeout", _DEFAULT_TIMEOUT
    elif touches:
        path, kind, usual = touches, "touches", {"time": _TIMES, "key": _KEYS}
        period, default = "idle", _DEFAULT_IDLE
    else:
        return None
    columns = {role: options[role] for role in usual}
    guessed = []
    if None in columns.values():
        found = _columns_in(path, options["format"])
        for role in [role for role, column in columns.items() if column is None]:
            columns[role] = next((name for name in usual[role] if name in found), None)
            if columns[role] is None:
                raise ReportOptionError(
                    f"name the column of {path} that is the {role}: --{role} COL, "
                    f"one of {', '.join(found)}"
                )
            guessed.append(f"--{role} {columns[role]}")
    if options[period] is None:
        guessed.append(f"--{period} {default}")
    return Log(path, kind, columns, options[period] or default, tuple(guessed))


def _columns_in(path: str, format_: str) -> tuple[str, ...]:
    """The columns of a log on this machine, from its beginning."""
    from compare.spark.session import require_spark

    require_spark()
    from compare.logs.readers import inspect

    if "://" in path:
        raise ReportOptionError(f"the columns of {path} cannot be guessed; name them")
    log, _ = inspect(Path(path), format_)
    return log.columns


def _ingest(log: Log, options: Mapping[str, Any]) -> Path:
    """Turn the log into a trace, beside the runs."""
    from compare.spark.session import require_spark

    require_spark()
    from compare.bench.store import check_store
    from compare.pipeline.ingest import Options, ingest_requests, ingest_touches

    if log.guessed:
        click.echo(f"{log.path}: assuming {' '.join(log.guessed)}")
    check_store(options["runs"])
    # The trace of an earlier report on this log is replaced.
    how = Options(**select(Options, options) | {"time": log.columns["time"], "force": True})
    name = log.path.rstrip("/").rpartition("/")[2].removesuffix(".gz")
    out = Path(options["runs"]) / TRACES / f"{Path(name).stem}.{log.kind}"
    out.parent.mkdir(parents=True, exist_ok=True)
    if log.kind == "requests":
        ingested = ingest_requests(
            log.path,
            out,
            how,
            duration=log.columns["duration"],
            timeout=log.timeout,
            duration_unit=options["duration_unit"],
            time_is=options["time_is"],
        )
    else:
        ingested = ingest_touches(log.path, out, how, key=log.columns["key"], idle=log.timeout)
    click.echo(ingest.summary(ingested))
    return out
