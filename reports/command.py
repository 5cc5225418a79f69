"""`wheelwork report`: a comparison as a page with charts; the last line printed is the page's
path.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compare.bench.comparison import DEFAULT_WORKLOADS, add_options, options_from, run_comparison
from compare.cli.commands.ingest import add_reading_options, add_request_options, add_touch_options
from timers.errors import TimerError

TRACES = "traces"
"""Directory, in that of the runs, for the traces that logs are made into."""

_DESCRIPTION = """\
Compare the timers and make a page of it: charts, tables, and what follows from
them. The page needs nothing but itself; its charts lie beside it as SVG and PNG.
With --run a stored comparison is shown, with --grid replayed grids. With --requests or --touches a log is
read first, and takes part beside the usual workloads."""

_EXAMPLE = """\
example:
  wheelwork report
  wheelwork report --run runs/20260131T120000.000000Z-1f2e3d4c
  wheelwork report --grid replayed
  wheelwork report --requests dns.log --time ts --duration rtt --timeout 5s
  wheelwork report --touches access.log.gz --idle 30s"""

_DEFAULT_OUT = "report"
_DEFAULT_TIMEOUT = "5s"  # of most DNS and HTTP clients' order
_DEFAULT_IDLE = "30s"

# Columns by the names that they have in the logs of common programs, the likeliest first.
_TIMES = ("ts", "time", "timestamp", "@timestamp", "datetime", "start")  # Zeek; access logs; ...
_DURATIONS = (
    "rtt",
    "duration",
    "duration_s",
    "seconds",
    "elapsed",
    "latency",
)  # Zeek's dns.log; its conn.log; ...
_KEYS = ("client", "id.orig_h", "key", "user", "session", "ip")  # access logs; Zeek; ...


class ReportOptionError(TimerError, ValueError):
    """Options of the report that do not go together, or a column that must be named."""


def register(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "report",
        help="compare, and make a page with charts of it",
        description=_DESCRIPTION,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "traces", nargs="*", metavar="TRACE", help="directory that `generate` or `ingest` wrote"
    )
    parser.add_argument(
        "--out",
        default=_DEFAULT_OUT,
        metavar="DIR",
        help="directory of the page; an older report there is replaced (default: report)",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--run",
        dest="stored",
        metavar="RUN",
        help="measure nothing, show this stored run, or the newest in a directory of runs",
    )
    what.add_argument(
        "--grid",
        nargs="+",
        metavar="RESULTS",
        help="measure nothing, show replayed grids: what `replay --out` or `summarise --out` wrote",
    )
    what.add_argument(
        "--requests",
        metavar="LOG",
        help="a log of requests: each starts a timer, its answer cancels it",
    )
    what.add_argument(
        "--touches",
        metavar="LOG",
        help="a log of signs of life: each re-arms the idle timer of its key",
    )
    log = parser.add_argument_group("of the log; what is left out of these is guessed, and told")
    log.add_argument("--time", metavar="COL", help="column of the time")
    add_request_options(log, required=False)
    add_touch_options(log, required=False)
    add_reading_options(log)
    add_options(parser.add_argument_group("of the comparison"), store="--runs")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Compare unless a stored run is given, write the page, and print its path."""
    _check_together(arguments)
    from reports.page import check_target, write_report

    check_target(arguments.out)
    if arguments.grid is not None:
        from reports.grid import read_grids
        from reports.page import write_page

        print(write_page(read_grids(arguments.grid), ", ".join(arguments.grid), arguments.out))
        return
    if arguments.stored is not None:
        path = _stored(arguments.stored)
    else:
        traces: list[Path | str] = [*arguments.traces]
        log = _log_of(arguments)
        if log is not None:
            traces.append(_ingest(log, arguments))
            if arguments.workload is None:
                arguments.workload = DEFAULT_WORKLOADS  # beside the log
        path = run_comparison(options_from(arguments, traces))
    from compare.bench.store import read_run

    page = write_report(read_run(path), arguments.out)
    print(f"run: {path}", flush=True)
    print(page)


_FOR_REQUESTS = ("duration", "timeout")
_FOR_TOUCHES = ("key", "idle")


