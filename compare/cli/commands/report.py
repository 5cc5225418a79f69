"""`wheelwork report`: write results as a page with charts, and print its path last."""

import re
from pathlib import Path
from typing import Any

import click

from compare.base.arrow import leave_out_pandas
from compare.cli import options
from compare.cli.commands.ingest import ingest_log
from compare.cli.commands.inspect import GUESSES, ingest_command
from compare.trial.bench.comparison import QUICK_TAILS, Comparison
from timers.errors import ParameterError

TRACES = "traces"
"""Subdirectory of the runs for traces made from logs."""


@options.command("""\b
Examples:
  wheelwork report
  wheelwork report requests.trace --workload keepalive
  wheelwork report --requests dns.log --timeout 5s
  wheelwork report --touches access.log.gz --idle 30s
  wheelwork report --run runs/20260131T120000.000000Z-1f2e3d4c
  wheelwork report --replayed replayed""")
@options.traces_argument
@options.option("--requests", options.Place("log"), "Log of requests, with --timeout.")
@options.option("--timeout", "TIME", "Timeout of a request, such as 200ms.")
@options.option("--touches", options.Place("log"), "Log of touches, with --idle.")
@options.option("--idle", "TIME", "Idle timeout of a key, such as 30s.")
@options.workload
@options.peers()
@options.option(
    "--run",
    options.Place("run"),
    "Show a stored run, or the newest one in a directory of runs.",
    field="stored",
)
@options.option(
    "--replayed",
    options.Place("results..."),
    "Show results of `replay --out` or `summarise --out`.",
    multiple=True,
)
@options.allow
@options.option(
    "--out",
    options.Place("dir"),
    "Directory of the page; replaces an older report.",
    default="report",
)
def report(
    traces: tuple[str, ...],
    workloads: tuple[str, ...],
    peers: tuple[str, ...],
    stored: str | None,
    replayed: tuple[str, ...],
    allow: tuple[str, ...],
    out: str,
    **logs: str | None,
) -> None:
    """Compare timers and write the results as a page with charts and tables.

    TRACEs and workloads are measured as by `compare`, and the run is stored in
    runs/. A log is first turned into a trace. Its columns are guessed as by
    `inspect`, and the guess is printed; if it is wrong, use `ingest`.

    With --run or --replayed nothing is measured; stored results are shown. To
    choose timers, sizes or repeats, run `compare` and show its run.

    The page is a single file. The charts are also saved separately as SVG and
    PNG.
    """
    leave_out_pandas()
    options.refuse_both({"--run": stored, "--replayed": replayed})
    for kind, guess in GUESSES.items():
        if (logs[kind] is None) != (logs[guess.delay] is None):
            raise click.UsageError(f"--{kind} and --{guess.delay} must be given together")
    if stored and traces:
        raise click.UsageError(f"--run shows a stored run; the trace {traces[0]} is not used")
    unused = [
        name for name, value in {**logs, "workload": workloads, "peers": peers}.items() if value
    ]
    if unused and (stored or replayed):
        shown = "--run" if stored else "--replayed"
        raise click.UsageError(f"{shown} shows what is stored; --{unused[0]} is not used")

    if allow and not replayed:
        raise click.UsageError("--allow is for the timers of --replayed")

    from compare.trial.results.store import find_run, read_run, run_before
    from reports.page import check_target, write_page, write_report

    check_target(out)
    if replayed:
        from compare.trial.pipeline.summarise import summary_of
        from reports.summary import figures_of

        results = [*replayed, *traces]  # all paths after --replayed
        runs = [summary_of(path, allow=allow) for path in results]
        click.echo(write_page(figures_of(*runs), ", ".join(results), out))
        return
    if stored:
        path = find_run(stored)
    else:
        for kind, guess in GUESSES.items():
            if (log := logs[kind]) and (delay := logs[guess.delay]):
                traces = (*traces, _ingested(kind, log, delay))
        from compare.trial.bench.run import run_comparison

        command = click.get_current_context().obj
        path = run_comparison(
            Comparison(
                traces=traces,
                workloads=workloads or None,
                peers=peers,
                tails=QUICK_TAILS,
                command=command,
            )
        )
    run = read_run(path)
    page = write_report(run, out, run_before(run))
    click.echo(f"run: {path}")
    click.echo(page)


def _ingested(kind: str, log: str, delay: str) -> str:
    """Turn a log into a trace beside the runs, replacing that of an earlier report.

    `delay` is the timeout or the idle time. Raises ParameterError if a column cannot be guessed.
    """
    from compare.traffic.logs.formats.base import Layout
    from compare.traffic.logs.inspect import inspect
    from compare.trial.results.store import check_store

    seen, guess = inspect(log, Layout()), GUESSES[kind]
    if kind == "requests" and seen.told is not None:
        seen = seen.told
    found = guess.among(seen.guesses)
    found.pop("unit", None)  # all traces of a page have milliseconds
    pattern = {"pattern": seen.layout.pattern} if seen.layout.pattern else {}
    if not guess.is_complete(found):
        named = {"columns": "NAMES"} if seen.log.headless else {}
        named |= {"time": "COL", guess.needed: "COL"} | found
        named |= {guess.delay: delay, "out": f"{kind}.trace"}
        raise ParameterError(
            f"cannot guess the columns of {log} from {seen.log.listed}; name them:"
            f" {' '.join(ingest_command(kind, log, named))}"
        )
    words = ingest_command(kind, log, pattern | found)
    click.echo(f"{log}: assuming {' '.join(words[1:])}", err=True)
    for text in seen.warnings:
        click.echo(f"{log}: {text}", err=True)
    runs = Path(Comparison().runs)
    check_store(runs)
    # Of a pattern, what is not special.
    name = Path(re.sub(r"[*?\[\]]|\.(gz|bz2|zst)$", "", Path(log).name)).stem.strip("-") or "log"
    out = str(runs / TRACES / f"{name}.{kind}")
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    chosen: dict[str, Any] = {"where": (found["where"],)} if "where" in found else {}
    if (year := found.pop("year", "")).isdigit():  # else it is asked for
        chosen["year"] = int(year)
    ingest_log(
        kind,
        {**pattern, **found, **chosen, guess.delay: delay, "log": log, "out": out, "force": True},
    )
    return out
