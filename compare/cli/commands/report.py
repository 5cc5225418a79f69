"""`wheelwork report`: write results as a page with charts, and print its path last."""

import re
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from compare.cli import options
from compare.cli.commands.ingest import ingest_log
from compare.trial.bench.comparison import DEFAULT_WORKLOADS
from timers.errors import ParameterError

if TYPE_CHECKING:
    from compare.traffic.tapes.trace import Trace

TRACES = "traces"
"""Subdirectory of the runs for traces made from logs."""

_KINDS: dict[str, dict[str, str | None]] = {
    "requests": {"time": None, "duration": None, "timeout": "5s"},  # as in most DNS clients
    "touches": {"time": None, "key": None, "idle": "30s"},
}
"""Kind of log -> the options it needs, with defaults for those that are not columns."""

_HOW = ("time_is", "duration_unit")
"""Options that say what a column of durations means."""


@options.command("""\b
Examples:
  wheelwork report
  wheelwork report --run runs/20260131T120000.000000Z-1f2e3d4c
  wheelwork report --replayed replayed
  wheelwork report --requests dns.log --time ts --duration rtt --timeout 5s
  wheelwork report --touches access.log.gz --idle 30s""")
@options.traces_argument
@options.option(
    "--out",
    options.Place("dir"),
    "Directory of the page; replaces an older report.",
    default="report",
)
@options.option(
    "--run", options.Place("run"), "Show a stored run, or the newest one in RUNS.", field="stored"
)
@options.option(
    "--replayed",
    options.Place("results..."),
    "Show results of `replay --out` or `summarise --out`.",
    multiple=True,
)
@options.option("--requests", options.Place("log"), "Log of requests; an answer cancels the timer.")
@options.option("--touches", options.Place("log"), "Log of touches; each re-arms the idle timer.")
@options.section(
    "Log options (columns not named here are guessed; the guess is printed)",
    options.time(required=False),
    options.requests(required=False),
    options.touches(required=False),
    options.reading,
)
@options.section("The comparison", options.comparison("--runs"))
def report(
    traces: tuple[str, ...], out: str, stored: str | None, replayed: tuple[str, ...], **given: Any
) -> None:
    """Compare timers and write the results as a page with charts and tables.

    The page is a single file. The charts are also saved separately as SVG and
    PNG. With --run or --replayed nothing is measured; stored results are shown.
    With --requests or --touches a log is first turned into a trace, which is
    replayed in addition to the default workloads. TRACEs are replayed as in
    `compare`.
    """
    logs = {f"--{kind}": given[kind] for kind in _KINDS}
    options.refuse_both({"--run": stored, "--replayed": replayed, **logs})
    if stored and traces:
        raise click.UsageError(f"--run shows a stored run; the trace {traces[0]} is not used")
    _check_unused(given)
    if stored or replayed:
        _refuse_options(given, "--run" if stored else "--replayed")

    from reports.page import check_target, write_page, write_report

    check_target(out)
    if replayed:
        from reports.grid import read_grids

        results = [*replayed, *traces]  # all paths after --replayed
        click.echo(write_page(read_grids(results), ", ".join(results), out))
        return
    if stored:
        from compare.trial.bench.store import find_run

        path = find_run(stored)
    else:
        logs_read = [_ingest(kind, given) for kind in _KINDS if given[kind]]
        if logs_read:
            given["workloads"] = given["workloads"] or DEFAULT_WORKLOADS  # in addition to the log
        from compare.trial.bench.run import run_comparison

        path = run_comparison(options.comparison_from(given, traces), logs_read)
    from compare.trial.bench.store import read_run

    page = write_report(read_run(path), out)
    click.echo(f"run: {path}")
    click.echo(page)


def _check_unused(given: Mapping[str, Any]) -> None:
    """Refuse an option for a kind of log that is not given."""
    if given["end"] is not None and not given["requests"]:
        raise click.UsageError("--end needs --requests")
    for name in dict.fromkeys(chain(*_KINDS.values())):
        kinds = [kind for kind, needed in _KINDS.items() if name in needed]
        if given[name] is not None and not any(given[kind] for kind in kinds):
            needed = " or ".join(f"--{kind}" for kind in kinds)
            raise click.UsageError(f"--{name} needs {needed}")


def _refuse_options(given: Mapping[str, Any], shown: str) -> None:
    """Refuse what has no effect on stored results."""
    context = click.get_current_context()
    for param in context.command.params:
        source = context.get_parameter_source(param.name or "")
        if param.name in given and source is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{shown} shows what is stored; {param.opts[0]} is not used")


# ---- logs


def _ingest(kind: str, given: Mapping[str, Any]) -> "Trace":
    """Turn the log into a trace beside the runs, replacing that of an earlier report."""
    from compare.trial.bench.store import check_store

    log, guessed = given[kind], _guessed(kind, given)
    if guessed:
        assumed = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in guessed.items())
        click.echo(f"{log}: assuming {assumed}", err=True)
    check_store(given["runs"])
    # Of a pattern, what is not special.
    name = Path(re.sub(r"[*?\[\]]|\.(gz|bz2|zst)$", "", Path(log).name)).stem.strip("-") or "log"
    out = Path(given["runs"]) / TRACES / f"{name}.{kind}"
    out.parent.mkdir(parents=True, exist_ok=True)
    return ingest_log(kind, {**given, **guessed, "log": log, "out": str(out), "force": True})


def _guessed(kind: str, given: Mapping[str, Any]) -> dict[str, str]:
    """The missing options that a log needs: columns with common names, and defaults."""
    path, missing = given[kind], [name for name in _KINDS[kind] if given[name] is None]
    if given["end"] is not None and "duration" in missing:
        missing.remove("duration")
    guessed = {name: value for name, value in _KINDS[kind].items() if name in missing and value}
    if len(guessed) == len(missing):
        return guessed
    from compare.traffic.logs.formats.base import Layout
    from compare.traffic.logs.inspect import inspect

    layout = {name: given[name] for name in Layout._fields}
    inspection = inspect(path, Layout(**layout))
    log, likely = inspection.log, inspection.guesses
    context = click.get_current_context()
    if "duration" in missing:  # what else is known of the column that is guessed
        default = ParameterSource.DEFAULT
        how = [name for name in _HOW if context.get_parameter_source(name) is default]
        missing += [name for name in how if name in likely]
    for name in missing:
        if name not in guessed and name not in likely:
            raise ParameterError(
                f"cannot guess the {name} column of {path}; pass --{name} COL, one of {log.listed}"
            )
    return {name: guessed.get(name) or likely[name] for name in missing}