def _check_together(arguments: argparse.Namespace) -> None:
    if arguments.stored is not None and arguments.traces:
        raise ReportOptionError(
            f"--run shows a stored run, so that the trace {arguments.traces[0]} has no part in it"
        )
    if arguments.grid is not None and arguments.traces:
        raise ReportOptionError(
            f"--grid shows what was replayed, so that the trace {arguments.traces[0]} has no part in it"
        )
    alien = {"requests": _FOR_TOUCHES, "touches": _FOR_REQUESTS}
    kind = next((kind for kind in alien if getattr(arguments, kind) is not None), None)
    unfit = alien[kind] if kind else ("time", *_FOR_REQUESTS, *_FOR_TOUCHES)
    for name in unfit:
        if getattr(arguments, name) is not None:
            needed = (
                "--requests"
                if name in _FOR_REQUESTS
                else "--touches"
                if name in _FOR_TOUCHES
                else "a log"
            )
            raise ReportOptionError(f"--{name} goes with {needed} only")


def _stored(path: str) -> Path:
    """The run at the path, or the newest one of a directory of runs."""
    from compare.bench.store import MANIFEST, latest_run, runs_in

    if not (Path(path) / MANIFEST).exists() and Path(path).is_dir() and runs_in(path):
        return latest_run(path)
    return Path(path)


# ---- logs
# ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Log:
    """A log with the columns to read, given or guessed."""

    path: str
    kind: str  # "requests" or "touches"
    columns: Mapping[str, str]  # time, and duration or key -> column
    patience: str  # timeout or idle period, such as "5s"
    guessed: tuple[str, ...]  # what was not given, in words


def _log_of(arguments: argparse.Namespace) -> Log | None:
    kind = (
        "requests"
        if arguments.requests is not None
        else "touches"
        if arguments.touches is not None
        else None
    )
    if kind is None:
        return None
    path: str = getattr(arguments, kind)
    roles = {"time": _TIMES} | ({"duration": _DURATIONS} if kind == "requests" else {"key": _KEYS})
    columns = {role: getattr(arguments, role) for role in roles}
    found: tuple[str, ...] = ()
    guessed = []
    if None in columns.values():
        found = _columns_in(path, arguments.format)
    for role, usual in roles.items():
        if columns[role] is None:
            columns[role] = next((name for name in usual if name in found), None)
            if columns[role] is None:
                raise ReportOptionError(
                    f"say which column of {path} is the {role}: --{role} COL, one of {', '.join(found)}"
                )
            guessed.append(f"--{role} {columns[role]}")
    period, default = (
        ("timeout", _DEFAULT_TIMEOUT) if kind == "requests" else ("idle", _DEFAULT_IDLE)
    )
    patience = getattr(arguments, period)
    if patience is None:
        patience = default
        guessed.append(f"--{period} {default}")
    return Log(path, kind, columns, patience, tuple(guessed))


def _columns_in(path: str, format_: str) -> tuple[str, ...]:
    """The columns of a log on this machine, by its beginning."""
    from compare.spark.session import require_spark

    require_spark()
    from compare.logs.readers import inspect

    if "://" in path:
        raise ReportOptionError(f"the columns of {path} cannot be guessed; name them")
    log, _ = inspect(Path(path), format_)
    return log.columns


def _ingest(log: Log, arguments: argparse.Namespace) -> Path:
    """Make a trace of the log, beside the runs."""
    from compare.spark.session import require_spark

    require_spark()
    from compare.bench.store import check_store
    from compare.cli.commands.ingest import summary
    from compare.pipeline.ingest import Options, ingest_requests, ingest_touches

    if log.guessed:
        print(f"{log.path}: assuming {' '.join(log.guessed)}", flush=True)
    check_store(arguments.runs)
    options = Options(
        time=log.columns["time"],
        unit=arguments.unit,
        format=arguments.format,
        time_format=arguments.time_format,
        strict=arguments.strict,
        master=arguments.master,
        force=True,  # the trace of an earlier report on this log, which this one takes the place of
    )
    name = log.path.rstrip("/").rpartition("/")[2].removesuffix(".gz")
    out = Path(arguments.runs) / TRACES / f"{Path(name).stem}.{log.kind}"
    out.parent.mkdir(parents=True, exist_ok=True)
    if log.kind == "requests":
        ingested = ingest_requests(
            log.path,
            out,
            options,
            duration=log.columns["duration"],
            timeout=log.patience,
            duration_unit=arguments.duration_unit,
            time_is=arguments.time_is,
        )
    else:
        ingested = ingest_touches(log.path, out, options, key=log.columns["key"], idle=log.patience)
    print(summary(ingested), flush=True)
    return out
