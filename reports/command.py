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
    section,
    select,
    time_option,
    touch_options,
    traces_argument,
)
from timers.errors import TimerError

TRACES = "traces"
"""Directory below that of the runs for the traces that logs are turned into."""

_COLUMNS = {
    "time": ("ts", "time", "timestamp", "@timestamp", "datetime", "start"),
    "duration": ("rtt", "duration", "duration_s", "seconds", "elapsed", "latency"),
    "key": ("client", "id.orig_h", "key", "user", "session", "ip"),
}
"""Columns and their names in the logs of common programs, the most likely one first."""

_KINDS = {
    "requests": (
        ("time", "duration"),
        "timeout",
        "5s",
    ),  # as of most DNS and HTTP clients
    "touches": (("time", "key"), "idle", "30s"),
}
"""Kind of a log -> its columns, and the option for its timeout with a default."""


class ReportOptionError(TimerError, ValueError):
    """A column of a log that has to be named."""


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  wheelwork report
  wheelwork report --run runs/20260131T120000.000000Z-1f2e3d4c
  wheelwork report --replayed replayed
  wheelwork report --requests dns.log --time ts --duration rtt --timeout 5s
  wheelwork report --touches access.log.gz --idle 30s""",
)
@traces_argument
@option(
    "--out",
    PLACE,
    "Directory of the page; an older report there is replaced.",
    metavar="DIR",
    default="report",
)
@option("--run", PLACE, "Show a stored run, or the newest in RUNS.", metavar="RUN", field="stored")
@option(
    "--replayed",
    PLACE,
    "Show what `replay --out` or `summarise --out` wrote.",
    metavar="RESULTS...",
    multiple=True,
)
@option(
    "--requests",
    PLACE,
    "A log of requests: each starts a timer, its answer cancels it.",
    metavar="LOG",
)
@option(
    "--touches",
    PLACE,
    "A log of touches: each re-arms the idle timer of its key.",
    metavar="LOG",
)
@section(
    "The log (what is left out of --time to --idle is guessed and printed)",
    time_option(required=False),
    request_options(required=False),
    touch_options(required=False),
    reading_options,
)
@section("The comparison", comparison_options("--runs"))
def report(
    traces: tuple[str, ...], out: str, stored: str | None, replayed: tuple[str, ...], **options: Any
) -> None:
    """Compare timers and write the results as a page with charts and tables.

    The page is one file; its charts lie beside it as SVG and PNG. With --run or
    --replayed nothing is measured: stored results are shown. With --requests or
    --touches a log is turned into a trace first, and replayed beside the usual
    workloads. TRACEs are replayed as in `compare`.
    """
    logs = {f"--{kind}": options[kind] for kind in _KINDS}
    refuse_both({"--run": stored, "--replayed": replayed, **logs})
    if stored and traces:
        raise click.UsageError(f"--run shows a stored run; the trace {traces[0]} has no part in it")
    _check_unused(options)

    from reports.page import check_target, write_report

    check_target(out)
    if replayed:
        from reports.grid import read_grids
        from reports.page import write_page

        results = [*replayed, *traces]  # all that follow --replayed
        click.echo(write_page(read_grids(results), ", ".join(results), out))
        return
    if stored:
        path = _stored(stored)
    else:
        sources: list[Path | str] = [*traces]
        log = _log_of(options)
        if log is not None:
            sources.append(_ingest(log, options))
            options["workloads"] = options["workloads"] or DEFAULT_WORKLOADS  # beside the log
        from compare.bench.run import run_comparison

        path = run_comparison(comparison_from(options, sources))
    from compare.bench.store import read_run

    page = write_report(read_run(path), out)
    click.echo(f"run: {path}")
    click.echo(page)


def _check_unused(options: Mapping[str, Any]) -> None:
    """Refuse an option about a log of a kind that is not given."""
    for name in (*_COLUMNS, "timeout", "idle"):
        kinds = [kind for kind, (roles, period, _) in _KINDS.items() if name in (*roles, period)]
        if options[name] is not None and not any(options[kind] for kind in kinds):
            needed = " or ".join(f"--{kind}" for kind in kinds)
            raise click.UsageError(f"--{name} needs {needed}")


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


def _log_of(options: Mapping[str, Any]) -> Log | None:
    kind = next((kind for kind in _KINDS if options[kind]), None)
    if kind is None:
        return None
    path, (roles, period, default) = options[kind], _KINDS[kind]
    columns = {role: options[role] for role in roles}
    missing = [role for role in roles if columns[role] is None]
    found = _columns_in(path, options["format"]) if missing else ()
    guessed = []
    for role in missing:
        columns[role] = next((name for name in _COLUMNS[role] if name in found), None)
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
